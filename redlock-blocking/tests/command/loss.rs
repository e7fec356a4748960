//! `redlock run` when the lock is lost, or about to be: nothing of the command may outlive it.

use core::time::Duration;
use std::path::PathBuf;
use std::thread;

use redlock_core::sim::TcpNode;
use rustix::process::Signal;

use crate::support::{Fleet, Outcome, Running, scratch, size, until};

/// A command that writes to a file for as long as it lives, and a child of it that does so, too. Neither ends when asked.
fn stubborn(fleet: &Fleet, options: &str) -> (Running, PathBuf) {
    let file = scratch("alive");
    let mut command = fleet.run(&format!("{options} job -- sh -c"));
    command.arg(
        "trap '' TERM; (while :; do echo >> \"$FILE\"; sleep 0.01; done) & \
         echo up; while :; do echo >> \"$FILE\"; sleep 0.01; done",
    );
    command.env("FILE", &file);
    let mut running = Running::start(command);
    assert_eq!(running.line(), "up");
    until("the command to write", || size(&file) > 4);
    until("all five", || fleet.values("job").iter().all(Option::is_some));
    (running, file)
}

/// Ended with 70, and nothing of it is left that writes.
fn assert_lost(outcome: &Outcome, file: &PathBuf) {
    assert_eq!(outcome.code, Some(70), "{outcome:?}");
    let at_the_end = size(file);
    // Ten times as long as a writer takes for a line: only what should not happen is waited for.
    thread::sleep(Duration::from_millis(100));
    assert_eq!(size(file), at_the_end, "somebody still writes");
}

/// The nodes that cannot be reached any more still hold the key when the command is gone.
fn assert_gone_before_the_lock(harm: impl Fn(&TcpNode)) {
    let fleet = Fleet::new();
    let (running, file) = stubborn(&fleet, "--ttl 4s");
    for node in &fleet.nodes[..3] {
        harm(node);
    }
    let outcome = running.finish();
    let left = fleet.left("job");
    assert!(left[..3].iter().all(|left| *left > Duration::ZERO), "{left:?}, {outcome:?}");
    assert_lost(&outcome, &file);
    assert!(outcome.stderr.contains("job"), "{outcome:?}");
}

#[test]
fn with_a_majority_killed_the_command_is_gone_before_the_lock() {
    assert_gone_before_the_lock(TcpNode::kill);
}

#[test]
fn with_a_majority_silent_the_command_is_gone_before_the_lock() {
    assert_gone_before_the_lock(TcpNode::freeze);
}

#[test]
fn a_command_that_ends_when_asked_has_time_to_clean_up() {
    let fleet = Fleet::new();
    let mut command = fleet.run("--ttl 3s job -- sh -c");
    command.arg("trap 'echo cleaned up; exit 0' TERM; echo up; while :; do sleep 0.02; done");
    let mut running = Running::start(command);
    assert_eq!(running.line(), "up");
    until("all five", || fleet.values("job").iter().all(Option::is_some));
    for node in &fleet.nodes[..3] {
        node.freeze();
    }
    let outcome = running.finish();
    assert_eq!(outcome.stdout, "cleaned up\n");
    assert_eq!(outcome.code, Some(70), "it was stopped, whatever it says of itself: {outcome:?}");
}

#[test]
fn a_renewal_that_comes_in_after_all_spares_the_command_the_kill() {
    let fleet = Fleet::new();
    let mut command = fleet.run("--ttl 4s job -- sh -c");
    // Asked to end, it takes longer than the lock would have lasted.
    command.arg("trap 'echo asked; sleep 4; echo done; exit 0' TERM; echo up; while :; do sleep 0.02; done");
    let mut running = Running::start(command);
    assert_eq!(running.line(), "up");
    until("all five", || fleet.values("job").iter().all(Option::is_some));
    for node in &fleet.nodes[..3] {
        node.freeze();
    }
    assert_eq!(running.line(), "asked");
    for node in &fleet.nodes[..3] {
        node.thaw();
    }
    let outcome = running.finish();
    assert_eq!(outcome.stdout, "done\n", "{outcome:?}");
    assert_eq!(outcome.code, Some(70), "{outcome:?}");
}

#[test]
fn keys_that_are_deleted_are_noticed_at_the_next_renewal() {
    let fleet = Fleet::new();
    let (running, file) = stubborn(&fleet, "--ttl 2s");
    fleet.delete("job", 3);
    let outcome = running.finish();
    assert_lost(&outcome, &file);
    assert!(outcome.stderr.contains("lost"), "{outcome:?}");
    until("the release of the others", || fleet.is_free("job"));
}

#[test]
fn keys_that_are_deleted_on_a_minority_are_put_back() {
    let fleet = Fleet::new();
    let mut command = fleet.run("--ttl 1s job -- sh -c");
    command.arg("echo up; exec sleep 100");
    let mut running = Running::start(command);
    assert_eq!(running.line(), "up");
    until("all five", || fleet.values("job").iter().all(Option::is_some));
    fleet.delete("job", 2);
    until("all five again", || fleet.values("job").iter().all(Option::is_some));
    running.signal(Signal::INT);
    assert_eq!(running.finish().code, Some(128 + 2));
}

#[test]
fn what_was_deleted_unnoticed_is_found_by_the_release() {
    let fleet = Fleet::new();
    let mut command = fleet.run("--ttl 60s job -- sh -c");
    command.arg("echo up; trap 'exit 0' USR1; while :; do sleep 0.02; done");
    let mut running = Running::start(command);
    assert_eq!(running.line(), "up");
    until("all five", || fleet.values("job").iter().all(Option::is_some));
    fleet.delete("job", 3);
    running.signal(Signal::USR1);
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(70), "{outcome:?}");
    assert!(outcome.stderr.contains("no longer"), "{outcome:?}");
}

#[test]
fn the_longest_hold_ends_the_command() {
    let fleet = Fleet::new();
    let (running, file) = stubborn(&fleet, "--ttl 1s --max-hold 2s");
    let outcome = running.finish();
    assert_lost(&outcome, &file);
    assert!(outcome.took < Duration::from_secs(10), "{outcome:?}");
    assert!(outcome.stderr.contains("--max-hold"), "{outcome:?}");
}

#[test]
fn after_a_suspension_past_the_end_the_command_is_killed_at_once() {
    let fleet = Fleet::new();
    let (running, file) = stubborn(&fleet, "--ttl 1s");
    running.signal(Signal::STOP);
    until("the keys to run out", || fleet.is_free("job"));
    running.signal(Signal::CONT);
    let outcome = running.finish();
    assert_lost(&outcome, &file);
    assert!(outcome.stderr.contains("killed"), "{outcome:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn if_redlock_itself_is_killed_so_is_the_command() {
    let fleet = Fleet::new();
    let mut command = fleet.run("job -- sh -c");
    command.arg("echo up; exec sleep 20");
    let mut running = Running::start(command);
    assert_eq!(running.line(), "up");
    let start = std::time::Instant::now();
    running.signal(Signal::KILL);
    // Its output ends when nobody has it open any more.
    assert_eq!(running.line(), "");
    assert!(start.elapsed() < Duration::from_secs(10));
    assert_eq!(running.finish().code, None);
}

#[test]
fn a_command_that_is_stopped_is_killed_all_the_same() {
    let fleet = Fleet::new();
    let mut command = fleet.run("--ttl 1s job -- sh -c");
    command.arg("echo $$; trap '' TERM; while :; do sleep 0.02; done");
    let mut running = Running::start(command);
    let leader: i32 = running.line().parse().unwrap();
    let leader = rustix::process::Pid::from_raw(leader).unwrap();
    until("all five", || fleet.values("job").iter().all(Option::is_some));
    rustix::process::kill_process(leader, Signal::STOP).unwrap();
    for node in &fleet.nodes[..3] {
        node.kill();
    }
    assert_eq!(running.finish().code, Some(70));
}
