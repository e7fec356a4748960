//! The value that a lock's key holds.

use alloc::vec::Vec;
use core::fmt;

/// Hex digits of a token: 16 random bytes and the attempt's number.
pub(crate) const TOKEN_DIGITS: usize = 2 * (16 + 4);

/// What makes the value of one attempt: `entropy` is new for every request, `attempt` for every attempt of it, so no two attempts
/// share a value (R8).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) entropy: [u8; 16],
    pub(crate) attempt: u32,
}

/// The attempt's number alone (R26).
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("attempt", &self.attempt).finish_non_exhaustive()
    }
}

impl Token {
    /// The token in hex, then `:` and the client's name where one is set (R8b), so that an operator sees who holds a lock.
    pub(crate) fn value(self, name: Option<&str>) -> Vec<u8> {
        let mut value = Vec::with_capacity(TOKEN_DIGITS + name.map_or(0, |name| name.len() + 1));
        self.write(name, &mut value);
        value
    }

    /// Appends its [`value`](Self::value).
    pub(crate) fn write(self, name: Option<&str>, value: &mut Vec<u8>) {
        let mut digits = [[0; 8]; TOKEN_DIGITS / 8];
        let (words, _) = self.entropy.as_chunks();
        let words = words.iter().map(|word| u32::from_be_bytes(*word)).chain([self.attempt]);
        for (eight, word) in digits.iter_mut().zip(words) {
            *eight = hex(word);
        }
        value.extend_from_slice(digits.as_flattened());
        if let Some(name) = name {
            value.push(b':');
            value.extend_from_slice(name.as_bytes());
        }
    }
}

/// The eight digits of a word, all at once: each nibble gets a byte of its own, then 48, and 39 more where it is a letter.
const fn hex(word: u32) -> [u8; 8] {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let word = word as u64;
    let halves = (word | (word << 16)) & 0x0000_ffff_0000_ffff;
    let bytes = (halves | (halves << 8)) & 0x00ff_00ff_00ff_00ff;
    let nibbles = (bytes | (bytes << 4)) & (EACH * 0x0f);
    let letters = ((nibbles + EACH * 6) >> 4) & EACH;
    (nibbles + EACH * 0x30 + letters * 0x27).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r8_every_attempt_has_a_value_of_its_own() {
        let entropy = *b"0123456789abcdef";
        let value = |entropy, attempt| Token { entropy, attempt }.value(None);
        assert_eq!(value(entropy, 1), b"3031323334353637383961626364656600000001");
        assert_ne!(value(entropy, 1), value(entropy, 2));
    }

    #[test]
    fn every_digit_is_the_right_one() {
        for word in [0, 0x0123_4567, 0x89ab_cdef, 0x9a9a_a9f0, u32::MAX, 1 << 31] {
            assert_eq!(hex(word), *alloc::format!("{word:08x}").as_bytes());
        }
    }

    #[test]
    fn r26_a_token_is_not_shown() {
        assert_eq!(
            alloc::format!("{:?}", Token { entropy: [9; 16], attempt: 7 }),
            "Token { attempt: 7, .. }"
        );
    }

    #[test]
    fn r8b_the_name_follows_the_token() {
        assert!(
            Token { entropy: [0xff; 16], attempt: 7 }
                .value(Some("billing"))
                .ends_with(b"ffffffff00000007:billing")
        );
    }
}
