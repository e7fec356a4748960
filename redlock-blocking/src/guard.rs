//! A held lock.

use crate::driver::Sockets;
use crate::wait::{wait, wait_until};
use alloc::borrow::Cow;
use core::time::Duration;
use redlock_core::handoff::{Expiring, Handle, ReleaseError, Released, Vote};
use redlock_core::{ExtendError, Instant, LockId, LostReason};

/// A held lock, until it is released, dropped or lost.
///
/// Whether it is held is answered from the local clock alone, without asking anyone: it is held while now is before its
/// [deadline](Self::valid_until) (R13). Once it is not held any more it stays so; acquire again.
///
/// Dropping it hands the release to the sockets, without waiting: a process that ends right after has released. To hear
/// what the nodes say to it, [`release`](Self::release).
#[derive(Debug)]
#[must_use = "the lock is released when its guard is dropped; bind it to a name that lives as long as the work"]
pub struct Guard {
    handle: Handle<Sockets>,
}

impl Guard {
    pub(crate) const fn new(handle: Handle<Sockets>) -> Self {
        Self { handle }
    }

    // ---- how it stands ----

    /// The resource as text. Several are joined by `, `; what is no UTF-8 is replaced.
    #[must_use]
    pub fn resource(&self) -> Cow<'_, str> {
        self.handle.resource()
    }

    /// The resources, byte for byte as they were asked for.
    pub fn resources(&self) -> impl Iterator<Item = &[u8]> {
        self.handle.resources().iter().map(|resource| &resource[..])
    }

    /// The lock's name in [events](crate::Redlock::events).
    #[must_use]
    pub fn id(&self) -> LockId {
        self.handle.id()
    }

    /// Whether the lock is held: no I/O, only the clock. Once this is false it stays so.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.handle.is_held()
    }

    /// What is left until the deadline in force; nothing once it is not held any more.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.handle.remaining()
    }

    /// The deadline in force, on the client's clock ([`Redlock::now`](crate::Redlock::now)); the last one, once it is not
    /// held any more. Extensions and renewals move it, either way.
    #[must_use]
    pub fn valid_until(&self) -> Instant {
        self.handle.valid_until()
    }

    /// How each node stands to the lock, in the order of the configuration: the margin. Nothing once the lock has ended and
    /// is cleaned up.
    #[must_use]
    pub fn votes(&self) -> Vec<Vote> {
        self.handle.votes()
    }

    // ---- its end ----

    /// Why the lock is not held any more; `None` while it is.
    #[must_use]
    pub fn lost_reason(&self) -> Option<LostReason> {
        self.handle.lost_reason()
    }

    /// Waits until the lock is lost, at most for `timeout` (`Duration::MAX` is for ever); `None` if it is still held then.
    #[must_use]
    pub fn wait_lost(&self, timeout: Duration) -> Option<LostReason> {
        let shared = self.handle.hub().shared();
        let until = shared.now().saturating_add(timeout);
        wait_until(self.handle.lost(), until, || shared.now())
    }

    /// Has `callback` called once when the lock is lost, also if that has happened already; not when it is released.
    ///
    /// It is called on a thread that the client keeps for callbacks, one after the other: it may block, but holds up those
    /// that come after it, and it may call into the client. A panic in it ends nothing else.
    pub fn on_lost(&self, callback: impl FnOnce(LostReason) + Send + 'static) {
        self.handle.on_lost(callback);
    }

    /// Has `callback` called whenever the deadline is near and the lock was not renewed in time (R17): the last chance to
    /// stop in an orderly way. Runs where [`on_lost`](Self::on_lost)'s do.
    pub fn on_expiring(&self, callback: impl FnMut(Expiring) + Send + 'static) {
        self.handle.on_expiring(callback);
    }

    // ---- what can be done with it ----

    /// Extends the lock, in place, to `ttl` from now. Answers with the deadline in force, within one node timeout.
    ///
    /// # Errors
    ///
    /// No quorum confirmed, or nothing was sent; see [`ExtendError`]. The lock may still be held, until the deadline in
    /// force.
    pub fn extend(&self, ttl: Duration) -> Result<Instant, ExtendError> {
        wait(self.handle.extend(ttl))
    }

    /// Releases the lock, and says what was learnt, within one node timeout. A lock that is [shared](Self::share) stays
    /// held for the other handles.
    ///
    /// # Errors
    ///
    /// The client was closed, which has released it; or this is a forked child.
    pub fn release(self) -> Result<Released, ReleaseError> {
        wait(self.handle.release())
    }

    /// Another handle of the same lock, for re-entrance: the lock is released with the last one.
    pub fn share(&self) -> Self {
        Self { handle: self.handle.share() }
    }
}
