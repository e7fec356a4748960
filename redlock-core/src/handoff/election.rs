//! One candidate of an election: what every adapter's is made of.

use super::cell::LockCell;
use super::handle::Handle;
use super::hub::{Driver, Hub};
use super::options::AcquireOptions;
use super::pending::Acquiring;
use super::sync::Arc;
use crate::error::{AcquireError, AcquireErrorKind};
use crate::ids::Fence;
use crate::machine;
use crate::request::resource_text;
use crate::time::Instant;
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

/// A candidate. A term is a lock that is waited for without end, renewed without end, and watched.
pub struct Election<D: Driver> {
    hub: Hub<D>,
    options: AcquireOptions,
    machine: machine::Election,
    /// The lock of the last term, until it was seen to have ended.
    term: Option<Arc<LockCell>>,
}

impl<D: Driver> Election<D> {
    /// A candidate for what this resource stands for.
    pub fn new(hub: &Hub<D>, resource: impl AsRef<[u8]>) -> Self {
        let options =
            AcquireOptions::one(resource).wait(Duration::MAX).auto_renew(Duration::MAX).watch_loss();
        let (_, longest_delay) = hub.shared().config().retry_delay();
        Self { hub: hub.clone(), options, machine: machine::Election::new(longest_delay), term: None }
    }

    /// The same with other options, of those that an election leaves open.
    #[must_use]
    pub fn with(self, change: impl FnOnce(AcquireOptions) -> AcquireOptions) -> Self {
        Self { options: change(self.options), ..self }
    }

    /// The client.
    #[must_use]
    pub const fn hub(&self) -> &Hub<D> {
        &self.hub
    }

    /// What is stood for, as text; what is no UTF-8 is replaced.
    #[must_use]
    pub fn resource(&self) -> Cow<'_, str> {
        self.options.resources().first().map_or(Cow::Borrowed(""), |name| String::from_utf8_lossy(name))
    }

    /// The largest fence of this candidate's terms.
    #[must_use]
    pub const fn epoch(&self) -> Option<Fence> {
        self.machine.epoch()
    }

    /// Starts a campaign; ready when it is won, or when it has failed for a reason that waiting does not mend.
    pub const fn campaign(&mut self) -> Campaigning<'_, D> {
        Campaigning { election: self, stage: Stage::AfterTerm(None) }
    }
}

/// A campaign that was started. Dropped, it is called off: a lock that was granted is released.
#[must_use = "it is called off when dropped"]
pub struct Campaigning<'a, D: Driver> {
    election: &'a mut Election<D>,
    stage: Stage<D>,
}

enum Stage<D: Driver> {
    /// The candidate's last term goes on; under this name its end is waited for.
    AfterTerm(Option<u64>),
    Acquiring(Acquiring<D>),
    Answered,
}

impl<D: Driver> Campaigning<'_, D> {
    /// Ready when the last term is over.
    fn poll_term(&mut self, cx: &Context<'_>) -> Poll<()> {
        let Stage::AfterTerm(waiting) = &mut self.stage else { return Poll::Ready(()) };
        let Some(cell) = &self.election.term else { return Poll::Ready(()) };
        let shared = self.election.hub.shared();
        if !shared.is_forked() && cell.is_held(shared.now()) {
            let (id, _replaced) = cell.register(*waiting, cx.waker().clone());
            *waiting = id;
            if id.is_some() {
                return Poll::Pending;
            }
        }
        self.forget_waiting();
        self.election.term = None;
        self.election.machine.ended(self.election.hub.shared().now());
        Poll::Ready(())
    }

    fn forget_waiting(&mut self) {
        if let (Stage::AfterTerm(waiting), Some(cell)) = (&mut self.stage, &self.election.term)
            && let Some(id) = waiting.take()
            && !self.election.hub.shared().is_forked()
        {
            drop(cell.unregister(id));
        }
    }

    /// The answer to the acquire, as the election sees it; `None` where the campaign goes on.
    fn judge(
        &mut self,
        answer: Result<Handle<D>, AcquireError>,
        now: Instant,
    ) -> Option<Result<Handle<D>, AcquireError>> {
        let election = &mut *self.election;
        match answer {
            Ok(handle) => match election.machine.elected(handle.fence(), now) {
                Ok(()) => {
                    election.term = Some(Arc::clone(handle.cell()));
                    Some(Ok(handle))
                }
                Err(stale) => {
                    let granted = handle.fence().unwrap_or(stale.known);
                    let kind = AcquireErrorKind::StaleEpoch { known: stale.known, granted };
                    let resource = resource_text(handle.resources());
                    let (elapsed, nodes) = (Duration::ZERO, Vec::new());
                    Some(Err(AcquireError { kind, resource, attempts: 1, elapsed, nodes }))
                }
            },
            Err(error) => {
                election.machine.failed(now);
                // It was granted, and nobody came to take it in time.
                (error.kind != AcquireErrorKind::TooSlow).then_some(Err(error))
            }
        }
    }
}

impl<D: Driver> Future for Campaigning<'_, D> {
    type Output = Result<Handle<D>, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match &mut self.stage {
                Stage::AfterTerm(_) => {
                    ready!(self.poll_term(cx));
                    let election = &mut *self.election;
                    let now = election.hub.shared().now();
                    let delay = election.machine.campaign(now).unwrap_or_else(|| {
                        // An earlier campaign was neither awaited to its end nor dropped, but forgotten.
                        election.machine.called_off();
                        election.machine.campaign(now).unwrap_or_default()
                    });
                    let acquiring = election.hub.acquire(&election.options.clone().delay(delay));
                    self.stage = Stage::Acquiring(acquiring);
                }
                Stage::Acquiring(acquiring) => {
                    let answer = ready!(Pin::new(acquiring).poll(cx));
                    let now = self.election.hub.shared().now();
                    self.stage = Stage::Answered;
                    match self.judge(answer, now) {
                        Some(answer) => return Poll::Ready(answer),
                        None => self.stage = Stage::AfterTerm(None),
                    }
                }
                Stage::Answered => return Poll::Pending,
            }
        }
    }
}

impl<D: Driver> Drop for Campaigning<'_, D> {
    fn drop(&mut self) {
        self.forget_waiting();
        if matches!(self.stage, Stage::Acquiring(_)) {
            self.election.machine.called_off();
        }
    }
}

impl<D: Driver> fmt::Debug for Election<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Election")
            .field("resource", &self.resource())
            .field("stage", &self.machine.stage())
            .field("epoch", &self.epoch())
            .finish_non_exhaustive()
    }
}

impl<D: Driver> fmt::Debug for Campaigning<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Campaigning").field("election", &self.election).finish_non_exhaustive()
    }
}
