//! A fenced attempt's second step: one number that a quorum of the nodes holds.
//!
//! Every grant of a node comes with its keys' counters, which the same script has just counted up.
//!
//! 1. Once a quorum has granted, the *fence* is the largest counter among the granting nodes. It does not move again.
//! 2. A node *holds* the fence if all its counters are exactly there, by themselves or since they were raised. Where a
//!    quorum does at once, that was one round trip. A late grant with a counter *beyond* the fence does not hold it:
//!    somebody else may have counted there meanwhile, and hold the same number on the other nodes.
//! 3. Else the counters that are behind are raised, on a node only if its keys are still ours; the lock is granted when
//!    a quorum holds the fence, within the attempt's time.
//!
//! Why it grows: the next grant's quorum has a node in common with the one that holds this fence, and counts on from
//! there. Why only while the keys are ours: a raise that comes late would lift a counter that a later owner's fence was
//! taken from, on that node alone, and make two owners' numbers meet. Taking the largest counter without the second step
//! hands out one number twice as soon as the nodes' counters differ.
//!
//! In which order: a fence is larger than every one that was granted before its attempt started, and no two are the same,
//! whatever happens to keys, replies and clocks (the model check's `Property::Fence`). Two attempts that overlap are in the
//! order of their fences, not always of their grants: an attempt whose keys were gone early may be granted after another,
//! with the smaller number. Where keys live as long as they should, it is the order of the grants too.
//!
//! Counters start from the node's clock, so one that a node forgot goes on above what it had, unless that clock is
//! behind the last number: the assumption under which fences grow.

use super::{Claim, Effect, EndReason, NodeState, Phase, RaiseState, SetState, Verb};
use crate::ids::NodeId;
use crate::machine::quorum::{Answer, Tally, Verdict, Vote};
use crate::time::Instant;
use alloc::vec::Vec;

impl NodeState {
    /// Whether its counters are known to be at the fence.
    fn holds(&self, fence: u64) -> bool {
        self.raise == RaiseState::Done || (self.counter == Some(fence) && self.highest == fence)
    }

    /// Its vote on the second step; `None` while it may still come to hold the fence.
    pub(super) fn fence_vote(&self, fence: u64) -> Option<Vote> {
        match self.vote() {
            // The key is its attempt's, the number is of a later one.
            Some(Vote::Granted) if self.highest > fence => Some(Vote::Refused),
            Some(Vote::Granted) if !self.holds(fence) => match self.raise {
                RaiseState::None if self.reach.is_out() => Some(Vote::Failed),
                // It is raised (again) once its connection stands.
                RaiseState::None | RaiseState::Queued | RaiseState::Sent => None,
                RaiseState::Refused => Some(Vote::Refused),
                RaiseState::Failed => Some(Vote::Failed),
                RaiseState::Done => Some(Vote::Granted),
            },
            vote => vote,
        }
    }
}

impl Claim {
    /// A quorum has granted: names the fence if that is not done, and decides as early as it is certain.
    pub(super) fn evaluate_fence(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let granting = self.nodes.iter().filter(|state| state.vote() == Some(Vote::Granted));
        let largest = granting.map(|state| state.highest).max();
        let Some(fence) = self.fence.or(largest) else { return };
        self.fence = Some(fence);
        self.raise_where_behind(effects);
        let votes = self.nodes.iter().map(|state| state.fence_vote(fence));
        match Tally::count(votes).verdict(self.terms.quorum) {
            Verdict::Pending => {}
            Verdict::Lost(loss) => self.lose_attempt(loss, now, effects),
            Verdict::Won => self.grant(now, effects),
        }
    }

    /// Raises the counters of every granting node that is behind and can be reached. Of a lock that is held already, too:
    /// then a later grant finds them agreed, and takes one round trip.
    pub(super) fn raise_where_behind(&mut self, effects: &mut Vec<Effect>) {
        let Some(fence) = self.fence.filter(|_| !matches!(self.phase, Phase::Ended(_))) else { return };
        for node in self.node_ids() {
            let Some(state) = self.node_mut(node) else { continue };
            let granted = state.set == SetState::Granted && !state.void && !state.gone;
            let behind = granted && state.highest <= fence && !state.holds(fence);
            if state.raise == RaiseState::None && behind && state.reach.is_ready() {
                state.raise = RaiseState::Queued;
                state.queued += 1;
                effects.push(Effect::Send(node, Verb::Raise { fence }));
            }
        }
    }

    pub(super) fn on_raise_answer(
        &mut self,
        node: NodeId,
        answer: Answer,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let Some(state) = self.node_mut(node) else { return };
        state.raise = match answer {
            Answer::Yes => RaiseState::Done,
            Answer::No => RaiseState::Refused,
            Answer::NotApplied
            | Answer::FormRefused
            | Answer::Replaced
            | Answer::Ambiguous
            | Answer::Counters { .. } => RaiseState::Failed,
        };
        if answer == Answer::No {
            // As to an extension: the token is not there.
            state.support.void();
            state.gone = true;
        }
        match self.phase {
            Phase::Attempting => self.evaluate_attempt(now, effects),
            Phase::Held => self.refresh(now, EndReason::TokenGone, effects),
            Phase::Ended(_) => {}
        }
    }
}
