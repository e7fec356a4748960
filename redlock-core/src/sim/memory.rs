//! Simulated nodes in memory, for the asynchronous adapters.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::{pending, ready};
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::task::{Context, Poll, Waker, ready};
use core::time::Duration;
use std::io::{self, ErrorKind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::server::{Memory, Server, SessionId};
use crate::Instant;
use crate::handoff::Clock;
use crate::handoff::task::{BoxFuture, Socket, Transport};

type Sleep = Arc<dyn Fn(Duration) -> BoxFuture<()> + Send + Sync>;

/// Simulated nodes that an asynchronous adapter connects to without sockets: a [`Transport`], for a runtime whose time is
/// paused. Cheap to clone; clones are the same nodes.
///
/// The nodes read the clock that the client reads, so that nothing happens while a test does not let time pass. What they
/// answer is there at once, or after a [delay](Self::set_delay).
///
/// ```
/// use core::time::Duration;
/// use redlock_core::sim::{Dialect, MemoryNodes, Server};
/// use redlock_core::{Instant, handoff::Clock};
///
/// struct Stopped;
///
/// impl Clock for Stopped {
///     fn now(&self) -> Instant {
///         Instant::from_secs(1)
///     }
/// }
///
/// let servers = (0..3).map(|seed| Server::new(Dialect::Valkey9, seed));
/// let nodes = MemoryNodes::new(servers, Stopped, |_span: Duration| Box::pin(core::future::pending()));
/// assert_eq!(nodes.urls(), ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"]);
/// // redlock_tokio::Redlock::builder().nodes(nodes.urls()).transport(nodes.clone()).clock(…)
/// assert_eq!(nodes.with(0, |server, now| server.keys(now).len()), 0);
/// ```
#[derive(Clone)]
pub struct MemoryNodes {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Box<dyn Clock>,
    sleep: Sleep,
    nodes: Mutex<Vec<Node>>,
    names: Mutex<BTreeMap<String, Vec<SocketAddr>>>,
}

struct Node {
    server: Server,
    delay: Duration,
    is_silent: bool,
    connects: usize,
    pipes: BTreeMap<SessionId, Pipe>,
}

/// What a node has said on a connection that nobody has read yet.
#[derive(Default)]
struct Pipe {
    said: VecDeque<(Instant, Vec<u8>)>,
    is_closed: bool,
    reader: Option<Waker>,
}

/// # Setting up
impl MemoryNodes {
    /// These nodes, at 10.0.0.1, 10.0.0.2 and so on. `sleep` is ready once a span is over, for answers that are delayed.
    pub fn new(
        servers: impl IntoIterator<Item = Server>,
        clock: impl Clock + 'static,
        sleep: impl Fn(Duration) -> BoxFuture<()> + Send + Sync + 'static,
    ) -> Self {
        let node = |server| Node {
            server,
            delay: Duration::ZERO,
            is_silent: false,
            connects: 0,
            pipes: BTreeMap::new(),
        };
        let nodes = Mutex::new(servers.into_iter().map(node).collect());
        let (clock, sleep, names) = (Box::new(clock), Arc::new(sleep), Mutex::default());
        Self { shared: Arc::new(Shared { clock, sleep, nodes, names }) }
    }

    /// Where they are, as a client takes it.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        (0..self.lock().len()).map(|node| format!("redis://{}", address(node).ip())).collect()
    }

    /// Has `host` resolve to these nodes, by index; an index of no node is an address at which nobody listens.
    pub fn name(&self, host: &str, nodes: &[usize]) {
        let addresses = nodes.iter().map(|node| address(*node)).collect();
        let mut names = self.shared.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(host.into(), addresses);
    }

    /// Looks at or changes a node, at the current instant; what it has to say as a result is said.
    ///
    /// All nodes stand still meanwhile: the closure must not call these methods, nor a client.
    ///
    /// # Panics
    ///
    /// There is no such node.
    #[expect(clippy::expect_used, reason = "for tests, whose author knows how many nodes there are")]
    pub fn with<R>(&self, node: usize, work: impl FnOnce(&mut Server, Instant) -> R) -> R {
        self.on(node, |node, now| work(&mut node.server, now)).expect("a node of this index")
    }

    /// How often a client has asked for a connection to this node.
    #[must_use]
    pub fn connects(&self, node: usize) -> usize {
        self.lock().get(node).map_or(0, |node| node.connects)
    }

    /// How many connections to this node stand.
    #[must_use]
    pub fn connections(&self, node: usize) -> usize {
        self.lock().get(node).map_or(0, |node| node.pipes.len())
    }
}

/// # Faults
impl MemoryNodes {
    /// The process dies: its connections are closed, new ones are refused.
    pub fn kill(&self, node: usize) {
        self.on(node, |node, _| {
            node.server.stop();
            node.cut();
        });
    }

    /// It is started again.
    pub fn revive(&self, node: usize, memory: Memory) {
        self.on(node, |node, now| node.server.restart(memory, now));
    }

    /// Stops the process where it is: connections are accepted, nothing is answered.
    pub fn freeze(&self, node: usize) {
        self.on(node, |node, _| node.server.pause());
    }

    /// It continues: what has arrived meanwhile runs now.
    pub fn thaw(&self, node: usize) {
        self.on(node, |node, now| node.server.resume(now));
    }

    /// Closes its connections; what had arrived on them has run.
    pub fn cut(&self, node: usize) {
        self.on(node, |node, _| node.cut());
    }

    /// Its answers take so much longer from now on.
    pub fn set_delay(&self, node: usize, delay: Duration) {
        self.on(node, |node, _| node.delay = delay);
    }

    /// Connecting to it is never answered, as where a firewall drops the packets; or is again.
    pub fn set_silent(&self, node: usize, is_silent: bool) {
        self.on(node, |node, _| node.is_silent = is_silent);
    }
}

impl MemoryNodes {
    fn lock(&self) -> MutexGuard<'_, Vec<Node>> {
        self.shared.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on a node, and wakes whoever can read something by that.
    fn on<R>(&self, node: usize, work: impl FnOnce(&mut Node, Instant) -> R) -> Option<R> {
        let now = self.shared.clock.now();
        let mut nodes = self.lock();
        let node = nodes.get_mut(node)?;
        let result = work(node, now);
        let wakers = node.flush(now);
        drop(nodes);
        for waker in wakers {
            waker.wake();
        }
        Some(result)
    }

    fn open(&self, address: SocketAddr) -> io::Result<Box<dyn Socket>> {
        let index = index_of(address).ok_or(ErrorKind::ConnectionRefused)?;
        let open = |node: &mut Node, now| {
            node.connects = node.connects.saturating_add(1);
            if !node.server.is_up() {
                return None;
            }
            let session = node.server.open(now);
            node.pipes.insert(session, Pipe::default());
            Some(session)
        };
        let session = self.on(index, open).flatten().ok_or(ErrorKind::ConnectionRefused)?;
        Ok(Box::new(MemorySocket { nodes: self.clone(), node: index, session, sleep: None }))
    }
}

const FIRST: u32 = u32::from_be_bytes([10, 0, 0, 1]);
const PORT: u16 = 6379;

fn address(node: usize) -> SocketAddr {
    let ip = FIRST.saturating_add(u32::try_from(node).unwrap_or(u32::MAX));
    SocketAddr::new(IpAddr::V4(Ipv4Addr::from(ip)), PORT)
}

fn index_of(address: SocketAddr) -> Option<usize> {
    let IpAddr::V4(ip) = address.ip() else { return None };
    usize::try_from(u32::from(ip).checked_sub(FIRST)?).ok().filter(|_| address.port() == PORT)
}

impl Node {
    /// Moves what the server has to say to the connections' readers.
    fn flush(&mut self, now: Instant) -> Vec<Waker> {
        let mut wakers = Vec::new();
        for session in self.server.pending() {
            let bytes = self.server.output(session);
            let Some(pipe) = self.pipes.get_mut(&session) else { continue };
            if !bytes.is_empty() {
                pipe.said.push_back((now.saturating_add(self.delay), bytes));
                wakers.extend(pipe.reader.take());
            }
        }
        for (session, pipe) in &mut self.pipes {
            if !pipe.is_closed && self.server.wants_close(*session) {
                pipe.is_closed = true;
            }
            if pipe.is_closed {
                wakers.extend(pipe.reader.take());
            }
        }
        wakers
    }

    fn cut(&mut self) {
        for (session, pipe) in &mut self.pipes {
            pipe.said.clear();
            pipe.is_closed = true;
            self.server.hang_up(*session);
        }
    }
}

impl Transport for MemoryNodes {
    fn resolve(&self, host: String, _port: u16) -> BoxFuture<io::Result<Vec<SocketAddr>>> {
        let names = self.shared.names.lock().unwrap_or_else(PoisonError::into_inner);
        let found = names.get(&host).cloned();
        Box::pin(ready(found.ok_or_else(|| io::Error::new(ErrorKind::NotFound, "no such name"))))
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<io::Result<Box<dyn Socket>>> {
        let node = index_of(address);
        if node.is_some_and(|node| self.lock().get(node).is_some_and(|node| node.is_silent)) {
            return Box::pin(pending());
        }
        let nodes = self.clone();
        Box::pin(async move { nodes.open(address) })
    }

    fn connect_unix(&self, _path: String) -> BoxFuture<io::Result<Box<dyn Socket>>> {
        Box::pin(ready(Err(ErrorKind::NotFound.into())))
    }
}

/// A client's end of a connection.
struct MemorySocket {
    nodes: MemoryNodes,
    node: usize,
    session: SessionId,
    /// Until what was said may be heard.
    sleep: Option<BoxFuture<()>>,
}

impl Socket for MemorySocket {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            if let Some(sleep) = &mut self.sleep {
                ready!(sleep.as_mut().poll(cx));
                self.sleep = None;
            }
            let now = self.nodes.shared.clock.now();
            let mut nodes = self.nodes.lock();
            let node = nodes.get_mut(self.node);
            let Some(pipe) = node.and_then(|node| node.pipes.get_mut(&self.session)) else {
                return Poll::Ready(Ok(0));
            };
            let Some((due, said)) = pipe.said.front_mut() else {
                if pipe.is_closed {
                    return Poll::Ready(Ok(0));
                }
                pipe.reader = Some(cx.waker().clone());
                return Poll::Pending;
            };
            if *due > now {
                self.sleep = Some((self.nodes.shared.sleep)(due.saturating_duration_since(now)));
                continue;
            }
            let length = said.len().min(buffer.len());
            for (to, from) in buffer.iter_mut().zip(said.drain(..length)) {
                *to = from;
            }
            if said.is_empty() {
                pipe.said.pop_front();
            }
            return Poll::Ready(Ok(length));
        }
    }

    fn poll_write(&mut self, _cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let session = self.session;
        let written = self.nodes.on(self.node, |node, now| {
            let is_open = node.pipes.get(&session).is_some_and(|pipe| !pipe.is_closed);
            if is_open {
                node.server.receive(session, bytes, now);
            }
            is_open
        });
        Poll::Ready(match written {
            Some(true) => Ok(bytes.len()),
            Some(false) | None => Err(ErrorKind::BrokenPipe.into()),
        })
    }
}

impl Drop for MemorySocket {
    fn drop(&mut self) {
        let session = self.session;
        self.nodes.on(self.node, |node, _| {
            node.server.hang_up(session);
            node.pipes.remove(&session)
        });
    }
}

impl fmt::Debug for MemoryNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryNodes").field("nodes", &self.lock().len()).finish_non_exhaustive()
    }
}
