//! What is asked for when a lock is acquired: the same in all adapters.

use crate::request::AcquireRequest;
use bytes::Bytes;
use core::fmt;
use core::time::Duration;

/// An [`AcquireRequest`] without its entropy, which is drawn when it is started.
#[derive(Clone)]
#[must_use]
pub struct AcquireOptions {
    request: AcquireRequest,
}

impl AcquireOptions {
    /// Asks for one resource: any bytes.
    pub fn one(resource: impl AsRef<[u8]>) -> Self {
        Self { request: AcquireRequest::new(Bytes::copy_from_slice(resource.as_ref()), [0; 16]) }
    }

    /// Asks for several resources at once, all or none on each node.
    pub fn all(resources: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Self {
        let resources = resources.into_iter().map(|resource| Bytes::copy_from_slice(resource.as_ref()));
        Self { request: AcquireRequest::all(resources, [0; 16]) }
    }

    /// See [`AcquireRequest::ttl`].
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { request: self.request.ttl(ttl) }
    }

    /// See [`AcquireRequest::wait`].
    pub fn wait(self, wait: Duration) -> Self {
        Self { request: self.request.wait(wait) }
    }

    /// See [`AcquireRequest::attempts`].
    pub fn attempts(self, attempts: u32) -> Self {
        Self { request: self.request.attempts(attempts) }
    }

    /// See [`AcquireRequest::auto_renew`].
    pub fn auto_renew(self, max_hold: Duration) -> Self {
        Self { request: self.request.auto_renew(max_hold) }
    }

    /// See [`AcquireRequest::expiring_lead`].
    pub fn expiring_lead(self, lead: Duration) -> Self {
        Self { request: self.request.expiring_lead(lead) }
    }

    /// See [`AcquireRequest::fenced`].
    pub fn fenced(self) -> Self {
        Self { request: self.request.fenced() }
    }

    /// See [`AcquireRequest::watch_loss`].
    pub fn watch_loss(self) -> Self {
        Self { request: self.request.watch_loss() }
    }

    /// See [`AcquireRequest::delay`].
    pub fn delay(self, delay: Duration) -> Self {
        Self { request: self.request.delay(delay) }
    }

    /// The resources, as they were given.
    #[must_use]
    pub fn resources(&self) -> &[Bytes] {
        self.request.resources()
    }

    pub(super) fn request(&self, entropy: [u8; 16]) -> AcquireRequest {
        AcquireRequest { entropy, ..self.request.clone() }
    }
}

impl fmt::Debug for AcquireOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request.fmt(f)
    }
}
