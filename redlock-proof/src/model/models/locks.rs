//! Locks without fences.

use crate::model::configs::{ALL, FIRST, HandOut, Model, Plan};
use crate::model::properties::Met;
use crate::model::state::Up;
use redlock_core::machine::Answer;

/// One attempt at once: that it may as well start later is the same but for the horizon.
pub(in crate::model) const ATTEMPT: Plan = Plan { attempts: 1, ..Plan::NOTHING };
/// One attempt at any time.
pub(in crate::model) const RIVAL: Plan = Plan { start_until: u8::MAX, ..ATTEMPT };

/// Attempts after one another, with replies and commands that are lost or late.
pub(super) fn attempts() -> Model {
    Model {
        name: "attempts",
        clients: [Plan { attempts: 2, abandons: true, releases: true, ..ATTEMPT }, RIVAL],
        horizon: 0,
        breaks: [1, 0],
        sometimes: &[
            Met::Granted,
            Met::GrantedAgain,
            Met::AttemptLost,
            Met::HandedOver,
            Met::Released,
            Met::LateRan,
            Met::Orphan,
            Met::OwedSent,
            Met::LateSet,
        ],
        ..Model::NOTHING
    }
}

/// One attempt each, at any time, and connections of both that break.
pub(super) fn rivals() -> Model {
    let plan = Plan { releases: true, ..RIVAL };
    Model {
        name: "rivals",
        clients: [Plan { start_until: 0, ..plan }, plan],
        horizon: 2,
        breaks: [1, 0],
        sometimes: &[
            Met::Granted,
            Met::AttemptLost,
            Met::HandedOver,
            Met::Released,
            Met::ReleaseUnknown,
            Met::LateRan,
            Met::Orphan,
            Met::OwedSent,
            Met::AllGone,
        ],
        ..Model::NOTHING
    }
}

/// Connections that are being made, or cannot be, and whatever is answered to a claim that has ended read at any time.
pub(super) fn connect() -> Model {
    let plan = Plan { releases: true, ..ATTEMPT };
    Model {
        name: "connect",
        clients: [plan, RIVAL],
        horizon: 1,
        breaks: [1, 0],
        break_to: &[Up::Connecting, Up::Down],
        idle_breaks: true,
        gives_up: true,
        sometimes: &[
            Met::Granted,
            Met::AttemptLost,
            Met::LateSet,
            Met::OwedSent,
            Met::Orphan,
            Met::ReleaseUnknown,
            Met::LateRan,
        ],
        ..Model::NOTHING
    }
}

/// Extensions, longer and shorter, across reconnects, errors and other forms of the command.
pub(super) fn extend() -> Model {
    Model {
        name: "extend",
        clients: [Plan { extends: &[1, 3], extends_at_most: 2, ..ATTEMPT }, Plan::NOTHING],
        horizon: 2,
        breaks: [1, 0],
        sometimes: &[
            Met::Granted,
            Met::Extended,
            Met::ExtendFailed,
            Met::Lowered,
            Met::Expired,
            Met::LateRan,
            Met::AllGone,
        ],
        ..Model::NOTHING
    }
}

/// Support is a matter of one node: many extensions, breaks and errors at one.
pub(super) fn one_node() -> Model {
    Model {
        name: "one-node",
        clients: [
            Plan { extends: &[1, 3], extends_at_most: 2, releases: true, ..ATTEMPT },
            Plan { start_from: 1, ..RIVAL },
        ],
        nodes: 1,
        horizon: 3,
        breaks: [2, 0],
        break_at: FIRST,
        idle_breaks: true,
        errors: &[Answer::NotApplied, Answer::Ambiguous, Answer::FormRefused],
        errors_at_most: 1,
        sometimes: &[
            Met::Granted,
            Met::Extended,
            Met::ExtendFailed,
            Met::Lowered,
            Met::Expired,
            Met::LateRan,
            Met::Orphan,
            Met::Resent,
            Met::HandedOver,
            Met::AllGone,
        ],
        ..Model::NOTHING
    }
}

/// Extensions with a rival who takes what is free.
pub(super) fn shorter() -> Model {
    Model {
        name: "extend-rival",
        clients: [
            Plan { extends: &[1, 3], extends_at_most: 2, extends_in_order: true, extend_until: 0, ..ATTEMPT },
            Plan { start_from: 1, ..RIVAL },
        ],
        horizon: 1,
        breaks: [1, 0],
        checks_support: false,
        sometimes: &[Met::Granted, Met::Extended, Met::Lowered, Met::Expired, Met::HandedOver, Met::LateRan],
        ..Model::NOTHING
    }
}

/// A node loses its keys; the holder repairs it, or releases meanwhile, or the rival is faster.
pub(super) fn repair() -> Model {
    Model {
        name: "repair",
        clients: [
            Plan { extends: &[3], extends_at_most: 2, releases: true, ..ATTEMPT },
            Plan { start_from: 1, ..RIVAL },
        ],
        horizon: 1,
        forgets: 1,
        forget_at: ALL,
        hand_out: HandOut::RepairsLater,
        sometimes: &[
            Met::Extended,
            Met::Repaired,
            Met::RepairRefused,
            Met::AssumptionBroken,
            Met::Released,
            Met::HandedOver,
        ],
        ..Model::NOTHING
    }
}

/// A holder looks at its keys, and learns that they are gone (R14): the lock is lost, and the rival's.
pub(super) fn watch() -> Model {
    Model {
        name: "watch",
        clients: [Plan { looks_at_most: 2, releases: true, ..ATTEMPT }, Plan { start_from: 1, ..RIVAL }],
        horizon: 1,
        breaks: [1, 0],
        forgets: 2,
        forget_at: ALL,
        sometimes: &[
            Met::LookedThere,
            Met::LookedGone,
            Met::TokenGone,
            Met::HandedOver,
            Met::AssumptionBroken,
        ],
        ..Model::NOTHING
    }
}

/// A look beside an extension that finds the same, the repair after that, and connections that break.
pub(super) fn watch_repair() -> Model {
    Model {
        name: "watch-repair",
        clients: [
            Plan { extends: &[3], extends_at_most: 1, looks_at_most: 2, releases: true, ..ATTEMPT },
            Plan::NOTHING,
        ],
        forgets: 1,
        sometimes: &[Met::LookedThere, Met::LookedGone, Met::Extended, Met::Repaired],
        ..watch()
    }
}

/// Two of the nodes are one server (R14a, R24).
pub(super) fn alias() -> Model {
    Model {
        name: "alias",
        clients: [Plan { extends: &[1], extends_at_most: 1, releases: true, ..ATTEMPT }, RIVAL],
        horizon: 1,
        alias: Some((1, 2)),
        voids: true,
        sometimes: &[Met::Granted, Met::Alias, Met::Duplicate, Met::Extended, Met::HandedOver],
        ..Model::NOTHING
    }
}

/// A node restarts without its keys, and gives no vote for one ttl (R25).
pub(super) fn restart() -> Model {
    Model {
        name: "restart",
        clients: [Plan { extends: &[2], extends_at_most: 1, ..ATTEMPT }, RIVAL],
        ttl: 2,
        horizon: 2,
        restarts: 1,
        restart_at: ALL,
        quarantine: true,
        excuses: false,
        sometimes: &[
            Met::Granted,
            Met::Muted,
            Met::QuarantineOver,
            Met::Extended,
            Met::HandedOver,
            Met::LateSet,
        ],
        ..Model::NOTHING
    }
}

/// The same without: what follows a vote that a node gives against its word is left out, and counted.
pub(super) fn amnesia() -> Model {
    Model {
        name: "restart-unguarded",
        horizon: 1,
        quarantine: false,
        excuses: true,
        sometimes: &[Met::Granted, Met::Extended, Met::AssumptionBroken],
        ..restart()
    }
}

/// Renewal up to the end of `max_hold`.
pub(super) fn renewal() -> Model {
    Model {
        name: "renewal",
        clients: [Plan { max_hold: Some(4), ..ATTEMPT }, Plan { start_from: 3, ..RIVAL }],
        horizon: 4,
        sometimes: &[Met::Renewed, Met::ExtendFailed, Met::Expired, Met::Expiring, Met::HandedOver],
        ..Model::NOTHING
    }
}

/// Commands that are handed out later than they were asked for.
pub(super) fn outbox() -> Model {
    Model {
        name: "outbox",
        clients: [
            Plan { extends: &[1], extends_at_most: 1, releases: true, ..ATTEMPT },
            Plan { start_from: 1, ..RIVAL },
        ],
        horizon: 1,
        hand_out: HandOut::Later,
        sometimes: &[Met::Granted, Met::Extended, Met::Lowered, Met::Released, Met::HandedOver],
        ..Model::NOTHING
    }
}
