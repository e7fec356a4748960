//! What a run is about.

use super::dice::Dice;
use std::time::Duration;

/// An assumption that is broken on purpose, to see that the oracle notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breakage {
    /// Nodes forget what they granted, and come back at once.
    Forgetting,
    /// Nodes' wall clocks jump forward.
    ClockJumps,
    /// Clients take half of the nodes for a quorum.
    HalfQuorum,
    /// Nodes' clocks run faster than the drift allows.
    FastClocks,
    /// Nodes forget their fence counters, and their clocks are behind what those had counted from.
    CountersBehind,
}

/// How much a run is about. Most faults need few nodes, few clients and few steps to show (and are found soonest, and are
/// easiest to read, in small runs), but not all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Two clients, mostly one to three nodes, a dozen things done or broken.
    Small,
    /// Up to five nodes, three clients, a few lifetimes of a lock.
    Medium,
    /// Up to nine nodes, three clients, many retries and renewals.
    Large,
}

/// What the seed has decided for the whole run.
pub(super) struct Plan {
    pub(super) size: Size,
    pub(super) nodes: usize,
    pub(super) clients: usize,
    pub(super) resources: Vec<String>,
    pub(super) ttl: Duration,
    pub(super) node_timeout: Duration,
    pub(super) latency: Duration,
    pub(super) late: Duration,
    pub(super) breakage: Option<Breakage>,
    /// Somebody deletes keys by hand: owners lose their locks, and only exclusion is not to be expected.
    pub(super) is_deleting: bool,
    /// Two of the first client's addresses are one server.
    pub(super) is_aliased: bool,
    /// Locks have fences, most of them.
    pub(super) is_fenced: bool,
    /// Nodes come back without their memory at any time, and clients keep them from voting for as long as need be.
    pub(super) is_guarded: bool,
    /// Clients are candidates of an election.
    pub(super) is_election: bool,
}

impl Plan {
    /// The resources, as they are asked for.
    pub(super) fn names(&self) -> Vec<Vec<u8>> {
        self.resources.iter().map(|name| name.clone().into_bytes()).collect()
    }
}

/// The plan that the dice decide, at this size if one is given.
pub(super) fn plan(dice: &mut Dice<'_>, size: Option<Size>, breakage: Option<Breakage>) -> Plan {
    let drawn = match dice.below(100) {
        0..=84 => Size::Small,
        85..=96 => Size::Medium,
        _ => Size::Large,
    };
    let size = size.unwrap_or(drawn);
    let nodes = match (breakage, size, dice.below(10)) {
        (Some(Breakage::HalfQuorum), ..) => 4,
        (Some(_), ..) | (None, Size::Small, 0..=6) | (None, _, 0..=4) => 3,
        (None, Size::Small, _) => dice.between(1, 4),
        (None, _, 5..=6) => 5,
        (None, Size::Medium, _) => dice.between(1, 5),
        (None, Size::Large, _) => dice.between(1, 9),
    };
    let (clients, longest_ttl) = match size {
        Size::Small => (2, 250),
        Size::Medium => (dice.between(2, 3), 400),
        Size::Large => (dice.between(2, 3), 600),
    };
    let ttl = Duration::from_millis(dice.between(40, longest_ttl));
    let is_behind = breakage == Some(Breakage::CountersBehind);
    let is_guarded = is_behind || breakage.is_none() && dice.chance(10);
    let node_timeout = if dice.chance(25) {
        // Longer than the lock: then an attempt can run out of validity.
        ttl * 2
    } else {
        Duration::from_millis(dice.between(10, 60))
    };
    Plan {
        size,
        nodes: usize::try_from(nodes).unwrap_or(3),
        clients: usize::try_from(clients).unwrap_or(2),
        resources: if dice.chance(15) { vec!["a".into(), "b".into()] } else { vec!["a".into()] },
        ttl,
        node_timeout,
        latency: Duration::from_micros(dice.between(50, 1_500)),
        late: ttl.mul_f64(dice.below(200) as f64 / 100.0),
        breakage,
        is_deleting: breakage.is_none() && !is_guarded && dice.chance(8),
        is_aliased: breakage.is_none() && nodes > 2 && dice.chance(4),
        is_fenced: is_behind || dice.chance(30),
        is_guarded,
        is_election: breakage.is_none() && dice.chance(6),
    }
}
