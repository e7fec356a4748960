//! Nodes, a clock and clients in Tokio's paused time.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use redlock_core::sim::{Dialect, MemoryNodes, Server};
use redlock_tokio::{Builder, Clock, Instant, NodeState, Redlock};
use std::sync::Arc;

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Tokio's time, and what the machine was suspended.
#[derive(Clone, Debug)]
pub(crate) struct TokioClock {
    origin: tokio::time::Instant,
    suspended: Arc<AtomicU64>,
}

impl TokioClock {
    pub(crate) fn start() -> Self {
        Self { origin: tokio::time::Instant::now(), suspended: Arc::default() }
    }

    /// The machine sleeps: timers stand still, this clock goes on.
    pub(crate) fn suspend(&self, span: Duration) {
        self.suspended.fetch_add(u64::try_from(span.as_nanos()).unwrap(), Ordering::SeqCst);
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Instant {
        let suspended = Duration::from_nanos(self.suspended.load(Ordering::SeqCst));
        Instant::from_secs(1_000).saturating_add(self.origin.elapsed()).saturating_add(suspended)
    }
}

/// Nodes of all dialects, in turn.
pub(crate) struct Bench {
    pub(crate) nodes: MemoryNodes,
    pub(crate) clock: TokioClock,
    count: usize,
}

impl Bench {
    pub(crate) fn new(count: usize) -> Self {
        let clock = TokioClock::start();
        let server = |index: usize| Server::new(Dialect::ALL[index % Dialect::ALL.len()], index as u64);
        let sleep = |span| -> redlock_tokio::BoxFuture<()> { Box::pin(tokio::time::sleep(span)) };
        let nodes = MemoryNodes::new((0..count).map(server), clock.clone(), sleep);
        Self { nodes, clock, count }
    }

    pub(crate) fn builder(&self) -> Builder {
        Redlock::builder().nodes(self.nodes.urls()).transport(self.nodes.clone()).clock(self.clock.clone())
    }

    /// A client that is connected to every node.
    pub(crate) async fn client(&self) -> Redlock {
        let redlock = self.builder().connect().await.unwrap();
        all_ready(&redlock).await;
        redlock
    }

    /// The nodes answer after different times: the first after 10 ms, the second after 20 ms, …
    pub(crate) fn delay_each(&self) {
        (0..self.count).zip(1..).for_each(|(node, times)| self.nodes.set_delay(node, ms(10) * times));
    }

    pub(crate) fn no_delay(&self) {
        (0..self.count).for_each(|node| self.nodes.set_delay(node, Duration::ZERO));
    }

    /// Somebody else has this key.
    pub(crate) fn take(&self, key: &str) {
        for node in 0..self.count {
            self.nodes.with(node, |server, now| server.put(key.as_bytes(), b"somebody", None, now));
        }
    }

    /// The nodes on which a key is.
    pub(crate) fn holding(&self, key: &str) -> usize {
        let has =
            |node: &usize| self.nodes.with(*node, |server, now| server.value(key.as_bytes(), now)).is_some();
        (0..self.count).filter(has).count()
    }

    /// All keys there are.
    pub(crate) fn keys(&self) -> usize {
        (0..self.count).map(|node| self.nodes.with(node, |server, now| server.keys(now).len())).sum()
    }

    /// How many connections were asked for, all nodes together.
    pub(crate) fn connects(&self) -> usize {
        (0..self.count).map(|node| self.nodes.connects(node)).sum()
    }
}

pub(crate) async fn all_ready(redlock: &Redlock) {
    while !redlock.nodes().iter().all(|node| node.state == NodeState::Ready) {
        tokio::time::sleep(ms(1)).await;
    }
}

/// Numbers that follow from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}
