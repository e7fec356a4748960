//! One conversation with each node, on a thread and a plain socket of its own.

use core::net::SocketAddr;
use core::time::Duration;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread;

use redlock_blocking::{Address, Endpoint, Tls};
use redlock_core::handoff::dial::{DialFaults, known_addresses, looked_up, share_of, unreadable};
use redlock_core::inspect::{NodeReport, Probe, Task};
use redlock_core::{DisconnectReason, NodeFault};
use redlock_tls::Session;

use crate::clock;

/// A probe waits so often for an answer at most: the handshake, three rounds of questions, the last sample.
const ROUNDS: u32 = 6;
/// The shortest time that a system waits; none would be for ever.
const LEAST_WAIT: Duration = Duration::from_millis(1);

/// Gives each node its task, all at once. Whatever they do, there is a report on each of them in the end, after `sampling`
/// and a few times `patience` at most.
pub(super) fn ask_all(
    nodes: &[Address],
    tls: Option<&Tls>,
    task: impl Fn(usize) -> Task,
    patience: Duration,
    sampling: Duration,
) -> Vec<NodeReport> {
    let (sender, receiver) = mpsc::channel();
    let mut reports: Vec<Option<NodeReport>> = nodes.iter().map(|_| None).collect();
    for (index, (address, slot)) in nodes.iter().zip(&mut reports).enumerate() {
        let (address, task, sender) = (address.clone(), task(index), sender.clone());
        let tls = tls.filter(|_| address.is_tls()).cloned();
        let unasked = address.clone();
        let ask = move || drop(sender.send((index, converse(address, tls, task, patience))));
        if let Err(error) = thread::Builder::new().name(format!("redlock-node-{index}")).spawn(ask) {
            *slot = Some(NodeReport::unreachable(unasked, NodeFault::Io(error.to_string())));
        }
    }
    drop(sender);
    let end = clock::now().saturating_add(sampling).saturating_add(patience.saturating_mul(ROUNDS));
    // A resolver may hang for longer than anyone wants to wait: its thread ends with the process.
    while let Ok((index, report)) = receiver.recv_timeout(end.saturating_duration_since(clock::now())) {
        if let Some(slot) = reports.get_mut(index) {
            *slot = Some(report);
        }
    }
    let missing =
        |address: &Address| NodeReport::unreachable(address.clone(), NodeFault::HandshakeTimeout(patience));
    reports.into_iter().zip(nodes).map(|(report, node)| report.unwrap_or_else(|| missing(node))).collect()
}

fn converse(address: Address, tls: Option<Tls>, task: Task, patience: Duration) -> NodeReport {
    let mut probe = Probe::new(address.clone(), task, patience, clock::now());
    match connect(&address, tls.as_ref(), patience) {
        Ok(mut socket) => talk(&mut probe, &mut *socket),
        Err(reason) => probe.handle_disconnected(reason, clock::now()),
    }
    probe.into_report()
}

fn talk(probe: &mut Probe, socket: &mut dyn Socket) {
    let mut buffer = [0; 16 * 1024];
    probe.handle_connected(clock::now());
    while !probe.is_done() {
        if let Err(error) = send(probe, socket) {
            probe.handle_disconnected(DisconnectReason::Io(error.to_string()), clock::now());
            continue;
        }
        let Some(until) = probe.poll_timeout() else { return };
        let wait = until.saturating_duration_since(clock::now()).max(LEAST_WAIT);
        let read = socket.set_wait(wait).and_then(|()| socket.read(&mut buffer));
        let now = clock::now();
        match read {
            Ok(0) => probe.handle_disconnected(DisconnectReason::Closed, now),
            Ok(length) => probe.handle_input(buffer.get(..length).unwrap_or_default(), now),
            Err(error) if is_in_vain(&error) => probe.handle_timeout(now),
            Err(error) if is_cut(&error) => probe.handle_disconnected(DisconnectReason::Closed, now),
            Err(error) => probe.handle_disconnected(unreadable(&error), now),
        }
    }
}

/// Whether a read ended because nothing came.
fn is_in_vain(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Whether the node has closed the connection while something was under way to it.
fn is_cut(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted)
}

fn send(probe: &mut Probe, socket: &mut dyn Socket) -> io::Result<()> {
    while let Some(bytes) = probe.poll_transmit(clock::now()) {
        socket.write_all(&bytes)?;
    }
    Ok(())
}

fn connect(
    address: &Address,
    tls: Option<&Tls>,
    patience: Duration,
) -> Result<Box<dyn Socket>, DisconnectReason> {
    let mut faults = DialFaults::default();
    match address.endpoint() {
        Endpoint::Tcp { host, port } => {
            let targets = resolve(host, *port)?;
            let share = share_of(patience, targets.len()).max(LEAST_WAIT);
            for target in targets {
                let stream = match dial(target, share, patience) {
                    Ok(stream) => stream,
                    Err(error) => {
                        faults.add(&target.to_string(), &error);
                        continue;
                    }
                };
                if !address.is_tls() {
                    return Ok(Box::new(stream));
                }
                match secure(tls, (host, *port), stream, share) {
                    Ok(stream) => return Ok(Box::new(stream)),
                    Err(error) => faults.add_tls(&target.to_string(), &error),
                }
            }
        }
        Endpoint::Unix { path } => match dial_unix(path, patience) {
            Ok(stream) => return Ok(Box::new(stream)),
            Err(error) => faults.add(path, &error),
        },
    }
    Err(faults.reason())
}

fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, DisconnectReason> {
    if let Some(known) = known_addresses(host, port) {
        return Ok(known);
    }
    looked_up(host, (host, port).to_socket_addrs().map(Iterator::collect))
}

fn dial(target: SocketAddr, share: Duration, patience: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&target, share)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(patience.max(LEAST_WAIT)))?;
    Ok(stream)
}

/// Never in the clear where TLS is wanted.
fn secure(
    tls: Option<&Tls>,
    (host, port): (&str, u16),
    mut stream: TcpStream,
    share: Duration,
) -> io::Result<Secured> {
    let tls = tls.ok_or_else(|| io::Error::other("nothing speaks it here"))?;
    stream.set_read_timeout(Some(share))?;
    let mut session = tls.session(host, port)?;
    if let Err(error) = session.handshake(&mut stream) {
        // What a blocking socket says when its time is up.
        return Err(if is_in_vain(&error) { ErrorKind::TimedOut.into() } else { error });
    }
    Ok(Secured { session, stream })
}

fn dial_unix(path: &str, patience: Duration) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path)?;
    stream.set_write_timeout(Some(patience.max(LEAST_WAIT)))?;
    Ok(stream)
}

/// A blocking socket of either kind.
trait Socket: Read + Write {
    /// How long the next read waits.
    fn set_wait(&self, wait: Duration) -> io::Result<()>;
}

impl Socket for TcpStream {
    fn set_wait(&self, wait: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(wait))
    }
}

/// TLS over a blocking socket.
struct Secured {
    session: Session,
    stream: TcpStream,
}

impl Socket for Secured {
    fn set_wait(&self, wait: Duration) -> io::Result<()> {
        self.stream.set_read_timeout(Some(wait))
    }
}

impl Read for Secured {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.session.read(&mut self.stream, buffer)
    }
}

impl Write for Secured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.session.write(&mut self.stream, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.session.flush(&mut self.stream) { Ok(()) } else { Err(ErrorKind::WouldBlock.into()) }
    }
}

impl Drop for Secured {
    fn drop(&mut self) {
        self.session.close(&mut self.stream);
    }
}

impl Socket for UnixStream {
    fn set_wait(&self, wait: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(wait))
    }
}
