//! The connections, as the engine sees them: told to connect, write and close, on whichever thread made it want that.

use super::Reactor;
use super::resolve::{self, Found, LookUp};
use super::secure::{Session, Tls};
use super::stream::Stream;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use bytes::Bytes;
use core::net::SocketAddr;
use core::sync::atomic::Ordering;
use core::time::Duration;
use mio::event::Event;
use mio::{Registry, Token};
use redlock_core::handoff::dial::{DialFaults, known_addresses, share_of, unreadable};
use redlock_core::handoff::{Driver, Turn, Unsent};
use redlock_core::{Address, Config, ConnectionId, DisconnectReason, Endpoint, Instant};
use std::io::{self, ErrorKind, Read, Write};
use std::sync::mpsc::{self, Receiver, Sender};

/// How often one connection is read from before the others have their turn.
const MOST_READS: usize = 16;

/// A read that does not fill the buffer has emptied a socket, and a write that is cut short has filled it, where readiness is
/// told anew for what comes later. Elsewhere only a refused read or write tells that.
const SHORT_MEANS_DONE: bool = cfg!(target_os = "linux");

/// What a socket was said to be ready for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Readiness {
    write: bool,
    /// Something to read, or the end.
    read: bool,
    /// The end: read until it is reached.
    end: bool,
}

impl Readiness {
    /// For a socket of which nothing is known.
    const ANY: Self = Self { write: true, read: true, end: true };

    pub(super) fn of(event: &Event) -> Self {
        let end = event.is_read_closed() || event.is_write_closed() || event.is_error();
        Self { write: event.is_writable() || end, read: event.is_readable() || end, end }
    }
}

/// All connections of a client.
#[derive(Debug)]
pub(crate) struct Sockets {
    registry: Registry,
    reactor: Arc<Reactor>,
    tls: Option<Tls>,
    look_up: LookUp,
    nodes: Vec<Link>,
    found: Receiver<Found>,
    finder: Sender<Found>,
    handshake_timeout: Duration,
    /// Nodes that the reader has to look at in its next turn, though their sockets said nothing.
    suspects: Vec<usize>,
    /// Nodes to which something was transmitted that is not written.
    dirty: Vec<usize>,
    /// The reader is in its turn: it will look at all this before it waits.
    is_awake: bool,
    /// The reader was told to wake up.
    is_rung: bool,
    is_closed: bool,
}

/// The connection to one node.
#[derive(Debug, Default)]
struct Link {
    connection: Option<Connection>,
    /// A look-up is under way, for whichever connection wants it when it ends.
    is_resolving: bool,
}

#[derive(Debug)]
struct Connection {
    id: ConnectionId,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// Its name is being looked up.
    Resolving(Secured),
    Connecting(Dial),
    Up(Pipe),
}

/// The host and port in the address of a node to which TLS is to be spoken, if it is.
type Secured = Option<(String, u16)>;

/// A connection that is being made.
#[derive(Debug)]
struct Dial {
    stream: Stream,
    /// What it is being made to.
    target: String,
    secured: Secured,
    /// Addresses that were not tried yet.
    left: VecDeque<SocketAddr>,
    /// How long each may take.
    each: Duration,
    /// When the next address is tried.
    until: Instant,
    faults: DialFaults,
}

/// A connection that stands.
#[derive(Debug)]
struct Pipe {
    stream: Stream,
    unsent: Unsent,
    /// Writing failed: what is left to be read is read, then it is over.
    is_broken: bool,
}

impl Sockets {
    pub(super) fn new(
        config: &Config,
        tls: Option<Tls>,
        look_up: LookUp,
        registry: Registry,
        reactor: Arc<Reactor>,
    ) -> Self {
        let (finder, found) = mpsc::channel();
        Self {
            registry,
            reactor,
            tls,
            look_up,
            nodes: config.nodes().iter().map(|_| Link::default()).collect(),
            found,
            finder,
            handshake_timeout: config.handshake_timeout(),
            suspects: Vec::new(),
            dirty: Vec::new(),
            is_awake: false,
            is_rung: false,
            is_closed: false,
        }
    }

    /// Who reads.
    pub(crate) fn reactor(&self) -> Arc<Reactor> {
        Arc::clone(&self.reactor)
    }

    /// The reader begins its turn.
    pub(super) const fn wake_up(&mut self) {
        self.is_awake = true;
        self.is_rung = false;
    }

    pub(super) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    fn ring(&mut self) {
        if !self.is_rung {
            self.is_rung = true;
            self.reactor.ring();
        }
    }

    /// The reader has to look at this node again, at once.
    fn suspect(&mut self, node: usize) {
        self.suspects.push(node);
        self.ring();
    }

    fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let link = self.nodes.get_mut(id.node.index())?;
        link.connection.as_mut().filter(|connection| connection.id == id)
    }

    /// Starts with the first of these addresses. Each has an equal share of the time, so that a silent one does not use up
    /// all of it.
    fn dial_first(
        &self,
        id: ConnectionId,
        secured: Secured,
        addresses: Vec<SocketAddr>,
        now: Instant,
    ) -> Result<Dial, DisconnectReason> {
        let each = share_of(self.handshake_timeout, addresses.len());
        self.dial(id, secured, addresses.into(), each, DialFaults::default(), now)
    }

    /// Tries the addresses, one after the other, until one does not fail at once.
    fn dial(
        &self,
        id: ConnectionId,
        secured: Secured,
        mut left: VecDeque<SocketAddr>,
        each: Duration,
        mut faults: DialFaults,
        now: Instant,
    ) -> Result<Dial, DisconnectReason> {
        while let Some(address) = left.pop_front() {
            let stream = self
                .session(secured.as_ref())
                .and_then(|session| Stream::tcp(address, session, &self.registry, Token(id.node.index())));
            match stream {
                Ok(stream) => {
                    // The last has what is left: the engine ends that.
                    let until = if left.is_empty() { Instant::MAX } else { now.saturating_add(each) };
                    return Ok(Dial {
                        stream,
                        target: address.to_string(),
                        secured,
                        left,
                        each,
                        until,
                        faults,
                    });
                }
                Err(error) => faults.add(&address.to_string(), &error),
            }
        }
        Err(faults.reason())
    }

    /// TLS, where it is wanted. Never is it left out.
    fn session(&self, secured: Option<&(String, u16)>) -> io::Result<Option<Session>> {
        let Some((host, port)) = secured else { return Ok(None) };
        let tls = self.tls.as_ref().ok_or_else(|| io::Error::other("TLS: nothing speaks it here"))?;
        tls.session(host, *port).map(Some)
    }

    /// When the next address of some connection is to be tried.
    fn next_dial(&self) -> Option<Instant> {
        let connections = self.nodes.iter().filter_map(|link| link.connection.as_ref());
        let dials = connections.filter_map(|connection| match &connection.phase {
            Phase::Connecting(dial) => Some(dial.until),
            Phase::Resolving(_) | Phase::Up(_) => None,
        });
        dials.min()
    }
}

impl Driver for Sockets {
    fn connect(
        &mut self,
        id: ConnectionId,
        address: &Arc<Address>,
        now: Instant,
    ) -> Result<(), DisconnectReason> {
        let node = id.node.index();
        let phase = match address.endpoint() {
            Endpoint::Unix { path } => {
                let mut faults = DialFaults::default();
                match Stream::unix(path, &self.registry, Token(node)) {
                    Ok(stream) => {
                        let (target, left) = (path.clone(), VecDeque::new());
                        Phase::Connecting(Dial {
                            stream,
                            target,
                            secured: None,
                            left,
                            each: Duration::MAX,
                            until: Instant::MAX,
                            faults,
                        })
                    }
                    Err(error) => {
                        faults.add(path, &error);
                        return Err(faults.reason());
                    }
                }
            }
            Endpoint::Tcp { host, port } => match known_addresses(host, *port) {
                Some(addresses) => {
                    Phase::Connecting(self.dial_first(id, secured(address, host, *port), addresses, now)?)
                }
                None => {
                    let Some(link) = self.nodes.get_mut(node) else { return Ok(()) };
                    if !link.is_resolving {
                        let (finder, reactor) = (self.finder.clone(), Arc::clone(&self.reactor));
                        resolve::start(self.look_up, node, host.clone(), *port, finder, reactor)
                            .map_err(|error| DisconnectReason::Unresolvable(format!("{host}: {error}")))?;
                        link.is_resolving = true;
                    }
                    Phase::Resolving(secured(address, host, *port))
                }
            },
        };
        if let Some(link) = self.nodes.get_mut(node) {
            link.connection = Some(Connection { id, phase });
        }
        Ok(())
    }

    fn transmit(&mut self, id: ConnectionId, payload: Bytes) {
        let Some(connection) = self.connection_mut(id) else { return };
        let Phase::Up(pipe) = &mut connection.phase else { return };
        let is_new = pipe.unsent.is_empty();
        pipe.unsent.push(&payload);
        // What waits already waits for the socket, or is known to be dirty.
        if is_new {
            self.dirty.push(id.node.index());
        }
    }

    fn flush(&mut self, unanswered: usize, may_gather: bool) {
        self.reactor.unanswered.store(unanswered, Ordering::SeqCst);
        if self.dirty.is_empty() {
            return;
        }
        if may_gather && !self.is_awake {
            return self.ring();
        }
        while let Some(node) = self.dirty.pop() {
            let connection = self.nodes.get_mut(node).and_then(|link| link.connection.as_mut());
            if let Some(Connection { phase: Phase::Up(pipe), .. }) = connection {
                pipe.write();
                if pipe.is_broken {
                    self.suspect(node);
                }
            }
        }
    }

    fn disconnect(&mut self, id: ConnectionId) {
        if self.connection_mut(id).is_some()
            && let Some(link) = self.nodes.get_mut(id.node.index())
        {
            link.connection = None;
        }
    }

    fn arm(&mut self, at: Option<Instant>, now: Instant) {
        let mut wanted = at.into_iter().chain(self.next_dial()).min().unwrap_or(Instant::MAX);
        if self.is_closed {
            // Nothing is waited for any more.
            wanted = now;
        }
        let planned = Instant::from_nanos(self.reactor.until.load(Ordering::SeqCst));
        let is_past = planned <= now;
        if self.is_awake || wanted < planned {
            // An earlier plan is kept: waking up once for nothing costs less than being woken for each operation.
            let until = if is_past { wanted } else { planned.min(wanted) };
            self.reactor.until.store(until.as_nanos(), Ordering::SeqCst);
        }
        if !self.is_awake && wanted < planned {
            self.ring();
        }
        self.is_awake = false;
    }

    fn close(&mut self) {
        self.is_closed = true;
        if !self.is_awake {
            self.ring();
        }
    }
}

fn secured(address: &Address, host: &str, port: u16) -> Secured {
    address.is_tls().then(|| (host.to_owned(), port))
}

impl Pipe {
    /// Writes what can be written.
    fn write(&mut self) {
        // What TLS has taken.
        let _is_sent = self.stream.flush();
        while !self.unsent.is_empty() {
            let all = self.unsent.bytes();
            let total = all.len();
            match self.stream.write(all) {
                Ok(0) => return self.break_off(),
                Ok(written) => {
                    self.unsent.advance(written);
                    // What did not fit will not fit now.
                    if written < total && SHORT_MEANS_DONE && !self.stream.is_tls() {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return self.break_off(),
            }
        }
    }

    fn break_off(&mut self) {
        self.is_broken = true;
        self.unsent.clear();
    }
}

/// A socket is ready: the connection stands, there is something to read, there is room to write.
pub(super) fn on_ready(turn: &mut Turn<'_, Sockets>, node: usize, ready: Readiness, buffer: &mut [u8]) {
    let connection = turn.driver.nodes.get_mut(node).and_then(|link| link.connection.as_mut());
    match connection.map(|connection| &mut connection.phase) {
        Some(Phase::Connecting(_)) => on_dialled(turn, node),
        Some(Phase::Up(pipe)) => {
            if ready.write && (!pipe.unsent.is_empty() || pipe.stream.is_tls()) {
                pipe.write();
            }
            if ready.read || pipe.is_broken {
                read(turn, node, ready.end, buffer);
            }
        }
        Some(Phase::Resolving(_)) | None => {}
    }
}

/// What no socket says: names that were looked up, connections that take too long, those that broke while writing.
pub(super) fn on_wake(turn: &mut Turn<'_, Sockets>, buffer: &mut [u8]) {
    for node in core::mem::take(&mut turn.driver.suspects) {
        on_ready(turn, node, Readiness::ANY, buffer);
    }
    while let Ok((node, addresses)) = turn.driver.found.try_recv() {
        on_resolved(turn, node, addresses);
    }
    let now = turn.now();
    if turn.driver.next_dial().is_some_and(|at| at <= now) {
        for node in 0..turn.driver.nodes.len() {
            on_dial_due(turn, node, now);
        }
    }
}

fn on_resolved(
    turn: &mut Turn<'_, Sockets>,
    node: usize,
    addresses: Result<Vec<SocketAddr>, DisconnectReason>,
) {
    let now = turn.now();
    let Some(link) = turn.driver.nodes.get_mut(node) else { return };
    link.is_resolving = false;
    let Some(connection) = &link.connection else { return };
    let (id, Phase::Resolving(secured)) = (connection.id, &connection.phase) else { return };
    let secured = secured.clone();
    let dial = addresses.and_then(|addresses| turn.driver.dial_first(id, secured, addresses, now));
    keep_or_report(turn, id, dial);
}

fn on_dialled(turn: &mut Turn<'_, Sockets>, node: usize) {
    let now = turn.now();
    let Some(link) = turn.driver.nodes.get_mut(node) else { return };
    let Some(Connection { id, phase: Phase::Connecting(dial) }) = &mut link.connection else { return };
    let id = *id;
    match dial.stream.finish_connect() {
        Ok(false) => {}
        Ok(true) => {
            if let Some(Connection { phase: Phase::Connecting(dial), .. }) = link.connection.take() {
                let pipe = Pipe { stream: dial.stream, unsent: Unsent::default(), is_broken: false };
                let is_tls = pipe.stream.is_tls();
                link.connection = Some(Connection { id, phase: Phase::Up(pipe) });
                if is_tls {
                    // What came with the end of the handshake is told by no event.
                    turn.driver.suspect(node);
                }
                turn.client.handle_connected(id, now);
            }
        }
        Err(error) => dial_next(turn, id, &error, now),
    }
}

fn on_dial_due(turn: &mut Turn<'_, Sockets>, node: usize, now: Instant) {
    let Some(connection) = turn.driver.nodes.get(node).and_then(|link| link.connection.as_ref()) else {
        return;
    };
    let (id, Phase::Connecting(dial)) = (connection.id, &connection.phase) else { return };
    if dial.until <= now {
        dial_next(turn, id, &ErrorKind::TimedOut.into(), now);
    }
}

/// The address that was tried fails: the next one.
fn dial_next(turn: &mut Turn<'_, Sockets>, id: ConnectionId, error: &io::Error, now: Instant) {
    let Some(link) = turn.driver.nodes.get_mut(id.node.index()) else { return };
    let Some(Connection { phase: Phase::Connecting(dial), .. }) = link.connection.take() else { return };
    let Dial { stream, target, secured, left, each, mut faults, .. } = dial;
    if stream.is_connected() {
        faults.add_tls(&target, error);
    } else {
        faults.add(&target, error);
    }
    drop(stream);
    let dial = turn.driver.dial(id, secured, left, each, faults, now);
    keep_or_report(turn, id, dial);
}

fn keep_or_report(turn: &mut Turn<'_, Sockets>, id: ConnectionId, dial: Result<Dial, DisconnectReason>) {
    let Some(link) = turn.driver.nodes.get_mut(id.node.index()) else { return };
    match dial {
        Ok(dial) => link.connection = Some(Connection { id, phase: Phase::Connecting(dial) }),
        Err(reason) => {
            link.connection = None;
            turn.client.handle_disconnected(id, reason, turn.now());
        }
    }
}

/// Reads what is there, and hands it to the engine.
fn read(turn: &mut Turn<'_, Sockets>, node: usize, to_the_end: bool, buffer: &mut [u8]) {
    for _ in 0..MOST_READS {
        let Some(link) = turn.driver.nodes.get_mut(node) else { return };
        let Some(Connection { id, phase: Phase::Up(pipe) }) = &mut link.connection else { return };
        let id = *id;
        let reason = match pipe.stream.read(buffer) {
            Ok(0) => DisconnectReason::Closed,
            Ok(length) => {
                let is_short = SHORT_MEANS_DONE && length < buffer.len() && !pipe.stream.is_tls();
                let is_empty = is_short && !to_the_end && !pipe.is_broken;
                turn.client.handle_input(id, buffer.get(..length).unwrap_or_default(), turn.now());
                if is_empty {
                    return;
                }
                continue;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == ErrorKind::WouldBlock && !pipe.is_broken => return,
            // Nothing is left to be read from a connection that cannot be written to.
            Err(error) if error.kind() == ErrorKind::WouldBlock => DisconnectReason::Closed,
            Err(error) => unreadable(&error),
        };
        link.connection = None;
        turn.client.handle_disconnected(id, reason, turn.now());
        return;
    }
    // There may be more, of which nothing will tell.
    turn.driver.suspect(node);
}
