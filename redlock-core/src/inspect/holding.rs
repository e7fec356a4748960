//! Who holds a resource, by what all nodes hold.

use alloc::vec::Vec;
use core::time::Duration;

use super::key::{HeldKey, KeyState, Remaining};
use super::report::NodeReport;

/// Who holds a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "whoever shows it has to show all of it")]
pub enum Holding {
    /// One value is on a quorum of nodes: that is a lock.
    Held {
        /// The value, as one of the nodes has it.
        by: HeldKey,
        /// On how many nodes.
        on: usize,
        /// How long a quorum of nodes still has it: when the lock ends unless it is extended. [`Remaining::Untold`]
        /// where too few nodes said.
        remaining: Remaining,
    },
    /// A quorum of nodes has nothing there: it can be had now.
    Free {
        /// How many other nodes have something there: the rest of a lock that ended, or somebody who is just trying.
        leftovers: usize,
    },
    /// Nobody has a quorum, and too few nodes are free to get one: nobody holds it, and nobody can until keys run out.
    Split {
        /// The longest time that a key still stays; the resource is free after it at the latest.
        free_in: Remaining,
    },
    /// Too few nodes answered.
    Untold,
}

/// What a node contributes.
#[derive(Clone, Copy, Debug)]
pub struct NodeHolding<'a> {
    /// The key's state; `None` where the node did not say.
    pub key: Option<&'a KeyState>,
    /// Whether it has the value by which the resource is held.
    pub is_holder: bool,
}

impl Holding {
    /// Reads it from one report for each configured node.
    #[must_use]
    pub fn of(reports: &[NodeReport]) -> Self {
        let states: Vec<Option<&KeyState>> = reports.iter().map(told).collect();
        let quorum = states.len() / 2 + 1;
        let held: Vec<&HeldKey> = states.iter().filter_map(|state| held(*state)).collect();
        let count = |key: &HeldKey| held.iter().filter(|other| other.is_same_hold(key)).count();
        let most = held.iter().copied().max_by_key(|key| count(key));
        let on = most.map_or(0, count);
        if let Some(by) = most.filter(|_| on >= quorum) {
            let same = held.iter().filter(|key| key.is_same_hold(by)).map(|key| key.remaining()).collect();
            return Self::Held { by: by.clone(), on, remaining: nth_longest(same, quorum) };
        }
        let silent = states.iter().filter(|state| state.is_none()).count();
        let free = states.iter().filter(|state| matches!(state, Some(KeyState::Free))).count();
        if free >= quorum {
            return Self::Free { leftovers: states.len() - silent - free };
        }
        if silent > 0 && (on + silent >= quorum || free + silent >= quorum) {
            return Self::Untold;
        }
        let all: Vec<Remaining> = states.iter().filter_map(|state| remaining((*state)?)).collect();
        Self::Split { free_in: nth_longest(all, 1) }
    }

    /// What each node contributes.
    #[must_use]
    pub fn node<'a>(&self, report: &'a NodeReport) -> NodeHolding<'a> {
        let key = told(report);
        let is_holder = match (self, held(key)) {
            (Self::Held { by, .. }, Some(key)) => key.is_same_hold(by),
            (Self::Held { .. } | Self::Free { .. } | Self::Split { .. } | Self::Untold, _) => false,
        };
        NodeHolding { key, is_holder }
    }
}

fn told(report: &NodeReport) -> Option<&KeyState> {
    report.key.as_ref().filter(|state| !matches!(state, KeyState::Untold(_)))
}

const fn held(state: Option<&KeyState>) -> Option<&HeldKey> {
    if let Some(KeyState::Held(key)) = state { Some(key) } else { None }
}

const fn remaining(state: &KeyState) -> Option<Remaining> {
    match state {
        KeyState::Held(key) => Some(key.remaining()),
        KeyState::NotAString(remaining) => Some(*remaining),
        KeyState::Free | KeyState::Untold(_) => None,
    }
}

/// The `nth` longest of them, counted from 1.
fn nth_longest(mut all: Vec<Remaining>, nth: usize) -> Remaining {
    let length = |remaining: &Remaining| match remaining {
        Remaining::Forever => Some(Duration::MAX),
        Remaining::For(left) => Some(*left),
        Remaining::Untold => None,
    };
    all.retain(|remaining| length(remaining).is_some());
    all.sort_by_key(|remaining| core::cmp::Reverse(length(remaining)));
    nth.checked_sub(1).and_then(|index| all.get(index)).copied().unwrap_or(Remaining::Untold)
}
