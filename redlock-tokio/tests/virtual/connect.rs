//! Names, addresses, and clients that cannot be made.

use crate::bench::{Bench, ms, secs};
use core::future::pending;
use core::net::SocketAddr;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use redlock_core::handoff::{Entropy, task};
use redlock_core::sim::{Memory, MemoryNodes};
use redlock_tokio::{BoxFuture, BuildError, Clock, Event, Redlock, Runtime, Socket, Tokio, Transport};
use std::io;
use std::sync::Arc;
use tokio::time::sleep;

#[tokio::test(start_paused = true)]
async fn b37_every_address_of_a_name_is_tried_in_time() {
    let bench = Bench::new(2);
    bench.nodes.name("redis.example.com", &[9, 0]);
    bench.nodes.name("valkey.example.com", &[0, 1]);
    let urls = ["redis://redis.example.com"];
    let start = bench.builder().connect().await.unwrap().now();
    let builder = || Redlock::builder().transport(bench.nodes.clone()).clock(bench.clock.clone());
    let redlock = builder().nodes(urls).connect().await.unwrap();
    assert_eq!(redlock.now(), start, "a refusal costs no time");
    assert!(redlock.acquire("door").await.unwrap().is_held());
    // One that swallows packets takes its share of the handshake timeout.
    bench.nodes.set_silent(0, true);
    let redlock = builder().node("redis://valkey.example.com").connect().await.unwrap();
    assert_eq!(redlock.now().saturating_duration_since(start), secs(1));
    let error = builder().node("redis://nobody.example.com").connect().await.unwrap_err();
    assert!(error.to_string().contains("nobody.example.com: no such name"), "{error}");
}

/// A resolver that hangs.
struct Hanging {
    nodes: MemoryNodes,
    asked: Arc<AtomicUsize>,
}

impl Transport for Hanging {
    fn resolve(&self, _host: String, _port: u16) -> BoxFuture<io::Result<Vec<SocketAddr>>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            sleep(secs(3_600)).await;
            Ok(vec![SocketAddr::from(([10, 0, 0, 3], 6379))])
        })
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<io::Result<Box<dyn Socket>>> {
        self.nodes.connect(address)
    }

    fn connect_unix(&self, _path: String) -> BoxFuture<io::Result<Box<dyn Socket>>> {
        Box::pin(pending())
    }
}

#[tokio::test(start_paused = true)]
async fn b22_a_hanging_resolver_is_asked_once_and_costs_nothing() {
    let bench = Bench::new(3);
    let asked = Arc::default();
    let transport = Hanging { nodes: bench.nodes.clone(), asked: Arc::clone(&asked) };
    let urls = ["redis://10.0.0.1", "redis://10.0.0.2", "redis://slow.example.com"];
    let builder = Redlock::builder().nodes(urls).transport(transport).clock(bench.clock.clone());
    let redlock = builder.connect().await.unwrap();
    for _ in 0..100 {
        let start = redlock.now();
        redlock.acquire("door").await.unwrap().release().await.unwrap();
        assert_eq!(redlock.now(), start);
        sleep(secs(10)).await;
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    sleep(secs(4_000)).await;
    assert!(redlock.acquire("door").await.unwrap().votes().len() == 3);
    assert_eq!(bench.nodes.connections(2), 1, "once the name is known it is used");
}

#[tokio::test(start_paused = true)]
async fn r27_a_hanging_resolver_ends_at_the_connect_timeout() {
    let bench = Bench::new(3);
    let transport = Hanging { nodes: bench.nodes.clone(), asked: Arc::default() };
    let urls = ["redis://10.0.0.1", "redis://slow-1.example.com", "redis://slow-2.example.com"];
    let builder = Redlock::builder().nodes(urls).transport(transport).clock(bench.clock.clone());
    let start = tokio::time::Instant::now();
    let error = builder.connect_timeout(secs(3)).connect().await.unwrap_err();
    assert!(matches!(&error, BuildError::Connect(error) if error.timed_out && error.ready == 1), "{error}");
    assert_eq!(start.elapsed(), secs(3));
}

#[tokio::test(start_paused = true)]
async fn r27_why_a_client_cannot_be_made() {
    let bench = Bench::new(3);
    (0..2).for_each(|node| bench.nodes.kill(node));
    let start = tokio::time::Instant::now();
    let error = bench.builder().connect().await.unwrap_err();
    assert!(matches!(&error, BuildError::Connect(error) if !error.timed_out), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
    assert_eq!(start.elapsed(), ms(0));
    bench.nodes.revive(0, Memory::Lose);
    bench.builder().connect().await.unwrap();
    (0..3).for_each(|node| bench.nodes.set_silent(node, true));
    let start = tokio::time::Instant::now();
    let error = bench.builder().connect_timeout(secs(3)).connect().await.unwrap_err();
    assert!(matches!(&error, BuildError::Connect(error) if error.timed_out), "{error}");
    assert_eq!(start.elapsed(), secs(3));
    sleep(ms(1)).await;
    assert_eq!(bench.nodes.connections(0), 0, "a client that was not made leaves nothing");
}

/// Tokio with nothing that speaks TLS, as this crate is without its features for it.
#[derive(Clone, Copy, Debug)]
struct Plain;

impl Runtime for Plain {
    fn spawn(driver: BoxFuture<()>) -> Result<(), String> {
        Tokio::spawn(driver)
    }

    fn sleep(span: Duration) -> BoxFuture<()> {
        Tokio::sleep(span)
    }

    fn clock() -> Arc<dyn Clock> {
        Tokio::clock()
    }

    fn entropy() -> Box<dyn Entropy> {
        Tokio::entropy()
    }

    fn transport() -> Arc<dyn Transport> {
        Tokio::transport()
    }
}

#[tokio::test(start_paused = true)]
async fn r27_an_address_that_asks_for_tls_is_refused_where_nothing_speaks_it() {
    let client = task::Redlock::<Plain>::builder().nodes(["rediss://127.0.0.1:1"]);
    let error = client.connect().await.unwrap_err();
    assert!(matches!(error, BuildError::TlsUnsupported { .. }), "{error}");
    assert!(error.to_string().contains("rediss://127.0.0.1:1 asks for TLS"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_restarts_is_connected_again() {
    let bench = Bench::new(3);
    let redlock = bench.client().await;
    let mut events = redlock.events();
    bench.nodes.kill(1);
    assert!(matches!(events.next().await, Some(Event::NodeDown { node, .. }) if node.index() == 1));
    bench.nodes.revive(1, Memory::Lose);
    loop {
        if let Some(Event::NodeUp { .. }) = events.next().await {
            break;
        }
    }
    redlock.close().await;
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(event);
    }
    assert_eq!(last, Some(Event::Closed));
    assert_eq!((0..3).map(|node| bench.nodes.connections(node)).sum::<usize>(), 0);
}
