//! The events of a client, as a stream.

use crate::event::Event;
use crate::handoff::Subscription;
use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll};
use futures_core::Stream;

/// The events of a client, as they happen: a stream that ends when the client is closed.
///
/// At most 1024 events wait ([`Redlock::events_with_capacity`](super::Redlock::events_with_capacity) takes another number);
/// who is slower loses the oldest ones, and can ask how many: [`missed`](Self::missed). It does not keep the client alive.
#[derive(Debug)]
pub struct Events {
    subscription: Subscription,
}

impl Events {
    pub(super) const fn new(subscription: Subscription) -> Self {
        Self { subscription }
    }

    /// The next event; `None` after the last one.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it has taken nothing.
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// The next event that is there already.
    pub fn try_next(&mut self) -> Option<Event> {
        self.subscription.try_next()
    }

    /// How many events were lost so far because nobody took them in time.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.subscription.missed()
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.subscription.poll_next(cx.waker())
    }
}
