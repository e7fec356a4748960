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
        let mut digits = [[0; 2]; TOKEN_DIGITS / 2];
        let bytes = self.entropy.into_iter().chain(self.attempt.to_be_bytes());
        for (pair, byte) in digits.iter_mut().zip(bytes) {
            *pair = [digit(byte >> 4), digit(byte & 15)];
        }
        value.extend_from_slice(digits.as_flattened());
        if let Some(name) = name {
            value.push(b':');
            value.extend_from_slice(name.as_bytes());
        }
    }
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
        let value = |entropy, attempt| Token { entropy, attempt }.value(None);
        assert_eq!(value(entropy, 1), b"3031323334353637383961626364656600000001");
        assert_ne!(value(entropy, 1), value(entropy, 2));
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
