//! Where a scenario's choices come from: a seed, or bytes that a fuzzer bends.

/// A source of choices. The same source gives the same scenario.
#[derive(Clone, Debug)]
pub struct Dice<'a> {
    state: u64,
    bytes: Option<&'a [u8]>,
}

impl<'a> Dice<'a> {
    /// All choices from one seed.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self { state: seed, bytes: None }
    }

    /// Choices from bytes, one each; zeros when they are used up, so that every scenario ends.
    #[must_use]
    pub const fn bytes(bytes: &'a [u8]) -> Self {
        Self { state: 0, bytes: Some(bytes) }
    }

    /// Whether there is anything left to choose from: a seed never ends.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_some_and(<[u8]>::is_empty)
    }

    /// SplitMix64 (Steele, Lea, Flood 2014), or up to eight of the bytes.
    fn next(&mut self, range: u64) -> u64 {
        if let Some(bytes) = &mut self.bytes {
            let wanted = if range <= 256 { 1 } else { 4 };
            let (taken, rest) = bytes.split_at_checked(wanted).unwrap_or((bytes, &[]));
            *bytes = rest;
            return taken.iter().fold(0, |value, byte| (value << 8) | u64::from(*byte));
        }
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `range`, which is at least 1.
    pub fn below(&mut self, range: u64) -> u64 {
        self.next(range) % range.max(1)
    }

    /// A number of the range, both ends included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below((most.saturating_sub(least)).saturating_add(1))
    }

    /// An index of something that has so many entries.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len.max(1) as u64)).unwrap_or(0)
    }

    /// Whether something that happens `percent` of the time happens now.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A seed for something else.
    pub fn seed(&mut self) -> u64 {
        self.next(u64::MAX)
    }
}
