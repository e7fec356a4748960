//! B48: guards, and the runtimes that they are used in, left, and outlive.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::std_instead_of_core,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test may fail by panicking, and may look at the time"
)]

mod nodes;

use nodes::Nodes;
use redlock_core::sim::TcpNode;
use redlock_tokio::{
    AcquireErrorKind, BuildError, Events, ExtendErrorKind, Guard, LostReason, NodeVote, Redlock,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

const LONG: Duration = Duration::from_secs(3_600);

impl Nodes {
    async fn guard(&self) -> Guard {
        self.guards(1).await.remove(0)
    }

    async fn guards(&self, count: usize) -> Vec<Guard> {
        let redlock = Redlock::connect(self.urls()).await.unwrap();
        let mut guards = Vec::new();
        for index in 0..count {
            let acquire = redlock.acquire(format!("door:{index}")).ttl(LONG).auto_renew(Duration::MAX);
            let guard = acquire.await.unwrap();
            // Its SETs are answered: what is written from now on is a release.
            while guard.votes().iter().any(|vote| !matches!(vote.vote, NodeVote::Confirmed { .. })) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            guards.push(guard);
        }
        guards
    }
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn multi_thread() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Dropping takes no time to speak of: the best of some, since other tests run meanwhile.
fn drop_quickly(guards: Vec<Guard>) {
    let took = guards.into_iter().map(|guard| {
        let start = Instant::now();
        drop(guard);
        start.elapsed()
    });
    let best = took.min().unwrap();
    assert!(best < Duration::from_millis(5), "{best:?}");
}

#[test]
fn b48_dropped_in_a_current_thread_runtime() {
    let nodes = Nodes::start();
    current_thread().block_on(async { drop_quickly(nodes.guards(5).await) });
    nodes.has_no_key();
}

#[test]
fn b48_dropped_in_a_multi_thread_runtime() {
    let nodes = Nodes::start();
    let runtime = multi_thread();
    runtime.block_on(async {
        let guards = nodes.guards(5).await;
        tokio::spawn(async move { drop_quickly(guards) }).await.unwrap();
        nodes.has_no_key();
    });
}

#[test]
fn b48_dropped_on_a_plain_thread_while_the_runtime_lives() {
    let nodes = Nodes::start();
    let runtime = multi_thread();
    let guards = runtime.block_on(nodes.guards(5));
    thread::spawn(move || drop_quickly(guards)).join().unwrap();
    nodes.has_no_key();
}

#[test]
fn b48_dropped_on_a_plain_thread_after_the_runtime_is_gone() {
    for runtime in [current_thread(), multi_thread()] {
        let nodes = Nodes::start();
        let guards = runtime.block_on(nodes.guards(5));
        drop(runtime);
        for guard in &guards {
            assert!(!guard.is_held(), "nobody renews it");
            assert_eq!(guard.lost_reason(), Some(LostReason::Closed));
        }
        nodes.has_no_key();
        thread::spawn(move || drop_quickly(guards)).join().unwrap();
    }
}

#[test]
fn b48_dropped_during_the_shutdown_of_its_runtime() {
    for background in [false, true] {
        for runtime in [current_thread(), multi_thread()] {
            let nodes = Nodes::start();
            let guard = runtime.block_on(nodes.guard());
            let (said, heard) = mpsc::channel();
            runtime.spawn(async move {
                said.send(()).unwrap();
                std::future::pending::<()>().await;
                drop(guard);
            });
            runtime.block_on(tokio::task::yield_now());
            heard.recv().unwrap();
            if background {
                runtime.shutdown_background();
            } else {
                drop(runtime);
            }
            nodes.has_no_key();
        }
    }
}

#[test]
fn b48_dropped_during_unwinding() {
    let nodes = Nodes::start();
    let runtime = current_thread();
    runtime.block_on(async {
        let guard = nodes.guard().await;
        let unwound = catch_unwind(AssertUnwindSafe(move || {
            let _guard = guard;
            panic!("a test panics with a lock in its hands");
        }));
        assert!(unwound.is_err());
        nodes.has_no_key();
    });
    // And where the panic ends a task, and a runtime.
    let nodes = Nodes::start();
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        current_thread().block_on(async {
            let _guard = nodes.guard().await;
            panic!("a test panics with a lock in its hands");
        });
    }));
    assert!(unwound.is_err());
    nodes.has_no_key();
}

#[test]
fn b48_made_in_one_runtime_and_dropped_in_another() {
    let nodes = Nodes::start();
    let (first, second) = (multi_thread(), current_thread());
    let guard = first.block_on(nodes.guard());
    second.block_on(async {
        assert!(guard.extend(LONG).await.is_ok(), "used there, too");
        let shared = guard.share();
        assert!(shared.release().await.unwrap().is_clean());
        drop(guard);
    });
    nodes.has_no_key();
    // Its own runtime ends first.
    let nodes = Nodes::start();
    let guard = first.block_on(nodes.guard());
    drop(first);
    second.block_on(async {
        assert_eq!(guard.lost().await, LostReason::Closed);
        assert_eq!(guard.extend(LONG).await.unwrap_err().kind, ExtendErrorKind::Lost(LostReason::Closed));
        guard.release().await.unwrap_err();
    });
}

#[test]
fn r20_whoever_waits_elsewhere_gets_an_answer_when_the_runtime_ends() {
    let nodes = Nodes::start();
    let (first, second) = (multi_thread(), multi_thread());
    let redlock = first.block_on(Redlock::connect(nodes.urls())).unwrap();
    let holder = second.block_on(redlock.acquire("door").into_future()).unwrap();
    for node in &nodes.0 {
        node.freeze();
    }
    let waiting = {
        let redlock = redlock.clone();
        second.spawn(async move { redlock.acquire("door").wait(Duration::MAX).await })
    };
    let extending = {
        let holder = holder.share();
        second.spawn(async move { holder.extend(LONG).await })
    };
    let losing = second.spawn(async move { holder.lost().await });
    thread::sleep(Duration::from_millis(20));
    drop(first);
    second.block_on(async {
        assert_eq!(waiting.await.unwrap().unwrap_err().kind, AcquireErrorKind::Closed);
        let extended = extending.await.unwrap().unwrap_err().kind;
        assert!(matches!(extended, ExtendErrorKind::Closed | ExtendErrorKind::Lost(_)), "{extended:?}");
        assert_eq!(losing.await.unwrap(), LostReason::Closed);
        redlock.close().await;
        assert!(redlock.is_closed());
        assert_eq!(redlock.acquire("door").await.unwrap_err().kind, AcquireErrorKind::Closed);
    });
    nodes.0.iter().for_each(TcpNode::thaw);
    nodes.has_no_key();
}

#[test]
fn a_client_needs_a_runtime_and_says_so() {
    let nodes = Nodes::start();
    let error = Redlock::builder().nodes(nodes.urls()).connect_lazy().unwrap_err();
    assert!(matches!(&error, BuildError::NoRuntime(text) if text.contains("no Tokio runtime")), "{error}");
    // Or is told where its driver runs.
    let runtime = multi_thread();
    let handle = runtime.handle().clone();
    let builder = Redlock::builder().nodes(nodes.urls()).spawn_with(move |driver| drop(handle.spawn(driver)));
    let redlock = builder.connect_lazy().unwrap();
    let other = current_thread();
    assert!(other.block_on(redlock.acquire("door").into_future()).unwrap().is_held());
    nodes.has_no_key();
}

#[test]
fn a_driver_that_is_never_run_leaves_nobody_waiting() {
    let nodes = Nodes::start();
    let error = current_thread().block_on(async {
        let builder = Redlock::builder().nodes(nodes.urls());
        builder.spawn_with(drop).connect().await.unwrap_err()
    });
    assert!(matches!(error, BuildError::Connect(_)), "{error}");
}

#[test]
fn r20_many_guards_are_dropped_while_their_runtime_ends() {
    for _ in 0..20 {
        let nodes = Nodes::start();
        let runtime = multi_thread();
        let redlock = runtime.block_on(Redlock::connect(nodes.urls())).unwrap();
        let guards: Vec<Guard> = (0..8)
            .map(|index| {
                let acquire = redlock.acquire(format!("door:{index}")).ttl(LONG);
                runtime.block_on(acquire.into_future()).unwrap()
            })
            .collect();
        thread::scope(|scope| {
            for guard in guards {
                scope.spawn(move || drop(guard));
            }
            scope.spawn(move || drop(runtime));
        });
        nodes.has_no_key();
    }
}

/// Compiles: every future can be sent to another thread, wherever it waits.
#[expect(dead_code, reason = "it is compiled, not called")]
fn futures_are_send(redlock: &'static Redlock, guard: &'static Guard, events: &'static mut Events) {
    fn sent<T: Send>(_: T) {}
    sent(Redlock::connect(["redis://localhost"]));
    sent(Redlock::builder().connect());
    sent(redlock.acquire("door").into_future());
    sent(redlock.acquire("door").hold(async |guard| guard.lost().await));
    sent(redlock.close());
    sent(guard.extend(LONG));
    sent(guard.lost());
    sent(guard.share().release());
    sent(events.next());
}
