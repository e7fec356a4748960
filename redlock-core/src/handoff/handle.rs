//! A handle of a held lock: what every adapter's guard is made of.

use super::cell::{Expiring, LockCell};
use super::hub::{Driver, Hub, Shared};
use super::outcome::Vote;
use super::pending::{Extending, Releasing};
use super::sync::Arc;
use crate::error::{ExtendErrorKind, ExtendRefused};
use crate::event::{LostReason, ReleaseOutcome};
use crate::ids::{Fence, LockId};
use crate::time::Instant;
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

/// A handle of a lock. The last one that is dropped releases it, without blocking.
#[must_use = "the lock is released when its last handle is dropped"]
pub struct Handle<D: Driver> {
    hub: Hub<D>,
    cell: Arc<LockCell>,
    /// It was released by value: nothing is left to do.
    is_done: bool,
}

impl<D: Driver> Handle<D> {
    pub(super) const fn new(hub: Hub<D>, cell: Arc<LockCell>) -> Self {
        Self { hub, cell, is_done: false }
    }

    pub(super) const fn cell(&self) -> &Arc<LockCell> {
        &self.cell
    }

    fn shared(&self) -> &Shared<D> {
        self.hub.shared()
    }

    /// The client.
    #[must_use]
    pub const fn hub(&self) -> &Hub<D> {
        &self.hub
    }

    /// The lock's name in events.
    #[must_use]
    pub fn id(&self) -> LockId {
        self.cell.lock()
    }

    /// The resources, as they were asked for.
    #[must_use]
    pub fn resources(&self) -> &[Bytes] {
        self.cell.resources()
    }

    /// The resource as text; several are joined by `, `, and what is no UTF-8 is replaced.
    #[must_use]
    pub fn resource(&self) -> Cow<'_, str> {
        match self.resources() {
            [resource] => String::from_utf8_lossy(resource),
            resources => {
                let texts: Vec<_> =
                    resources.iter().map(|resource| String::from_utf8_lossy(resource)).collect();
                texts.join(", ").into()
            }
        }
    }

    /// The lock's fence, if one was asked for.
    #[must_use]
    pub fn fence(&self) -> Option<Fence> {
        self.cell.fence()
    }

    /// Whether the lock is held, by the local clock alone (R13). Once this is false it stays so.
    #[must_use]
    pub fn is_held(&self) -> bool {
        !self.shared().is_forked() && self.cell.is_held(self.shared().now())
    }

    /// What is left until the deadline in force; nothing once the lock has ended.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        if self.shared().is_forked() { Duration::ZERO } else { self.cell.remaining(self.shared().now()) }
    }

    /// The deadline in force, on the client's clock; of a lock that has ended, the last one.
    #[must_use]
    pub fn valid_until(&self) -> Instant {
        self.cell.deadline()
    }

    /// Why the lock is not held any more; `None` while it is.
    #[must_use]
    pub fn lost_reason(&self) -> Option<LostReason> {
        if self.shared().is_forked() {
            Some(LostReason::Closed)
        } else {
            self.cell.lost_reason(self.shared().now())
        }
    }

    /// How each node stands to it, in the order of the configuration; nothing once it has ended and is cleaned up.
    #[must_use]
    pub fn votes(&self) -> Vec<Vote> {
        let votes = self.shared().peek(|state, _| {
            let view = state.client.lock(self.cell.lock())?;
            let votes: Vec<_> = view.votes().collect();
            let with_address = |(node, vote)| {
                let address = state.client.node(node)?.address;
                Some(Vote { node, address, vote })
            };
            Some(votes.into_iter().filter_map(with_address).collect())
        });
        votes.flatten().unwrap_or_default()
    }

    /// Starts to extend it to `ttl` from now.
    pub fn extend(&self, ttl: Duration) -> Extending<D> {
        let started = self.shared().with(|state, now, _| {
            if let Some(reason) = self.cell.lost_reason(now) {
                return Err(ExtendErrorKind::Lost(reason));
            }
            let operation =
                state.client.extend(self.cell.lock(), ttl, now).map_err(|refused| match refused {
                    ExtendRefused::Because(kind) => kind,
                    ExtendRefused::UnknownLock => ExtendErrorKind::Lost(LostReason::Expired),
                })?;
            state.wait_for(operation, Vec::new());
            Ok(operation)
        });
        Extending::new(&self.hub, started.unwrap_or(Err(ExtendErrorKind::Closed)), self.resources())
    }

    /// Starts to release it: it is not held from now on. With other handles alive it stays held for them.
    pub fn release(mut self) -> Releasing<D> {
        self.is_done = true;
        let started = if self.shared().is_forked() {
            Err(None)
        } else if self.cell.unshare() {
            let started = self.shared().with(|state, now, after| state.release(&self.cell, now, after));
            started.unwrap_or(Err(None))
        } else {
            Err(Some(ReleaseOutcome::StillShared))
        };
        Releasing::new(&self.hub, started, self.resources())
    }

    /// Another handle of the same lock, which is released with the last.
    pub fn share(&self) -> Self {
        self.cell.share();
        Self::new(self.hub.clone(), Arc::clone(&self.cell))
    }

    /// Ready when the lock is lost. Dropping it has no effect.
    pub fn lost(&self) -> Lost<'_, D> {
        Lost { handle: self, id: None }
    }

    /// Has `callback` called once when the lock is lost, also if that has happened already; not when it is released.
    pub fn on_lost(&self, callback: impl FnOnce(LostReason) + Send + 'static) {
        let callback = Box::new(callback);
        self.shared().peek(|_, after| self.cell.on_lost(callback, after));
    }

    /// Has `callback` called whenever the deadline is near and the lock was not renewed in time (R17).
    pub fn on_expiring(&self, callback: impl FnMut(Expiring) + Send + 'static) {
        let callback = Box::new(callback);
        self.shared().peek(|state, after| self.cell.on_expiring(callback, state.clock(), after));
    }
}

impl<D: Driver> Drop for Handle<D> {
    fn drop(&mut self) {
        // In a forked child the lock is the parent's.
        if !self.is_done && !self.shared().is_forked() && self.cell.unshare() {
            self.shared().with(|state, now, after| state.give_up(&self.cell, now, after));
        }
    }
}

impl<D: Driver> fmt::Debug for Handle<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("resource", &self.resource())
            .field("held", &self.is_held())
            .field("valid_until", &self.valid_until())
            .finish()
    }
}

/// Ready when a lock is lost.
#[must_use = "futures do nothing unless polled"]
pub struct Lost<'a, D: Driver> {
    handle: &'a Handle<D>,
    id: Option<u64>,
}

impl<D: Driver> Future for Lost<'_, D> {
    type Output = LostReason;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<LostReason> {
        if let Some(reason) = self.handle.lost_reason() {
            return Poll::Ready(reason);
        }
        let (id, _replaced) = self.handle.cell.register(self.id, cx.waker().clone());
        self.id = id;
        match id {
            Some(_) => Poll::Pending,
            None => Poll::Ready(self.handle.lost_reason().unwrap_or(LostReason::Closed)),
        }
    }
}

impl<D: Driver> Drop for Lost<'_, D> {
    fn drop(&mut self) {
        if let Some(id) = self.id
            && !self.handle.shared().is_forked()
        {
            drop(self.handle.cell.unregister(id));
        }
    }
}

impl<D: Driver> fmt::Debug for Lost<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lost").field("handle", self.handle).finish_non_exhaustive()
    }
}
