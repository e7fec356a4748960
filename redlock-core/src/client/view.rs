//! What can be looked at: locks and nodes as they stand.

use super::Client;
use super::claims::Entry;
use crate::error::NodeFault;
use crate::event::NodeVote;
use crate::ids::{Fence, LockId, NodeId};
use crate::machine::Vote;
use crate::node::{Node, State, VoteCounts};
use crate::time::Instant;
use crate::wire::handshake::identity;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use bytes::Bytes;
use core::fmt;
use core::time::Duration;

/// A lock as it stands.
pub struct LockView<'a> {
    entry: &'a Entry,
    nodes: &'a [Node],
}

/// Without the token (R26).
impl fmt::Debug for LockView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockView").field("claim", &self.entry.claim).finish_non_exhaustive()
    }
}

impl LockView<'_> {
    /// Whether it is held at `now`: from the deadline in force alone (R13).
    #[must_use]
    pub fn is_held(&self, now: Instant) -> bool {
        self.entry.claim.is_held() && now < self.entry.claim.deadline()
    }

    /// The deadline in force: the q-th largest support (R14).
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.entry.claim.deadline()
    }

    /// Its fence; `None` if none was asked for.
    #[must_use]
    pub fn fence(&self) -> Option<Fence> {
        self.entry.claim.fence().map(Fence)
    }

    /// The start of the winning attempt.
    #[must_use]
    pub fn start(&self) -> Instant {
        self.entry.claim.start()
    }

    /// Its keys on the servers, the prefix included.
    #[must_use]
    pub fn keys(&self) -> &[Bytes] {
        &self.entry.keys
    }

    /// How each node stands to it, in the order of the configuration.
    pub fn votes(&self) -> impl Iterator<Item = (NodeId, NodeVote)> {
        let claim = &self.entry.claim;
        self.nodes.iter().map(move |node| {
            let vote = match (claim.support(node.id), claim.vote(node.id)) {
                (Some(until), _) => NodeVote::Confirmed { until },
                (None, _) if claim.is_gone(node.id) => NodeVote::Gone,
                (None, Some(Vote::Failed)) => NodeVote::Failed,
                (None, Some(Vote::Granted | Vote::Refused | Vote::Unsent | Vote::Ambiguous) | None) => {
                    NodeVote::Silent
                }
            };
            (node.id, vote)
        })
    }
}

/// How a node stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeStatus {
    /// Its index in the configuration.
    pub node: NodeId,
    /// Its address, without the password.
    pub address: Arc<str>,
    /// Whether it takes part.
    pub state: NodeState,
    /// What it says it is, such as `valkey 9.1.2`.
    pub server: Option<String>,
    /// Its run id, which changes with every restart; `None` where `INFO` is refused: restarts and second names of one
    /// server go unnoticed then.
    pub run_id: Option<String>,
    /// Commands that it has not answered yet.
    pub in_flight: usize,
    /// How it has voted so far.
    pub votes: VoteCounts,
}

/// Whether a node takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeState {
    /// It does.
    Ready,
    /// Its connection is being made; why the last one failed, if one did.
    Connecting(Option<NodeFault>),
    /// It does not; the next connection is tried at that time.
    Down {
        /// Why.
        fault: NodeFault,
        /// When it is tried again.
        retry_at: Instant,
    },
    /// It answers, but was started so recently that its votes do not count yet (R25).
    Quarantined {
        /// For how long they do not.
        left: Duration,
    },
    /// It answers, but cannot take part until it is connected anew.
    Unusable(NodeFault),
    /// The client is closed.
    Closed,
}

impl Node {
    pub(super) fn status(&self, now: Instant) -> NodeStatus {
        let state = match &self.state {
            State::Ready { .. } => match &self.missing_right {
                Some(error) => NodeState::Unusable(NodeFault::MissingRight(error.clone())),
                None => match self.quarantined(now) {
                    Some(NodeFault::Quarantined { left }) => NodeState::Quarantined { left },
                    Some(fault) => NodeState::Unusable(fault),
                    None => NodeState::Ready,
                },
            },
            State::Connecting { .. } | State::Handshaking { .. } => NodeState::Connecting(self.fault.clone()),
            State::Down { retry_at } => NodeState::Down { fault: self.why_not(now), retry_at: *retry_at },
            State::Closed => NodeState::Closed,
        };
        let greeting = self.greeting.as_ref();
        let who = greeting.and_then(|greeting| identity(greeting.hello.as_ref(), greeting.info.as_ref()));
        NodeStatus {
            node: self.id,
            address: self.label.clone(),
            state,
            server: who.map(|(product, version)| format!("{} {version}", product.name())),
            run_id: self.run_id().map(ToString::to_string),
            in_flight: self.pipeline(),
            votes: self.votes,
        }
    }
}

impl Client {
    pub(super) fn view_lock(&self, lock: LockId) -> Option<LockView<'_>> {
        let entry = self.claims.get(lock.0).filter(|entry| !entry.claim.is_attempting())?;
        Some(LockView { entry, nodes: &self.nodes })
    }
}
