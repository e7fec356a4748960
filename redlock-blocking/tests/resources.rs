//! Memory, threads and descriptors of a client: none grows, all end with it. In a process of its own, one test at a time.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::wildcard_enum_match_arm,
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    dead_code,
    unused_macros,
    unreachable_pub,
    missing_docs,
    reason = "a test may fail by panicking, and needs only a part of the suite"
)]
#![cfg(target_os = "linux")]

mod suite;

use core::time::Duration;
use redlock_blocking::Redlock;
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};
use suite::cluster::{Real, Simulated, programs};
use suite::connect::{Bad, Fault};
use suite::{client, eventually, ms, now, within};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

fn threads(name: &str) -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|comm| comm.trim().starts_with(name)).count()
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn resident() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// CPU time of this process.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

#[test]
fn b54_memory_does_not_grow_with_the_names_of_locks() {
    let _alone = alone();
    // Not in this process, whose memory is looked at.
    let Some(program) = programs().next() else { return };
    let cluster = Real::start(program, 3);
    let redlock = client(&*cluster);
    let cycles = |from: usize, to: usize| {
        for index in from..to {
            redlock.acquire(format!("{index:064}")).lock().unwrap().release().unwrap();
        }
    };
    cycles(0, 1_000);
    let before = resident();
    cycles(1_000, 4_000);
    let grown = resident().saturating_sub(before);
    assert!(grown < 2 << 20, "{grown} bytes");
    for node in 0..3 {
        eventually("no key is left", || cluster.keys(node) == 0);
    }
}

#[test]
fn r20_threads_and_descriptors_end_with_the_client() {
    let _alone = alone();
    let cluster = Simulated::start(3);
    eventually("earlier clients are gone", || threads("redlock") == threads("redlock-node"));
    let before = descriptors();
    for _ in 0..10 {
        let redlock = client(&*cluster);
        let guard = redlock.acquire("door").lock().unwrap();
        drop(redlock);
        assert!(guard.is_held());
    }
    eventually("all threads end", || threads("redlock") == threads("redlock-node"));
    eventually("all descriptors are closed", || descriptors() <= before);
}

#[test]
fn b22_a_resolver_gathers_no_threads() {
    let _alone = alone();
    let bad = Bad::start(Fault::Nameless);
    let builder = Redlock::builder().node(bad.url()).connect_timeout(ms(100)).handshake_timeout(ms(10));
    let redlock = builder.connect_lazy().unwrap();
    let most_seen = std::cell::Cell::new(0);
    within(ms(600), || {
        most_seen.set(most_seen.get().max(threads("redlock-resolve")));
        false
    });
    assert!(most_seen.get() <= 1, "{}", most_seen.get());
    drop(redlock);
}

#[test]
fn b25_waiting_costs_no_cpu() {
    let _alone = alone();
    let cluster = Simulated::start(3);
    let (ann, bob) = (client(&*cluster), client(&*cluster));
    let guard = ann.acquire("door").ttl(Duration::from_secs(30)).auto_renew(Duration::MAX).lock().unwrap();
    let (start, before) = (now(), cpu());
    assert!(bob.acquire("door").wait(ms(1_000)).lock().is_err());
    let busy = cpu().saturating_sub(before);
    let took = now().saturating_duration_since(start);
    // Nodes included, and with many rounds a second.
    assert!(busy * 2 < took, "{busy:?} of {took:?}");
    drop(guard);
    // Idle.
    drop(bob);
    let (start, before) = (now(), cpu());
    eventually("a while has passed", || {
        std::thread::sleep(ms(50));
        now().saturating_duration_since(start) > ms(500)
    });
    let busy = cpu().saturating_sub(before);
    assert!(busy < ms(100), "{busy:?}");
}
