//! What a waiter knows of the key it waits for, node by node, and when it is worth another round.
//!
//! ```text
//!            asked            read: held                    push
//!   Unknown ───────▶ Asked ──────────────▶ Held ─────────────────────────▶ Changed
//!      ▲               │ ▲                  (its ttl over: counts as free)     │ │
//!      │               │ └───────────────────── read again ────────────────────┘ │
//!    broken            └─read: not there─▶ Free ──────────────push───────────────┘
//! ```
//!
//! A node is asked by a read that also registers for one push at the key's next change. The push ends the registration and
//! is no more than a hint: another change may have followed, which nobody tells. So whoever got one reads again, and
//! what is not there any more by then is told by that read. No wake-up is lost.
//!
//! As soon as a quorum is believed to be free a round is made: at once, as long as nobody else seems to wait. Once such a
//! round was lost there are others, who were told the same at the same time. From then on it stays back for a random part of
//! its *stagger*, reads a quorum again, and makes its round only where nobody was faster. The stagger doubles with
//! every round that is lost so, and whenever somebody was faster by a little; it shrinks with every owner that it sees
//! without that.

use super::quorum::Quorum;
use crate::ids::NodeId;
use crate::time::Instant;
use alloc::vec::Vec;
use core::time::Duration;

/// What is known of the key on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Known {
    /// Nothing, and nobody tells.
    Unknown,
    /// It is read just now; whether a push came since it was asked.
    Asked { pushed: bool },
    /// Held, until then if nobody extends it; `None` without an end.
    Held(Option<Instant>),
    /// Not there.
    Free,
    /// A push came for it, which ended the registration; whether it counts as free until it is read again.
    Changed { free: bool },
    /// It has changed, and is left alone: a quorum of others tells. It is read again when that does not any more.
    Left,
}

/// What a read that registers has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reading {
    /// The key is not there.
    Gone,
    /// It is there, for so long if nobody extends it; `None` for ever.
    Held(Option<Duration>),
    /// It was not read, or its change will not be told.
    Refused,
}

/// What to do when a watch is due.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Look {
    /// Make a round.
    Attempt,
    /// Read the key again, and register, on these nodes.
    Read(Vec<NodeId>),
    /// Nothing yet.
    Wait,
}

/// A waiter's watch over a key, between its rounds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Watch {
    nodes: Vec<Known>,
    quorum: Quorum,
    /// The random delay of a retry that nobody tells anything (R9).
    delay: (Duration, Duration),
    /// How long it stays back at most when a quorum gets free, so that not all who were told come at once; zero while there
    /// is no sign of others.
    stagger: Duration,
    /// The round that was sent last was, since a quorum was believed to be free.
    believed: bool,
    /// It has stayed back, and reads again: where the key is still free it makes its round without another delay.
    stayed: bool,
    /// Since somebody was seen to have it, others were met on the way to it.
    met: bool,
    /// When a round is made, or the last look before it, since a quorum is believed to be free.
    attempt_at: Option<Instant>,
    /// When nodes that told of a change are read again though no quorum is free.
    read_at: Option<Instant>,
    /// When a round is made though nobody told anything: so few nodes tell that it might go unseen.
    retry_at: Option<Instant>,
}

impl Watch {
    /// The stagger after the first collision, and how long after a push its node is read again.
    pub const BASE_STAGGER: Duration = Duration::from_millis(1);
    /// A server's expiry has a resolution of 1 ms.
    const EXPIRY_RESOLUTION: Duration = Duration::from_millis(1);

    /// A watch over so many nodes; `delay` is the retry delay's range, not below a millisecond.
    #[must_use]
    pub fn new(quorum: Quorum, delay: (Duration, Duration)) -> Self {
        Self {
            nodes: (0..quorum.nodes()).map(|_| Known::Unknown).collect(),
            quorum,
            delay,
            stagger: Duration::ZERO,
            believed: false,
            stayed: false,
            met: false,
            attempt_at: None,
            read_at: None,
            retry_at: None,
        }
    }

    // ---- inputs; `random` is uniform over its range ----

    /// A round was lost; without news the next one comes at `retry_at`.
    pub fn lost(&mut self, retry_at: Instant) {
        if core::mem::take(&mut self.believed) {
            self.met_others();
        }
        self.nodes.fill(Known::Unknown);
        self.stayed = false;
        self.attempt_at = None;
        self.read_at = None;
        self.retry_at = Some(retry_at);
    }

    /// The node is asked: the read is queued.
    pub fn asked(&mut self, node: NodeId, random: u32, now: Instant) {
        self.set(node, Known::Asked { pushed: false });
        self.consider(random, now);
    }

    /// The node has answered the read.
    pub fn read(&mut self, node: NodeId, reading: Reading, random: u32, now: Instant) {
        let Some(Known::Asked { pushed }) = self.known(node) else { return };
        let known = match reading {
            Reading::Refused => Known::Unknown,
            // A push that came before the read was answered is of an earlier registration, or of the read's own doing.
            Reading::Gone if pushed => Known::Changed { free: true },
            Reading::Held(_) if pushed => Known::Changed { free: false },
            Reading::Gone => Known::Free,
            Reading::Held(left) => {
                let until = left.map(|left| now.saturating_add(left).saturating_add(Self::EXPIRY_RESOLUTION));
                Known::Held(until)
            }
        };
        let was_held = self.is_held();
        self.set(node, known);
        if !was_held && self.is_held() {
            // It has an owner (again).
            if !core::mem::take(&mut self.met) {
                self.stagger = self.stagger.saturating_mul(3) / 4;
                if self.stagger < Self::BASE_STAGGER / 2 {
                    self.stagger = Duration::ZERO;
                }
            }
            self.stayed = false;
        }
        self.consider(random, now);
    }

    /// The node has told that the key was changed: released, deleted, expired, evicted; or extended, or set.
    pub fn pushed(&mut self, node: NodeId, random: u32, now: Instant) {
        let known = match self.known(node) {
            Some(Known::Asked { .. }) => Known::Asked { pushed: true },
            Some(Known::Held(_)) => Known::Changed { free: true },
            Some(Known::Free) => {
                // Set by somebody who was told the same as we.
                if !self.met {
                    self.met_others();
                }
                Known::Changed { free: false }
            }
            Some(Known::Unknown | Known::Changed { .. } | Known::Left) | None => return,
        };
        self.set(node, known);
        self.consider(random, now);
    }

    /// The node's connection is gone, and what was registered with it.
    pub fn broken(&mut self, node: NodeId, random: u32, now: Instant) {
        self.set(node, Known::Unknown);
        self.consider(random, now);
    }

    /// Whatever was due at or before `now`. After [`Look::Attempt`] it knows nothing until that is [lost](Self::lost);
    /// the nodes of [`Look::Read`] are to be [asked](Self::asked).
    pub fn timeout(&mut self, random: u32, now: Instant) -> Look {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| now >= at);
        let is_free = self.is_believed_free(now);
        let attempts = is_free && is_due(self.attempt_at);
        // What it was told all who wait were told: after a collision, look again before the next round.
        let looks = attempts && !self.stagger.is_zero() && !self.stayed;
        let stale = if looks { self.stale(now) } else { Vec::new() };
        if is_due(self.retry_at) || (attempts && stale.is_empty()) {
            self.believed = is_free;
            return Look::Attempt;
        }
        if attempts {
            self.stayed = true;
            (self.attempt_at, self.read_at) = (None, None);
            return Look::Read(self.as_many_as_needed(stale, random));
        }
        if is_due(self.read_at) {
            self.read_at = None;
            if !self.stagger.is_zero() && self.is_told_by_a_quorum() {
                self.leave_changed();
                return Look::Wait;
            }
            let changed =
                |node: &NodeId| matches!(self.known(*node), Some(Known::Changed { .. } | Known::Left));
            let changed: Vec<NodeId> = self.node_ids().filter(changed).collect();
            if !changed.is_empty() {
                return Look::Read(changed);
            }
        }
        self.consider(random, now);
        Look::Wait
    }

    /// When [`timeout`](Self::timeout) is to be called next; `None` while only the nodes can tell something.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        // Once a round is to be made, the end of a ttl changes nothing.
        let bound = if self.attempt_at.is_some() { None } else { self.free_at() };
        [self.attempt_at, self.read_at, self.retry_at, bound].into_iter().flatten().min()
    }

    /// How long the key is there on the node, as far as it told.
    #[must_use]
    pub fn held_until(&self, node: NodeId) -> Option<Instant> {
        match self.known(node) {
            Some(Known::Held(until)) => until,
            Some(
                Known::Unknown | Known::Asked { .. } | Known::Free | Known::Changed { .. } | Known::Left,
            )
            | None => None,
        }
    }

    /// Whether so many nodes tell what happens that the retry delay does not run.
    #[must_use]
    pub const fn is_told(&self) -> bool {
        self.retry_at.is_none()
    }

    // ---- decisions ----

    /// Others were after it at the same time.
    fn met_others(&mut self) {
        let more = self.stagger.saturating_mul(2).max(Self::BASE_STAGGER);
        self.stagger = more.min(self.delay.0.max(Self::BASE_STAGGER));
        self.met = true;
    }

    fn consider(&mut self, random: u32, now: Instant) {
        // One that is read again within its stagger tells all the same.
        let armed = |known: &&Known| matches!(known, Known::Held(_) | Known::Free | Known::Changed { .. });
        let armed = self.nodes.iter().filter(armed).count();
        if armed >= usize::from(self.quorum.needed()) {
            self.retry_at = None;
        } else if self.retry_at.is_none() {
            let range = self.delay.1.saturating_sub(self.delay.0);
            self.retry_at = Some(now.saturating_add(self.delay.0).saturating_add(part(range, random)));
        }
        let is_told = self.is_told_by_a_quorum();
        let is_news = |known: &Known| match known {
            Known::Changed { .. } => true,
            // Those that tell are too few to be told of every quorum that gets free.
            Known::Left => !is_told,
            Known::Unknown | Known::Asked { .. } | Known::Held(_) | Known::Free => false,
        };
        if !self.nodes.iter().any(is_news) {
            self.read_at = None;
        } else if self.read_at.is_none() {
            let spread = Self::BASE_STAGGER.saturating_add(part(self.stagger, random));
            self.read_at = Some(now.saturating_add(spread));
        }
        if !self.is_believed_free(now) {
            self.attempt_at = None;
        } else if self.attempt_at.is_none() {
            let stays = if self.stayed { Duration::ZERO } else { part(self.stagger, random) };
            self.attempt_at = Some(now.saturating_add(stays));
        }
    }

    /// Whether so many nodes have it for somebody that no round can be won.
    fn is_held(&self) -> bool {
        let held = self.nodes.iter().filter(|known| matches!(known, Known::Held(_))).count();
        held >= usize::from(self.quorum.blocking())
    }

    /// Whether so many nodes have it, and tell of its end, that none goes unseen: any quorum that gets free has one of them.
    fn is_told_by_a_quorum(&self) -> bool {
        let tells = |known: &&Known| matches!(known, Known::Held(_));
        self.nodes.iter().filter(tells).count() >= usize::from(self.quorum.needed())
    }

    /// Of many who wait each saves the servers what it need not know.
    fn leave_changed(&mut self) {
        for known in &mut self.nodes {
            if matches!(known, Known::Changed { .. }) {
                *known = Known::Left;
            }
        }
    }

    /// Of these nodes those that together with what is known make a quorum; the others are left alone. Which ones is random:
    /// all who wait would ask the same.
    fn as_many_as_needed(&mut self, mut stale: Vec<NodeId>, random: u32) -> Vec<NodeId> {
        let known = self.nodes.iter().filter(|known| matches!(known, Known::Free)).count();
        let needed = usize::from(self.quorum.needed()).saturating_sub(known);
        let count = u32::try_from(stale.len()).unwrap_or(1).max(1);
        stale.rotate_left(usize::try_from(random % count).unwrap_or(0));
        for node in stale.split_off(needed.min(stale.len())) {
            self.set(node, Known::Left);
        }
        stale
    }

    /// The nodes of which it is known that something has changed, but not what is there now.
    fn stale(&self, now: Instant) -> Vec<NodeId> {
        let is_stale = |node: &NodeId| match self.known(*node) {
            Some(Known::Changed { .. }) => true,
            Some(Known::Held(Some(until))) => now >= until,
            Some(Known::Unknown | Known::Asked { .. } | Known::Held(None) | Known::Free | Known::Left)
            | None => false,
        };
        self.node_ids().filter(is_stale).collect()
    }

    fn is_believed_free(&self, now: Instant) -> bool {
        let is_free = |known: &&Known| match known {
            Known::Free | Known::Changed { free: true } => true,
            Known::Held(Some(until)) => now >= *until,
            Known::Unknown
            | Known::Asked { .. }
            | Known::Held(None)
            | Known::Changed { free: false }
            | Known::Left => false,
        };
        self.nodes.iter().filter(is_free).count() >= usize::from(self.quorum.needed())
    }

    /// When a quorum is free by the ends of the ttls that were read, the q-th smallest; quadratic in the nodes, which are few.
    fn free_at(&self) -> Option<Instant> {
        let needed = usize::from(self.quorum.needed());
        let free_at = |known: &Known| match known {
            Known::Free | Known::Changed { free: true } => Some(Instant::ZERO),
            Known::Held(until) => *until,
            Known::Unknown | Known::Asked { .. } | Known::Changed { free: false } | Known::Left => None,
        };
        let ends = || self.nodes.iter().filter_map(free_at);
        ends().filter(|end| ends().filter(|other| other <= end).count() >= needed).min()
    }

    fn known(&self, node: NodeId) -> Option<Known> {
        self.nodes.get(node.index()).copied()
    }

    fn set(&mut self, node: NodeId, known: Known) {
        if let Some(state) = self.nodes.get_mut(node.index()) {
            *state = known;
        }
    }

    fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.quorum.nodes()).map(NodeId::new)
    }
}

/// So much of `range`: nothing for 0, almost all of it for the largest number.
fn part(range: Duration, random: u32) -> Duration {
    let nanos = range.as_nanos().saturating_mul(u128::from(random)) >> 32;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
