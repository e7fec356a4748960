//! TLS in front of a node, and what goes wrong with it.
#![allow(unreachable_pub, reason = "as in the other helpers of tests")]

use super::server::authority;
use rcgen::{CertificateParams, DnType, KeyPair};
use redlock_tls::Tls;
use redlock_tls::rustls::crypto::ring;
use redlock_tls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use redlock_tls::rustls::{ServerConfig, ServerConnection};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// How a connection ends.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// As it should: with a `close_notify`.
    Farewell,
    /// Between two records, without one.
    Cut,
    /// In the middle of a record.
    CutRecord,
}

impl End {
    pub const ALL: [Self; 3] = [Self::Farewell, Self::Cut, Self::CutRecord];
}

/// What answers behind it.
pub enum Behind {
    /// Nobody, not even TLS.
    Silence,
    /// Nobody, and it closes when it is spoken to.
    Farewell,
    /// TLS, but then nobody.
    Nobody,
    /// A node.
    Node(SocketAddr),
}

/// A server for `localhost` of an authority of its own.
pub struct Front {
    addr: SocketAddr,
    authority: Vec<u8>,
    shared: Arc<Shared>,
}

struct Shared {
    behind: Behind,
    config: Arc<ServerConfig>,
    /// From the first command that names a resource on, so many bytes of replies pass; then the connection ends like this.
    cut: Mutex<Option<(usize, End)>>,
    accepted: AtomicUsize,
    cuts: AtomicUsize,
    streams: Mutex<Vec<TcpStream>>,
    is_dropped: AtomicBool,
}

impl Front {
    pub fn start(behind: Behind) -> Self {
        let (ca, key) = (authority(), KeyPair::generate().unwrap());
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "localhost");
        let chain = vec![CertificateDer::from(params.signed_by(&key, &ca).unwrap().der().to_vec())];
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, PrivatePkcs8KeyDer::from(key.serialize_der()).into())
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            behind,
            config: Arc::new(config),
            cut: Mutex::default(),
            accepted: AtomicUsize::new(0),
            cuts: AtomicUsize::new(0),
            streams: Mutex::default(),
            is_dropped: AtomicBool::new(false),
        });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if serving.is_dropped.load(Ordering::SeqCst) {
                    return;
                }
                serving.accepted.fetch_add(1, Ordering::SeqCst);
                serving.serve(client);
            }
        });
        Self { addr, authority: ca.der().to_vec(), shared }
    }

    /// Two addresses, at one of which nobody listens.
    pub fn url(&self) -> String {
        format!("rediss://localhost:{}", self.addr.port())
    }

    /// What trusts it.
    pub fn tls(&self) -> Tls {
        Tls::builder().ca_der(self.authority.clone()).build().unwrap()
    }

    /// How many connections there were.
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// How many of them ended within a reply.
    pub fn cuts(&self) -> usize {
        self.shared.cuts.load(Ordering::SeqCst)
    }

    /// Connections end within the replies to commands that name the resource `door`, which begin after this.
    pub fn cut_after(&self, bytes: usize, end: End) {
        *self.shared.cut.lock().unwrap() = Some((bytes, end));
    }

    /// Connections do not end any more.
    pub fn heal(&self) {
        *self.shared.cut.lock().unwrap() = None;
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.shared.is_dropped.store(true, Ordering::SeqCst);
        for stream in self.shared.streams.lock().unwrap().drain(..) {
            let _gone = stream.shutdown(Shutdown::Both);
        }
        // The thread is in `accept`.
        drop(TcpStream::connect(self.addr));
    }
}

/// One connection.
struct Relay {
    client: TcpStream,
    tls: Mutex<ServerConnection>,
    /// How many bytes of replies still pass, where they are counted.
    left: Mutex<Option<(usize, End)>>,
}

impl Shared {
    fn serve(self: &Arc<Self>, client: TcpStream) {
        self.streams.lock().unwrap().push(client.try_clone().unwrap());
        let node = match &self.behind {
            Behind::Silence => return,
            Behind::Farewell => {
                let _gone = ((&client).read(&mut [0; 1024]), client.shutdown(Shutdown::Both));
                return;
            }
            Behind::Nobody => None,
            Behind::Node(addr) => Some(TcpStream::connect(addr).unwrap()),
        };
        client.set_nodelay(true).unwrap();
        let tls = Mutex::new(ServerConnection::new(Arc::clone(&self.config)).unwrap());
        let relay = Arc::new(Relay { client, tls, left: Mutex::default() });
        if let Some(node) = &node {
            let (shared, relay, mut node) = (Arc::clone(self), Arc::clone(&relay), node.try_clone().unwrap());
            thread::spawn(move || {
                let mut buffer = [0; 16 * 1024];
                while let Ok(length @ 1..) = node.read(&mut buffer) {
                    let is_cutting = shared.cut.lock().unwrap().is_some();
                    let passing = relay.passing(length).filter(|_| is_cutting);
                    // Counted before anybody sees it.
                    shared.cuts.fetch_add(usize::from(passing.is_some()), Ordering::SeqCst);
                    relay.answer(&buffer[..length], passing);
                    if passing.is_some() {
                        break;
                    }
                }
                let _gone = (relay.client.shutdown(Shutdown::Both), node.shutdown(Shutdown::Both));
            });
        }
        let shared = Arc::clone(self);
        thread::spawn(move || {
            while let Some(said) = relay.listen() {
                if said.windows(4).any(|bytes| bytes == b"door") {
                    let mut left = relay.left.lock().unwrap();
                    *left = left.or(*shared.cut.lock().unwrap());
                }
                if let Some(mut node) = node.as_ref() {
                    let _gone = node.write_all(&said);
                }
            }
            let _gone =
                (relay.client.shutdown(Shutdown::Both), node.map(|node| node.shutdown(Shutdown::Both)));
        });
    }
}

impl Relay {
    /// What the client says next; none at its end.
    fn listen(&self) -> Option<Vec<u8>> {
        let (mut buffer, mut said) = ([0; 16 * 1024], Vec::new());
        let length = (&self.client).read(&mut buffer).ok().filter(|&length| length > 0)?;
        let mut tls = self.tls.lock().unwrap();
        let mut rest = &buffer[..length];
        while !rest.is_empty() {
            tls.read_tls(&mut rest).ok()?;
            let heard = tls.process_new_packets();
            // It ends with an error when nothing more is there.
            let _read = tls.reader().read_to_end(&mut said);
            heard.ok()?;
        }
        self.send(&mut tls);
        Some(said)
    }

    /// How many of so many bytes still pass, and how it ends then; none where all do.
    fn passing(&self, length: usize) -> Option<(usize, End)> {
        let mut left = self.left.lock().unwrap();
        let (bytes, end) = (*left)?;
        if bytes < length {
            return Some((bytes, end));
        }
        *left = Some((bytes - length, end));
        None
    }

    /// Passes a reply on, as far as it may. Whether the client is still there is seen elsewhere.
    fn answer(&self, reply: &[u8], passing: Option<(usize, End)>) {
        let end = passing.map(|(_, end)| end);
        let mut tls = self.tls.lock().unwrap();
        let (passing, rest) = reply.split_at(passing.map_or(reply.len(), |(bytes, _)| bytes));
        tls.writer().write_all(passing).unwrap();
        self.send(&mut tls);
        match end {
            None | Some(End::Cut) => {}
            Some(End::Farewell) => {
                tls.send_close_notify();
                self.send(&mut tls);
            }
            Some(End::CutRecord) => {
                tls.writer().write_all(rest).unwrap();
                let mut record = Vec::new();
                tls.write_tls(&mut record).unwrap();
                let _gone = (&self.client).write_all(&record[..record.len() - 1]);
            }
        }
    }

    fn send(&self, tls: &mut ServerConnection) {
        while tls.wants_write() && tls.write_tls(&mut &self.client).is_ok() {}
    }
}
