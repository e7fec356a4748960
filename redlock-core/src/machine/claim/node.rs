//! What a claim knows of one node.

use super::Reach;
use crate::machine::cleanup::Cleanup;
use crate::machine::quorum::Vote;
use crate::machine::support::Support;
use crate::time::Instant;

/// How far the claim's SET is with one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SetState {
    /// The node is connecting.
    Waiting,
    /// In the outbox.
    Queued,
    Sent,
    Granted,
    Refused,
    Failed,
    Ambiguous,
    Unsent,
}

/// How far the claim's repair is with one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum RepairState {
    None,
    Queued,
    Sent,
    Granted,
    Refused,
    Ambiguous,
}

/// How far the raise of the node's counters to the claim's fence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum RaiseState {
    None,
    Queued,
    Sent,
    Done,
    /// The key was not ours any more.
    Refused,
    Failed,
}

/// What the claim knows of one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeState {
    pub(super) reach: Reach,
    pub(super) set: SetState,
    pub(super) repair: RepairState,
    /// The lowest of its keys' counters, as its grant told; of a fenced claim only.
    pub(super) counter: Option<u64>,
    /// The highest of them.
    pub(super) highest: u64,
    pub(super) raise: RaiseState,
    pub(super) cleanup: Cleanup,
    /// Commands of this claim in the outbox, the release not counted.
    pub(super) queued: u8,
    /// Its SET was sent while it gave no vote (R25).
    pub(super) muted: bool,
    /// Out of every count: another node's second name (R24).
    pub(super) void: bool,
    /// A byte of a command of this claim was handed out to it.
    pub(super) touched: bool,
    /// A connection broke with a SET, repair or extension of ours unanswered: it may run at any later time.
    pub(super) doubt: bool,
    /// A connection broke with a release unanswered: that one may have deleted the key, so that the next finds nothing.
    pub(super) unheard: bool,
    /// Its latest answer is that the token is not there, and no repair was granted since.
    pub(super) gone: bool,
    /// When it last answered a SET, repair or extension.
    pub(super) last_answer: Instant,
    pub(super) support: Support,
}

impl NodeState {
    /// What is known of a node before it is asked anything.
    pub(super) fn new(reach: Reach, now: Instant) -> Self {
        Self {
            reach,
            set: if reach.is_out() { SetState::Unsent } else { SetState::Waiting },
            repair: RepairState::None,
            counter: None,
            highest: 0,
            raise: RaiseState::None,
            cleanup: Cleanup::Idle,
            queued: 0,
            muted: false,
            void: false,
            touched: false,
            doubt: false,
            unheard: false,
            gone: false,
            last_answer: now,
            support: Support::default(),
        }
    }

    pub(super) fn vote(&self) -> Option<Vote> {
        if self.void {
            return Some(Vote::Failed);
        }
        match self.set {
            SetState::Waiting | SetState::Queued | SetState::Sent => None,
            SetState::Granted if self.muted => Some(Vote::Failed),
            SetState::Granted => Some(Vote::Granted),
            SetState::Refused => Some(Vote::Refused),
            SetState::Failed => Some(Vote::Failed),
            SetState::Ambiguous => Some(Vote::Ambiguous),
            SetState::Unsent => Some(Vote::Unsent),
        }
    }

    /// Whether a confirmation from this node can be of its own key (R14a).
    pub(super) fn may_confirm(&self) -> bool {
        matches!(self.set, SetState::Granted | SetState::Ambiguous)
            || matches!(self.repair, RepairState::Sent | RepairState::Granted | RepairState::Ambiguous)
    }

    /// Whether a SET, repair or extension is unanswered on the connection that stands.
    pub(super) fn is_waiting(&self) -> bool {
        self.set == SetState::Sent || self.repair == RepairState::Sent || self.support.is_waiting()
    }
}
