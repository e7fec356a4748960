//! Waiters are told by the nodes when the key they wait for changes: client tracking over RESP3.
//!
//! Nothing is asked of a node before somebody waits. Then, on the connection that stands, `CLIENT TRACKING ON OPTIN` once, and
//! `CLIENT CACHING YES` directly followed by `PTTL key` for every registration.

use super::Client;
use super::queue::Line;
use crate::error::{Holder, NodeFault, NodeOutcome, NodeReport};
use crate::ids::NodeId;
use crate::machine::{Acquire, Claim, Look, Quorum, Reach, Reading, RoundLoss, Vote, Watch};
use crate::node::{Outgoing, Tag, Tracking};
use crate::time::Instant;
use crate::wire::command;
use crate::wire::reply::Reply;
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

impl Client {
    /// The one that contends has lost a round, and makes the next one at `retry_at` if it is not told more.
    pub(super) fn watch_line(&mut self, key: &Bytes, loss: RoundLoss, lock: u64, retry_at: Instant) {
        let is_held = match loss {
            RoundLoss::Contended | RoundLoss::Mixed => true,
            RoundLoss::NoQuorum | RoundLoss::TooSlow => false,
        };
        let Some(line) = self.lines.get_mut(key) else { return };
        if is_held && self.config.wake_ups() && line.watch.is_none() {
            let quorum = Quorum::planted(self.config.node_count(), self.config.quorum());
            let (min, max) = self.config.retry_delay();
            let min = min.max(Acquire::LEAST_DELAY);
            self.last_watch += 1;
            let watch = Box::new(Watch::new(quorum, (min, max.max(min))));
            line.watch = Some((self.last_watch, watch));
            self.watched.insert(self.last_watch, key.clone());
        }
        let Some((_, watch)) = &mut line.watch else { return };
        watch.lost(retry_at);
        if is_held {
            let asked =
                self.claims.get(lock).map(|entry| may_be_told(&entry.claim, self.config.node_count()));
            for node in asked.unwrap_or_default() {
                self.ask_node(key, node);
            }
        }
        self.follow_watch(key);
    }

    /// Reads the key on the node, and registers for its next change.
    fn ask_node(&mut self, key: &Bytes, id: NodeId) {
        let (now, random) = (self.now, self.rng.next_u32());
        let limit = self.config.limits().in_flight_per_node;
        let front = self.lines.get(key).and_then(|line| line.queue.front());
        let patience = front.map_or(Duration::ZERO, |front| self.patience_of(front));
        let Some((number, watch)) = self.lines.get_mut(key).and_then(|line| line.watch.as_mut()) else {
            return;
        };
        let Some(node) = self.nodes.get_mut(id.index()) else { return };
        if node.reach() != Reach::Ready || !node.can_track() || node.pipeline() >= limit {
            return watch.broken(id, random, now);
        }
        if node.outbox.is_empty() {
            self.queue.outbox(node.connection());
        }
        if node.tracking == Tracking::Unasked {
            node.tracking = Tracking::Asked;
            node.outbox.push_back(Outgoing { tag: Tag::Tracking, bytes: command::tracking(), patience });
        }
        node.outbox.push_back(Outgoing { tag: Tag::Caching, bytes: command::caching(), patience });
        let tag = Tag::Reading { watch: *number };
        node.outbox.push_back(Outgoing { tag, bytes: command::pttl(key), patience });
        watch.asked(id, random, now);
    }

    /// The one that contends sleeps until its watch is due.
    fn follow_watch(&mut self, key: &Bytes) {
        let Some(line) = self.lines.get_mut(key) else { return };
        let Line { queue, watch: Some((_, watch)), .. } = &mut **line else { return };
        let due = watch.due().unwrap_or(Instant::MAX);
        let Some(front) = queue.front().filter(|front| self.is_sleeping(*front)) else { return };
        if let Some(line) = self.lines.get_mut(key) {
            line.queue.put_off(due);
        }
        self.sleep_until(front, due);
    }

    /// The sleep of an acquire is over: its watch is due, or its wait is over.
    pub(super) fn wake(&mut self, operation: u64) {
        let (now, random) = (self.now, self.rng.next_u32());
        let Some((key, wait_end)) = self.line_of(operation) else { return self.start_attempt(operation) };
        let watch = self.lines.get_mut(&key).and_then(|line| line.watch.as_mut());
        let Some((_, watch)) = watch.filter(|_| now < wait_end) else { return self.start_attempt(operation) };
        match watch.timeout(random, now) {
            Look::Attempt => return self.start_attempt(operation),
            Look::Read(nodes) => nodes.into_iter().for_each(|node| self.ask_node(&key, node)),
            Look::Wait => {}
        }
        self.follow_watch(&key);
    }

    /// Tells the watch over the key something.
    fn tell_watch(&mut self, key: &Bytes, tell: impl FnOnce(&mut Watch, u32, Instant)) {
        let (now, random) = (self.now, self.rng.next_u32());
        let Some((_, watch)) = self.lines.get_mut(key).and_then(|line| line.watch.as_mut()) else { return };
        tell(watch, random, now);
        let is_due = watch.due().is_some_and(|due| due <= now);
        match self.lines.get(key).and_then(|line| line.queue.front()) {
            // What has just come true is not left to a timer, which some systems round up to milliseconds.
            Some(front) if is_due && self.is_sleeping(front) => self.wake(front),
            Some(_) | None => self.follow_watch(key),
        }
    }

    // ---- what nodes say ----

    /// A push: of those there are, the news that keys were changed (`null` for all keys) is the one that was asked for.
    pub(super) fn on_push(&mut self, index: usize, push: &[Reply]) {
        let Some(id) = self.nodes.get(index).map(|node| node.id) else { return };
        let [kind, keys] = push else { return };
        if kind.as_bytes() != Some(b"invalidate") {
            return;
        }
        let changed: Vec<Bytes> = match keys {
            Reply::Null => self.watched.values().cloned().collect(),
            Reply::Array(keys) => {
                let key = |key: &Reply| Some(self.lines.get_key_value(key.as_bytes()?)?.0.clone());
                keys.iter().filter_map(key).collect()
            }
            Reply::Ok
            | Reply::Simple(_)
            | Reply::Error(_)
            | Reply::Integer(_)
            | Reply::Bulk(_)
            | Reply::Map(_)
            | Reply::Push(_)
            | Reply::Other(_) => return,
        };
        for key in changed {
            self.tell_watch(&key, |watch, random, now| watch.pushed(id, random, now));
        }
    }

    /// The answer to `CLIENT TRACKING` or `CLIENT CACHING`. A node that refuses it tells nothing; its waiters come back by
    /// themselves.
    pub(super) fn on_tracking_reply(&mut self, index: usize, is_caching: bool, reply: &Reply) {
        let Some(node) = self.nodes.get_mut(index) else { return };
        let is_ok = match reply {
            Reply::Ok => true,
            Reply::Error(_) => false,
            Reply::Simple(_)
            | Reply::Integer(_)
            | Reply::Bulk(_)
            | Reply::Null
            | Reply::Array(_)
            | Reply::Map(_)
            | Reply::Push(_)
            | Reply::Other(_) => {
                let asked = if is_caching { "CLIENT CACHING" } else { "CLIENT TRACKING" };
                let fault = NodeFault::Protocol(format!("answered {asked} with {reply}"));
                return self.lose_connection(index, fault, true);
            }
        };
        if !is_ok {
            node.tracking = Tracking::Refused;
        }
    }

    /// How long the key is there: a number, or an error.
    pub(super) fn on_reading(&mut self, index: usize, number: u64, reply: &Reply) {
        let Some(node) = self.nodes.get(index) else { return };
        let (id, is_told) = (node.id, node.tracking != Tracking::Refused);
        let reading = match reply.as_integer().filter(|_| is_told) {
            Some(-2) => Reading::Gone,
            Some(left) => Reading::Held(u64::try_from(left).ok().map(Duration::from_millis)),
            None => Reading::Refused,
        };
        if let Some(key) = self.watched.get(&number).cloned() {
            self.tell_watch(&key, |watch, random, now| watch.read(id, reading, random, now));
        }
    }

    /// The node's connection is gone, and all that was registered there.
    pub(super) fn watches_broken(&mut self, id: NodeId) {
        let keys: Vec<Bytes> = self.watched.values().cloned().collect();
        for key in keys {
            self.tell_watch(&key, |watch, random, now| watch.broken(id, random, now));
        }
    }

    /// The node can be asked anew: for all that is waited for.
    pub(super) fn watches_ready(&mut self, id: NodeId) {
        let keys: Vec<Bytes> = self.watched.values().cloned().collect();
        for key in keys {
            let front = self.lines.get(&key).and_then(|line| line.queue.front());
            if front.is_some_and(|front| self.is_sleeping(front)) {
                self.ask_node(&key, id);
                self.follow_watch(&key);
            }
        }
    }

    /// Fills in for how long the key will be there, where its watch knows it.
    pub(super) fn tell_holders(&self, key: &Bytes, reports: &mut [NodeReport]) {
        let Some((_, watch)) = self.lines.get(key).and_then(|line| line.watch.as_ref()) else { return };
        for report in reports {
            if report.outcome == NodeOutcome::Refused && report.holder.is_none() {
                report.holder = watch
                    .held_until(report.node)
                    .map(|until| Holder::Lock { remaining: until.saturating_duration_since(self.now) });
            }
        }
    }
}

/// The nodes that can tell when what refused an attempt is gone: not those that failed, whose keys are not the reason.
fn may_be_told(claim: &Claim, nodes: u8) -> Vec<NodeId> {
    let is_asked = |node: &NodeId| match claim.vote(*node) {
        Some(Vote::Granted | Vote::Refused) | None => true,
        Some(Vote::Failed | Vote::Unsent | Vote::Ambiguous) => false,
    };
    (0..nodes).map(NodeId::new).filter(is_asked).collect()
}
