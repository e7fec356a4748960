//! The connections, as the engine sees them: told to connect, write and close, on whichever thread made it want that.

use super::signal::{Bell, Signal};
use super::{BoxFuture, Secure, Socket, Transport};
use crate::address::{Address, Endpoint};
use crate::config::Config;
use crate::event::DisconnectReason;
use crate::handoff::dial::{DialFaults, known_addresses, looked_up, share_of, unreadable};
use crate::handoff::{Driver, Turn, Unsent};
use crate::ids::ConnectionId;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use core::net::SocketAddr;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::io::{self, ErrorKind};

/// How often one connection is read from before the others have their turn.
const MOST_READS: usize = 16;

/// How the driver sleeps, for futures that have to.
pub(super) type Sleep = fn(Duration) -> BoxFuture<()>;

type Dialled = Result<Box<dyn Socket>, DisconnectReason>;

/// All connections of a client.
pub struct Connections {
    transport: Arc<dyn Transport>,
    secure: Option<Arc<dyn Secure>>,
    sleep: Sleep,
    bell: Arc<Bell>,
    links: Vec<Link>,
    handshake_timeout: Duration,
    /// Nodes to which something was transmitted that is not written.
    dirty: Vec<usize>,
    /// The driver is in its turn: it will look at the alarm before it sleeps.
    is_awake: bool,
    /// The driver has to be woken.
    is_ringing: bool,
    /// It was woken, and has not had its turn since.
    is_rung: bool,
    is_closed: bool,
    /// The driver is gone.
    is_orphaned: bool,
}

/// One node's part.
struct Link {
    signal: Arc<Signal>,
    /// The same, for sockets.
    waker: Waker,
    /// A look-up, for whichever connection wants what it finds: one at a time, so that a resolver that hangs gathers no
    /// threads.
    lookup: Option<(String, BoxFuture<io::Result<Vec<SocketAddr>>>)>,
    connection: Option<(ConnectionId, Phase)>,
}

enum Phase {
    /// Its name is being looked up.
    Resolving(Arc<Address>),
    Dialling(BoxFuture<Dialled>),
    Up(Pipe),
}

/// A connection that stands.
struct Pipe {
    socket: Box<dyn Socket>,
    unsent: Unsent,
    /// Writing failed: what is left to be read is read, then it is over.
    is_broken: bool,
}

impl Connections {
    pub(super) fn new(
        config: &Config,
        transport: Arc<dyn Transport>,
        secure: Option<Arc<dyn Secure>>,
        sleep: Sleep,
    ) -> Self {
        let bell = Arc::new(Bell::default());
        let link = |_| {
            let signal = Arc::new(Signal::new(Arc::clone(&bell)));
            Link { waker: Arc::clone(&signal).into(), signal, lookup: None, connection: None }
        };
        let links = config.nodes().iter().map(link).collect();
        let handshake_timeout = config.handshake_timeout();
        Self {
            transport,
            secure,
            sleep,
            bell,
            links,
            handshake_timeout,
            dirty: Vec::new(),
            is_awake: false,
            is_ringing: false,
            is_rung: false,
            is_closed: false,
            is_orphaned: false,
        }
    }

    pub(super) const fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    /// How many nodes there are.
    pub(super) const fn nodes(&self) -> usize {
        self.links.len()
    }

    /// The driver begins its turn.
    pub(super) const fn wake_up(&mut self) {
        self.is_awake = true;
        self.is_rung = false;
    }

    /// Whether something was transmitted that is not written.
    pub(super) const fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Writes what was transmitted and is not written.
    pub(super) fn write_all(&mut self) {
        while let Some(node) = self.dirty.pop() {
            let Some(link) = self.links.get_mut(node) else { continue };
            if let Some((_, Phase::Up(pipe))) = &mut link.connection {
                pipe.write(&link.waker);
                if pipe.is_broken {
                    self.suspect(node);
                }
            }
        }
    }

    pub(super) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The driver is gone. What is written from now on is not followed by an answer that is waited for, and a socket that is
    /// closed while answers arrive takes back what its peer has not read yet: so they stay open until the client is dropped.
    pub(super) const fn orphan(&mut self) {
        self.is_orphaned = true;
    }

    /// The driver has to look at this node.
    fn suspect(&mut self, node: usize) {
        if let Some(link) = self.links.get(node) {
            link.signal.set();
            self.is_ringing = true;
        }
    }

    /// Tries the addresses, one after the other.
    fn dial(&self, address: &Address, addresses: Vec<SocketAddr>) -> BoxFuture<Dialled> {
        let each = share_of(self.handshake_timeout, addresses.len());
        let tls = match (address.endpoint(), &self.secure) {
            (Endpoint::Tcp { host, port }, Some(secure)) if address.is_tls() => {
                Some((host.clone(), *port, Arc::clone(secure)))
            }
            _ => None,
        };
        Box::pin(dial(Arc::clone(&self.transport), tls, addresses, each, self.sleep))
    }
}

async fn dial(
    transport: Arc<dyn Transport>,
    tls: Option<(String, u16, Arc<dyn Secure>)>,
    addresses: Vec<SocketAddr>,
    each: Duration,
    sleep: Sleep,
) -> Dialled {
    let mut faults = DialFaults::default();
    let mut addresses = addresses.into_iter().peekable();
    while let Some(address) = addresses.next() {
        // The last has what is left: the engine ends that.
        let mut time = addresses.peek().map(|_| sleep(each));
        let socket = match within(transport.connect(address), &mut time).await {
            Ok(socket) => socket,
            Err(error) => {
                faults.add(&address.to_string(), &error);
                continue;
            }
        };
        let Some((host, port, secure)) = &tls else { return Ok(socket) };
        match within(secure.secure(host.clone(), *port, socket), &mut time).await {
            Ok(socket) => return Ok(socket),
            Err(error) => faults.add_tls(&address.to_string(), &error),
        }
    }
    Err(faults.reason())
}

async fn within<T>(mut work: BoxFuture<io::Result<T>>, time: &mut Option<BoxFuture<()>>) -> io::Result<T> {
    core::future::poll_fn(|cx| match (work.as_mut().poll(cx), time.as_mut()) {
        (Poll::Ready(result), _) => Poll::Ready(result),
        (Poll::Pending, Some(time)) => time.as_mut().poll(cx).map(|()| Err(ErrorKind::TimedOut.into())),
        (Poll::Pending, None) => Poll::Pending,
    })
    .await
}

async fn dial_unix(connecting: BoxFuture<io::Result<Box<dyn Socket>>>, path: String) -> Dialled {
    pin!(connecting).await.map_err(|error| {
        let mut faults = DialFaults::default();
        faults.add(&path, &error);
        faults.reason()
    })
}

impl Driver for Connections {
    fn connect(
        &mut self,
        id: ConnectionId,
        address: &Arc<Address>,
        _now: Instant,
    ) -> Result<(), DisconnectReason> {
        if address.is_tls() && self.secure.is_none() {
            // Never in the clear. No client is made like that.
            return Err(DisconnectReason::Tls("nothing speaks it here".into()));
        }
        let node = id.node.index();
        let phase = match address.endpoint() {
            Endpoint::Unix { path } => {
                let connecting = self.transport.connect_unix(path.clone());
                Phase::Dialling(Box::pin(dial_unix(connecting, path.clone())))
            }
            Endpoint::Tcp { host, port } => match known_addresses(host, *port) {
                Some(addresses) => Phase::Dialling(self.dial(address, addresses)),
                None => {
                    let Some(link) = self.links.get_mut(node) else { return Ok(()) };
                    if link.lookup.is_none() {
                        link.lookup = Some((host.clone(), self.transport.resolve(host.clone(), *port)));
                    }
                    Phase::Resolving(Arc::clone(address))
                }
            },
        };
        if let Some(link) = self.links.get_mut(node) {
            link.connection = Some((id, phase));
        }
        self.suspect(node);
        Ok(())
    }

    fn transmit(&mut self, id: ConnectionId, payload: Bytes) {
        let Some(link) = self.links.get_mut(id.node.index()) else { return };
        let Some((known, Phase::Up(pipe))) = &mut link.connection else { return };
        if *known != id {
            return;
        }
        // What waits already waits for the socket, or is known to be dirty.
        if pipe.unsent.is_empty() {
            self.dirty.push(id.node.index());
        }
        pipe.unsent.push(&payload);
    }

    fn flush(&mut self, _unanswered: usize, may_gather: bool) {
        // A driver that is gone will not write.
        if !may_gather || self.is_awake || self.is_orphaned {
            self.write_all();
        } else if self.is_dirty() {
            self.is_ringing = true;
        }
    }

    fn disconnect(&mut self, id: ConnectionId) {
        if !self.is_orphaned
            && let Some(link) = self.links.get_mut(id.node.index())
            && link.connection.as_ref().is_some_and(|(known, _)| *known == id)
        {
            link.connection = None;
        }
    }

    fn arm(&mut self, at: Option<Instant>, now: Instant) {
        let wanted = at.unwrap_or(Instant::MAX);
        let planned = self.bell.alarm();
        if self.is_awake {
            self.is_awake = false;
            // An earlier plan is kept, as the driver keeps its timer.
            self.bell.set_alarm(if planned > now { planned.min(wanted) } else { wanted });
        } else if wanted < planned {
            self.bell.set_alarm(wanted);
            self.is_ringing = true;
        }
    }

    fn close(&mut self) {
        self.is_closed = true;
        self.is_ringing = true;
        if !self.is_orphaned {
            self.links.clear();
        }
    }

    fn wakes(&mut self) -> Option<Waker> {
        if !core::mem::take(&mut self.is_ringing) || core::mem::replace(&mut self.is_rung, true) {
            return None;
        }
        self.bell.driver()
    }
}

impl Pipe {
    fn new(socket: Box<dyn Socket>) -> Self {
        Self { socket, unsent: Unsent::default(), is_broken: false }
    }

    /// Writes what can be written.
    fn write(&mut self, waker: &Waker) {
        let mut cx = Context::from_waker(waker);
        while !self.unsent.is_empty() {
            match self.socket.poll_write(&mut cx, self.unsent.bytes()) {
                Poll::Pending => return,
                Poll::Ready(Ok(written)) if written > 0 => self.unsent.advance(written),
                Poll::Ready(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
                Poll::Ready(Ok(_) | Err(_)) => {
                    self.is_broken = true;
                    self.unsent.clear();
                }
            }
        }
    }
}

/// Looks at a node, if there is something to look at.
pub(super) fn on_signal(turn: &mut Turn<'_, Connections>, node: usize, buffer: &mut [u8]) {
    let Some(link) = turn.driver.links.get_mut(node).filter(|link| link.signal.take()) else { return };
    // What was found while no connection wanted it is there for the next one.
    if let Some((_, Phase::Resolving(_))) = &link.connection
        && let Some((host, lookup)) = &mut link.lookup
        && let Poll::Ready(found) = lookup.as_mut().poll(&mut Context::from_waker(&link.waker))
    {
        let found = looked_up(host, found);
        link.lookup = None;
        on_resolved(turn, node, found);
    }
    on_dialling(turn, node);
    read_and_write(turn, node, buffer);
}

fn on_resolved(
    turn: &mut Turn<'_, Connections>,
    node: usize,
    found: Result<Vec<SocketAddr>, DisconnectReason>,
) {
    let Some(link) = turn.driver.links.get(node) else { return };
    let Some((id, Phase::Resolving(address))) = &link.connection else { return };
    let (id, dial) = (*id, found.map(|addresses| turn.driver.dial(address, addresses)));
    let Some(link) = turn.driver.links.get_mut(node) else { return };
    match dial {
        Ok(dial) => link.connection = Some((id, Phase::Dialling(dial))),
        Err(reason) => {
            link.connection = None;
            turn.client.handle_disconnected(id, reason, turn.now());
        }
    }
}

fn on_dialling(turn: &mut Turn<'_, Connections>, node: usize) {
    let Some(link) = turn.driver.links.get_mut(node) else { return };
    let Some((id, Phase::Dialling(dial))) = &mut link.connection else { return };
    let id = *id;
    let Poll::Ready(dialled) = dial.as_mut().poll(&mut Context::from_waker(&link.waker)) else { return };
    match dialled {
        Ok(socket) => {
            link.connection = Some((id, Phase::Up(Pipe::new(socket))));
            turn.client.handle_connected(id, turn.now());
        }
        Err(reason) => {
            link.connection = None;
            turn.client.handle_disconnected(id, reason, turn.now());
        }
    }
}

/// Writes what is left to be written, reads what is there, and hands it to the engine.
fn read_and_write(turn: &mut Turn<'_, Connections>, node: usize, buffer: &mut [u8]) {
    for _ in 0..MOST_READS {
        let Some(link) = turn.driver.links.get_mut(node) else { return };
        let Some((id, Phase::Up(pipe))) = &mut link.connection else { return };
        let id = *id;
        pipe.write(&link.waker);
        let reason = match pipe.socket.poll_read(&mut Context::from_waker(&link.waker), buffer) {
            Poll::Pending if !pipe.is_broken => return,
            // Nothing is left to be read from a connection that cannot be written to.
            Poll::Pending | Poll::Ready(Ok(0)) => DisconnectReason::Closed,
            Poll::Ready(Ok(length)) => {
                turn.client.handle_input(id, buffer.get(..length).unwrap_or_default(), turn.now());
                continue;
            }
            Poll::Ready(Err(error)) if error.kind() == ErrorKind::Interrupted => continue,
            Poll::Ready(Err(error)) => unreadable(&error),
        };
        link.connection = None;
        turn.client.handle_disconnected(id, reason, turn.now());
        return;
    }
    // There may be more, of which nothing will tell.
    turn.driver.suspect(node);
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections")
            .field("nodes", &self.links.len())
            .field("is_closed", &self.is_closed)
            .finish_non_exhaustive()
    }
}
