//! The one source of chance: a seed.

use core::time::Duration;

/// `SplitMix64`: small, and the same on every machine.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in `0..bound`; 0 if there is nothing to choose from.
    pub(super) const fn below(&mut self, bound: u64) -> u64 {
        // The bias is below bound / 2⁶⁴.
        match self.next_u64().checked_rem(bound) {
            Some(number) => number,
            None => 0,
        }
    }

    /// Uniform in `0..=longest`, to the nanosecond.
    pub(super) fn span(&mut self, longest: Duration) -> Duration {
        let nanos = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.below(nanos.saturating_add(1)))
    }
}
