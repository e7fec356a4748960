//! Sleeping until a future is ready.

use alloc::sync::Arc;
use alloc::task::Wake;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use redlock_core::Instant;
use std::thread::{self, Thread};

/// A thread's waits sleep no longer than this without looking at the clock: most timers stop while the machine is suspended.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Wakes one thread.
struct Unpark {
    thread: Thread,
    is_woken: AtomicBool,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

thread_local! {
    /// One for all the waits of a thread: a wake-up that was meant for an earlier one costs a poll.
    static UNPARK: Arc<Unpark> = unpark();
}

fn unpark() -> Arc<Unpark> {
    Arc::new(Unpark { thread: thread::current(), is_woken: AtomicBool::new(false) })
}

/// Sleeps until the future is ready.
pub(crate) fn wait<F: Future + Unpin>(future: F) -> F::Output {
    let mut future = future;
    loop {
        if let Some(output) = wait_for(&mut future, || Some(Duration::MAX)) {
            return output;
        }
    }
}

/// Sleeps until the future is ready, `None` if that is not before `until`.
pub(crate) fn wait_until<F: Future + Unpin>(
    future: F,
    until: Instant,
    now: impl Fn() -> Instant,
) -> Option<F::Output> {
    let mut future = future;
    wait_for(&mut future, || {
        let left = until.saturating_duration_since(now());
        (!left.is_zero()).then(|| left.min(LONGEST_SLEEP))
    })
}

/// `sleep` says for how long to sleep, `None` to give up.
fn wait_for<F: Future + Unpin>(future: &mut F, sleep: impl Fn() -> Option<Duration>) -> Option<F::Output> {
    // In the end of a thread its locals may be gone.
    let unpark = UNPARK.try_with(Arc::clone).unwrap_or_else(|_| unpark());
    let waker = Waker::from(Arc::clone(&unpark));
    let mut cx = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = Pin::new(&mut *future).poll(&mut cx) {
            return Some(output);
        }
        while !unpark.is_woken.swap(false, Ordering::Acquire) {
            match sleep()? {
                Duration::MAX => thread::park(),
                span => thread::park_timeout(span),
            }
        }
    }
}
