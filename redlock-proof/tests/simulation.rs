//! The simulation finds nothing in the shipped engine, and finds everything that is broken on purpose.
#![allow(clippy::panic, reason = "tests")]

use redlock_proof::simulate::{Breakage, Coverage, Dice, Outcome, run};

/// Seeds that plain `cargo test` runs; `cargo simulate` runs more.
const SEEDS: u64 = 1_000;

#[test]
fn no_violation_where_the_assumptions_hold() {
    let mut coverage = Coverage::default();
    for seed in 0..SEEDS {
        let outcome = run(Dice::seeded(seed), None, false);
        coverage.add(&outcome.coverage);
        if !outcome.violations.is_empty() {
            let Outcome { violations, timeline, .. } = run(Dice::seeded(seed), None, true);
            panic!("seed {seed}: {violations:#?}\n{timeline}\nreplay: cargo simulate --replay {seed}");
        }
    }
    assert!(coverage.missing().is_empty(), "never taken: {:?}", coverage.missing());
}

/// Within so many seeds each broken assumption is seen to lead to two holders.
fn is_noticed(breakage: Breakage) -> bool {
    leads_to(breakage, "two holders")
}

fn leads_to(breakage: Breakage, what: &str) -> bool {
    (0..2_000).any(|seed| {
        let outcome = run(Dice::seeded(seed), Some(breakage), false);
        outcome.violations.iter().any(|violation| violation.starts_with(what))
    })
}

#[test]
fn nodes_that_forget_are_noticed() {
    assert!(is_noticed(Breakage::Forgetting));
}

#[test]
fn clocks_that_jump_are_noticed() {
    assert!(is_noticed(Breakage::ClockJumps));
}

#[test]
fn a_quorum_of_half_the_nodes_is_noticed() {
    assert!(is_noticed(Breakage::HalfQuorum));
}

#[test]
fn clocks_beyond_the_drift_are_noticed() {
    assert!(is_noticed(Breakage::FastClocks));
}

/// The documented exception: where nodes lose their counters *and* their clocks are behind the last number.
#[test]
fn counters_lost_with_clocks_behind_are_noticed() {
    assert!(leads_to(Breakage::CountersBehind, "fence"));
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in 0..5 {
        let [one, other] = [0, 1].map(|_| run(Dice::seeded(seed), None, true).timeline.to_string());
        assert_eq!(one, other, "seed {seed}");
        assert!(!one.is_empty());
    }
}

#[test]
fn any_bytes_are_a_scenario() {
    for length in 0..40_u8 {
        let bytes: Vec<u8> = (0..length).map(|index| index.wrapping_mul(97).wrapping_add(length)).collect();
        let outcome = run(Dice::bytes(&bytes), None, false);
        assert!(outcome.violations.is_empty(), "{bytes:?}: {:?}", outcome.violations);
    }
}
