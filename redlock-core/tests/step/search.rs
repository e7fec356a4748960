//! Random search over `machine::Claim`: no instant at which two clients believe that they hold, no support without a key.

use crate::world::{Planted, World};

/// Runs so many traces from this seed on. Answers with the seed of the first that goes wrong, and what went wrong.
fn search(from: u64, traces: u64, steps: u32, planted: Planted) -> (Option<(u64, String)>, [u32; 3]) {
    let mut seen = [0; 3];
    for seed in from..from + traces {
        let mut world = World::new(seed, planted);
        for _ in 0..steps {
            if let Some(wrong) = world.step() {
                return (Some((seed, wrong)), seen);
            }
        }
        seen = [seen[0] + world.grants, seen[1] + world.extensions, seen[2] + world.repairs];
    }
    (None, seen)
}

/// The trace of a seed, for the eye.
fn replay(seed: u64, steps: u32, planted: Planted) -> String {
    let mut world = World::new(seed, planted);
    world.keep_trace = true;
    for _ in 0..steps {
        if world.step().is_some() {
            break;
        }
    }
    world.trace.join("\n")
}

const STEPS: u32 = 600;

/// `REDLOCK_SEED` names the first seed, `REDLOCK_TRACES` the number of traces.
fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn r14_r8_b13_no_two_holders_and_no_support_without_a_key() {
    let from = from_environment("REDLOCK_SEED", 1);
    let traces = from_environment("REDLOCK_TRACES", 1_000);
    let (found, [grants, extensions, repairs]) = search(from, traces, STEPS, Planted::Nothing);
    if let Some((seed, wrong)) = found {
        panic!("REDLOCK_SEED={seed}: {wrong}\n{}", replay(seed, STEPS, Planted::Nothing));
    }
    eprintln!(
        "seeds from {from}: {traces} traces, {grants} grants, {extensions} extensions, {repairs} repairs"
    );
    // The world is not so hostile that nothing happens in it.
    assert!(
        u64::from(grants) > traces && u64::from(extensions) > traces / 2,
        "{grants} {extensions} {repairs}"
    );
    assert!(repairs > 0 || traces < 500);
}

#[test]
fn a_quorum_of_one_of_three_is_found() {
    let (found, _) = search(1, 2_000, STEPS, Planted::SmallQuorum);
    let (seed, wrong) = found.expect("two holders with a planted quorum of one");
    assert!(wrong.contains("two holders"), "seed {seed}: {wrong}");
}

#[test]
fn r8_a_token_that_is_used_again_is_found() {
    let (found, _) = search(1, 50_000, STEPS, Planted::SameToken);
    let (seed, wrong) = found.expect("two holders with a token that attempts share");
    assert!(wrong.contains("two holders"), "seed {seed}: {wrong}");
}
