//! Under async-std's executor, smol's, others, and none.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test may fail by panicking, and may look at the time"
)]

#[path = "../../redlock-tokio/tests/nodes/mod.rs"]
mod nodes;

use futures_lite::{StreamExt, future};
use nodes::Nodes;
use redlock_async_std::{
    AcquireErrorKind, BoxFuture, BuildError, Event, Guard, HoldError, LostReason, NodeVote, Redlock, Socket,
    Transport,
};
use redlock_core::sim::TcpNode;
use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(3_600);

/// A resolver that hangs.
struct Hanging;

impl Transport for Hanging {
    fn resolve(&self, _host: String, _port: u16) -> BoxFuture<io::Result<Vec<SocketAddr>>> {
        Box::pin(future::pending())
    }

    fn connect(&self, _address: SocketAddr) -> BoxFuture<io::Result<Box<dyn Socket>>> {
        Box::pin(future::pending())
    }

    fn connect_unix(&self, _path: String) -> BoxFuture<io::Result<Box<dyn Socket>>> {
        Box::pin(future::pending())
    }
}

#[test]
fn r27_a_resolver_that_hangs_ends_at_the_connect_timeout() {
    let builder = Redlock::builder().node("redis://redis-1.example.com").transport(Hanging);
    let (start, timeout) = (Instant::now(), Duration::from_millis(300));
    let error = async_io::block_on(builder.connect_timeout(timeout).connect()).unwrap_err();
    let took = start.elapsed();
    assert!(matches!(&error, BuildError::Connect(error) if error.timed_out), "{error}");
    assert!(took >= timeout && took < Duration::from_secs(2), "{took:?}");
}

impl Nodes {
    async fn client(&self) -> Redlock {
        Redlock::connect(self.urls()).await.unwrap()
    }

    async fn guard(&self) -> Guard {
        let guard = self.client().await.acquire("door").ttl(LONG).auto_renew(Duration::MAX).await.unwrap();
        // Its SETs are answered: what is written from now on is a release.
        while guard.votes().iter().any(|vote| !matches!(vote.vote, NodeVote::Confirmed { .. })) {
            async_io::Timer::after(Duration::from_millis(1)).await;
        }
        guard
    }
}

/// The life of a lock, and of a client.
async fn live(redlock: Redlock) {
    let mut events = redlock.events();
    let guard = redlock.acquire("door").ttl(Duration::from_secs(5)).wait(LONG).await.unwrap();
    assert!(guard.is_held());
    assert!(guard.extend(LONG).await.unwrap() > redlock.now());
    let error = redlock.try_acquire("door").await.unwrap_err();
    assert!(error.kind.is_contended(), "{error}");
    assert!(guard.release().await.unwrap().is_clean());
    let output = redlock.acquire("door").auto_renew(LONG).hold(async |guard| {
        future::yield_now().await;
        guard.is_held()
    });
    assert!(output.await.unwrap());
    redlock.close().await;
    let mut last = None;
    while let Some(event) = StreamExt::next(&mut events).await {
        last = Some(event);
    }
    assert_eq!(last, Some(Event::Closed));
}

#[test]
fn b48_under_async_std() {
    let nodes = Nodes::start();
    async_std::task::block_on(async {
        live(nodes.client().await).await;
        async_std::task::spawn(live(nodes.client().await)).await;
        let guard = nodes.guard().await;
        async_std::task::spawn(async move { drop(guard) }).await;
        nodes.has_no_key();
        // A pending operation that is cancelled, and a timeout.
        nodes.0.iter().for_each(TcpNode::freeze);
        let redlock = nodes.client_that_is_connecting();
        let task = async_std::task::spawn(redlock.acquire("door").ttl(LONG).into_future());
        assert!(task.cancel().await.is_none());
        let acquire = redlock.acquire("door").ttl(LONG).into_future();
        assert!(async_std::future::timeout(Duration::from_millis(10), acquire).await.is_err());
        nodes.0.iter().for_each(TcpNode::thaw);
    });
    nodes.has_no_key();
}

impl Nodes {
    fn client_that_is_connecting(&self) -> Redlock {
        Redlock::builder().nodes(self.urls()).connect_lazy().unwrap()
    }
}

#[test]
fn b48_under_smol() {
    let nodes = Nodes::start();
    smol::block_on(async {
        live(nodes.client().await).await;
        smol::spawn(live(nodes.client().await)).await;
        let guard = nodes.guard().await;
        smol::spawn(async move { drop(guard) }).await;
        nodes.has_no_key();
        let local = smol::LocalExecutor::new();
        local.run(local.spawn(live(nodes.client().await))).await;
        let redlock = nodes.client().await;
        let task = smol::spawn(async move {
            redlock.acquire("door").ttl(LONG).hold(async |_| smol::Timer::never().await).await
        });
        while nodes.0[0].with(|server, now| server.keys(now).is_empty()) {
            smol::Timer::after(Duration::from_millis(1)).await;
        }
        assert!(task.cancel().await.is_none());
    });
    nodes.has_no_key();
}

#[test]
fn b48_without_an_executor() {
    let nodes = Nodes::start();
    future::block_on(async { live(nodes.client().await).await });
    let guard = future::block_on(nodes.guard());
    thread::spawn(move || drop(guard)).join().unwrap();
    nodes.has_no_key();
    let guard = future::block_on(nodes.guard());
    let unwound = catch_unwind(AssertUnwindSafe(move || {
        let _guard = guard;
        panic!("a test panics with a lock in its hands");
    }));
    assert!(unwound.is_err());
    nodes.has_no_key();
}

#[test]
fn b48_made_under_one_executor_and_dropped_under_another() {
    let nodes = Nodes::start();
    let guard = async_std::task::block_on(nodes.guard());
    smol::block_on(async {
        guard.extend(LONG).await.unwrap();
        drop(guard);
    });
    nodes.has_no_key();
    let guard = smol::block_on(nodes.guard());
    async_std::task::block_on(async { assert!(guard.release().await.unwrap().is_clean()) });
    nodes.has_no_key();
}

#[test]
fn hold_stops_its_body_when_the_lock_is_lost() {
    let nodes = Nodes::start();
    let output: Result<(), _> = async_std::task::block_on(async {
        let redlock = nodes.client().await;
        redlock
            .acquire("door")
            .ttl(Duration::from_millis(100))
            .hold(async |_| std::future::pending().await)
            .await
    });
    assert!(
        matches!(output, Err(HoldError::Lost { reason: LostReason::Expired, output: None })),
        "{output:?}"
    );
    nodes.has_no_key();
}

#[test]
fn the_driver_runs_where_it_is_put() {
    let nodes = Nodes::start();
    smol::block_on(async {
        let builder = Redlock::builder().nodes(nodes.urls());
        live(builder.clone().spawn_with(|driver| smol::spawn(driver).detach()).connect().await.unwrap())
            .await;
        let in_async_std = |driver| drop(async_std::task::spawn(driver));
        live(builder.spawn_with(in_async_std).connect().await.unwrap()).await;
    });
    nodes.has_no_key();
}

#[test]
fn r20_an_executor_that_ends_takes_its_driver_with_it_and_nobody_waits() {
    let nodes = Nodes::start();
    let executor = Arc::new(Mutex::new(Some(Arc::new(smol::Executor::new()))));
    let running = executor.lock().unwrap().clone().unwrap();
    let place = Arc::clone(&executor);
    let spawn = move |driver: BoxFuture<()>| {
        if let Some(executor) = &*place.lock().unwrap() {
            executor.spawn(driver).detach();
        }
    };
    let builder = Redlock::builder().nodes(nodes.urls()).spawn_with(spawn);
    let (redlock, guard) = smol::block_on(running.run(async {
        let redlock = builder.clone().connect().await.unwrap();
        let guard = redlock.acquire("door").ttl(LONG).await.unwrap();
        (redlock, guard)
    }));
    drop(running);
    drop(executor.lock().unwrap().take());
    assert!(!guard.is_held());
    future::block_on(async {
        assert_eq!(guard.lost().await, LostReason::Closed);
        assert_eq!(redlock.acquire("door").await.unwrap_err().kind, AcquireErrorKind::Closed);
        redlock.close().await;
        let error = builder.connect().await.unwrap_err();
        assert!(matches!(error, BuildError::Connect(_)), "{error}");
    });
    nodes.has_no_key();
}

#[test]
fn r20_dropped_at_any_time() {
    let nodes = Nodes::start();
    smol::block_on(async {
        let redlock = nodes.client().await;
        (0..3).zip(1..).for_each(|(node, times)| nodes.0[node].set_delay(Duration::from_millis(2) * times));
        for life in 0..60 {
            let work = async {
                let guard = redlock.acquire("door").ttl(LONG).await.unwrap();
                guard.extend(LONG).await.unwrap();
                guard.release().await.unwrap();
            };
            let over = async {
                async_io::Timer::after(Duration::from_micros(300) * life).await;
            };
            future::or(work, over).await;
        }
        nodes.has_no_key();
        let guard = redlock.acquire("door").ttl(LONG).await.unwrap();
        assert!(guard.extend(LONG).await.is_ok());
        assert!(guard.release().await.unwrap().is_clean());
    });
    nodes.has_no_key();
}
