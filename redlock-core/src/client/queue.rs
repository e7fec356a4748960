//! Acquires of one resource that wait for each other inside the client, and for what it holds itself.

use super::acquire::AcquirePhase;
use super::claims::Entry;
use super::operations::Operation;
use super::{Client, SPARE};
use crate::error::{AcquireErrorKind, Holder, NodeOutcome, NodeReport};
use crate::machine::{Queue, RoundLoss, Watch};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

/// The queue of one resource, and what its last lost round has learnt.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) queue: Queue,
    /// Why it was lost, and what the nodes said; none since the client got the lock.
    last: Option<(RoundLoss, Vec<NodeReport>)>,
    /// The watch over the key, with its number, while somebody else holds it.
    pub(super) watch: Option<(u64, Box<Watch>)>,
}

impl Client {
    /// A new acquire takes its place behind those that wait for the resource; it contends at once where it is the first.
    pub(super) fn join_line(&mut self, key: Bytes, operation: u64) {
        if let Some(line) = self.lines.get_mut(&key) {
            line.queue.join(operation);
            self.arm_operation(operation);
            self.moved.push_back(key);
        } else {
            let line = self.new_line(Queue::alone(operation));
            self.lines.insert(key, line);
            self.start_attempt(operation);
        }
    }

    fn new_line(&mut self, queue: Queue) -> Box<Line> {
        let mut line = self.spare_lines.pop().unwrap_or_default();
        line.queue = queue;
        line
    }

    /// An acquire contends no more, and waits no more: it is answered, or about to be.
    pub(super) fn leave_line(&mut self, key: &Bytes, operation: u64) {
        let Some(line) = self.lines.get_mut(key) else { return };
        let was_front = line.queue.leave(operation);
        if line.queue.is_idle() {
            return self.drop_line(key);
        }
        if was_front && line.queue.is_awaited() {
            self.moved.push_back(key.clone());
        }
    }

    /// The client holds the only key of the lock: whoever wants it waits for the end of that.
    pub(super) fn line_granted(&mut self, key: &Bytes, lock: u64) {
        if !self.lines.contains_key(key) {
            let line = self.new_line(Queue::default());
            self.lines.insert(key.clone(), line);
        }
        let Some(line) = self.lines.get_mut(key) else { return };
        line.queue.granted(lock);
        line.last = None;
        if let Some((number, _)) = line.watch.take() {
            self.watched.remove(&number);
        }
        // One that sleeps until its next round would miss the end of the hold.
        if let Some(front) = line.queue.front()
            && self.is_sleeping(front)
        {
            self.step_back(key);
        }
    }

    /// A lock or an attempt of the client has ended: if it stood in the way, it is the next one's turn. Its release is in
    /// the outboxes already, ahead of the next SET (R7).
    pub(super) fn line_ended(&mut self, key: &Bytes, lock: u64) {
        let now = self.now;
        let Some(line) = self.lines.get_mut(key) else { return };
        let is_free = line.queue.ended(lock, now);
        if line.queue.is_idle() {
            return self.drop_line(key);
        }
        if is_free && line.queue.is_awaited() {
            self.moved.push_back(key.clone());
        }
    }

    /// The one that contends has lost a round, and would sleep until `retry_at`. Answers whether it shall: it waits in its
    /// place instead where it has lost to a lock of this client.
    pub(super) fn line_lost(
        &mut self,
        key: &Bytes,
        loss: RoundLoss,
        reports: &[NodeReport],
        retry_at: Option<Instant>,
    ) -> bool {
        let Some(line) = self.lines.get_mut(key) else { return true };
        line.last = Some((loss, reports.to_vec()));
        line.queue.lost(retry_at);
        line.queue.holder().is_none()
    }

    /// The one that contends goes back to its place, and waits for the end of what the client holds.
    pub(super) fn step_back(&mut self, key: &Bytes) {
        let Some(line) = self.lines.get_mut(key) else { return };
        let Some(front) = line.queue.front() else { return };
        line.queue.step_back();
        self.set_phase(front, AcquirePhase::Queued);
    }

    /// What is known to one that leaves before it made a round: what the last round of another has learnt, or how the
    /// client's own lock stands.
    pub(super) fn line_news(&self, key: &Bytes) -> Option<(RoundLoss, Vec<NodeReport>)> {
        let line = self.lines.get(key)?;
        let holder = line.queue.holder().and_then(|lock| self.claims.get(lock));
        match holder {
            Some(entry) => Some((RoundLoss::Contended, self.holder_reports(entry))),
            None => {
                let (loss, mut reports) = line.last.clone()?;
                self.tell_holders(key, &mut reports);
                Some((loss, reports))
            }
        }
    }

    /// A lock of this client as another acquire of it would meet it.
    fn holder_reports(&self, entry: &Entry) -> Vec<NodeReport> {
        let mut reports = self.attempt_reports(entry);
        for report in &mut reports {
            report.took = None;
            if let Some(until) = entry.claim.support(report.node) {
                report.outcome = NodeOutcome::Refused;
                report.holder = Some(Holder::Lock { remaining: until.saturating_duration_since(self.now) });
            }
        }
        reports
    }

    fn drop_line(&mut self, key: &Bytes) {
        let Some(mut line) = self.lines.remove(key) else { return };
        if let Some((number, _)) = line.watch.take() {
            self.watched.remove(&number);
            self.stop_tracking();
        }
        line.last = None;
        if self.spare_lines.len() < SPARE {
            self.spare_lines.push(line);
        }
    }

    /// Lets those contend whose turn it has become. One after the other and not from where it becomes so: of attempts
    /// that fail at once there can be as many in a row as there are waiters.
    #[inline]
    pub(super) fn move_lines(&mut self) {
        if !self.moved.is_empty() {
            self.let_contend();
        }
    }

    fn let_contend(&mut self) {
        while let Some(key) = self.moved.pop_front() {
            let Some(line) = self.lines.get_mut(&key) else { continue };
            if self.closing.is_some() {
                continue;
            }
            match line.queue.turn() {
                Some((operation, at)) if at > self.now => self.sleep_until(operation, at),
                Some((operation, _)) => self.start_attempt(operation),
                None => {}
            }
        }
    }

    // ---- the acquires in line ----

    /// A waiter's wait is over before it was its turn.
    pub(super) fn end_of_wait(&mut self, operation: u64) {
        let Some(Operation::Acquire(acquire)) = self.operations.get(operation) else { return };
        let news = acquire.line().and_then(|key| self.line_news(key)).map(|(loss, _)| loss);
        let last = news.or(acquire.last).unwrap_or(RoundLoss::Contended);
        self.fail_acquire(operation, AcquireErrorKind::WaitOver { last });
    }

    /// The acquire makes its next attempt then, or when its wait is over if that is sooner.
    pub(super) fn sleep_until(&mut self, operation: u64, at: Instant) {
        let Some(Operation::Acquire(acquire)) = self.operations.get(operation) else { return };
        let at = at.min(acquire.row.wait_end());
        self.set_phase(operation, AcquirePhase::Sleeping(at));
    }

    /// The line that the acquire is in, and when its wait ends.
    pub(super) fn line_of(&self, operation: u64) -> Option<(Bytes, Instant)> {
        match self.operations.get(operation)? {
            Operation::Acquire(acquire) => Some((acquire.line()?.clone(), acquire.row.wait_end())),
            Operation::Extend(_) | Operation::Release(_) | Operation::Connect(_) => None,
        }
    }

    /// How patient the acquire is with a node.
    pub(super) fn patience_of(&self, operation: u64) -> Duration {
        match self.operations.get(operation) {
            Some(Operation::Acquire(acquire)) => self.config.node_timeout_for(acquire.ttl),
            Some(Operation::Extend(_) | Operation::Release(_) | Operation::Connect(_)) | None => {
                Duration::ZERO
            }
        }
    }

    pub(super) fn is_sleeping(&self, operation: u64) -> bool {
        let phase = |operation: &Operation| match operation {
            Operation::Acquire(acquire) => matches!(acquire.phase, AcquirePhase::Sleeping(_)),
            Operation::Extend(_) | Operation::Release(_) | Operation::Connect(_) => false,
        };
        self.operations.get(operation).is_some_and(phase)
    }

    pub(super) fn set_phase(&mut self, operation: u64, phase: AcquirePhase) {
        let Some(Operation::Acquire(acquire)) = self.operations.get_mut(operation) else { return };
        acquire.phase = phase;
        self.arm_operation(operation);
    }

    /// The acquire leaves the line that it is in.
    pub(super) fn step_out(&mut self, operation: u64) {
        if let Some(Operation::Acquire(acquire)) = self.operations.get(operation)
            && let Some(key) = acquire.line().cloned()
        {
            self.leave_line(&key, operation);
        }
    }
}
