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
    pub(super) abandons: bool,
    pub(super) releases: bool,
    /// The ttls that it may extend to.
    pub(super) extends: &'static [u8],
    pub(super) extends_at_most: u8,
    pub(super) extend_until: u8,
    pub(super) max_hold: Option<u8>,
}

impl Plan {
    const NOTHING: Self = Self {
        attempts: 0,
        start_from: 0,
        start_until: u8::MAX,
        abandons: false,
        releases: false,
        extends: &[],
        extends_at_most: 0,
        extend_until: u8::MAX,
        max_hold: None,
    };
}

/// A model: a name and its bounds. All times are ticks.
#[derive(Clone, Debug)]
pub struct Model {
    pub(super) name: &'static str,
    pub(super) clients: [Plan; 2],
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
    pub(super) forgets: u8,
    pub(super) forget_at: [bool; NODES],
    pub(super) restarts: u8,
    pub(super) restart_at: [bool; NODES],
    /// Whether a server that restarted gives no vote for the longest ttl.
    pub(super) quarantine: bool,
    /// Two nodes that are one server; the second is the later one.
    pub(super) alias: Option<(usize, usize)>,
    /// Whether a client may find that out.
    pub(super) voids: bool,
    pub(super) hand_out: HandOut,
    /// Whether answers to a claim that has ended are read at once. A bound, not a reduction: what breaks in between is then
    /// only seen where the release itself is lost.
    pub(super) ended_read_at_once: bool,
    /// Whether the support of every node is compared with its server.
    pub(super) checks_support: bool,
    pub(super) fault: Option<Fault>,
    pub(super) sometimes: &'static [Met],
}

const FIRST: [bool; NODES] = [true, false, false];
const ALL: [bool; NODES] = [true; NODES];

impl Model {
    const NOTHING: Self = Self {
        name: "",
        clients: [Plan::NOTHING; 2],
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
        forgets: 0,
        forget_at: FIRST,
        restarts: 0,
        restart_at: FIRST,
        quarantine: false,
        alias: None,
        voids: false,
        hand_out: HandOut::AtOnce,
        ended_read_at_once: true,
        checks_support: true,
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

    pub(super) fn terms(&self, client: usize) -> Terms {
        let nodes = u8::try_from(NODES).unwrap_or(u8::MAX);
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

    /// Whether both clients may do the same.
    pub(super) fn clients_are_alike(&self) -> bool {
        self.clients[0] == self.clients[1] && self.breaks[0] == self.breaks[1]
    }
}

/// How many different claims and links there were.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// Claims.
    pub claims: usize,
    /// Links between a client and a node.
    pub links: usize,
}

/// The models with the bounds that are checked on every change, the longest first.
#[must_use]
pub fn models() -> Vec<Model> {
    vec![attempts()]
}

/// Larger bounds.
#[must_use]
pub fn deep_models() -> Vec<Model> {
    let env = |name: &str, or: u8| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let plan = Plan { attempts: 1, releases: env("REL", 1) == 1, start_until: env("STARTU", 1), ..Plan::NOTHING };
    let mut a = Plan { attempts: env("A", 1), start_until: env("ASU", 1), ..plan };
    if env("EXT", 0) > 0 { a.extends = &[1, 3]; a.extends_at_most = env("EXT", 0); }
    vec![Model {
        name: "x",
        clients: [a, Plan { attempts: env("B", 1), start_from: env("BSF", 0), ..plan }],
        horizon: env("H", 2),
        ttl: env("TTL", 3),
        node_timeout: env("NT", 1),
        breaks: [env("BR", 0), env("BRB", 0)],
        break_at: FIRST,
        ended_read_at_once: env("EAGER", 1) == 1,
        idle_breaks: env("IDLE", 0) == 1,
        ..Model::NOTHING
    }]
}

/// Two clients, one attempt after another, replies and commands that are lost or late.
fn attempts() -> Model {
    let plan = Plan { attempts: 1, releases: true, start_until: 1, ..Plan::NOTHING };
    Model {
        name: "attempts",
        clients: [Plan { attempts: 2, ..plan }, plan],
        horizon: 2,
        breaks: [1, 0],
        break_at: FIRST,
        sometimes: &[
            Met::Granted,
            Met::GrantedAgain,
            Met::AttemptLost,
            Met::LateRan,
            Met::Orphan,
            Met::OwedSent,
            Met::AllGone,
        ],
        ..Model::NOTHING
    }
}

/// For each fault the model in which it is looked for.
pub(super) fn models_for_faults() -> Vec<(Fault, Model)> {
    vec![]
}
