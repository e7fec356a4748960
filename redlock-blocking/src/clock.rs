//! The clock.

use redlock_core::Instant;
use redlock_core::handoff::Clock;

/// The system's clock that never goes back and, where there is one, counts the time that the machine is suspended:
/// `CLOCK_BOOTTIME` on Linux and Android, `std::time::Instant` elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        now()
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn now() -> Instant {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    Instant::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[expect(
    clippy::disallowed_methods,
    reason = "the only clock that every other system has; the documentation says what it counts"
)]
fn now() -> Instant {
    static ORIGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    let origin = ORIGIN.get_or_init(std::time::Instant::now);
    Instant::ZERO.saturating_add(origin.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r13_the_clock_never_goes_back() {
        let readings: Vec<Instant> = (0..10_000).map(|_| SystemClock.now()).collect();
        assert!(readings.is_sorted());
    }
}
