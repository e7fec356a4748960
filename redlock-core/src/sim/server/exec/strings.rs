//! Commands on keys.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Call;
use crate::sim::server::dialect::Dialect;
use crate::sim::server::reply::{Reply, parse_integer};
use crate::sim::server::store::Value;

impl Call<'_> {
    /// The text at `key`: `Ok(None)` if the key is free, `Err` if something else is there.
    fn text(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Reply> {
        match self.core.store.get(self.session.database, key, self.now_ms) {
            None => Ok(None),
            Some(entry) => entry.value.text().map(|text| Some(text.to_vec())).ok_or_else(Reply::wrong_type),
        }
    }

    fn holds_key(&mut self, key: &[u8]) -> bool {
        self.core.store.get(self.session.database, key, self.now_ms).is_some()
    }

    fn expiry(&mut self, key: &[u8]) -> Option<i64> {
        self.core.store.get(self.session.database, key, self.now_ms)?.expires_at
    }

    fn remove(&mut self, key: &[u8]) -> bool {
        // An expired key is not there to be deleted.
        self.holds_key(key) && self.core.store.remove(self.session.database, key)
    }
}

#[derive(Debug, Default)]
struct SetOptions {
    nx: bool,
    xx: bool,
    get: bool,
    keep_ttl: bool,
    if_equal: Option<Vec<u8>>,
    if_not_equal: Option<Vec<u8>>,
    expiry: Option<(Unit, Vec<u8>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Seconds,
    Millis,
    UnixSeconds,
    UnixMillis,
}

impl SetOptions {
    /// `None` where the server says `syntax error`.
    fn parse(words: &[Vec<u8>], dialect: Dialect) -> Option<Self> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.to_ascii_uppercase().as_slice() {
                b"NX" if !options.xx && !options.compares() => options.nx = true,
                b"XX" if !options.nx && !options.compares() => options.xx = true,
                b"GET" => options.get = true,
                b"KEEPTTL" if options.expiry.is_none() => options.keep_ttl = true,
                b"EX" => options.expire(Unit::Seconds, words.next()?)?,
                b"PX" => options.expire(Unit::Millis, words.next()?)?,
                b"EXAT" => options.expire(Unit::UnixSeconds, words.next()?)?,
                b"PXAT" => options.expire(Unit::UnixMillis, words.next()?)?,
                b"IFEQ" if dialect.has_set_ifeq() && !options.nx && !options.xx => {
                    if options.compares() && dialect.is_valkey() {
                        return None;
                    }
                    options.if_equal = Some(words.next()?.clone());
                }
                b"IFNE" if dialect.has_delex() && !options.nx && !options.xx => {
                    options.if_not_equal = Some(words.next()?.clone());
                }
                _ => return None,
            }
        }
        Some(options)
    }

    const fn compares(&self) -> bool {
        self.if_equal.is_some() || self.if_not_equal.is_some()
    }

    fn expire(&mut self, unit: Unit, value: &[u8]) -> Option<()> {
        if self.keep_ttl || self.expiry.as_ref().is_some_and(|(earlier, _)| *earlier != unit) {
            return None;
        }
        self.expiry = Some((unit, value.to_vec()));
        Some(())
    }

    /// The absolute expiry in server milliseconds.
    fn expires_at(&self, now_ms: i64) -> Result<Option<i64>, Reply> {
        let Some((unit, value)) = &self.expiry else { return Ok(None) };
        let number = parse_integer(value).ok_or_else(Reply::not_an_integer)?;
        let millis = match unit {
            Unit::Seconds | Unit::UnixSeconds => number.checked_mul(1_000),
            Unit::Millis | Unit::UnixMillis => Some(number),
        };
        let at = millis.filter(|millis| *millis > 0).and_then(|millis| match unit {
            Unit::Seconds | Unit::Millis => millis.checked_add(now_ms),
            Unit::UnixSeconds | Unit::UnixMillis => Some(millis),
        });
        at.map(Some).ok_or_else(|| Reply::invalid_expire("set"))
    }
}

pub(in super::super) fn set(call: &mut Call<'_>) -> Reply {
    try_set(call).unwrap_or_else(|error| error)
}

fn try_set(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let key = call.arg(1);
    let options = SetOptions::parse(call.args_from(3), call.core.dialect).ok_or_else(Reply::syntax_error)?;
    let expires_at = options.expires_at(call.now_ms)?;
    // Only GET and the comparisons look at the type of what is there.
    let held = if options.get || options.compares() { call.text(key)? } else { None };
    let found = call.holds_key(key);
    let allowed = (!options.nx || !found)
        && (!options.xx || found)
        && options.if_equal.as_ref().is_none_or(|wanted| held.as_ref() == Some(wanted))
        && options.if_not_equal.as_ref().is_none_or(|unwanted| held.as_ref() != Some(unwanted));
    let previous = if options.get { held.map_or(Reply::Null, Reply::Bulk) } else { Reply::Null };
    if !allowed {
        return Ok(previous);
    }
    let expires_at = if options.keep_ttl { call.expiry(key) } else { expires_at };
    let value = call.arg(2).to_vec();
    call.core.store.set(call.session.database, key, Value::Text(value), expires_at);
    // An expiry in the past leaves nothing behind.
    call.holds_key(key);
    Ok(if options.get { previous } else { Reply::OK })
}

pub(in super::super) fn get(call: &mut Call<'_>) -> Reply {
    let key = call.arg(1);
    match call.text(key) {
        Ok(text) => text.map_or(Reply::Null, Reply::Bulk),
        Err(error) => error,
    }
}

pub(in super::super) fn getrange(call: &mut Call<'_>) -> Reply {
    let (Some(start), Some(end)) = (parse_integer(call.arg(2)), parse_integer(call.arg(3))) else {
        return Reply::not_an_integer();
    };
    let key = call.arg(1);
    let text = match call.text(key) {
        Ok(text) => text.unwrap_or_default(),
        Err(error) => return error,
    };
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    // Negative positions count from the end; −1 is the last byte.
    let position = |at: i64| if at < 0 { length.saturating_add(at).max(0) } else { at };
    if start < 0 && end < 0 && start > end {
        return Reply::bulk(Vec::new());
    }
    let range =
        usize::try_from(position(start)).ok().zip(usize::try_from(position(end).min(length - 1)).ok());
    let part = range.filter(|(start, end)| start <= end).and_then(|(start, end)| text.get(start..=end));
    Reply::bulk(part.unwrap_or_default())
}

pub(in super::super) fn del(call: &mut Call<'_>) -> Reply {
    let keys = call.args_from(1);
    count(keys.iter().filter(|key| call.remove(key)).count())
}

pub(in super::super) fn exists(call: &mut Call<'_>) -> Reply {
    let keys = call.args_from(1);
    count(keys.iter().filter(|key| call.holds_key(key)).count())
}

pub(in super::super) fn type_of(call: &mut Call<'_>) -> Reply {
    let key = call.arg(1);
    let entry = call.core.store.get(call.session.database, key, call.now_ms);
    Reply::Simple(entry.map_or("none", |entry| entry.value.type_name()))
}

pub(in super::super) fn pttl(call: &mut Call<'_>) -> Reply {
    let key = call.arg(1);
    let now_ms = call.now_ms;
    Reply::Integer(match call.core.store.get(call.session.database, key, now_ms) {
        None => -2,
        Some(entry) => entry.expires_at.map_or(-1, |at| at.saturating_sub(now_ms).max(0)),
    })
}

pub(in super::super) fn pexpire(call: &mut Call<'_>) -> Reply {
    try_pexpire(call).unwrap_or_else(|error| error)
}

fn try_pexpire(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let key = call.arg(1);
    let (mut nx, mut xx, mut gt, mut lt) = (false, false, false, false);
    for word in call.args_from(3) {
        match word.to_ascii_uppercase().as_slice() {
            b"NX" => nx = true,
            b"XX" => xx = true,
            b"GT" => gt = true,
            b"LT" => lt = true,
            _ => {
                return Err(Reply::error(format!(
                    "ERR Unsupported option {}",
                    String::from_utf8_lossy(word)
                )));
            }
        }
    }
    if nx && (xx || gt || lt) {
        return Err(Reply::error("ERR NX and XX, GT or LT options at the same time are not compatible"));
    }
    if gt && lt {
        return Err(Reply::error("ERR GT and LT options at the same time are not compatible"));
    }
    let millis = parse_integer(call.arg(2)).ok_or_else(Reply::not_an_integer)?;
    let at = millis.checked_add(call.now_ms).ok_or_else(|| Reply::invalid_expire("pexpire"))?;
    if !call.holds_key(key) {
        return Ok(Reply::ZERO);
    }
    let current = call.expiry(key);
    // No expiry counts as the longest one.
    let refused = (nx && current.is_some())
        || (xx && current.is_none())
        || (gt && current.is_none_or(|current| at <= current))
        || (lt && current.is_some_and(|current| at >= current));
    if refused {
        return Ok(Reply::ZERO);
    }
    if at <= call.now_ms {
        call.remove(key);
    } else {
        call.core.store.set_expiry(call.session.database, key, Some(at));
    }
    Ok(Reply::ONE)
}

pub(in super::super) fn persist(call: &mut Call<'_>) -> Reply {
    let key = call.arg(1);
    if call.expiry(key).is_none() {
        return Reply::ZERO;
    }
    call.core.store.set_expiry(call.session.database, key, None);
    Reply::ONE
}

pub(in super::super) fn incr(call: &mut Call<'_>) -> Reply {
    let key = call.arg(1);
    let number = match call.text(key) {
        Ok(None) => 0,
        Ok(Some(text)) => match parse_integer(&text) {
            Some(number) => number,
            None => return Reply::not_an_integer(),
        },
        Err(error) => return error,
    };
    let Some(next) = number.checked_add(1) else {
        return Reply::error("ERR increment or decrement would overflow");
    };
    let expires_at = call.expiry(key);
    let value = Value::Text(format!("{next}").into_bytes());
    call.core.store.set(call.session.database, key, value, expires_at);
    Reply::Integer(next)
}

pub(in super::super) fn delex(call: &mut Call<'_>) -> Reply {
    let key = call.arg(1);
    if call.args.len() == 2 {
        return count(usize::from(call.remove(key)));
    }
    if call.args.len() != 4 {
        return Reply::wrong_arity("delex");
    }
    let on_equal = match call.arg(2).to_ascii_uppercase().as_slice() {
        b"IFEQ" => true,
        b"IFNE" => false,
        b"IFDEQ" | b"IFDNE" => return Reply::error("ERR simulated node: digests are not simulated"),
        _ => return Reply::error("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"),
    };
    let Ok(held) = call.text(key) else {
        return Reply::error("ERR Key should be of string type if conditions are specified");
    };
    let deletes = held.is_some_and(|held| (held == call.arg(3)) == on_equal);
    count(usize::from(deletes && call.remove(key)))
}

pub(in super::super) fn delifeq(call: &mut Call<'_>) -> Reply {
    let key = call.arg(1);
    match call.text(key) {
        Ok(held) => {
            let deletes = held.is_some_and(|held| held == call.arg(2));
            count(usize::from(deletes && call.remove(key)))
        }
        Err(error) => error,
    }
}

pub(in super::super) fn flushall(call: &mut Call<'_>) -> Reply {
    let option = call.arg(1);
    let known = option.eq_ignore_ascii_case(b"sync") || option.eq_ignore_ascii_case(b"async");
    if call.args.len() > 2 || (call.args.len() == 2 && !known) {
        return Reply::syntax_error();
    }
    call.core.store.clear();
    Reply::OK
}

fn count(number: usize) -> Reply {
    Reply::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}
