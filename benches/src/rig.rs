//! An engine in a world without delay.

use core::time::Duration;
use redlock_core::{AcquireRequest, Client, Config, ConnectionId, Event, Instant, LockId, Output};

/// How the nodes want a lock to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// By a script: `EVAL`, as Redis 7 does.
    Script,
    /// By `DELIFEQ`, as Valkey 9 does.
    Delifeq,
}

/// An engine with all its nodes connected.
#[derive(Debug)]
pub struct Rig {
    client: Client,
    connections: Vec<ConnectionId>,
    now: Instant,
    serial: u64,
}

impl Rig {
    /// Connects an engine to `nodes` nodes.
    ///
    /// # Panics
    ///
    /// The engine does not come up: there is nothing to measure.
    #[must_use]
    pub fn new(nodes: u8, dialect: Dialect) -> Self {
        let addresses = (1..=nodes).map(|node| format!("10.0.0.{node}"));
        let config = Config::builder().nodes(addresses).build().expect("the configuration makes sense");
        let mut rig = Self {
            client: Client::new(config, 7, Instant::ZERO),
            connections: Vec::new(),
            now: Instant::ZERO,
            serial: 0,
        };
        let version = match dialect {
            Dialect::Script => "+server\r\n+redis\r\n+version\r\n+7.0.15\r\n",
            Dialect::Delifeq => "+server\r\n+valkey\r\n+version\r\n+9.1.2\r\n",
        };
        let hello = format!("%2\r\n{version}");
        while let Some(output) = rig.client.poll_output() {
            match output {
                Output::Connect { connection, .. } => {
                    rig.connections.push(connection);
                    rig.client.handle_connected(connection, rig.now);
                }
                Output::Transmit { connection, payload } if payload.starts_with(b"*2\r\n$5\r\nHELLO") => {
                    rig.client.handle_input(connection, hello.as_bytes(), rig.now);
                }
                Output::Transmit { connection, .. } => {
                    let info = format!("run_id:{:040x}\r\nrole:master\r\n", connection.node.index());
                    let answer = format!("${}\r\n{info}\r\n+PONG\r\n", info.len());
                    rig.client.handle_input(connection, answer.as_bytes(), rig.now);
                }
                Output::Disconnect { .. } => panic!("the engine refuses a node"),
                Output::Event(_) => {}
            }
        }
        assert_eq!(rig.connections.len(), usize::from(nodes));
        rig
    }

    /// A request for a resource that nobody asked for before, so that it can be made outside of what is counted.
    pub fn request(&mut self) -> AcquireRequest {
        self.serial += 1;
        let mut entropy = [7; 16];
        entropy[..8].copy_from_slice(&self.serial.to_be_bytes());
        AcquireRequest::new(format!("resource:{:012}", self.serial), entropy)
    }

    /// Acquires: the request, five `SET`s, five times `+OK`, each with its drain.
    ///
    /// # Panics
    ///
    /// It is not granted.
    #[inline(never)]
    pub fn acquire(&mut self, request: AcquireRequest) -> LockId {
        self.tick();
        self.client.acquire(request, self.now);
        let mut granted = self.drain();
        for node in 0..self.connections.len() {
            self.answer(node, b"+OK\r\n");
            granted = self.drain().or(granted);
        }
        granted.expect("it is granted")
    }

    /// Releases: five deletions, five times `:1`, each with its drain.
    ///
    /// # Panics
    ///
    /// There is no such lock.
    #[inline(never)]
    pub fn release(&mut self, lock: LockId) {
        self.tick();
        self.client.release(lock, self.now).expect("it is held");
        self.drain();
        for node in 0..self.connections.len() {
            self.answer(node, b":1\r\n");
            self.drain();
        }
    }

    /// One acquire and its release: what is counted, by this name.
    #[inline(never)]
    pub fn cycle(&mut self, request: AcquireRequest) {
        let lock = self.acquire(request);
        self.release(lock);
    }

    /// A timeout that is early and a poll that has nothing: what every wake-up costs whatever is held.
    #[inline(never)]
    pub fn empty_poll(&mut self) {
        self.now = self.now.saturating_add(Duration::from_nanos(10));
        self.client.handle_timeout(self.now);
        assert!(self.client.poll_output().is_none(), "nothing is due");
        assert!(self.client.poll_timeout().is_some_and(|deadline| deadline.at > self.now));
    }

    /// Bytes from the first node that answer nothing.
    #[inline(never)]
    pub fn hear(&mut self, bytes: &[u8]) {
        self.answer(0, bytes);
        self.drain();
    }

    fn answer(&mut self, node: usize, reply: &[u8]) {
        self.now = self.now.saturating_add(Duration::from_nanos(500));
        self.client.handle_input(self.connections[node], reply, self.now);
    }

    fn tick(&mut self) {
        self.now = self.now.saturating_add(Duration::from_micros(1));
    }

    /// Takes what the engine has to say; answers with the lock that was granted.
    fn drain(&mut self) -> Option<LockId> {
        let mut granted = None;
        while let Some(output) = self.client.poll_output() {
            match output {
                Output::Event(Event::Acquired { lock, .. }) => granted = Some(lock),
                Output::Event(_) | Output::Transmit { .. } => {}
                Output::Connect { .. } | Output::Disconnect { .. } => panic!("a connection broke"),
            }
        }
        let _armed = self.client.poll_timeout();
        granted
    }
}
