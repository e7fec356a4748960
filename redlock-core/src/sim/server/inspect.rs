//! Looking into a node, and changing its data behind its clients' backs.

use crate::wire::command::COUNTER_SUFFIX;
use alloc::vec::Vec;
use core::time::Duration;

use super::store::Value;
use super::{LogEntry, Server, log};
use crate::Instant;

/// # Inspection
///
/// All of this looks at database 0 and leaves no trace, except for what it is there to change.
impl Server {
    /// The text at `key`; `None` if the key is free or holds something else.
    #[must_use]
    pub fn value(&self, key: &[u8], now: Instant) -> Option<Vec<u8>> {
        let entry = self.core.store.peek(0, key, self.clock.millis(now))?;
        entry.value.text().map(<[u8]>::to_vec)
    }

    /// What is left of the key's ttl, in milliseconds by the server's clock; `None` if the key is free or does not run
    /// out. Zero still means held.
    #[must_use]
    pub fn pttl(&self, key: &[u8], now: Instant) -> Option<i64> {
        let now_ms = self.clock.millis(now);
        Some(self.core.store.peek(0, key, now_ms)?.expires_at?.saturating_sub(now_ms))
    }

    /// The keys that are held, in order.
    #[must_use]
    pub fn keys(&self, now: Instant) -> Vec<Vec<u8>> {
        self.core.store.keys(0, self.clock.millis(now))
    }

    /// Sets a key as another client would.
    pub fn put(&mut self, key: &[u8], value: &[u8], ttl: Option<Duration>, now: Instant) {
        self.put_value(key, Value::Text(value.to_vec()), ttl, now);
    }

    /// Puts a list where a lock client expects a text.
    pub fn put_list(&mut self, key: &[u8], items: &[&[u8]], ttl: Option<Duration>, now: Instant) {
        let items = items.iter().map(|item| item.to_vec()).collect();
        self.put_value(key, Value::List(items), ttl, now);
    }

    /// Removes a key, as another client or an eviction would; whether it was there.
    pub fn remove(&mut self, key: &[u8], now: Instant) -> bool {
        let held = self.core.store.get(0, key, self.clock.millis(now)).is_some();
        self.core.store.remove(0, key);
        self.tell_touches(None);
        self.flush_broadcasts();
        held
    }

    /// The run id that `INFO` says: 40 hex digits, new with every start.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.core.run_id
    }

    /// The requests that were executed or refused, oldest first, with what was answered. Of a long run only the newest
    /// are kept, at least [`LOG_LIMIT`](Self::LOG_LIMIT). Passwords are replaced.
    #[must_use]
    pub fn log(&self) -> &[LogEntry] {
        self.log.entries()
    }

    /// So many requests at least are in the [log](Self::log).
    pub const LOG_LIMIT: usize = log::LIMIT;

    /// Keeps no [log](Self::log) from now on, or one again: a search through many runs is faster without.
    pub const fn keep_log(&mut self, is_kept: bool) {
        self.log.keep(is_kept);
    }

    /// Whether there is a key that never runs out, which no lock client leaves behind; fence counters aside.
    #[must_use]
    pub fn has_key_without_expiry(&self) -> bool {
        self.core.store.has_lasting(0, COUNTER_SUFFIX)
    }

    fn put_value(&mut self, key: &[u8], value: Value, ttl: Option<Duration>, now: Instant) {
        let now_ms = self.clock.millis(now);
        let expires_at =
            ttl.map(|ttl| now_ms.saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)));
        self.core.store.set(0, key, value, expires_at);
        self.tell_touches(None);
        self.flush_broadcasts();
    }
}
