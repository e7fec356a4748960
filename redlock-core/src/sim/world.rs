//! Engines, nodes and a network in one virtual time.

#[cfg(test)]
mod tests;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::line::Line;
use super::network::{Arrival, Delivery, Network};
use super::random::Random;
use super::server::{Dialect, Server};
use crate::{
    AcquireRequest, Client, Config, ConnectionId, DisconnectReason, Event, Instant, LockId, OperationId,
    Output,
};

/// Engines and simulated nodes with a network between them, stepped in virtual time.
///
/// Everything is decided by one seed: the same calls give the same world, to the byte. Time does not tick; it moves
/// exactly to the next thing that is due, so that a test of a day's renewals takes milliseconds, and one that depends
/// on a nanosecond can be written. Each node and each client has a clock of its own.
///
/// Clients and servers go by the order in which they were added; the nodes of a client's configuration are the servers of
/// the same index, whatever their addresses say, unless [`Network::set_route`] says otherwise.
///
/// ```
/// use core::time::Duration;
/// use redlock_core::sim::{Dialect, World};
/// use redlock_core::{Config, Event};
///
/// # fn main() -> Result<(), redlock_core::ConfigError> {
/// let mut world = World::new(2026);
/// for _ in 0..3 {
///     world.add_server(Dialect::Valkey9);
/// }
/// let config = Config::builder().nodes(["a", "b", "c"]).build()?;
/// let ann = world.add_client(config);
///
/// let request = world.request("door").ttl(Duration::from_secs(10));
/// world.acquire(ann, request);
/// let granted = world.wait_for(ann, Duration::from_secs(1), |event| matches!(event, Event::Acquired { .. }));
/// assert!(granted.is_some());
/// assert_eq!(world.holders(b"door").len(), 1);
///
/// world.run_for(Duration::from_secs(10));
/// assert_eq!(world.holders(b"door").len(), 0, "nobody renewed it");
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct World {
    now: Instant,
    random: Random,
    servers: Vec<Server>,
    network: Network,
    clients: Vec<Machine>,
    /// How often it was stepped since time last moved.
    steps_at_now: u32,
}

/// One client's process.
#[derive(Debug)]
struct Machine {
    /// `None` once it has crashed.
    engine: Option<Client>,
    clock: Line,
    is_paused: bool,
    /// What arrived while it was paused.
    inbox: Vec<Arrival>,
    events: Vec<(Instant, Event)>,
    /// What was handed out, if that is kept.
    sent: Option<Vec<(ConnectionId, Bytes)>>,
    /// What was asked for, until it is answered.
    requests: BTreeMap<OperationId, Vec<Bytes>>,
    /// What was granted.
    locks: BTreeMap<LockId, Vec<Bytes>>,
}

/// A client that believes that it holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Belief {
    /// Which client.
    pub client: usize,
    /// Under which name.
    pub lock: LockId,
}

/// # Setting up
impl World {
    /// More steps than this without time moving are a livelock.
    pub const MOST_STEPS_AT_ONE_INSTANT: u32 = 100_000;

    /// An empty world, at [`Instant::ZERO`].
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let network = Network::new(random.next_u64());
        Self {
            now: Instant::ZERO,
            random,
            servers: Vec::new(),
            network,
            clients: Vec::new(),
            steps_at_now: 0,
        }
    }

    /// Adds an empty node; its index.
    pub fn add_server(&mut self, dialect: Dialect) -> usize {
        let seed = self.random.next_u64();
        self.adopt_server(Server::new(dialect, seed))
    }

    /// Adds a node that was set up elsewhere; its index.
    pub fn adopt_server(&mut self, server: Server) -> usize {
        self.servers.push(server);
        self.servers.len().saturating_sub(1)
    }

    /// Adds a client, which begins to connect; its index.
    pub fn add_client(&mut self, config: Config) -> usize {
        self.add_client_with_clock(config, Duration::ZERO, 0)
    }

    /// Adds a client whose clock is `ahead` of the world's time, and runs faster by `rate_ppm` millionths.
    pub fn add_client_with_clock(&mut self, config: Config, ahead: Duration, rate_ppm: i64) -> usize {
        let reading = self.now.saturating_add(ahead);
        let clock = Line::new(self.now, i128::from(reading.as_nanos()), rate_ppm);
        self.clients.push(Machine {
            engine: Some(Client::new(config, self.random.next_u64(), reading)),
            clock,
            is_paused: false,
            inbox: Vec::new(),
            events: Vec::new(),
            sent: None,
            requests: BTreeMap::new(),
            locks: BTreeMap::new(),
        });
        let client = self.clients.len().saturating_sub(1);
        self.drain(client);
        client
    }

    /// 16 bytes for an [`AcquireRequest`], never the same twice.
    pub fn entropy(&mut self) -> [u8; 16] {
        let (high, low) = (self.random.next_u64(), self.random.next_u64());
        ((u128::from(high) << 64) | u128::from(low)).to_be_bytes()
    }

    /// A request for one resource, with entropy from the world's seed.
    pub fn request(&mut self, resource: &str) -> AcquireRequest {
        AcquireRequest::new(resource.as_bytes().to_vec(), self.entropy())
    }
}

/// # What is there
impl World {
    /// The world's time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The time by a client's own clock, in which its engine counts; the world's where there is no such client.
    #[must_use]
    pub fn local_now(&self, client: usize) -> Instant {
        self.clients.get(client).map_or(self.now, |machine| machine.local(self.now))
    }

    /// A client's engine; `None` where there is none, or it has crashed.
    #[must_use]
    pub fn client(&self, client: usize) -> Option<&Client> {
        self.clients.get(client)?.engine.as_ref()
    }

    /// Whether a client's process stands still.
    #[must_use]
    pub fn is_paused(&self, client: usize) -> bool {
        self.clients.get(client).is_some_and(|machine| machine.is_paused)
    }

    /// All nodes, in order.
    #[must_use]
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// A node.
    #[must_use]
    pub fn server(&self, server: usize) -> Option<&Server> {
        self.servers.get(server)
    }

    /// Who believes at this instant, by its own clock, that it holds the resource: the oracle of mutual exclusion. Only
    /// locks that were asked for by [`acquire`](Self::acquire) are known, under the name that was asked for.
    #[must_use]
    pub fn holders(&self, resource: &[u8]) -> Vec<Belief> {
        let mut holders = Vec::new();
        for (client, machine) in self.clients.iter().enumerate() {
            let Some(engine) = &machine.engine else { continue };
            let now = machine.local(self.now);
            let held = machine.locks.iter().filter(|(lock, resources)| {
                resources.iter().any(|name| name == resource)
                    && engine.lock(**lock).is_some_and(|lock| lock.is_held(now))
            });
            holders.extend(held.map(|(lock, _)| Belief { client, lock: *lock }));
        }
        holders
    }
}

/// # Doing things
impl World {
    /// Calls a client's engine at its own time, then carries out what it wants. `None` if it has crashed. A paused client
    /// must not be called: it does not run.
    pub fn with_client<R>(
        &mut self,
        client: usize,
        work: impl FnOnce(&mut Client, Instant) -> R,
    ) -> Option<R> {
        let machine = self.clients.get_mut(client)?;
        let now = machine.local(self.now);
        let result = work(machine.engine.as_mut()?, now);
        self.drain(client);
        Some(result)
    }

    /// Calls a client's [`acquire`](Client::acquire), and remembers what was asked for.
    pub fn acquire(&mut self, client: usize, request: AcquireRequest) -> Option<OperationId> {
        let resources = request.resources().to_vec();
        let machine = self.clients.get_mut(client)?;
        let now = machine.local(self.now);
        let operation = machine.engine.as_mut()?.acquire(request, now);
        machine.requests.insert(operation, resources);
        self.drain(client);
        Some(operation)
    }

    /// Calls a client's [`release`](Client::release); `None` if there is no such lock.
    pub fn release(&mut self, client: usize, lock: LockId) -> Option<OperationId> {
        self.with_client(client, |engine, now| engine.release(lock, now).ok()).flatten()
    }

    /// Does something to a node, at the world's time. What it says because of it goes on its way.
    pub fn with_server<R>(
        &mut self,
        server: usize,
        work: impl FnOnce(&mut Server, Instant) -> R,
    ) -> Option<R> {
        let result = work(self.servers.get_mut(server)?, self.now);
        self.network.notice(&mut self.servers, self.now);
        Some(result)
    }

    /// Does something to the network, at the world's time.
    pub fn with_network<R>(&mut self, work: impl FnOnce(&mut Network, Instant) -> R) -> R {
        work(&mut self.network, self.now)
    }

    /// The events that a client's engine has told since the last call, with the world's time at which it did.
    pub fn take_events(&mut self, client: usize) -> Vec<(Instant, Event)> {
        self.clients.get_mut(client).map(|machine| core::mem::take(&mut machine.events)).unwrap_or_default()
    }
}

/// # Listening
impl World {
    /// Keeps what a client hands out from now on.
    pub fn keep_sent(&mut self, client: usize) {
        if let Some(machine) = self.clients.get_mut(client) {
            machine.sent = Some(Vec::new());
        }
    }

    /// What a client has handed out since the last call, in order. Nothing before [`keep_sent`](Self::keep_sent).
    pub fn take_sent(&mut self, client: usize) -> Vec<(ConnectionId, Bytes)> {
        let sent = self.clients.get_mut(client).and_then(|machine| machine.sent.as_mut());
        sent.map(core::mem::take).unwrap_or_default()
    }
}

/// # Faults of clients
///
/// Those of nodes are [`Server`]'s, those of the network [`Network`]'s.
impl World {
    /// Stops a client's process where it is. Its clock goes on.
    pub fn pause_client(&mut self, client: usize) {
        if let Some(machine) = self.clients.get_mut(client) {
            machine.is_paused = true;
        }
    }

    /// Continues it: first it sees what time it is, then what has arrived.
    pub fn resume_client(&mut self, client: usize) {
        let Some(machine) = self.clients.get_mut(client) else { return };
        machine.is_paused = false;
        let inbox = core::mem::take(&mut machine.inbox);
        self.with_client(client, Client::handle_timeout);
        for arrival in inbox {
            self.hand_over(arrival);
        }
    }

    /// Ends a client's process, with no chance to release anything. Its connections are closed, and what they hold still
    /// arrives.
    pub fn crash_client(&mut self, client: usize) {
        if let Some(machine) = self.clients.get_mut(client) {
            machine.engine = None;
            machine.inbox.clear();
            self.network.disconnect_all(client, self.now);
        }
    }

    /// Lets a client's clock run faster from now on by `rate_ppm` millionths; slower, if negative.
    pub fn set_client_rate(&mut self, client: usize, rate_ppm: i64) {
        if let Some(machine) = self.clients.get_mut(client) {
            machine.clock = machine.clock.at_rate(rate_ppm, self.now);
        }
    }

    /// Moves a client's clock forward, as a suspended machine's does.
    pub fn jump_client_clock(&mut self, client: usize, span: Duration) {
        if let Some(machine) = self.clients.get_mut(client) {
            let nanos = i128::try_from(span.as_nanos()).unwrap_or(i128::MAX);
            machine.clock = machine.clock.jumped(nanos, self.now);
        }
    }
}

/// # Time
impl World {
    /// When something happens next; `None` if nothing ever will.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        let timers = self.clients.iter().filter_map(Machine::next_due);
        let due = timers.chain(self.network.next_due(&self.servers)).min()?;
        Some(due.max(self.now))
    }

    /// Moves to the next instant at which something is due, and lets it happen. `false` if nothing ever will.
    ///
    /// # Panics
    ///
    /// If time stands still for [`MOST_STEPS_AT_ONE_INSTANT`](Self::MOST_STEPS_AT_ONE_INSTANT) steps: an engine or a
    /// test goes round in circles.
    pub fn step(&mut self) -> bool {
        self.step_until(Instant::MAX)
    }

    /// As [`step`](Self::step), if that instant is not later than `end`; `false`, and nothing happens, if it is.
    ///
    /// # Panics
    ///
    /// As [`step`](Self::step).
    pub fn step_until(&mut self, end: Instant) -> bool {
        let Some(due) = self.next_due().filter(|due| *due <= end) else { return false };
        self.steps_at_now = if due > self.now { 0 } else { self.steps_at_now.saturating_add(1) };
        assert!(self.steps_at_now < Self::MOST_STEPS_AT_ONE_INSTANT, "livelock at {:?}", self.now);
        self.now = due;
        for arrival in self.network.deliver(&mut self.servers, due) {
            match self.clients.get_mut(arrival.client) {
                Some(machine) if machine.is_paused => machine.inbox.push(arrival),
                Some(_) | None => self.hand_over(arrival),
            }
        }
        for client in 0..self.clients.len() {
            let is_due = self.clients.get(client).is_some_and(|m| m.next_due().is_some_and(|at| at <= due));
            if is_due {
                self.with_client(client, Client::handle_timeout);
            }
        }
        true
    }

    /// Lets everything happen up to this instant, which becomes the world's time.
    pub fn run_until(&mut self, end: Instant) {
        while self.step_until(end) {}
        self.now = self.now.max(end);
    }

    /// Lets this span of time pass.
    pub fn run_for(&mut self, span: Duration) {
        self.run_until(self.now.saturating_add(span));
    }

    /// Lets time pass until a client has told an event that fits, for `limit` at most; takes that event, and leaves the
    /// others for [`take_events`](Self::take_events). Time stands at the event's instant then, else at the limit's end.
    pub fn wait_for(
        &mut self,
        client: usize,
        limit: Duration,
        fits: impl Fn(&Event) -> bool,
    ) -> Option<(Instant, Event)> {
        let end = self.now.saturating_add(limit);
        loop {
            let machine = self.clients.get_mut(client)?;
            if let Some(index) = machine.events.iter().position(|(_, event)| fits(event)) {
                return Some(machine.events.remove(index));
            }
            if !self.step_until(end) {
                self.now = self.now.max(end);
                return None;
            }
        }
    }

    fn hand_over(&mut self, arrival: Arrival) {
        let Arrival { client, connection, what, .. } = arrival;
        self.with_client(client, |engine, now| match what {
            Delivery::Connected => engine.handle_connected(connection, now),
            Delivery::Bytes(bytes) => engine.handle_input(connection, &bytes, now),
            Delivery::Refused => {
                let reason = DisconnectReason::Refused("connection refused".into());
                engine.handle_disconnected(connection, reason, now);
            }
            Delivery::Closed => engine.handle_disconnected(connection, DisconnectReason::Closed, now),
        });
    }

    /// Carries out what a client's engine wants.
    fn drain(&mut self, client: usize) {
        let Some(machine) = self.clients.get_mut(client) else { return };
        while let Some(output) = machine.engine.as_mut().and_then(Client::poll_output) {
            match output {
                Output::Connect { connection, .. } => self.network.connect(client, connection, self.now),
                Output::Transmit { connection, payload } => {
                    if let Some(sent) = &mut machine.sent {
                        sent.push((connection, payload.clone()));
                    }
                    self.network.send(client, connection, &payload, self.now);
                }
                Output::Disconnect { connection } => self.network.disconnect(client, connection, self.now),
                Output::Event(event) => machine.note(self.now, event),
            }
        }
    }
}

impl Machine {
    fn local(&self, now: Instant) -> Instant {
        let nanos = self.clock.nanos(now).max(0);
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// When the engine's timer is due, in the world's time.
    fn next_due(&self) -> Option<Instant> {
        if self.is_paused {
            return None;
        }
        let deadline = self.engine.as_ref()?.poll_timeout()?;
        self.clock.first_at(i128::from(deadline.at.as_nanos()))
    }

    fn note(&mut self, now: Instant, event: Event) {
        if let Event::Acquired { operation, lock, .. } = &event {
            if let Some(resources) = self.requests.remove(operation) {
                // Those that the engine has forgotten never come back.
                let engine = self.engine.as_ref();
                self.locks.retain(|lock, _| engine.is_some_and(|engine| engine.lock(*lock).is_some()));
                self.locks.insert(*lock, resources);
            }
        } else if let Event::AcquireFailed { operation, .. } = &event {
            self.requests.remove(operation);
        }
        self.events.push((now, event));
    }
}
