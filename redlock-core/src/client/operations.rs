//! What was asked for: acquires with their rows of attempts, extends, releases, connects.

use super::Client;
use super::claims::{Entry, lost_reason};
use super::keys::Keys;
use super::timers::{Due, Slot};
use crate::error::{
    AcquireError, AcquireErrorKind, ConnectError, ExtendErrorKind, ExtendRefused, Holder, LimitKind,
    NodeFault, NodeOutcome, NodeReport, UnknownLock,
};
use crate::event::{Event, LostReason, ReleaseOutcome};
use crate::ids::{Fence, LockId, NodeId, OperationId};
use crate::machine::{Acquire, Claim, EndReason, ExtendBar, NextStep, Quorum, Reach, RoundLoss, Terms};
use crate::node::{Node, Outgoing, Tag};
use crate::request::{AcquireRequest, check_request, check_ttl, resource_text};
use crate::time::Instant;
use crate::token::Token;
use crate::wire::command;
use crate::wire::reply::Reply;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

/// Something that was asked for and is not answered yet.
#[derive(Debug)]
pub(super) enum Operation {
    Acquire(AcquireOperation),
    Extend(LockId),
    Release(LockId),
    Connect(ConnectOperation),
}

#[derive(Debug)]
pub(super) struct AcquireOperation {
    keys: Keys,
    entropy: [u8; 16],
    pub(super) ttl: Duration,
    max_hold: Option<Duration>,
    expiring_lead: Option<Duration>,
    fenced: bool,
    /// Whether it waits in line: for one resource, and not just for one round.
    is_queued: bool,
    pub(super) row: Acquire,
    pub(super) phase: AcquirePhase,
    /// Why the last attempt was lost.
    pub(super) last: Option<RoundLoss>,
    /// What the nodes said in the last attempt that was lost.
    reports: Vec<NodeReport>,
    armed: Slot,
}

#[derive(Debug)]
pub(super) enum AcquirePhase {
    /// It is not its turn, until the wait is over.
    Queued,
    /// An attempt is under way.
    Attempting(u64),
    /// Until the next attempt.
    Sleeping(Instant),
    /// It has failed; what stands in the way is asked for, until then at the latest.
    Concluding { until: Instant, outstanding: u8, error: Box<AcquireError> },
}

#[derive(Debug)]
pub(super) struct ConnectOperation {
    start: Instant,
    until: Instant,
    armed: Slot,
}

impl AcquireOperation {
    /// The key by which it waits in line.
    pub(super) fn line(&self) -> Option<&Bytes> {
        self.keys.first().filter(|_| self.is_queued)
    }
}

/// Why a connect failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectEnd {
    NoQuorum,
    TimedOut,
    Closed,
    LimitReached,
}

impl Client {
    /// Whether another operation may be pending.
    fn room_for_operation(&self) -> bool {
        self.operations.len() < self.config.limits().operations
    }

    // ---- acquire ----

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
        let line = keys.first().filter(|_| is_queued).cloned();
        let operation = self.operations.insert(Operation::Acquire(AcquireOperation {
            keys,
            entropy: request.entropy,
            ttl,
            max_hold: request.max_hold,
            expiring_lead: request.expiring_lead,
            fenced: request.fenced,
            is_queued,
            row: Acquire::new(wait, attempts, self.config.retry_delay(), now),
            phase: AcquirePhase::Queued,
            last: None,
            reports: Vec::new(),
            armed: Slot::default(),
        }));
        match refused {
            Some(kind) => self.fail_acquire(operation, kind),
            None => match line {
                Some(key) => self.join_line(key, operation),
                None => self.start_attempt(operation),
            },
        }
        OperationId(operation)
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
        let error = Box::new(self.acquire_error(operation, kind.clone()));
        let refused = |report: &&NodeReport| report.outcome == NodeOutcome::Refused;
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
        if outstanding == 0 {
            return self.fail_acquire(operation, kind);
        }
        self.set_phase(operation, AcquirePhase::Concluding { until, outstanding, error });
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

    fn finish_concluding(&mut self, operation: u64) {
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

    // ---- extend, release ----

    pub(super) fn start_extend(&mut self, lock: LockId, ttl: Duration) -> Result<OperationId, ExtendRefused> {
        let now = self.now;
        if self.closing.is_some() {
            return Err(ExtendRefused::Because(ExtendErrorKind::Closed));
        }
        let Some(entry) = self.claims.get(lock.0).filter(|entry| !entry.claim.is_attempting()) else {
            return Err(ExtendRefused::UnknownLock);
        };
        match entry.claim.ended() {
            Some(EndReason::NotAcquired) => return Err(ExtendRefused::UnknownLock),
            Some(reason) => {
                let kind = lost_reason(reason).map_or(ExtendErrorKind::Released, ExtendErrorKind::Lost);
                return Err(ExtendRefused::Because(kind));
            }
            None => {}
        }
        let ttl = check_ttl(ttl, &self.config)
            .map_err(|invalid| ExtendRefused::Because(ExtendErrorKind::Invalid(invalid)))?;
        if !self.room_for_operation() {
            let kind = ExtendErrorKind::LimitReached(LimitKind::Operations);
            return Err(ExtendRefused::Because(kind));
        }
        let Some(entry) = self.claims.get_mut(lock.0) else { return Err(ExtendRefused::UnknownLock) };
        let started = entry.claim.extend(ttl, now, &mut self.scratch);
        let answer = match started {
            Ok(round) => {
                let operation = OperationId(self.operations.insert(Operation::Extend(lock)));
                entry.rounds.push((round, operation));
                Ok(operation)
            }
            Err(bar) => Err(ExtendRefused::Because(match bar {
                ExtendBar::NotHeld => ExtendErrorKind::Lost(LostReason::Expired),
                ExtendBar::BeyondMaxHold => ExtendErrorKind::BeyondMaxHold,
                ExtendBar::TooMany => ExtendErrorKind::LimitReached(LimitKind::Extensions),
            })),
        };
        self.carry_out(lock.0);
        answer
    }

    pub(super) fn start_release(&mut self, lock: LockId) -> Result<OperationId, UnknownLock> {
        let now = self.now;
        let entry =
            self.claims.get_mut(lock.0).filter(|entry| !entry.claim.is_attempting()).ok_or(UnknownLock)?;
        let known = match entry.claim.ended() {
            _ if entry.release_answered => return Err(UnknownLock),
            None => None,
            Some(EndReason::Expired) => Some(ReleaseOutcome::Expired),
            Some(EndReason::TokenGone | EndReason::Duplicate) => Some(ReleaseOutcome::NotMine),
            Some(EndReason::Released | EndReason::NotAcquired) => return Err(UnknownLock),
        };
        let operation = OperationId(self.operations.insert(Operation::Release(lock)));
        if let Some(outcome) = known {
            // Its loss has sent the release already (R17).
            entry.release_answered = true;
            self.operations.remove(operation.0);
            self.queue.event(Event::Released { operation, lock, outcome });
            return Ok(operation);
        }
        entry.release = Some(operation);
        self.drive(lock.0, |claim, effects| claim.release(now, effects));
        Ok(operation)
    }

    // ---- connect ----

    pub(super) fn start_connect(&mut self, timeout: Duration) -> OperationId {
        let until = self.now.saturating_add(timeout);
        let has_room = self.room_for_operation();
        let connect = ConnectOperation { start: self.now, until, armed: Slot::default() };
        let operation = self.operations.insert(Operation::Connect(connect));
        if self.closing.is_some() {
            self.fail_connect(operation, ConnectEnd::Closed);
        } else if !has_room {
            self.fail_connect(operation, ConnectEnd::LimitReached);
        } else {
            self.arm_operation(operation);
            self.evaluate_connects();
        }
        OperationId(operation)
    }

    /// Answers the connects that can be answered (R27).
    pub(super) fn evaluate_connects(&mut self) {
        let connects =
            self.operations.iter().filter(|(_, operation)| matches!(operation, Operation::Connect(_)));
        let connects: Vec<u64> = connects.map(|(operation, _)| operation).collect();
        if connects.is_empty() {
            return;
        }
        let quorum = Quorum::planted(self.config.node_count(), self.config.quorum());
        let ready = self.nodes.iter().filter(|node| is_up(node)).count();
        let hopeless = self
            .nodes
            .iter()
            .filter(|node| !is_up(node) && node.why_not(self.now).is_final_for_connect())
            .count();
        for operation in connects {
            if ready >= usize::from(quorum.needed()) {
                self.remove_operation(operation);
                self.queue.event(Event::Connected { operation: OperationId(operation) });
            } else if hopeless >= usize::from(quorum.blocking()) {
                self.fail_connect(operation, ConnectEnd::NoQuorum);
            }
        }
    }

    pub(super) fn fail_connect(&mut self, operation: u64, end: ConnectEnd) {
        let Some(Operation::Connect(connect)) = self.remove_operation(operation) else { return };
        let down = self.nodes.iter().filter(|node| !is_up(node));
        let report = |node: &Node| NodeReport {
            node: node.id,
            address: node.label.clone(),
            outcome: NodeOutcome::Unsent(node.why_not(self.now)),
            took: None,
            holder: None,
        };
        let error = ConnectError {
            ready: u8::try_from(self.nodes.iter().filter(|node| is_up(node)).count()).unwrap_or(u8::MAX),
            needed: self.config.quorum(),
            timed_out: end == ConnectEnd::TimedOut,
            closed: end == ConnectEnd::Closed,
            limit: (end == ConnectEnd::LimitReached).then_some(LimitKind::Operations),
            elapsed: self.now.saturating_duration_since(connect.start),
            nodes: down.map(report).collect(),
        };
        self.queue.event(Event::ConnectFailed { operation: OperationId(operation), error });
    }

    // ---- all of them ----

    pub(super) fn cancel_operation(&mut self, operation: OperationId) {
        if let Some(lock) = self.queue.take_back_grant(operation) {
            return self.take_back(operation, lock);
        }
        let now = self.now;
        match self.operations.get(operation.0) {
            None => {}
            Some(Operation::Acquire(acquire)) => {
                let AcquirePhase::Attempting(lock) = acquire.phase else {
                    return self.fail_acquire(operation.0, AcquireErrorKind::Cancelled);
                };
                if let Some(entry) = self.claims.get_mut(lock) {
                    entry.acquire = None;
                }
                self.keep_reports(operation.0, lock);
                self.fail_acquire(operation.0, AcquireErrorKind::Cancelled);
                self.drive(lock, |claim, effects| claim.abandon(now, effects));
            }
            Some(Operation::Extend(lock)) => {
                let lock = *lock;
                self.remove_operation(operation.0);
                let error = self.extend_error(lock.0, ExtendErrorKind::Cancelled);
                self.queue.event(Event::ExtendFailed { operation, lock, error });
            }
            Some(Operation::Release(lock)) => {
                // The release itself goes on; nobody waits for what it learns.
                let lock = *lock;
                self.remove_operation(operation.0);
                let gone_by = self.claims.get(lock.0).map_or(now, |entry| {
                    now.saturating_add(entry.claim.terms().ttl).max(entry.claim.deadline())
                });
                self.queue.event(Event::Released {
                    operation,
                    lock,
                    outcome: ReleaseOutcome::Unknown { gone_by },
                });
            }
            Some(Operation::Connect(_)) => self.fail_connect(operation.0, ConnectEnd::Closed),
        }
    }

    /// A grant that nobody has seen is released again.
    fn take_back(&mut self, operation: OperationId, lock: LockId) {
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
    fn keep_reports(&mut self, operation: u64, lock: u64) {
        let Some(entry) = self.claims.get(lock).filter(|entry| entry.claim.is_attempting()) else { return };
        let reports = self.attempt_reports(entry);
        if let Some(Operation::Acquire(acquire)) = self.operations.get_mut(operation) {
            acquire.reports = reports;
        }
    }

    pub(super) fn on_operation_due(&mut self, operation: u64) {
        let step = match self.operations.get_mut(operation) {
            Some(Operation::Acquire(acquire)) => {
                acquire.armed = Slot::default();
                match acquire.phase {
                    AcquirePhase::Queued => Self::end_of_wait,
                    AcquirePhase::Sleeping(_) => Self::wake,
                    AcquirePhase::Concluding { .. } => Self::finish_concluding,
                    AcquirePhase::Attempting(_) => return,
                }
            }
            Some(Operation::Connect(connect)) => {
                connect.armed = Slot::default();
                return self.fail_connect(operation, ConnectEnd::TimedOut);
            }
            Some(Operation::Extend(_) | Operation::Release(_)) | None => return,
        };
        step(self, operation);
    }

    pub(super) fn arm_operation(&mut self, operation: u64) {
        let (slot, at) = match self.operations.get_mut(operation) {
            Some(Operation::Acquire(acquire)) => {
                let at = match acquire.phase {
                    AcquirePhase::Queued => Some(acquire.row.wait_end()),
                    AcquirePhase::Sleeping(at) => Some(at),
                    AcquirePhase::Concluding { until, .. } => Some(until),
                    AcquirePhase::Attempting(_) => None,
                };
                (&mut acquire.armed, at)
            }
            Some(Operation::Connect(connect)) => (&mut connect.armed, Some(connect.until)),
            Some(Operation::Extend(_) | Operation::Release(_)) | None => return,
        };
        self.timers.arm(slot, Due::Operation(operation), at, self.now);
    }

    /// Forgets an operation and its timer, and its place in line.
    pub(super) fn remove_operation(&mut self, operation: u64) -> Option<Operation> {
        self.step_out(operation);
        let mut removed = self.operations.remove(operation)?;
        let slot = match &mut removed {
            Operation::Acquire(acquire) => Some(&mut acquire.armed),
            Operation::Connect(connect) => Some(&mut connect.armed),
            Operation::Extend(_) | Operation::Release(_) => None,
        };
        if let Some(slot) = slot {
            self.timers.arm(slot, Due::Operation(operation), None, self.now);
        }
        Some(removed)
    }
}

/// Whether the node counts towards a connect.
fn is_up(node: &Node) -> bool {
    matches!(node.reach(), Reach::Ready | Reach::Quarantined)
}

fn is_fatal(outcome: &NodeOutcome) -> bool {
    match outcome {
        NodeOutcome::Unsent(fault) | NodeOutcome::Failed(fault) => NodeFault::is_fatal(fault),
        NodeOutcome::Granted | NodeOutcome::Refused | NodeOutcome::Unanswered => false,
    }
}
