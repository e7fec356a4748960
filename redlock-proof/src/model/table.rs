//! Tables with a fixed hash: the same run every time, on every machine.

use core::hash::{BuildHasherDefault, Hash, Hasher};

/// Two lanes of folded multiplication, 128 bits in all, without a seed.
///
/// The search takes two states with one fingerprint for the same. With 10⁸ states the chance that any two differ is
/// about 10⁻²³.
#[derive(Clone, Copy, Debug)]
pub(super) struct Print {
    a: u64,
    b: u64,
}

impl Default for Print {
    /// Starts from the fraction of π, like the multipliers below: nothing up the sleeve.
    fn default() -> Self {
        Self { a: 0x243f_6a88_85a3_08d3, b: 0x1319_8a2e_0370_7344 }
    }
}

impl Print {
    /// The fingerprint of `value`.
    pub(super) fn of(value: &impl Hash) -> u128 {
        let mut print = Self::default();
        value.hash(&mut print);
        print.word(0x2d);
        (u128::from(print.a) << 64) | u128::from(print.b)
    }

    const fn word(&mut self, word: u64) {
        self.a = fold(self.a ^ word, 0xa409_3822_299f_31d1);
        self.b = fold(self.b ^ word.rotate_left(32), 0x082e_fa98_ec4e_6c89);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves of the product are what is wanted")]
const fn fold(a: u64, b: u64) -> u64 {
    let product = (a as u128) * (b as u128);
    (product as u64) ^ ((product >> 64) as u64)
}

impl Hasher for Print {
    fn finish(&self) -> u64 {
        self.a ^ self.b.rotate_left(17)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.word(value.into());
    }

    fn write_u16(&mut self, value: u16) {
        self.word(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.word(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.word(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.word(value as u64);
    }

    #[expect(clippy::cast_sign_loss, reason = "only to be told apart")]
    fn write_isize(&mut self, value: isize) {
        self.word(value as u64);
    }
}

/// Lets a fingerprint be its own hash.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut word = [0; 8];
        let len = bytes.len().min(8);
        word[..len].copy_from_slice(&bytes[..len]);
        self.0 = u64::from_le_bytes(word);
    }
}

/// Looked up by key only, never walked: its order cannot be seen.
#[expect(
    clippy::disallowed_types,
    reason = "never walked, and hashed without a seed: its order cannot be seen"
)]
pub(super) type Table<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<Print>>;

/// The fingerprints of the states that were seen.
#[expect(
    clippy::disallowed_types,
    reason = "never walked, and hashed without a seed: its order cannot be seen"
)]
pub(super) type Seen = std::collections::HashSet<u128, BuildHasherDefault<Itself>>;

/// Gives equal values one number, so that a state is a few numbers.
#[derive(Debug)]
pub(super) struct Pool<T> {
    items: Vec<T>,
    numbers: Table<T, u32>,
}

impl<T: Hash + Eq + Clone> Pool<T> {
    pub(super) fn new() -> Self {
        Self { items: Vec::new(), numbers: Table::default() }
    }

    /// The value's number, and whether it is a new one.
    pub(super) fn number(&mut self, value: T) -> (u32, bool) {
        if let Some(number) = self.numbers.get(&value) {
            return (*number, false);
        }
        let number = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
        self.items.push(value.clone());
        self.numbers.insert(value, number);
        (number, true)
    }

    pub(super) fn get(&self, number: u32) -> &T {
        &self.items[number as usize]
    }
}
