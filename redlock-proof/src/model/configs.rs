//! What a model is: what can happen in it, and how much of it.

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
    /// How often it looks at a key of its own, to see whether it is there.
    pub(super) looks_at_most: u8,
    pub(super) max_hold: Option<u8>,
    /// It is a candidate: its attempts are those of its campaigns. Then `abandons` is that campaigns are called off, `releases`
    /// that the leader resigns.
    pub(super) campaigns: bool,
    /// How many of its campaigns fail for a reason that waiting does not mend.
    pub(super) fails_at_most: u8,
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
        looks_at_most: 0,
        max_hold: None,
        campaigns: false,
        fails_at_most: 0,
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
    /// Whether fences are compared: not where a clock is behind.
    pub(super) compares_fences: bool,
    /// How long a candidate that has led rests.
    pub(super) rest: u8,
    /// Whether a candidate may hear later than it could that it is elected.
    pub(super) hears_later: bool,
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

pub(super) const FIRST: [bool; NODES] = [true, false, false];
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
        compares_fences: true,
        rest: 0,
        hears_later: false,
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

    /// Whether anybody looks at keys.
    pub(super) fn looks(&self) -> bool {
        self.clients.iter().any(|plan| plan.looks_at_most > 0)
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
