//! What contenders, display and judge share.

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::checker::Visit;

/// The contenders' names.
pub(crate) const NAMES: [&str; 4] = ["ann", "ben", "cat", "dan"];

/// The critical section, and who did what.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    is_over: AtomicBool,
    /// How many are inside, counted without any lock or clock.
    inside: AtomicU32,
    scores: [Score; NAMES.len()],
}

/// What one contender has had so far.
#[derive(Debug, Default)]
pub(crate) struct Score {
    grants: AtomicU64,
    busy: AtomicU64,
    refused: AtomicU64,
    doing: AtomicU8,
    visits: Mutex<Vec<Visit>>,
}

/// The numbers of a [`Score`], or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Times in the critical section.
    pub(crate) grants: u64,
    /// Times that others held the lock until the wait was over.
    pub(crate) busy: u64,
    /// Times that no quorum of nodes was to be had.
    pub(crate) refused: u64,
}

/// What a contender is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Doing {
    Waiting,
    Inside,
    Refused,
}

impl Arena {
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Counts who goes in; whether nobody was inside.
    pub(crate) fn enter(&self) -> bool {
        self.inside.fetch_add(1, Ordering::SeqCst) == 0
    }

    pub(crate) fn leave(&self) {
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    pub(crate) fn score(&self, contender: usize) -> Option<&Score> {
        self.scores.get(contender)
    }

    pub(crate) fn scores(&self) -> impl Iterator<Item = (&'static str, &Score)> {
        NAMES.into_iter().zip(&self.scores)
    }

    pub(crate) fn total(&self) -> Tally {
        self.scores.iter().map(Score::tally).fold(Tally::default(), |sum, tally| Tally {
            grants: sum.grants.saturating_add(tally.grants),
            busy: sum.busy.saturating_add(tally.busy),
            refused: sum.refused.saturating_add(tally.refused),
        })
    }

    /// Everyone's visits so far.
    pub(crate) fn visits(&self) -> Vec<Visit> {
        self.scores.iter().flat_map(Score::visits).collect()
    }
}

impl Tally {
    /// What came since `earlier`.
    pub(crate) const fn since(self, earlier: Self) -> Self {
        Self {
            grants: self.grants.saturating_sub(earlier.grants),
            busy: self.busy.saturating_sub(earlier.busy),
            refused: self.refused.saturating_sub(earlier.refused),
        }
    }
}

impl Score {
    pub(crate) fn does(&self, doing: Doing) {
        let code = match doing {
            Doing::Waiting => 0,
            Doing::Inside => 1,
            Doing::Refused => 2,
        };
        self.doing.store(code, Ordering::Relaxed);
    }

    pub(crate) fn doing(&self) -> Doing {
        match self.doing.load(Ordering::Relaxed) {
            1 => Doing::Inside,
            2 => Doing::Refused,
            _ => Doing::Waiting,
        }
    }

    pub(crate) fn granted(&self) {
        self.grants.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn busy(&self) {
        self.busy.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn record(&self, visit: Visit) {
        self.visits.lock().unwrap_or_else(PoisonError::into_inner).push(visit);
    }

    pub(crate) fn tally(&self) -> Tally {
        Tally {
            grants: self.grants.load(Ordering::Relaxed),
            busy: self.busy.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }

    fn visits(&self) -> Vec<Visit> {
        self.visits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
