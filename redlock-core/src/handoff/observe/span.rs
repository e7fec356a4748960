//! The `tracing` span of an operation: made where it is asked for, so that it lies within the caller's, and closed with the
//! operation's future.

use crate::handoff::options::AcquireOptions;
use alloc::string::String;
use bytes::Bytes;
#[cfg(feature = "tracing")]
use {super::book::text, super::log::TARGET, tracing::debug_span, tracing::field::Empty};

/// Without the feature it is nothing.
#[derive(Debug)]
pub(in crate::handoff) struct Span {
    #[cfg(feature = "tracing")]
    span: tracing::Span,
}

#[cfg(feature = "tracing")]
impl Span {
    pub(in crate::handoff) fn acquire(options: &AcquireOptions) -> Self {
        Self {
            span: debug_span!(target: TARGET, "redlock.acquire", resource = %text(options.resources()), outcome = Empty),
        }
    }

    pub(in crate::handoff) fn extend(resources: &[Bytes]) -> Self {
        Self {
            span: debug_span!(target: TARGET, "redlock.extend", resource = %text(resources), outcome = Empty),
        }
    }

    pub(in crate::handoff) fn release(resources: &[Bytes]) -> Self {
        Self {
            span: debug_span!(target: TARGET, "redlock.release", resource = %text(resources), outcome = Empty),
        }
    }

    /// The operation has its answer.
    pub(in crate::handoff) fn answered(&self, outcome: impl FnOnce() -> String) {
        if !self.span.is_disabled() {
            self.span.record("outcome", outcome().as_str());
        }
    }
}

#[cfg(not(feature = "tracing"))]
impl Span {
    pub(in crate::handoff) const fn acquire(_: &AcquireOptions) -> Self {
        Self {}
    }

    pub(in crate::handoff) const fn extend(_: &[Bytes]) -> Self {
        Self {}
    }

    pub(in crate::handoff) const fn release(_: &[Bytes]) -> Self {
        Self {}
    }

    #[expect(clippy::unused_self, reason = "as with the feature")]
    pub(in crate::handoff) fn answered(&self, _: impl FnOnce() -> String) {}
}
