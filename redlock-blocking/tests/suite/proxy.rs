//! Stands between a client and a node, and loses what the node says.

use core::net::SocketAddr;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Forwards connections to one node.
pub struct Proxy {
    addr: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// The next reply of the node is lost, and its connection with it.
    loses_reply: AtomicBool,
    /// How many replies were lost.
    lost: AtomicUsize,
    streams: Mutex<Vec<TcpStream>>,
    is_dropped: AtomicBool,
}

impl Proxy {
    pub fn start(node: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming() {
                if serving.is_dropped.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(node)) else { continue };
                serving.serve(client, server);
            }
        });
        Self { addr, shared }
    }

    pub fn url(&self) -> String {
        format!("redis://{}", self.addr)
    }

    /// The node gets the next command, its reply is lost, and the connection is cut.
    pub fn lose_next_reply(&self) {
        self.shared.loses_reply.store(true, Ordering::SeqCst);
    }

    /// All replies pass from now on.
    pub fn lose_nothing(&self) {
        self.shared.loses_reply.store(false, Ordering::SeqCst);
    }

    /// How many replies were lost so far.
    pub fn lost(&self) -> usize {
        self.shared.lost.load(Ordering::SeqCst)
    }

    /// Closes all connections.
    pub fn cut(&self) {
        for stream in self.shared.streams.lock().unwrap().drain(..) {
            let _gone = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn serve(self: &Arc<Self>, client: TcpStream, server: TcpStream) {
        let both = [client.try_clone().unwrap(), server.try_clone().unwrap()];
        for stream in &both {
            stream.set_nodelay(true).unwrap();
        }
        self.streams.lock().unwrap().extend(both);
        let (asking, answering) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        thread::spawn(move || forward(&asking, &answering, |_| true));
        let shared = Arc::clone(self);
        thread::spawn(move || {
            forward(&server, &client, |_| {
                let loses = shared.loses_reply.swap(false, Ordering::SeqCst);
                shared.lost.fetch_add(usize::from(loses), Ordering::SeqCst);
                !loses
            });
        });
    }
}

/// Forwards until one side closes or `passes` says no; then both are closed.
fn forward(mut from: &TcpStream, mut to: &TcpStream, passes: impl Fn(&[u8]) -> bool) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if !passes(&buffer[..length]) || to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _gone = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_dropped.store(true, Ordering::SeqCst);
        self.cut();
        // The thread is in `accept`.
        drop(TcpStream::connect(self.addr));
    }
}
