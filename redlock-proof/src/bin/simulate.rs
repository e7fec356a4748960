//! `simulate [--seeds N] [--from S] [--threads T] [--replay SEED]`: runs whole clients against simulated nodes, and ends
//! with one line that a script can read.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command's output")]

use core::sync::atomic::{AtomicU64, Ordering};
use redlock_proof::simulate::{BRANCHES, Coverage, Dice, run};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::{env, thread};

struct Options {
    seeds: u64,
    from: u64,
    threads: u64,
    replay: Option<u64>,
}

fn options() -> Result<Options, String> {
    let mut options = Options { seeds: 10_000, from: 0, threads: 2, replay: None };
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let number = words.next().and_then(|text| text.parse().ok());
        match (word.as_str(), number) {
            ("--seeds", Some(number)) => options.seeds = number,
            ("--from", Some(number)) => options.from = number,
            ("--threads", Some(number)) => options.threads = number,
            ("--replay", Some(number)) => options.replay = Some(number),
            _ => return Err("usage: simulate [--seeds N] [--from S] [--threads T] [--replay SEED]".into()),
        }
    }
    Ok(options)
}

fn replay(seed: u64) -> ExitCode {
    let outcome = run(Dice::seeded(seed), None, true);
    print!("{}", outcome.timeline);
    for violation in &outcome.violations {
        println!("violation: {violation}");
    }
    println!("seeds=1 violations={}", outcome.violations.len());
    if outcome.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(usage) => {
            eprintln!("{usage}");
            return ExitCode::from(64);
        }
    };
    if let Some(seed) = options.replay {
        return replay(seed);
    }
    let (next, violations, grants) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let coverage = Mutex::new(Coverage::default());
    thread::scope(|scope| {
        for _ in 0..options.threads.max(1) {
            scope.spawn(|| {
                let mut seen = Coverage::default();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= options.seeds {
                        break;
                    }
                    let seed = options.from.wrapping_add(index);
                    let outcome = run(Dice::seeded(seed), None, false);
                    seen.add(&outcome.coverage);
                    grants.fetch_add(outcome.grants, Ordering::Relaxed);
                    if let Some(first) = outcome.violations.first()
                        && violations.fetch_add(1, Ordering::Relaxed) < 10
                    {
                        println!("seed {seed}: {first}");
                        println!("  replay: cargo simulate --replay {seed}");
                    }
                }
                coverage.lock().unwrap_or_else(PoisonError::into_inner).add(&seen);
            });
        }
    });
    let coverage = coverage.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("branches taken per 1000 seeds:");
    for branch in BRANCHES {
        println!(
            "  {branch:32} {:10.1}",
            coverage.count(branch) as f64 * 1000.0 / options.seeds.max(1) as f64
        );
    }
    // Too few seeds prove nothing about rare branches.
    let missing = if options.seeds >= 1000 { coverage.missing() } else { Vec::new() };
    if !missing.is_empty() {
        println!("never taken: {missing:?}");
    }
    let violations = violations.into_inner();
    println!("seeds={} grants={} violations={violations}", options.seeds, grants.into_inner());
    if violations == 0 && missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
