//! The keyspace: sixteen databases, expiry by the server's own clock.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// How many databases there are.
pub(super) const DATABASES: usize = 16;

/// What a key holds. Lists are here only because a lock client must cope with keys that are none of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Text(Vec<u8>),
    List(Vec<Vec<u8>>),
}

impl Value {
    pub(super) fn text(&self) -> Option<&[u8]> {
        match self {
            Self::Text(bytes) => Some(bytes),
            Self::List(_) => None,
        }
    }

    pub(super) const fn type_name(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::List(_) => "list",
        }
    }
}

/// A key's value and the last server millisecond at which it is still there.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) value: Value,
    pub(super) expires_at: Option<i64>,
}

/// Something that client tracking has to hear of, in the order in which it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    /// The running session read the key and wants to be told of its next change.
    Read(Vec<u8>),
    Changed(Vec<u8>),
    Flushed,
}

#[derive(Debug, Default)]
pub(super) struct Store {
    databases: [BTreeMap<Vec<u8>, Entry>; DATABASES],
    touches: Vec<Touch>,
    /// Whether any client ever asked to be told of changes; nothing is noted before.
    is_watched: bool,
}

impl Store {
    /// The key's entry, if it is there at `now_ms`. One that has run out is removed on the way.
    pub(super) fn get(&mut self, database: usize, key: &[u8], now_ms: i64) -> Option<&Entry> {
        self.expire(database, key, now_ms);
        self.databases.get(database)?.get(key)
    }

    /// As [`get`](Self::get), without removing anything.
    pub(super) fn peek(&self, database: usize, key: &[u8], now_ms: i64) -> Option<&Entry> {
        self.databases.get(database)?.get(key).filter(|entry| !is_past(entry.expires_at, now_ms))
    }

    pub(super) fn set(&mut self, database: usize, key: &[u8], value: Value, expires_at: Option<i64>) {
        if let Some(entries) = self.databases.get_mut(database) {
            entries.insert(key.to_vec(), Entry { value, expires_at });
            self.changed(key);
        }
    }

    /// Gives the key another expiry; whether it was there.
    pub(super) fn set_expiry(&mut self, database: usize, key: &[u8], expires_at: Option<i64>) -> bool {
        let Some(entry) = self.databases.get_mut(database).and_then(|entries| entries.get_mut(key)) else {
            return false;
        };
        entry.expires_at = expires_at;
        self.changed(key);
        true
    }

    pub(super) fn remove(&mut self, database: usize, key: &[u8]) -> bool {
        let removed = self.databases.get_mut(database).and_then(|entries| entries.remove(key)).is_some();
        if removed {
            self.changed(key);
        }
        removed
    }

    pub(super) fn clear(&mut self) {
        self.databases = Default::default();
        if self.is_watched {
            self.touches.push(Touch::Flushed);
        }
    }

    /// Removes everything that has run out, as the active expiry cycle does.
    pub(super) fn expire_all(&mut self, now_ms: i64) {
        for entries in &mut self.databases {
            let (touches, is_watched) = (&mut self.touches, self.is_watched);
            entries.retain(|key, entry| {
                let past = is_past(entry.expires_at, now_ms);
                if past && is_watched {
                    touches.push(Touch::Changed(key.clone()));
                }
                !past
            });
        }
    }

    /// When the first of `keys` runs out, over all databases.
    pub(super) fn first_expiry<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) -> Option<i64> {
        keys.flat_map(|key| self.databases.iter().filter_map(|entries| entries.get(key)?.expires_at)).min()
    }

    /// As [`first_expiry`](Self::first_expiry), for all keys that `wanted` names.
    pub(super) fn first_expiry_where(&self, wanted: impl Fn(&[u8]) -> bool) -> Option<i64> {
        let entries = self.databases.iter().flatten();
        entries.filter(|(key, _)| wanted(key)).filter_map(|(_, entry)| entry.expires_at).min()
    }

    /// The keys that are there at `now_ms`, in order.
    pub(super) fn keys(&self, database: usize, now_ms: i64) -> Vec<Vec<u8>> {
        let entries = self.databases.get(database).into_iter().flatten();
        entries.filter(|(_, entry)| !is_past(entry.expires_at, now_ms)).map(|(key, _)| key.clone()).collect()
    }

    pub(super) fn note_read(&mut self, key: &[u8]) {
        self.touches.push(Touch::Read(key.to_vec()));
    }

    fn changed(&mut self, key: &[u8]) {
        if self.is_watched {
            self.touches.push(Touch::Changed(key.to_vec()));
        }
    }

    /// A client wants to be told of changes.
    pub(super) const fn watch(&mut self) {
        self.is_watched = true;
    }

    pub(super) const fn is_watched(&self) -> bool {
        self.is_watched
    }

    /// Whether a key of the database never runs out, those that end in `but` aside.
    pub(super) fn has_lasting(&self, database: usize, but: &[u8]) -> bool {
        let mut entries = self.databases.get(database).into_iter().flatten();
        entries.any(|(key, entry)| entry.expires_at.is_none() && !key.ends_with(but))
    }

    pub(super) fn take_touches(&mut self) -> Vec<Touch> {
        core::mem::take(&mut self.touches)
    }

    fn expire(&mut self, database: usize, key: &[u8], now_ms: i64) {
        let expires_at = self.databases.get(database).and_then(|entries| entries.get(key)?.expires_at);
        if is_past(expires_at, now_ms) {
            self.remove(database, key);
        }
    }
}

/// A key set at server millisecond t for p ms is held while now ≤ t + p, and free from t + p + 1 on.
const fn is_past(expires_at: Option<i64>, now_ms: i64) -> bool {
    match expires_at {
        Some(at) => now_ms > at,
        None => false,
    }
}
