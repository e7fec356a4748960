//! Clusters of nodes: simulated ones in this process, and real servers in processes of their own.

#[path = "../../../redlock-core/tests/programs/mod.rs"]
mod programs;

pub use programs::paths as programs;

use super::{eventually, within};
use core::time::Duration;
use redlock_core::sim::{Condition, Dialect, Memory, Server, TcpNode};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Independent nodes on loopback, and what can be done to them. Those that are dropped are gone.
pub trait Cluster: Sync {
    /// Where the nodes are.
    fn addrs(&self) -> Vec<SocketAddr>;

    /// Their addresses, as a client takes them.
    fn urls(&self) -> Vec<String> {
        self.addrs().iter().map(|addr| format!("redis://{addr}")).collect()
    }

    /// The process dies.
    fn kill(&self, node: usize);
    /// It is started again on the same port, empty.
    fn restart(&self, node: usize);
    /// The process is stopped: it accepts, and answers nothing.
    fn freeze(&self, node: usize);
    /// It goes on.
    fn thaw(&self, node: usize);
    /// All its connections are closed.
    fn cut(&self, node: usize);
    /// Everyone needs this password from now on. Before any client connects.
    fn set_password(&self, node: usize, password: &str);
    /// It is a replica from now on.
    fn make_replica(&self, node: usize);
    /// It tells nobody of changes. Before any client connects.
    fn refuse_tracking(&self, node: usize);
    /// It forgets all scripts.
    fn flush_scripts(&self, node: usize);
    /// The value of a key.
    fn value(&self, node: usize, key: &str) -> Option<Vec<u8>>;
    /// What is left of a key's time.
    fn ttl(&self, node: usize, key: &str) -> Option<Duration>;
    /// Sets a key, as another client would.
    fn put(&self, node: usize, key: &str, value: &str, ttl: Option<Duration>);
    /// Removes a key, as an operator would.
    fn remove(&self, node: usize, key: &str);
    /// How many keys there are.
    fn keys(&self, node: usize) -> usize;
}

/// Starts a cluster of so many nodes.
pub type Make<'a> = dyn Fn(usize) -> Box<dyn Cluster> + 'a;

// ---- simulated ----

pub struct Simulated {
    nodes: Vec<TcpNode>,
}

static SEED: AtomicU64 = AtomicU64::new(1);

impl Simulated {
    /// Nodes of all dialects, in turn.
    pub fn start(count: usize) -> Box<dyn Cluster> {
        let nodes = (0..count).map(|index| TcpNode::start(Self::server(index)).unwrap()).collect();
        Box::new(Self { nodes })
    }

    fn server(index: usize) -> Server {
        Server::new(Dialect::ALL[index % Dialect::ALL.len()], SEED.fetch_add(1, Ordering::Relaxed))
    }
}

impl Cluster for Simulated {
    fn addrs(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(TcpNode::addr).collect()
    }

    fn kill(&self, node: usize) {
        self.nodes[node].kill();
    }

    fn restart(&self, node: usize) {
        self.nodes[node].revive(Memory::Lose).unwrap();
    }

    fn freeze(&self, node: usize) {
        self.nodes[node].freeze();
    }

    fn thaw(&self, node: usize) {
        self.nodes[node].thaw();
    }

    fn cut(&self, node: usize) {
        self.nodes[node].cut_connections();
    }

    fn set_password(&self, node: usize, password: &str) {
        self.nodes[node].with(|server, _| *server = Self::server(node).with_password(password));
    }

    fn make_replica(&self, node: usize) {
        self.nodes[node].with(|server, _| server.set_condition(Some(Condition::Readonly)));
    }

    fn refuse_tracking(&self, node: usize) {
        self.nodes[node].with(|server, _| server.fail_always("client|tracking", "ERR not here"));
    }

    fn flush_scripts(&self, node: usize) {
        let mut client = TcpStream::connect(self.nodes[node].addr()).unwrap();
        assert_eq!(ask(&mut client, &["SCRIPT", "FLUSH"]), Said::Line("+OK".into()));
    }

    fn value(&self, node: usize, key: &str) -> Option<Vec<u8>> {
        self.nodes[node].with(|server, now| server.value(key.as_bytes(), now))
    }

    fn ttl(&self, node: usize, key: &str) -> Option<Duration> {
        let left = self.nodes[node].with(|server, now| server.pttl(key.as_bytes(), now))?;
        u64::try_from(left).ok().map(Duration::from_millis)
    }

    fn put(&self, node: usize, key: &str, value: &str, ttl: Option<Duration>) {
        self.nodes[node].with(|server, now| server.put(key.as_bytes(), value.as_bytes(), ttl, now));
    }

    fn remove(&self, node: usize, key: &str) {
        self.nodes[node].with(|server, now| server.remove(key.as_bytes(), now));
    }

    fn keys(&self, node: usize) -> usize {
        self.nodes[node].with(|server, now| server.keys(now).len())
    }
}

// ---- real ----

/// Real servers, of one program.
pub struct Real {
    program: PathBuf,
    servers: Vec<Process>,
    folder: Folder,
}

struct Process {
    addr: SocketAddr,
    child: Mutex<Child>,
    /// A connection to look at it.
    client: Mutex<Option<TcpStream>>,
    password: Mutex<Option<String>>,
}

/// A temporary folder, removed with its contents.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let number = SEED.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("redlock-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

impl Process {
    fn start(program: &Path, folder: &Path, port: Option<u16>, args: &[&str]) -> Self {
        // A port that was free a moment ago may be taken by now.
        for _ in 0..20 {
            let port = port.unwrap_or_else(free_port);
            let child = Self::spawn(program, folder, port, args);
            let addr = SocketAddr::from(([127, 0, 0, 1], port));
            let process =
                Self { addr, child: Mutex::new(child), client: Mutex::new(None), password: Mutex::new(None) };
            if process.is_up() {
                return process;
            }
        }
        panic!("{} does not start", program.display());
    }

    fn spawn(program: &Path, folder: &Path, port: u16, args: &[&str]) -> Child {
        let mut command = Command::new(program);
        command.args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ]);
        command.args(["--daemonize", "no", "--loglevel", "warning", "--enable-debug-command", "yes"]);
        command.arg("--dir").arg(folder);
        command.arg("--unixsocket").arg(folder.join(format!("{port}.sock")));
        command.args(args);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Whether it listens. Another process may have the port, another test's server too: then this one ends.
    fn is_up(&self) -> bool {
        let mut is_ours = false;
        within(Duration::from_secs(10), || {
            let ended = self.child.lock().unwrap().try_wait().unwrap().is_some();
            is_ours = !ended && self.answers();
            ended || is_ours
        });
        is_ours
    }

    /// Whether it is this process that answers at its port.
    fn answers(&self) -> bool {
        let id = format!("process_id:{}\r\n", self.child.lock().unwrap().id());
        let Ok(mut client) = TcpStream::connect(self.addr) else { return false };
        let (mut info, mut buffer) = (Vec::new(), [0; 4096]);
        let asked = client.write_all(b"INFO server\r\n");
        client.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        while asked.is_ok() && !String::from_utf8_lossy(&info).contains(&id) {
            match client.read(&mut buffer) {
                Ok(length @ 1..) => info.extend_from_slice(&buffer[..length]),
                Ok(_) | Err(_) => return false,
            }
        }
        asked.is_ok()
    }

    fn signal(&self, signal: Signal) {
        let id = self.child.lock().unwrap().id();
        let pid = Pid::from_raw(i32::try_from(id).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    fn end(&self) {
        let mut child = self.child.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let _gone = child.kill();
        let _reaped = child.wait();
        *self.client.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
    }

    fn ask(&self, command: &[&str]) -> Said {
        let mut slot = self.client.lock().unwrap();
        if slot.is_none() {
            let mut client = TcpStream::connect(self.addr).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            if let Some(password) = &*self.password.lock().unwrap() {
                assert_eq!(ask(&mut client, &["AUTH", password]), Said::Line("+OK".into()));
            }
            *slot = Some(client);
        }
        ask(slot.as_mut().unwrap(), command)
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Real {
    pub fn start(program: &Path, count: usize) -> Box<dyn Cluster> {
        let folder = Folder::new();
        let servers = (0..count).map(|_| Process::start(program, &folder.0, None, &[])).collect();
        Box::new(Self { program: program.to_path_buf(), servers, folder })
    }

    /// Where the Unix sockets of its servers are.
    pub fn sockets(program: &Path, count: usize) -> (Box<dyn Cluster>, Vec<PathBuf>) {
        let folder = Folder::new();
        let servers: Vec<Process> =
            (0..count).map(|_| Process::start(program, &folder.0, None, &[])).collect();
        let path = |server: &Process| folder.0.join(format!("{}.sock", server.addr.port()));
        let paths = servers.iter().map(path).collect();
        (Box::new(Self { program: program.to_path_buf(), servers, folder }), paths)
    }
}

/// One real server, for what the behaviours do not do to theirs.
pub struct RealServer {
    process: Process,
    _folder: Folder,
}

impl RealServer {
    /// With these arguments beside those of every test's server.
    pub fn start(program: &Path, args: &[&str]) -> Self {
        let folder = Folder::new();
        Self { process: Process::start(program, &folder.0, None, args), _folder: folder }
    }

    pub fn addr(&self) -> SocketAddr {
        self.process.addr
    }

    /// What it answers.
    pub fn ask(&self, command: &[&str]) -> Said {
        self.process.ask(command)
    }

    pub fn freeze(&self) {
        self.process.signal(Signal::STOP);
    }
}

impl Cluster for Real {
    fn addrs(&self) -> Vec<SocketAddr> {
        self.servers.iter().map(|server| server.addr).collect()
    }

    fn kill(&self, node: usize) {
        self.servers[node].end();
    }

    fn restart(&self, node: usize) {
        let server = &self.servers[node];
        let mut started = false;
        // The port may still be in use for a moment.
        eventually("the server starts again", || {
            *server.child.lock().unwrap() =
                Process::spawn(&self.program, &self.folder.0, server.addr.port(), &[]);
            started = server.is_up();
            started
        });
    }

    fn freeze(&self, node: usize) {
        self.servers[node].signal(Signal::STOP);
    }

    fn thaw(&self, node: usize) {
        self.servers[node].signal(Signal::CONT);
    }

    fn cut(&self, node: usize) {
        let killed = self.servers[node].ask(&["CLIENT", "KILL", "SKIPME", "yes", "TYPE", "normal"]);
        assert!(matches!(killed, Said::Line(_)), "{killed:?}");
    }

    fn set_password(&self, node: usize, password: &str) {
        *self.servers[node].password.lock().unwrap() = Some(password.into());
        let mut client = TcpStream::connect(self.servers[node].addr).unwrap();
        let said = ask(&mut client, &["CONFIG", "SET", "requirepass", password]);
        assert_eq!(said, Said::Line("+OK".into()));
    }

    fn make_replica(&self, node: usize) {
        let port = free_port().to_string();
        assert_eq!(self.servers[node].ask(&["REPLICAOF", "127.0.0.1", &port]), Said::Line("+OK".into()));
    }

    fn refuse_tracking(&self, node: usize) {
        let said = self.servers[node].ask(&["ACL", "SETUSER", "default", "-client|tracking"]);
        assert_eq!(said, Said::Line("+OK".into()));
    }

    fn flush_scripts(&self, node: usize) {
        assert_eq!(self.servers[node].ask(&["SCRIPT", "FLUSH"]), Said::Line("+OK".into()));
    }

    fn value(&self, node: usize, key: &str) -> Option<Vec<u8>> {
        match self.servers[node].ask(&["GET", key]) {
            Said::Bulk(value) => value,
            Said::Line(line) => panic!("GET answers {line}"),
        }
    }

    fn ttl(&self, node: usize, key: &str) -> Option<Duration> {
        let Said::Line(line) = self.servers[node].ask(&["PTTL", key]) else {
            panic!("PTTL answers no number")
        };
        line.trim_start_matches(':').parse().ok().map(Duration::from_millis)
    }

    fn put(&self, node: usize, key: &str, value: &str, ttl: Option<Duration>) {
        let said = match ttl {
            Some(ttl) => self.servers[node].ask(&["SET", key, value, "PX", &ttl.as_millis().to_string()]),
            None => self.servers[node].ask(&["SET", key, value]),
        };
        assert_eq!(said, Said::Line("+OK".into()));
    }

    fn remove(&self, node: usize, key: &str) {
        self.servers[node].ask(&["DEL", key]);
    }

    fn keys(&self, node: usize) -> usize {
        let Said::Line(line) = self.servers[node].ask(&["DBSIZE"]) else {
            panic!("DBSIZE answers no number")
        };
        line.trim_start_matches(':').parse().unwrap()
    }
}

// ---- a client that knows nothing ----

#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    /// A status, an error or a number, with its first byte.
    Line(String),
    Bulk(Option<Vec<u8>>),
}

/// Asks, and reads one reply.
pub fn ask(client: &mut TcpStream, command: &[&str]) -> Said {
    let mut request = format!("*{}\r\n", command.len()).into_bytes();
    for part in command {
        request.extend(format!("${}\r\n{part}\r\n", part.len()).bytes());
    }
    client.write_all(&request).unwrap();
    let line = read_line(client);
    match line.strip_prefix('$') {
        None => Said::Line(line),
        Some("-1") => Said::Bulk(None),
        Some(length) => {
            let mut value = vec![0; length.parse::<usize>().unwrap() + 2];
            client.read_exact(&mut value).unwrap();
            value.truncate(value.len() - 2);
            Said::Bulk(Some(value))
        }
    }
}

fn read_line(client: &mut TcpStream) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        line.push(byte[0]);
    }
    line.truncate(line.len() - 2);
    String::from_utf8(line).unwrap()
}
