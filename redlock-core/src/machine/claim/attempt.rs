//! The attempt: a SET on every node, and the decision (R2–R7).

use super::{Claim, Effect, EndReason, NodeState, Phase, Reach, SetState, Verb};
use crate::ids::NodeId;
use crate::machine::quorum::{Answer, RoundLoss, Tally, Verdict};
use crate::time::Instant;
use alloc::vec::Vec;

impl Claim {
    pub(super) fn send_set(&mut self, node: NodeId, effects: &mut Vec<Effect>) {
        let Some(state) = self.node_mut(node) else { return };
        state.set = SetState::Queued;
        state.muted = state.reach == Reach::Quarantined;
        state.queued += 1;
        effects.push(Effect::Send(node, Verb::Set));
    }

    pub(super) fn set_unsent(&mut self, node: NodeId) {
        if let Some(state) = self.node_mut(node) {
            state.set = SetState::Unsent;
        }
    }

    pub(super) fn on_set_answer(
        &mut self,
        node: NodeId,
        answer: Answer,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let (start, validity) = (self.start, self.validity);
        let granted = match answer {
            Answer::Yes => !self.terms.fenced,
            Answer::Counters { .. } => self.terms.fenced,
            Answer::No | Answer::NotApplied | Answer::FormRefused | Answer::Replaced | Answer::Ambiguous => {
                false
            }
        };
        let Some(state) = self.node_mut(node) else { return };
        state.set = match answer {
            Answer::Yes | Answer::Counters { .. } if granted => SetState::Granted,
            Answer::No => SetState::Refused,
            Answer::NotApplied | Answer::FormRefused | Answer::Replaced => SetState::Failed,
            Answer::Ambiguous | Answer::Yes | Answer::Counters { .. } => SetState::Ambiguous,
        };
        if let Answer::Counters { lowest, highest } = answer {
            (state.counter, state.highest) = (Some(lowest), highest);
        }
        if granted && !state.muted && !state.void {
            state.support.confirm_set(start, validity);
        }
        state.gone |= answer == Answer::No;
        match self.phase {
            Phase::Attempting => self.evaluate_attempt(now, effects),
            Phase::Held => {
                self.raise_where_behind(effects);
                self.refresh(now, EndReason::TokenGone, effects);
            }
            Phase::Ended(_) => {}
        }
    }

    pub(super) fn tally(&self) -> Tally {
        Tally::count(self.nodes.iter().map(NodeState::vote))
    }

    pub(super) fn evaluate_attempt(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if self.phase != Phase::Attempting {
            return;
        }
        match self.tally().verdict(self.terms.quorum) {
            Verdict::Pending => {}
            Verdict::Lost(loss) => self.lose_attempt(loss, now, effects),
            Verdict::Won if self.terms.fenced => self.evaluate_fence(now, effects),
            Verdict::Won => self.grant(now, effects),
        }
    }

    /// A quorum agrees: the lock is held, if any of its time is left (R6).
    pub(super) fn grant(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let deadline = self.start.saturating_add(self.validity);
        if now >= deadline {
            return self.lose_attempt(RoundLoss::TooSlow, now, effects);
        }
        self.phase = Phase::Held;
        self.deadline = deadline;
        effects.push(Effect::Granted { deadline, fence: self.fence });
    }

    pub(super) fn lose_attempt(&mut self, loss: RoundLoss, now: Instant, effects: &mut Vec<Effect>) {
        self.end(EndReason::NotAcquired, now, effects);
        effects.push(Effect::AttemptLost(loss));
    }
}
