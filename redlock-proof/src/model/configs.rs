//! The models: what can happen in each, and how much of it.

use super::faults::Fault;
use super::properties::Met;
use super::state::{NODES, Up, span, ttl};
use core::time::Duration;
use redlock_core::Drift;
use redlock_core::machine::{Answer, Quorum, Terms};

/// When a command that a claim wants sent is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandOut {
    /// In the same step.
    AtOnce,
    /// In the same step, but a repair, and what is queued behind it, at any later time.
    RepairsLater,
    /// At any later time.
    Later,
}

/// What one client may do. All times are ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    pub(super) attempts: u8,
    pub(super) start_from: u8,
    pub(super) start_until: u8,
    /// Not before the other has asked for an extension.
    pub(super) start_after_extend: bool,
    pub(super) abandons: bool,
    pub(super) releases: bool,
    /// The ttls that it may extend to.
    pub(super) extends: &'static [u8],
    pub(super) extends_at_most: u8,
    /// One after the other, else any of them each time.
    pub(super) extends_in_order: bool,
    pub(super) extend_until: u8,
    pub(super) max_hold: Option<u8>,
}

impl Plan {
    pub(super) const NOTHING: Self = Self {
        attempts: 0,
        start_from: 0,
        start_until: 0,
        start_after_extend: false,
        abandons: false,
        releases: false,
        extends: &[],
        extends_at_most: 0,
        extends_in_order: false,
        extend_until: u8::MAX,
        max_hold: None,
    };
}

/// What a counter that was forgotten starts again from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// A clock that has reached what the counter was: the least that has to be assumed.
    Own,
    /// A clock that is ahead of every number of every node and of every fence.
    Ahead,
    /// A clock that has reached the largest fence that was granted, and may be behind one that is about to be.
    Granted,
    /// A clock that is far behind: what has to be assumed not to happen.
    Behind,
}

/// A model: a name and its bounds. All times are ticks.
#[derive(Clone, Debug)]
pub struct Model {
    pub(super) name: &'static str,
    pub(super) clients: [Plan; 2],
    /// How many of the nodes are configured.
    pub(super) nodes: u8,
    pub(super) ttl: u8,
    pub(super) node_timeout: u8,
    /// Time stands still then; everything else goes on.
    pub(super) horizon: u8,
    /// How often a connection of each client breaks, at which nodes, and what it is told then.
    pub(super) breaks: [u8; 2],
    pub(super) break_at: [bool; NODES],
    pub(super) break_to: &'static [Up],
    /// Whether connections on which nothing is under way break too.
    pub(super) idle_breaks: bool,
    /// Whether an attempt to connect may fail.
    pub(super) gives_up: bool,
    pub(super) errors: &'static [Answer],
    pub(super) errors_at_most: u8,
    /// Whether the lock is a fenced one.
    pub(super) fenced: bool,
    /// What counters that were never there start from: the clocks of the nodes.
    pub(super) starts: &'static [u8],
    /// And what those start from that were forgotten.
    pub(super) starts_again: &'static [Start],
    /// Whether keys may be gone at any time, as if every clock were wrong. Then a release is taken for done as soon as it
    /// is asked for: whatever one does to a key happens without it, and a claim that has ended grants nothing.
    pub(super) expires: bool,
    /// How often a server forgets its keys.
    pub(super) forgets: u8,
    pub(super) forget_at: [bool; NODES],
    pub(super) restarts: u8,
    pub(super) restart_at: [bool; NODES],
    /// Whether a server that restarted gives no vote for the longest ttl.
    pub(super) quarantine: bool,
    /// Whether what follows a vote that a server gives against its word is left out, and counted.
    pub(super) excuses: bool,
    /// Two nodes that are one server; the second is the later one.
    pub(super) alias: Option<(usize, usize)>,
    /// Whether a client may find that out.
    pub(super) voids: bool,
    pub(super) hand_out: HandOut,
    /// Whether answers to a claim that has ended are read at once, and a release that can never do anything is executed at
    /// once. A bound, not a reduction: a connection that breaks in between has the release sent again, and these models do
    /// not look at that.
    pub(super) ended_at_once: bool,
    /// Whether the support of every node is compared with its server.
    pub(super) checks_support: bool,
    /// Whether states that differ by names alone are taken for one.
    pub(super) renames: bool,
    pub(super) fault: Option<Fault>,
    pub(super) sometimes: &'static [Met],
}

const FIRST: [bool; NODES] = [true, false, false];
pub(super) const ALL: [bool; NODES] = [true; NODES];

impl Model {
    pub(super) const NOTHING: Self = Self {
        name: "",
        clients: [Plan::NOTHING; 2],
        nodes: 3,
        ttl: 3,
        node_timeout: 1,
        horizon: 3,
        breaks: [0, 0],
        break_at: ALL,
        break_to: &[Up::Connecting],
        idle_breaks: false,
        gives_up: false,
        errors: &[],
        errors_at_most: 0,
        fenced: false,
        starts: &[0],
        starts_again: &[Start::Own],
        expires: false,
        forgets: 0,
        forget_at: FIRST,
        restarts: 0,
        restart_at: FIRST,
        quarantine: false,
        excuses: true,
        alias: None,
        voids: false,
        hand_out: HandOut::AtOnce,
        ended_at_once: true,
        checks_support: true,
        renames: true,
        fault: None,
        sometimes: &[],
    };

    /// The model's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What has to happen in it somewhere.
    #[must_use]
    pub const fn sometimes(&self) -> &'static [Met] {
        self.sometimes
    }

    /// The same model with a fault in it.
    #[must_use]
    pub fn with(self, fault: Fault) -> Self {
        Self { fault: Some(fault), ..self }
    }

    /// The same model, with clients that do nothing.
    #[must_use]
    pub fn idle(self) -> Self {
        Self { clients: [Plan::NOTHING; 2], ..self }
    }

    /// The same model with no fault in it.
    #[must_use]
    pub fn sound(self) -> Self {
        Self { fault: None, ..self }
    }

    /// The same model, with states that differ by names alone taken for different ones: many more of them.
    #[must_use]
    pub fn without_renaming(self) -> Self {
        Self { renames: false, ..self }
    }

    pub(super) fn terms(&self, client: usize) -> Terms {
        let nodes = self.nodes;
        Terms {
            quorum: match self.fault {
                Some(Fault::HalfQuorum) => Quorum::planted(nodes, nodes / 2),
                Some(_) | None => Quorum::majority(nodes),
            },
            drift: Drift::DEFAULT,
            ttl: self.set_ttl(),
            node_timeout: self.node_timeout(),
            attempt_timeout: self.node_timeout(),
            max_hold: self.clients[client].max_hold.map(span),
            expiring_lead: None,
            jitter: 0,
            fenced: self.fenced,
        }
    }

    pub(super) const fn set_ttl(&self) -> Duration {
        ttl(self.ttl)
    }

    pub(super) const fn node_timeout(&self) -> Duration {
        span(self.node_timeout)
    }

    /// The longest ttl that is sent.
    pub(super) fn longest(&self) -> u8 {
        let extends = self.clients.iter().flat_map(|plan| plan.extends).copied();
        extends.max().unwrap_or(0).max(self.ttl)
    }

    pub(super) fn server_of(&self, node: usize) -> usize {
        match self.alias {
            Some((first, second)) if node == second => first,
            Some(_) | None => node,
        }
    }

    pub(super) fn is_one_token(&self) -> bool {
        self.fault == Some(Fault::OneToken)
    }

    /// Whether all nodes may do the same.
    pub(super) fn nodes_are_alike(&self) -> bool {
        let alike = |at: [bool; NODES]| at == [at[0]; NODES];
        let faults = (self.breaks == [0, 0] || alike(self.break_at))
            && (self.forgets == 0 || alike(self.forget_at))
            && (self.restarts == 0 || alike(self.restart_at));
        self.renames && faults && self.alias.is_none() && usize::from(self.nodes) == NODES
    }

    /// Whether both clients may do the same.
    pub(super) fn clients_are_alike(&self) -> bool {
        self.renames && self.clients[0] == self.clients[1] && self.breaks[0] == self.breaks[1]
    }
}

/// The models with the bounds that are checked on every change, the longest first.
#[must_use]
pub fn models() -> Vec<Model> {
    vec![
        fence_repair(),
        restart(),
        extend(),
        renewal(),
        one_node(),
        fence(),
        fence_late(),
        fence_forget(),
        rivals(),
        repair(),
        shorter(),
        alias(),
        amnesia(),
        outbox(),
        attempts(),
        fence_clocks(),
        connect(),
    ]
}

/// What the fenced models have in common. A tick never comes: keys are gone at any moment instead.
pub(super) const FENCED: Model = Model {
    horizon: 0,
    fenced: true,
    starts: &[0, 1],
    expires: true,
    forget_at: ALL,
    checks_support: false,
    ..Model::NOTHING
};
/// One attempt, which may be given up, or whose lock may end, as soon as another is made.
pub(super) const GRANT: Plan = Plan { attempts: 1, abandons: true, releases: true, ..Plan::NOTHING };
/// Two of them.
pub(super) const GRANTS: Plan = Plan { attempts: 2, ..GRANT };

/// Fenced attempts after one another: keys that are gone at any moment, and counters that differ.
fn fence() -> Model {
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
fn fence_late() -> Model {
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
fn fence_forget() -> Model {
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
pub(super) const HOLDER: Plan = Plan { extends: &[3], extends_at_most: 1, ..GRANT };

/// Repairs of nodes that forgot their keys, after the holder has lost the lock too.
fn fence_repair() -> Model {
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
fn fence_clocks() -> Model {
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

/// Larger bounds: minutes, and some gigabytes.
#[must_use]
pub fn deep_models() -> Vec<Model> {
    let mut longer = renewal();
    longer.clients[0].max_hold = Some(5);
    longer.horizon = 5;
    let mut any_order = shorter();
    any_order.clients[0].extends_in_order = false;
    let mut more_extends = one_node();
    more_extends.clients[0].extends_at_most = 3;
    let mut released = extend();
    released.clients[0].releases = true;
    let mut two_extends = alias();
    two_extends.clients[0].extends = &[1, 3];
    two_extends.clients[0].extends_at_most = 2;
    let mut later_repair = Model { horizon: 2, ..repair() };
    later_repair.clients[0].extends_at_most = 1;
    let mut any_time = outbox();
    any_time.clients[1].start_from = 0;
    let four = Model { clients: [GRANTS, GRANTS], starts: &[0, 1], ..fence() };
    let broken_repair = Model {
        clients: [HOLDER, GRANT],
        breaks: [1, 0],
        sometimes: &[Met::Repaired, Met::LateRepair, Met::LateRan, Met::CounterRestarted],
        ..fence_repair()
    };
    vec![
        four,
        Model { starts: &[0, 1], ..fence_late() },
        broken_repair,
        Model { ended_at_once: false, ..connect() },
        Model { ended_at_once: false, ..attempts() },
        Model { horizon: 3, ..rivals() },
        longer,
        released,
        more_extends,
        any_order,
        later_repair,
        two_extends,
        Model { horizon: 3, ..restart() },
        Model { horizon: 2, ..amnesia() },
        any_time,
    ]
}

/// One attempt at once: that it may as well start later is the same but for the horizon.
const ATTEMPT: Plan = Plan { attempts: 1, ..Plan::NOTHING };
/// One attempt at any time.
pub(super) const RIVAL: Plan = Plan { start_until: u8::MAX, ..ATTEMPT };

/// Attempts after one another, with replies and commands that are lost or late.
fn attempts() -> Model {
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
fn rivals() -> Model {
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
fn connect() -> Model {
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
fn extend() -> Model {
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
fn one_node() -> Model {
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
fn shorter() -> Model {
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
fn repair() -> Model {
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

/// Two of the nodes are one server (R14a, R24).
fn alias() -> Model {
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
fn restart() -> Model {
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
fn amnesia() -> Model {
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
fn renewal() -> Model {
    Model {
        name: "renewal",
        clients: [Plan { max_hold: Some(4), ..ATTEMPT }, Plan { start_from: 3, ..RIVAL }],
        horizon: 4,
        sometimes: &[Met::Renewed, Met::ExtendFailed, Met::Expired, Met::Expiring, Met::HandedOver],
        ..Model::NOTHING
    }
}

/// Commands that are handed out later than they were asked for.
fn outbox() -> Model {
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
