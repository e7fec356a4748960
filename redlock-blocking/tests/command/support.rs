//! Nodes to lock on, and the command under a watch.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Instant;

use redlock_core::sim::{Dialect, Server, TcpNode};
use rustix::process::{Pid, Signal, kill_process};

/// Far longer than anything here takes, on a busy machine too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

static SEED: AtomicU64 = AtomicU64::new(1);

/// Five independent nodes, of all dialects.
pub(crate) struct Fleet {
    pub(crate) nodes: Vec<TcpNode>,
}

impl Fleet {
    pub(crate) fn new() -> Self {
        let dialects = Dialect::ALL.into_iter().chain([Dialect::Valkey9]);
        let node =
            |dialect| TcpNode::start(Server::new(dialect, SEED.fetch_add(1, Ordering::Relaxed))).unwrap();
        Self { nodes: dialects.map(node).collect() }
    }

    pub(crate) fn urls(&self) -> String {
        let urls: Vec<String> = self.nodes.iter().map(|node| format!("redis://{}", node.addr())).collect();
        urls.join(",")
    }

    /// A node's address.
    pub(crate) fn url(&self, node: usize) -> String {
        format!("redis://{}", self.nodes[node].addr())
    }

    /// `redlock` with these nodes and arguments, split at blanks.
    pub(crate) fn redlock(&self, line: &str) -> Command {
        let mut command = redlock(line);
        command.env("REDLOCK_NODES", self.urls());
        command
    }

    /// What each node holds under this name.
    pub(crate) fn values(&self, key: &str) -> Vec<Option<Vec<u8>>> {
        self.nodes.iter().map(|node| node.with(|server, now| server.value(key.as_bytes(), now))).collect()
    }

    /// How long each node will still hold it; 0 where it does not.
    pub(crate) fn left(&self, key: &str) -> Vec<Duration> {
        let left = |node: &TcpNode| node.with(|server, now| server.pttl(key.as_bytes(), now));
        let span = |millis: Option<i64>| Duration::from_millis(millis.unwrap_or(0).try_into().unwrap_or(0));
        self.nodes.iter().map(|node| span(left(node))).collect()
    }

    pub(crate) fn is_free(&self, key: &str) -> bool {
        self.values(key).iter().all(Option::is_none)
    }

    /// Somebody else takes it, on all nodes.
    pub(crate) fn occupy(&self, key: &str) {
        for node in &self.nodes {
            node.with(|server, now| server.put(key.as_bytes(), b"rival", Some(PATIENCE * 2), now));
        }
    }

    /// Somebody deletes it on the first so many nodes.
    pub(crate) fn delete(&self, key: &str, count: usize) {
        for node in &self.nodes[..count] {
            node.with(|server, now| server.remove(key.as_bytes(), now));
        }
    }

    /// `redlock run` with these nodes and arguments, split at blanks; what is one argument is put after it.
    pub(crate) fn run(&self, line: &str) -> Command {
        let mut command = redlock(&format!("run {line}"));
        command.env("REDLOCK_NODES", self.urls());
        command
    }
}

/// The command with these arguments, split at blanks.
pub(crate) fn redlock(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redlock"));
    command.args(line.split_whitespace()).env_remove("REDLOCK_NODES").env_remove("NO_COLOR");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// How a run of the command went.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

/// Runs it to its end.
pub(crate) fn outcome(command: Command) -> Outcome {
    Running::start(command).finish()
}

/// The command while it runs. Killed when the test is over, whatever happened.
pub(crate) struct Running {
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
    start: Instant,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let start = Instant::now();
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().map(BufReader::new);
        Self { child, stdout, start }
    }

    /// The next line of its output.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.as_mut().unwrap().read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub(crate) fn type_in(&mut self, text: &str) {
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end, and reads the rest of what it says.
    pub(crate) fn finish(mut self) -> Outcome {
        until("the command to end", || self.child.try_wait().unwrap().is_some());
        let took = self.start.elapsed();
        let code = self.child.wait().unwrap().code();
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        Outcome { code, stdout, stderr, took }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Waits until it is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Polls until it is so, or the span is over.
pub(crate) fn within(span: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + span;
    loop {
        if is_so() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// A file of this test's own, that does not exist yet.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let number = SEED.fetch_add(1, Ordering::Relaxed);
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = path.join(format!("command-{}-{number}-{name}", std::process::id()));
    drop(fs::remove_file(&path));
    path
}

pub(crate) fn size(path: &PathBuf) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}
