//! Sockets through which little passes at a time, and which break anywhere.

use crate::bench::{Bench, all_ready, ms, secs};
use core::net::SocketAddr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::task::{Context, Poll};
use redlock_core::sim::MemoryNodes;
use redlock_tokio::{BoxFuture, Event, Redlock, Socket, Transport};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use tokio::time::{sleep, timeout};

/// What passes, of all connections.
#[derive(Default)]
struct Valve {
    /// So many bytes are written, then all connections break at the next write.
    left: AtomicUsize,
    /// Nothing is written for now.
    is_shut: AtomicBool,
}

#[derive(Clone)]
struct Narrow {
    nodes: MemoryNodes,
    valve: Arc<Valve>,
}

struct NarrowSocket {
    socket: Box<dyn Socket>,
    valve: Arc<Valve>,
    is_tired: bool,
    waiting: Option<BoxFuture<()>>,
}

impl Transport for Narrow {
    fn resolve(&self, host: String, port: u16) -> BoxFuture<io::Result<Vec<SocketAddr>>> {
        self.nodes.resolve(host, port)
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<io::Result<Box<dyn Socket>>> {
        let (connecting, valve) = (self.nodes.connect(address), Arc::clone(&self.valve));
        Box::pin(async move {
            let socket = connecting.await?;
            let socket: Box<dyn Socket> =
                Box::new(NarrowSocket { socket, valve, is_tired: false, waiting: None });
            Ok(socket)
        })
    }

    fn connect_unix(&self, path: String) -> BoxFuture<io::Result<Box<dyn Socket>>> {
        self.nodes.connect_unix(path)
    }
}

impl Socket for NarrowSocket {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.socket.poll_read(cx, &mut buffer[..1])
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if let Some(waiting) = &mut self.waiting {
            core::task::ready!(waiting.as_mut().poll(cx));
            self.waiting = None;
        }
        if self.valve.is_shut.load(Ordering::SeqCst) {
            let valve = Arc::clone(&self.valve);
            let mut waiting: BoxFuture<()> = Box::pin(async move {
                while valve.is_shut.load(Ordering::SeqCst) {
                    sleep(ms(1)).await;
                }
            });
            assert!(waiting.as_mut().poll(cx).is_pending());
            self.waiting = Some(waiting);
            return Poll::Pending;
        }
        // Every other time it has no room.
        self.is_tired = !self.is_tired;
        if self.is_tired {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let length = bytes.len().min(3).min(self.valve.left.load(Ordering::SeqCst));
        if length == 0 {
            return Poll::Ready(Err(ErrorKind::BrokenPipe.into()));
        }
        self.valve.left.fetch_sub(length, Ordering::SeqCst);
        self.socket.poll_write(cx, &bytes[..length])
    }
}

async fn client(bench: &Bench) -> (Redlock, Arc<Valve>) {
    let valve = Arc::new(Valve::default());
    valve.left.store(usize::MAX, Ordering::SeqCst);
    let transport = Narrow { nodes: bench.nodes.clone(), valve: Arc::clone(&valve) };
    let redlock = bench.builder().transport(transport).connect().await.unwrap();
    all_ready(&redlock).await;
    (redlock, valve)
}

#[tokio::test(start_paused = true)]
async fn r21_half_written_commands_are_finished() {
    let bench = Bench::new(3);
    let (redlock, valve) = client(&bench).await;
    let connects = bench.connects();
    for _ in 0..20 {
        let guard = redlock.acquire("door").ttl(secs(3_600)).await.unwrap();
        assert!(guard.extend(secs(3_600)).await.is_ok());
        // Dropped in the middle of a command's bytes.
        let _over = timeout(ms(0), guard.extend(secs(3_600))).await;
        valve.is_shut.store(true, Ordering::SeqCst);
        drop(guard);
        sleep(ms(5)).await;
        assert_eq!(bench.holding("door"), 3, "nothing passes");
        valve.is_shut.store(false, Ordering::SeqCst);
        sleep(ms(5)).await;
        assert_eq!(bench.holding("door"), 0);
    }
    assert_eq!(bench.connects(), connects);
}

#[tokio::test(start_paused = true)]
async fn b18_a_connection_cut_after_any_byte_leaves_no_key_and_comes_back() {
    let bench = Bench::new(3);
    let (redlock, valve) = client(&bench).await;
    for passing in (0..900).step_by(7) {
        valve.left.store(passing, Ordering::SeqCst);
        let acquired = redlock.try_acquire("door").ttl(secs(3_600)).await;
        if let Ok(guard) = acquired {
            let _deadline = guard.extend(secs(7_200)).await;
            let _outcome = guard.release().await;
        }
        let mut events = redlock.events();
        valve.left.store(usize::MAX, Ordering::SeqCst);
        // Whatever is owed is paid once the nodes are back.
        sleep(secs(30)).await;
        all_ready(&redlock).await;
        assert_eq!(bench.keys(), 0, "{passing} bytes passed");
        assert!(!matches!(events.try_next(), Some(Event::Closed)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_driver_with_much_to_read_lets_others_have_their_turn() {
    let bench = Bench::new(3);
    let turns = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&turns);
    let other = tokio::spawn(async move {
        loop {
            counting.fetch_add(1, Ordering::SeqCst);
            let mut has_waited = false;
            core::future::poll_fn(|cx| {
                cx.waker().wake_by_ref();
                if core::mem::replace(&mut has_waited, true) { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
    });
    // Each handshake answers some hundred bytes, which are read one by one.
    let (_redlock, _valve) = client(&bench).await;
    other.abort();
    let turns = turns.load(Ordering::SeqCst);
    assert!(turns > 5, "{turns}");
}
