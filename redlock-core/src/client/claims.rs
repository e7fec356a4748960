//! Carries out what the quorum machines want: commands into outboxes, decisions into events.

use super::keys::Keys;
use super::timers::{Due, Slot};
use super::{Client, SPARE};
use crate::error::{ExtendError, ExtendErrorKind, NodeFault, NodeOutcome, NodeReport};
use crate::event::{Event, LostReason, ReleaseOutcome};
use crate::ids::{LockId, NodeId, OperationId};
use crate::machine::{Cause, Claim, Effect, EndReason, ExtendFailure, ReleaseVerdict, Verb, Vote};
use crate::node::{Form, Node, Tag};
use crate::request::resource_text;
use crate::time::Instant;
use crate::token::Token;
use crate::wire::command::{self, Counters};
use crate::wire::handshake::{DeleteForm, ExtendForm};
use crate::wire::template::Single;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

/// One token, with what its machine does not know: its bytes, and who waits for it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) claim: Claim,
    pub(super) keys: Keys,
    pub(super) token: Token,
    /// The acquire that made the attempt, until it is answered.
    pub(super) acquire: Option<OperationId>,
    /// How many attempts that acquire made, and when it was asked for; once it is granted.
    pub(super) asked: (u32, Instant),
    /// The release that waits for its verdict.
    pub(super) release: Option<OperationId>,
    /// A release of the lock, lost before, was answered.
    pub(super) release_answered: bool,
    /// The extends that wait for their rounds.
    pub(super) rounds: Vec<(u32, OperationId)>,
    /// What the nodes said in the newest round, and since when that runs.
    pub(super) said: Vec<Said>,
    pub(super) round_start: Instant,
    /// That round: 0 for the attempt.
    said_round: u32,
    /// Attempted or held.
    live: bool,
    armed: Slot,
}

/// What one node said in a round, beyond its vote.
#[derive(Debug)]
pub(super) struct Said {
    /// How long it took, in nanoseconds; `u64::MAX` where it has said nothing.
    took: u64,
    fault: Option<Box<NodeFault>>,
}

impl Default for Said {
    fn default() -> Self {
        Self { took: u64::MAX, fault: None }
    }
}

impl Said {
    fn took(&self) -> Option<Duration> {
        (self.took < u64::MAX).then(|| Duration::from_nanos(self.took))
    }
}

impl Entry {
    pub(super) fn new(claim: Claim, keys: Keys, token: Token, acquire: OperationId, now: Instant) -> Self {
        let mut said = Vec::new();
        said.resize_with(usize::from(claim.terms().quorum.nodes()), Said::default);
        Self {
            claim,
            keys,
            token,
            acquire: Some(acquire),
            asked: (1, now),
            release: None,
            release_answered: false,
            rounds: Vec::new(),
            said,
            round_start: now,
            said_round: 0,
            live: true,
            armed: Slot::default(),
        }
    }

    /// As [`new`](Self::new), in the place of one that is gone; its claim was restarted before.
    pub(super) fn restart(&mut self, keys: Keys, token: Token, acquire: OperationId, now: Instant) {
        self.keys = keys;
        self.token = token;
        self.acquire = Some(acquire);
        self.asked = (1, now);
        self.release = None;
        self.release_answered = false;
        self.rounds.clear();
        self.said.fill_with(Said::default);
        self.round_start = now;
        self.said_round = 0;
        self.live = true;
        self.armed = Slot::default();
    }

    /// Notes what a node said, for the error that the round may end in.
    pub(super) fn note(&mut self, node: NodeId, fault: Option<NodeFault>, now: Instant) {
        if let Some(said) = self.said.get_mut(node.index()) {
            said.took = now.as_nanos().saturating_sub(self.round_start.as_nanos());
            said.fault = fault.map(Box::new);
        }
    }

    /// An extension goes out: the first of a round makes room for what the nodes will say to it.
    fn start_round(&mut self, round: u32, start: Instant) {
        if round > self.said_round {
            self.said_round = round;
            self.said.fill_with(Said::default);
            self.round_start = start;
        }
    }

    /// Whether the answer to `verb` belongs to the round whose reports are kept.
    pub(super) fn is_newest_round(&self, verb: Verb) -> bool {
        match verb {
            Verb::Set | Verb::Raise { .. } => self.said_round == 0,
            Verb::Extend { round, .. } => round == self.said_round,
            Verb::Repair { .. } | Verb::Release => false,
        }
    }

    /// The form in which the verb goes to this node.
    fn form(&self, verb: Verb, node: &Node) -> Form {
        let fenced = self.claim.terms().fenced;
        // There are 64 at most.
        match (verb, u8::try_from(self.keys.len()).unwrap_or(u8::MAX)) {
            (Verb::Set, keys) if fenced => Form::FencedSet(keys),
            (Verb::Repair { .. }, _) if fenced => Form::FencedRepair,
            (Verb::Raise { .. }, _) => Form::Raise,
            (Verb::Set | Verb::Repair { .. }, 1) => Form::Set,
            (Verb::Set | Verb::Repair { .. }, _) => Form::SetAll,
            (Verb::Extend { .. }, 1) => Form::Extend(node.extend_form()),
            (Verb::Extend { .. }, _) => Form::ExtendAll,
            (Verb::Release, 1) => Form::Delete(node.delete_form()),
            (Verb::Release, keys) => Form::DeleteAll(keys),
        }
    }
}

impl Client {
    /// Gives a claim an input, and carries out what it wants.
    pub(super) fn drive(&mut self, lock: u64, input: impl FnOnce(&mut Claim, &mut Vec<Effect>)) {
        let Some(entry) = self.claims.get_mut(lock) else { return };
        input(&mut entry.claim, &mut self.scratch);
        self.carry_out(lock);
    }

    /// Carries out the effects that a claim has left in the scratch, re-arms its timer, and forgets it once it is finished.
    pub(super) fn carry_out(&mut self, lock: u64) {
        if !self.scratch.is_empty() {
            let mut effects = core::mem::take(&mut self.scratch);
            for effect in effects.drain(..) {
                self.apply(lock, effect);
            }
            self.scratch = effects;
        }
        let Some(mut entry) = self.claims.get_mut(lock) else { return };
        if entry.live && entry.claim.ended().is_some() {
            entry.live = false;
            self.live_claims = self.live_claims.saturating_sub(1);
            if let [key] = &*entry.keys {
                let key = key.clone();
                self.line_ended(&key, lock);
            }
            let Some(same) = self.claims.get_mut(lock) else { return };
            entry = same;
        }
        if entry.claim.is_finished() {
            self.forget_claim(lock);
        } else {
            let at = entry.claim.next_timeout();
            self.timers.arm(&mut entry.armed, Due::Claim(lock), at, self.now);
        }
        if self.closing.is_some() {
            self.finish_closing_if_done();
        }
    }

    /// A command of the claim is handed out to the node.
    pub(super) fn handed_out(&mut self, lock: u64, node: NodeId, verb: Verb) {
        let now = self.now;
        match verb {
            // Belief may be lowered by it (R14).
            Verb::Extend { .. } => {
                self.drive(lock, |claim, effects| claim.handed_out(node, verb, now, effects));
            }
            // These change what is known of the node, and neither what is due nor what is wanted.
            Verb::Set | Verb::Repair { .. } | Verb::Raise { .. } | Verb::Release => {
                let Some(entry) = self.claims.get_mut(lock) else { return };
                entry.claim.handed_out(node, verb, now, &mut self.scratch);
                debug_assert!(self.scratch.is_empty(), "nothing is wanted");
            }
        }
    }

    /// Forgets a claim and its timer.
    pub(super) fn forget_claim(&mut self, lock: u64) {
        let Some(mut entry) = self.claims.remove(lock) else { return };
        self.timers.arm(&mut entry.armed, Due::Claim(lock), None, self.now);
        self.live_claims = self.live_claims.saturating_sub(usize::from(entry.live));
        self.keys.recycle(core::mem::replace(&mut entry.keys, Keys::NONE));
        if self.spare_entries.len() < SPARE {
            self.spare_entries.push(entry);
        }
    }

    pub(super) fn on_claim_due(&mut self, lock: u64) {
        if let Some(entry) = self.claims.get_mut(lock) {
            entry.armed = Slot::default();
        }
        let now = self.now;
        self.drive(lock, |claim, effects| claim.timeout(now, effects));
    }

    /// Every claim, in a fixed order.
    pub(super) fn all_claims(&self) -> Vec<u64> {
        self.claims.iter().map(|(lock, _)| lock).collect()
    }

    fn apply(&mut self, lock: u64, effect: Effect) {
        match effect {
            Effect::Send(node, verb) => self.send(lock, node, verb),
            Effect::Withdraw(node) => {
                if let Some(node) = self.nodes.get_mut(node.index()) {
                    node.withdraw(LockId(lock));
                }
            }
            Effect::Granted { deadline, fence } => {
                self.on_granted(lock, deadline, fence);
            }
            Effect::AttemptLost(loss) => self.on_attempt_lost(lock, loss),
            Effect::DeadlineMoved { deadline } => {
                self.queue.event(Event::DeadlineMoved { lock: LockId(lock), deadline });
            }
            Effect::RoundDone { round, cause, result } => self.on_round_done(lock, round, cause, result),
            Effect::Expiring { deadline } => {
                self.queue.event(Event::Expiring { lock: LockId(lock), deadline })
            }
            Effect::Lost(reason) => self.on_lost(lock, reason),
            Effect::ReleaseDone(verdict) => self.on_release_done(lock, verdict),
            Effect::Alias(node) => self.queue.event(Event::AliasSuspected { lock: LockId(lock), node }),
            Effect::Repaired(node) => self.queue.event(Event::Repaired { lock: LockId(lock), node }),
        }
    }

    fn send(&mut self, lock: u64, id: NodeId, verb: Verb) {
        let (Some(entry), Some(node)) = (self.claims.get_mut(lock), self.nodes.get(id.index())) else {
            return;
        };
        let ttl = match verb {
            Verb::Set => entry.claim.terms().ttl,
            Verb::Extend { ttl, round, start, .. } => {
                entry.start_round(round, start);
                ttl
            }
            Verb::Repair { ttl } => ttl,
            Verb::Raise { .. } | Verb::Release => Duration::ZERO,
        };
        let form = entry.form(verb, node);
        let tag = Tag::Claim { lock: LockId(lock), verb, form };
        let patience = entry.claim.terms().node_timeout;
        // The same command goes to all nodes of a dialect, one after the other.
        if self.encoded != Some((lock, form, ttl)) {
            self.encoded = Some((lock, form, ttl));
            self.encode(lock, form, ttl);
        }
        let Some(node) = self.nodes.get_mut(id.index()) else { return };
        if node.outbox.is_empty() {
            self.queue.outbox(node.connection());
        }
        node.outbox.push(tag, self.encoder.newest(), patience);
    }

    fn encode(&mut self, lock: u64, form: Form, ttl: Duration) {
        let Some(entry) = self.claims.get(lock) else { return };
        let (keys, name) = (&*entry.keys, self.config.client_name());
        let value = &mut self.value;
        value.clear();
        entry.token.write(name, value);
        let counters = Counters { retention: self.config.fence_retention() };
        let fence = entry.claim.fence().unwrap_or_default();
        let bytes = match (form, keys) {
            (Form::Set, [key]) => return self.encoder.encode(Single::Set, key, value, ttl),
            (Form::Extend(form), [key]) => return self.encoder.encode(Single::Extend(form), key, value, ttl),
            (Form::Delete(form), [key]) => {
                return self.encoder.encode(Single::Release(form), key, value, ttl);
            }
            (Form::Set | Form::SetAll, _) => command::set(keys, value, ttl),
            (Form::FencedSet(_), _) => command::fenced_set(keys, value, ttl, counters),
            (Form::FencedRepair, _) => command::fenced_repair(keys, value, ttl, counters, fence),
            (Form::Raise, _) => command::raise(keys, value, counters, fence),
            (Form::Extend(_) | Form::ExtendAll, _) => command::extend(ExtendForm::Script, keys, value, ttl),
            (Form::Delete(_) | Form::DeleteAll(_), _) => command::release(DeleteForm::Script, keys, value),
        };
        self.encoder.keep(&bytes);
    }

    fn on_round_done(&mut self, lock: u64, round: u32, cause: Cause, result: Result<Instant, ExtendFailure>) {
        let Some(entry) = self.claims.get_mut(lock) else { return };
        // A round of which nothing could be sent has its own report all the same.
        entry.start_round(round, self.now);
        let waiting = entry
            .rounds
            .iter()
            .position(|(of, _)| *of == round)
            .map(|index| entry.rounds.swap_remove(index).1);
        let id = LockId(lock);
        // Whoever waited may have called it off meanwhile.
        let waiting = waiting.filter(|operation| self.operations.remove(operation.0).is_some());
        let error = match result {
            Ok(deadline) => {
                match (cause, waiting) {
                    (_, Some(operation)) => {
                        self.queue.event(Event::Extended { operation, lock: id, deadline })
                    }
                    (Cause::Renewal, None) => {
                        let confirmed = self.confirmed(lock);
                        self.queue.event(Event::Renewed { lock: id, deadline, confirmed });
                    }
                    (Cause::Manual, None) => {}
                }
                return;
            }
            Err(ExtendFailure::NoQuorum) => self.extend_error(lock, ExtendErrorKind::NoQuorum),
            Err(ExtendFailure::Ended) => {
                let ended = self.claims.get(lock).and_then(|entry| entry.claim.ended());
                let kind = match ended.and_then(lost_reason) {
                    Some(reason) => ExtendErrorKind::Lost(reason),
                    None => ExtendErrorKind::Released,
                };
                self.extend_error(lock, kind)
            }
        };
        let ended = result == Err(ExtendFailure::Ended);
        match waiting {
            Some(operation) => self.queue.event(Event::ExtendFailed { operation, lock: id, error }),
            None if cause == Cause::Renewal && !ended => {
                self.queue.event(Event::RenewalFailed { lock: id, error });
            }
            None => {}
        }
    }

    pub(super) fn extend_error(&self, lock: u64, kind: ExtendErrorKind) -> ExtendError {
        let Some(entry) = self.claims.get(lock) else {
            return ExtendError { kind, resource: String::new(), elapsed: Duration::ZERO, nodes: Vec::new() };
        };
        ExtendError {
            kind,
            resource: resource_text(&entry.keys),
            elapsed: self.now.saturating_duration_since(entry.round_start),
            nodes: self.round_reports(entry),
        }
    }

    /// How many nodes support the lock beyond now.
    fn confirmed(&self, lock: u64) -> u8 {
        let Some(entry) = self.claims.get(lock) else { return 0 };
        let supports = self.nodes.iter().filter_map(|node| entry.claim.support(node.id));
        u8::try_from(supports.filter(|until| *until > self.now).count()).unwrap_or(u8::MAX)
    }

    fn on_lost(&mut self, lock: u64, reason: EndReason) {
        if let Some(reason) = lost_reason(reason) {
            self.queue.event(Event::Lost { lock: LockId(lock), reason });
        }
    }

    fn on_release_done(&mut self, lock: u64, verdict: ReleaseVerdict) {
        let Some(operation) = self.claims.get_mut(lock).and_then(|entry| entry.release.take()) else {
            return;
        };
        if self.operations.remove(operation.0).is_none() {
            return;
        }
        let outcome = match verdict {
            ReleaseVerdict::Released => ReleaseOutcome::Released,
            ReleaseVerdict::Expired => ReleaseOutcome::Expired,
            ReleaseVerdict::NotMine => ReleaseOutcome::NotMine,
            ReleaseVerdict::Unknown { gone_by } => ReleaseOutcome::Unknown { gone_by },
        };
        self.queue.event(Event::Released { operation, lock: LockId(lock), outcome });
    }

    /// What the nodes said to the attempt of this entry.
    pub(super) fn attempt_reports(&self, entry: &Entry) -> Vec<NodeReport> {
        self.reports(entry, |node, fault| match entry.claim.vote(node.id) {
            Some(Vote::Granted) => NodeOutcome::Granted,
            Some(Vote::Refused) => NodeOutcome::Refused,
            Some(Vote::Failed) if entry.claim.is_muted(node.id) => NodeOutcome::Failed(
                // Its quarantine may have ended since it was asked.
                node.quarantined(self.now).unwrap_or(NodeFault::Quarantined { left: Duration::ZERO }),
            ),
            Some(Vote::Failed | Vote::Ambiguous) => {
                NodeOutcome::Failed(fault.unwrap_or_else(|| node.why_not(self.now)))
            }
            Some(Vote::Unsent) => NodeOutcome::Unsent(node.why_not(self.now)),
            None => NodeOutcome::Unanswered,
        })
    }

    /// What the nodes said to the newest round of extension of this entry.
    fn round_reports(&self, entry: &Entry) -> Vec<NodeReport> {
        self.reports(entry, |node, fault| {
            let said = entry.said.get(node.id.index()).is_some_and(|said| said.took().is_some());
            match fault {
                Some(fault) => NodeOutcome::Failed(fault),
                None if said && entry.claim.is_gone(node.id) => NodeOutcome::Refused,
                None if said => NodeOutcome::Granted,
                None if node.is_ready() => NodeOutcome::Unanswered,
                None => NodeOutcome::Unsent(node.why_not(self.now)),
            }
        })
    }

    fn reports(
        &self,
        entry: &Entry,
        outcome: impl Fn(&Node, Option<NodeFault>) -> NodeOutcome,
    ) -> Vec<NodeReport> {
        let report = |node: &Node| {
            let said = entry.said.get(node.id.index());
            let outcome = outcome(node, said.and_then(|said| said.fault.as_deref().cloned()));
            // Of two steps it may have answered the first.
            let answered = outcome != NodeOutcome::Unanswered;
            let took = said.and_then(Said::took).filter(|_| answered);
            NodeReport { node: node.id, address: node.label.clone(), outcome, took, holder: None }
        };
        self.nodes.iter().map(report).collect()
    }
}

/// The user's name for an end that is a loss.
pub(super) const fn lost_reason(reason: EndReason) -> Option<LostReason> {
    match reason {
        EndReason::Expired => Some(LostReason::Expired),
        EndReason::TokenGone => Some(LostReason::TokenGone),
        EndReason::Duplicate => Some(LostReason::DuplicateNode),
        EndReason::Released | EndReason::NotAcquired => None,
    }
}
