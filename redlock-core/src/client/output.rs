//! The queue to the driver.

use super::Client;
use crate::event::{Event, Output};
use crate::ids::{ConnectionId, LockId, OperationId};
use crate::node::Tag;
use alloc::collections::VecDeque;
use bytes::Bytes;

/// Something in the queue.
#[derive(Debug)]
enum Queued {
    Ready(Output),
    /// The outbox of a connection: what is in it when its turn comes is one payload.
    Outbox(ConnectionId),
}

/// First in, first out, across all kinds of output.
#[derive(Debug)]
pub(super) struct OutputQueue {
    queue: VecDeque<Queued>,
    /// How many outputs may wait before notices are left out.
    most_notices: usize,
}

impl OutputQueue {
    pub(super) const fn new(most_notices: usize) -> Self {
        Self { queue: VecDeque::new(), most_notices }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn push(&mut self, output: Output) {
        self.queue.push_back(Queued::Ready(output));
    }

    pub(super) fn event(&mut self, event: Event) {
        self.push(Output::Event(event));
    }

    /// An event that nobody waits for: told while there is room, so that a driver that never drains cannot make the queue
    /// grow.
    pub(super) fn notice(&mut self, event: Event) {
        if self.queue.len() < self.most_notices {
            self.event(event);
        }
    }

    /// Asks for the end of a connection; takes the wish for it back where the driver has not seen it.
    pub(super) fn disconnect(&mut self, connection: ConnectionId) {
        let is_wish = |queued: &Queued| matches!(queued, Queued::Ready(Output::Connect { connection: wished, .. }) if *wished == connection);
        match self.queue.iter().position(is_wish) {
            Some(index) => {
                self.queue.remove(index);
            }
            None => self.push(Output::Disconnect { connection }),
        }
    }

    pub(super) fn outbox(&mut self, connection: ConnectionId) {
        self.queue.push_back(Queued::Outbox(connection));
    }

    /// Takes back the event that an acquire was granted, if the driver has not seen it, and all that was said of the lock
    /// since.
    pub(super) fn take_back_grant(&mut self, operation: OperationId) -> Option<LockId> {
        let granted = self.queue.iter().find_map(|queued| match queued {
            Queued::Ready(Output::Event(Event::Acquired { operation: of, lock, .. })) if *of == operation => {
                Some(*lock)
            }
            Queued::Ready(_) | Queued::Outbox(_) => None,
        })?;
        self.queue.retain(|queued| match queued {
            Queued::Ready(Output::Event(event)) => lock_of(event) != Some(granted),
            Queued::Ready(_) | Queued::Outbox(_) => true,
        });
        Some(granted)
    }

    /// Moves the events behind the first `mark` entries to the front, in order, and `output` behind them: what handing
    /// it out has changed is told before it.
    fn put_events_before(&mut self, mark: usize, output: Output) {
        let mut behind = self.queue.split_off(mark.min(self.queue.len()));
        self.queue.push_front(Queued::Ready(output));
        let is_event = |queued: &Queued| matches!(queued, Queued::Ready(Output::Event(_)));
        let (events, others): (VecDeque<_>, VecDeque<_>) = behind.drain(..).partition(is_event);
        self.queue.extend(others);
        for event in events.into_iter().rev() {
            self.queue.push_front(event);
        }
    }
}

/// The lock that the event is about, if it is about one.
const fn lock_of(event: &Event) -> Option<LockId> {
    match event {
        Event::Acquired { lock, .. }
        | Event::Extended { lock, .. }
        | Event::ExtendFailed { lock, .. }
        | Event::Released { lock, .. }
        | Event::Renewed { lock, .. }
        | Event::RenewalFailed { lock, .. }
        | Event::DeadlineMoved { lock, .. }
        | Event::Expiring { lock, .. }
        | Event::Lost { lock, .. }
        | Event::Repaired { lock, .. }
        | Event::AliasSuspected { lock, .. } => Some(*lock),
        Event::AcquireFailed { .. }
        | Event::AttemptLost { .. }
        | Event::NodeUp { .. }
        | Event::NodeDown { .. }
        | Event::IdentityUnknown { .. }
        | Event::NodeRestarted { .. }
        | Event::NodeQuarantined { .. }
        | Event::QuarantineOver { .. }
        | Event::ClockStepped { .. }
        | Event::Connected { .. }
        | Event::ConnectFailed { .. }
        | Event::Closed => None,
    }
}

impl Client {
    pub(super) fn next_output(&mut self) -> Option<Output> {
        loop {
            let connection = match self.queue.queue.pop_front()? {
                Queued::Ready(output) => return Some(output),
                Queued::Outbox(connection) => connection,
            };
            let mark = self.queue.queue.len();
            let handed_out = self.hand_out(connection);
            // A lock that the hand-out has lowered to its end makes way.
            self.move_lines();
            let Some(payload) = handed_out else { continue };
            let output = Output::Transmit { connection, payload };
            if self.queue.queue.len() > mark {
                // Belief was lowered by the hand-out (R14): whoever believes hears of it before the bytes are out.
                self.queue.put_events_before(mark, output);
                continue;
            }
            return Some(output);
        }
    }

    /// What waits for the connection, as one payload; the machines are told that it is handed out.
    fn hand_out(&mut self, connection: ConnectionId) -> Option<Bytes> {
        let index = connection.node.index();
        let node = self.nodes.get_mut(index).filter(|node| node.connection() == connection)?;
        let handed_out = node.hand_out(self.now);
        // What telling a machine puts into the outbox is behind these, and waits.
        let end = node.pipeline();
        for number in handed_out.as_ref().map_or(end, |handed_out| handed_out.1)..end {
            let tag = self.nodes.get(index).and_then(|node| node.outbox.tag(number));
            if let Some(Tag::Claim { lock, verb, .. }) = tag {
                self.handed_out(lock.0, connection.node, verb);
            }
        }
        self.arm_node(index);
        Some(handed_out?.0)
    }
}
