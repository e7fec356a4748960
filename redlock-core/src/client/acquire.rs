//! An acquire: its row of attempts, from the first round to its answer.
//!
//! ```text
//!   Delayed ──▶ Queued ──▶ Attempting ──▶ granted
//!                 ▲            │ ▲
//!                 │       lost ▼ │ due, or the nodes say free
//!                 └───────── Sleeping
//!                              │ no more rounds
//!                              └──▶ Concluding ──▶ failed
//! ```

use super::Client;
use super::claims::Entry;
use super::keys::Keys;
use super::operations::Operation;
use super::timers::Slot;
use crate::error::{AcquireError, AcquireErrorKind, Holder, LimitKind, NodeFault, NodeOutcome, NodeReport};
use crate::event::Event;
use crate::ids::{Fence, LockId, NodeId, OperationId};
use crate::machine::{Acquire, Claim, NextStep, Quorum, Reach, RoundLoss, Terms};
use crate::node::{Outgoing, Tag};
use crate::request::{AcquireRequest, check_request, resource_text};
use crate::time::Instant;
use crate::token::Token;
use crate::wire::command;
use crate::wire::reply::Reply;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

#[derive(Debug)]
pub(super) struct AcquireOperation {
    keys: Keys,
    entropy: [u8; 16],
    pub(super) ttl: Duration,
    max_hold: Option<Duration>,
    expiring_lead: Option<Duration>,
    fenced: bool,
    watch_loss: bool,
    /// Whether it waits in line: for one resource, and not just for one round.
    is_queued: bool,
    pub(super) row: Acquire,
    pub(super) phase: AcquirePhase,
    /// Why the last attempt was lost.
    pub(super) last: Option<RoundLoss>,
    /// What the nodes said in the last attempt that was lost.
    reports: Vec<NodeReport>,
    pub(super) armed: Slot,
}

#[derive(Debug)]
pub(super) enum AcquirePhase {
    /// Its first round is not to be sent before that; it stands in no line.
    Delayed(Instant),
    /// It is not its turn, until the wait is over.
    Queued,
    /// An attempt is under way.
    Attempting(u64),
    /// Until the next attempt.
    Sleeping(Instant),
    /// It has failed; what stands in the way is asked for, until then at the latest.
    Concluding { until: Instant, outstanding: u8, error: Box<AcquireError> },
}

impl AcquireOperation {
    /// The key by which it waits in line.
    pub(super) fn line(&self) -> Option<&Bytes> {
        self.keys.first().filter(|_| self.is_queued)
    }
}

impl Client {
    pub(super) fn start_acquire(&mut self, request: AcquireRequest) -> OperationId {
        let now = self.now;
        let checked = check_request(&request, &self.config);
        let keys = match &checked {
            Ok(_) => self.keys.keys(self.config.key_prefix(), &request.resources),
            Err(_) => Keys::Several(request.resources.as_slice().into()),
        };
        let refused = match &checked {
            _ if self.closing.is_some() => Some(AcquireErrorKind::Closed),
            Err(invalid) => Some(AcquireErrorKind::Invalid(invalid.clone())),
            Ok(_) if !self.room_for_operation() => {
                Some(AcquireErrorKind::LimitReached(LimitKind::Operations))
            }
            Ok(_) => None,
        };
        let (ttl, wait, attempts) = match &checked {
            Ok(checked) => (checked.ttl, checked.wait, checked.attempts),
            Err(_) => (Duration::ZERO, Duration::ZERO, None),
        };
        // Several keys are contended for by themselves: whoever waits for one of them is no help to wait for.
        let is_queued = refused.is_none() && keys.len() == 1 && !wait.is_zero();
        let operation = self.operations.insert(Operation::Acquire(AcquireOperation {
            keys,
            entropy: request.entropy,
            ttl,
            max_hold: request.max_hold,
            expiring_lead: request.expiring_lead,
            fenced: request.fenced,
            watch_loss: request.watch_loss,
            is_queued,
            row: Acquire::new(wait, attempts, self.config.retry_delay(), now),
            phase: AcquirePhase::Queued,
            last: None,
            reports: Vec::new(),
            armed: Slot::default(),
        }));
        match refused {
            Some(kind) => self.fail_acquire(operation, kind),
            None if request.delay.is_zero() => self.contend(operation),
            None => {
                let at = now.saturating_add(request.delay.min(wait));
                self.set_phase(operation, AcquirePhase::Delayed(at));
            }
        }
        OperationId(operation)
    }

    /// Begins to ask for the lock: at the end of its line, or at once where it stands in none.
    pub(super) fn contend(&mut self, operation: u64) {
        let Some(Operation::Acquire(acquire)) = self.operations.get_mut(operation) else { return };
        acquire.phase = AcquirePhase::Queued;
        // Of a delay that took all of the wait, or more where the timer fired late, nothing is left to wait in line with (R10).
        let is_over = self.now >= acquire.row.wait_end();
        match acquire.line().cloned() {
            Some(key) if is_over && self.lines.contains_key(&key) => self.end_of_wait(operation),
            Some(key) => self.join_line(key, operation),
            None => self.start_attempt(operation),
        }
    }

    /// Starts the next attempt of an acquire: a fresh token, a SET for every node that can be reached (R2, R8).
    pub(super) fn start_attempt(&mut self, operation: u64) {
        let now = self.now;
        let limits = self.config.limits();
        let full = self.live_claims >= limits.locks
            || self.claims.len() >= limits.locks.saturating_add(limits.cleanups);
        let in_flight_limit = limits.in_flight_per_node;
        let jitter = self.rng.next_u32();
        let Some(Operation::Acquire(acquire)) = self.operations.get_mut(operation) else { return };
        if full {
            return self.fail_acquire(operation, AcquireErrorKind::LimitReached(LimitKind::Locks));
        }
        let node_timeout = self.config.node_timeout_for(acquire.ttl);
        let Some(attempt_timeout) = acquire.row.patience(node_timeout, now) else {
            let last = acquire.last.unwrap_or(RoundLoss::TooSlow);
            return self.fail_acquire(operation, AcquireErrorKind::WaitOver { last });
        };
        let attempt = acquire.row.attempt();
        let token = Token { entropy: acquire.entropy, attempt };
        let terms = Terms {
            quorum: Quorum::planted(self.config.node_count(), self.config.quorum()),
            drift: self.config.drift(),
            ttl: acquire.ttl,
            node_timeout,
            attempt_timeout,
            max_hold: acquire.max_hold,
            expiring_lead: acquire.expiring_lead,
            jitter,
            fenced: acquire.fenced,
        };
        let reach = self
            .nodes
            .iter()
            .map(|node| if node.pipeline() >= in_flight_limit { Reach::Down } else { node.reach() });
        let operation_id = OperationId(operation);
        let entry = match self.spare_entries.pop() {
            Some(mut entry) => {
                entry.claim.restart(terms, reach, now, &mut self.scratch);
                entry.restart(acquire.keys.clone(), token, operation_id, now);
                entry
            }
            None => {
                let claim = Claim::new(terms, reach, now, &mut self.scratch);
                Box::new(Entry::new(claim, acquire.keys.clone(), token, operation_id, now))
            }
        };
        let lock = self.claims.insert(entry);
        self.live_claims += 1;
        acquire.phase = AcquirePhase::Attempting(lock);
        self.arm_operation(operation);
        self.carry_out(lock);
    }

    pub(super) fn on_granted(&mut self, lock: u64, deadline: Instant, fence: Option<u64>) {
        let Some(operation) = self.claims.get_mut(lock).and_then(|entry| entry.acquire.take()) else {
            return;
        };
        if let Some(entry) = self.claims.get(lock)
            && let [key] = &*entry.keys
        {
            let key = key.clone();
            self.line_granted(&key, lock);
        }
        if let Some(Operation::Acquire(acquire)) = self.remove_operation(operation.0) {
            if let Some(entry) = self.claims.get_mut(lock) {
                entry.asked = (acquire.row.attempts(), acquire.row.start());
            }
            if acquire.watch_loss {
                self.watch_loss(lock);
            }
            self.queue.event(Event::Acquired {
                operation,
                lock: LockId(lock),
                deadline,
                fence: fence.map(Fence),
            });
        }
    }

    pub(super) fn on_attempt_lost(&mut self, lock: u64, loss: RoundLoss) {
        let Some(entry) = self.claims.get_mut(lock) else { return };
        let Some(OperationId(operation)) = entry.acquire.take() else { return };
        let Some(entry) = self.claims.get(lock) else { return };
        let reports = self.attempt_reports(entry);
        // Waiting cannot help where nodes that nobody repairs by waiting leave no quorum (R9).
        let fatal = reports.iter().filter(|report| is_fatal(&report.outcome)).count();
        let quorum = Quorum::planted(self.config.node_count(), self.config.quorum());
        let hopeless = fatal >= usize::from(quorum.blocking());
        let random = self.rng.next_u32();
        let Some(Operation::Acquire(acquire)) = self.operations.get_mut(operation) else { return };
        let step = acquire.row.lost(random, self.now);
        let retry_at = match step {
            // Those behind one that can get nothing are told so as soon as they have asked.
            NextStep::Retry { at } if !hopeless => Some(at),
            NextStep::Retry { .. } | NextStep::GiveUp | NextStep::WaitOver => None,
        };
        acquire.last = Some(loss);
        let attempts = acquire.row.attempts();
        let line = acquire.line().cloned();
        let sleeps = line.as_ref().is_none_or(|key| self.line_lost(key, loss, &reports, retry_at));
        if let Some(Operation::Acquire(acquire)) = self.operations.get_mut(operation) {
            acquire.reports = reports;
        }
        if matches!(step, NextStep::Retry { .. }) && !hopeless {
            self.queue.notice(Event::AttemptLost { operation: OperationId(operation), attempts, loss });
        }
        match (step, line) {
            _ if hopeless => self.fail_acquire(operation, loss.into()),
            (NextStep::Retry { .. }, Some(key)) if !sleeps => self.step_back(&key),
            (NextStep::Retry { at }, line) => {
                self.sleep_until(operation, at);
                if let Some(key) = line {
                    self.watch_line(&key, loss, lock, at);
                }
            }
            (NextStep::GiveUp, _) => self.conclude(operation, lock, loss.into()),
            (NextStep::WaitOver, _) => {
                self.conclude(operation, lock, AcquireErrorKind::WaitOver { last: loss })
            }
        }
    }

    /// The acquire has failed. Where nodes refused it they are asked what stands in the way, within what is left of the
    /// attempt's node timeout, so that the error can say it.
    fn conclude(&mut self, operation: u64, lock: u64, kind: AcquireErrorKind) {
        let Some(entry) = self.claims.get(lock) else { return self.fail_acquire(operation, kind) };
        let until = entry.claim.start().saturating_add(entry.claim.terms().attempt_timeout);
        let mut error = Box::new(self.acquire_error(operation, kind.clone()));
        if let [key] = &*entry.keys {
            // Those that have told a waiter are not asked again.
            self.tell_holders(key, &mut error.nodes);
        }
        let refused =
            |report: &&NodeReport| report.outcome == NodeOutcome::Refused && report.holder.is_none();
        let asked: Vec<NodeId> = error.nodes.iter().filter(refused).map(|report| report.node).collect();
        let Some(key) = entry.keys.first().filter(|_| self.now < until) else {
            return self.fail_acquire(operation, kind);
        };
        let bytes = command::pttl(key);
        let mut outstanding = 0;
        for id in asked {
            let Some(node) = self.nodes.get_mut(id.index()).filter(|node| node.reach() == Reach::Ready)
            else {
                continue;
            };
            if node.outbox.is_empty() {
                self.queue.outbox(node.connection());
            }
            let patience = until.saturating_duration_since(self.now);
            node.outbox.push_back(Outgoing {
                tag: Tag::Holder { operation: OperationId(operation) },
                bytes: bytes.clone(),
                patience,
            });
            outstanding += 1;
        }
        self.set_phase(operation, AcquirePhase::Concluding { until, outstanding, error });
        if outstanding == 0 {
            return self.finish_concluding(operation);
        }
        // It makes no more rounds.
        self.step_out(operation);
    }

    /// A node said how long what stands in the way will stand there.
    pub(super) fn on_holder_reply(&mut self, index: usize, operation: OperationId, reply: &Reply) {
        let Some(id) = self.nodes.get(index).map(|node| node.id) else { return };
        let Some(Operation::Acquire(acquire)) = self.operations.get_mut(operation.0) else { return };
        let AcquirePhase::Concluding { outstanding, error, .. } = &mut acquire.phase else { return };
        let holder = match reply.as_integer() {
            Some(-1) => Some(Holder::NoExpiry),
            Some(-2) => Some(Holder::Gone),
            Some(left) => {
                u64::try_from(left).ok().map(|left| Holder::Lock { remaining: Duration::from_millis(left) })
            }
            None => None,
        };
        if let Some(report) = error.nodes.iter_mut().find(|report| report.node == id) {
            report.holder = holder;
        }
        *outstanding = outstanding.saturating_sub(1);
        if *outstanding == 0 {
            self.finish_concluding(operation.0);
        }
    }

    pub(super) fn finish_concluding(&mut self, operation: u64) {
        if let Some(Operation::Acquire(acquire)) = self.remove_operation(operation)
            && let AcquirePhase::Concluding { mut error, .. } = acquire.phase
        {
            error.elapsed = self.now.saturating_duration_since(acquire.row.start());
            self.queue.event(Event::AcquireFailed { operation: OperationId(operation), error: *error });
        }
    }

    fn acquire_error(&self, operation: u64, kind: AcquireErrorKind) -> AcquireError {
        let Some(Operation::Acquire(acquire)) = self.operations.get(operation) else {
            let (resource, nodes) = (String::new(), Vec::new());
            return AcquireError { kind, resource, attempts: 0, elapsed: Duration::ZERO, nodes };
        };
        // One that never had its turn, or not for long, tells what those before it have learnt.
        let is_waiting = matches!(acquire.phase, AcquirePhase::Queued);
        let news = acquire.line().filter(|_| is_waiting).and_then(|key| self.line_news(key));
        let mut nodes = news.map_or_else(|| acquire.reports.clone(), |(_, reports)| reports);
        if let Some(key) = acquire.line().filter(|_| matches!(acquire.phase, AcquirePhase::Sleeping(_))) {
            self.tell_holders(key, &mut nodes);
        }
        AcquireError {
            kind,
            resource: resource_text(&acquire.keys),
            attempts: acquire.row.attempts(),
            elapsed: self.now.saturating_duration_since(acquire.row.start()),
            nodes,
        }
    }

    /// Answers an acquire with a failure.
    pub(super) fn fail_acquire(&mut self, operation: u64, kind: AcquireErrorKind) {
        let error = self.acquire_error(operation, kind);
        if self.remove_operation(operation).is_some() {
            self.queue.event(Event::AcquireFailed { operation: OperationId(operation), error });
        }
    }

    /// A grant that nobody has seen is released again.
    pub(super) fn take_back(&mut self, operation: OperationId, lock: LockId) {
        let now = self.now;
        let (resource, nodes, (attempts, start)) = match self.claims.get(lock.0) {
            Some(entry) => (resource_text(&entry.keys), self.attempt_reports(entry), entry.asked),
            None => (String::new(), Vec::new(), (0, now)),
        };
        let elapsed = now.saturating_duration_since(start);
        let error = AcquireError { kind: AcquireErrorKind::Cancelled, resource, attempts, elapsed, nodes };
        self.queue.event(Event::AcquireFailed { operation, error });
        self.drive(lock.0, |claim, effects| claim.abandon(now, effects));
    }

    /// What the nodes have said so far to an attempt that is called off.
    pub(super) fn keep_reports(&mut self, operation: u64, lock: u64) {
        let Some(entry) = self.claims.get(lock).filter(|entry| entry.claim.is_attempting()) else { return };
        let reports = self.attempt_reports(entry);
        if let Some(Operation::Acquire(acquire)) = self.operations.get_mut(operation) {
            acquire.reports = reports;
        }
    }
}

fn is_fatal(outcome: &NodeOutcome) -> bool {
    match outcome {
        NodeOutcome::Unsent(fault) | NodeOutcome::Failed(fault) => NodeFault::is_fatal(fault),
        NodeOutcome::Granted | NodeOutcome::Refused | NodeOutcome::Unanswered => false,
    }
}
