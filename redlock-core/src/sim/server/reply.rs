//! Replies, and their two encodings.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use std::io::Write as _;

/// One reply, before it is known in which protocol it goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Simple(&'static str),
    /// Code and text, without the leading `-`. Bytes, since `unknown command` echoes what it was sent.
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Vec<u8>),
    Null,
    Array(Vec<Self>),
    /// A flat array in RESP2.
    Map(Vec<(Self, Self)>),
    /// A plain bulk in RESP2.
    Verbatim(Vec<u8>),
}

impl Reply {
    pub(super) const OK: Self = Self::Simple("OK");
    pub(super) const ZERO: Self = Self::Integer(0);
    pub(super) const ONE: Self = Self::Integer(1);

    pub(super) fn error(text: impl Into<String>) -> Self {
        Self::Error(text.into().into_bytes())
    }

    pub(super) fn bulk(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Bulk(bytes.into())
    }

    pub(super) fn syntax_error() -> Self {
        Self::error("ERR syntax error")
    }

    pub(super) fn not_an_integer() -> Self {
        Self::error("ERR value is not an integer or out of range")
    }

    pub(super) fn wrong_type() -> Self {
        Self::error("WRONGTYPE Operation against a key holding the wrong kind of value")
    }

    pub(super) fn wrong_arity(command: &str) -> Self {
        Self::error(format!("ERR wrong number of arguments for '{command}' command"))
    }

    pub(super) fn invalid_expire(command: &str) -> Self {
        Self::error(format!("ERR invalid expire time in '{command}' command"))
    }

    pub(super) fn encode(&self, protocol: Protocol, out: &mut Vec<u8>) {
        match self {
            Self::Simple(text) => {
                out.push(b'+');
                out.extend_from_slice(text.as_bytes());
                out.extend_from_slice(b"\r\n");
            }
            Self::Error(text) => {
                out.push(b'-');
                // Servers do the same: a line break that was echoed must not end the reply early.
                out.extend(text.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }));
                out.extend_from_slice(b"\r\n");
            }
            Self::Integer(number) => header(':', *number, out),
            Self::Bulk(bytes) => encode_blob('$', b"", bytes, out),
            Self::Null => out.extend_from_slice(match protocol {
                Protocol::Resp2 => b"$-1\r\n",
                Protocol::Resp3 => b"_\r\n",
            }),
            Self::Array(items) => {
                header('*', items.len(), out);
                for item in items {
                    item.encode(protocol, out);
                }
            }
            Self::Map(pairs) => {
                match protocol {
                    Protocol::Resp2 => header('*', pairs.len().saturating_mul(2), out),
                    Protocol::Resp3 => header('%', pairs.len(), out),
                }
                for (key, value) in pairs {
                    key.encode(protocol, out);
                    value.encode(protocol, out);
                }
            }
            Self::Verbatim(bytes) => match protocol {
                Protocol::Resp2 => encode_blob('$', b"", bytes, out),
                Protocol::Resp3 => encode_blob('=', b"txt:", bytes, out),
            },
        }
    }
}

fn header(kind: char, number: impl fmt::Display, out: &mut Vec<u8>) {
    // Writing to a Vec cannot fail.
    let _infallible = write!(out, "{kind}{number}\r\n");
}

fn encode_blob(kind: char, prefix: &[u8], bytes: &[u8], out: &mut Vec<u8>) {
    header(kind, prefix.len().saturating_add(bytes.len()), out);
    out.extend_from_slice(prefix);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// The push that ends a tracking registration; `None` stands for every key.
pub(super) fn encode_invalidation(keys: Option<&[Vec<u8>]>, out: &mut Vec<u8>) {
    out.extend_from_slice(b">2\r\n$10\r\ninvalidate\r\n");
    match keys {
        None => out.extend_from_slice(b"_\r\n"),
        Some(keys) => {
            header('*', keys.len(), out);
            for key in keys {
                encode_blob('$', b"", key, out);
            }
        }
    }
}

/// Which protocol a session speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Resp2,
    Resp3,
}

/// Reads an integer as servers do: no sign but `-`, no leading zeros, no spaces.
pub(super) fn parse_integer(bytes: &[u8]) -> Option<i64> {
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let leading_zero = digits.first() == Some(&b'0') && bytes.len() > 1;
    if digits.is_empty() || leading_zero || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    core::str::from_utf8(bytes).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_strictly() {
        for (text, number) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("", None),
            ("-", None),
            ("+5", None),
            (" 5", None),
            ("007", None),
            ("-0", None),
            ("1.5", None),
        ] {
            assert_eq!(parse_integer(text.as_bytes()), number, "{text:?}");
        }
    }

    #[test]
    fn an_echoed_line_break_does_not_end_the_reply() {
        let mut out = Vec::new();
        Reply::error("ERR a\r\nb").encode(Protocol::Resp2, &mut out);
        assert_eq!(out, b"-ERR a  b\r\n");
    }
}
