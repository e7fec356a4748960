//! The torture of real servers finds nothing in the shipped adapters, and finds what is planted.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests")]

extern crate alloc;

use alloc::collections::BTreeMap;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// One run at a time: each has a dozen processes.
static TURN: Mutex<()> = Mutex::new(());

/// What one run came to: its last line, and all of it.
struct Run {
    is_success: bool,
    numbers: BTreeMap<String, u64>,
    text: String,
}

/// Runs it, where there are servers; without any, only `REDLOCK_REQUIRE_SERVERS=1` makes that a failure.
fn torture(args: &[&str]) -> Option<Run> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let output = Command::new(env!("CARGO_BIN_EXE_torture")).args(args).output().unwrap();
    drop(turn);
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if text.contains("no server found") {
        let required = std::env::var("REDLOCK_REQUIRE_SERVERS").is_ok_and(|value| value == "1");
        assert!(!required, "REDLOCK_REQUIRE_SERVERS=1, and no server was found");
        eprintln!("{text}nothing is tested");
        return None;
    }
    let last = text.lines().last().unwrap_or_default();
    let pairs = last.split(' ').filter_map(|pair| pair.split_once('='));
    let numbers = pairs.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect();
    Some(Run { is_success: output.status.success(), numbers, text })
}

impl Run {
    #[track_caller]
    fn number(&self, name: &str) -> u64 {
        *self.numbers.get(name).unwrap_or_else(|| panic!("no {name} in the last line:\n{}", self.text))
    }

    /// A planted fault leaves its record, which nobody needs here.
    fn discard_record(&self) {
        let words = self.text.split_whitespace().map(|word| word.trim_end_matches(';'));
        for path in words.filter(|word| word.ends_with(".record")) {
            std::fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn nobody_sees_two_holders_whatever_happens_to_the_servers() {
    let Some(run) = torture(&["--seconds", "6"]) else { return };
    assert!(run.is_success, "{}", run.text);
    assert!(run.number("grants") > 0, "{}", run.text);
    for name in ["overlaps", "fence_regressions", "faults"] {
        assert_eq!(run.number(name), 0, "{}", run.text);
    }
}

#[track_caller]
fn is_found(plant: &str) {
    let Some(run) = torture(&["--seconds", "5", "--plant", plant]) else { return };
    assert!(!run.is_success, "{}", run.text);
    assert!(run.number("overlaps") > 0, "{}", run.text);
    assert!(run.text.contains("TWO HOLDERS AT ONCE"), "{}", run.text);
    run.discard_record();
}

#[test]
fn a_quorum_of_half_the_nodes_is_found() {
    is_found("half-quorum");
}

#[test]
fn nodes_that_forget_are_found() {
    is_found("forgetting");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for args in
        [&["--seconds", "1"][..], &["--nodes", "0"], &["--plant", "roses"], &["--seed"], &["--fast", "1"]]
    {
        let output = Command::new(env!("CARGO_BIN_EXE_torture")).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(64), "{args:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("usage: torture"), "{args:?}");
    }
}
