//! A server's wall clock: it may be off, run at another rate, and jump.

use crate::Instant;
use crate::sim::line::Line;

const NANOS_PER_MILLI: i128 = 1_000_000;
/// What an undisturbed wall clock says at [`Instant::ZERO`]: early in 2027.
const EPOCH: i128 = 1_800_000_000_000 * NANOS_PER_MILLI;

#[derive(Clone, Copy, Debug)]
pub(super) struct WallClock(Line);

impl WallClock {
    pub(super) fn new() -> Self {
        Self(Line::new(Instant::ZERO, EPOCH, 0))
    }

    pub(super) fn set(&mut self, offset_ms: i64, rate_ppm: i64, now: Instant) {
        let reading = EPOCH + i128::from(now.as_nanos()) + i128::from(offset_ms) * NANOS_PER_MILLI;
        self.0 = Line::new(now, reading, rate_ppm);
    }

    pub(super) fn jump(&mut self, ms: i64, now: Instant) {
        self.0 = self.0.jumped(i128::from(ms) * NANOS_PER_MILLI, now);
    }

    pub(super) fn millis(&self, now: Instant) -> i64 {
        divide(self.0.nanos(now), 1_000_000)
    }

    pub(super) fn micros(&self, now: Instant) -> i64 {
        divide(self.0.nanos(now), 1_000)
    }

    /// The first instant at which the clock says more than `ms` milliseconds; `None` if it never will.
    pub(super) fn first_after(&self, ms: i64) -> Option<Instant> {
        self.0.first_at((i128::from(ms) + 1) * NANOS_PER_MILLI)
    }
}

/// Rounded down, within what 64 bits hold.
fn divide(nanos: i128, unit: i64) -> i64 {
    match i64::try_from(nanos) {
        // Ten times as fast as with 128 bits.
        Ok(nanos) => nanos.div_euclid(unit),
        Err(_) => {
            let number = nanos.div_euclid(i128::from(unit));
            i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_after_is_the_beginning_of_the_next_millisecond() {
        let mut clock = WallClock::new();
        clock.set(-12_345, 333_333, Instant::from_micros(777));
        let start = clock.millis(Instant::from_micros(777));
        for ms in [0, 1, 50, 997] {
            let at = clock.first_after(start + ms).unwrap();
            assert_eq!(clock.millis(at), start + ms + 1);
            assert_eq!(clock.millis(Instant::from_nanos(at.as_nanos() - 1)), start + ms);
        }
    }
}
