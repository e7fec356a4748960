//! What is due when: one timer per node, per lock and per operation.

use crate::time::{Deadline, Instant, TimeoutReason};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

/// Whose timer it is. The order decides among those due at one instant: locks first, since expiry wins a tie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    Claim(u64),
    Operation(u64),
    Node(u8),
    Closing,
}

/// All armed timers, soonest first.
#[derive(Debug)]
pub(super) struct Timers {
    /// With one that is never due, so that the set is never empty: it would give its memory back, and take it again.
    armed: BTreeSet<(Instant, Due)>,
    /// The nodes' by themselves: they are few, and move with every command and every reply.
    nodes: Vec<Option<Instant>>,
    /// The first of them.
    first_node: Option<(Instant, Due)>,
    /// Whose timer is being fired, while those that are due are.
    firing: Option<Due>,
}

impl Default for Timers {
    fn default() -> Self {
        let armed = BTreeSet::from([(Instant::MAX, Due::Closing)]);
        Self { armed, nodes: Vec::new(), first_node: None, firing: None }
    }
}

impl Timers {
    /// Moves the timer of `due` from where `slot` says it is to `at`.
    ///
    /// Never to `now` or before, since what is due now was dealt with and the driver must be able to wait; but while
    /// timers are fired, another one that is due stays due: whatever touches its owner meanwhile, its expiry comes before
    /// the call's input.
    pub(super) fn arm(&mut self, slot: &mut Option<Instant>, due: Due, at: Option<Instant>, now: Instant) {
        let least = match self.firing {
            Some(fired) if fired != due => Instant::ZERO,
            Some(_) | None => now.saturating_add(Duration::from_nanos(1)),
        };
        let at = at.map(|at| at.max(least)).filter(|at| *at != Instant::MAX);
        if *slot == at {
            return;
        }
        if let Due::Node(index) = due {
            self.arm_node(usize::from(index), at);
        } else {
            if let Some(old) = *slot {
                self.armed.remove(&(old, due));
            }
            if let Some(at) = at {
                self.armed.insert((at, due));
            }
        }
        *slot = at;
    }

    fn arm_node(&mut self, index: usize, at: Option<Instant>) {
        if self.nodes.len() <= index {
            self.nodes.resize(index + 1, None);
        }
        if let Some(armed) = self.nodes.get_mut(index) {
            *armed = at;
        }
        let moved = at.zip(u8::try_from(index).ok()).map(|(at, index)| (at, Due::Node(index)));
        match (self.first_node, moved) {
            (Some((_, Due::Node(first))), _) if usize::from(first) == index => {
                let nodes = self.nodes.iter().zip(0..=u8::MAX);
                self.first_node = nodes.filter_map(|(at, index)| Some(((*at)?, Due::Node(index)))).min();
            }
            (Some(first), Some(moved)) => self.first_node = Some(first.min(moved)),
            (None, moved) => self.first_node = moved,
            (Some(_), None) => {}
        }
    }

    fn first(&self) -> Option<(Instant, Due)> {
        let other = self.armed.first().copied().filter(|other| other.0 < Instant::MAX);
        match (other, self.first_node) {
            (Some(other), Some(node)) => Some(other.min(node)),
            (other, node) => other.or(node),
        }
    }

    /// The next one due at or before `now`, disarmed; its owner has to forget that it was armed. To be called until it
    /// answers `None`.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Due> {
        self.firing = None;
        let first = self.first().filter(|first| first.0 <= now)?;
        if let Due::Node(index) = first.1 {
            self.arm_node(usize::from(index), None);
        } else {
            self.armed.remove(&first);
        }
        self.firing = Some(first.1);
        Some(first.1)
    }

    pub(super) fn next(&self) -> Option<Deadline> {
        self.first().map(|(at, due)| Deadline {
            at,
            reason: match due {
                Due::Claim(_) | Due::Closing => TimeoutReason::Lock,
                Due::Operation(_) => TimeoutReason::Operation,
                Due::Node(_) => TimeoutReason::Node,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_due_timer_is_not_put_off_by_whatever_else_is_due() {
        let (mut timers, now) = (Timers::default(), Instant::from_secs(9));
        let (mut node, mut claim) = (None, None);
        timers.arm(&mut node, Due::Node(0), Some(Instant::from_secs(1)), Instant::ZERO);
        timers.arm(&mut claim, Due::Claim(7), Some(Instant::from_secs(2)), Instant::ZERO);
        assert_eq!(timers.pop_due(now), Some(Due::Node(0)));
        // The node's timer touches the claim, which says again when it is due.
        timers.arm(&mut claim, Due::Claim(7), Some(Instant::from_secs(2)), now);
        assert_eq!(timers.pop_due(now), Some(Due::Claim(7)));
        // One that was fired just now is due later at the earliest.
        claim = None;
        timers.arm(&mut claim, Due::Claim(7), Some(Instant::from_secs(2)), now);
        assert_eq!(timers.pop_due(now), None);
        assert!(timers.next().is_some_and(|deadline| deadline.at > now));
    }

    #[test]
    fn nodes_and_all_others_are_due_in_one_order() {
        let (mut timers, start) = (Timers::default(), Instant::ZERO);
        let (mut slots, mut claim) = ([None; 3], None);
        for (index, secs) in [(0, 5), (1, 3), (2, 4)] {
            let at = Some(Instant::from_secs(secs));
            let slot = &mut slots[usize::from(index)];
            timers.arm(slot, Due::Node(index), at, start);
        }
        timers.arm(&mut claim, Due::Claim(1), Some(Instant::from_secs(4)), start);
        // The first one is put off, then the last one is brought forward, then disarmed.
        timers.arm(&mut slots[1], Due::Node(1), Some(Instant::from_secs(6)), start);
        timers.arm(&mut slots[0], Due::Node(0), Some(Instant::from_secs(1)), start);
        assert_eq!(timers.next().map(|deadline| deadline.at), Some(Instant::from_secs(1)));
        timers.arm(&mut slots[0], Due::Node(0), None, start);
        let now = Instant::MAX;
        assert_eq!(timers.pop_due(now), Some(Due::Claim(1)));
        assert_eq!(timers.pop_due(now), Some(Due::Node(2)));
        assert_eq!(timers.pop_due(now), Some(Due::Node(1)));
        assert_eq!(timers.pop_due(now), None);
        assert_eq!(timers.next(), None);
    }
}
