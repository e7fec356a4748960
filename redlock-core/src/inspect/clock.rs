//! Clocks compared over the network: what a node's clock said while our own went from sending to receiving.
//!
//! A server reads its clock somewhere between our sending the question and our reading the answer. Taking the middle for
//! it, the error is at most half of the round trip; of several samples the quickest bounds it best. Our own clock is
//! common to all nodes, so it falls out of the difference between two of them, whatever it says.

use alloc::vec::Vec;
use core::time::Duration;

use super::report::NodeReport;
use crate::time::Instant;

/// One round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When the question was handed out.
    pub sent: Instant,
    /// When the answer was there.
    pub received: Instant,
    /// What the node's wall clock said in between, in microseconds since 1970; `None` where it may not be asked.
    pub server_micros: Option<i64>,
}

impl Sample {
    /// From the question to the answer.
    #[must_use]
    pub const fn round_trip(&self) -> Duration {
        self.received.saturating_duration_since(self.sent)
    }

    /// The middle of the round trip on our clock, in microseconds.
    fn middle(&self) -> i64 {
        let sum = micros(self.sent).saturating_add(micros(self.received));
        sum / 2
    }

    /// The node's clock less ours, and how far that may be wrong.
    fn difference(&self) -> Option<Bounded> {
        let half = i64::try_from(self.round_trip().as_micros() / 2).unwrap_or(i64::MAX);
        // One for the server's cut-off fraction, one for ours.
        Some(Bounded {
            value: self.server_micros?.saturating_sub(self.middle()),
            error: half.saturating_add(2),
        })
    }
}

fn micros(at: Instant) -> i64 {
    i64::try_from(at.as_nanos() / 1_000).unwrap_or(i64::MAX)
}

/// A number that is right within an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounded {
    value: i64,
    error: i64,
}

impl Bounded {
    fn less(self, other: Self) -> Self {
        Self { value: self.value.saturating_sub(other.value), error: self.error.saturating_add(other.error) }
    }
}

/// A node's wall clock, against the middle one of all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockReading {
    /// How far it is ahead of the middle one (behind, if negative), in microseconds.
    pub offset_micros: i64,
    /// How far the offset may be wrong at most, either way.
    pub error_micros: i64,
    /// How much faster than the middle one it ran while it was looked at (slower, if negative), in millionths; `None`
    /// where there were too few samples.
    pub drift_ppm: Option<i64>,
    /// How far the drift may be wrong at most, either way.
    pub drift_error_ppm: Option<i64>,
}

impl ClockReading {
    /// How far off it is for certain, whatever the error; 0 where it may be right.
    #[must_use]
    pub const fn least_offset_micros(&self) -> i64 {
        let least = self.offset_micros.saturating_abs().saturating_sub(self.error_micros);
        if least > 0 { least } else { 0 }
    }

    /// How fast it drifts for certain; 0 where it may not.
    #[must_use]
    pub fn least_drift_ppm(&self) -> i64 {
        match (self.drift_ppm, self.drift_error_ppm) {
            (Some(drift), Some(error)) => drift.saturating_abs().saturating_sub(error).max(0),
            (Some(_) | None, _) => 0,
        }
    }
}

/// What is known of one clock against ours.
#[derive(Clone, Copy, Debug)]
struct Own {
    offset: Bounded,
    /// In millionths.
    drift: Option<Bounded>,
}

/// The nodes' clocks against each other, in the order of `reports`; `None` for one that was not read.
#[must_use]
pub fn readings(reports: &[NodeReport]) -> Vec<Option<ClockReading>> {
    let own: Vec<Option<Own>> = reports.iter().map(|report| own(&report.samples)).collect();
    let middle_offset = middle(own.iter().flatten().map(|own| own.offset));
    // One drift alone is that of our own clock as much as of the node's.
    let drifts: Vec<Bounded> = own.iter().flatten().filter_map(|own| own.drift).collect();
    let middle_drift = middle(drifts.iter().copied()).filter(|_| drifts.len() > 1);
    let reading = |own: Own| {
        let offset = against(own.offset, middle_offset);
        let drift = own.drift.filter(|_| middle_drift.is_some()).map(|drift| against(drift, middle_drift));
        ClockReading {
            offset_micros: offset.value,
            error_micros: offset.error,
            drift_ppm: drift.map(|drift| drift.value),
            drift_error_ppm: drift.map(|drift| drift.error),
        }
    };
    own.into_iter().map(|own| own.map(reading)).collect()
}

/// The middle one by value; of two the lower.
fn middle(values: impl Iterator<Item = Bounded>) -> Option<Bounded> {
    let mut values: Vec<Bounded> = values.collect();
    values.sort_by_key(|bounded| bounded.value);
    values.get(values.len().saturating_sub(1) / 2).copied()
}

/// The middle one is not off from itself.
fn against(value: Bounded, middle: Option<Bounded>) -> Bounded {
    match middle {
        Some(middle) if middle != value => value.less(middle),
        Some(_) | None => Bounded { value: 0, error: 0 },
    }
}

fn own(samples: &[Sample]) -> Option<Own> {
    let timed: Vec<&Sample> = samples.iter().filter(|sample| sample.server_micros.is_some()).collect();
    let offset = quickest(&timed)?.difference()?;
    let (early, late) = timed.split_at(timed.len() / 2);
    let drift = quickest(early).zip(quickest(late)).and_then(|(early, late)| drift(early, late));
    Some(Own { offset, drift })
}

fn quickest<'a>(samples: &[&'a Sample]) -> Option<&'a Sample> {
    samples.iter().min_by_key(|sample| sample.round_trip()).copied()
}

fn drift(early: &Sample, late: &Sample) -> Option<Bounded> {
    let passed = late.middle().saturating_sub(early.middle());
    // Over less than this the error of the offsets is all that would be seen.
    if passed < 100_000 {
        return None;
    }
    let change = late.difference()?.less(early.difference()?);
    let per_million = |micros: i64| i128::from(micros).saturating_mul(1_000_000) / i128::from(passed);
    let saturate = |value: i128| i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX });
    Some(Bounded {
        value: saturate(per_million(change.value)),
        error: saturate(per_million(change.error)).saturating_add(1),
    })
}
