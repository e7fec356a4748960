//! A server's wall clock: it may be off, run at another rate, and jump.

use crate::Instant;

const NANOS_PER_MILLI: i128 = 1_000_000;
const MILLION: i128 = 1_000_000;
/// What an undisturbed wall clock says at [`Instant::ZERO`]: early in 2027.
const EPOCH: i128 = 1_800_000_000_000 * NANOS_PER_MILLI;

/// Nanoseconds of wall-clock time, as a line through `(anchor, reading)` with slope 1 + `rate_ppm` / 10⁶.
#[derive(Clone, Copy, Debug)]
pub(super) struct WallClock {
    anchor: Instant,
    reading: i128,
    rate_ppm: i64,
}

impl WallClock {
    pub(super) const fn new() -> Self {
        Self { anchor: Instant::ZERO, reading: EPOCH, rate_ppm: 0 }
    }

    pub(super) fn set(&mut self, offset_ms: i64, rate_ppm: i64, now: Instant) {
        let reading = EPOCH + i128::from(now.as_nanos()) + i128::from(offset_ms) * NANOS_PER_MILLI;
        // A clock may stand still, but not run backwards: that takes a jump.
        *self = Self { anchor: now, reading, rate_ppm: rate_ppm.max(-1_000_000) };
    }

    pub(super) fn jump(&mut self, ms: i64, now: Instant) {
        let reading = self.nanos(now) + i128::from(ms) * NANOS_PER_MILLI;
        *self = Self { anchor: now, reading, rate_ppm: self.rate_ppm };
    }

    pub(super) fn millis(&self, now: Instant) -> i64 {
        saturate(self.nanos(now).div_euclid(NANOS_PER_MILLI))
    }

    pub(super) fn micros(&self, now: Instant) -> i64 {
        saturate(self.nanos(now).div_euclid(1_000))
    }

    /// The first instant at which the clock says more than `ms` milliseconds; `None` if it never will.
    pub(super) fn first_after(&self, ms: i64) -> Option<Instant> {
        let missing = ((i128::from(ms) + 1) * NANOS_PER_MILLI).saturating_sub(self.reading).max(0);
        let slope = MILLION + i128::from(self.rate_ppm);
        if missing == 0 {
            return Some(self.anchor);
        }
        // The reading is rounded down, so the instant is rounded up.
        let span = missing.saturating_mul(MILLION).checked_add(slope - 1)?.checked_div(slope)?;
        let at = i128::from(self.anchor.as_nanos()).checked_add(span)?;
        u64::try_from(at).ok().map(Instant::from_nanos)
    }

    fn nanos(&self, now: Instant) -> i128 {
        let passed = i128::from(now.as_nanos()) - i128::from(self.anchor.as_nanos());
        self.reading + (passed * (MILLION + i128::from(self.rate_ppm))).div_euclid(MILLION)
    }
}

fn saturate(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_after_is_exact_at_every_rate() {
        for rate in [-999_999, -500_000, -10_000, -1, 0, 1, 7, 10_000, 333_333, 1_000_000] {
            let mut clock = WallClock::new();
            clock.set(-12_345, rate, Instant::from_micros(777));
            let start = clock.millis(Instant::from_micros(777));
            for ms in [0, 1, 2, 3, 50, 997, 10_000] {
                let at = clock.first_after(start + ms).unwrap();
                assert!(clock.millis(at) > start + ms, "rate {rate}, {ms} ms");
                let before = Instant::from_nanos(at.as_nanos() - 1);
                assert!(clock.millis(before) <= start + ms, "rate {rate}, {ms} ms");
            }
        }
    }

    #[test]
    fn a_stopped_clock_never_gets_there() {
        let mut clock = WallClock::new();
        clock.set(0, -1_000_000, Instant::ZERO);
        assert_eq!(clock.first_after(clock.millis(Instant::ZERO) + 5), None);
        assert_eq!(clock.millis(Instant::from_secs(9)), clock.millis(Instant::ZERO));
    }

    #[test]
    fn jumps_keep_the_rate() {
        let mut clock = WallClock::new();
        clock.set(0, 1_000_000, Instant::ZERO);
        let before = clock.millis(Instant::from_secs(1));
        clock.jump(-3_600_000, Instant::from_secs(1));
        assert_eq!(clock.millis(Instant::from_secs(2)), before - 3_600_000 + 2_000);
    }
}
