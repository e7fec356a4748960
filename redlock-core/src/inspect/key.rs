//! What a key holds on one node, and its removal.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use bytes::Bytes;

use super::probe::{Ask, Next};
use super::report::NodeReport;
use crate::token::TOKEN_DIGITS;
use crate::wire::command;
use crate::wire::error::{ErrorCode, ServerError};
use crate::wire::reply::{Reply, push_escaped};

/// The last byte of a value that is read: the longest of ours is far shorter.
const LAST_BYTE: u32 = 255;
/// So many characters of a value are shown, the rest is a secret: who knows a whole token can release the lock (R26).
const SHOWN: usize = 8;

/// What the key of a resource is on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyState {
    /// Nothing is there.
    Free,
    /// Something is there.
    Held(HeldKey),
    /// Something is there that is no string, and so no lock.
    NotAString(Remaining),
    /// The node would not say.
    Untold(ServerError),
}

/// A string at the key of a resource.
///
/// Its `Debug` does not show it; [`masked`](Self::masked) shows as much as may be shown.
#[derive(Clone, PartialEq, Eq)]
pub struct HeldKey {
    value: Bytes,
    remaining: Remaining,
}

impl HeldKey {
    pub(super) const fn new(value: Bytes, remaining: Remaining) -> Self {
        Self { value, remaining }
    }

    /// How long it stays.
    #[must_use]
    pub const fn remaining(&self) -> Remaining {
        self.remaining
    }

    /// Whether the other one is the same hold, by the whole value as far as it was read.
    #[must_use]
    pub fn is_same_hold(&self, other: &Self) -> bool {
        self.value == other.value
    }

    /// Whether the value is formed like those of this library.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        let (token, name) = self.parts();
        token.len() == TOKEN_DIGITS
            && token.iter().all(u8::is_ascii_hexdigit)
            && name.is_none_or(|name| !name.is_empty())
    }

    /// The name that its owner was given, if the value is formed like ours and has one.
    #[must_use]
    pub fn client_name(&self) -> Option<String> {
        let (_, name) = self.parts();
        name.filter(|_| self.is_ours()).map(escaped)
    }

    /// The beginning of the value, too little of it to release the lock with.
    #[must_use]
    pub fn masked(&self) -> String {
        let (token, _) = self.parts();
        if token.len() <= SHOWN * 2 {
            return format!("({} bytes)", self.value.len());
        }
        format!("{}…", escaped(token.get(..SHOWN).unwrap_or_default()))
    }

    /// How long the value is, as far as it was read.
    #[must_use]
    pub fn value_len(&self) -> usize {
        self.value.len()
    }

    fn parts(&self) -> (&[u8], Option<&[u8]>) {
        match self.value.iter().position(|byte| *byte == b':') {
            Some(colon) => (self.value.get(..colon).unwrap_or_default(), self.value.get(colon + 1..)),
            None => (&self.value, None),
        }
    }
}

impl fmt::Debug for HeldKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {:?}", self.masked(), self.remaining)
    }
}

/// How long a key stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "whoever shows it has to show all of it")]
pub enum Remaining {
    /// So long, by the node's clock.
    For(Duration),
    /// For ever: it has no expiry, so that it is no lock of this library.
    Forever,
    /// The node would not say.
    Untold,
}

/// What the fence counter beside a key says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FenceState {
    /// There is none: no fenced lock was ever granted here, or the node forgot it.
    Absent,
    /// Its number, as it is stored.
    Number(String),
    /// Something that is no number.
    NotANumber,
    /// The node would not say.
    Untold(ServerError),
}

/// What became of the key that was to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Removal {
    /// It was there, and is gone.
    Removed,
    /// It was not there.
    WasFree,
    /// The node refused.
    Refused(ServerError),
    /// An answer that `DEL` does not give, in words.
    Odd(String),
}

impl Removal {
    /// Whether the key is gone.
    #[must_use]
    pub const fn is_clear(&self) -> bool {
        matches!(self, Self::Removed | Self::WasFree)
    }
}

/// Asks what a key holds.
#[derive(Debug)]
pub(super) struct Reading {
    key: Bytes,
    value: Option<Result<Bytes, ServerError>>,
    rounds: u8,
}

impl Reading {
    pub(super) const fn new(key: Bytes) -> Self {
        Self { key, value: None, rounds: 0 }
    }

    pub(super) fn next(&mut self, report: &NodeReport) -> Next {
        if report.key.is_some() && report.fence.is_some() {
            return Next::Done;
        }
        self.rounds += 1;
        let mut asks = alloc::vec![
            (Ask::Value, command::get_range(&self.key, 0, LAST_BYTE)),
            (Ask::Pttl, command::pttl(&self.key)),
        ];
        if report.fence.is_none() {
            let fence = fence_key(&self.key);
            asks.push((Ask::Fence, command::get_range(&fence, 0, LAST_BYTE)));
        }
        Next::Ask(asks)
    }

    pub(super) fn on_reply(&mut self, ask: Ask, reply: Reply, report: &mut NodeReport) {
        match (ask, reply) {
            (Ask::Value, Reply::Error(error)) => self.value = Some(Err(error)),
            (Ask::Value, reply) => {
                self.value = Some(Ok(Bytes::copy_from_slice(reply.as_bytes().unwrap_or_default())));
            }
            (Ask::Pttl, reply) => report.key = self.judge(&reply),
            (Ask::Fence, Reply::Error(error)) if error.code() == ErrorCode::Wrongtype => {
                report.fence = Some(FenceState::NotANumber);
            }
            (Ask::Fence, Reply::Error(error)) => report.fence = Some(FenceState::Untold(error)),
            (Ask::Fence, reply) => report.fence = Some(fence(reply.as_bytes().unwrap_or_default())),
            (
                Ask::Handshake(_)
                | Ask::Info
                | Ask::Config
                | Ask::Right(_)
                | Ask::Try(_)
                | Ask::Time
                | Ask::Tidy
                | Ask::Remove,
                _,
            ) => {}
        }
    }

    /// The value was read before the time: `None` where the key changed hands in between, and has to be read again.
    fn judge(&mut self, pttl: &Reply) -> Option<KeyState> {
        let remaining = match pttl.as_integer() {
            Some(-2) => return Some(KeyState::Free),
            Some(-1) => Remaining::Forever,
            Some(millis) => Remaining::For(Duration::from_millis(u64::try_from(millis).unwrap_or_default())),
            None => Remaining::Untold,
        };
        Some(match self.value.take()? {
            Err(error) if error.code() == ErrorCode::Wrongtype => KeyState::NotAString(remaining),
            Err(error) => KeyState::Untold(error),
            // Nothing was there, then something: or it is an empty string, if it is so again.
            Ok(value) if value.is_empty() && remaining == Remaining::Untold => KeyState::Free,
            Ok(value) if value.is_empty() && self.rounds < 2 => return None,
            Ok(value) => KeyState::Held(HeldKey::new(value, remaining)),
        })
    }
}

/// The key of a resource's fence counter.
pub(super) fn fence_key(key: &[u8]) -> Vec<u8> {
    [key, b":fence"].concat()
}

fn fence(value: &[u8]) -> FenceState {
    if value.is_empty() {
        return FenceState::Absent;
    }
    let is_number = value.len() <= 20 && value.iter().all(u8::is_ascii_digit);
    if is_number { FenceState::Number(escaped(value)) } else { FenceState::NotANumber }
}

/// Removes a key, whoever holds it.
#[derive(Debug)]
pub(super) struct Removing {
    key: Bytes,
}

impl Removing {
    pub(super) const fn new(key: Bytes) -> Self {
        Self { key }
    }

    pub(super) fn next(&self, report: &NodeReport) -> Next {
        if report.removal.is_some() {
            return Next::Done;
        }
        Next::Ask(alloc::vec![(Ask::Remove, command::encode(&[b"DEL", &self.key]))])
    }

    pub(super) fn on_reply(reply: Reply, report: &mut NodeReport) {
        report.removal = Some(match reply {
            Reply::Integer(1) => Removal::Removed,
            Reply::Integer(0) => Removal::WasFree,
            Reply::Error(error) => Removal::Refused(error),
            reply @ (Reply::Ok
            | Reply::Simple(_)
            | Reply::Integer(_)
            | Reply::Bulk(_)
            | Reply::Null
            | Reply::Array(_)
            | Reply::Map(_)
            | Reply::Push(_)
            | Reply::Other(_)) => Removal::Odd(reply.to_string()),
        });
    }
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    push_escaped(&mut text, bytes);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(value: &str) -> HeldKey {
        HeldKey::new(Bytes::copy_from_slice(value.as_bytes()), Remaining::Forever)
    }

    #[test]
    fn r8b_the_name_is_read_and_r26_the_token_is_masked() {
        let token = "3031323334353637383961626364656600000001";
        let named = held(&format!("{token}:billing"));
        assert!(named.is_ours());
        assert_eq!(named.client_name().as_deref(), Some("billing"));
        assert_eq!(named.masked(), "30313233…");
        assert!(!format!("{named:?}").contains(token));
        assert_eq!(held(token).client_name(), None);
        assert!(held(token).is_ours());
    }

    #[test]
    fn r26_values_of_others_are_not_shown_as_names() {
        for value in ["", "x", "5f6cc9bd-2a5c-4a5e", "secret:password", "3031:billing", "a:b:c"] {
            let key = held(value);
            assert!(!key.is_ours(), "{value}");
            assert_eq!(key.client_name(), None, "{value}");
            assert!(value.is_empty() || !key.masked().contains(value), "{value}");
        }
        assert_eq!(held("short").masked(), "(5 bytes)");
    }

    #[test]
    fn counters_are_digits() {
        assert_eq!(fence(b""), FenceState::Absent);
        assert_eq!(fence(b"1800000000000000001"), FenceState::Number("1800000000000000001".into()));
        for other in [&b"1.8e18"[..], b"-1", b"123456789012345678901", b"x"] {
            assert_eq!(fence(other), FenceState::NotANumber);
        }
    }
}
