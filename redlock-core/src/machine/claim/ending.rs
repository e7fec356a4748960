//! After the end: the release on every node, and what it has learnt (R7, R18, R19).

use super::{Cause, Claim, Effect, EndReason, NodeState, Phase, RaiseState, RepairState, SetState, Verb};
use crate::ids::NodeId;
use crate::machine::cleanup::{Answers, Cleanup, ReleaseResult};
use crate::machine::extend::RoundFailure;
use crate::machine::quorum::Answer;
use crate::time::Instant;
use alloc::vec::Vec;
use core::time::Duration;

/// The servers' expiry has a resolution of 1 ms: a key set for p ms is gone p + 1 ms later at the latest.
const EXPIRY_RESOLUTION: Duration = Duration::from_millis(1);

impl NodeState {
    /// When the release owed to the node may be dropped: one ttl, the longest that was sent, after the last answer, if
    /// every SET, repair and extension there was answered; never else (R7).
    fn drop_at(&self, longest_ttl: Duration) -> Option<Instant> {
        let droppable = self.cleanup == Cleanup::Owed && !self.doubt && !self.is_waiting();
        let longest = longest_ttl.saturating_add(EXPIRY_RESOLUTION);
        droppable.then(|| self.last_answer.saturating_add(longest))
    }
}

impl Claim {
    /// The user releases the lock. Answers with [`Effect::ReleaseDone`], at once or within one node timeout; nothing if
    /// it is not held (any more).
    pub fn release(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if self.phase != Phase::Held {
            return;
        }
        self.release_until = Some(now.saturating_add(self.terms.node_timeout));
        self.end(EndReason::Released, now, effects);
        self.evaluate_release(now, effects);
    }

    /// Whether the node has to get a release before anything else once it can be reached.
    #[must_use]
    pub fn owes(&self, node: NodeId) -> bool {
        self.node(node).is_some_and(|state| state.cleanup == Cleanup::Owed)
    }

    /// Whether a release is under way: queued or handed out, and not answered.
    #[must_use]
    pub fn is_releasing(&self) -> bool {
        self.nodes.iter().any(|state| matches!(state.cleanup, Cleanup::Queued | Cleanup::Sent))
    }

    /// Nothing is held from now on: what is queued is withdrawn, and every node gets the release, on the connection of its
    /// SET where that stands, else after the next handshake.
    pub(super) fn end(&mut self, reason: EndReason, now: Instant, effects: &mut Vec<Effect>) {
        let was_held = self.phase == Phase::Held;
        self.phase = Phase::Ended(reason);
        for round in core::mem::take(&mut self.rounds) {
            if !round.decided {
                let cause = if round.renewal { Cause::Renewal } else { Cause::Manual };
                effects.push(Effect::RoundDone {
                    round: round.number,
                    cause,
                    result: Err(RoundFailure::Ended),
                });
            }
        }
        for node in self.node_ids() {
            let Some(state) = self.node_mut(node) else { continue };
            if state.queued > 0 {
                state.queued = 0;
                effects.push(Effect::Withdraw(node));
            }
            if matches!(state.set, SetState::Queued | SetState::Waiting) {
                state.set = SetState::Unsent;
            }
            if state.repair == RepairState::Queued {
                state.repair = RepairState::None;
            }
            if state.raise == RaiseState::Queued {
                state.raise = RaiseState::None;
            }
            state.cleanup = match (state.touched, state.reach.takes_releases()) {
                (true, true) => Cleanup::Queued,
                (true, false) => Cleanup::Owed,
                // It never saw the token. A lock that was held is released everywhere all the same (R18).
                (false, true) if was_held => Cleanup::Queued,
                (false, _) => Cleanup::Done(ReleaseResult::Nothing),
            };
            if state.cleanup == Cleanup::Queued {
                effects.push(Effect::Send(node, Verb::Release));
            }
        }
        self.drop_expired(now);
    }

    pub(super) fn send_owed(&mut self, node: NodeId, effects: &mut Vec<Effect>) {
        let Some(state) = self.node_mut(node) else { return };
        if state.cleanup == Cleanup::Owed {
            state.cleanup = Cleanup::Queued;
            effects.push(Effect::Send(node, Verb::Release));
        }
    }

    pub(super) fn on_release_answer(
        &mut self,
        node: NodeId,
        answer: Answer,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let Some(state) = self.node_mut(node) else { return };
        state.cleanup = match answer {
            Answer::Yes => Cleanup::Done(ReleaseResult::Deleted),
            Answer::No if state.unheard => Cleanup::Done(ReleaseResult::Gone),
            Answer::No => Cleanup::Done(ReleaseResult::NotOurs),
            Answer::NotApplied | Answer::Ambiguous | Answer::Counters { .. } => {
                Cleanup::Done(ReleaseResult::Nothing)
            }
            Answer::FormRefused | Answer::Replaced => Cleanup::Owed,
        };
        if answer == Answer::FormRefused && state.reach.takes_releases() {
            self.send_owed(node, effects);
        }
        self.evaluate_release(now, effects);
    }

    pub(super) fn evaluate_release(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let Some(until) = self.release_until else { return };
        let mut answers = Answers::default();
        for state in &self.nodes {
            match state.cleanup {
                Cleanup::Done(ReleaseResult::Deleted) => answers.deleted += 1,
                Cleanup::Done(ReleaseResult::NotOurs) => answers.not_ours += 1,
                Cleanup::Done(ReleaseResult::Gone | ReleaseResult::Nothing) | Cleanup::Idle => {}
                Cleanup::Queued | Cleanup::Sent => answers.pending += 1,
                Cleanup::Owed => answers.pending += u8::from(state.reach != super::Reach::Down),
            }
        }
        let last = now >= until;
        let verdict = answers.verdict(self.terms.quorum, now, self.deadline, last, || self.gone_by(now));
        if let Some(verdict) = verdict {
            self.release_until = None;
            effects.push(Effect::ReleaseDone(verdict));
        }
    }

    /// When the servers will have dropped the key wherever it may still be, as far as can be said.
    fn gone_by(&self, now: Instant) -> Instant {
        let longest = self.longest_ttl.saturating_add(EXPIRY_RESOLUTION);
        let unsure = |state: &&NodeState| {
            let is_sure = matches!(
                state.cleanup,
                Cleanup::Done(ReleaseResult::Deleted | ReleaseResult::Gone | ReleaseResult::NotOurs)
            );
            !is_sure && state.touched
        };
        let since =
            |state: &NodeState| if state.doubt || state.is_waiting() { now } else { state.last_answer };
        self.nodes
            .iter()
            .filter(unsure)
            .map(|state| since(state).saturating_add(longest))
            .max()
            .unwrap_or(now)
    }

    fn drop_expired(&mut self, now: Instant) {
        let longest = self.longest_ttl;
        for state in &mut self.nodes {
            if state.drop_at(longest).is_some_and(|at| now >= at) {
                state.cleanup = Cleanup::Done(ReleaseResult::Nothing);
            }
        }
    }

    pub(super) fn ending_timeout(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        self.drop_expired(now);
        self.evaluate_release(now, effects);
    }

    pub(super) fn ending_next_timeout(&self) -> Option<Instant> {
        let release = self.release_until.map(|until| until.min(self.deadline));
        let drop = self.nodes.iter().filter_map(|state| state.drop_at(self.longest_ttl)).min();
        match (release, drop) {
            (Some(release), Some(drop)) => Some(release.min(drop)),
            (one, other) => one.or(other),
        }
    }
}
