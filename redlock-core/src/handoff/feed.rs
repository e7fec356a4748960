//! Events for whoever looks on: bounded, the oldest go first.

use super::sync::{Arc, Mutex, lock, process_id};
use crate::event::Event;
use alloc::collections::VecDeque;
use core::fmt;
use core::task::{Poll, Waker};

/// How many events wait for a subscriber who named no number.
pub const DEFAULT_FEED: usize = 1024;

#[derive(Debug)]
pub(super) struct Feed {
    queue: Mutex<Queue>,
}

#[derive(Debug)]
struct Queue {
    events: VecDeque<Event>,
    capacity: usize,
    missed: u64,
    waker: Option<Waker>,
    /// Nothing more will come.
    is_closed: bool,
    /// Nobody listens any more.
    is_dropped: bool,
}

impl Feed {
    pub(super) fn new(capacity: usize, is_closed: bool) -> Self {
        let capacity = capacity.max(1);
        let queue =
            Queue { events: VecDeque::new(), capacity, missed: 0, waker: None, is_closed, is_dropped: false };
        Self { queue: Mutex::new(queue) }
    }

    /// Puts an event in. `None`: nobody listens any more.
    pub(super) fn push(&self, event: &Event) -> Option<Option<Waker>> {
        let mut queue = lock(&self.queue);
        if queue.is_dropped {
            return None;
        }
        if queue.events.len() >= queue.capacity {
            queue.events.pop_front();
            queue.missed = queue.missed.saturating_add(1);
        }
        queue.events.push_back(event.clone());
        queue.is_closed |= matches!(event, Event::Closed);
        Some(queue.waker.take())
    }
}

/// The events of a client, as they happen.
///
/// Bounded: who is slow loses the oldest events, and is told how many ([`missed`](Self::missed)). It does not keep the
/// client alive, and ends when that is closed.
pub struct Subscription {
    feed: Arc<Feed>,
    process: u32,
}

impl Subscription {
    pub(super) const fn new(feed: Arc<Feed>, process: u32) -> Self {
        Self { feed, process }
    }

    /// The next event, `None` after the last; `waker` is woken when there is something new. One waker at a time.
    pub fn poll_next(&mut self, waker: &Waker) -> Poll<Option<Event>> {
        if self.is_forked() {
            return Poll::Ready(None);
        }
        let mut new = Some(waker.clone());
        let mut queue = lock(&self.feed.queue);
        if let Some(event) = queue.events.pop_front() {
            return Poll::Ready(Some(event));
        }
        if queue.is_closed {
            return Poll::Ready(None);
        }
        core::mem::swap(&mut queue.waker, &mut new);
        drop(queue);
        // What was replaced is a user's: dropped after the mutex.
        drop(new);
        Poll::Pending
    }

    /// The next event that is there already.
    pub fn try_next(&mut self) -> Option<Event> {
        if self.is_forked() { None } else { lock(&self.feed.queue).events.pop_front() }
    }

    /// How many events were lost so far because nobody took them.
    #[must_use]
    pub fn missed(&self) -> u64 {
        if self.is_forked() { 0 } else { lock(&self.feed.queue).missed }
    }

    fn is_forked(&self) -> bool {
        process_id() != self.process
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if !self.is_forked() {
            let mut queue = lock(&self.feed.queue);
            queue.is_dropped = true;
            let left = (core::mem::take(&mut queue.events), queue.waker.take());
            drop(queue);
            drop(left);
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("missed", &self.missed()).finish_non_exhaustive()
    }
}
