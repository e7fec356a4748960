//! The value that a lock's key holds.

use alloc::vec::Vec;
use bytes::Bytes;

/// Hex digits of a token: 16 random bytes and the attempt's number.
pub(crate) const TOKEN_DIGITS: usize = 2 * (16 + 4);

/// The value of one attempt: the token in hex, then `:` and the client's name where one is set (R8b), so that an operator
/// sees who holds a lock. `entropy` is new for every request, `attempt` for every attempt of it, so no two attempts share
/// a value (R8).
pub(crate) fn value(entropy: [u8; 16], attempt: u32, name: Option<&str>) -> Bytes {
    let mut value = Vec::with_capacity(TOKEN_DIGITS + name.map_or(0, |name| name.len() + 1));
    for byte in entropy.into_iter().chain(attempt.to_be_bytes()) {
        value.push(digit(byte >> 4));
        value.push(digit(byte & 15));
    }
    if let Some(name) = name {
        value.push(b':');
        value.extend_from_slice(name.as_bytes());
    }
    value.into()
}

const fn digit(nibble: u8) -> u8 {
    if nibble < 10 { b'0' + nibble } else { b'a' - 10 + nibble }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r8_every_attempt_has_a_value_of_its_own() {
        let entropy = *b"0123456789abcdef";
        assert_eq!(value(entropy, 1, None), Bytes::from("3031323334353637383961626364656600000001"));
        assert_ne!(value(entropy, 1, None), value(entropy, 2, None));
    }

    #[test]
    fn r8b_the_name_follows_the_token() {
        assert!(value([0xff; 16], 7, Some("billing")).ends_with(b"ffffffff00000007:billing"));
    }
}
