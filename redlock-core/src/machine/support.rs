//! Belief, node by node (R14): until when one node's key is sure to protect the lock.
//!
//! A node's *support* is start + ttl − drift of the newest SET or extension that it confirmed, lowered
//!
//! - (a) to the deadline of every extension handed out to it since, answered or not: it may have shortened the key;
//! - (b) to start of the confirmed one + ttl − drift of every earlier extension that was sent on another connection and
//!   never answered: servers execute what a gone client sent, so it may still run, after the confirmed one.
//!
//! (a) is lifted by an error that means "not applied", and by a newer confirmation. (b) is never lifted while the lock
//! lives. "The token is not there" makes the support nothing.

use crate::time::{Instant, nanos};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

/// Until when one node supports a lock. Small, since there is one for every node of every lock that is held.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Support {
    /// The SET or the extension that the node confirmed last.
    confirmed: Option<HandOut>,
    /// Extensions handed out on the connection that stands, in that order, and not known to be superseded.
    live: Vec<HandOut>,
    /// What was left of broken connections; none while nothing was.
    stuck: Option<Box<Stuck>>,
}

/// A SET or an extension that was handed out to the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct HandOut {
    number: u32,
    /// Of one that is live: answered in a way that leaves open whether it ran. It lowers as before, but cannot run later.
    answered: bool,
    start: Instant,
    validity: Validity,
}

/// How long a key counts from its start, in nanoseconds.
type Validity = u64;

impl HandOut {
    const fn until(&self) -> Instant {
        self.start.saturating_add_nanos(self.validity)
    }
}

/// Extensions whose connections broke.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Stuck {
    /// The earliest deadline of those handed out since the confirmed one: (a).
    until: Option<Instant>,
    /// The shortest validity of those that were not answered before.
    validity: Option<Validity>,
    /// The shortest validity of those among them that were handed out before the confirmed one: (b).
    before: Option<Validity>,
}

impl Support {
    /// The number of the SET; extensions count from 1.
    pub const SET: u32 = 0;

    /// The SET was confirmed.
    pub fn confirm_set(&mut self, start: Instant, validity: Duration) {
        if self.confirmed.is_none() {
            let validity = nanos(validity);
            self.confirmed = Some(HandOut { number: Self::SET, start, validity, answered: true });
        }
    }

    /// An extension was handed out to the node.
    pub fn hand_out(&mut self, number: u32, start: Instant, validity: Duration) {
        self.live.push(HandOut { number, start, validity: nanos(validity), answered: false });
    }

    /// The extension of that number was confirmed.
    pub fn confirm(&mut self, number: u32) {
        let Some(found) = self.live.iter().find(|hand_out| hand_out.number == number).copied() else {
            return;
        };
        self.confirmed = Some(HandOut { answered: true, ..found });
        // One connection's commands run in order: what was handed out on it before has run before.
        self.live.retain(|hand_out| hand_out.number > number);
        if let Some(stuck) = &mut self.stuck {
            // What broke was handed out before this one, on an older connection: from now on (b) holds for it.
            stuck.until = None;
            stuck.before = stuck.validity;
            if stuck.validity.is_none() {
                self.stuck = None;
            }
        }
    }

    /// The extension of that number was not applied: it lowers nothing (a).
    pub fn not_applied(&mut self, number: u32) {
        self.live.retain(|hand_out| hand_out.number != number);
    }

    /// The extension of that number was answered, but may or may not have been applied.
    pub fn ambiguous(&mut self, number: u32) {
        if let Some(found) = self.live.iter_mut().find(|hand_out| hand_out.number == number) {
            found.answered = true;
        }
    }

    /// The node said that the token is not there, in answer to the extension of that number.
    pub fn gone(&mut self, number: u32) {
        self.confirmed = None;
        self.live.retain(|hand_out| hand_out.number > number);
    }

    /// The node is out of the count, whatever it said: an alias of another one, or one with other data.
    pub fn void(&mut self) {
        self.confirmed = None;
    }

    /// The connection broke: what was unanswered on it may still run.
    pub fn broken(&mut self) {
        for hand_out in self.live.drain(..) {
            let stuck = self.stuck.get_or_insert_default();
            let until = hand_out.until();
            stuck.until = Some(stuck.until.map_or(until, |other| other.min(until)));
            if !hand_out.answered {
                let shortest = stuck.validity.map_or(hand_out.validity, |v| v.min(hand_out.validity));
                stuck.validity = Some(shortest);
            }
        }
    }

    /// Until when this node supports the lock; `None` if it does not.
    #[must_use]
    pub fn until(&self) -> Option<Instant> {
        let confirmed = self.confirmed?;
        let mut until = confirmed.until();
        if let Some(stuck) = &self.stuck {
            if let Some(validity) = stuck.before {
                until = until.min(confirmed.start.saturating_add_nanos(validity));
            }
            if let Some(stuck) = stuck.until {
                until = until.min(stuck);
            }
        }
        for hand_out in self.live.iter().filter(|hand_out| hand_out.number > confirmed.number) {
            until = until.min(hand_out.until());
        }
        Some(until)
    }

    /// Whether an extension that was handed out to the node is unanswered on the connection that stands.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.live.iter().any(|hand_out| !hand_out.answered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn r14_the_newest_confirmed_counts() {
        let mut support = Support::default();
        assert_eq!(support.until(), None);
        support.confirm_set(at(0), ms(100));
        assert_eq!(support.until(), Some(at(100)));
        support.hand_out(1, at(50), ms(100));
        assert_eq!(support.until(), Some(at(100)), "a longer one lifts nothing before it is confirmed");
        support.confirm(1);
        assert_eq!(support.until(), Some(at(150)));
    }

    #[test]
    fn r14a_a_shorter_extension_counts_from_its_hand_out() {
        let mut support = Support::default();
        support.confirm_set(at(0), ms(1000));
        support.hand_out(1, at(10), ms(50));
        assert_eq!(support.until(), Some(at(60)));
        support.not_applied(1);
        assert_eq!(support.until(), Some(at(1000)), "an error that means not applied lifts it");
        support.hand_out(2, at(20), ms(50));
        support.ambiguous(2);
        assert_eq!(support.until(), Some(at(70)), "an ambiguous answer does not");
        support.hand_out(3, at(30), ms(500));
        support.confirm(3);
        assert_eq!(support.until(), Some(at(530)), "a newer confirmation on the same connection does");
    }

    #[test]
    fn r14b_one_stuck_in_a_dead_connection_may_run_after_a_newer_one() {
        let mut support = Support::default();
        support.confirm_set(at(0), ms(1000));
        support.hand_out(1, at(10), ms(50));
        support.broken();
        assert_eq!(support.until(), Some(at(60)), "since the confirmed one: (a)");
        support.hand_out(2, at(20), ms(1000));
        assert_eq!(support.until(), Some(at(60)));
        support.confirm(2);
        assert_eq!(support.until(), Some(at(70)), "before the confirmed one: (b), start 20 + 50");
        support.hand_out(3, at(500), ms(1000));
        support.confirm(3);
        assert_eq!(support.until(), Some(at(550)), "(b) is never lifted");
    }

    #[test]
    fn r14_gone_means_no_support_until_confirmed_again() {
        let mut support = Support::default();
        support.confirm_set(at(0), ms(1000));
        support.hand_out(1, at(10), ms(1000));
        support.gone(1);
        assert_eq!(support.until(), None);
        support.hand_out(2, at(20), ms(1000));
        assert_eq!(support.until(), None);
        support.confirm(2);
        assert_eq!(support.until(), Some(at(1020)));
    }

    #[test]
    fn a_late_reply_to_the_set_lowers_to_what_was_handed_out_behind_it() {
        let mut support = Support::default();
        support.hand_out(1, at(10), ms(50));
        support.confirm_set(at(0), ms(1000));
        assert_eq!(support.until(), Some(at(60)));
    }

    #[test]
    fn what_was_answered_is_not_waited_for() {
        let mut support = Support::default();
        support.confirm_set(at(0), ms(1000));
        support.hand_out(1, at(10), ms(50));
        assert!(support.is_waiting());
        support.confirm(1);
        assert!(!support.is_waiting());
        support.hand_out(2, at(20), ms(40));
        support.ambiguous(3);
        assert!(support.is_waiting());
        support.ambiguous(2);
        assert!(!support.is_waiting());
        support.broken();
        assert_eq!(support.until(), Some(at(60)), "it lowers as before: (a)");
        support.hand_out(4, at(500), ms(1000));
        support.confirm(4);
        assert_eq!(support.until(), Some(at(1500)), "and cannot run later: no (b)");
    }

    #[test]
    fn gone_forgets_what_was_handed_out_until_then_and_nothing_later() {
        let mut support = Support::default();
        support.confirm_set(at(0), ms(1000));
        for number in 1..=3 {
            support.hand_out(number, at(10), ms(1000));
        }
        support.gone(2);
        support.confirm(1);
        assert_eq!(support.until(), None);
        support.confirm(2);
        assert_eq!(support.until(), None);
        assert!(support.is_waiting());
        support.confirm(3);
        assert_eq!(support.until(), Some(at(1010)));
        support.void();
        assert_eq!(support.until(), None);
    }
}
