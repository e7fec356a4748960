//! The driver: the task that waits for sockets and timers, and gives the engine its turns.

use super::connections::{Connections, on_signal};
use super::signal::Bell;
use super::{BoxFuture, Runtime};
use crate::handoff::{Shared, Turn};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll};

/// What is read at once: far more than all replies that are outstanding, usually.
const BUFFER: usize = 16 * 1024;
/// Turns that are taken before other tasks have theirs.
const MOST_TURNS: usize = 8;
/// Turns that a client without a driver is given to end: each fires at least one of its timers.
const MOST_LAST_TURNS: usize = 1_000;

/// The driver of one client.
pub(super) struct Drive<R> {
    shared: Shared<Connections>,
    bell: Arc<Bell>,
    buffer: Vec<u8>,
    timer: Option<(crate::Instant, BoxFuture<()>)>,
    has_stood_back: bool,
    runtime: PhantomData<fn() -> R>,
}

impl<R: Runtime> Drive<R> {
    pub(super) fn new(shared: Shared<Connections>, bell: Arc<Bell>) -> Self {
        Self {
            shared,
            bell,
            buffer: vec![0; BUFFER],
            timer: None,
            has_stood_back: false,
            runtime: PhantomData,
        }
    }

    /// Whether others are let go first, once: where somebody left bytes to be written, there are often more who are ready to
    /// do the same, and one write takes all of it.
    fn stands_back(&mut self) -> bool {
        let is_asked = || self.shared.with_driver(|driver| driver.is_dirty()) == Some(true);
        self.has_stood_back = !self.has_stood_back && is_asked();
        self.has_stood_back
    }

    /// Whether it is time for another turn.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let alarm = self.bell.alarm();
        if alarm == crate::Instant::MAX {
            self.timer = None;
            return Poll::Pending;
        }
        // An earlier plan is kept: waking up once for nothing costs less than a timer for each operation.
        if self.timer.as_ref().is_none_or(|(at, _)| *at > alarm) {
            let span = alarm.saturating_duration_since(self.shared.now());
            if span.is_zero() {
                return Poll::Ready(());
            }
            self.timer = Some((alarm, R::sleep(span)));
        }
        let Some((_, timer)) = &mut self.timer else { return Poll::Pending };
        core::task::ready!(timer.as_mut().poll(cx));
        self.timer = None;
        Poll::Ready(())
    }
}

impl<R: Runtime> Future for Drive<R> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let drive = &mut *self;
        drive.bell.listen(cx.waker());
        if drive.stands_back() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        for _ in 0..MOST_TURNS {
            let buffer = &mut drive.buffer;
            let is_closed = drive.shared.turn(|turn| {
                take_turn(turn, buffer);
                turn.driver.is_closed()
            });
            if is_closed != Some(false) {
                return Poll::Ready(());
            }
            if drive.poll_timer(cx).is_pending() {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Tells the engine what has happened, and fires what is due.
fn take_turn(turn: &mut Turn<'_, Connections>, buffer: &mut [u8]) {
    turn.driver.wake_up();
    // Before anything that was read: what is due by now is not to wait for a flood of it.
    turn.client.handle_timeout(turn.now());
    // While nodes answer to that, what they have said is worked on.
    turn.driver.write_all();
    for node in 0..turn.driver.nodes() {
        on_signal(turn, node, buffer);
    }
}

impl<R> Drop for Drive<R> {
    /// Its runtime ends, or it panicked: nobody reads from the sockets or fires a timer any more. The releases are written,
    /// and everyone who waits gets his answer; of what the nodes would have said nothing is known.
    fn drop(&mut self) {
        let closed = self.shared.turn(|turn| {
            turn.driver.orphan();
            let now = turn.now();
            turn.client.close(now);
            turn.driver.is_closed()
        });
        let mut is_closed = closed != Some(false);
        for _ in 0..MOST_LAST_TURNS {
            if is_closed {
                return;
            }
            let closed = self.shared.turn(|turn| {
                if let Some(deadline) = turn.client.poll_timeout() {
                    turn.client.handle_timeout(deadline.at);
                }
                turn.driver.is_closed()
            });
            is_closed = closed != Some(false);
        }
    }
}

impl<R> fmt::Debug for Drive<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drive").field("shared", &self.shared).finish_non_exhaustive()
    }
}
