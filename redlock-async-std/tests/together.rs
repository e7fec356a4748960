//! B58: all three adapters in one program, each used, and each excluding the others.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    missing_docs,
    reason = "a test may fail by panicking"
)]

use redlock_core::sim::{Dialect, Server, TcpNode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(120);
const ROUNDS: u32 = 20;

/// What only one may do at a time.
#[derive(Default)]
struct Room {
    inside: AtomicU32,
    entered: AtomicU32,
}

impl Room {
    fn enter(&self) {
        assert_eq!(self.inside.fetch_add(1, Ordering::SeqCst), 0, "two owners");
        self.entered.fetch_add(1, Ordering::SeqCst);
        thread::yield_now();
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn b58_all_adapters_in_one_program_exclude_each_other() {
    let node = |seed| TcpNode::start(Server::new(Dialect::Valkey9, seed)).unwrap();
    let nodes: Vec<TcpNode> = (0..3).map(node).collect();
    let urls: Vec<String> = nodes.iter().map(|node| format!("redis://{}", node.addr())).collect();
    let room = Arc::new(Room::default());
    thread::scope(|scope| {
        scope.spawn(|| {
            let redlock = redlock_blocking::Redlock::connect(&urls).unwrap();
            for _ in 0..ROUNDS {
                redlock.acquire("door").wait(LONG).hold(|_| room.enter()).unwrap();
            }
        });
        scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let redlock = redlock_tokio::Redlock::connect(&urls).await.unwrap();
                for _ in 0..ROUNDS {
                    redlock.acquire("door").wait(LONG).hold(async |_| room.enter()).await.unwrap();
                }
            });
        });
        scope.spawn(|| {
            async_std::task::block_on(async {
                let redlock = redlock_async_std::Redlock::connect(&urls).await.unwrap();
                for _ in 0..ROUNDS {
                    redlock.acquire("door").wait(LONG).hold(async |_| room.enter()).await.unwrap();
                }
            });
        });
    });
    assert_eq!(room.entered.load(Ordering::SeqCst), 3 * ROUNDS);
    // The guards of the asynchronous adapters are of one type, wherever they come from.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let guards: Vec<redlock_tokio::Guard> = runtime.block_on(async {
        let one = redlock_tokio::Redlock::connect(&urls).await.unwrap();
        let other = redlock_async_std::Redlock::connect(&urls).await.unwrap();
        vec![one.acquire("a").await.unwrap(), other.acquire("b").await.unwrap()]
    });
    assert!(guards.iter().all(redlock_tokio::Guard::is_held));
}
