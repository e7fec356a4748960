//! One reply, whatever the protocol it came by.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;

use bytes::Bytes;

use super::error::ServerError;

/// A complete reply. RESP2 and RESP3 forms of the same answer are the same here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Exactly `+OK`.
    Ok,
    /// Any other status line, escaped where it is not printable.
    Simple(String),
    /// An error, as a line or as a RESP3 blob.
    Error(ServerError),
    /// An integer.
    Integer(i64),
    /// A string of bytes, a RESP3 verbatim string without its format.
    Bulk(Blob),
    /// A null of any form.
    Null,
    /// An array.
    Array(Vec<Self>),
    /// A RESP3 map, in the order it was sent.
    Map(Vec<(Self, Self)>),
    /// A RESP3 push: no answer to anything.
    Push(Vec<Self>),
    /// A type that answers nothing we ask: its name.
    Other(&'static str),
}

/// What nodes answer nearly always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Usual {
    /// `+OK`.
    Ok,
    /// `:1`.
    One,
    /// `:0`.
    Zero,
}

impl Usual {
    /// The reply, if it is one of them.
    pub(crate) const fn of(reply: &Reply) -> Option<Self> {
        match reply {
            Reply::Ok => Some(Self::Ok),
            Reply::Integer(1) => Some(Self::One),
            Reply::Integer(0) => Some(Self::Zero),
            Reply::Simple(_)
            | Reply::Error(_)
            | Reply::Integer(_)
            | Reply::Bulk(_)
            | Reply::Null
            | Reply::Array(_)
            | Reply::Map(_)
            | Reply::Push(_)
            | Reply::Other(_) => None,
        }
    }
}

impl From<Usual> for Reply {
    fn from(usual: Usual) -> Self {
        match usual {
            Usual::Ok => Self::Ok,
            Usual::One => Self::Integer(1),
            Usual::Zero => Self::Integer(0),
        }
    }
}

impl Reply {
    /// The text of a status line or the bytes of a string.
    pub(crate) fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Ok => Some(b"OK"),
            Self::Simple(text) => Some(text.as_bytes()),
            Self::Bulk(blob) => Some(blob),
            Self::Error(_)
            | Self::Integer(_)
            | Self::Null
            | Self::Array(_)
            | Self::Map(_)
            | Self::Push(_)
            | Self::Other(_) => None,
        }
    }

    /// The number of an integer reply.
    pub(crate) fn as_integer(&self) -> Option<i64> {
        if let Self::Integer(value) = self { Some(*value) } else { None }
    }

    /// What `TIME` says: seconds, and microseconds on top.
    pub(crate) fn as_time(&self) -> Option<(i64, i64)> {
        let Self::Array(parts) = self else { return None };
        let [secs, micros] = parts.as_slice() else { return None };
        let number = |part: &Self| core::str::from_utf8(part.as_bytes()?).ok()?.parse().ok();
        number(secs).zip(number(micros))
    }
}

/// What was answered, without the contents of strings: those may be tokens (R26).
impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("+OK"),
            Self::Simple(text) => write!(f, "a status of {} bytes", text.len()),
            Self::Error(error) => fmt::Display::fmt(error, f),
            Self::Integer(value) => write!(f, ":{value}"),
            Self::Bulk(blob) => write!(f, "a string of {} bytes", blob.len()),
            Self::Null => f.write_str("a null"),
            Self::Array(items) => write!(f, "an array of {}", items.len()),
            Self::Map(items) => write!(f, "a map of {}", items.len()),
            Self::Push(items) => write!(f, "a push of {}", items.len()),
            Self::Other(name) => write!(f, "a {name}"),
        }
    }
}

/// The bytes of a string, inside the value where they are few.
#[derive(Clone)]
pub(crate) struct Blob(Store);

#[derive(Clone)]
enum Store {
    Inline { len: u8, bytes: [u8; Blob::INLINE] },
    Shared(Bytes),
}

impl Blob {
    /// Up to so many bytes cost no allocation: a token in hex, a number, a short answer.
    const INLINE: usize = 54;

    /// A copy of `bytes`.
    pub(crate) fn copy_of(bytes: &[u8]) -> Self {
        let mut inline = [0; Self::INLINE];
        match (inline.get_mut(..bytes.len()), u8::try_from(bytes.len())) {
            (Some(room), Ok(len)) => {
                room.copy_from_slice(bytes);
                Self(Store::Inline { len, bytes: inline })
            }
            (Some(_) | None, _) => Self(Store::Shared(Bytes::copy_from_slice(bytes))),
        }
    }
}

impl Deref for Blob {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Store::Inline { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Store::Shared(bytes) => bytes,
        }
    }
}

impl From<Blob> for Bytes {
    fn from(blob: Blob) -> Self {
        match blob.0 {
            Store::Inline { .. } => Self::copy_from_slice(&blob),
            Store::Shared(bytes) => bytes,
        }
    }
}

impl PartialEq for Blob {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Blob {}

/// The length alone: the bytes may be a token (R26).
impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

/// Appends `bytes` as text: what is neither UTF-8 nor printable is escaped.
pub(crate) fn push_escaped(text: &mut String, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                // `escape_debug` would escape these three as well, and servers quote with them.
                '\'' | '"' | '\\' => text.push(character),
                _ => text.extend(character.escape_debug()),
            }
        }
        text.extend(chunk.invalid().escape_ascii().map(char::from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec;

    #[test]
    fn blobs_keep_their_bytes_at_any_length() {
        for len in [0, 1, Blob::INLINE - 1, Blob::INLINE, Blob::INLINE + 1, 300, 70_000] {
            let bytes = vec![b'\n'; len];
            let blob = Blob::copy_of(&bytes);
            assert_eq!(*blob, *bytes);
            assert_eq!(matches!(blob.0, Store::Inline { .. }), len <= Blob::INLINE);
            assert_eq!(Bytes::from(blob), bytes);
        }
        assert!(size_of::<Reply>() <= 64, "{}", size_of::<Reply>());
    }

    #[test]
    fn r26_no_form_of_a_reply_shows_a_string() {
        let reply = Reply::Array(vec![Reply::Bulk(Blob::copy_of(b"0123456789abcdef"))]);
        assert!(!format!("{reply:?} {reply}").contains("0123"));
        let reply = Reply::Bulk(Blob::copy_of(b"0123456789abcdef"));
        assert_eq!(format!("{reply:?} {reply}"), "Bulk(16 bytes) a string of 16 bytes");
    }

    #[test]
    fn text_is_escaped_where_it_is_not_printable() {
        let mut text = String::new();
        push_escaped(&mut text, b"it's \"\xc3\xa9\" \\ \0\x1b[2J\t\xff\xfe \xe2\x80\xae");
        assert_eq!(text, "it's \"é\" \\ \\0\\u{1b}[2J\\t\\xff\\xfe \\u{202e}");
    }
}
