//! The engine in an event loop of your own: no adapter, no thread, one `poll` for all sockets.
//!
//! `cargo run -p redlock-blocking --example own_loop` takes a lock on three simulated nodes, extends it once, and releases it.
//! What a driver has to do is all here: make the calls that take `now`, carry out what `poll_output` says, sleep until
//! `poll_timeout` at most.
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    clippy::print_stdout,
    clippy::wildcard_enum_match_arm,
    reason = "an example shows what it does, as a program of a user would"
)]

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use redlock_core::sim::{Dialect, Server, TcpNode};
use redlock_core::{
    AcquireRequest, Client, Config, ConnectionId, DisconnectReason, Endpoint, Event, Instant, LockId, Output,
};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

/// Read once per call into the engine: after a wait, before an operation starts.
fn now() -> Instant {
    use redlock_blocking::Clock as _;
    redlock_blocking::SystemClock.now()
}

/// A socket, and what is still to be written to it.
struct Connection {
    id: ConnectionId,
    socket: TcpStream,
    is_connected: bool,
    unsent: Vec<u8>,
}

struct Loop {
    client: Client,
    poll: Poll,
    connections: BTreeMap<usize, Connection>,
}

impl Loop {
    /// Carries out everything that the engine wants; answers with what it has to say.
    fn drain(&mut self) -> io::Result<Vec<Event>> {
        let mut said = Vec::new();
        while let Some(output) = self.client.poll_output() {
            match output {
                Output::Connect { connection, address } => {
                    // One connection per node at a time: its index is the token.
                    let result = match address.endpoint() {
                        Endpoint::Tcp { host, port } => connect(&host.to_string(), *port),
                        Endpoint::Unix { .. } => Err(io::Error::other("this loop speaks TCP only")),
                    };
                    match result {
                        Ok(mut socket) => {
                            let interest = Interest::READABLE | Interest::WRITABLE;
                            self.poll.registry().register(
                                &mut socket,
                                Token(connection.node.index()),
                                interest,
                            )?;
                            let fresh = Connection {
                                id: connection,
                                socket,
                                is_connected: false,
                                unsent: Vec::new(),
                            };
                            self.connections.insert(connection.node.index(), fresh);
                        }
                        Err(error) => self.gone(connection, &error),
                    }
                }
                Output::Transmit { connection, payload } => {
                    if let Some(open) = self.of(connection) {
                        open.unsent.extend_from_slice(&payload);
                    }
                    self.write(connection);
                }
                Output::Disconnect { connection } => {
                    if self.of(connection).is_some() {
                        self.connections.remove(&connection.node.index());
                    }
                }
                Output::Event(event) => said.push(event),
            }
        }
        Ok(said)
    }

    fn of(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(&id.node.index()).filter(|connection| connection.id == id)
    }

    fn gone(&mut self, id: ConnectionId, error: &io::Error) {
        self.connections.remove(&id.node.index());
        self.client.handle_disconnected(id, DisconnectReason::Io(error.to_string()), now());
    }

    fn write(&mut self, id: ConnectionId) {
        let Some(connection) = self.of(id).filter(|connection| connection.is_connected) else { return };
        while !connection.unsent.is_empty() {
            match connection.socket.write(&connection.unsent) {
                Ok(written) => drop(connection.unsent.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => return self.gone(id, &error),
            }
        }
    }

    fn read(&mut self, id: ConnectionId) {
        let mut buffer = [0; 4096];
        loop {
            let Some(connection) = self.of(id) else { return };
            match connection.socket.read(&mut buffer) {
                Ok(0) => {
                    self.connections.remove(&id.node.index());
                    return self.client.handle_disconnected(id, DisconnectReason::Closed, now());
                }
                Ok(length) => self.client.handle_input(id, buffer.get(..length).unwrap_or_default(), now()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => return self.gone(id, &error),
            }
        }
    }

    /// Waits until something happens, and tells the engine.
    fn turn(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(64);
        let timeout = self.client.poll_timeout().map(|due| due.at.saturating_duration_since(now()));
        self.poll.poll(&mut events, timeout)?;
        for event in &events {
            let Some(connection) = self.connections.get_mut(&event.token().0) else { continue };
            let id = connection.id;
            if event.is_writable() && !connection.is_connected {
                match connection.socket.take_error()? {
                    Some(error) => self.gone(id, &error),
                    None => {
                        connection.is_connected = true;
                        self.client.handle_connected(id, now());
                    }
                }
            }
            self.write(id);
            if event.is_readable() {
                self.read(id);
            }
        }
        self.client.handle_timeout(now());
        Ok(())
    }

    /// Turns until the engine says what is waited for.
    fn until<T>(&mut self, mut wanted: impl FnMut(&Event) -> Option<T>) -> io::Result<T> {
        loop {
            for event in self.drain()? {
                println!("  {event:?}");
                if let Some(found) = wanted(&event) {
                    return Ok(found);
                }
            }
            self.turn()?;
        }
    }
}

fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let first: Option<SocketAddr> = (host, port).to_socket_addrs()?.next();
    let socket = TcpStream::connect(first.ok_or_else(|| io::Error::other("no address"))?)?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

fn main() -> Result<(), Box<dyn Error>> {
    let nodes = (1..=3).map(|seed| TcpNode::start(Server::new(Dialect::Valkey9, seed)));
    let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
    let config =
        Config::builder().nodes(nodes.iter().map(|node| format!("redis://{}", node.addr()))).build()?;
    let client = Client::new(config, 7, now());
    let mut own = Loop { client, poll: Poll::new()?, connections: BTreeMap::new() };

    // From the operating system, for each request: who can guess it can guess the token.
    let mut entropy = [0; 16];
    getrandom::fill(&mut entropy)?;
    own.client.acquire(AcquireRequest::new("orders", entropy), now());
    let lock: Option<LockId> = own.until(|event| match event {
        Event::Acquired { lock, .. } => Some(Some(*lock)),
        Event::AcquireFailed { .. } => Some(None),
        _ => None,
    })?;
    let lock = lock.ok_or("not acquired")?;

    own.client.extend(lock, Duration::from_secs(30), now())?;
    own.until(|event| matches!(event, Event::Extended { .. } | Event::ExtendFailed { .. }).then_some(()))?;
    let held = own.client.lock(lock).is_some_and(|view| view.is_held(now()));
    own.client.release(lock, now())?;
    own.until(|event| matches!(event, Event::Released { .. }).then_some(()))?;
    if held { Ok(()) } else { Err("it was not held".into()) }
}
