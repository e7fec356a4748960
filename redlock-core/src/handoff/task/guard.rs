//! A held lock.

use super::Connections;
use crate::error::ExtendError;
use crate::event::LostReason;
use crate::handoff::{self, Handle, ReleaseError, Released};
use crate::time::Instant;
use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::task::Poll;
use core::time::Duration;

/// A held lock, until it is released, dropped or lost.
///
/// Whether it is held is answered from the local clock alone, without asking anyone: it is held while now is before its
/// [deadline](Self::valid_until) (R13). Once it is not held any more it stays so; acquire again.
///
/// Dropping it hands the release to the sockets, without waiting, on any thread and in any runtime, or in none. To hear
/// what the nodes say to it, [`release`](Self::release).
#[derive(Debug)]
#[must_use = "the lock is released when its guard is dropped; bind it to a name that lives as long as the work"]
pub struct Guard {
    handle: Handle<Connections>,
}

/// Ready when a lock is lost.
pub type Lost<'a> = handoff::Lost<'a, Connections>;

impl Guard {
    pub(super) const fn new(handle: Handle<Connections>) -> Self {
        Self { handle }
    }

    crate::__guard_methods!();

    /// Waits until the lock is lost; for ever, if it is released.
    ///
    /// # Cancel safety
    ///
    /// Dropping it has no effect.
    pub fn lost(&self) -> Lost<'_> {
        self.handle.lost()
    }

    /// Runs `work` until it is done or the lock is lost, whichever is first; a lock that is lost is looked at first.
    ///
    /// When the lock is lost, `work` is dropped at its next await; what it does between two of them is not stopped. The lock is
    /// not released here.
    ///
    /// # Errors
    ///
    /// Why the lock was lost. What `work` returned by then is dropped with it.
    ///
    /// # Cancel safety
    ///
    /// Dropped, `work` is dropped; the lock stays as it is.
    pub async fn until_lost<T>(&self, work: impl Future<Output = T>) -> Result<T, LostReason> {
        let mut lost = self.lost();
        let mut work = pin!(work);
        poll_fn(|cx| match Pin::new(&mut lost).poll(cx) {
            Poll::Ready(reason) => Poll::Ready(Err(reason)),
            Poll::Pending => work.as_mut().poll(cx).map(Ok),
        })
        .await
    }

    /// Extends the lock, in place, to `ttl` from now. Answers with the deadline in force, within one node timeout.
    ///
    /// # Errors
    ///
    /// No quorum confirmed, or nothing was sent; see [`ExtendError`]. The lock may still be held, until the deadline in
    /// force.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it is polled, nothing is sent. Dropped after that, nodes may have extended the lock all the same; the
    /// deadline in force never counts more than what is certain.
    pub async fn extend(&self, ttl: Duration) -> Result<Instant, ExtendError> {
        self.handle.extend(ttl).await
    }

    /// Releases the lock, and says what was learnt, within one node timeout. A lock that is [shared](Self::share) stays
    /// held for the other handles.
    ///
    /// # Errors
    ///
    /// The client was closed, which has released it; or this is a forked child.
    ///
    /// # Cancel safety
    ///
    /// Dropped at any time, polled or not, the lock is released.
    pub async fn release(self) -> Result<Released, ReleaseError> {
        self.handle.release().await
    }
}
