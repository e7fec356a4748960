//! Sleeping until a future is ready.

use crate::driver::{Reactor, Sockets};
use alloc::sync::Arc;
use alloc::task::Wake;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use redlock_core::Instant;
use redlock_core::handoff::Shared;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

/// A thread's waits sleep no longer than this without looking at the clock: most timers stop while the machine is suspended.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Wakes one thread, whether it is parked or waits for sockets.
pub(crate) struct Unpark {
    thread: Thread,
    is_woken: AtomicBool,
    /// The thread waits for sockets: this is what ends that.
    is_reading: AtomicBool,
    reactor: Mutex<Option<Arc<Reactor>>>,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        if self.is_reading.load(Ordering::SeqCst) {
            if let Some(reactor) = &*self.reactor() {
                reactor.ring();
            }
        } else {
            self.thread.unpark();
        }
    }
}

impl Unpark {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            thread: thread::current(),
            is_woken: AtomicBool::new(false),
            is_reading: AtomicBool::new(false),
            reactor: Mutex::new(None),
        })
    }

    /// That of this thread.
    fn current() -> Arc<Self> {
        thread_local! {
            /// One for all the waits of a thread: a wake-up that was meant for an earlier one costs a poll.
            static UNPARK: Arc<Unpark> = Unpark::new();
        }
        // In the end of a thread its locals may be gone.
        UNPARK.try_with(Arc::clone).unwrap_or_else(|_| Self::new())
    }

    fn reactor(&self) -> MutexGuard<'_, Option<Arc<Reactor>>> {
        self.reactor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it was woken since this was asked last.
    fn was_woken(&self) -> bool {
        self.is_woken.swap(false, Ordering::SeqCst)
    }

    /// From now until [`stop_reading`](Self::stop_reading) this thread waits for sockets. Answers false where it must not,
    /// since it was woken.
    pub(crate) fn start_reading(&self) -> bool {
        self.is_reading.store(true, Ordering::SeqCst);
        !self.is_woken.load(Ordering::SeqCst)
    }

    pub(crate) fn stop_reading(&self) {
        self.is_reading.store(false, Ordering::SeqCst);
    }
}

/// Sleeps until the future is ready.
pub(crate) fn wait<F: Future + Unpin>(future: F) -> F::Output {
    let (mut future, unpark) = (future, Unpark::current());
    let waker = Waker::from(Arc::clone(&unpark));
    loop {
        if let Poll::Ready(output) = poll(&mut future, &waker) {
            return output;
        }
        while !unpark.was_woken() {
            thread::park();
        }
    }
}

/// Sleeps until the future is ready, `None` if that is not before `until`.
pub(crate) fn wait_until<F: Future + Unpin>(
    future: F,
    until: Instant,
    now: impl Fn() -> Instant,
) -> Option<F::Output> {
    let (mut future, unpark) = (future, Unpark::current());
    let waker = Waker::from(Arc::clone(&unpark));
    loop {
        if let Poll::Ready(output) = poll(&mut future, &waker) {
            return Some(output);
        }
        while !unpark.was_woken() {
            let left = until.saturating_duration_since(now());
            if left.is_zero() {
                return None;
            }
            thread::park_timeout(left.min(LONGEST_SLEEP));
        }
    }
}

/// Sleeps until the operation is answered. Where nobody else reads from the sockets, this thread does: an answer that is
/// read by whoever waits for it needs no second thread.
pub(crate) fn wait_for_answer<F: Future + Unpin>(shared: &Shared<Sockets>, future: F) -> F::Output {
    let (mut future, unpark) = (future, Unpark::current());
    let waker = Waker::from(Arc::clone(&unpark));
    if let Poll::Ready(output) = poll(&mut future, &waker) {
        return output;
    }
    let Some(reactor) = shared.with_driver(|sockets| sockets.reactor()) else { return wait(future) };
    let visit = reactor.visit();
    unpark.reactor().replace(Arc::clone(&reactor));
    let output = loop {
        while !unpark.was_woken() {
            if !visit.read(shared, &unpark) {
                thread::park();
            }
        }
        if let Poll::Ready(output) = poll(&mut future, &waker) {
            break output;
        }
    };
    drop(visit);
    // A thread keeps no client's sockets open.
    unpark.reactor().take();
    output
}

fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}
