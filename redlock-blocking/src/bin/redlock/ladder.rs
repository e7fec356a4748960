//! When to ask the command to end, and when to make it.
//!
//! Plain data: it is told how the lock stands and what time it is, and says what to do. Its promise is that the kill
//! comes before the lock is over, wherever that can be known before.

use core::time::Duration;

use redlock_core::Instant;

/// Between TERM and KILL where the lock is gone already, so that others may hold it: enough for a clean-up that is
/// prompt, short against what a rival can do.
pub(crate) const SUDDEN_GRACE: Duration = Duration::from_millis(100);

/// How the lock stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lock {
    /// Held, and renewed in time as far as is known.
    Held,
    /// Held, but no renewal has come in for so long that its end is near.
    Expiring {
        /// What is left.
        remaining: Duration,
    },
    /// Gone before its time: taken away.
    TakenAway,
    /// Over: its deadline has passed.
    Over,
}

/// What to do to the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Ask it to end.
    Terminate,
    /// End it.
    Kill,
}

/// From running to killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ladder {
    rung: Rung,
    was_asked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rung {
    /// It may run.
    Running,
    /// It was asked to end, and is killed then.
    Asked { kill_at: Instant },
    /// It was killed.
    Killed,
}

impl Ladder {
    pub(crate) const fn new() -> Self {
        Self { rung: Rung::Running, was_asked: false }
    }

    /// What to do now, as the lock stands. To be called at [`due`](Self::due), and whenever the lock may stand otherwise.
    pub(crate) fn step(&mut self, lock: Lock, now: Instant) -> Option<Step> {
        let latest = match lock {
            Lock::Over => Some(now),
            Lock::TakenAway => Some(now.saturating_add(SUDDEN_GRACE)),
            Lock::Expiring { remaining } => Some(now.saturating_add(remaining / 2)),
            Lock::Held => None,
        };
        match (self.rung, latest) {
            (Rung::Killed, _) | (Rung::Running, None) => None,
            // A renewal came in after all: whoever does not end now may take the time it needs.
            (Rung::Asked { .. }, None) => {
                self.rung = Rung::Running;
                None
            }
            (Rung::Running, Some(kill_at)) => {
                self.was_asked = true;
                if kill_at <= now {
                    self.rung = Rung::Killed;
                    return Some(Step::Kill);
                }
                self.rung = Rung::Asked { kill_at };
                Some(Step::Terminate)
            }
            (Rung::Asked { kill_at }, Some(latest)) => {
                // Half of what was left when it was asked; less where the deadline moved closer since.
                let kill_at = kill_at.min(latest);
                if kill_at <= now {
                    self.rung = Rung::Killed;
                    return Some(Step::Kill);
                }
                self.rung = Rung::Asked { kill_at };
                None
            }
        }
    }

    /// When [`step`](Self::step) has to be called at the latest; `None` while it may run.
    pub(crate) const fn due(&self) -> Option<Instant> {
        match self.rung {
            Rung::Asked { kill_at } => Some(kill_at),
            Rung::Running | Rung::Killed => None,
        }
    }

    /// Whether the command is being stopped.
    pub(crate) const fn is_stopping(&self) -> bool {
        !matches!(self.rung, Rung::Running)
    }

    /// Whether the command was ever asked to end: how it ended then says nothing about its work.
    pub(crate) const fn was_asked(&self) -> bool {
        self.was_asked
    }

    /// Whether the command was killed.
    pub(crate) const fn was_killed(&self) -> bool {
        matches!(self.rung, Rung::Killed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// How the lock stands at `now` if its deadline is then.
    fn expiring(deadline: u64, now: u64) -> Lock {
        if now < deadline {
            Lock::Expiring { remaining: Duration::from_millis(deadline - now) }
        } else {
            Lock::Over
        }
    }

    #[test]
    fn it_may_run_while_the_lock_is_held() {
        let mut ladder = Ladder::new();
        for now in [0, 1_000, 1_000_000] {
            assert_eq!(ladder.step(Lock::Held, ms(now)), None);
            assert_eq!(ladder.due(), None);
        }
        assert!(!ladder.was_asked());
    }

    #[test]
    fn asked_when_the_end_is_near_and_killed_halfway_however_often_one_looks() {
        for interval in [1, 7, 100, 1_250] {
            let mut ladder = Ladder::new();
            assert_eq!(ladder.step(expiring(10_000, 7_500), ms(7_500)), Some(Step::Terminate));
            let mut now = 7_500;
            let killed_at = loop {
                now = (now + interval).min(ladder.due().map_or(u64::MAX, Instant::as_millis));
                if let Some(step) = ladder.step(expiring(10_000, now), ms(now)) {
                    assert_eq!(step, Step::Kill);
                    break now;
                }
            };
            assert_eq!(killed_at, 8_750, "looking every {interval} ms");
            assert!(ladder.was_killed());
            assert_eq!(ladder.step(Lock::Over, ms(10_000)), None, "once is enough");
            assert_eq!(ladder.due(), None);
        }
    }

    #[test]
    fn a_renewal_that_comes_in_after_all_calls_off_the_kill() {
        let mut ladder = Ladder::new();
        assert_eq!(ladder.step(expiring(10_000, 7_500), ms(7_500)), Some(Step::Terminate));
        assert_eq!(ladder.step(Lock::Held, ms(8_000)), None);
        assert_eq!(ladder.due(), None);
        assert!(!ladder.is_stopping() && ladder.was_asked());
        assert_eq!(
            ladder.step(expiring(18_000, 15_500), ms(15_500)),
            Some(Step::Terminate),
            "and is asked anew"
        );
        assert_eq!(ladder.due(), Some(ms(16_750)));
    }

    #[test]
    fn a_deadline_that_moves_closer_brings_the_kill_closer_and_never_later() {
        let mut ladder = Ladder::new();
        assert_eq!(ladder.step(expiring(10_000, 7_500), ms(7_500)), Some(Step::Terminate));
        assert_eq!(ladder.step(expiring(8_500, 8_000), ms(8_000)), None);
        assert_eq!(ladder.due(), Some(ms(8_250)));
        assert_eq!(ladder.step(expiring(12_000, 8_100), ms(8_100)), None);
        assert_eq!(ladder.due(), Some(ms(8_250)));
        assert_eq!(ladder.step(expiring(8_200, 8_200), ms(8_200)), Some(Step::Kill));
    }

    #[test]
    fn a_lock_that_was_taken_away_leaves_a_short_grace() {
        let mut ladder = Ladder::new();
        assert_eq!(ladder.step(Lock::TakenAway, ms(3_000)), Some(Step::Terminate));
        assert_eq!(ladder.step(Lock::TakenAway, ms(3_050)), None);
        assert_eq!(ladder.due(), Some(ms(3_100)));
        assert_eq!(ladder.step(Lock::TakenAway, ms(3_100)), Some(Step::Kill));

        let mut ladder = Ladder::new();
        assert_eq!(ladder.step(expiring(10_000, 7_500), ms(7_500)), Some(Step::Terminate));
        assert_eq!(ladder.step(Lock::TakenAway, ms(8_000)), None, "asked already");
        assert_eq!(ladder.due(), Some(ms(8_100)));
    }

    #[test]
    fn after_a_sleep_through_the_end_it_is_killed_at_once() {
        let mut ladder = Ladder::new();
        assert_eq!(ladder.step(Lock::Held, ms(1_000)), None);
        assert_eq!(ladder.step(Lock::Over, ms(90_000)), Some(Step::Kill));
        assert!(ladder.was_asked() && ladder.was_killed());
    }

    #[test]
    fn nothing_left_is_killed_at_once() {
        let mut ladder = Ladder::new();
        assert_eq!(ladder.step(Lock::Expiring { remaining: Duration::ZERO }, ms(5)), Some(Step::Kill));
    }
}
