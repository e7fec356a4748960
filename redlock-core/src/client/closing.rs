//! The end of a client: what is held is released, what is pending is called off, then the connections are closed.

use super::Client;
use super::operations::{ConnectEnd, Operation};
use super::timers::{Due, Slot};
use crate::error::{AcquireErrorKind, ExtendErrorKind};
use crate::event::{Event, LostReason, ReleaseOutcome};
use crate::ids::{LockId, OperationId};
use crate::node::State;
use alloc::vec::Vec;

impl Client {
    pub(super) fn start_closing(&mut self) {
        if self.closing.is_some() {
            return;
        }
        let now = self.now;
        let patience =
            self.claims.iter().map(|(_, entry)| entry.claim.terms().node_timeout).max().unwrap_or_default();
        let until = now.saturating_add(patience);
        let operations: Vec<u64> = self.operations.iter().map(|(operation, _)| operation).collect();
        for operation in operations {
            match self.operations.get(operation) {
                Some(Operation::Acquire(_)) => self.fail_acquire(operation, AcquireErrorKind::Closed),
                Some(Operation::Connect(_)) => self.fail_connect(operation, ConnectEnd::Closed),
                Some(Operation::Extend(lock)) => {
                    let lock = *lock;
                    self.operations.remove(operation);
                    let error = self.extend_error(lock.0, ExtendErrorKind::Closed);
                    self.queue.event(Event::ExtendFailed { operation: OperationId(operation), lock, error });
                }
                // A release is answered by what it learns.
                Some(Operation::Release(_)) | None => {}
            }
        }
        for lock in self.all_claims() {
            let held = self.claims.get(lock).is_some_and(|entry| entry.claim.is_held());
            if held {
                self.queue.event(Event::Lost { lock: LockId(lock), reason: LostReason::Closed });
            }
            self.drive(lock, |claim, effects| claim.abandon(now, effects));
        }
        // From here on the last release that is answered ends it.
        self.closing = Some(until);
        let mut slot = Slot::default();
        self.timers.arm(&mut slot, Due::Closing, Some(until), now);
        self.finish_closing_if_done();
    }

    pub(super) fn on_closing_due(&mut self) {
        self.finish_closing();
    }

    /// Closed as soon as no release is under way any more: those owed to nodes that cannot be reached are not waited for.
    pub(super) fn finish_closing_if_done(&mut self) {
        let busy = self.claims.iter().any(|(_, entry)| entry.claim.is_releasing());
        if self.closing.is_some() && !busy {
            self.finish_closing();
        }
    }

    fn finish_closing(&mut self) {
        if self.closed {
            return;
        }
        self.closed = true;
        let operations: Vec<u64> = self.operations.iter().map(|(operation, _)| operation).collect();
        for operation in operations {
            if let Some(Operation::Release(lock)) = self.operations.remove(operation) {
                let ttl = self.claims.get(lock.0).map(|entry| entry.claim.terms().ttl).unwrap_or_default();
                let outcome = ReleaseOutcome::Unknown { gone_by: self.now.saturating_add(ttl) };
                self.queue.event(Event::Released { operation: OperationId(operation), lock, outcome });
            }
        }
        for lock in self.all_claims() {
            self.forget_claim(lock);
        }
        for index in 0..self.nodes.len() {
            let Some(node) = self.nodes.get_mut(index) else { continue };
            let connection = node.has_connection().then(|| node.connection());
            node.state = State::Closed;
            if let Some(connection) = connection {
                self.queue.disconnect(connection);
            }
            self.arm_node(index);
        }
        self.queue.event(Event::Closed);
    }
}
