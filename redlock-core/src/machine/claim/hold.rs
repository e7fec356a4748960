//! While the lock is held: belief, extensions, repairs, renewal, loss (R14–R17).

use super::{Cause, Claim, Effect, EndReason, Phase, Reach, RepairState, Verb};
use crate::ids::NodeId;
use crate::machine::extend::{At, ExtendBar, Round, RoundFailure};
use crate::machine::quorum::{Answer, Verdict, Vote};
use crate::time::Instant;
use alloc::vec::Vec;
use core::time::Duration;

impl Claim {
    /// How many rounds of one lock may be open at once: undecided, or with answers outstanding.
    pub const OPEN_ROUNDS: usize = 16;

    /// Extends to `ttl` (whole milliseconds) from now. Answers with the round's number, or why nothing was sent.
    ///
    /// # Errors
    ///
    /// The lock is not held, `ttl` would reach beyond the end of `max_hold`, or too many rounds are open.
    pub fn extend(
        &mut self,
        ttl: Duration,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> Result<u32, ExtendBar> {
        if self.phase != Phase::Held || now >= self.deadline {
            return Err(ExtendBar::NotHeld);
        }
        let reached = now.saturating_add(self.terms.drift.validity(ttl));
        if self.renewal.as_ref().is_some_and(|renewal| reached > renewal.end()) {
            return Err(ExtendBar::BeyondMaxHold);
        }
        if self.rounds.len() >= Self::OPEN_ROUNDS {
            return Err(ExtendBar::TooMany);
        }
        Ok(self.start_round(ttl, false, now, effects))
    }

    fn start_round(&mut self, ttl: Duration, renewal: bool, now: Instant, effects: &mut Vec<Effect>) -> u32 {
        let number = self.next_round;
        self.next_round += 1;
        let until = now.saturating_add(self.terms.node_timeout);
        let validity = self.terms.drift.validity(ttl);
        self.rounds.push(Round::new(number, renewal, now, ttl, validity, until, self.terms.quorum.nodes()));
        for node in self.node_ids() {
            match self.node(node).map(|state| state.reach) {
                Some(Reach::Ready | Reach::Quarantined) => self.send_extension(number, node, now, effects),
                Some(Reach::Connecting) => self.set_at(number, node, At::Waiting),
                Some(Reach::ReleaseOnly | Reach::Down) | None => {}
            }
        }
        self.evaluate_round(number, now, effects);
        number
    }

    /// Hands the round's extension to the node, with a start of its own.
    fn send_extension(&mut self, number: u32, node: NodeId, now: Instant, effects: &mut Vec<Effect>) {
        let Some(ttl) = self.rounds.iter().find(|round| round.number == number).map(|round| round.ttl) else {
            return;
        };
        let hand_out = self.next_hand_out;
        self.next_hand_out += 1;
        self.newest_round_out = self.newest_round_out.max(number);
        if let Some(state) = self.node_mut(node) {
            state.queued += 1;
        }
        self.set_at(number, node, At::Sent);
        effects.push(Effect::Send(node, Verb::Extend { round: number, hand_out, start: now, ttl }));
    }

    fn set_at(&mut self, number: u32, node: NodeId, at: At) {
        if let Some(round) = self.rounds.iter_mut().find(|round| round.number == number) {
            round.set(node.index(), at);
        }
    }

    /// Whether the round's extension may be handed out again: it is undecided, and none of a later round was, or is about
    /// to be and would be overtaken (R14).
    fn may_resend(&self, number: u32, now: Instant) -> bool {
        self.phase == Phase::Held
            && number >= self.newest_round_out
            && self.rounds.iter().any(|round| round.number == number && !round.decided && now < round.until)
    }

    pub(super) fn on_extend_answer(
        &mut self,
        node: NodeId,
        number: u32,
        hand_out: u32,
        answer: Answer,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let resend = self.may_resend(number, now);
        let Some(state) = self.node_mut(node) else { return };
        let vote = match answer {
            Answer::Yes if !state.may_confirm() || state.void => {
                state.support.not_applied(hand_out);
                if !state.void {
                    effects.push(Effect::Alias(node));
                }
                Vote::Failed
            }
            Answer::Yes => {
                state.support.confirm(hand_out);
                state.gone = false;
                Vote::Granted
            }
            Answer::No => {
                state.support.gone(hand_out);
                state.gone = true;
                Vote::Refused
            }
            Answer::FormRefused if resend => {
                state.support.not_applied(hand_out);
                self.send_extension(number, node, now, effects);
                return self.refresh(now, EndReason::Expired, effects);
            }
            Answer::NotApplied | Answer::FormRefused | Answer::Replaced => {
                state.support.not_applied(hand_out);
                Vote::Failed
            }
            Answer::Ambiguous | Answer::Counters { .. } => {
                state.support.ambiguous(hand_out);
                Vote::Ambiguous
            }
        };
        if self.phase != Phase::Held {
            return;
        }
        self.set_at(number, node, At::Voted(vote));
        self.refresh(now, EndReason::TokenGone, effects);
        self.evaluate_round(number, now, effects);
    }

    pub(super) fn on_repair_answer(&mut self, node: NodeId, answer: Answer, effects: &mut Vec<Effect>) {
        let held = self.phase == Phase::Held;
        let Some(state) = self.node_mut(node) else { return };
        state.repair = match answer {
            Answer::Yes => RepairState::Granted,
            Answer::No => RepairState::Refused,
            Answer::NotApplied | Answer::FormRefused | Answer::Replaced => RepairState::None,
            Answer::Ambiguous | Answer::Counters { .. } => RepairState::Ambiguous,
        };
        // It gives no support of its own: that comes with the next extension that the node confirms.
        if answer == Answer::Yes {
            state.gone = false;
            if held {
                effects.push(Effect::Repaired(node));
            }
        }
    }

    /// The deadline in force anew: the q-th largest support (R14). It may rise only while the lock is held.
    pub(super) fn refresh(&mut self, now: Instant, reason: EndReason, effects: &mut Vec<Effect>) {
        if self.phase != Phase::Held {
            return;
        }
        let gone = self.nodes.iter().filter(|node| node.gone && !node.void).count();
        if gone >= usize::from(self.terms.quorum.blocking()) {
            return self.lose(EndReason::TokenGone, now, effects);
        }
        let Some(deadline) = self.supported_until().filter(|deadline| *deadline > now) else {
            return self.lose(reason, now, effects);
        };
        if deadline != self.deadline {
            self.deadline = deadline;
            effects.push(Effect::DeadlineMoved { deadline });
        }
    }

    /// The node was read, and the token is not there: its support is nothing (R14). The lock is lost once so many nodes' latest
    /// answer is that the token is not there that no quorum can have it, or once no quorum of supports is left. Those that
    /// refused the SET are among the former, those that have said nothing are not.
    pub fn read_without_token(&mut self, node: NodeId, now: Instant, effects: &mut Vec<Effect>) {
        if self.phase != Phase::Held {
            return;
        }
        let Some(state) = self.node_mut(node) else { return };
        state.gone = true;
        state.support.read_gone();
        self.refresh(now, EndReason::TokenGone, effects);
    }

    /// The q-th largest support: the largest ones in order, in an array. More nodes than it has places are counted through
    /// for each of them instead, which is quadratic, and without an allocation too.
    fn supported_until(&self) -> Option<Instant> {
        let needed = usize::from(self.terms.quorum.needed());
        let supports = || self.nodes.iter().filter(|node| !node.void).filter_map(|node| node.support.until());
        let mut largest = [Instant::ZERO; 8];
        let Some(largest) = largest.get_mut(..needed.max(1)) else {
            let reach = |support: &Instant| supports().filter(|other| other >= support).count() >= needed;
            return supports().filter(reach).max();
        };
        let mut count = 0;
        for mut support in supports() {
            count += 1;
            for place in &mut *largest {
                if support > *place {
                    core::mem::swap(&mut support, place);
                }
            }
        }
        if count >= needed { largest.last().copied() } else { None }
    }

    fn evaluate_round(&mut self, number: u32, now: Instant, effects: &mut Vec<Effect>) {
        let quorum = self.terms.quorum;
        let deadline = self.deadline;
        let Some(round) = self.rounds.iter_mut().find(|round| round.number == number) else { return };
        if !round.decided {
            let result = match round.verdict(quorum) {
                Verdict::Pending => return,
                Verdict::Won => Ok(deadline),
                Verdict::Lost(_) => Err(RoundFailure::NoQuorum),
            };
            round.decided = true;
            round.confirmed = result.is_ok();
            round.stop_waiting();
            let (renewal, start, ttl) = (round.renewal, round.start, round.ttl);
            let cause = if renewal { Cause::Renewal } else { Cause::Manual };
            if result.is_ok() {
                self.newest_start = self.newest_start.max(start);
                match (cause, self.renewal.as_mut()) {
                    (Cause::Manual, Some(schedule)) => schedule.use_ttl(ttl),
                    (Cause::Renewal, Some(schedule)) => schedule.confirmed(start, self.terms.node_timeout),
                    (Cause::Manual | Cause::Renewal, None) => {}
                }
            }
            effects.push(Effect::RoundDone { round: number, cause, result });
        }
        self.repair(number, now, effects);
        self.rounds.retain(Round::is_open);
    }

    /// Sets the token again on the nodes that have lost it, after a round in which a quorum confirmed it (R15).
    fn repair(&mut self, number: u32, now: Instant, effects: &mut Vec<Effect>) {
        let Some(round) = self.rounds.iter().find(|round| round.number == number && round.confirmed) else {
            return;
        };
        let left = round.start.saturating_add(round.ttl).saturating_duration_since(now);
        let ttl = crate::time::whole_millis(left);
        if ttl.is_zero() {
            return;
        }
        for (index, at) in round.nodes.iter().enumerate() {
            let Some(state) = self.nodes.get_mut(index) else { continue };
            let missing = *at == At::Voted(Vote::Refused) && state.gone && !state.void;
            let idle = !matches!(state.repair, RepairState::Queued | RepairState::Sent);
            if missing && idle && state.reach == Reach::Ready {
                state.repair = RepairState::Queued;
                state.queued += 1;
                let node = NodeId::new(u8::try_from(index).unwrap_or(u8::MAX));
                effects.push(Effect::Send(node, Verb::Repair { ttl }));
            }
        }
    }

    /// The node's connection broke, or cannot be made: what its rounds were waiting for.
    pub(super) fn rounds_broken(
        &mut self,
        node: NodeId,
        reach: Reach,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let numbers: Vec<u32> = self.rounds.iter().map(|round| round.number).collect();
        for number in numbers {
            let again = reach == Reach::Connecting && self.may_resend(number, now);
            let Some(round) = self.rounds.iter_mut().find(|round| round.number == number) else { continue };
            match round.at(node.index()) {
                At::Sent | At::Waiting if again => round.set(node.index(), At::Waiting),
                At::Sent => round.set(node.index(), At::Voted(Vote::Ambiguous)),
                At::Waiting => round.set(node.index(), At::Voted(Vote::Unsent)),
                At::Voted(_) => continue,
            }
            self.evaluate_round(number, now, effects);
        }
        self.refresh(now, EndReason::Expired, effects);
    }

    /// The node can be reached again: rounds that wait for it send their extension, if it is not too late.
    pub(super) fn rounds_ready(&mut self, node: NodeId, now: Instant, effects: &mut Vec<Effect>) {
        let waiting = |round: &&Round| round.at(node.index()) == At::Waiting;
        let numbers: Vec<u32> = self.rounds.iter().filter(waiting).map(|round| round.number).collect();
        for number in numbers {
            if self.may_resend(number, now) {
                self.send_extension(number, node, now, effects);
            }
        }
    }

    fn lose(&mut self, reason: EndReason, now: Instant, effects: &mut Vec<Effect>) {
        effects.push(Effect::Lost(reason));
        self.end(reason, now, effects);
    }

    pub(super) fn hold_timeout(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if now >= self.deadline {
            return self.lose(EndReason::Expired, now, effects);
        }
        if now >= self.start.saturating_add(self.terms.attempt_timeout) {
            for state in &mut self.nodes {
                if state.set == super::SetState::Waiting {
                    state.set = super::SetState::Unsent;
                }
            }
        }
        for index in 0..self.rounds.len() {
            let Some(round) = self.rounds.get_mut(index) else { break };
            if !round.decided && now >= round.until {
                round.decided = true;
                round.stop_waiting();
                let cause = if round.renewal { Cause::Renewal } else { Cause::Manual };
                let result = Err(RoundFailure::NoQuorum);
                effects.push(Effect::RoundDone { round: round.number, cause, result });
            }
        }
        self.rounds.retain(Round::is_open);
        if now >= self.expiring_at() && self.expiring_said != Some(self.deadline) {
            self.expiring_said = Some(self.deadline);
            effects.push(Effect::Expiring { deadline: self.deadline });
        }
        self.renew_if_due(now, effects);
    }

    fn renew_if_due(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let (newest_start, deadline, patience) = (self.newest_start, self.deadline, self.terms.node_timeout);
        let crowded = self.rounds.len() >= Self::OPEN_ROUNDS;
        let Some(renewal) = self.renewal.as_mut() else { return };
        if now < renewal.due(newest_start, deadline) {
            return;
        }
        match renewal.ttl_at(now, deadline, self.terms.drift) {
            Some(ttl) if !crowded => {
                renewal.started(now, patience);
                self.start_round(ttl, true, now, effects);
            }
            Some(_) | None => renewal.postponed(now, patience),
        }
    }

    fn expiring_at(&self) -> Instant {
        match self.terms.expiring_lead {
            Some(lead) => self.deadline.saturating_sub(lead),
            None => {
                let counted = self.deadline.as_nanos().saturating_sub(self.newest_start.as_nanos());
                Instant::from_nanos(self.deadline.as_nanos() - counted / 4)
            }
        }
    }

    pub(super) fn hold_next_timeout(&self) -> Instant {
        let mut next = self.deadline;
        if self.expiring_said != Some(self.deadline) {
            next = next.min(self.expiring_at());
        }
        if let Some(renewal) = &self.renewal {
            next = next.min(renewal.due(self.newest_start, self.deadline));
        }
        if self.nodes.iter().any(|node| node.set == super::SetState::Waiting) {
            next = next.min(self.start.saturating_add(self.terms.attempt_timeout));
        }
        self.rounds.iter().filter(|round| !round.decided).fold(next, |next, round| next.min(round.until))
    }
}
