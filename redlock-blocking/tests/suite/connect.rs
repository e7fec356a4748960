//! Connecting, and why it fails.

use super::proxy::Proxy;
use super::{Make, all_ready, client, eventually, ms, no_key, timed};
use core::net::SocketAddr;
use core::time::Duration;
use redlock_blocking::{BuildError, ConfigError, ConnectError, NodeFault, NodeState, Redlock};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// What is wrong with something that should be a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nobody listens.
    Refuses,
    /// It accepts, and says nothing.
    Silent,
    /// It closes every connection at once.
    Closes,
    /// It closes in the middle of its first reply.
    ClosesMidReply,
    /// It speaks another protocol.
    Http,
    /// It says what nobody understands.
    Garbage,
    /// Its name does not resolve.
    Nameless,
}

impl Fault {
    pub const ALL: [Self; 7] = [
        Self::Refuses,
        Self::Silent,
        Self::Closes,
        Self::ClosesMidReply,
        Self::Http,
        Self::Garbage,
        Self::Nameless,
    ];

    const fn says(self) -> &'static [u8] {
        match self {
            Self::Refuses | Self::Silent | Self::Closes | Self::Nameless => b"",
            Self::ClosesMidReply => b"%7\r\n$6\r\nserv",
            Self::Http => b"HTTP/1.1 400 Bad Request\r\n\r\n",
            Self::Garbage => b"\x15\x03\x03\x00\x02\x02\x50",
        }
    }
}

/// Something that is no node.
pub struct Bad {
    url: String,
    addr: SocketAddr,
    is_dropped: Arc<AtomicBool>,
}

impl Bad {
    pub fn start(fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let is_dropped = Arc::new(AtomicBool::new(false));
        let url = match fault {
            Fault::Nameless => format!("redis://no-such-host.invalid:{}", addr.port()),
            Fault::Refuses
            | Fault::Silent
            | Fault::Closes
            | Fault::ClosesMidReply
            | Fault::Http
            | Fault::Garbage => format!("redis://{addr}"),
        };
        let stop = Arc::clone(&is_dropped);
        if !matches!(fault, Fault::Refuses | Fault::Nameless) {
            thread::spawn(move || {
                let mut silent = Vec::new();
                for stream in listener.incoming().flatten() {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    match fault {
                        Fault::Silent => silent.push(stream),
                        Fault::Closes => drop(stream),
                        Fault::Refuses
                        | Fault::Nameless
                        | Fault::ClosesMidReply
                        | Fault::Http
                        | Fault::Garbage => answer(stream, fault.says()),
                    }
                }
            });
        }
        Self { url, addr, is_dropped }
    }

    pub fn url(&self) -> String {
        self.url.clone()
    }
}

fn answer(mut stream: TcpStream, says: &[u8]) {
    if stream.read(&mut [0; 1024]).is_ok() {
        let _gone = stream.write_all(says);
    }
}

impl Drop for Bad {
    fn drop(&mut self) {
        self.is_dropped.store(true, Ordering::SeqCst);
        // The thread is in `accept`.
        drop(TcpStream::connect(self.addr));
    }
}

fn refused(error: BuildError) -> ConnectError {
    match error {
        BuildError::Connect(error) => error,
        other => panic!("not about the nodes: {other}"),
    }
}

pub fn r27_a_quorum_is_enough(make: &Make<'_>) {
    let cluster = make(3);
    cluster.kill(1);
    let (redlock, took) = timed(|| Redlock::connect(cluster.urls()).unwrap());
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(redlock.acquire("door").lock().unwrap().is_held());
    cluster.restart(1);
    all_ready(&redlock);
}

pub fn r27_a_lazy_client_can_be_used_at_once(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = Redlock::builder().nodes(cluster.urls()).connect_lazy().unwrap();
    let guard = redlock.try_acquire("door").lock().unwrap();
    assert!(guard.is_held());
    drop(guard);
    drop(redlock);
    no_key(&*cluster, "door");
    // What was never used ends, too.
    drop(Redlock::builder().nodes(cluster.urls()).connect_lazy().unwrap());
}

pub fn r27_refused_by_all_is_final_and_named(make: &Make<'_>) {
    let cluster = make(3);
    cluster.kill(0);
    cluster.kill(2);
    let (error, took) = timed(|| refused(Redlock::connect(cluster.urls()).unwrap_err()));
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(!error.timed_out);
    assert_eq!(error.needed, 2);
    let text = error.to_string();
    for node in [0, 2] {
        assert!(text.contains(&cluster.addrs()[node].to_string()), "{text}");
    }
    assert!(text.contains("refused"), "{text}");
    let names = ["redis://no-such-host.invalid:1", "redis://no-such-host.invalid:2"];
    let (error, took) = timed(|| refused(Redlock::builder().nodes(names).connect().unwrap_err()));
    assert!(
        took < Duration::from_secs(8) && error.to_string().contains("no-such-host.invalid"),
        "{took:?} {error}"
    );
}

pub fn r27_silence_ends_at_the_connect_timeout(make: &Make<'_>) {
    let cluster = make(1);
    let silent = [Bad::start(Fault::Silent), Bad::start(Fault::Silent)];
    let urls = [cluster.urls(), vec![silent[0].url(), silent[1].url()]].concat();
    let builder = Redlock::builder().nodes(urls).connect_timeout(ms(300));
    let (error, took) = timed(|| refused(builder.connect().unwrap_err()));
    assert!(took >= ms(290) && took < Duration::from_secs(2), "{took:?}");
    assert!(error.timed_out, "{error}");
    assert_eq!((error.ready, error.needed), (1, 2), "{error}");
    for bad in &silent {
        assert!(error.to_string().contains(&bad.url()), "{error}");
    }
}

pub fn b35_a_wrong_password_is_told_and_never_shown(make: &Make<'_>) {
    let cluster = make(2);
    (0..2).for_each(|node| cluster.set_password(node, "right-secret"));
    let urls = |password: &str| -> Vec<String> {
        cluster.addrs().iter().map(|addr| format!("redis://:{password}@{addr}")).collect()
    };
    let (error, took) = timed(|| refused(Redlock::connect(urls("wrong-secret")).unwrap_err()));
    assert!(took < Duration::from_secs(2), "{took:?}");
    let texts = format!("{error} {error:?}");
    assert!(texts.contains("login refused"), "{texts}");
    assert!(!texts.contains("secret"), "{texts}");
    let error = refused(Redlock::connect(cluster.urls()).unwrap_err());
    assert!(error.to_string().contains("NOAUTH"), "{error}");
    let redlock = Redlock::connect(urls("right-secret")).unwrap();
    assert!(redlock.acquire("door").lock().unwrap().is_held());
    assert!(!format!("{redlock:?} {:?}", redlock.nodes()).contains("secret"));
}

pub fn r23_replicas_are_told(make: &Make<'_>) {
    let cluster = make(3);
    cluster.make_replica(0);
    let redlock = Redlock::connect(cluster.urls()).unwrap();
    eventually("the replica is told", || match &redlock.nodes()[0].state {
        NodeState::Down { fault, .. } | NodeState::Connecting(Some(fault)) => *fault == NodeFault::Replica,
        _ => false,
    });
    assert!(redlock.acquire("door").lock().unwrap().is_held());
    cluster.make_replica(1);
    let error = refused(Redlock::connect(cluster.urls()).unwrap_err());
    assert!(error.to_string().contains("is a replica"), "{error}");
}

pub fn b35_what_is_no_redis_is_told(_: &Make<'_>) {
    let bad = [Bad::start(Fault::Http), Bad::start(Fault::Http)];
    let (error, took) = timed(|| refused(Redlock::connect(bad.iter().map(Bad::url)).unwrap_err()));
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(error.to_string().contains("not a Redis"), "{error}");
    let bad = [Bad::start(Fault::Closes), Bad::start(Fault::Closes)];
    let builder = Redlock::builder().nodes(bad.iter().map(Bad::url)).connect_timeout(ms(500));
    let error = refused(builder.connect().unwrap_err());
    assert!(error.to_string().contains("closed the connection before"), "{error}");
    assert!(matches!(Redlock::connect(Vec::<String>::new()), Err(BuildError::Config(ConfigError::NoNodes))));
    let error = Redlock::connect(["redis://host:99999"]).unwrap_err();
    assert!(error.to_string().contains("port"), "{error}");
}

pub fn r12_one_server_twice_is_refused_with_both_names(_: &Make<'_>) {
    let same = ["redis://LOCALHOST:7000", "redis://localhost:7000/1", "redis://localhost:7001"];
    let error = Redlock::connect(same).unwrap_err();
    assert!(matches!(error, BuildError::Config(ConfigError::DuplicateNode { .. })), "{error}");
    let text = error.to_string();
    assert!(text.contains("localhost:7000") && text.contains("localhost:7000/1"), "{text}");
}

pub fn r24_a_second_name_is_found_by_the_handshake(make: &Make<'_>) {
    let cluster = make(3);
    let proxy = Proxy::start(cluster.addrs()[0]);
    let urls = [vec![proxy.url()], cluster.urls()].concat();
    let redlock = Redlock::connect(urls).unwrap();
    eventually("the second name is told", || {
        let faults = redlock.nodes().into_iter().filter_map(|node| match node.state {
            NodeState::Down { fault, .. }
            | NodeState::Unusable(fault)
            | NodeState::Connecting(Some(fault)) => Some(fault),
            _ => None,
        });
        faults.into_iter().any(|fault| matches!(fault, NodeFault::Duplicate { .. }))
    });
}

pub fn b37_localhost_and_names_connect(make: &Make<'_>) {
    let cluster = make(2);
    // `localhost` is also ::1, where nobody listens; the other is a name for the resolver, where this host has one.
    let hosts = ["localhost".to_string(), name_of_loopback()];
    let urls =
        cluster.addrs().into_iter().zip(hosts).map(|(addr, host)| format!("redis://{host}:{}", addr.port()));
    let (redlock, took) = timed(|| Redlock::connect(urls).unwrap());
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(redlock.acquire("door").lock().unwrap().is_held());
    drop(client(&*cluster));
}

/// What the system says of the client's own sockets: the timer of one that stands idle is that of its keep-alive. That
/// it is set to 30 s, and that small packets are not held back, is read from sockets in each adapter's own tests.
pub fn b38_idle_connections_are_kept_alive(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    assert!(redlock.acquire("door").lock().unwrap().is_held());
    if cfg!(target_os = "linux") {
        for addr in cluster.addrs() {
            eventually("its timer is that of the keep-alive", || timers_towards(addr) == ["02"]);
        }
    }
}

/// The timers of all connections to an address on this machine that stand.
fn timers_towards(addr: SocketAddr) -> Vec<String> {
    let sockets = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let port = format!(":{:04X}", addr.port());
    let timer = |line: &str| {
        let mut fields = line.split_whitespace().skip(2);
        let (remote, state) = (fields.next()?, fields.next()?);
        let timer = fields.nth(1)?.split(':').next()?;
        (remote.ends_with(&port) && state == "01").then(|| timer.to_owned())
    };
    sockets.lines().filter_map(timer).collect()
}

fn name_of_loopback() -> String {
    let host = std::process::Command::new("uname").arg("-n").output().unwrap().stdout;
    let names = ["localhost.".to_string(), String::from_utf8(host).unwrap().trim().to_string()];
    let is_loopback = |name: &&String| {
        (name.as_str(), 1)
            .to_socket_addrs()
            .is_ok_and(|mut found| found.any(|addr| addr.ip().to_string() == "127.0.0.1"))
    };
    names.iter().find(is_loopback).cloned().unwrap_or_else(|| "localhost".into())
}
