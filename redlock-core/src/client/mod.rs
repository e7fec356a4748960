//! The engine: N nodes and all operations in flight.
//!
//! `nodes` has what happens on connections, `claims` carries out what the quorum machines want, `loss` what nodes tell
//! holders, `operations` has what was asked for and `acquire` the most of it, `queue` whose turn it is for a resource,
//! `output` the queue to the driver, `timers` the order of what is due, `view` what can be looked at, `wake` the nodes' word
//! that a key has changed.

mod acquire;
mod claims;
mod closing;
mod keys;
mod loss;
mod nodes;
mod operations;
mod output;
mod queue;
mod timers;
mod view;
mod wake;

use crate::config::{Config, NodeConfig};
use crate::error::{ExtendRefused, UnknownLock};
use crate::event::{DisconnectReason, Output};
use crate::ids::{ConnectionId, LockId, NodeId, OperationId};
use crate::machine::Effect;
use crate::node::VoteCounts;
use crate::node::{Form, Node, required_uptime};
use crate::request::AcquireRequest;
use crate::rng::Rng;
use crate::table::Table;
use crate::time::{Deadline, Instant, TimeoutReason};
use crate::wire::template::Encoder;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use core::time::Duration;

use claims::Entry;
use keys::KeyPool;
use loss::LossWatches;
use operations::Operation;
use output::OutputQueue;
use queue::Line;
use timers::{Due, Timers};

pub use view::{LockView, NodeState, NodeStatus};

/// How much of what locks and lines leave behind is kept for the next ones.
const SPARE: usize = 1024;

/// The engine of a Redlock client: request or bytes + now → bytes to send, events, next wake-up.
///
/// It has no sockets, no clock and no entropy. Whoever drives it (an adapter, or your own loop) follows this contract:
///
/// 1. Make calls that take `now`; drain [`poll_output`](Self::poll_output) to `None`; arm the timer at
///    [`poll_timeout`](Self::poll_timeout); wait.
/// 2. Several calls before a drain are fine: outputs queue in order, nothing is lost.
/// 3. Each call that takes `now` first fires every timer due at or before it, then applies its input: **expiry wins a
///    tie**. `now` going backwards is taken as the newest seen; early or repeated
///    [`handle_timeout`](Self::handle_timeout) is harmless.
/// 4. After a drain `poll_timeout` is `None` or later than the last `now` (no busy loop); while output is queued it is the
///    last `now` (no sleeping on unsent bytes).
/// 5. No call panics, blocks, recurses without bound or grows without limit, on any bytes, in any order. Every limit has a
///    name and a default ([`Limits`](crate::Limits)); reaching one is an error, never growth.
/// 6. The engine is a function of (config, seed, calls): same calls, same outputs, to the byte.
/// 7. Drivers read the clock *after* a wait or a read returned, *before* they start an operation.
///
/// Nothing that a node does is an `Err` of these calls: a broken node is an event, the client outlives it.
pub struct Client {
    config: Config,
    rng: Rng,
    now: Instant,
    nodes: Vec<Node>,
    claims: Table<Box<Entry>>,
    /// Those of locks that are gone, for the next ones: none takes from the heap then.
    #[expect(clippy::vec_box, reason = "they come from the table in their boxes, and go back in them")]
    spare_entries: Vec<Box<Entry>>,
    keys: KeyPool,
    /// How many of them are attempted or held; the others are being cleaned up.
    live_claims: usize,
    operations: Table<Operation>,
    /// The resources that are held or waited for here, by key.
    ///
    /// With one of no key, so that the map is never empty: it would give its memory back, and take it again.
    lines: BTreeMap<Bytes, Box<Line>>,
    #[expect(clippy::vec_box, reason = "they come from the map in their boxes, and go back in them")]
    spare_lines: Vec<Box<Line>>,
    /// Those of them whose keys are watched, by the watch's number.
    watched: BTreeMap<u64, Bytes>,
    last_watch: u64,
    loss_watches: LossWatches,
    /// Those where it may have become somebody's turn.
    moved: VecDeque<Bytes>,
    timers: Timers,
    queue: OutputQueue,
    closing: Option<Instant>,
    closed: bool,
    /// Room for the effects of one input, kept between calls.
    scratch: Vec<Effect>,
    /// Encodes the commands of locks.
    encoder: Encoder,
    /// Which command it encoded last: of this lock, in this form, with this ttl.
    encoded: Option<(u64, Form, Duration)>,
    /// Room for a lock's value.
    value: Vec<u8>,
}

/// Counts only: outboxes and locks hold passwords and tokens (R26).
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("now", &self.now)
            .field("nodes", &self.nodes.len())
            .field("locks", &self.claims.len())
            .field("operations", &self.operations.len())
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// An engine for these nodes; it wants to connect to all of them at once. `seed` decides jitter only: nothing secret
    /// comes from it.
    #[must_use]
    pub fn new(config: Config, seed: u64, now: Instant) -> Self {
        let ids = (0..=u8::MAX).map(NodeId::new);
        let guard = config.restart_guard().map(required_uptime);
        let node = |(id, node): (NodeId, &NodeConfig)| {
            let guard = guard.filter(|_| !node.is_durable());
            Node::new(id, node.address().clone(), guard, config.watch_clocks(), now)
        };
        let nodes = ids.zip(config.nodes()).map(node).collect();
        let queue = OutputQueue::new(config.limits().queued_events);
        let mut client = Self {
            config,
            rng: Rng::new(seed),
            now,
            nodes,
            claims: Table::new(),
            spare_entries: Vec::new(),
            keys: KeyPool::default(),
            live_claims: 0,
            operations: Table::new(),
            lines: BTreeMap::from([(Bytes::new(), Box::default())]),
            spare_lines: Vec::new(),
            watched: BTreeMap::new(),
            last_watch: 0,
            loss_watches: LossWatches::default(),
            moved: VecDeque::new(),
            timers: Timers::default(),
            queue,
            closing: None,
            closed: false,
            scratch: Vec::new(),
            encoder: Encoder::new(),
            encoded: None,
            value: Vec::new(),
        };
        for index in 0..client.nodes.len() {
            client.connect_node(index);
        }
        client
    }

    // ---- commands ----

    /// Acquires a lock. Answered by exactly one of [`Event::Acquired`](crate::Event::Acquired) and
    /// [`Event::AcquireFailed`](crate::Event::AcquireFailed), within the request's wait + one node timeout; a request
    /// that makes no sense fails at once, with nothing sent.
    pub fn acquire(&mut self, request: AcquireRequest, now: Instant) -> OperationId {
        self.advance(now);
        let operation = self.start_acquire(request);
        self.move_lines();
        operation
    }

    /// Extends a lock to `ttl` from now. Answered by exactly one of [`Event::Extended`](crate::Event::Extended) and
    /// [`Event::ExtendFailed`](crate::Event::ExtendFailed), within one node timeout.
    ///
    /// # Errors
    ///
    /// Nothing was sent: the lock is unknown or not held, `ttl` makes no sense, or reaches beyond `max_hold`.
    pub fn extend(
        &mut self,
        lock: LockId,
        ttl: Duration,
        now: Instant,
    ) -> Result<OperationId, ExtendRefused> {
        self.advance(now);
        let answer = self.start_extend(lock, ttl);
        self.move_lines();
        answer
    }

    /// Releases a lock: it counts as not held from this call on. Answered by exactly one
    /// [`Event::Released`](crate::Event::Released), within one node timeout.
    ///
    /// # Errors
    ///
    /// There is no such lock, or it was released before: also a lock that was lost is released once.
    pub fn release(&mut self, lock: LockId, now: Instant) -> Result<OperationId, UnknownLock> {
        self.advance(now);
        let answer = self.start_release(lock);
        self.move_lines();
        answer
    }

    /// Asks to be told when a quorum of nodes is ready, or cannot be had (R27). Answered by exactly one of
    /// [`Event::Connected`](crate::Event::Connected) and [`Event::ConnectFailed`](crate::Event::ConnectFailed), by
    /// `timeout` at the latest; at once where too many operations are pending. The engine connects whether this is asked or not.
    pub fn connect(&mut self, timeout: Duration, now: Instant) -> OperationId {
        self.advance(now);
        let operation = self.start_connect(timeout);
        self.move_lines();
        operation
    }

    /// Calls an operation off; it ends with its failure event. An acquire that was granted, and whose event was not polled
    /// yet, is released again and answered as cancelled. Unknown and ended operations are ignored.
    pub fn cancel(&mut self, operation: OperationId, now: Instant) {
        self.advance(now);
        self.cancel_operation(operation);
        self.move_lines();
    }

    /// Closes: releases what is held, calls off what is pending, then closes all connections and says
    /// [`Event::Closed`](crate::Event::Closed), within one node timeout of the slowest lock.
    pub fn close(&mut self, now: Instant) {
        self.advance(now);
        self.start_closing();
        self.move_lines();
    }

    // ---- inputs ----

    /// The connection that [`Output::Connect`] asked for is made.
    pub fn handle_connected(&mut self, connection: ConnectionId, now: Instant) {
        self.advance(now);
        self.on_connected(connection);
        self.move_lines();
    }

    /// Bytes came from the connection. Those of an old connection are dropped.
    pub fn handle_input(&mut self, connection: ConnectionId, bytes: &[u8], now: Instant) {
        self.advance(now);
        self.on_input(connection, bytes);
        self.move_lines();
    }

    /// The connection is gone, or could not be made.
    pub fn handle_disconnected(&mut self, connection: ConnectionId, reason: DisconnectReason, now: Instant) {
        self.advance(now);
        self.on_disconnected(connection, reason);
        self.move_lines();
    }

    /// Fires what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        self.move_lines();
    }

    // ---- outputs ----

    /// The next thing to do, first in, first out; `None` when there is nothing (until the next call that takes `now`).
    ///
    /// Commands count as handed out when their [`Output::Transmit`] is answered here.
    #[inline]
    pub fn poll_output(&mut self) -> Option<Output> {
        if self.queue.is_empty() { None } else { self.next_output() }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next. A state, cheap, the same until the next call.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Deadline> {
        if !self.queue.is_empty() {
            return Some(Deadline { at: self.now, reason: TimeoutReason::Output });
        }
        self.timers.next()
    }

    // ---- getters ----

    /// The configuration.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The newest `now` that was seen.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// A lock, while it is held or being cleaned up.
    #[must_use]
    pub fn lock(&self, lock: LockId) -> Option<LockView<'_>> {
        self.view_lock(lock)
    }

    /// How a node stands.
    #[must_use]
    pub fn node(&self, node: NodeId) -> Option<NodeStatus> {
        self.nodes.get(node.index()).map(|node| node.status(self.now))
    }

    /// How a node has voted so far; also in its [status](Self::node), which costs more to make.
    #[must_use]
    pub fn votes(&self, node: NodeId) -> Option<VoteCounts> {
        self.nodes.get(node.index()).map(|node| node.votes)
    }

    /// Whether nothing is asked for, held, being cleaned up, or queued to be done.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.operations.is_empty() && self.claims.is_empty() && self.queue.is_empty()
    }

    /// Whether it is closed for good.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    // ---- time ----

    /// Takes `now` and fires every timer due at or before it.
    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
        while let Some(due) = self.timers.pop_due(self.now) {
            match due {
                Due::Node(index) => self.on_node_due(usize::from(index)),
                Due::Claim(lock) => self.on_claim_due(lock),
                Due::Operation(operation) => self.on_operation_due(operation),
                Due::Closing => self.on_closing_due(),
            }
        }
    }
}
