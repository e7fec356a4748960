//! Simulated nodes behind real sockets.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::mem;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::time::Duration;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use super::server::{Memory, Server, SessionId};
use crate::Instant;

/// A client that lets so much time pass without reading while its buffers are full is cut off, as by a server's output
/// limit.
const WRITE_TIMEOUT: Duration = Duration::from_millis(200);

/// A simulated node that listens on a TCP port, with plain threads: for development without a server, and for tests of
/// code that has sockets of its own.
///
/// Time is real here: the node's [`Instant`]s count from its start. The faults below are those of a real host; those of
/// the [`Server`] itself are reached by [`with`](Self::with). Dropping the node closes everything and ends its threads.
///
/// ```
/// use std::io::{Read, Write};
/// use redlock_core::sim::{Dialect, Server, TcpNode};
///
/// let node = TcpNode::start(Server::new(Dialect::Valkey9, 1))?;
/// let mut client = std::net::TcpStream::connect(node.addr())?;
/// client.write_all(b"SET door ann NX PX 60000\r\n")?;
/// let mut reply = [0; 5];
/// client.read_exact(&mut reply)?;
/// assert_eq!(&reply, b"+OK\r\n");
/// assert_eq!(node.with(|server, now| server.value(b"door", now)), Some(b"ann".to_vec()));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct TcpNode {
    shared: Arc<Shared>,
    addr: SocketAddr,
    /// `None` while the node is killed.
    acceptor: Mutex<Option<JoinHandle<()>>>,
    timer: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Rings when the timer thread sleeps too long.
    sooner: Condvar,
    clock: Clock,
}

#[derive(Debug)]
struct State {
    server: Server,
    peers: BTreeMap<SessionId, Peer>,
    readers: Vec<JoinHandle<()>>,
    delay: Duration,
    /// What is held back, by when it is due and in which order it was said.
    delayed: BTreeMap<(Instant, u64), (SessionId, Parcel)>,
    next_parcel: u64,
    /// Until when the timer thread sleeps.
    sleeps_until: Instant,
    is_listening: bool,
    is_dropped: bool,
}

#[derive(Debug)]
struct Peer {
    stream: TcpStream,
    /// When the last of what is held back for it is due.
    busy_until: Option<Instant>,
}

#[derive(Debug)]
enum Parcel {
    Bytes(Vec<u8>),
    Close,
}

/// # Setting up
impl TcpNode {
    /// Serves `server` on a free port of 127.0.0.1.
    ///
    /// # Errors
    ///
    /// Those of binding the port and of starting threads.
    pub fn start(server: Server) -> io::Result<Self> {
        Self::start_at(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0), server)
    }

    /// Serves `server` on this address; port 0 means a free one.
    ///
    /// # Errors
    ///
    /// Those of binding the port and of starting threads.
    pub fn start_at(addr: SocketAddr, server: Server) -> io::Result<Self> {
        let listener = TcpListener::bind(addr)?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                server,
                peers: BTreeMap::new(),
                readers: Vec::new(),
                delay: Duration::ZERO,
                delayed: BTreeMap::new(),
                next_parcel: 0,
                sleeps_until: Instant::MAX,
                is_listening: true,
                is_dropped: false,
            }),
            sooner: Condvar::new(),
            clock: Clock::start(),
        });
        let timer = spawn("redlock-node-timer", &shared, |shared| shared.keep_time())?;
        let node = Self { shared, addr, acceptor: Mutex::new(None), timer: Some(timer) };
        node.listen(listener)?;
        Ok(node)
    }

    /// Where it listens.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Looks at or changes the node itself, at the current instant of its time. What it has to say as a result is sent.
    ///
    /// The node stands still meanwhile: the closure must not wait for a client of it, nor call this node's methods.
    pub fn with<R>(&self, work: impl FnOnce(&mut Server, Instant) -> R) -> R {
        let mut state = self.shared.lock();
        let now = self.shared.clock.now();
        let result = work(&mut state.server, now);
        self.shared.flush(&mut state, now);
        result
    }

    fn listen(&self, listener: TcpListener) -> io::Result<()> {
        let acceptor = spawn("redlock-node-accept", &self.shared, move |shared| shared.accept(&listener))?;
        *self.acceptor.lock().unwrap_or_else(PoisonError::into_inner) = Some(acceptor);
        Ok(())
    }
}

/// # Faults
impl TcpNode {
    /// The process dies: all connections are closed, new ones are refused.
    pub fn kill(&self) {
        let acceptor = self.acceptor.lock().unwrap_or_else(PoisonError::into_inner).take();
        let readers = {
            let mut state = self.shared.lock();
            state.is_listening = false;
            state.server.stop();
            state.delayed.clear();
            state.close_all();
            mem::take(&mut state.readers)
        };
        if let Some(acceptor) = acceptor {
            // The thread is in `accept`; a connection is what wakes it.
            drop(TcpStream::connect_timeout(&reachable(self.addr), Duration::from_secs(1)));
            join(acceptor);
        }
        for reader in readers {
            join(reader);
        }
    }

    /// The process is started again after [`kill`](Self::kill), on the same port. Does nothing if it runs.
    ///
    /// # Errors
    ///
    /// Those of binding the port, which another process may have taken, and of starting threads.
    pub fn revive(&self, memory: Memory) -> io::Result<()> {
        if self.acceptor.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return Ok(());
        }
        let listener = TcpListener::bind(self.addr)?;
        {
            let mut state = self.shared.lock();
            state.is_listening = true;
            state.server.restart(memory, self.shared.clock.now());
        }
        self.listen(listener)
    }

    /// Stops the process where it is, as `SIGSTOP` does: connections are accepted, nothing is answered.
    pub fn freeze(&self) {
        self.with(|server, _| server.pause());
    }

    /// Continues after [`freeze`](Self::freeze): what has arrived meanwhile runs now.
    pub fn thaw(&self) {
        self.with(|server, now| server.resume(now));
    }

    /// Closes every connection; new ones are accepted. What had arrived on the old ones has run or, if the node is
    /// frozen, will run.
    pub fn cut_connections(&self) {
        let mut state = self.shared.lock();
        state.delayed.clear();
        for session in state.close_all() {
            state.server.hang_up(session);
        }
    }

    /// Holds back everything that the node says from now on, so that an answer takes this much longer.
    pub fn set_delay(&self, delay: Duration) {
        self.shared.lock().delay = delay;
    }
}

impl Drop for TcpNode {
    fn drop(&mut self) {
        self.kill();
        self.shared.lock().is_dropped = true;
        self.shared.sooner.notify_all();
        if let Some(timer) = self.timer.take() {
            join(timer);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of a caller's closure leaves the node as consistent as a server after a failed command.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        loop {
            let accepted = listener.accept();
            let mut state = self.lock();
            if !state.is_listening {
                return;
            }
            let served = accepted.and_then(|(stream, _)| self.serve(&mut state, stream));
            drop(state);
            if served.is_err() {
                // Out of descriptors or threads: nothing to wait for but time.
                thread::sleep(Duration::from_millis(10));
            }
        }
    }

    fn serve(self: &Arc<Self>, state: &mut State, stream: TcpStream) -> io::Result<()> {
        if !state.server.is_up() {
            return Ok(());
        }
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        let reading = stream.try_clone()?;
        let now = self.clock.now();
        let session = state.server.open(now);
        state.peers.insert(session, Peer { stream, busy_until: None });
        state.readers.retain(|reader| !reader.is_finished());
        match spawn("redlock-node-read", self, move |shared| shared.read(session, &reading)) {
            Ok(reader) => state.readers.push(reader),
            Err(error) => {
                state.close(session);
                state.server.hang_up(session);
                return Err(error);
            }
        }
        self.flush(state, now);
        Ok(())
    }

    fn read(&self, session: SessionId, mut stream: &TcpStream) {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => {
                    let mut state = self.lock();
                    let now = self.clock.now();
                    state.server.receive(session, buffer.get(..length).unwrap_or_default(), now);
                    self.flush(&mut state, now);
                    // A client that writes without end would keep a socket readable that is closed on this side.
                    if !state.peers.contains_key(&session) {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let mut state = self.lock();
        state.server.hang_up(session);
        state.close(session);
    }

    /// Sends what the node has to say, and hangs up where it has hung up.
    fn flush(&self, state: &mut State, now: Instant) {
        for session in state.server.pending() {
            let bytes = state.server.output(session);
            if !bytes.is_empty() {
                state.say(session, Parcel::Bytes(bytes), now);
            }
        }
        let closed: Vec<SessionId> =
            state.peers.keys().copied().filter(|session| state.server.wants_close(*session)).collect();
        for session in closed {
            state.say(session, Parcel::Close, now);
        }
        if state.next_due() < state.sleeps_until {
            self.sooner.notify_all();
        }
    }

    /// The timer thread: sends what was held back, and lets keys run out for those who wait for it.
    fn keep_time(&self) {
        let mut state = self.lock();
        while !state.is_dropped {
            let now = self.clock.now();
            let due = state.next_due();
            if due > now {
                state.sleeps_until = due;
                state = self.wait(state, due.saturating_duration_since(now));
                state.sleeps_until = Instant::ZERO;
                continue;
            }
            state.server.tick(now);
            state.deliver(now);
            self.flush(&mut state, now);
        }
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, span: Duration) -> MutexGuard<'a, State> {
        // An hour at most: platforms differ in how long a wait may be asked for.
        let span = span.min(Duration::from_secs(3_600));
        self.sooner.wait_timeout(state, span).unwrap_or_else(PoisonError::into_inner).0
    }
}

impl State {
    fn next_due(&self) -> Instant {
        let parcel = self.delayed.keys().next().map(|(due, _)| *due);
        parcel.into_iter().chain(self.server.next_event()).min().unwrap_or(Instant::MAX)
    }

    /// Sends now, or later where there is a delay or something else still has to go first.
    fn say(&mut self, session: SessionId, parcel: Parcel, now: Instant) {
        let delay = self.delay;
        let Some(peer) = self.peers.get_mut(&session) else { return };
        if delay.is_zero() && peer.busy_until.is_none() {
            self.hand_over(session, parcel);
            return;
        }
        let due = now.saturating_add(delay).max(peer.busy_until.unwrap_or(Instant::ZERO));
        peer.busy_until = Some(due);
        self.delayed.insert((due, self.next_parcel), (session, parcel));
        self.next_parcel = self.next_parcel.wrapping_add(1);
    }

    fn deliver(&mut self, now: Instant) {
        while let Some(entry) = self.delayed.first_entry().filter(|entry| entry.key().0 <= now) {
            let due = entry.key().0;
            let (session, parcel) = entry.remove();
            if let Some(peer) = self.peers.get_mut(&session).filter(|peer| peer.busy_until == Some(due)) {
                let more = self.delayed.values().any(|(other, _)| *other == session);
                peer.busy_until = more.then_some(due);
            }
            self.hand_over(session, parcel);
        }
    }

    fn hand_over(&mut self, session: SessionId, parcel: Parcel) {
        let Some(peer) = self.peers.get_mut(&session) else { return };
        let sent = match parcel {
            Parcel::Bytes(bytes) => peer.stream.write_all(&bytes),
            Parcel::Close => Err(ErrorKind::ConnectionAborted.into()),
        };
        if sent.is_err() {
            self.close(session);
            self.server.hang_up(session);
        }
    }

    /// Closes the socket. The thread that reads from it ends by that.
    fn close(&mut self, session: SessionId) {
        if let Some(peer) = self.peers.remove(&session) {
            // Fails only where the client was quicker.
            let _gone = peer.stream.shutdown(Shutdown::Both);
        }
    }

    fn close_all(&mut self) -> Vec<SessionId> {
        let sessions: Vec<SessionId> = self.peers.keys().copied().collect();
        for session in &sessions {
            self.close(*session);
        }
        sessions
    }
}

/// Real time, as the node counts it.
#[derive(Clone, Copy, Debug)]
struct Clock {
    start: std::time::Instant,
}

impl Clock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the origin of a simulated server's time; no lock of ours is believed by it"
    )]
    fn start() -> Self {
        Self { start: std::time::Instant::now() }
    }

    fn now(self) -> Instant {
        Instant::ZERO.saturating_add(self.start.elapsed())
    }
}

fn spawn(
    name: &str,
    shared: &Arc<Shared>,
    work: impl FnOnce(&Arc<Shared>) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    thread::Builder::new().name(name.into()).spawn(move || work(&shared))
}

fn join(thread: JoinHandle<()>) {
    // A panic of that thread has been reported already.
    drop(thread.join());
}

/// An address that a connection from this host can go to.
const fn reachable(addr: SocketAddr) -> SocketAddr {
    let ip = match addr.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, addr.port())
}

#[cfg(test)]
mod tests;
