//! Two processes, on real servers and on simulated nodes: one leads, and the other takes over when that one resigns, dies or is
//! stopped; each tick is run once.
#![allow(clippy::unwrap_used, clippy::std_instead_of_alloc, reason = "a test may fail by panicking")]

#[path = "../../../redlock-blocking/tests/suite/mod.rs"]
mod suite;

use core::time::Duration;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use suite::{Make, ms, now};

const TTL: Duration = Duration::from_millis(2_000);
const TICK: &str = "50";
/// No busy machine explains more.
const LONG: Duration = Duration::from_secs(20);

/// A process that stands for election, and what it says.
struct Candidate {
    child: Child,
    said: Receiver<String>,
    /// The ticks that it ran.
    ran: Vec<(u64, u64)>,
}

impl Candidate {
    fn start(urls: &[String], store: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_scheduler"));
        command.arg(store).args([TICK, &TTL.as_millis().to_string()]).env("REDLOCK_NODES", urls.join(","));
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (say, said) = channel();
        thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| say.send(line)));
        let mut candidate = Self { child, said, ran: Vec::new() };
        assert!(candidate.says("stands", LONG), "it does not come so far");
        candidate
    }

    /// Reads what it says until it says this; false if it does not within so long.
    fn says(&mut self, what: &str, within: Duration) -> bool {
        let until = now().saturating_add(within);
        loop {
            match self.said.recv_timeout(until.saturating_duration_since(now())) {
                Ok(line) => {
                    if let Some((_, ran)) = line.split_once(" ran tick ") {
                        let (tick, epoch) = ran.split_once(", epoch ").unwrap();
                        self.ran.push((tick.parse().unwrap(), epoch.parse().unwrap()));
                    }
                    if line.contains(what) {
                        return true;
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Reads what it has said, and expects that nothing of that is of a leader.
    fn follows(&mut self) {
        let before = self.ran.len();
        assert!(!self.says("leads", ms(1)), "two lead");
        assert_eq!(self.ran.len(), before, "two run ticks");
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// What it said to its end.
    fn ended(&mut self) {
        assert!(!self.says("no line has this", LONG));
        self.child.wait().unwrap();
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn one_leads_whatever_happens_to_it(make: &Make<'_>) {
    let cluster = make(5);
    let urls = cluster.urls();
    let name = format!("scheduler-test-{}-{:?}", std::process::id(), thread::current().id());
    let folder = Folder(std::env::temp_dir().join(name));
    std::fs::create_dir_all(&folder.0).unwrap();
    let store = folder.0.join("runs.sqlite");
    let start = || Candidate::start(&urls, &store);

    // One leads and runs the ticks, the other does not.
    let mut first = start();
    assert!(first.says("leads", LONG));
    let mut second = start();
    for _ in 0..20 {
        assert!(first.says("ran tick", LONG));
    }
    second.follows();

    // It dies: the other one leads once its ttl is over.
    first.signal(Signal::KILL);
    let died = now();
    assert!(second.says("leads", LONG));
    let took = now().saturating_duration_since(died);
    assert!(took < TTL + ms(1_500), "{took:?} after it died");
    first.ended();
    assert!(second.says("ran tick", LONG));

    // It resigns: the next one leads at once.
    let mut third = start();
    assert!(second.says("ran tick", LONG));
    third.follows();
    second.signal(Signal::TERM);
    assert!(second.says("resigned: released", LONG));
    let resigned = now();
    assert!(third.says("leads", LONG));
    let took = now().saturating_duration_since(resigned);
    assert!(took < TTL / 2, "{took:?} after it resigned");
    second.ended();

    // It is stopped for longer than its ttl, and goes on: it has lost its term, and follows.
    let mut fourth = start();
    assert!(third.says("ran tick", LONG));
    fourth.follows();
    third.signal(Signal::STOP);
    assert!(fourth.says("leads", LONG));
    for _ in 0..5 {
        assert!(fourth.says("ran tick", LONG));
    }
    third.signal(Signal::CONT);
    assert!(third.says("leads no more", LONG));
    for _ in 0..20 {
        assert!(fourth.says("ran tick", LONG));
    }
    third.follows();

    // A minority of the nodes dies: nothing happens. Who follows is there when it is needed.
    cluster.kill(0);
    cluster.kill(3);
    for _ in 0..60 {
        assert!(fourth.says("ran tick", LONG));
    }
    third.follows();
    fourth.signal(Signal::TERM);
    assert!(third.says("leads", LONG));
    third.signal(Signal::TERM);
    fourth.ended();
    third.ended();

    // Each tick was run once, in the order of the terms.
    let mut ran: Vec<(u64, u64)> = [&first, &second, &third, &fourth].map(|one| one.ran.clone()).concat();
    ran.sort_unstable();
    let ticks: BTreeSet<u64> = ran.iter().map(|(tick, _)| *tick).collect();
    assert_eq!(ticks.len(), ran.len(), "a tick was run twice: {ran:?}");
    assert!(ran.is_sorted_by_key(|(_, epoch)| *epoch), "an older term ran a later tick: {ran:?}");
    let epochs: BTreeSet<u64> = ran.iter().map(|(_, epoch)| *epoch).collect();
    assert!(epochs.len() >= 4, "{epochs:?}");
}

#[test]
fn of_two_processes_one_leads_on_real_servers() {
    suite::runs::real_servers(&one_leads_whatever_happens_to_it);
}

#[test]
fn of_two_processes_one_leads_on_simulated_nodes() {
    suite::runs::simulated_nodes(&one_leads_whatever_happens_to_it);
}

#[test]
fn without_arguments_it_shows_how_it_goes() {
    let output = Command::new(env!("CARGO_BIN_EXE_scheduler")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    // Who follows whom is nobody's promise; that one resigned before another led is.
    let mut leader = None;
    for line in said.lines() {
        let (name, rest) = line.split_once(' ').unwrap();
        if rest.starts_with("leads") {
            assert_eq!(leader.replace(name), None, "two lead: {said}");
        } else if rest.starts_with("ran tick") {
            assert_eq!(leader, Some(name), "{said}");
        } else if rest.starts_with("resigns") {
            assert_eq!(leader.take(), Some(name), "{said}");
        }
    }
    assert!(said.contains(" leads, epoch ") && said.ends_with("each once\n"), "{said}");
}
