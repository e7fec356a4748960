//! SHA-1, which is how servers name a script. Nothing here depends on its strength.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

/// The digest of `bytes` in lower-case hex.
pub(super) fn sha1_hex(bytes: &[u8]) -> String {
    let mut state: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    for block in padded(bytes).as_chunks::<64>().0 {
        compress(&mut state, block);
    }
    state.iter().fold(String::with_capacity(40), |mut hex, word| {
        // Writing to a String cannot fail.
        let _infallible = write!(hex, "{word:08x}");
        hex
    })
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    let bits = u64::try_from(bytes.len()).unwrap_or(u64::MAX).saturating_mul(8);
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend_from_slice(&bits.to_be_bytes());
    padded
}

fn compress(state: &mut [u32; 5], block: &[u8; 64]) {
    let mut words: Vec<u32> = block.as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word)).collect();
    while words.len() < 80 {
        let word = [3, 8, 14, 16].iter().fold(0, |word, back| {
            word ^ words.len().checked_sub(*back).and_then(|at| words.get(at)).copied().unwrap_or_default()
        });
        words.push(word.rotate_left(1));
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (round, word) in words.into_iter().enumerate() {
        let (mixed, constant) = match round {
            0..20 => ((b & c) | (!b & d), 0x5a82_7999_u32),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6),
        };
        let next =
            a.rotate_left(5).wrapping_add(mixed).wrapping_add(e).wrapping_add(constant).wrapping_add(word);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
    }
    for (sum, part) in state.iter_mut().zip([a, b, c, d, e]) {
        *sum = sum.wrapping_add(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_digests() {
        assert_eq!(sha1_hex(b""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        assert_eq!(sha1_hex(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        let long = [b'a'; 200];
        assert_eq!(sha1_hex(&long), "e61cfffe0d9195a525fc6cf06ca2d77119c24a40");
    }
}
