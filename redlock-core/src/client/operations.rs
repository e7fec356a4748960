//! What was asked for: extends, releases and connects, and what all of these and acquires have in common.

use super::Client;
use super::acquire::{AcquireOperation, AcquirePhase};
use super::claims::lost_reason;
use super::timers::{Due, Slot};
use crate::error::{
    AcquireErrorKind, ConnectError, ExtendErrorKind, ExtendRefused, LimitKind, NodeOutcome, NodeReport,
    UnknownLock,
};
use crate::event::{Event, LostReason, ReleaseOutcome};
use crate::ids::{LockId, OperationId};
use crate::machine::{EndReason, ExtendBar, Quorum, Reach};
use crate::node::Node;
use crate::request::check_ttl;
use crate::time::Instant;
use alloc::vec::Vec;
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
pub(super) struct ConnectOperation {
    start: Instant,
    until: Instant,
    armed: Slot,
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
    pub(super) fn room_for_operation(&self) -> bool {
        self.operations.len() < self.config.limits().operations
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

    pub(super) fn on_operation_due(&mut self, operation: u64) {
        let step = match self.operations.get_mut(operation) {
            Some(Operation::Acquire(acquire)) => {
                acquire.armed = Slot::default();
                match acquire.phase {
                    AcquirePhase::Delayed(_) => Self::contend,
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
                    AcquirePhase::Delayed(at) | AcquirePhase::Sleeping(at) => Some(at),
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
