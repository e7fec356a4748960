//! Why a lock is not enough, and what a fence adds, with a real store and two real processes.
//!
//! `cargo run -p fenced-store` plays the classic accident: a process takes a lock, reads an account, and is stopped (a long
//! pause, a suspended machine) for longer than its lock lives. Another one takes the lock, and books. Then the first one
//! goes on, and writes what it had computed from the old balance. No lock can prevent that write. The store does: each write
//! carries the fence of its lock, and one with a smaller number than the store has seen is refused.
//!
//! It needs no server: the nodes are simulated ones, on loopback sockets. With `REDLOCK_NODES` set it uses those.

use core::error::Error;
use core::time::Duration;
use redlock_blocking::{Clock as _, Fence, Guard, Instant, Redlock, SystemClock};
use redlock_core::sim::{Dialect, Server, TcpNode};
use rusqlite::{Connection, params};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader, Write as _, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs, thread};

const RESOURCE: &str = "account:1";
const TTL: Duration = Duration::from_millis(500);

type Failure = Box<dyn Error>;

fn main() -> ExitCode {
    let role = env::args().nth(1);
    let result = match role.as_deref() {
        Some("stale") => stale_holder(),
        _ => accident(),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            say(&format!("failed: {error}"));
            ExitCode::FAILURE
        }
    }
}

// ---- the store: what an application has to do ----

fn open(path: &Path) -> Result<Connection, Failure> {
    let store = Connection::open(path)?;
    store.busy_timeout(Duration::from_secs(5))?;
    store.execute_batch(
        "CREATE TABLE IF NOT EXISTS account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, fence INTEGER NOT NULL);
         INSERT OR IGNORE INTO account VALUES (1, 100, 0);",
    )?;
    Ok(store)
}

fn balance(store: &Connection) -> Result<i64, Failure> {
    Ok(store.query_row("SELECT balance FROM account WHERE id = 1", [], |row| row.get(0))?)
}

/// Writes the balance if no later owner of the lock has written: one statement, so that nothing can come in between.
fn write_balance(store: &Connection, balance: i64, fence: Fence) -> Result<bool, Failure> {
    // A counter on a node is a signed 64-bit integer, as SQLite's are.
    let fence = i64::try_from(fence.get())?;
    let written = store.execute(
        "UPDATE account SET balance = ?1, fence = ?2 WHERE id = 1 AND fence <= ?2",
        params![balance, fence],
    )?;
    Ok(written == 1)
}

// ---- the two processes ----

fn lock(redlock: &Redlock) -> Result<(Guard, Fence), Failure> {
    let guard = redlock.acquire(RESOURCE).ttl(TTL).fenced().lock()?;
    let fence = guard.fence().ok_or("asked for a fence and got none")?;
    Ok((guard, fence))
}

/// Takes the lock, reads, looks once more whether it holds the lock, is stopped right there, and writes.
fn stale_holder() -> Result<ExitCode, Failure> {
    let store = open(&PathBuf::from(env::args_os().nth(2).ok_or("which store?")?))?;
    let redlock = Redlock::connect(nodes_of_environment().ok_or("which nodes?")?)?;
    let (guard, fence) = lock(&redlock)?;
    let computed = balance(&store)? - 30;
    if !guard.is_held() {
        return Err("lost the lock before it was stopped".into());
    }
    writeln!(stdout(), "{fence}")?;
    // Here the world stops for this process, for as long as the other one likes.
    stdin().read_line(&mut String::new())?;
    let is_held = guard.is_held();
    let is_written = write_balance(&store, computed, fence)?;
    say(&format!(
        "  the first process goes on: is_held() says {is_held} now; its write with fence {fence} {}",
        if is_written { "went through" } else { "was refused" }
    ));
    Ok(if is_written { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn accident() -> Result<ExitCode, Failure> {
    let (urls, _nodes) = match nodes_of_environment() {
        Some(urls) => (urls, Vec::new()),
        None => simulated_nodes()?,
    };
    let directory = Directory::new()?;
    let path = directory.0.join("store.sqlite");
    let store = open(&path)?;
    say(&format!("an account with a balance of {}, behind a lock", balance(&store)?));

    let mut child = Command::new(env::current_exe()?)
        .arg("stale")
        .arg(&path)
        .env("REDLOCK_NODES", urls.join(","))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no pipe")?).read_line(&mut line)?;
    let stale: u64 = line.trim().parse().map_err(|_| "the first process did not get the lock")?;
    say(&format!(
        "  the first process holds it with fence {stale}, has read 100, wants to write 70, and is stopped"
    ));
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::STOP)?;

    // The second process waits until the lock has run out.
    let redlock = Redlock::connect(&urls)?;
    let (guard, fence) = lock(&redlock)?;
    let new = balance(&store)? - 50;
    let is_written = write_balance(&store, new, fence)?;
    guard.release()?;
    say(&format!(
        "  the second process gets it {TTL:?} later with fence {fence}, and writes {new}: {is_written}"
    ));

    kill_process(pid, Signal::CONT)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(b"go on\n")?;
    }
    let refused = wait(&mut child)?;
    let left = balance(&store)?;
    let is_safe = refused && is_written && left == 50 && fence.get() > stale;
    say(&format!("balance {left}: {}", if is_safe { "nothing was lost" } else { "WRONG" }));
    Ok(if is_safe { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether the child ended well, within a time that nothing here needs.
fn wait(child: &mut std::process::Child) -> Result<bool, Failure> {
    let end = now().saturating_add(Duration::from_secs(20));
    while now() < end {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.kill()?;
    Err("the first process did not end".into())
}

// ---- around them ----

fn nodes_of_environment() -> Option<Vec<String>> {
    let list = env::var("REDLOCK_NODES").ok()?;
    Some(list.split(',').map(str::to_owned).collect())
}

fn simulated_nodes() -> Result<(Vec<String>, Vec<TcpNode>), Failure> {
    let nodes = (1..=3).map(|seed| TcpNode::start(Server::new(Dialect::Valkey9, seed)));
    let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
    Ok((nodes.iter().map(|node| format!("redis://{}", node.addr())).collect(), nodes))
}

fn now() -> Instant {
    SystemClock.now()
}

/// A directory of its own, gone at the end.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Result<Self, Failure> {
        let path = env::temp_dir().join(format!("fenced-store-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// On standard error: the pipe of the first process carries its fence.
fn say(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}
