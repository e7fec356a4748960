//! The events of a client, as an iterator.

use crate::driver::Sockets;
use crate::wait::{wait, wait_until};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use redlock_core::Event;
use redlock_core::handoff::{Shared, Subscription};

/// The events of a client, as they happen: an iterator that waits for the next, and ends when the client is closed.
///
/// At most 1024 events wait ([`Redlock::events_with_capacity`](crate::Redlock::events_with_capacity) takes another number);
/// who is slower loses the oldest ones, and can ask how many: [`missed`](Self::missed). It does not keep the client alive.
#[derive(Debug)]
pub struct Events {
    subscription: Subscription,
    shared: Shared<Sockets>,
}

impl Events {
    pub(crate) const fn new(subscription: Subscription, shared: Shared<Sockets>) -> Self {
        Self { subscription, shared }
    }

    /// The next event that is there already.
    pub fn try_next(&mut self) -> Option<Event> {
        self.subscription.try_next()
    }

    /// The next event, if it comes within `timeout`; `None` also after the last one.
    pub fn next_timeout(&mut self, timeout: Duration) -> Option<Event> {
        let until = self.shared.now().saturating_add(timeout);
        wait_until(Next(&mut self.subscription), until, || self.shared.now()).flatten()
    }

    /// How many events were lost so far because nobody took them in time.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.subscription.missed()
    }
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        wait(Next(&mut self.subscription))
    }
}

struct Next<'a>(&'a mut Subscription);

impl Future for Next<'_> {
    type Output = Option<Event>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.0.poll_next(cx.waker())
    }
}
