//! A driver of the engine that keeps to the calling contract, and holds the engine to it.

use super::check;
use super::nodes::{self, PASSWORD};
use crate::simulate::Dice;
use core::time::Duration;
use redlock_core::{
    AcquireRequest, Client, ConnectionId, DisconnectReason, Event, Instant, LockId, NodeId, NodeVote,
    OperationId, Output, TimeoutReason,
};
use std::collections::{BTreeMap, VecDeque};

/// More outputs than this between two drains, for one call or place in a limit, and something grows without bound.
const OUTPUTS_EACH: usize = 8;
/// No command is longer, with the short names that are used here.
const COMMAND: usize = 1024;

/// One node as its driver sees it.
#[derive(Debug, Default)]
pub(super) struct End {
    /// Wanted, and not made yet.
    pub(super) wanted: Option<ConnectionId>,
    /// Made.
    pub(super) connection: Option<ConnectionId>,
    /// Commands that were not answered yet.
    pub(super) unanswered: VecDeque<Vec<Vec<u8>>>,
    /// Answers that have not arrived yet.
    pub(super) answers: VecDeque<u8>,
    /// Whether RESP3 is spoken.
    pub(super) is_resp3: bool,
}

#[derive(Debug)]
struct Operation {
    /// It has to be answered before this has passed.
    until: Instant,
    ttl: Duration,
    answers: u32,
}

#[derive(Debug)]
struct Lock {
    ttl: Duration,
    released: bool,
    lost: bool,
}

/// The engine, its driver, and what was seen.
#[derive(Debug)]
pub(super) struct Rig {
    pub(super) client: Client,
    /// The driver's clock.
    pub(super) now: Instant,
    pub(super) ends: Vec<End>,
    operations: BTreeMap<OperationId, Operation>,
    locks: BTreeMap<LockId, Lock>,
    /// The longest ttl that anything was asked for: no deadline is further away.
    longest_ttl: Duration,
    calls: usize,
    closing: Option<Instant>,
    closed: bool,
}

impl Rig {
    pub(super) fn new(client: Client) -> Self {
        let ends = client.config().nodes().iter().map(|_| End::default()).collect();
        Self {
            now: client.now(),
            client,
            ends,
            operations: BTreeMap::new(),
            locks: BTreeMap::new(),
            longest_ttl: Duration::ZERO,
            calls: 1,
            closing: None,
            closed: false,
        }
    }

    // ---- calls ----

    pub(super) fn acquire(&mut self, request: AcquireRequest) {
        self.calls += 1;
        let config = self.client.config();
        let ttl = request.named_ttl().unwrap_or_else(|| config.default_ttl());
        let wait = request.named_wait().unwrap_or_else(|| config.default_wait());
        let until = self.now.saturating_add(wait).saturating_add(config.node_timeout_for(ttl));
        self.longest_ttl = self.longest_ttl.max(ttl);
        let operation = self.client.acquire(request, self.now);
        self.operations.insert(operation, Operation { until, ttl, answers: 0 });
    }

    pub(super) fn extend(&mut self, lock: LockId, ttl: Duration) {
        self.calls += 1;
        let until = self.until_of(lock);
        if let Ok(operation) = self.client.extend(lock, ttl, self.now) {
            self.longest_ttl = self.longest_ttl.max(ttl);
            self.operations.insert(operation, Operation { until, ttl, answers: 0 });
        }
    }

    pub(super) fn release(&mut self, lock: LockId) -> Result<(), String> {
        self.calls += 1;
        let until = self.until_of(lock);
        if let Ok(operation) = self.client.release(lock, self.now) {
            self.operations.insert(operation, Operation { until, ttl: Duration::ZERO, answers: 0 });
            if let Some(lock) = self.locks.get_mut(&lock) {
                // One that was lost may be released: there is nothing to do, and that is what is answered.
                check(!lock.released || lock.lost, || "released twice".into())?;
                lock.released = true;
            }
        }
        check(!self.is_held(lock), || format!("{lock:?} is held, though released"))
    }

    /// What is asked about a lock is answered within one node timeout of the lock's own ttl.
    fn until_of(&self, lock: LockId) -> Instant {
        let ttl = self.locks.get(&lock).map_or(Duration::ZERO, |lock| lock.ttl);
        self.now.saturating_add(self.client.config().node_timeout_for(ttl))
    }

    pub(super) fn cancel(&mut self, operation: OperationId) {
        self.calls += 1;
        self.client.cancel(operation, self.now);
        // The answer of an extend or a release that was cancelled may come with those that wait for it.
        if let Some(operation) = self.operations.get_mut(&operation) {
            operation.until = operation.until.min(self.now);
        }
    }

    pub(super) fn connect(&mut self, timeout: Duration) {
        self.calls += 1;
        let until = self.now.saturating_add(timeout);
        let operation = self.client.connect(timeout, self.now);
        self.operations.insert(operation, Operation { until, ttl: Duration::ZERO, answers: 0 });
    }

    pub(super) fn close(&mut self) {
        self.calls += 1;
        let slowest = self.client.config().node_timeout_for(self.longest_ttl);
        let until = self.now.saturating_add(slowest);
        self.closing.get_or_insert(until);
        self.client.close(self.now);
    }

    pub(super) fn accept(&mut self, node: usize) {
        self.calls += 1;
        let end = &mut self.ends[node];
        if let Some(connection) = end.wanted.take() {
            end.connection = Some(connection);
            self.client.handle_connected(connection, self.now);
        }
    }

    /// The node answers its oldest command: the answer is on its way.
    pub(super) fn answer(&mut self, node: usize, dice: &mut Dice<'_>) {
        let end = &mut self.ends[node];
        let Some(command) = end.unanswered.pop_front() else { return };
        let choice = dice.below(256);
        let answer = if choice < 216 {
            let nil: &[u8] = if end.is_resp3 { b"_\r\n" } else { b"$-1\r\n" };
            let answer = nodes::honest(&command, node, choice, nil);
            end.is_resp3 |= answer.starts_with(b"%");
            answer
        } else {
            nodes::odd(&command, dice)
        };
        end.answers.extend(answer);
    }

    /// So much of what is on its way arrives.
    pub(super) fn deliver(&mut self, node: usize, most: usize) {
        self.calls += 1;
        let end = &mut self.ends[node];
        let Some(connection) = end.connection else { return };
        let bytes: Vec<u8> = end.answers.drain(..most.min(end.answers.len())).collect();
        self.client.handle_input(connection, &bytes, self.now);
    }

    pub(super) fn cut(&mut self, node: usize, why: u64) {
        self.calls += 1;
        let end = core::mem::take(&mut self.ends[node]);
        if let Some(connection) = end.connection.or(end.wanted) {
            self.client.handle_disconnected(connection, reason(why), self.now);
        }
    }

    /// Says something about a connection that is over, or never was.
    pub(super) fn stale(&mut self, node: u8, generation: u32, dice: &mut Dice<'_>) {
        let connection = ConnectionId { node: NodeId::new(node), generation };
        let end = self.ends.get(usize::from(node));
        let current = end.and_then(|end| end.connection.or(end.wanted));
        if current.is_some_and(|current| current.generation > generation) || end.is_none() {
            self.calls += 3;
            let bytes = nodes::raw(dice);
            self.client.handle_input(connection, &bytes, self.now);
            self.client.handle_connected(connection, self.now);
            self.client.handle_disconnected(connection, reason(dice.below(5)), self.now);
        }
    }

    pub(super) fn timeout(&mut self, now: Instant) {
        self.calls += 1;
        self.client.handle_timeout(now);
    }

    pub(super) fn pass(&mut self, span: Duration) {
        self.now = self.now.saturating_add(span);
        self.timeout(self.now);
    }

    /// Waits as a driver does: until the instant that was asked for, where that is not after `end`.
    pub(super) fn wake_up(&mut self, end: Instant) -> Result<bool, String> {
        self.drain()?;
        let Some(due) = self.client.poll_timeout().filter(|due| due.at <= end) else { return Ok(false) };
        self.now = self.now.max(due.at);
        self.timeout(due.at);
        self.drain()?;
        Ok(true)
    }

    // ---- outputs ----

    /// Drains, and looks at everything that must hold then.
    pub(super) fn drain(&mut self) -> Result<(), String> {
        let limits = self.client.config().limits().clone();
        let places = limits.operations.saturating_add(limits.locks).saturating_add(limits.queued_events);
        let most = places.saturating_add(self.calls + self.ends.len()).saturating_mul(OUTPUTS_EACH);
        let mut count = 0;
        loop {
            let before = self.client.poll_timeout();
            let Some(output) = self.client.poll_output() else { break };
            let is_now = |due: redlock_core::Deadline| {
                due.at == self.client.now() && due.reason == TimeoutReason::Output
            };
            check(before.is_some_and(is_now), || format!("output was queued, poll_timeout said {before:?}"))?;
            count += 1;
            check(count <= most, || format!("{count} outputs of {} calls", self.calls))?;
            self.take(output)?;
        }
        self.calls = 0;
        let now = self.client.now();
        let next = self.client.poll_timeout();
        check(next.is_none_or(|due| due.at > now), || format!("busy: {next:?} at {now:?}"))?;
        check(now >= self.now, || format!("the engine's {now:?} is before {:?}", self.now))?;
        self.look()
    }

    fn take(&mut self, output: Output) -> Result<(), String> {
        let limits = self.client.config().limits();
        let most = limits.in_flight_per_node.saturating_add(limits.locks).saturating_add(limits.cleanups);
        match output {
            Output::Connect { connection, .. } => {
                let end = &mut self.ends[connection.node.index()];
                let free = end.wanted.is_none() && end.connection.is_none();
                check(free, || format!("{connection:?} beside {end:?}"))?;
                end.wanted = Some(connection);
            }
            Output::Transmit { connection, payload } => {
                let end = &mut self.ends[connection.node.index()];
                check(end.connection == Some(connection), || format!("bytes for {connection:?} of {end:?}"))?;
                check(!payload.is_empty(), || "an empty payload".into())?;
                check(payload.len() <= most.saturating_mul(COMMAND), || {
                    format!("{} bytes at once", payload.len())
                })?;
                end.unanswered.extend(nodes::commands(&payload)?);
            }
            Output::Disconnect { connection } => {
                let end = &mut self.ends[connection.node.index()];
                let known = end.wanted == Some(connection) || end.connection == Some(connection);
                check(known, || format!("the end of {connection:?}, which is none of {end:?}"))?;
                *end = End::default();
            }
            Output::Event(event) => self.note(event)?,
        }
        Ok(())
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "looks at what it knows; a new event is no answer by itself"
    )]
    fn note(&mut self, event: Event) -> Result<(), String> {
        // Behind its end only what is asked for then is answered.
        let is_refusal = matches!(event, Event::AcquireFailed { .. } | Event::ConnectFailed { .. });
        check(!self.closed || is_refusal, || format!("{event:?} behind Closed"))?;
        match &event {
            Event::Acquired { operation, lock, deadline, .. } => {
                let ttl = self.operations.get(operation).map_or(Duration::ZERO, |asked| asked.ttl);
                check(*deadline > Instant::ZERO, || "a lock without a deadline".into())?;
                let known = self.locks.insert(*lock, Lock { ttl, released: false, lost: false });
                check(known.is_none(), || format!("{lock:?} acquired twice"))?;
                self.answered(*operation, &event)?;
            }
            Event::AcquireFailed { operation, error } => {
                shown(&format!("{error} {error:?}"))?;
                self.answered(*operation, &event)?;
            }
            Event::ExtendFailed { operation, error, .. } => {
                shown(&format!("{error} {error:?}"))?;
                self.answered(*operation, &event)?;
            }
            Event::ConnectFailed { operation, error } => {
                shown(&format!("{error} {error:?}"))?;
                self.answered(*operation, &event)?;
            }
            Event::Extended { operation, .. }
            | Event::Released { operation, .. }
            | Event::Connected { operation } => self.answered(*operation, &event)?,
            Event::RenewalFailed { error, .. } => shown(&format!("{error} {error:?}"))?,
            Event::NodeDown { fault, .. } => shown(&format!("{fault} {fault:?}"))?,
            Event::Lost { lock, .. } => {
                let lock = self.locks.get_mut(lock).ok_or_else(|| "lost, but never acquired".to_owned())?;
                check(!lock.lost, || "lost twice".into())?;
                lock.lost = true;
            }
            Event::Closed => self.closed = true,
            _ => {}
        }
        Ok(())
    }

    fn answered(&mut self, operation: OperationId, event: &Event) -> Result<(), String> {
        let asked = self.operations.get_mut(&operation).ok_or_else(|| format!("nobody asked: {event:?}"))?;
        asked.answers += 1;
        check(asked.answers == 1, || format!("a second answer: {event:?}"))
    }

    /// What must hold once all was handed over.
    fn look(&self) -> Result<(), String> {
        let now = self.client.now();
        for (id, operation) in &self.operations {
            let late = operation.answers == 0 && operation.until < now;
            check(!late, || format!("{id:?} is not answered at {now:?}: {operation:?}"))?;
        }
        let quorum = usize::from(self.client.config().quorum());
        for (id, lock) in &self.locks {
            let view = self.client.lock(*id).filter(|view| view.is_held(now));
            // Loss is said at the deadline itself, not later, and never before.
            let is_over = lock.released || lock.lost;
            check(view.is_some() != is_over, || format!("{id:?} at {now:?}: {lock:?}, {view:?}"))?;
            let Some(view) = view else { continue };
            let furthest = now.saturating_add(self.longest_ttl);
            check(view.deadline() <= furthest, || format!("{id:?} until {:?} at {now:?}", view.deadline()))?;
            let supports = view.votes().filter(
                |(_, vote)| matches!(vote, NodeVote::Confirmed { until } if *until >= view.deadline()),
            );
            check(supports.count() >= quorum, || format!("{id:?} is held without a quorum: {view:?}"))?;
        }
        let late = self.closing.is_some_and(|until| until < now) && !self.closed;
        check(!late, || format!("not closed at {now:?}"))?;
        check(self.closed == self.client.is_closed(), || "Closed and is_closed differ".into())
    }

    // ---- what can be spoken of ----

    fn is_held(&self, lock: LockId) -> bool {
        self.client.lock(lock).is_some_and(|view| view.is_held(self.client.now()))
    }

    /// One of the latest locks.
    pub(super) fn some_lock(&self, choice: usize) -> Option<LockId> {
        self.locks.keys().rev().nth(choice).copied()
    }

    /// One of the latest operations.
    pub(super) fn some_operation(&self, choice: usize) -> Option<OperationId> {
        self.operations.keys().rev().nth(choice).copied()
    }

    /// When everything that was asked for so far has to be answered.
    pub(super) fn last_until(&self) -> Instant {
        let open = self.operations.values().filter(|operation| operation.answers == 0);
        open.map(|operation| operation.until).max().unwrap_or(self.now)
    }
}

fn reason(why: u64) -> DisconnectReason {
    match why {
        0 => DisconnectReason::Refused("refused".into()),
        1 => DisconnectReason::Unresolvable("no such host".into()),
        2 => DisconnectReason::Io("reset".into()),
        3 => DisconnectReason::Tls("alert".into()),
        _ => DisconnectReason::Closed,
    }
}

/// No password and no token in what is shown. Every token here begins with the same bytes.
fn shown(text: &str) -> Result<(), String> {
    check(!text.contains(PASSWORD), || format!("the password is shown: {text}"))?;
    check(!text.contains(TOKEN), || format!("a token is shown: {text}"))
}

/// The entropy of a request: the same for all but its last two bytes.
pub(super) fn entropy(number: u16) -> [u8; 16] {
    let [high, low] = number.to_be_bytes();
    [0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, high, low]
}

/// What [`entropy`] begins with, as a token shows it.
const TOKEN: &str = "c1c2c3c4c5c6c7c8c9cacbcccdce";
