//! Clean-up, node by node (R7), and what a release has learnt from it (R19).

use super::quorum::Quorum;
use crate::time::Instant;

/// How far the clean-up of one token is on one node.
///
/// ```text
/// Idle ──end──▶ Queued ──handed out──▶ Sent ──answered──▶ Done
///   │             ▲  ▲                  │
///   │          ready └──form refused────┤
///   │             │                     │
///   └────end────▶ Owed ◀──────broken────┘     Owed ──one ttl after the last answer, if all were answered──▶ Done
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Cleanup {
    /// Nothing was asked to be cleaned yet.
    Idle,
    /// No connection; the release is the first command after the next handshake.
    Owed,
    /// In the outbox of the connection that stands.
    Queued,
    /// Handed out, not answered.
    Sent,
    /// Nothing is left to do.
    Done(ReleaseResult),
}

/// What one node answered to the release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReleaseResult {
    /// It deleted the key.
    Deleted,
    /// It is not there; whether an earlier release deleted it, whose answer was lost, or it was gone before, is not known.
    Gone,
    /// The key was not there any more, or another's.
    NotOurs,
    /// It answered with an error, or nothing had to be sent.
    Nothing,
}

/// What a release has learnt, in one round (R19).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReleaseVerdict {
    /// A quorum deleted it before the deadline.
    Released,
    /// The deadline had passed.
    Expired,
    /// So many nodes no longer had it that it was not ours any more, before the deadline.
    NotMine,
    /// Too few nodes answered; it is gone by that time on those that have it.
    Unknown {
        /// When the servers will have dropped it.
        gone_by: Instant,
    },
}

/// The counted answers to a release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Answers {
    pub(super) deleted: u8,
    pub(super) not_ours: u8,
    /// May still answer in this round.
    pub(super) pending: u8,
}

impl Answers {
    /// What these answers say for certain at `now`, early where it is certain; `last` when no more are waited for. Only the
    /// least certain verdict asks `gone_by`.
    pub(super) fn verdict(
        self,
        quorum: Quorum,
        now: Instant,
        deadline: Instant,
        last: bool,
        gone_by: impl FnOnce() -> Instant,
    ) -> Option<ReleaseVerdict> {
        if now >= deadline {
            return Some(ReleaseVerdict::Expired);
        }
        if self.deleted >= quorum.needed() {
            return Some(ReleaseVerdict::Released);
        }
        if self.not_ours >= quorum.blocking() {
            return Some(ReleaseVerdict::NotMine);
        }
        // Who might still say "not ours" is worth waiting for: it tells more than "unknown".
        (last || self.pending == 0).then(|| ReleaseVerdict::Unknown { gone_by: gone_by() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r19_the_answer_says_what_was_learnt() {
        let quorum = Quorum::majority(5);
        let at = Instant::from_millis;
        let say = |deleted, not_ours, pending, now, last| {
            Answers { deleted, not_ours, pending }.verdict(quorum, at(now), at(100), last, || at(777))
        };
        assert_eq!(say(3, 0, 2, 50, false), Some(ReleaseVerdict::Released));
        assert_eq!(say(2, 0, 3, 50, false), None);
        assert_eq!(say(2, 3, 0, 50, false), Some(ReleaseVerdict::NotMine));
        assert_eq!(say(2, 1, 0, 50, false), Some(ReleaseVerdict::Unknown { gone_by: at(777) }));
        assert_eq!(say(2, 0, 3, 50, true), Some(ReleaseVerdict::Unknown { gone_by: at(777) }));
        assert_eq!(say(5, 0, 0, 100, false), Some(ReleaseVerdict::Expired), "the deadline wins a tie");
    }
}
