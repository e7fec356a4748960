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
}

impl Timers {
    /// Moves the timer of `due` from where `slot` says it is to `at`, never to `now` or before: what is due now was dealt
    /// with now, and the driver must be able to wait.
    pub(super) fn arm(&mut self, slot: &mut Option<Instant>, due: Due, at: Option<Instant>, now: Instant) {
        let at = at.map(|at| at.max(now.saturating_add(Duration::from_nanos(1)))).filter(|at| *at != Instant::MAX);
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

    /// The next one due at or before `now`, disarmed; its owner has to forget that it was armed.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Due> {
        let first = self.armed.first().copied().filter(|first| first.0 <= now)?;
        self.armed.remove(&first);
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
