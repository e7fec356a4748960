//! Who writes: each by himself, or the driver for many.

use crate::bench::{Bench, all_ready, secs};
use core::net::SocketAddr;
use core::pin::pin;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};
use redlock_core::sim::MemoryNodes;
use redlock_tokio::{BoxFuture, Redlock, Socket, Transport};
use std::io;
use std::sync::Arc;
use tokio::task::JoinSet;

const NODES: usize = 3;
/// Tasks, far more than those that each write by themselves.
const TASKS: usize = 100;

/// Counts what is written, all nodes together.
#[derive(Clone)]
struct Counted {
    nodes: MemoryNodes,
    writes: Arc<AtomicUsize>,
}

struct CountedSocket {
    socket: Box<dyn Socket>,
    writes: Arc<AtomicUsize>,
}

impl Transport for Counted {
    fn resolve(&self, host: String, port: u16) -> BoxFuture<io::Result<Vec<SocketAddr>>> {
        self.nodes.resolve(host, port)
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<io::Result<Box<dyn Socket>>> {
        let (connecting, writes) = (self.nodes.connect(address), Arc::clone(&self.writes));
        Box::pin(async move {
            let socket = connecting.await?;
            let socket: Box<dyn Socket> = Box::new(CountedSocket { socket, writes });
            Ok(socket)
        })
    }

    fn connect_unix(&self, path: String) -> BoxFuture<io::Result<Box<dyn Socket>>> {
        self.nodes.connect_unix(path)
    }
}

impl Socket for CountedSocket {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.socket.poll_read(cx, buffer)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        self.socket.poll_write(cx, bytes)
    }
}

async fn client(bench: &Bench) -> (Redlock, Arc<AtomicUsize>) {
    let writes = Arc::new(AtomicUsize::new(0));
    let transport = Counted { nodes: bench.nodes.clone(), writes: Arc::clone(&writes) };
    let redlock = bench.builder().transport(transport).connect().await.unwrap();
    all_ready(&redlock).await;
    writes.store(0, Ordering::SeqCst);
    (redlock, writes)
}

#[tokio::test(start_paused = true)]
async fn what_many_tasks_ask_for_is_written_at_once() {
    let bench = Bench::new(NODES);
    let (redlock, writes) = client(&bench).await;
    let mut tasks = JoinSet::new();
    for index in 0..TASKS {
        let redlock = redlock.clone();
        tasks.spawn(async move {
            for _ in 0..10 {
                let guard = redlock.acquire(format!("door:{index}")).await.unwrap();
                assert!(guard.release().await.unwrap().is_clean());
            }
        });
    }
    assert_eq!(tasks.join_all().await.len(), TASKS);
    let writes = writes.load(Ordering::SeqCst);
    // One write for a tenth of the tasks would be good already.
    assert!(writes < 20 * NODES * TASKS / 10, "{writes}");
    assert_eq!(bench.keys(), 0);
}

#[tokio::test(start_paused = true)]
async fn who_is_alone_writes_at_once() {
    let bench = Bench::new(NODES);
    let (redlock, writes) = client(&bench).await;
    let mut acquiring = pin!(redlock.acquire("door").into_future());
    assert!(acquiring.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(writes.load(Ordering::SeqCst), NODES);
    let guard = acquiring.await.unwrap();
    writes.store(0, Ordering::SeqCst);
    let mut releasing = pin!(guard.release());
    assert!(releasing.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(writes.load(Ordering::SeqCst), NODES);
    releasing.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn r20_a_drop_among_many_is_written_at_once() {
    let bench = Bench::new(NODES);
    let (redlock, writes) = client(&bench).await;
    let guard = redlock.acquire("held").ttl(secs(3_600)).await.unwrap();
    writes.store(0, Ordering::SeqCst);
    let mut pending: Vec<_> =
        (0..TASKS).map(|index| redlock.acquire(format!("door:{index}")).into_future()).collect();
    for acquiring in &mut pending {
        assert!(pin!(acquiring).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    let before = writes.load(Ordering::SeqCst);
    assert!(before < NODES * TASKS / 10, "the driver had no turn: {before} writes");
    drop(guard);
    assert_eq!(writes.load(Ordering::SeqCst), before + NODES, "with all that was gathered before it");
    for acquiring in pending {
        drop(acquiring.await.unwrap());
    }
    tokio::time::sleep(secs(1)).await;
    assert_eq!(bench.keys(), 0);
}
