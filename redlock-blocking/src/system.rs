//! The clock, and entropy.

redlock_core::__system!();

#[cfg(test)]
mod tests {
    use super::*;
    use redlock_core::Instant;
    use redlock_core::handoff::Clock as _;

    #[test]
    fn r13_the_clock_never_goes_back() {
        let readings: Vec<Instant> = (0..10_000).map(|_| SystemClock.now()).collect();
        assert!(readings.is_sorted());
    }
}
