//! One candidate's way through campaigns and terms.
//!
//! ```text
//!             campaign                  elected
//!   Resting ────────────▶ Campaigning ────────────▶ Leading
//!      ▲                       │                       │
//!      └──failed, called off───┴────────ended──────────┘
//! ```
//!
//! Who leads is decided by the lock alone: a term is a hold of it, and lasts as long as that is believed in (R13). What is
//! decided here is when the next campaign's first round may be sent, so that a term that ends is followed by somebody's next:
//! who has led rests, for others to come first; who has failed pauses, longer each time, and never gives up. And epochs are
//! compared: a term whose fence does not exceed that of the candidate's last one is refused, since the store that fences
//! protect would, and because it shows that a counter was lost together with its node's clock.

use crate::ids::Fence;
use crate::time::Instant;
use core::time::Duration;

/// How far a candidate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// It does not ask for the lock.
    Resting,
    /// It asks, or is about to.
    Campaigning,
    /// It has got it, and was not told that its term ended.
    Leading,
}

/// A term's fence does not exceed that of the candidate's last term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StaleEpoch {
    /// The fence of the last term.
    pub known: Fence,
}

/// A candidate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Election {
    stage: Stage,
    /// For how long one who has led stays out of it, and the shortest pause after a failure.
    rest: Duration,
    /// No round before that.
    not_before: Instant,
    /// Campaigns that failed since the last term.
    failures: u8,
    /// The largest fence of its terms.
    epoch: Option<Fence>,
}

impl Election {
    /// The longest pause after a failure: what is fatal is mended by somebody, who should not wait much longer than a
    /// person does. A node that lacks a right is asked anew as often (R22).
    pub const LONGEST_PAUSE: Duration = Duration::from_secs(10);

    /// A candidate that has not campaigned yet, and may at once.
    ///
    /// `rest` is R9's longest delay between two attempts: nobody who waits for the lock looks at it less often.
    #[must_use]
    pub const fn new(rest: Duration) -> Self {
        Self { stage: Stage::Resting, rest, not_before: Instant::ZERO, failures: 0, epoch: None }
    }

    /// Begins a campaign. Answers how long its first round has to wait; `None`, and nothing begins, where it campaigns or
    /// leads already.
    pub fn campaign(&mut self, now: Instant) -> Option<Duration> {
        if self.stage != Stage::Resting {
            return None;
        }
        self.stage = Stage::Campaigning;
        Some(self.not_before.saturating_duration_since(now))
    }

    /// It has got the lock, with this fence where it asks for one: it leads.
    ///
    /// # Errors
    ///
    /// The fence is no larger than that of its last term. It does not lead, and has to release the lock; the campaign has
    /// failed.
    pub fn elected(&mut self, fence: Option<Fence>, now: Instant) -> Result<(), StaleEpoch> {
        if let (Some(known), Some(fence)) = (self.epoch, fence)
            && fence <= known
        {
            self.failed(now);
            return Err(StaleEpoch { known });
        }
        self.stage = Stage::Leading;
        self.epoch = fence.or(self.epoch);
        self.failures = 0;
        Ok(())
    }

    /// The campaign has failed. The pause before the next doubles with each that fails in a row.
    pub fn failed(&mut self, now: Instant) {
        self.stage = Stage::Resting;
        let doubled = self.rest.saturating_mul(1_u32.checked_shl(self.failures.into()).unwrap_or(u32::MAX));
        // A rest that is longer than that was configured so.
        let pause = doubled.min(Self::LONGEST_PAUSE.max(self.rest));
        self.failures = self.failures.saturating_add(1);
        self.not_before = self.not_before.max(now.saturating_add(pause));
    }

    /// Nobody waits for the campaign any more. What was to be waited for before its first round is to be still.
    pub fn called_off(&mut self) {
        self.stage = Stage::Resting;
    }

    /// Its term has ended: it resigned, or has lost the lock.
    pub fn ended(&mut self, now: Instant) {
        self.stage = Stage::Resting;
        self.not_before = self.not_before.max(now.saturating_add(self.rest));
    }

    /// How far it is.
    #[must_use]
    pub const fn stage(&self) -> Stage {
        self.stage
    }

    /// The largest fence of its terms.
    #[must_use]
    pub const fn epoch(&self) -> Option<Fence> {
        self.epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const REST: Duration = Duration::from_millis(250);

    const fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn who_has_led_rests_and_campaigns_again() {
        let mut candidate = Election::new(REST);
        assert_eq!(candidate.campaign(at(5)), Some(Duration::ZERO));
        assert_eq!(candidate.campaign(at(5)), None, "one campaign at a time");
        assert_eq!(candidate.elected(None, at(6)), Ok(()));
        assert_eq!(candidate.campaign(at(7)), None, "it leads");
        candidate.ended(at(1_000));
        assert_eq!(candidate.campaign(at(1_100)), Some(Duration::from_millis(150)));
        candidate.called_off();
        assert_eq!(candidate.campaign(at(1_200)), Some(Duration::from_millis(50)), "the rest goes on");
        candidate.called_off();
        assert_eq!(candidate.campaign(at(9_999)), Some(Duration::ZERO));
    }

    #[test]
    fn who_fails_pauses_longer_each_time_and_never_gives_up() {
        let mut candidate = Election::new(REST);
        let mut now = at(0);
        let mut pauses = Vec::new();
        for _ in 0..300 {
            let wait = candidate.campaign(now).expect("it may campaign");
            pauses.push(wait);
            now = now.saturating_add(wait);
            candidate.failed(now);
        }
        let expected = [0, 250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000].map(Duration::from_millis);
        assert_eq!(pauses[..expected.len()], expected);
        assert!(pauses[8..].iter().all(|pause| *pause == Election::LONGEST_PAUSE));
        now = now.saturating_add(candidate.campaign(now).expect("it may campaign"));
        candidate.elected(None, now).expect("no fence is asked for");
        candidate.ended(now);
        now = now.saturating_add(candidate.campaign(now).expect("it may campaign"));
        candidate.failed(now);
        assert_eq!(candidate.campaign(now), Some(REST), "a term makes good for what failed before");
    }

    #[test]
    fn a_rest_of_nothing_and_one_without_end_are_borne() {
        for rest in [Duration::ZERO, Duration::MAX] {
            let mut candidate = Election::new(rest);
            for _ in 0..40 {
                candidate.campaign(at(1)).expect("it may campaign");
                candidate.failed(at(1));
            }
            assert!(candidate.campaign(at(1)).expect("it may campaign") <= rest.max(Duration::ZERO));
        }
    }

    #[test]
    fn an_epoch_that_does_not_grow_is_refused() {
        let mut candidate = Election::new(REST);
        let mut term = |fence: u64| {
            candidate.campaign(at(0)).expect("it may campaign");
            let elected = candidate.elected(Some(Fence(fence)), at(0));
            if elected.is_ok() {
                candidate.ended(at(0));
            }
            elected
        };
        assert_eq!(term(7), Ok(()));
        assert_eq!(term(7), Err(StaleEpoch { known: Fence(7) }));
        assert_eq!(term(6), Err(StaleEpoch { known: Fence(7) }));
        assert_eq!(term(9), Ok(()));
        assert_eq!(candidate.epoch(), Some(Fence(9)));
    }
}
