//! A clock as a line: a reading at an instant, and a rate.

use crate::Instant;

const MILLION: i128 = 1_000_000;

/// Nanoseconds that some clock says, as a line through `(anchor, reading)` with slope 1 + `rate_ppm` / 10⁶.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    anchor: Instant,
    reading: i128,
    rate_ppm: i64,
}

impl Line {
    /// A clock may stand still, but not run backwards: that takes a jump.
    pub(super) fn new(anchor: Instant, reading: i128, rate_ppm: i64) -> Self {
        Self { anchor, reading, rate_ppm: rate_ppm.max(-1_000_000) }
    }

    /// The same rate, but `nanos` more from `now` on.
    pub(super) fn jumped(&self, nanos: i128, now: Instant) -> Self {
        Self { anchor: now, reading: self.nanos(now).saturating_add(nanos), rate_ppm: self.rate_ppm }
    }

    /// The same reading at `now`, but another rate from there on.
    pub(super) fn at_rate(&self, rate_ppm: i64, now: Instant) -> Self {
        Self::new(now, self.nanos(now), rate_ppm)
    }

    /// What the clock says.
    pub(super) fn nanos(&self, now: Instant) -> i128 {
        let passed = i128::from(now.as_nanos()) - i128::from(self.anchor.as_nanos());
        // 128 bits are divided bit by bit, and clocks are read at every step: nearly always 64 will do.
        let product = i64::try_from(passed).ok().and_then(|passed| passed.checked_mul(self.rate_ppm));
        let gained = match product {
            Some(product) => i128::from(product.div_euclid(1_000_000)),
            None => (passed * i128::from(self.rate_ppm)).div_euclid(MILLION),
        };
        self.reading + passed + gained
    }

    /// The first instant from the anchor on at which the clock says at least `nanos`; `None` if it never will.
    pub(super) fn first_at(&self, nanos: i128) -> Option<Instant> {
        let missing = nanos.saturating_sub(self.reading).max(0);
        if missing == 0 {
            return Some(self.anchor);
        }
        let slope = MILLION + i128::from(self.rate_ppm);
        // The reading is rounded down, so the instant is rounded up.
        let span = match quotient_of_64_bits(missing, slope) {
            Some(span) => span,
            None => missing.saturating_mul(MILLION).checked_add(slope - 1)?.checked_div(slope)?,
        };
        let at = i128::from(self.anchor.as_nanos()).checked_add(span)?;
        u64::try_from(at).ok().map(Instant::from_nanos)
    }
}

/// `missing` millionfold, divided by `slope` and rounded up, where all of it fits 64 bits.
fn quotient_of_64_bits(missing: i128, slope: i128) -> Option<i128> {
    let (missing, slope) = (i64::try_from(missing).ok()?, i64::try_from(slope).ok()?);
    let product = missing.checked_mul(1_000_000)?.checked_add(slope - 1)?;
    product.checked_div(slope).map(i128::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_at_is_exact_at_every_rate() {
        for rate in [-999_999, -500_000, -10_000, -1, 0, 1, 7, 10_000, 333_333, 1_000_000] {
            let line = Line::new(Instant::from_micros(777), -12_345, rate);
            for nanos in [-12_344, -1, 0, 1, 2, 3, 997, 1_000_000, 12_345_678_901, 12_345_678_901_234] {
                let at = line.first_at(nanos).unwrap();
                assert!(line.nanos(at) >= nanos, "rate {rate}, {nanos} ns");
                let before = Instant::from_nanos(at.as_nanos() - 1);
                assert!(line.nanos(before) < nanos, "rate {rate}, {nanos} ns");
            }
        }
    }

    #[test]
    fn a_stopped_clock_never_gets_there() {
        let line = Line::new(Instant::ZERO, 0, -2_000_000);
        assert_eq!((line.first_at(1), line.nanos(Instant::from_secs(9))), (None, 0));
    }

    #[test]
    fn jumps_keep_the_rate_and_changes_of_rate_the_reading() {
        let line = Line::new(Instant::ZERO, 0, 1_000_000).jumped(-500, Instant::from_nanos(1_000));
        assert_eq!(line.nanos(Instant::from_nanos(2_000)), 2_000 - 500 + 2_000);
        assert_eq!(line.at_rate(0, Instant::from_nanos(2_000)).nanos(Instant::from_nanos(2_100)), 3_600);
    }
}
