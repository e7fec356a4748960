//! Time as the engine sees it: nanoseconds since an origin that the driver chooses.

use core::fmt;
use core::time::Duration;

/// A point in time: nanoseconds since an origin that the driver chooses.
///
/// The core never reads a clock. A driver reads one that never goes back and, where the platform has it, counts
/// the time that the machine was suspended (`CLOCK_BOOTTIME` on Linux), since the servers' expiry counts it too
/// (R13). There is no `now()`, no conversion from `std::time::Instant` and no subtraction operator: swapped
/// operands must be visible. All arithmetic saturates; the range is 584 years.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The origin.
    pub const ZERO: Self = Self(0);
    /// The last instant that can be told; stands for "never".
    pub const MAX: Self = Self(u64::MAX);

    /// An instant so many nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// An instant so many microseconds after the origin.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// An instant so many milliseconds after the origin.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// An instant so many seconds after the origin.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole milliseconds since the origin.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// `self + span`, [`Instant::MAX`] where that cannot be told.
    #[must_use]
    pub const fn saturating_add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }

    /// `self` and so many nanoseconds, [`Instant::MAX`] where that cannot be told.
    pub(crate) const fn saturating_add_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    /// `self − span`, the origin where that would lie before it.
    #[must_use]
    pub const fn saturating_sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(span)))
    }

    /// `self + span`, or `None` where that cannot be told.
    #[must_use]
    pub const fn checked_add(self, span: Duration) -> Option<Self> {
        match self.0.checked_add(nanos(span)) {
            Some(nanos) => Some(Self(nanos)),
            None => None,
        }
    }

    /// The time from `earlier` to `self`; zero if `earlier` is the later one.
    #[must_use]
    pub const fn saturating_duration_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The time from `earlier` to `self`; `None` if `earlier` is the later one.
    #[must_use]
    pub const fn checked_duration_since(self, earlier: Self) -> Option<Duration> {
        match self.0.checked_sub(earlier.0) {
            Some(nanos) => Some(Duration::from_nanos(nanos)),
            None => None,
        }
    }
}

/// `span` in nanoseconds, `u64::MAX` where it is longer than that can say. In 64 bits all the way: this is behind every
/// deadline.
pub(crate) const fn nanos(span: Duration) -> u64 {
    span.as_secs().saturating_mul(1_000_000_000).saturating_add(span.subsec_nanos() as u64)
}

/// Seconds and fraction, short enough for a trace: `1.250s`.
impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::MAX {
            return f.write_str("never");
        }
        write!(f, "{}.{:06}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000 / 1_000)
    }
}

/// When the engine wants [`handle_timeout`](crate::Client::handle_timeout) next, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// The instant at which the timer is due.
    pub at: Instant,
    /// What is due then; for traces and debugging.
    pub reason: TimeoutReason,
}

/// What a [`Deadline`] is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TimeoutReason {
    /// Output is queued: drain [`poll_output`](crate::Client::poll_output) before you wait.
    Output,
    /// A connection is to be made, given up, or has been silent for too long.
    Node,
    /// A lock or an attempt: its vote, its renewal, its `Expiring`, its deadline, its clean-up.
    Lock,
    /// An operation: the next attempt, or the end of its wait.
    Operation,
}

/// The allowance for clocks that run at different rates, and for the servers' rounding: ttl × `factor` + 2 ms (R6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Drift {
    parts_per_million: u32,
}

impl Drift {
    /// Added to every drift whatever the ttl: the servers' expiry has a resolution of 1 ms, ours is read twice.
    pub const FIXED: Duration = Duration::from_millis(2);
    /// One percent, as in the Redlock description.
    pub const DEFAULT: Self = Self { parts_per_million: 10_000 };

    /// A drift of so many millionths of the ttl, plus [`FIXED`](Self::FIXED). A million or more leaves no lock valid.
    #[must_use]
    pub const fn from_parts_per_million(parts_per_million: u32) -> Self {
        Self { parts_per_million }
    }

    /// The factor, in millionths of the ttl.
    #[must_use]
    pub const fn parts_per_million(self) -> u32 {
        self.parts_per_million
    }

    /// The drift of `ttl`, rounded up.
    #[must_use]
    pub fn of(self, ttl: Duration) -> Duration {
        let parts = self.parts_per_million;
        // Of all but the longest ttls the product fits, and a division of 64 bits is a fraction of one of 128.
        let share = match nanos(ttl).checked_mul(u64::from(parts)) {
            Some(share) => share.div_ceil(1_000_000),
            None => {
                let share = u128::from(nanos(ttl)) * u128::from(parts);
                u64::try_from(share.div_ceil(1_000_000)).unwrap_or(u64::MAX)
            }
        };
        Duration::from_nanos(share).saturating_add(Self::FIXED)
    }

    /// What `ttl` is good for at most, counted from the start: ttl − drift; zero if nothing is left.
    #[must_use]
    pub fn validity(self, ttl: Duration) -> Duration {
        ttl.saturating_sub(self.of(ttl))
    }

    /// The longest whole-millisecond ttl whose validity is not above `validity`.
    #[must_use]
    pub(crate) fn ttl_for_validity(self, validity: Duration) -> Duration {
        let kept = 1_000_000_u128.saturating_sub(u128::from(self.parts_per_million));
        if kept == 0 {
            return Duration::ZERO;
        }
        let nanos = validity.saturating_add(Self::FIXED).as_nanos().saturating_mul(1_000_000) / kept;
        let millis = u64::try_from(nanos / 1_000_000).unwrap_or(u64::MAX);
        Duration::from_millis(millis)
    }
}

impl Default for Drift {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Cuts off the sub-millisecond part of a ttl: belief counts what is sent (R12).
#[must_use]
pub(crate) fn whole_millis(span: Duration) -> Duration {
    Duration::from_millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Instant::MAX.saturating_add(Duration::MAX), Instant::MAX);
        assert_eq!(Instant::from_millis(5).saturating_add(Duration::MAX), Instant::MAX);
        assert_eq!(Instant::from_millis(5).saturating_sub(Duration::from_secs(1)), Instant::ZERO);
        assert_eq!(Instant::from_millis(5).checked_add(Duration::MAX), None);
        assert_eq!(
            Instant::from_millis(5).saturating_duration_since(Instant::from_millis(9)),
            Duration::ZERO
        );
        assert_eq!(Instant::from_millis(5).checked_duration_since(Instant::from_millis(9)), None);
    }

    #[test]
    fn r6_drift_is_one_percent_and_two_milliseconds() {
        assert_eq!(Drift::DEFAULT.of(Duration::from_secs(10)), Duration::from_millis(102));
        assert_eq!(Drift::DEFAULT.validity(Duration::from_secs(10)), Duration::from_millis(9_898));
        assert_eq!(Drift::DEFAULT.validity(Duration::from_millis(2)), Duration::ZERO);
    }

    #[test]
    fn r16_the_cut_ttl_never_outlives_what_was_asked() {
        for drift in
            [Drift::DEFAULT, Drift::from_parts_per_million(0), Drift::from_parts_per_million(900_000)]
        {
            for millis in [0, 1, 2, 3, 7, 99, 1_000, 9_898, 123_457, 86_400_000] {
                let wanted = Duration::from_millis(millis);
                let ttl = drift.ttl_for_validity(wanted);
                assert!(drift.validity(ttl) <= wanted, "{drift:?} {wanted:?} {ttl:?}");
                let longer = ttl + Duration::from_millis(1);
                assert!(drift.validity(longer) >= wanted, "{drift:?} {wanted:?} {ttl:?} could be longer");
            }
        }
    }
}
