//! Client-side caching: who is told when a key changes.
//!
//! The table goes by the key's name alone, whatever the database: a change to the same name in another one is told
//! too. A registration ends with the first push.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// What `CLIENT TRACKING ON` asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Every key read.
    All,
    /// Keys read right after `CLIENT CACHING YES`.
    OptIn,
    /// Keys read, except right after `CLIENT CACHING NO`.
    OptOut,
    /// Every change to a key with one of these prefixes, read or not; no prefix: every change.
    Broadcast(Vec<Vec<u8>>),
}

#[derive(Clone, Debug)]
pub(super) struct Tracking {
    pub(super) mode: Mode,
    pub(super) no_loop: bool,
}

impl Tracking {
    /// Whether a key that was just read is to be remembered.
    pub(super) fn remembers(&self, caching: Option<bool>) -> bool {
        match self.mode {
            Mode::All => true,
            Mode::OptIn => caching == Some(true),
            Mode::OptOut => caching != Some(false),
            Mode::Broadcast(_) => false,
        }
    }

    pub(super) const fn is_broadcast(&self) -> bool {
        matches!(self.mode, Mode::Broadcast(_))
    }

    pub(super) fn broadcasts(&self, key: &[u8]) -> bool {
        match &self.mode {
            Mode::Broadcast(prefixes) => prefixes.is_empty() || prefixes.iter().any(|p| key.starts_with(p)),
            Mode::All | Mode::OptIn | Mode::OptOut => false,
        }
    }
}

/// Which sessions wait for a change of which key.
#[derive(Debug, Default)]
pub(super) struct Table(BTreeMap<Vec<u8>, BTreeSet<u64>>);

impl Table {
    pub(super) fn register(&mut self, key: Vec<u8>, session: u64) {
        self.0.entry(key).or_default().insert(session);
    }

    /// Ends the registrations for `key`; whose they were.
    pub(super) fn take(&mut self, key: &[u8]) -> BTreeSet<u64> {
        self.0.remove(key).unwrap_or_default()
    }

    pub(super) fn forget(&mut self, session: u64) {
        self.0.retain(|_, sessions| {
            sessions.remove(&session);
            !sessions.is_empty()
        });
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.0.keys().map(Vec::as_slice)
    }
}
