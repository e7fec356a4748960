//! What a peer can do that no Redis or Valkey does: the stream then cannot be trusted, and the connection is closed.

use core::fmt;

/// How a stream broke the protocol. After one, nothing that follows on the connection can be matched to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// A frame begins with a byte that the protocol in force has no type for.
    UnknownType(Excerpt),
    /// A streamed string or aggregate (`$?`, `*?`, …), which no server sends.
    Streamed,
    /// A push inside another frame.
    NestedPush,
    /// Aggregates nested deeper than [`MAX_DEPTH`](super::frame::MAX_DEPTH).
    TooDeep,
    /// A frame longer than [`MAX_FRAME`](super::frame::MAX_FRAME), by its own announcement or by what arrived.
    TooLong,
    /// A frame of more elements than [`MAX_ELEMENTS`](super::frame::MAX_ELEMENTS).
    TooManyElements,
    /// A number or a length that is none.
    BadNumber(Excerpt),
    /// A line, or the end of a string, without its CRLF, or a lone CR or LF in a line.
    BadLineEnd(Excerpt),
    /// A null, boolean or verbatim string that is not spelled as one.
    Malformed(Excerpt),
    /// The frame passed the scan, but not the decoder.
    Undecodable,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownType(excerpt) => write!(f, "not a reply of Redis or Valkey: {excerpt}"),
            Self::Streamed => f.write_str("a streamed reply"),
            Self::NestedPush => f.write_str("a push inside a reply"),
            Self::TooDeep => f.write_str("a reply nested too deeply"),
            Self::TooLong => f.write_str("a reply that is too long"),
            Self::TooManyElements => f.write_str("a reply of too many elements"),
            Self::BadNumber(excerpt) => write!(f, "not a number: {excerpt}"),
            Self::BadLineEnd(excerpt) => write!(f, "a line end that is missing or misplaced: {excerpt}"),
            Self::Malformed(excerpt) => write!(f, "a malformed reply: {excerpt}"),
            Self::Undecodable => f.write_str("a reply that cannot be decoded"),
        }
    }
}

impl core::error::Error for Violation {}

/// The first bytes of what was wrong, shown escaped.
///
/// So few that a token or a password that a broken stream lays bare cannot be read from them (R26).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Excerpt {
    len: u8,
    bytes: [u8; Self::MAX],
}

impl Excerpt {
    /// The most bytes that are kept: a quarter of a token's hex.
    pub(crate) const MAX: usize = 8;

    /// The first bytes of `bytes`.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut excerpt = Self { len: 0, bytes: [0; Self::MAX] };
        for (to, from) in excerpt.bytes.iter_mut().zip(bytes) {
            *to = *from;
            excerpt.len += 1;
        }
        excerpt
    }

    fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.as_slice().escape_ascii())
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;

    #[test]
    fn the_text_shows_a_few_bytes_escaped() {
        let violation = Violation::UnknownType(Excerpt::of(b"\x16\x03\x01\r\n and a great deal more"));
        assert_eq!(violation.to_string(), "not a reply of Redis or Valkey: \"\\x16\\x03\\x01\\r\\n an\"");
        assert_eq!(Violation::BadNumber(Excerpt::of(b"")).to_string(), "not a number: \"\"");
    }
}
