//! Operations that were started: futures that need no runtime, only somebody who polls them.
//!
//! # Cancel safety
//!
//! Dropping one calls the operation off; what it got, or may have got, is given back (R20). A release goes on.

use super::handle::Handle;
use super::hub::{Driver, Hub};
use super::observe::Span;
use super::options::AcquireOptions;
use super::outcome::{ReleaseError, Released};
use super::state::Answer;
use crate::error::{
    AcquireError, AcquireErrorKind, ConnectError, ExtendError, ExtendErrorKind, NodeOutcome, NodeReport,
};
use crate::event::{NodeVote, ReleaseOutcome};
use crate::ids::OperationId;
use crate::request::resource_text;
use crate::time::Instant;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

/// An operation of the engine that somebody waits for.
struct Pending<D: Driver> {
    hub: Hub<D>,
    operation: Option<OperationId>,
}

/// How far an operation is.
enum Progress {
    Pending,
    Answered(Answer),
    /// The client cannot answer: this is a forked child, or it was answered before.
    Gone,
}

impl<D: Driver> Pending<D> {
    fn poll(&mut self, cx: &Context<'_>) -> Progress {
        let Some(operation) = self.operation else { return Progress::Gone };
        let waker = cx.waker().clone();
        // The waker that comes back is dropped here, after the mutex.
        match self.hub.shared().peek(|state, _| state.poll_answer(operation, waker)) {
            Some((None, _)) => Progress::Pending,
            Some((Some(answer), _)) => {
                self.operation = None;
                Progress::Answered(answer)
            }
            None => Progress::Gone,
        }
    }

    fn abandon(&mut self) {
        if let Some(operation) = self.operation.take() {
            self.hub.shared().with(|state, now, after| state.abandon(operation, now, after));
        }
    }
}

/// An acquire that was started. Dropped, it is called off, and a lock that was granted is released.
#[must_use = "it is called off when dropped"]
pub struct Acquiring<D: Driver> {
    pending: Pending<D>,
    failed: Option<AcquireError>,
    start: Instant,
    span: Span,
}

impl<D: Driver> Acquiring<D> {
    pub(super) fn started(hub: &Hub<D>, operation: OperationId, span: Span) -> Self {
        let pending = Pending { hub: hub.clone(), operation: Some(operation) };
        Self { pending, failed: None, start: hub.shared().now(), span }
    }

    pub(super) fn failed(hub: &Hub<D>, options: &AcquireOptions, kind: AcquireErrorKind) -> Self {
        let resource = resource_text(options.resources());
        let error = AcquireError { kind, resource, attempts: 0, elapsed: Duration::ZERO, nodes: Vec::new() };
        let pending = Pending { hub: hub.clone(), operation: None };
        Self { pending, failed: Some(error), start: Instant::ZERO, span: Span::acquire(options) }
    }

    /// R6's second check: the caller takes the lock only now.
    fn take(&self, handle: Handle<D>) -> Result<Handle<D>, AcquireError> {
        let now = self.pending.hub.shared().now();
        if handle.is_held() {
            return Ok(handle);
        }
        let report = |vote: super::outcome::Vote| NodeReport {
            node: vote.node,
            address: vote.address,
            outcome: match vote.vote {
                NodeVote::Confirmed { .. } => NodeOutcome::Granted,
                NodeVote::Gone | NodeVote::Silent | NodeVote::Failed => NodeOutcome::Unanswered,
            },
            took: None,
            holder: None,
        };
        Err(AcquireError {
            kind: AcquireErrorKind::TooSlow,
            resource: resource_text(handle.resources()),
            attempts: 1,
            elapsed: now.saturating_duration_since(self.start),
            nodes: handle.votes().into_iter().map(report).collect(),
        })
    }
}

impl<D: Driver> Future for Acquiring<D> {
    type Output = Result<Handle<D>, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = match self.failed.take() {
            Some(error) => Err(error),
            None => match self.pending.poll(cx) {
                Progress::Pending => return Poll::Pending,
                Progress::Answered(Answer::Acquire(Ok(cell))) => {
                    let handle = Handle::new(self.pending.hub.clone(), cell);
                    self.take(handle)
                }
                Progress::Answered(Answer::Acquire(Err(error))) => Err(error),
                Progress::Answered(Answer::Extend(_) | Answer::Release(_) | Answer::Connect(_))
                | Progress::Gone => {
                    let (resource, nodes) = (String::new(), Vec::new());
                    let kind = AcquireErrorKind::Closed;
                    Err(AcquireError { kind, resource, attempts: 0, elapsed: Duration::ZERO, nodes })
                }
            },
        };
        self.span.answered(|| match &answer {
            Ok(_) => "acquired".into(),
            Err(error) => error.to_string(),
        });
        Poll::Ready(answer)
    }
}

impl<D: Driver> Drop for Acquiring<D> {
    fn drop(&mut self) {
        self.pending.abandon();
    }
}

/// An extension that was started. Dropped, nobody waits for it, but a node may still have run it: the deadline in force
/// counts that (R14).
#[must_use = "it is called off when dropped"]
pub struct Extending<D: Driver> {
    pending: Pending<D>,
    failed: Option<ExtendError>,
    resource: String,
    span: Span,
}

impl<D: Driver> Extending<D> {
    pub(super) fn new(
        hub: &Hub<D>,
        started: Result<OperationId, ExtendErrorKind>,
        resources: &[bytes::Bytes],
    ) -> Self {
        let (operation, kind) = match started {
            Ok(operation) => (Some(operation), None),
            Err(kind) => (None, Some(kind)),
        };
        let resource = resource_text(resources);
        let error = |kind| {
            let (resource, elapsed) = (resource.clone(), Duration::ZERO);
            ExtendError { kind, resource, elapsed, nodes: Vec::new() }
        };
        let failed = kind.map(error);
        let span = Span::extend(resources);
        Self { pending: Pending { hub: hub.clone(), operation }, failed, resource, span }
    }
}

impl<D: Driver> Future for Extending<D> {
    type Output = Result<Instant, ExtendError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = match self.failed.take() {
            Some(error) => Err(error),
            None => match self.pending.poll(cx) {
                Progress::Pending => return Poll::Pending,
                Progress::Answered(Answer::Extend(answer)) => answer,
                Progress::Answered(Answer::Acquire(_) | Answer::Release(_) | Answer::Connect(_))
                | Progress::Gone => {
                    let resource = core::mem::take(&mut self.resource);
                    let (kind, elapsed) = (ExtendErrorKind::Closed, Duration::ZERO);
                    Err(ExtendError { kind, resource, elapsed, nodes: Vec::new() })
                }
            },
        };
        self.span.answered(|| match &answer {
            Ok(_) => "extended".into(),
            Err(error) => error.to_string(),
        });
        Poll::Ready(answer)
    }
}

impl<D: Driver> Drop for Extending<D> {
    fn drop(&mut self) {
        self.pending.abandon();
    }
}

/// A release that was started; the lock is not held any more. Dropped, it goes on, and nobody hears what it learnt.
#[must_use = "what it learns is lost when dropped"]
pub struct Releasing<D: Driver> {
    pending: Pending<D>,
    /// What is known without asking; `None` in it: the client is closed.
    known: Option<Option<ReleaseOutcome>>,
    resource: String,
    span: Span,
}

impl<D: Driver> Releasing<D> {
    pub(super) fn new(
        hub: &Hub<D>,
        started: Result<OperationId, Option<ReleaseOutcome>>,
        resources: &[bytes::Bytes],
    ) -> Self {
        let (operation, known, resource) = match started {
            Ok(operation) => (Some(operation), None, String::new()),
            Err(known) => (None, Some(known), resource_text(resources)),
        };
        let span = Span::release(resources);
        Self { pending: Pending { hub: hub.clone(), operation }, known, resource, span }
    }
}

impl<D: Driver> Future for Releasing<D> {
    type Output = Result<Released, ReleaseError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match self.known.take() {
            Some(known) => known,
            None => match self.pending.poll(cx) {
                Progress::Pending => return Poll::Pending,
                Progress::Answered(Answer::Release(outcome)) => Some(outcome),
                Progress::Answered(Answer::Acquire(_) | Answer::Extend(_) | Answer::Connect(_))
                | Progress::Gone => None,
            },
        };
        self.span.answered(|| outcome.map_or_else(|| "closed".into(), |outcome| outcome.to_string()));
        let resource = core::mem::take(&mut self.resource);
        Poll::Ready(outcome.map(Released::new).ok_or(ReleaseError { resource }))
    }
}

impl<D: Driver> Drop for Releasing<D> {
    fn drop(&mut self) {
        if let Some(operation) = self.pending.operation.take() {
            self.pending.hub.shared().peek(|state, after| state.forget(operation, after));
        }
    }
}

/// A wait for a quorum of nodes.
#[must_use = "it is called off when dropped"]
pub struct Connecting<D: Driver> {
    pending: Pending<D>,
}

impl<D: Driver> Connecting<D> {
    pub(super) fn new(hub: &Hub<D>, operation: Option<OperationId>) -> Self {
        Self { pending: Pending { hub: hub.clone(), operation } }
    }
}

impl<D: Driver> Future for Connecting<D> {
    type Output = Result<(), ConnectError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.pending.poll(cx) {
            Progress::Pending => Poll::Pending,
            Progress::Answered(Answer::Connect(answer)) => Poll::Ready(answer),
            Progress::Answered(Answer::Acquire(_) | Answer::Extend(_) | Answer::Release(_))
            | Progress::Gone => {
                let needed = self.pending.hub.shared().config().quorum();
                Poll::Ready(Err(ConnectError {
                    ready: 0,
                    needed,
                    timed_out: false,
                    closed: true,
                    limit: None,
                    elapsed: Duration::ZERO,
                    nodes: Vec::new(),
                }))
            }
        }
    }
}

impl<D: Driver> Drop for Connecting<D> {
    fn drop(&mut self) {
        self.pending.abandon();
    }
}

/// The end of a client: ready once everything is closed. Dropped, closing goes on.
#[must_use = "closing goes on without it, but is not waited for"]
pub struct Closing<D: Driver> {
    hub: Hub<D>,
    id: Option<u64>,
}

impl<D: Driver> Closing<D> {
    pub(super) fn new(hub: &Hub<D>) -> Self {
        Self { hub: hub.clone(), id: None }
    }
}

impl<D: Driver> Future for Closing<D> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let waker = cx.waker().clone();
        let mut id = self.id;
        let polled = self.hub.shared().peek(|state, _| state.poll_closed(&mut id, waker));
        self.id = id;
        match polled {
            Some((false, _)) => Poll::Pending,
            Some((true, _)) | None => Poll::Ready(()),
        }
    }
}

impl<D: Driver> Drop for Closing<D> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.hub.shared().peek(|state, _| state.forget_closing(id));
        }
    }
}

macro_rules! debug_by_name {
    ($($name:ident),*) => {$(
        impl<D: Driver> fmt::Debug for $name<D> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}

debug_by_name!(Acquiring, Extending, Releasing, Connecting, Closing);
