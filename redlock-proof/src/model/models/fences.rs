//! Fenced locks.

use super::locks::RIVAL;
use crate::model::configs::{ALL, Model, Plan, Start};
use crate::model::properties::Met;

/// What the fenced models have in common. A tick never comes: keys are gone at any moment instead.
pub(in crate::model) const FENCED: Model = Model {
    horizon: 0,
    fenced: true,
    starts: &[0, 1],
    expires: true,
    forget_at: ALL,
    checks_support: false,
    ..Model::NOTHING
};
/// One attempt, which may be given up, or whose lock may end, as soon as another is made.
pub(in crate::model) const GRANT: Plan =
    Plan { attempts: 1, abandons: true, releases: true, ..Plan::NOTHING };
/// Two of them.
pub(in crate::model) const GRANTS: Plan = Plan { attempts: 2, ..GRANT };

/// Fenced attempts after one another: keys that are gone at any moment, and counters that differ.
pub(super) fn fence() -> Model {
    Model {
        name: "fence",
        clients: [GRANTS, GRANT],
        starts: &[0, 1, 2],
        sometimes: &[
            Met::Granted,
            Met::GrantedAgain,
            Met::AttemptLost,
            Met::Agreed,
            Met::Raised,
            Met::RaiseRefused,
            Met::Beyond,
            Met::Overtaken,
            Met::BothHold,
        ],
        ..FENCED
    }
}

/// The same with connections that break: SETs and raises that come late, or twice.
pub(super) fn fence_late() -> Model {
    Model {
        name: "fence-late",
        clients: [GRANTS, GRANT],
        breaks: [1, 0],
        starts: &[0],
        sometimes: &[
            Met::GrantedAgain,
            Met::Agreed,
            Met::Raised,
            Met::RaiseRefused,
            Met::Beyond,
            Met::Overtaken,
            Met::LateRan,
        ],
        ..FENCED
    }
}

/// Two nodes forget their counters, or one twice, and start them again from a clock that is not behind what they were.
pub(super) fn fence_forget() -> Model {
    Model {
        name: "fence-forget",
        clients: [GRANTS, GRANT],
        forgets: 2,
        starts: &[0],
        starts_again: &[Start::Own, Start::Ahead],
        sometimes: &[
            Met::GrantedAgain,
            Met::Agreed,
            Met::Raised,
            Met::RaiseRefused,
            Met::Beyond,
            Met::Overtaken,
            Met::CounterRestarted,
        ],
        ..FENCED
    }
}

/// One attempt, and an extension after which a node may have to be repaired.
pub(in crate::model) const HOLDER: Plan = Plan { extends: &[3], extends_at_most: 1, ..GRANT };

/// Repairs of nodes that forgot their keys, after the holder has lost the lock too.
pub(super) fn fence_repair() -> Model {
    Model {
        name: "fence-repair",
        clients: [HOLDER, Plan { start_after_extend: true, ..GRANTS }],
        forgets: 1,
        starts: &[0],
        starts_again: &[Start::Own, Start::Ahead],
        sometimes: &[
            Met::GrantedAgain,
            Met::Extended,
            Met::Repaired,
            Met::RepairRefused,
            Met::LateRepair,
            Met::CounterRestarted,
        ],
        ..FENCED
    }
}

/// With clocks that are right fences grow in the order in which they are granted, and a fenced lock is a lock.
pub(super) fn fence_clocks() -> Model {
    let plan = Plan { releases: true, ..RIVAL };
    Model {
        name: "fence-clocks",
        clients: [Plan { start_until: 0, ..plan }, plan],
        ttl: 2,
        horizon: 2,
        starts: &[0, 1],
        expires: false,
        checks_support: true,
        sometimes: &[Met::Granted, Met::Raised, Met::HandedOver],
        ..FENCED
    }
}
