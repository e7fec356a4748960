//! The holder's watch: the nodes tell when the keys of a held lock change, which then are read.
//!
//! Nothing is asked of a node for a lock that was not acquired with [`watch_loss`](crate::AcquireRequest::watch_loss). For one that
//! was, each node that has confirmed its token gets `CLIENT CACHING YES` directly followed by `GETRANGE key`, and again after
//! every push: of so much of the value only as tells whether it is ours, since a foreign one may be of any size.

use super::Client;
use crate::error::NodeFault;
use crate::ids::{LockId, NodeId};
use crate::machine::{LossWatch, Reach};
use crate::node::{Outgoing, Tag, Tracking};
use crate::wire::command;
use crate::wire::reply::Reply;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::ToString;
use alloc::vec::Vec;
use bytes::Bytes;

/// The held locks that are watched.
#[derive(Debug, Default)]
pub(super) struct LossWatches {
    locks: BTreeMap<u64, LossWatch>,
    /// Which of them have a key.
    by_key: BTreeSet<(Bytes, u64)>,
}

impl LossWatches {
    pub(super) fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }

    fn with_key(&self, key: &Bytes) -> Vec<u64> {
        self.by_key.range((key.clone(), 0)..=(key.clone(), u64::MAX)).map(|(_, lock)| *lock).collect()
    }
}

impl Client {
    /// The lock was granted: its nodes are asked from now on, each as soon as it has confirmed.
    pub(super) fn watch_loss(&mut self, lock: u64) {
        let Some(entry) = self.claims.get(lock).filter(|_| self.config.wake_ups()) else { return };
        let keys = u8::try_from(entry.keys.len()).unwrap_or(u8::MAX);
        let watch = LossWatch::new(self.config.node_count(), keys);
        self.loss_watches.by_key.extend(entry.keys.iter().map(|key| (key.clone(), lock)));
        self.loss_watches.locks.insert(lock, watch);
    }

    /// The lock is not held any more. What is registered ends with the keys.
    pub(super) fn end_loss_watch(&mut self, lock: u64) {
        if self.loss_watches.locks.remove(&lock).is_some()
            && let Some(entry) = self.claims.get(lock)
        {
            for key in &*entry.keys {
                self.loss_watches.by_key.remove(&(key.clone(), lock));
            }
        }
    }

    /// Asks the nodes that have confirmed the token and are not asked yet: after the grant, an extension, a repair, a push.
    pub(super) fn follow_loss_watch(&mut self, lock: u64) {
        let Some(watch) = self.loss_watches.locks.get_mut(&lock) else { return };
        let Some(entry) = self.claims.get(lock).filter(|entry| entry.claim.is_held()) else { return };
        let limit = self.config.limits().in_flight_per_node;
        let patience = entry.claim.terms().node_timeout;
        // A byte more than ours tells a longer one that begins like it.
        let last = u32::try_from(entry.token.value(self.config.client_name()).len()).unwrap_or(u32::MAX);
        for node in &mut self.nodes {
            let is_known = entry.claim.support(node.id).is_some() && !entry.claim.is_gone(node.id);
            let is_ready = node.reach() == Reach::Ready && node.can_track() && node.pipeline() < limit;
            if !(is_known && is_ready && watch.is_unasked(node.id)) {
                continue;
            }
            if node.outbox.is_empty() {
                self.queue.outbox(node.connection());
            }
            if node.tracking == Tracking::Unasked {
                node.tracking = Tracking::Asked;
                node.outbox.push_back(Outgoing { tag: Tag::Tracking, bytes: command::tracking(), patience });
            }
            for key in &*entry.keys {
                node.outbox.push_back(Outgoing { tag: Tag::Caching, bytes: command::caching(), patience });
                let (tag, bytes) = (Tag::Own { lock: LockId(lock) }, command::get_range(key, 0, last));
                node.outbox.push_back(Outgoing { tag, bytes, patience });
            }
            watch.asked(node.id);
        }
    }

    /// Keys have changed on the node; `None` is all of them.
    pub(super) fn loss_watches_pushed(&mut self, id: NodeId, keys: Option<&[Reply]>) {
        if self.loss_watches.is_empty() {
            return;
        }
        let locks: Vec<u64> = match keys {
            None => self.loss_watches.locks.keys().copied().collect(),
            Some(keys) => {
                let key = |key: &Reply| Some(Bytes::copy_from_slice(key.as_bytes()?));
                keys.iter().filter_map(key).flat_map(|key| self.loss_watches.with_key(&key)).collect()
            }
        };
        for lock in locks {
            if let Some(watch) = self.loss_watches.locks.get_mut(&lock) {
                watch.pushed(id);
            }
            self.follow_loss_watch(lock);
        }
    }

    /// What a key of the lock has for a value: the beginning of it, or nothing.
    pub(super) fn on_own_reply(&mut self, index: usize, lock: LockId, reply: &Reply) {
        let now = self.now;
        let Some(node) = self.nodes.get(index) else { return };
        let (id, is_told) = (node.id, node.tracking != Tracking::Refused);
        let is_ours = match reply {
            Reply::Bulk(value) => {
                let name = self.config.client_name();
                self.claims.get(lock.0).is_none_or(|entry| entry.token.value(name) == **value)
            }
            Reply::Error(_) => true,
            Reply::Ok
            | Reply::Null
            | Reply::Simple(_)
            | Reply::Integer(_)
            | Reply::Array(_)
            | Reply::Map(_)
            | Reply::Push(_)
            | Reply::Other(_) => {
                // Not shown: it may have the token in it (R26).
                let fault = NodeFault::Protocol("answered GETRANGE with no string".to_string());
                return self.lose_connection(index, fault, true);
            }
        };
        if let Some(watch) = self.loss_watches.locks.get_mut(&lock.0) {
            if is_told && !matches!(reply, Reply::Error(_)) {
                watch.read(id);
            } else {
                watch.refused(id);
            }
            if is_ours {
                self.follow_loss_watch(lock.0);
            } else {
                self.drive(lock.0, |claim, effects| claim.read_without_token(id, now, effects));
            }
        }
    }

    /// The node's connection is gone, and all that was registered there.
    pub(super) fn loss_watches_broken(&mut self, id: NodeId) {
        self.loss_watches.locks.values_mut().for_each(|watch| watch.broken(id));
    }
}
