//! Somebody may look on: what is noted under the mutex and told after it.

use super::book::{Book, Context};
use crate::client::Client;
use crate::config::Config;
use crate::event::Event;
use crate::handoff::after::After;
use crate::ids::{LockId, OperationId};
use crate::node::VoteCounts;
use crate::time::Instant;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

pub(in crate::handoff) struct Observer {
    book: Book,
}

/// Something to be told.
pub(in crate::handoff) enum News {
    /// A client was made, of these nodes.
    #[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "counted, not logged"))]
    Opened { nodes: Vec<Arc<str>> },
    /// An acquire was started.
    Asked,
    /// The engine said something.
    Event(Event, Context),
    /// A node has given more votes.
    #[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "counted, not logged"))]
    Votes { node: Arc<str>, more: VoteCounts },
    /// A client is closed: so many acquires and locks end with it, and its nodes are not its nodes any more.
    #[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "counted, not logged"))]
    Closed { waiting: usize, held: usize, nodes: Vec<Arc<str>> },
}

impl Observer {
    pub(in crate::handoff) fn new(config: &Config) -> Self {
        Self { book: Book::new(config) }
    }

    /// An acquire was started.
    pub(in crate::handoff) fn asked(
        &mut self,
        operation: OperationId,
        resources: &[Bytes],
        now: Instant,
        after: &mut After,
    ) {
        self.book.asked(operation, resources, now);
        after.tell(News::Asked);
    }

    /// The lock is not held any more: its release is on the way.
    pub(in crate::handoff) fn releasing(&mut self, lock: LockId, now: Instant) {
        self.book.releasing(lock, now);
    }

    /// The engine said something.
    pub(in crate::handoff) fn saw(
        &mut self,
        event: &Event,
        client: &Client,
        now: Instant,
        after: &mut After,
    ) {
        if self.book.is_new() {
            after.tell(News::Opened { nodes: self.book.nodes() });
        }
        let context = self.book.context(event, now);
        after.tell(News::Event(event.clone(), context));
        for (node, more) in self.book.new_votes(client) {
            after.tell(News::Votes { node, more });
        }
        if matches!(event, Event::Closed) {
            let (waiting, held, nodes) = self.book.close();
            after.tell(News::Closed { waiting, held, nodes });
        }
    }
}

/// Tells it. With no mutex held.
pub(in crate::handoff) fn tell(news: &News) {
    #[cfg(feature = "metrics")]
    super::measure::tell(news);
    #[cfg(feature = "tracing")]
    if let News::Event(event, context) = news {
        super::log::tell(event, context);
    }
}
