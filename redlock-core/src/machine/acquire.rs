//! The row of attempts that one acquire makes (R9, R10).

use crate::time::Instant;
use core::time::Duration;

/// What to do after a lost attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NextStep {
    /// Wait until then, and make another attempt.
    Retry {
        /// When.
        at: Instant,
    },
    /// The only attempt, or the last that was allowed: answer with why it was lost.
    GiveUp,
    /// The wait is over.
    WaitOver,
}

/// The row of attempts of one acquire.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Acquire {
    start: Instant,
    wait_end: Instant,
    attempts: u32,
    attempts_left: Option<u32>,
    delay_min: Duration,
    delay_max: Duration,
}

impl Acquire {
    /// Never less between two attempts, whatever the configuration says.
    pub const LEAST_DELAY: Duration = Duration::from_millis(1);

    /// A row of attempts that starts at `now` and waits for `wait` at most; `attempts` limits their number.
    #[must_use]
    pub fn new(wait: Duration, attempts: Option<u32>, delay: (Duration, Duration), now: Instant) -> Self {
        let delay_min = delay.0.max(Self::LEAST_DELAY);
        Self {
            start: now,
            wait_end: now.saturating_add(wait),
            attempts: 0,
            attempts_left: attempts,
            delay_min,
            delay_max: delay.1.max(delay_min),
        }
    }

    /// An attempt starts. Answers with its number, from 1.
    pub fn attempt(&mut self) -> u32 {
        self.attempts = self.attempts.saturating_add(1);
        self.attempts_left = self.attempts_left.map(|left| left.saturating_sub(1));
        self.attempts
    }

    /// The attempt was lost. `random` is uniform over its range. The delay is uniform in [min, max] and cut to what is
    /// left of the wait, so that the last attempt starts when the wait ends at the latest and the answer comes within a
    /// node timeout of that (R10).
    #[must_use]
    pub fn lost(&self, random: u32, now: Instant) -> NextStep {
        if self.wait_end == self.start || self.attempts_left == Some(0) {
            return NextStep::GiveUp;
        }
        let left = self.wait_end.saturating_duration_since(now);
        if left < Self::LEAST_DELAY {
            return NextStep::WaitOver;
        }
        let range = self.delay_max.saturating_sub(self.delay_min).as_nanos();
        let extra = range.saturating_mul(u128::from(random)) >> 32;
        let delay =
            self.delay_min.saturating_add(Duration::from_nanos(u64::try_from(extra).unwrap_or(u64::MAX)));
        NextStep::Retry { at: now.saturating_add(delay.min(left)) }
    }

    /// How long the nodes have to answer an attempt that starts at `now`: the node timeout, or what is left of it where the
    /// wait has ended, so that the answer comes within a node timeout of that, however late a timer fires (R10). `None` where
    /// less than half of it is left: too little for an attempt.
    #[must_use]
    pub fn patience(&self, node_timeout: Duration, now: Instant) -> Option<Duration> {
        let left =
            self.wait_end.saturating_add(node_timeout).saturating_duration_since(now).min(node_timeout);
        (left >= node_timeout / 2).then_some(left)
    }

    /// How many attempts were started.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// When it started.
    #[must_use]
    pub const fn start(&self) -> Instant {
        self.start
    }

    /// When its wait ends.
    #[must_use]
    pub const fn wait_end(&self) -> Instant {
        self.wait_end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn r9_zero_wait_is_one_round() {
        let mut row = Acquire::new(Duration::ZERO, None, (ms(50), ms(250)), Instant::from_millis(7));
        assert_eq!(row.attempt(), 1);
        assert_eq!(row.lost(0, Instant::from_millis(7)), NextStep::GiveUp);
    }

    #[test]
    fn b23_so_many_tries_are_so_many_rounds() {
        let mut row = Acquire::new(Duration::from_secs(10), Some(2), (ms(50), ms(250)), Instant::ZERO);
        row.attempt();
        assert!(matches!(row.lost(0, Instant::ZERO), NextStep::Retry { .. }));
        row.attempt();
        assert_eq!(row.lost(0, Instant::ZERO), NextStep::GiveUp, "no sleep after the last");
    }

    #[test]
    fn r10_a_late_timer_does_not_move_the_end_of_the_wait() {
        let row = Acquire::new(Duration::from_secs(1), None, (ms(50), ms(250)), Instant::ZERO);
        assert_eq!(row.patience(ms(100), Instant::from_millis(999)), Some(ms(100)));
        assert_eq!(row.patience(ms(100), Instant::from_millis(1_000)), Some(ms(100)));
        assert_eq!(row.patience(ms(100), Instant::from_millis(1_040)), Some(ms(60)));
        assert_eq!(row.patience(ms(100), Instant::from_millis(1_051)), None);
    }

    #[test]
    fn r9_b25_delays_have_a_floor_and_are_cut_to_the_wait() {
        let wait = Duration::from_secs(1);
        for (min, max) in [(0, 0), (0, 50), (50, 10), (50, 250)] {
            for random in [0, 1, u32::MAX / 2, u32::MAX] {
                let row = Acquire::new(wait, None, (ms(min), ms(max)), Instant::ZERO);
                let NextStep::Retry { at } = row.lost(random, Instant::from_millis(100)) else {
                    panic!("no retry")
                };
                assert!(at >= Instant::from_millis(100 + min.max(1)), "{min} {max} {random}");
                assert!(at <= Instant::from_millis(100 + max.max(min).max(1)), "{min} {max} {random}");
            }
        }
        let row = Acquire::new(wait, None, (Duration::MAX, Duration::MAX), Instant::ZERO);
        assert_eq!(
            row.lost(u32::MAX, Instant::from_millis(100)),
            NextStep::Retry { at: Instant::from_secs(1) }
        );
        assert_eq!(row.lost(0, Instant::from_micros(999_500)), NextStep::WaitOver);
        assert_eq!(row.lost(0, Instant::from_millis(999)), NextStep::Retry { at: Instant::from_secs(1) });
        let forever =
            Acquire::new(Duration::MAX, None, (Duration::MAX, Duration::MAX), Instant::from_secs(1));
        assert_eq!((forever.start(), forever.wait_end()), (Instant::from_secs(1), Instant::MAX));
        assert_eq!(forever.lost(u32::MAX, Instant::from_secs(2)), NextStep::Retry { at: Instant::MAX });
    }
}
