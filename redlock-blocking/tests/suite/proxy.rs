//! Stands between a client and a node, and loses what the node says, or cuts what the client does.

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
    /// How many more bytes of the client pass, all its connections together; the one that has more is cut.
    passes: Mutex<Option<usize>>,
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

    /// Lets so many more bytes of the client through, then cuts its connection there.
    pub fn cut_after(&self, bytes: usize) {
        *self.shared.passes.lock().unwrap() = Some(bytes);
    }

    /// Whether the bytes that may pass were used up, and the connection cut.
    pub fn has_cut(&self) -> bool {
        *self.shared.passes.lock().unwrap() == Some(0)
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
        let shared = Arc::clone(self);
        thread::spawn(move || forward(&asking, &answering, |said| shared.passing(said.len())));
        let shared = Arc::clone(self);
        thread::spawn(move || {
            forward(&server, &client, |said| {
                let loses = shared.loses_reply.swap(false, Ordering::SeqCst);
                shared.lost.fetch_add(usize::from(loses), Ordering::SeqCst);
                if loses { 0 } else { said.len() }
            });
        });
    }
}

impl Shared {
    /// How many of so many bytes of the client pass.
    fn passing(&self, length: usize) -> usize {
        match &mut *self.passes.lock().unwrap() {
            None => length,
            Some(left) => {
                let passing = length.min(*left);
                *left -= passing;
                passing
            }
        }
    }
}

/// Forwards until one side closes, or not all of something may pass; then both are closed.
fn forward(mut from: &TcpStream, mut to: &TcpStream, passes: impl Fn(&[u8]) -> usize) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let passing = passes(&buffer[..length]);
        if to.write_all(&buffer[..passing]).is_err() || passing < length {
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
