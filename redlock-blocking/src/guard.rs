//! A held lock.

use crate::driver::Sockets;
use crate::wait::{wait_for_answer, wait_until};
use core::time::Duration;
use redlock_core::handoff::{Handle, ReleaseError, Released};
use redlock_core::{ExtendError, Instant, LostReason};

/// A held lock, until it is released, dropped or lost.
///
/// Whether it is held is answered from the local clock alone, without asking anyone: it is held while now is before its
/// [deadline](Self::valid_until) (R13). Once it is not held any more it stays so; acquire again.
///
/// Dropping it hands the release to the sockets, without waiting: a process that ends right after has released. To hear
/// what the nodes say to it, [`release`](Self::release); after that there is nothing left to be used:
///
/// ```compile_fail,E0382
/// fn use_after_release(guard: redlock_blocking::Guard) {
///     let released = guard.release();
///     assert!(guard.is_held());
/// }
/// ```
#[derive(Debug)]
#[must_use = "the lock is released when its guard is dropped; bind it to a name that lives as long as the work"]
pub struct Guard {
    handle: Handle<Sockets>,
}

impl Guard {
    pub(crate) const fn new(handle: Handle<Sockets>) -> Self {
        Self { handle }
    }

    redlock_core::__guard_methods!();

    /// Waits until the lock is lost, at most for `timeout` (`Duration::MAX` is for ever); `None` if it is still held then.
    #[must_use]
    pub fn wait_lost(&self, timeout: Duration) -> Option<LostReason> {
        let shared = self.handle.hub().shared();
        let until = shared.now().saturating_add(timeout);
        wait_until(self.handle.lost(), until, || shared.now())
    }

    /// Extends the lock, in place, to `ttl` from now. Answers with the deadline in force, within one node timeout.
    ///
    /// # Errors
    ///
    /// No quorum confirmed, or nothing was sent; see [`ExtendError`]. The lock may still be held, until the deadline in
    /// force.
    pub fn extend(&self, ttl: Duration) -> Result<Instant, ExtendError> {
        wait_for_answer(self.handle.hub().shared(), self.handle.extend(ttl))
    }

    /// Releases the lock, and says what was learnt, within one node timeout. A lock that is [shared](Self::share) stays
    /// held for the other handles.
    ///
    /// # Errors
    ///
    /// The client was closed, which has released it; or this is a forked child.
    pub fn release(self) -> Result<Released, ReleaseError> {
        let shared = self.handle.hub().shared().clone();
        wait_for_answer(&shared, self.handle.release())
    }
}
