//! How long to stay away from a node that cannot be connected (R11).

use crate::rng::Rng;
use core::time::Duration;

/// Exponential with jitter: the n-th failure in a row waits for a random time between half of and all of base × 2ⁿ, capped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// After the first failure. A restart of a server on the same host takes a few of these.
    const BASE: Duration = Duration::from_millis(20);
    /// At the most. An outage of 15 s then costs at most 30 attempts; its end is noticed within 2 s.
    const CAP: Duration = Duration::from_secs(2);

    /// A connection or handshake failed: how long to wait before the next.
    pub(crate) fn failed(&mut self, rng: &mut Rng) -> Duration {
        let whole = Self::BASE.saturating_mul(1 << self.failures.min(16)).min(Self::CAP);
        self.failures = self.failures.saturating_add(1);
        let half = whole / 2;
        let extra = half.as_nanos().saturating_mul(u128::from(rng.next_u32())) >> 32;
        half.saturating_add(Duration::from_nanos(u64::try_from(extra).unwrap_or(u64::MAX)))
    }

    /// The connection has stood for a while.
    pub(crate) const fn reset(&mut self) {
        self.failures = 0;
    }

    /// Whether no failure happened since the last reset.
    pub(crate) const fn is_fresh(&self) -> bool {
        self.failures == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r11_b39_an_outage_of_15_seconds_costs_at_most_30_attempts() {
        for seed in 0..1_000 {
            let (mut rng, mut backoff) = (Rng::new(seed), Backoff::default());
            let (mut passed, mut attempts, mut last) = (Duration::ZERO, 0, Duration::ZERO);
            while passed < Duration::from_secs(15) {
                let delay = backoff.failed(&mut rng);
                assert!(delay >= Duration::from_millis(10) && delay <= Backoff::CAP, "seed {seed}");
                assert!(delay * 2 >= last, "seed {seed}: spacing grows");
                last = delay.min(Duration::from_millis(500));
                passed += delay;
                attempts += 1;
            }
            assert!(attempts <= 30, "seed {seed}: {attempts}");
        }
    }
}
