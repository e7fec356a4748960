//! The asynchronous driver on its way to sleep: whoever makes the engine want something meanwhile wakes it.

use super::*;
use crate::error::AcquireErrorKind;
use crate::handoff::task::{BoxFuture, Redlock, Runtime, Socket, Transport};
use crate::sim::{Dialect, Server, SessionId};
use alloc::vec::Vec;
use core::cell::Cell;
use core::future::{pending, ready};
use core::net::SocketAddr;
use std::io;

/// The time of one model.
#[derive(Default)]
struct Time {
    clock: Hand,
    timers: Mutex<Vec<(u64, Waker)>>,
}

loom::lazy_static! {
    static ref TIME: Time = Time::default();
}

loom::thread_local! {
    /// What this thread read last: a span counts from then, however late the timer is made. No time passes in between
    /// that a real clock would not pass too.
    static READ: Cell<u64> = Cell::new(0);
}

impl Time {
    fn now(&self) -> u64 {
        let now = self.clock.0.load(Ordering::Acquire);
        READ.with(|read| read.set(now));
        now
    }

    fn pass(&self, to: u64) {
        let mut timers = self.timers.lock().unwrap();
        self.clock.set(to);
        let due: Vec<_> = timers.extract_if(.., |(at, _)| *at <= to).collect();
        drop(timers);
        due.into_iter().for_each(|(_, waker)| waker.wake());
    }
}

struct Sleep {
    until: u64,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut timers = TIME.timers.lock().unwrap();
        if TIME.clock.0.load(Ordering::Acquire) >= self.until {
            return Poll::Ready(());
        }
        timers.push((self.until, cx.waker().clone()));
        Poll::Pending
    }
}

#[derive(Clone, Copy, Debug)]
struct Loom;

impl Clock for Loom {
    fn now(&self) -> Instant {
        Instant::from_millis(TIME.now())
    }
}

impl Runtime for Loom {
    fn spawn(_: BoxFuture<()>) -> Result<(), String> {
        Err("the models place it themselves".into())
    }

    fn sleep(span: Duration) -> BoxFuture<()> {
        let millis = u64::try_from(span.as_nanos().div_ceil(1_000_000)).unwrap();
        Box::pin(Sleep { until: READ.with(Cell::get) + millis })
    }

    fn clock() -> Arc<dyn Clock> {
        Arc::new(Self)
    }

    fn entropy() -> Box<dyn Entropy> {
        Box::new(Source::default())
    }

    fn transport() -> Arc<dyn Transport> {
        Arc::new(Wire::default())
    }
}

/// One node behind one connection. What is written arrives when [delivered](Self::deliver), by the thread that does that.
#[derive(Clone)]
struct Wire(Arc<Mutex<Ends>>);

struct Ends {
    server: Server,
    session: Option<SessionId>,
    written: Vec<u8>,
    said: Vec<u8>,
    reader: Option<Waker>,
    /// What is written arrives at once.
    is_prompt: bool,
}

impl Default for Wire {
    fn default() -> Self {
        let server = Server::new(Dialect::Redis7, 1);
        let (session, reader, is_prompt) = (None, None, false);
        let ends = Ends { server, session, written: Vec::new(), said: Vec::new(), reader, is_prompt };
        Self(Arc::new(Mutex::new(ends)))
    }
}

impl Wire {
    /// What was written is answered, and the reader woken, as a reactor does.
    fn deliver(&self) {
        let mut ends = self.0.lock().unwrap();
        let now = Instant::from_millis(TIME.now());
        let written = core::mem::take(&mut ends.written);
        let Some(session) = ends.session else { return };
        ends.server.receive(session, &written, now);
        let said = ends.server.output(session);
        ends.said.extend(said);
        let reader = if ends.said.is_empty() { None } else { ends.reader.take() };
        drop(ends);
        reader.into_iter().for_each(Waker::wake);
    }

    fn keys(&self) -> usize {
        self.0.lock().unwrap().server.keys(Instant::ZERO).len()
    }
}

impl Transport for Wire {
    fn resolve(&self, _: String, _: u16) -> BoxFuture<io::Result<Vec<SocketAddr>>> {
        Box::pin(pending())
    }

    fn connect(&self, _: SocketAddr) -> BoxFuture<io::Result<Box<dyn Socket>>> {
        let mut ends = self.0.lock().unwrap();
        ends.session = Some(ends.server.open(Instant::ZERO));
        Box::pin(ready(Ok(Box::new(self.clone()) as Box<dyn Socket>)))
    }

    fn connect_unix(&self, _: String) -> BoxFuture<io::Result<Box<dyn Socket>>> {
        Box::pin(pending())
    }
}

impl Socket for Wire {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut ends = self.0.lock().unwrap();
        if ends.said.is_empty() {
            ends.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let length = ends.said.len().min(buffer.len());
        buffer[..length].copy_from_slice(&ends.said[..length]);
        ends.said.drain(..length);
        Poll::Ready(Ok(length))
    }

    fn poll_write(&mut self, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut ends = self.0.lock().unwrap();
        ends.written.extend_from_slice(bytes);
        let is_prompt = ends.is_prompt;
        drop(ends);
        if is_prompt {
            self.deliver();
        }
        Poll::Ready(Ok(bytes.len()))
    }
}

struct Rig {
    redlock: Redlock<Loom>,
    driver: BoxFuture<()>,
    wire: Wire,
}

impl Rig {
    /// A client that is connected to one node, and its driver, asleep with nobody to wake it until it is polled again.
    fn new() -> Self {
        let (wire, place) = (Wire::default(), Arc::new(std::sync::Mutex::new(None)));
        let placed = Arc::clone(&place);
        let redlock = Redlock::<Loom>::builder()
            .nodes(["10.0.0.1"])
            .transport(wire.clone())
            .spawn_with(move |driver| *placed.lock().unwrap() = Some(driver))
            .connect_lazy()
            .unwrap();
        let mut driver = place.lock().unwrap().take().unwrap();
        while redlock.nodes()[0].state != crate::NodeState::Ready {
            assert!(poll(&mut driver, Waker::noop()).is_pending());
            wire.deliver();
        }
        assert!(poll(&mut driver, Waker::noop()).is_pending());
        Self { redlock, driver, wire }
    }
}

#[test]
fn an_answer_against_the_driver_going_to_sleep() {
    model("an answer against the driver going to sleep", || {
        let Rig { redlock, driver, wire } = Rig::new();
        let driver = spawn(move || wait(driver));
        let mut acquiring = redlock.acquire("door").into_future();
        assert!(poll(&mut acquiring, Waker::noop()).is_pending());
        wire.deliver();
        let guard = wait(acquiring).unwrap();
        assert!(guard.is_held());
        drop(guard);
        wire.deliver();
        assert_eq!(wire.keys(), 0);
        drop(redlock);
        driver.join().unwrap();
    });
}

#[test]
fn what_is_gathered_against_the_driver_going_to_sleep() {
    model("what is gathered against the driver going to sleep", || {
        let Rig { redlock, driver, wire } = Rig::new();
        wire.0.lock().unwrap().is_prompt = true;
        let driver = spawn(move || wait(driver));
        let mut first = redlock.acquire("door").into_future();
        let second = redlock.acquire("gate").into_future();
        if poll(&mut first, Waker::noop()).is_pending() {
            // Here there are two at once: the second leaves its bytes to the driver, and sleeps.
            assert!(wait(second).unwrap().is_held());
            assert!(wait(first).unwrap().is_held());
        } else {
            drop((first, second));
        }
        drop(redlock);
        driver.join().unwrap();
        assert_eq!(wire.keys(), 0);
    });
}

#[test]
fn a_timer_against_the_driver_going_to_sleep() {
    model("a timer against the driver going to sleep", || {
        let Rig { redlock, driver, wire } = Rig::new();
        let driver = spawn(move || wait(driver));
        // The node is silent: the driver has to wake up when the round is over, long before it would have anyway.
        let mut acquiring = redlock.try_acquire("door").ttl(ms(1_000)).into_future();
        assert!(poll(&mut acquiring, Waker::noop()).is_pending());
        TIME.pass(100);
        let error = wait(acquiring).map(drop).unwrap_err();
        assert!(matches!(error.kind, AcquireErrorKind::NoQuorum { .. }), "{error:?}");
        wire.deliver();
        drop(redlock);
        // Whatever closing waits for is over by then.
        TIME.pass(5_000);
        driver.join().unwrap();
    });
}

#[test]
fn the_last_user_against_the_driver_going_to_sleep() {
    model("the last user against the driver going to sleep", || {
        let Rig { redlock, driver, .. } = Rig::new();
        let driver = spawn(move || wait(driver));
        drop(redlock);
        driver.join().unwrap();
    });
}

#[test]
fn an_acquire_against_the_end_of_the_driver() {
    model("an acquire against the end of the driver", || {
        let Rig { redlock, driver, .. } = Rig::new();
        let driver = spawn(move || drop(driver));
        let error = wait(redlock.acquire("door").into_future()).map(drop).unwrap_err();
        assert_eq!(error.kind, AcquireErrorKind::Closed);
        driver.join().unwrap();
        assert!(redlock.is_closed());
    });
}
