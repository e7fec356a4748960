//! An acquire, before it is started.

use crate::guard::Guard;
use crate::redlock::Redlock;
use crate::wait::wait_for_answer;
use redlock_core::AcquireError;
use redlock_core::handoff::{AcquireOptions, HoldError, settle};

/// An acquire that is being put together; [`lock`](Self::lock) or [`hold`](Self::hold) starts it.
#[derive(Clone, Debug)]
#[must_use = "nothing is acquired before `lock` or `hold`"]
pub struct Acquire<'a> {
    redlock: &'a Redlock,
    options: AcquireOptions,
}

impl<'a> Acquire<'a> {
    pub(crate) const fn new(redlock: &'a Redlock, options: AcquireOptions) -> Self {
        Self { redlock, options }
    }

    redlock_core::__acquire_methods!();

    /// Acquires the lock; blocks until it is held or cannot be had, by the wait + one node timeout at the latest (R10).
    ///
    /// # Errors
    ///
    /// It is held by somebody else, no quorum of nodes can be reached, the request makes no sense …; see
    /// [`AcquireError`]. Whatever was left on nodes is being cleaned up.
    pub fn lock(self) -> Result<Guard, AcquireError> {
        let hub = self.redlock.hub();
        wait_for_answer(hub.shared(), hub.acquire(&self.options)).map(Guard::new)
    }

    /// Acquires the lock, runs `body` under it, and releases it. A panic in `body` releases it too, and goes on.
    ///
    /// A lock that is lost does not stop `body`: it can watch its guard ([`Guard::is_held`], [`Guard::wait_lost`]), and the
    /// result says so.
    ///
    /// # Errors
    ///
    /// The lock was not acquired, was lost while `body` ran, or is not known to be released; the latter two hand back what
    /// `body` returned.
    pub fn hold<R>(self, body: impl FnOnce(&Guard) -> R) -> Result<R, HoldError<R>> {
        let guard = self.lock()?;
        let output = body(&guard);
        let lost = guard.lost_reason();
        settle(output, lost, guard.release())
    }
}
