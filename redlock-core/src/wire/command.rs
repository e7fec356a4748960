//! The commands we send, as bytes.
//!
//! Arguments are always bulk strings: the encoder's integers are wrong in the last place for some numbers.

use alloc::vec::Vec;
use core::time::Duration;

use bytes::{Bytes, BytesMut};
use redis_protocol::resp2::encode::extend_encode_borrowed;
use redis_protocol::resp2::types::BorrowedFrame;

use super::handshake::{DeleteForm, ExtendForm};
use super::script;

/// `HELLO 3`, with credentials (user, password) and a name for the connection where there are any. A server that
/// refuses one of them changes nothing.
pub(crate) fn hello3(auth: Option<(&[u8], &[u8])>, name: Option<&[u8]>) -> Bytes {
    let mut parts: Vec<&[u8]> = Vec::with_capacity(7);
    parts.extend([&b"HELLO"[..], b"3"]);
    if let Some((user, password)) = auth {
        parts.extend([b"AUTH", user, password]);
    }
    if let Some(name) = name {
        parts.extend([b"SETNAME", name]);
    }
    encode(&parts)
}

/// `AUTH`, for servers without `HELLO`. Without a user it is the form that servers before version 6 know.
pub(crate) fn auth(user: Option<&[u8]>, password: &[u8]) -> Bytes {
    match user {
        Some(user) => encode(&[b"AUTH", user, password]),
        None => encode(&[b"AUTH", password]),
    }
}

/// `SELECT`: the database.
pub(crate) fn select(database: u32) -> Bytes {
    encode(&[b"SELECT", Decimal::new(u64::from(database)).as_bytes()])
}

/// `CLIENT SETNAME`.
pub(crate) fn set_name(name: &[u8]) -> Bytes {
    encode(&[b"CLIENT", b"SETNAME", name])
}

/// `INFO server replication`: identity, uptime and role.
pub(crate) fn info() -> Bytes {
    encode(&[b"INFO", b"server", b"replication"])
}

/// `PING`: only its answer proves that the server takes commands.
pub(crate) fn ping() -> Bytes {
    encode(&[b"PING"])
}

/// Sets `keys` to `value` for `ttl` if they are free: `SET NX PX` for one key, for several the script that sets all or
/// none. Repairs what is missing of a lock that is held, too: the script takes keys that are ours for free.
pub(crate) fn set(keys: &[Bytes], value: &[u8], ttl: Duration) -> Bytes {
    let ttl = Decimal::millis(ttl);
    match keys {
        [key] => encode(&[b"SET", key, value, b"NX", b"PX", ttl.as_bytes()]),
        keys => eval(script::SET_ALL, keys, &[value, ttl.as_bytes()]),
    }
}

/// How a fenced acquire treats its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counters {
    /// How long an idle counter is kept; `None` for ever.
    pub(crate) retention: Option<Duration>,
}

/// What follows a key's name in its counter's.
pub(crate) const COUNTER_SUFFIX: &[u8] = b":fence";

/// As [`set`], counting the keys' counters up: answers with what they are then.
pub(crate) fn fenced_set(keys: &[Bytes], value: &[u8], ttl: Duration, counters: Counters) -> Bytes {
    let (ttl, kept) = (Decimal::millis(ttl), counters.kept());
    eval(script::FENCED_SET, &counters.with_keys(keys), &[value, ttl.as_bytes(), kept.as_bytes()])
}

/// As [`set`] where it repairs, with the counters at the fence or above.
pub(crate) fn fenced_repair(
    keys: &[Bytes],
    value: &[u8],
    ttl: Duration,
    counters: Counters,
    fence: u64,
) -> Bytes {
    let (ttl, kept, fence) = (Decimal::millis(ttl), counters.kept(), Decimal::new(fence));
    let arguments = [value, ttl.as_bytes(), kept.as_bytes(), fence.as_bytes()];
    eval(script::FENCED_REPAIR, &counters.with_keys(keys), &arguments)
}

/// Raises the counters to the fence if all of `keys` have the value.
pub(crate) fn raise(keys: &[Bytes], value: &[u8], counters: Counters, fence: u64) -> Bytes {
    let (kept, fence) = (counters.kept(), Decimal::new(fence));
    // The second argument is the ttl in the other scripts.
    let arguments = [value, b"0", kept.as_bytes(), fence.as_bytes()];
    eval(script::FENCED_RAISE, &counters.with_keys(keys), &arguments)
}

impl Counters {
    /// Milliseconds, 0 for ever.
    fn kept(self) -> Decimal {
        self.retention.map_or_else(|| Decimal::new(0), Decimal::millis)
    }

    fn with_keys(self, keys: &[Bytes]) -> Vec<Bytes> {
        let counters = keys.iter().map(|key| Bytes::from([key, COUNTER_SUFFIX].concat()));
        keys.iter().cloned().chain(counters).collect()
    }
}

/// Gives `keys` the expiry `ttl` if their value is `value`. Several keys are always extended by the script.
pub(crate) fn extend(form: ExtendForm, keys: &[Bytes], value: &[u8], ttl: Duration) -> Bytes {
    let ttl = Decimal::millis(ttl);
    match (keys, form) {
        ([key], ExtendForm::Ifeq) => encode(&[b"SET", key, value, b"IFEQ", value, b"PX", ttl.as_bytes()]),
        ([_], ExtendForm::Script) => eval(script::EXTEND, keys, &[value, ttl.as_bytes()]),
        (keys, _) => eval(script::EXTEND_ALL, keys, &[value, ttl.as_bytes()]),
    }
}

/// Deletes each of `keys` whose value is `value`. Several keys are always deleted by the script.
pub(crate) fn release(form: DeleteForm, keys: &[Bytes], value: &[u8]) -> Bytes {
    match (keys, form) {
        ([key], DeleteForm::Delex) => encode(&[b"DELEX", key, b"IFEQ", value]),
        ([key], DeleteForm::Delifeq) => encode(&[b"DELIFEQ", key, value]),
        ([_], DeleteForm::Script) => eval(script::RELEASE, keys, &[value]),
        (keys, _) => eval(script::RELEASE_ALL, keys, &[value]),
    }
}

/// `TIME`: the server's clock, as seconds and microseconds since 1970.
pub(crate) fn time() -> Bytes {
    Bytes::from_static(b"*1\r\n$4\r\nTIME\r\n")
}

/// `CLIENT TRACKING ON OPTIN`: changes to the keys that are named are told by pushes. Never with NOLOOP: a write of our own
/// would end the registration silently.
pub(crate) fn tracking() -> Bytes {
    encode(&[b"CLIENT", b"TRACKING", b"ON", b"OPTIN"])
}

/// `CLIENT TRACKING OFF`: nothing is told any more, whatever is registered.
pub(crate) fn tracking_off() -> Bytes {
    encode(&[b"CLIENT", b"TRACKING", b"OFF"])
}

/// `CLIENT CACHING YES`: the next change of the keys of the command right behind it is told.
pub(crate) fn caching() -> Bytes {
    encode(&[b"CLIENT", b"CACHING", b"YES"])
}

/// `PTTL`: the milliseconds that a key has left; −2 where there is none, −1 where it has no expiry.
pub(crate) fn pttl(key: &[u8]) -> Bytes {
    encode(&[b"PTTL", key])
}

/// `GETRANGE`: a part of a key's value, both ends included. The key may be anybody's, of any size.
pub(crate) fn get_range(key: &[u8], first: u32, last: u32) -> Bytes {
    let (first, last) = (Decimal::new(u64::from(first)), Decimal::new(u64::from(last)));
    encode(&[b"GETRANGE", key, first.as_bytes(), last.as_bytes()])
}

/// `EVAL`: the script is sent in full, since a cache can be empty at any time (R18).
fn eval(script: &str, keys: &[Bytes], arguments: &[&[u8]]) -> Bytes {
    debug_assert!(!keys.is_empty(), "a script over no keys would grant a lock on nothing");
    let count = Decimal::new(u64::try_from(keys.len()).unwrap_or(u64::MAX));
    let mut parts: Vec<&[u8]> = Vec::with_capacity(3 + keys.len() + arguments.len());
    parts.extend([&b"EVAL"[..], script.as_bytes(), count.as_bytes()]);
    parts.extend(keys.iter().map(AsRef::as_ref));
    parts.extend(arguments);
    encode(&parts)
}

/// What a word of a command has around it, at most: `$`, its length, two line ends.
const MOST_HEAD: usize = 16;

/// A command of these words.
pub(crate) fn encode(parts: &[&[u8]]) -> Bytes {
    let frames: Vec<BorrowedFrame<'_>> = parts.iter().map(|part| BorrowedFrame::BulkString(part)).collect();
    // One piece of about the size it needs: growing it costs more than the bytes that are left over.
    let size = parts.iter().map(|part| part.len() + MOST_HEAD).sum::<usize>() + MOST_HEAD;
    let mut buffer = BytesMut::with_capacity(size);
    // It cannot fail: the encoder grows the buffer by what the same frame needs. That it counts right is tested.
    let encoded = extend_encode_borrowed(&mut buffer, &BorrowedFrame::Array(&frames), false);
    debug_assert!(encoded.is_ok_and(|len| len == buffer.len()), "the encoder miscounted");
    buffer.freeze()
}

/// A number in decimal digits, without an allocation.
struct Decimal {
    digits: [u8; Self::LEN],
    from: usize,
}

impl Decimal {
    /// `u64::MAX` has so many digits.
    const LEN: usize = 20;

    fn new(value: u64) -> Self {
        let mut decimal = Self { digits: [b'0'; Self::LEN], from: Self::LEN };
        let mut rest = value;
        for digit in decimal.digits.iter_mut().rev() {
            *digit += u8::try_from(rest % 10).unwrap_or_default();
            rest /= 10;
            decimal.from -= 1;
            if rest == 0 {
                break;
            }
        }
        decimal
    }

    /// Whole milliseconds, at least one: servers take a ttl of 0 or less for "delete" or refuse it.
    fn millis(span: Duration) -> Self {
        debug_assert!(span.as_millis() > 0, "ttls below a millisecond are refused before they get here");
        Self::new(u64::try_from(span.as_millis()).unwrap_or(u64::MAX).max(1))
    }

    fn as_bytes(&self) -> &[u8] {
        self.digits.get(self.from..).unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
