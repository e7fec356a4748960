//! What is due when: one timer per node, per lock and per operation.

use crate::time::{Deadline, Instant, TimeoutReason};
use alloc::collections::BTreeSet;
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
#[derive(Debug, Default)]
pub(super) struct Timers {
    armed: BTreeSet<(Instant, Due)>,
    /// Whose timer is being fired, while those that are due are.
    firing: Option<Due>,
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
        if let Some(old) = slot.take() {
            self.armed.remove(&(old, due));
        }
        if let Some(at) = at {
            self.armed.insert((at, due));
        }
        *slot = at;
    }

    /// The next one due at or before `now`, disarmed; its owner has to forget that it was armed. To be called until it
    /// answers `None`.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Due> {
        self.firing = None;
        let first = self.armed.first().copied().filter(|first| first.0 <= now)?;
        self.armed.remove(&first);
        self.firing = Some(first.1);
        Some(first.1)
    }

    pub(super) fn next(&self) -> Option<Deadline> {
        self.armed.first().map(|(at, due)| Deadline {
            at: *at,
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
}
