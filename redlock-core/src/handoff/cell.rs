//! What the handles of one lock share, and read without asking the engine.

use super::after::{After, Callback};
use super::sync::{Arc, AtomicU64, AtomicUsize, Mutex, Ordering, lock};
use crate::event::LostReason;
use crate::ids::{Fence, LockId};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use core::mem;
use core::task::Waker;
use core::time::Duration;

/// The bit of the state that says the lock is not held any more; the others are the last deadline in nanoseconds.
const ENDED: u64 = 1 << 63;

/// How a lock ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Released,
    Lost(LostReason),
}

/// What an `on_expiring` callback is told: the lock was not renewed in time, and its deadline is near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expiring {
    /// The deadline in force, on the client's clock.
    pub deadline: Instant,
    /// What is left of it, counted when the callback is called.
    pub remaining: Duration,
}

type LostCallback = Box<dyn FnOnce(LostReason) + Send>;
type ExpiringCallback = Arc<Mutex<Box<dyn FnMut(Expiring) + Send>>>;
/// Reads the clock.
pub(super) type Now = Arc<dyn Fn() -> Instant + Send + Sync>;

/// The state that the handles of one lock share.
///
/// Held is what the local clock says: not ended, and now before the deadline. Whoever finds the deadline passed ends the
/// lock then and there, for everyone, so that a later extension, whose answer was judged by an older reading of the clock,
/// cannot make it held again.
pub(super) struct LockCell {
    lock: LockId,
    resources: Vec<Bytes>,
    fence: Option<Fence>,
    state: AtomicU64,
    /// Live handles.
    shares: AtomicUsize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    ended: Option<Ended>,
    /// The deadline that was last reported as near.
    expiring: Option<Instant>,
    waiting: Vec<(u64, Waker)>,
    next_waiting: u64,
    on_lost: Vec<LostCallback>,
    on_expiring: Vec<ExpiringCallback>,
}

impl LockCell {
    /// A lock that is held until `deadline`, with one handle.
    pub(super) fn new(lock: LockId, resources: Vec<Bytes>, deadline: Instant, fence: Option<Fence>) -> Self {
        let state = AtomicU64::new(deadline.as_nanos().min(ENDED - 1));
        Self { lock, resources, fence, state, shares: AtomicUsize::new(1), inner: Mutex::default() }
    }

    pub(super) const fn lock(&self) -> LockId {
        self.lock
    }

    pub(super) fn resources(&self) -> &[Bytes] {
        &self.resources
    }

    pub(super) const fn fence(&self) -> Option<Fence> {
        self.fence
    }

    // ---- the deadline ----

    /// Whether it is held at `now`, which must have been read just before. Once this is false it stays so.
    pub(super) fn is_held(&self, now: Instant) -> bool {
        let mut state = self.state.load(Ordering::Acquire);
        loop {
            if state & ENDED != 0 {
                return false;
            }
            if now.as_nanos() < state {
                return true;
            }
            match self.state.compare_exchange(state, state | ENDED, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return false,
                // The deadline moved meanwhile.
                Err(newer) => state = newer,
            }
        }
    }

    /// The deadline in force, or the last one of a lock that has ended.
    pub(super) fn deadline(&self) -> Instant {
        Instant::from_nanos(self.state.load(Ordering::Acquire) & !ENDED)
    }

    /// What is left at `now`; nothing once it has ended.
    pub(super) fn remaining(&self, now: Instant) -> Duration {
        if self.is_held(now) { self.deadline().saturating_duration_since(now) } else { Duration::ZERO }
    }

    /// The engine has another deadline in force. Answers false, and changes nothing, where the lock has ended.
    pub(super) fn move_deadline(&self, deadline: Instant) -> bool {
        let nanos = deadline.as_nanos().min(ENDED - 1);
        let moved = |state: u64| (state & ENDED == 0).then_some(nanos);
        self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, moved).is_ok()
    }

    // ---- the end ----

    /// How it ended, once that was told.
    pub(super) fn ended(&self) -> Option<Ended> {
        lock(&self.inner).ended
    }

    /// Why it is not held at `now` any more, if it was not released.
    pub(super) fn lost_reason(&self, now: Instant) -> Option<LostReason> {
        // In this order: who ends it says so and why in one step.
        if self.is_held(now) {
            return None;
        }
        match self.ended() {
            Some(Ended::Lost(reason)) => Some(reason),
            Some(Ended::Released) => None,
            None => Some(LostReason::Expired),
        }
    }

    /// It has ended: said once, to all who wait for it.
    pub(super) fn end(&self, ended: Ended, after: &mut After) {
        let mut inner = lock(&self.inner);
        self.state.fetch_or(ENDED, Ordering::AcqRel);
        if inner.ended.is_some() {
            return;
        }
        inner.ended = Some(ended);
        for (_, waker) in inner.waiting.drain(..) {
            after.wake(Some(waker));
        }
        let on_lost = mem::take(&mut inner.on_lost);
        after.discard_some(mem::take(&mut inner.on_expiring));
        drop(inner);
        match ended {
            Ended::Lost(reason) => {
                for callback in on_lost {
                    after.call(Callback::new(move || callback(reason)));
                }
            }
            Ended::Released => after.discard_some(on_lost),
        }
    }

    /// Its deadline is near.
    pub(super) fn expiring(&self, deadline: Instant, now: &Now, after: &mut After) {
        let mut inner = lock(&self.inner);
        inner.expiring = Some(deadline);
        for callback in &inner.on_expiring {
            after.call(expiring_call(callback, deadline, now));
        }
    }

    // ---- who wants to hear of it ----

    /// Registers a waker for the end, in the place of `old`; `None` if it has ended, and nothing was registered. What was
    /// replaced comes back to be dropped.
    pub(super) fn register(&self, old: Option<u64>, waker: Waker) -> (Option<u64>, Option<Waker>) {
        let mut inner = lock(&self.inner);
        if inner.ended.is_some() {
            return (None, Some(waker));
        }
        if let Some(waiting) = old.and_then(|old| inner.waiting.iter_mut().find(|(id, _)| *id == old)) {
            return (Some(waiting.0), Some(mem::replace(&mut waiting.1, waker)));
        }
        let id = inner.next_waiting;
        inner.next_waiting = inner.next_waiting.wrapping_add(1);
        inner.waiting.push((id, waker));
        (Some(id), None)
    }

    /// Takes a waker back.
    pub(super) fn unregister(&self, id: u64) -> Option<Waker> {
        let mut inner = lock(&self.inner);
        let index = inner.waiting.iter().position(|(waiting, _)| *waiting == id)?;
        Some(inner.waiting.swap_remove(index).1)
    }

    /// Has `callback` called when it is lost; now, if it is.
    pub(super) fn on_lost(&self, callback: LostCallback, after: &mut After) {
        let mut inner = lock(&self.inner);
        match inner.ended {
            None => inner.on_lost.push(callback),
            Some(Ended::Lost(reason)) => {
                drop(inner);
                after.call(Callback::new(move || callback(reason)));
            }
            Some(Ended::Released) => {
                drop(inner);
                after.discard(callback);
            }
        }
    }

    /// Has `callback` called whenever the deadline is near; now, too, if it is.
    pub(super) fn on_expiring(
        &self,
        callback: Box<dyn FnMut(Expiring) + Send>,
        now: &Now,
        after: &mut After,
    ) {
        let callback: ExpiringCallback = Arc::new(Mutex::new(callback));
        let mut inner = lock(&self.inner);
        if inner.ended.is_some() {
            drop(inner);
            return after.discard(callback);
        }
        if let Some(deadline) = inner.expiring.filter(|deadline| *deadline == self.deadline()) {
            after.call(expiring_call(&callback, deadline, now));
        }
        inner.on_expiring.push(callback);
    }

    // ---- handles ----

    /// One handle more.
    pub(super) fn share(&self) {
        self.shares.fetch_add(1, Ordering::Relaxed);
    }

    /// One handle less; answers whether it was the last.
    pub(super) fn unshare(&self) -> bool {
        self.shares.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

impl After {
    fn discard_some<T: Send + 'static>(&mut self, values: Vec<T>) {
        if !values.is_empty() {
            self.discard(values);
        }
    }
}

fn expiring_call(callback: &ExpiringCallback, deadline: Instant, now: &Now) -> Callback {
    let (callback, now) = (Arc::clone(callback), Arc::clone(now));
    Callback::new(move || {
        let mut callback = lock(&callback);
        let remaining = deadline.saturating_duration_since(now());
        callback(Expiring { deadline, remaining });
    })
}

impl fmt::Debug for LockCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ended = self.state.load(Ordering::Acquire) & ENDED != 0;
        f.debug_struct("LockCell")
            .field("lock", &self.lock)
            .field("deadline", &self.deadline())
            .field("ended", &ended)
            .finish_non_exhaustive()
    }
}
