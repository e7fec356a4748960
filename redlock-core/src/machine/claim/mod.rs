//! One token's life: the attempt that sets it on every node, the hold, and the clean-up after its end.
//!
//! ```text
//!                      quorum granted                     release · deadline · token gone
//! Attempting ────────────────────────────▶ Held ─────────────────────────────────────────▶ Ended
//!     │                                     │ ▲                                              │
//!     │ quorum impossible · node timeout ·  └─┘ extensions, repairs                          │ answers, reconnects
//!     │ validity gone · cancelled                                                            ▼
//!     └─────────────────────────────────────────────────────────────────────────────────▶ finished: nothing is owed
//! ```
//!
//! Every attempt has a token of its own (R8), so a token has one attempt, and a reply to any of its commands can be
//! told apart from every other's for good. A claim does not know connections, only whether a node can be reached: a
//! reply from an old connection never gets here.
//!
//! A fenced attempt has two steps: a quorum of grants names the fence, and the lock is granted when a quorum holds it
//! or is raised to it. The transitions are in four files beside this one, which has the
//! inputs, `node` the states: `attempt`, `fence`, `hold` for what happens while the lock is held, `ending` for the clean-up.

mod attempt;
mod ending;
mod fence;
mod hold;
mod node;

use super::cleanup::{Cleanup, ReleaseVerdict};
use super::extend::{Round, RoundFailure};
use super::quorum::{Answer, Quorum, RoundLoss, Tally, Vote};
use super::renew::Renewal;
use super::support::Support;
use crate::ids::NodeId;
use crate::time::{Drift, Instant};
use alloc::vec::Vec;
use core::time::Duration;
use node::{NodeState, RaiseState, RepairState, SetState};

/// What a claim is for: fixed from its start on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    /// The number of nodes, and how many make a decision.
    pub quorum: Quorum,
    /// The allowance taken off every ttl.
    pub drift: Drift,
    /// The ttl that is sent: whole milliseconds.
    pub ttl: Duration,
    /// How long a node may take to answer a round.
    pub node_timeout: Duration,
    /// The same for the attempt: shorter where the wait has ended meanwhile (R10).
    pub attempt_timeout: Duration,
    /// For how long the lock is renewed, from the attempt's start; `None` if it is not.
    pub max_hold: Option<Duration>,
    /// How long before the deadline `Expiring` comes; `None` for a quarter of the time that was counted from the start.
    pub expiring_lead: Option<Duration>,
    /// Seeds the renewals' jitter; zero for none.
    pub jitter: u32,
    /// Whether it gets a fence: a number that grows from grant to grant.
    pub fenced: bool,
}

/// Whether a command can be handed to a node now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Yes.
    Ready,
    /// Yes, but it gives no vote to SET and gets no repair: it may have forgotten what it granted (R25).
    Quarantined,
    /// Only a release: it gives no vote since it lacks a right (R22), but what was set on it before is released on the
    /// connection that stands (R7).
    ReleaseOnly,
    /// Not yet: its connection is being made (R8a: connecting is not down).
    Connecting,
    /// No.
    Down,
}

impl Reach {
    const fn is_ready(self) -> bool {
        matches!(self, Self::Ready | Self::Quarantined)
    }

    const fn takes_releases(self) -> bool {
        matches!(self, Self::Ready | Self::Quarantined | Self::ReleaseOnly)
    }

    /// Whether neither a SET nor an extension can be handed to it, now or soon.
    const fn is_out(self) -> bool {
        matches!(self, Self::ReleaseOnly | Self::Down)
    }
}

/// A command of a claim to one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Set the token if the key is free.
    Set,
    /// Give the key a new ttl if it has the token.
    Extend {
        /// The round it belongs to.
        round: u32,
        /// This hand-out's number among the claim's; grows.
        hand_out: u32,
        /// What its validity is counted from.
        start: Instant,
        /// The new ttl.
        ttl: Duration,
    },
    /// Set the token if the key is free, for what is left (R15).
    Repair {
        /// What is left.
        ttl: Duration,
    },
    /// Raise the counters to the fence if the keys have the token: an acquire's second step, where they differ.
    Raise {
        /// The fence.
        fence: u64,
    },
    /// Delete the key if it has the token.
    Release,
}

/// Who asked for an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The user.
    Manual,
    /// The schedule of R16.
    Renewal,
}

/// Why a claim ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndReason {
    /// The attempt was lost, or called off.
    NotAcquired,
    /// The user released it.
    Released,
    /// The deadline in force passed.
    Expired,
    /// Too many nodes no longer have the token.
    TokenGone,
    /// A node turned out to be another one's second name, and no quorum was left without it (R24).
    Duplicate,
}

/// What a claim wants done, or has found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Queue this command for the node; say so with [`Claim::handed_out`] when it is handed out.
    Send(NodeId, Verb),
    /// Take back what is queued for the node and was not handed out yet, releases excepted.
    Withdraw(NodeId),
    /// The attempt won: the lock is held until then.
    Granted {
        /// start + ttl − drift.
        deadline: Instant,
        /// Its fence, if it is a fenced one.
        fence: Option<u64>,
    },
    /// The attempt was lost; its clean-up is under way.
    AttemptLost(RoundLoss),
    /// The deadline in force moved.
    DeadlineMoved {
        /// The new one.
        deadline: Instant,
    },
    /// A round of extension was decided.
    RoundDone {
        /// Its number.
        round: u32,
        /// Who asked for it.
        cause: Cause,
        /// The deadline in force, or why it failed.
        result: Result<Instant, RoundFailure>,
    },
    /// The deadline is near (R17).
    Expiring {
        /// The deadline in force.
        deadline: Instant,
    },
    /// The lock is lost: said once (R17).
    Lost(EndReason),
    /// The release that was asked for is decided.
    ReleaseDone(ReleaseVerdict),
    /// A node confirmed the token though it cannot have it: it is another node's second name (R14a).
    Alias(NodeId),
    /// The token was set again on a node that had lost it (R15).
    Repaired(NodeId),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Attempting,
    Held,
    Ended(EndReason),
}

/// One token's life. See the module's page.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    terms: Terms,
    /// What the ttl is good for.
    validity: Duration,
    phase: Phase,
    /// Taken before the first byte was handed out; every deadline counts from it (R1).
    start: Instant,
    nodes: Vec<NodeState>,
    /// The deadline in force, once granted.
    deadline: Instant,
    /// Once a quorum of nodes has granted.
    fence: Option<u64>,
    /// The start of the newest round that a quorum confirmed.
    newest_start: Instant,
    /// The longest ttl that was sent.
    longest_ttl: Duration,
    renewal: Option<Renewal>,
    /// The deadline of which `Expiring` was said.
    expiring_said: Option<Instant>,
    rounds: Vec<Round>,
    next_round: u32,
    next_hand_out: u32,
    /// The newest round of which an extension was queued or handed out.
    newest_round_out: u32,
    /// When the release that was asked for is answered at the latest, while it is undecided.
    release_until: Option<Instant>,
}

impl Claim {
    /// Starts an attempt at `now`: a SET for every node that can be reached, at once (R2). `reach` has one entry per node.
    pub fn new(
        terms: Terms,
        reach: impl IntoIterator<Item = Reach>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> Self {
        let mut claim = Self::empty(terms, now, Vec::new(), Vec::new());
        claim.start_on(reach, effects);
        claim
    }

    /// As [`new`](Self::new), in the place and the memory of a claim that is finished.
    pub fn restart(
        &mut self,
        terms: Terms,
        reach: impl IntoIterator<Item = Reach>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let (mut nodes, mut rounds) = (core::mem::take(&mut self.nodes), core::mem::take(&mut self.rounds));
        nodes.clear();
        rounds.clear();
        *self = Self::empty(terms, now, nodes, rounds);
        self.start_on(reach, effects);
    }

    fn empty(terms: Terms, now: Instant, nodes: Vec<NodeState>, rounds: Vec<Round>) -> Self {
        let (ttl, validity) = (terms.ttl, terms.drift.validity(terms.ttl));
        let renewal = terms.max_hold.map(|hold| Renewal::new(now.saturating_add(hold), ttl, terms.jitter));
        Self {
            terms,
            validity,
            phase: Phase::Attempting,
            start: now,
            nodes,
            deadline: Instant::ZERO,
            fence: None,
            newest_start: now,
            longest_ttl: ttl,
            renewal,
            expiring_said: None,
            rounds,
            next_round: 1,
            next_hand_out: Support::SET + 1,
            newest_round_out: 0,
            release_until: None,
        }
    }

    fn start_on(&mut self, reach: impl IntoIterator<Item = Reach>, effects: &mut Vec<Effect>) {
        let now = self.start;
        self.nodes.reserve_exact(usize::from(self.terms.quorum.nodes()));
        self.nodes.extend(reach.into_iter().map(|reach| NodeState::new(reach, now)));
        for node in self.node_ids() {
            if self.node(node).is_some_and(|state| state.reach.is_ready()) {
                self.send_set(node, effects);
            }
        }
        self.evaluate_attempt(now, effects);
    }

    // ---- inputs ----

    /// A command that was asked for is handed out to the node now.
    pub fn handed_out(&mut self, node: NodeId, verb: Verb, now: Instant, effects: &mut Vec<Effect>) {
        let drift = self.terms.drift;
        let Some(state) = self.node_mut(node) else { return };
        if verb != Verb::Release {
            state.queued = state.queued.saturating_sub(1);
            state.touched = true;
        }
        match verb {
            Verb::Set => state.set = SetState::Sent,
            Verb::Repair { .. } => state.repair = RepairState::Sent,
            Verb::Raise { .. } => state.raise = RaiseState::Sent,
            Verb::Release => state.cleanup = Cleanup::Sent,
            Verb::Extend { hand_out, start, ttl, .. } => {
                state.support.hand_out(hand_out, start, drift.validity(ttl));
                self.longest_ttl = self.longest_ttl.max(ttl);
                self.refresh(now, EndReason::Expired, effects);
            }
        }
    }

    /// The node answered a command that was handed out to it on the connection that stands.
    pub fn answered(
        &mut self,
        node: NodeId,
        verb: Verb,
        answer: Answer,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        if let (Some(state), true) = (self.node_mut(node), verb != Verb::Release) {
            state.last_answer = now;
        }
        match verb {
            Verb::Set => self.on_set_answer(node, answer, now, effects),
            Verb::Extend { round, hand_out, .. } => {
                self.on_extend_answer(node, round, hand_out, answer, now, effects)
            }
            Verb::Repair { .. } => self.on_repair_answer(node, answer, effects),
            Verb::Raise { .. } => self.on_raise_answer(node, answer, now, effects),
            Verb::Release => self.on_release_answer(node, answer, now, effects),
        }
    }

    /// The node's connection broke, or was given up: what is unanswered on it may run at any later time. `reach` is
    /// [`Reach::Connecting`] if another one is made at once.
    pub fn broken(&mut self, node: NodeId, reach: Reach, now: Instant, effects: &mut Vec<Effect>) {
        let Some(state) = self.node_mut(node) else { return };
        state.doubt |= state.is_waiting();
        state.reach = reach;
        state.queued = 0;
        state.support.broken();
        state.set = match state.set {
            SetState::Sent => SetState::Ambiguous,
            SetState::Queued | SetState::Waiting if reach == Reach::Connecting => SetState::Waiting,
            SetState::Queued | SetState::Waiting => SetState::Unsent,
            set @ (SetState::Granted
            | SetState::Refused
            | SetState::Failed
            | SetState::Ambiguous
            | SetState::Unsent) => set,
        };
        state.repair = match state.repair {
            RepairState::Sent => RepairState::Ambiguous,
            RepairState::Queued => RepairState::None,
            repair @ (RepairState::None
            | RepairState::Granted
            | RepairState::Refused
            | RepairState::Ambiguous) => repair,
        };
        if matches!(state.raise, RaiseState::Queued | RaiseState::Sent) {
            // Whether it ran or not, it can be sent again: to raise twice is to raise once.
            state.raise = RaiseState::None;
        }
        if matches!(state.cleanup, Cleanup::Queued | Cleanup::Sent) {
            state.unheard |= state.cleanup == Cleanup::Sent;
            state.cleanup = Cleanup::Owed;
        }
        match self.phase {
            Phase::Attempting => self.evaluate_attempt(now, effects),
            Phase::Held => self.rounds_broken(node, reach, now, effects),
            Phase::Ended(_) => self.evaluate_release(now, effects),
        }
    }

    /// The node's connection is ready for commands: what is owed to it goes out, and a SET that is not too late (R8a).
    pub fn ready(&mut self, node: NodeId, reach: Reach, now: Instant, effects: &mut Vec<Effect>) {
        let in_time = now < self.start.saturating_add(self.terms.attempt_timeout);
        let Some(state) = self.node_mut(node) else { return };
        state.reach = reach;
        let set = state.set;
        match self.phase {
            Phase::Attempting | Phase::Held => {
                if matches!(set, SetState::Waiting | SetState::Unsent) {
                    if in_time {
                        self.send_set(node, effects);
                    } else {
                        self.set_unsent(node);
                    }
                }
                self.raise_where_behind(effects);
                self.rounds_ready(node, now, effects);
            }
            Phase::Ended(_) => self.send_owed(node, effects),
        }
    }

    /// The node can be reached, or not, in another way than before, without a connection that stood being lost.
    pub fn reach_changed(&mut self, node: NodeId, reach: Reach, now: Instant, effects: &mut Vec<Effect>) {
        let Some(state) = self.node_mut(node) else { return };
        state.reach = reach;
        if reach.is_out() {
            if state.set == SetState::Waiting {
                state.set = SetState::Unsent;
            }
            match self.phase {
                Phase::Attempting => self.evaluate_attempt(now, effects),
                Phase::Held => self.rounds_broken(node, reach, now, effects),
                Phase::Ended(_) => self.evaluate_release(now, effects),
            }
        }
    }

    /// The node is another one's second name: its vote and its support leave at once (R24).
    pub fn void(&mut self, node: NodeId, now: Instant, effects: &mut Vec<Effect>) {
        let Some(state) = self.node_mut(node) else { return };
        state.void = true;
        state.support.void();
        match self.phase {
            Phase::Attempting => self.evaluate_attempt(now, effects),
            Phase::Held => self.refresh(now, EndReason::Duplicate, effects),
            Phase::Ended(_) => {}
        }
    }

    /// Whatever was due at or before `now`.
    pub fn timeout(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        match self.phase {
            Phase::Attempting => {
                if now >= self.start.saturating_add(self.validity) {
                    self.lose_attempt(RoundLoss::TooSlow, now, effects);
                } else if now >= self.start.saturating_add(self.terms.attempt_timeout) {
                    let votes = self.node_ids().map(|node| self.vote(node));
                    let loss = Tally::count(votes).loss(self.terms.quorum);
                    self.lose_attempt(loss, now, effects);
                }
            }
            Phase::Held => self.hold_timeout(now, effects),
            Phase::Ended(_) => self.ending_timeout(now, effects),
        }
    }

    /// The attempt is called off; nothing is held.
    pub fn abandon(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        match self.phase {
            Phase::Attempting => self.end(EndReason::NotAcquired, now, effects),
            Phase::Held => self.end(EndReason::Released, now, effects),
            Phase::Ended(_) => {}
        }
    }

    // ---- getters ----

    /// When [`timeout`](Self::timeout) is to be called next.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Attempting => {
                let patience = self.terms.attempt_timeout.min(self.validity);
                Some(self.start.saturating_add(patience))
            }
            Phase::Held => Some(self.hold_next_timeout()),
            Phase::Ended(_) => self.ending_next_timeout(),
        }
    }

    /// When the attempt started.
    #[must_use]
    pub const fn start(&self) -> Instant {
        self.start
    }

    /// The deadline in force; meaningless before the attempt has won.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// What it is for.
    #[must_use]
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Whether the attempt is undecided.
    #[must_use]
    pub fn is_attempting(&self) -> bool {
        self.phase == Phase::Attempting
    }

    /// Whether the lock is held, as far as was known at the last input.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.phase == Phase::Held
    }

    /// Why it ended, if it did.
    #[must_use]
    pub const fn ended(&self) -> Option<EndReason> {
        match self.phase {
            Phase::Ended(reason) => Some(reason),
            Phase::Attempting | Phase::Held => None,
        }
    }

    /// Whether nothing is left to be done or waited for.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
            && self.release_until.is_none()
            && self.nodes.iter().all(|node| matches!(node.cleanup, Cleanup::Done(_)))
    }

    /// Until when the node supports the lock (R14), `None` if it does not.
    #[must_use]
    pub fn support(&self, node: NodeId) -> Option<Instant> {
        self.node(node).and_then(|state| state.support.until())
    }

    /// The node's vote on the attempt, in its second step once a fence is named; `None` while it is out.
    #[must_use]
    pub fn vote(&self, node: NodeId) -> Option<Vote> {
        let state = self.node(node)?;
        self.fence.map_or_else(|| state.vote(), |fence| state.fence_vote(fence))
    }

    /// The lock's fence, once it is held; `None` if it is not a fenced one.
    #[must_use]
    pub const fn fence(&self) -> Option<u64> {
        self.fence
    }

    /// Whether its vote on the attempt does not count, whatever it is: it was quarantined when it was asked (R25).
    #[must_use]
    pub fn is_muted(&self, node: NodeId) -> bool {
        self.node(node).is_some_and(|state| state.muted)
    }

    /// Whether the node's latest answer is that the token is not there.
    #[must_use]
    pub fn is_gone(&self, node: NodeId) -> bool {
        self.node(node).is_some_and(|state| state.gone)
    }

    // ---- helpers ----

    fn node(&self, node: NodeId) -> Option<&NodeState> {
        self.nodes.get(node.index())
    }

    fn node_mut(&mut self, node: NodeId) -> Option<&mut NodeState> {
        self.nodes.get_mut(node.index())
    }

    fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..u8::try_from(self.nodes.len()).unwrap_or(u8::MAX)).map(NodeId::new)
    }
}
