//! Stands between clients and a server, and does what networks do: delays, cuts at any byte, falls silent, and delivers what
//! a connection held after its client has lost it.

use alloc::sync::Arc;
use core::net::SocketAddr;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use redlock_proof::simulate::Dice;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// How often a silent one looks whether it may speak again.
const LOOK: Duration = Duration::from_millis(2);
/// How long a connection to the server may take.
const CONNECT: Duration = Duration::from_secs(2);

/// A proxy of one server.
#[derive(Debug)]
pub(crate) struct Proxy {
    addr: SocketAddr,
    shared: Arc<Shared>,
}

/// A way through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// The connection that carries this byte is cut there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) way: Way,
    /// After so many more bytes, those of all connections together.
    pub(crate) after: usize,
    /// What is behind the cut, on its way up, arrives so much later, when its client has long got another connection; or
    /// never.
    pub(crate) late: Option<Duration>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The longest that bytes are held up, in microseconds, each way.
    delay: AtomicU64,
    is_silent_up: AtomicBool,
    is_silent_down: AtomicBool,
    cut: Mutex<Option<Cut>>,
    is_over: AtomicBool,
}

impl Proxy {
    /// Starts one.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn start(server: SocketAddr, seed: u64) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let serving = Arc::clone(&shared);
        let serve = move || {
            let mut dice = Dice::seeded(seed);
            for client in listener.incoming() {
                if serving.is_over.load(Ordering::SeqCst) {
                    return;
                }
                if let Ok(client) = client {
                    serving.take(client, server, dice.seed());
                }
            }
        };
        thread::Builder::new().name("proxy".into()).spawn(serve)?;
        Ok(Self { addr, shared })
    }

    pub(crate) const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// All bytes are held up by up to so much.
    pub(crate) fn delay(&self, most: Duration) {
        self.shared.delay.store(u64::try_from(most.as_micros()).unwrap_or(0), Ordering::SeqCst);
    }

    /// Nothing passes this way, until it is mended: what comes is held.
    pub(crate) fn silence(&self, way: Way) {
        self.shared.silent(way).store(true, Ordering::SeqCst);
    }

    /// One connection is cut soon.
    pub(crate) fn cut(&self, cut: Cut) {
        *self.shared.cut.lock().unwrap_or_else(PoisonError::into_inner) = Some(cut);
    }

    /// It speaks again.
    pub(crate) fn speak(&self, way: Way) {
        self.shared.silent(way).store(false, Ordering::SeqCst);
    }

    /// Everything passes at once.
    pub(crate) fn mend(&self) {
        self.delay(Duration::ZERO);
        self.speak(Way::Up);
        self.speak(Way::Down);
        *self.shared.cut.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.mend();
        // Its thread is in `accept`.
        drop(TcpStream::connect(self.addr));
    }
}

impl Shared {
    fn silent(&self, way: Way) -> &AtomicBool {
        match way {
            Way::Up => &self.is_silent_up,
            Way::Down => &self.is_silent_down,
        }
    }

    fn take(self: &Arc<Self>, client: TcpStream, server: SocketAddr, seed: u64) {
        let shared = Arc::clone(self);
        // A connection that cannot be had is a broken one, as in any network.
        let _refused = thread::Builder::new().name("connection".into()).spawn(move || {
            let Ok(server) = TcpStream::connect_timeout(&server, CONNECT) else { return };
            let _slower = (client.set_nodelay(true), server.set_nodelay(true));
            let mut dice = Dice::seeded(seed);
            let (up, down) = (dice.seed(), dice.seed());
            let holds = AtomicBool::new(false);
            thread::scope(|scope| {
                let down = || shared.carry(Way::Down, &server, &client, &holds, down);
                let _refused = thread::Builder::new().name("down".into()).spawn_scoped(scope, down);
                shared.carry(Way::Up, &client, &server, &holds, up);
            });
        });
    }

    /// Carries one way's bytes until a side closes or the connection is cut; then both are closed. The way up `holds` the
    /// server's side open while it has something for it that its client sent before it was cut.
    fn carry(&self, way: Way, mut from: &TcpStream, mut to: &TcpStream, holds: &AtomicBool, seed: u64) {
        let mut dice = Dice::seeded(seed);
        let mut buffer = [0; 16 * 1024];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let Some(bytes) = buffer.get(..length) else { break };
            let delay = self.delay.load(Ordering::SeqCst);
            if delay > 0 {
                thread::sleep(Duration::from_micros(dice.below(delay)));
            }
            while self.silent(way).load(Ordering::SeqCst) {
                thread::sleep(LOOK);
            }
            let (passing, cut) = self.passing(way, length);
            let (now, behind) = bytes.split_at_checked(passing).unwrap_or((bytes, &[]));
            let is_broken = to.write_all(now).is_err();
            if way == Way::Down && holds.load(Ordering::SeqCst) {
                // Nobody hears what the server says; it goes on listening.
                continue;
            }
            match cut {
                Some(Some(late)) if way == Way::Up => {
                    holds.store(true, Ordering::SeqCst);
                    let _gone = from.shutdown(Shutdown::Both);
                    thread::sleep(late);
                    let _gone = to.write_all(behind);
                    holds.store(false, Ordering::SeqCst);
                    break;
                }
                Some(_) => break,
                None if is_broken => break,
                None => {}
            }
        }
        if way == Way::Up || !holds.load(Ordering::SeqCst) {
            let _gone = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
        }
    }

    /// How many of so many bytes pass, and what the cut behind them is like, if there is one.
    fn passing(&self, way: Way, length: usize) -> (usize, Option<Option<Duration>>) {
        let mut slot = self.cut.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *slot {
            Some(cut) if cut.way == way => {
                if cut.after >= length {
                    cut.after -= length;
                    return (length, None);
                }
                let (after, late) = (cut.after, cut.late);
                *slot = None;
                (after, Some(late))
            }
            Some(_) | None => (length, None),
        }
    }
}

#[cfg(test)]
mod tests;
