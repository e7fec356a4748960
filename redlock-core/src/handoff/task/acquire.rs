//! An acquire, before and after it is started.

use super::{Connections, Guard, Redlock, Runtime};
use crate::error::AcquireError;
use crate::handoff::{self, AcquireOptions, HoldError, Hub, settle};
use core::fmt;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};

/// An acquire that is being put together; awaited, or [held](Self::hold), it starts.
///
/// # Errors
///
/// When awaited: it is held by somebody else, no quorum of nodes can be reached, the request makes no sense …; see
/// [`AcquireError`]. Whatever was left on nodes is being cleaned up.
///
/// # Cancel safety
///
/// Dropped while it is awaited, it is called off: a lock that it got, or may have got, is released.
#[derive(Clone, Debug)]
#[must_use = "nothing is acquired before it is awaited"]
pub struct Acquire<'a> {
    hub: &'a Hub<Connections>,
    options: AcquireOptions,
}

impl<'a> Acquire<'a> {
    pub(super) const fn new<R: Runtime>(redlock: &'a Redlock<R>, options: AcquireOptions) -> Self {
        Self { hub: redlock.hub(), options }
    }

    crate::__acquire_methods!();

    /// Acquires the lock, runs `body` under it, and releases it.
    ///
    /// When the lock is lost, `body` is dropped at its next await; what it does between two of them is not stopped. A panic
    /// in it releases the lock, and goes on.
    ///
    /// # Errors
    ///
    /// The lock was not acquired, was lost while `body` ran, or is not known to be released; the latter two hand back what
    /// `body` returned, if it ran to its end.
    ///
    /// # Cancel safety
    ///
    /// Dropped, `body` is dropped and the lock is released.
    pub async fn hold<T>(self, body: impl AsyncFnOnce(&Guard) -> T) -> Result<T, HoldError<T>> {
        let guard = self.await?;
        match guard.until_lost(body(&guard)).await {
            Ok(output) => {
                let lost = guard.lost_reason();
                settle(output, lost, guard.release().await)
            }
            Err(reason) => Err(HoldError::Lost { reason, output: None }),
        }
    }
}

impl IntoFuture for Acquire<'_> {
    type Output = Result<Guard, AcquireError>;
    type IntoFuture = Acquiring;

    fn into_future(self) -> Acquiring {
        Acquiring { state: State::New(self.hub.clone(), self.options) }
    }
}

/// An acquire that was awaited, without the client that it was made from: it can be sent to another task.
///
/// Started when it is first polled; see [`Acquire`].
#[must_use = "nothing is acquired before it is awaited"]
pub struct Acquiring {
    state: State,
}

enum State {
    New(Hub<Connections>, AcquireOptions),
    Started(handoff::Acquiring<Connections>),
}

impl Future for Acquiring {
    type Output = Result<Guard, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let State::New(hub, options) = &self.state {
            self.state = State::Started(hub.acquire(options));
        }
        match &mut self.state {
            State::Started(acquiring) => Pin::new(acquiring).poll(cx).map_ok(Guard::new),
            State::New(..) => Poll::Pending,
        }
    }
}

impl fmt::Debug for Acquiring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquiring").finish_non_exhaustive()
    }
}
