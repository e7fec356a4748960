//! What the mutex guards: the engine, its driver, and who waits for what.

use super::after::After;
use super::cell::{Ended, LockCell, Now};
use super::feed::Feed;
use super::hub::{Driver, LONGEST_SLEEP};
use super::observe::Observer;
use super::sync::Arc;
use crate::client::Client;
use crate::config::Config;
use crate::error::{AcquireError, ConnectError, ExtendError, ExtendErrorKind};
use crate::event::{Event, LostReason, Output, ReleaseOutcome};
use crate::ids::{Fence, LockId, OperationId};
use crate::request::resource_text;
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use core::task::Waker;
use core::time::Duration;

/// With no more operations under way than that, each writes at once, and needs nobody to be woken for it. Operations whose
/// answer is there and was not taken count, too: who takes it often asks for something again.
#[cfg(not(loom))]
const FEW: usize = 4;
/// So that a model needs few.
#[cfg(loom)]
const FEW: usize = 1;

/// What the mutex guards.
pub(super) struct State<D> {
    pub(super) client: Client,
    pub(super) driver: D,
    waiting: BTreeMap<OperationId, Slot>,
    /// How many of them have no answer yet.
    unanswered: usize,
    cells: BTreeMap<LockId, Arc<LockCell>>,
    pub(super) feeds: Vec<Arc<Feed>>,
    pub(super) observer: Observer,
    closing: BTreeMap<u64, Waker>,
    next_closing: u64,
    pub(super) is_closed: bool,
    /// This turn transmits what nobody waits for.
    is_urgent: bool,
    /// The clock, for callbacks that are told what is left.
    now: Now,
}

/// Who waits for an operation, and its answer once that is there.
#[derive(Default)]
pub(super) struct Slot {
    waker: Option<Waker>,
    answer: Option<Answer>,
    /// What an acquire asked for.
    resources: Vec<Bytes>,
}

/// The answer to an operation.
pub(super) enum Answer {
    Acquire(Result<Arc<LockCell>, AcquireError>),
    Extend(Result<Instant, ExtendError>),
    Release(ReleaseOutcome),
    Connect(Result<(), ConnectError>),
}

impl<D: Driver> State<D> {
    /// A new client, whose driver has not been told anything.
    pub(super) fn new(config: &Config, driver: D, seed: u64, now: Now) -> Self {
        Self {
            client: Client::new(config.clone(), seed, now()),
            driver,
            waiting: BTreeMap::new(),
            unanswered: 0,
            cells: BTreeMap::new(),
            feeds: Vec::new(),
            observer: Observer::new(config),
            closing: BTreeMap::new(),
            next_closing: 0,
            is_closed: false,
            is_urgent: false,
            now,
        }
    }

    /// Does what the engine wants until it wants nothing more.
    pub(super) fn settle(&mut self, now: Instant, after: &mut After) {
        while let Some(output) = self.client.poll_output() {
            match output {
                Output::Connect { connection, address } => {
                    if let Err(reason) = self.driver.connect(connection, &address, now) {
                        self.client.handle_disconnected(connection, reason, now);
                    }
                }
                Output::Transmit { connection, payload } => self.driver.transmit(connection, payload),
                Output::Disconnect { connection } => self.driver.disconnect(connection),
                Output::Event(event) => self.on_event(event, now, after),
            }
        }
        let may_gather = !core::mem::take(&mut self.is_urgent) && self.waiting.len() > FEW;
        self.driver.flush(self.unanswered, may_gather);
        let due = self.client.poll_timeout().map(|deadline| deadline.at);
        let longest = (!self.client.is_idle()).then(|| now.saturating_add(LONGEST_SLEEP));
        self.driver.arm(due.into_iter().chain(longest).min(), now);
        after.wake(self.driver.wakes());
    }

    fn on_event(&mut self, event: Event, now: Instant, after: &mut After) {
        self.observer.saw(&event, &self.client, now, after);
        self.feeds.retain(|feed| match feed.push(&event) {
            Some(waker) => {
                after.wake(waker);
                true
            }
            None => false,
        });
        match event {
            Event::Acquired { operation, lock, deadline, fence } => {
                self.on_acquired(operation, lock, (deadline, fence), now, after)
            }
            Event::AcquireFailed { operation, error } => {
                self.answer(operation, Answer::Acquire(Err(error)), after)
            }
            Event::Extended { operation, lock, deadline } => {
                let cell = self.cells.get(&lock).map(Arc::clone);
                let answer = if self.move_deadline(lock, deadline, now, after) {
                    Ok(deadline)
                } else {
                    let resource = cell.map(|cell| resource_text(cell.resources())).unwrap_or_default();
                    let (kind, elapsed) = (ExtendErrorKind::Lost(LostReason::Expired), Duration::ZERO);
                    Err(ExtendError { kind, resource, elapsed, nodes: Vec::new() })
                };
                self.answer(operation, Answer::Extend(answer), after);
            }
            Event::ExtendFailed { operation, error, .. } => {
                self.answer(operation, Answer::Extend(Err(error)), after);
            }
            Event::Released { operation, outcome, .. } => {
                self.answer(operation, Answer::Release(outcome), after)
            }
            Event::Connected { operation } => self.answer(operation, Answer::Connect(Ok(())), after),
            Event::ConnectFailed { operation, error } => {
                self.answer(operation, Answer::Connect(Err(error)), after)
            }
            Event::Renewed { lock, deadline, .. } | Event::DeadlineMoved { lock, deadline } => {
                self.move_deadline(lock, deadline, now, after);
            }
            Event::Expiring { lock, deadline } => {
                if let Some(cell) = self.cells.get(&lock) {
                    cell.expiring(deadline, &self.now, after);
                }
            }
            Event::Lost { lock, reason } => {
                if let Some(cell) = self.cells.remove(&lock) {
                    cell.end(Ended::Lost(reason), after);
                }
            }
            Event::Closed => {
                self.is_closed = true;
                self.driver.close();
                for (_, waker) in core::mem::take(&mut self.closing) {
                    after.wake(Some(waker));
                }
            }
            Event::AttemptLost { .. }
            | Event::HolderSeen { .. }
            | Event::RenewalFailed { .. }
            | Event::Repaired { .. }
            | Event::AliasSuspected { .. }
            | Event::NodeUp { .. }
            | Event::NodeDown { .. }
            | Event::IdentityUnknown { .. }
            | Event::NodeRestarted { .. }
            | Event::NodeQuarantined { .. }
            | Event::QuarantineOver { .. }
            | Event::ClockStepped { .. } => {}
        }
    }

    fn on_acquired(
        &mut self,
        operation: OperationId,
        lock: LockId,
        (deadline, fence): (Instant, Option<Fence>),
        now: Instant,
        after: &mut After,
    ) {
        let Some(slot) = self.waiting.get_mut(&operation) else {
            // Nobody wants it.
            let _unknown = self.client.release(lock, now);
            return;
        };
        let cell = Arc::new(LockCell::new(lock, core::mem::take(&mut slot.resources), deadline, fence));
        self.cells.insert(lock, Arc::clone(&cell));
        self.answer(operation, Answer::Acquire(Ok(cell)), after);
    }

    fn answer(&mut self, operation: OperationId, answer: Answer, after: &mut After) {
        if let Some(slot) = self.waiting.get_mut(&operation) {
            if slot.answer.replace(answer).is_none() {
                self.unanswered = self.unanswered.saturating_sub(1);
            }
            after.wake(slot.waker.take());
        }
    }

    /// Answers false where the lock was found expired by a handle before the engine could move its deadline: it is lost.
    fn move_deadline(&mut self, lock: LockId, deadline: Instant, now: Instant, after: &mut After) -> bool {
        let Some(cell) = self.cells.get(&lock) else { return false };
        if cell.move_deadline(deadline) {
            return true;
        }
        cell.end(Ended::Lost(LostReason::Expired), after);
        self.cells.remove(&lock);
        self.observer.releasing(lock, now);
        let _unknown = self.client.release(lock, now);
        false
    }

    // ---- what the pending operations and the handles of this module do ----

    pub(super) fn close(&mut self, now: Instant) {
        self.is_urgent = true;
        self.client.close(now);
    }

    /// Names an operation that somebody waits for; `resources` are those of an acquire.
    pub(super) fn wait_for(&mut self, operation: OperationId, resources: Vec<Bytes>) {
        self.waiting.insert(operation, Slot { resources, ..Slot::default() });
        self.unanswered = self.unanswered.saturating_add(1);
    }

    /// Nobody waits for it any more.
    fn take_slot(&mut self, operation: OperationId) -> Option<Slot> {
        let slot = self.waiting.remove(&operation)?;
        if slot.answer.is_none() {
            self.unanswered = self.unanswered.saturating_sub(1);
        }
        Some(slot)
    }

    /// The answer, or `waker` is kept to be woken for it. What has to be dropped, after the mutex, comes back.
    pub(super) fn poll_answer(
        &mut self,
        operation: OperationId,
        waker: Waker,
    ) -> (Option<Answer>, Option<Waker>) {
        match self.waiting.get_mut(&operation) {
            None => (None, Some(waker)),
            Some(slot) if slot.answer.is_some() => {
                let slot = self.take_slot(operation).unwrap_or_default();
                (slot.answer, slot.waker.or(Some(waker)))
            }
            Some(slot) => (None, slot.waker.replace(waker)),
        }
    }

    /// Nobody waits any more. A release goes on; anything else is called off, and what it got is given back (R20).
    pub(super) fn abandon(&mut self, operation: OperationId, now: Instant, after: &mut After) {
        let Some(slot) = self.take_slot(operation) else { return };
        self.is_urgent = true;
        match slot.answer {
            Some(Answer::Acquire(Ok(cell))) => self.give_up(&cell, now, after),
            Some(Answer::Acquire(Err(_)) | Answer::Extend(_) | Answer::Release(_) | Answer::Connect(_)) => {}
            None => self.client.cancel(operation, now),
        }
        if let Some(waker) = slot.waker {
            after.discard(waker);
        }
    }

    /// Nobody wants to know what the operation answers; it goes on.
    pub(super) fn forget(&mut self, operation: OperationId, after: &mut After) {
        if let Some(waker) = self.take_slot(operation).and_then(|slot| slot.waker) {
            after.discard(waker);
        }
    }

    /// The last handle is gone.
    pub(super) fn give_up(&mut self, cell: &LockCell, now: Instant, after: &mut After) {
        if cell.ended().is_none() {
            self.is_urgent = true;
            self.cells.remove(&cell.lock());
            self.observer.releasing(cell.lock(), now);
            // A lock that the engine does not know any more is gone already.
            let _unknown = self.client.release(cell.lock(), now);
            cell.end(Ended::Released, after);
        }
    }

    /// The last handle asks for its release: an operation to wait for, or what is known without asking.
    pub(super) fn release(
        &mut self,
        cell: &LockCell,
        now: Instant,
        after: &mut After,
    ) -> Result<OperationId, Option<ReleaseOutcome>> {
        match cell.ended() {
            Some(Ended::Lost(LostReason::Closed)) => return Err(None),
            Some(Ended::Lost(LostReason::Expired) | Ended::Released) => {
                return Err(Some(ReleaseOutcome::Expired));
            }
            Some(Ended::Lost(LostReason::TokenGone | LostReason::DuplicateNode)) => {
                return Err(Some(ReleaseOutcome::NotMine));
            }
            None => {}
        }
        self.cells.remove(&cell.lock());
        self.observer.releasing(cell.lock(), now);
        cell.end(Ended::Released, after);
        match self.client.release(cell.lock(), now) {
            Ok(operation) => {
                self.wait_for(operation, Vec::new());
                Ok(operation)
            }
            Err(_) => Err(Some(ReleaseOutcome::Expired)),
        }
    }

    /// Whether it is closed; else `waker` is kept under a name, in the place of `old`.
    pub(super) fn poll_closed(&mut self, old: &mut Option<u64>, waker: Waker) -> (bool, Option<Waker>) {
        if self.is_closed {
            return (true, Some(waker));
        }
        let id = *old.get_or_insert_with(|| {
            self.next_closing = self.next_closing.wrapping_add(1);
            self.next_closing
        });
        (false, self.closing.insert(id, waker))
    }

    pub(super) fn forget_closing(&mut self, id: u64) -> Option<Waker> {
        self.closing.remove(&id)
    }

    pub(super) const fn clock(&self) -> &Now {
        &self.now
    }
}
