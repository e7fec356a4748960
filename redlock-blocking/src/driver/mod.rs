//! Who reads from the sockets.
//!
//! `sockets` is what the engine writes to, on any thread; `stream` one connection; `resolve` looks names up. Here the
//! sockets are waited for, by one thread at a time:
//!
//! - the client's own thread, the *keeper*, as long as nobody else does;
//! - or a thread that waits for an answer, while the keeper stands aside. It does so for a moment after somebody got an
//!   answer: who asks again within that moment reads the next one himself, without a switch between threads. Others who
//!   wait meanwhile sleep, and are woken by whoever reads their answers; when the reader leaves while others still wait, he
//!   calls the keeper.
//!
//! Whoever reads gives the engine its turn, with its timers.

pub(crate) mod resolve;
pub(crate) mod secure;
mod sockets;
mod stream;

use crate::wait::Unpark;
use alloc::sync::Arc;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use mio::{Events, Poll, Token, Waker};
use redlock_core::handoff::{Shared, Turn};
use redlock_core::{Config, Instant};
use std::io::{self, ErrorKind};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::{self, Thread};

pub(crate) use resolve::LookUp;
pub(crate) use secure::Tls;
use sockets::Readiness;
pub(crate) use sockets::Sockets;

/// The name of the doorbell's readiness; the others' are indices of nodes.
const DOORBELL: Token = Token(usize::MAX);
/// Readiness that is taken at once: a few for each node and the doorbell.
const EVENTS: usize = 256;
/// What is read at once: far more than all replies that are outstanding, usually.
const BUFFER: usize = 64 * 1024;
/// For how long the keeper stands aside: short for what nobody waits for (the answers of late nodes, a renewal), and longer
/// than the work between one question and the next of a thread that is in a hurry.
const ASIDE: Duration = Duration::from_millis(1);

/// What is waited on, and by whom.
pub(crate) struct Reactor {
    reading: Mutex<Reading>,
    /// Ends the reader's wait.
    doorbell: Waker,
    /// Until when the reader waits, in nanoseconds; set under the hub's mutex.
    until: AtomicU64,
    /// Operations without an answer, after the last turn.
    unanswered: AtomicUsize,
    /// Threads that wait for answers, now, and ever.
    visitors: AtomicUsize,
    visits: AtomicUsize,
    keeper: OnceLock<Thread>,
    /// The keeper is wanted back.
    is_called: AtomicBool,
}

impl fmt::Debug for Reactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reactor").finish_non_exhaustive()
    }
}

/// What only the reader needs.
struct Reading {
    poll: Poll,
    events: Events,
    buffer: Vec<u8>,
}

/// How a reader's turn ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// There is more to come.
    No,
    /// The client is closed.
    Closed,
    /// Nothing can be waited for any more, or this is a forked child.
    Broken,
}

/// A reactor, and the sockets that are registered with it.
pub(crate) fn new(config: &Config, tls: Option<Tls>, look_up: LookUp) -> io::Result<(Arc<Reactor>, Sockets)> {
    let poll = Poll::new()?;
    let registry = poll.registry().try_clone()?;
    let doorbell = Waker::new(&registry, DOORBELL)?;
    let reading = Reading { poll, events: Events::with_capacity(EVENTS), buffer: vec![0; BUFFER] };
    let reactor = Arc::new(Reactor {
        reading: Mutex::new(reading),
        doorbell,
        until: AtomicU64::new(0),
        unanswered: AtomicUsize::new(0),
        visitors: AtomicUsize::new(0),
        visits: AtomicUsize::new(0),
        keeper: OnceLock::new(),
        is_called: AtomicBool::new(false),
    });
    let sockets = Sockets::new(config, tls, look_up, registry, Arc::clone(&reactor));
    Ok((reactor, sockets))
}

/// # The keeper
impl Reactor {
    /// Starts the keeper.
    pub(crate) fn start(self: Arc<Self>, shared: Shared<Sockets>) -> io::Result<()> {
        thread::Builder::new().name("redlock".into()).spawn(move || {
            let _first = self.keeper.set(thread::current());
            let winding_down = WindDown(&shared);
            self.keep(&shared);
            drop(winding_down);
        })?;
        Ok(())
    }

    fn keep(&self, shared: &Shared<Sockets>) {
        let mut seen = self.visits.load(Ordering::SeqCst);
        loop {
            let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
            loop {
                if self.turn(&mut reading, shared, || {}) != Ended::No {
                    return;
                }
                if self.is_idle() && self.visits.load(Ordering::SeqCst) != seen {
                    break;
                }
            }
            drop(reading);
            // Whoever began to wait before the lock was free may have found it taken: he is not left alone.
            while self.is_idle() || self.try_reading().is_none() {
                let visits = self.visits.load(Ordering::SeqCst);
                if visits == seen || self.is_called.swap(false, Ordering::SeqCst) {
                    break;
                }
                seen = visits;
                thread::park_timeout(ASIDE);
            }
        }
    }

    /// Whether nobody waits for an answer.
    fn is_idle(&self) -> bool {
        self.unanswered.load(Ordering::SeqCst) == 0
    }
}

/// # Whoever waits for an answer
impl Reactor {
    /// Ends the reader's wait.
    pub(crate) fn ring(&self) {
        // Fails only where the system is out of memory; the reader looks again within a second then.
        let _woken = self.doorbell.wake();
    }

    fn try_reading(&self) -> Option<MutexGuard<'_, Reading>> {
        match self.reading.try_lock() {
            Ok(reading) => Some(reading),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// This thread begins to wait for an answer.
    pub(crate) fn visit(&self) -> Visit<'_> {
        self.visitors.fetch_add(1, Ordering::SeqCst);
        self.visits.fetch_add(1, Ordering::SeqCst);
        Visit { reactor: self }
    }
}

/// A thread that waits for an answer.
pub(crate) struct Visit<'a> {
    reactor: &'a Reactor,
}

impl Visit<'_> {
    /// Reads once; answers false, with nothing done, where somebody else reads.
    pub(crate) fn read(&self, shared: &Shared<Sockets>, unpark: &Unpark) -> bool {
        let Some(mut reading) = self.reactor.try_reading() else { return false };
        // Woken meanwhile, it has its answer.
        let ended = if unpark.start_reading() {
            self.reactor.turn(&mut reading, shared, || unpark.stop_reading())
        } else {
            Ended::No
        };
        unpark.stop_reading();
        ended != Ended::Broken
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let reactor = self.reactor;
        let others = reactor.visitors.fetch_sub(1, Ordering::SeqCst) > 1;
        if others && reactor.try_reading().is_some() {
            reactor.is_called.store(true, Ordering::SeqCst);
            if let Some(keeper) = reactor.keeper.get() {
                keeper.unpark();
            }
        }
    }
}

/// # A reader's turn
impl Reactor {
    /// Waits once, and gives the engine its turn; `woken_up` is called between the two.
    fn turn(&self, reading: &mut Reading, shared: &Shared<Sockets>, woken_up: impl FnOnce()) -> Ended {
        let until = Instant::from_nanos(self.until.load(Ordering::SeqCst));
        let span = (until != Instant::MAX).then(|| until.saturating_duration_since(shared.now()));
        let Reading { poll, events, buffer } = reading;
        let polled = poll.poll(events, span);
        woken_up();
        match polled {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ended::No,
            Err(_) => return Ended::Broken,
        }
        let is_closed = shared.turn(|turn| {
            take_turn(turn, events, buffer);
            turn.driver.is_closed()
        });
        match is_closed {
            Some(false) => Ended::No,
            Some(true) => Ended::Closed,
            None => Ended::Broken,
        }
    }
}

/// Tells the engine what has happened, and fires what is due.
fn take_turn(turn: &mut Turn<'_, Sockets>, events: &Events, buffer: &mut [u8]) {
    turn.driver.wake_up();
    // Before anything that was read: what is due by now is not to wait for a flood of it.
    turn.client.handle_timeout(turn.now());
    for event in events {
        if event.token() != DOORBELL {
            sockets::on_ready(turn, event.token().0, Readiness::of(event), buffer);
        }
    }
    sockets::on_wake(turn, buffer);
}

/// When the keeper ends without the client being closed, by a fault of the system or of ours, nobody may wait for ever: what
/// is pending is answered as the engine's timers say.
struct WindDown<'a>(&'a Shared<Sockets>);

impl Drop for WindDown<'_> {
    fn drop(&mut self) {
        while let Some(false) = self.0.turn(|turn| {
            let now = turn.now();
            turn.client.close(now);
            turn.driver.is_closed()
        }) {
            thread::sleep(Duration::from_millis(10));
        }
    }
}
