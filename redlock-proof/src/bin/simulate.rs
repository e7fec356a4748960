//! `simulate [--small|--medium|--large] [--seeds N] [--from S] [--threads T] [--replay SEED]`: runs whole clients against
//! simulated nodes, and ends with one line that a script can read. Without a size the seed decides that, too.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command's output")]

use core::sync::atomic::{AtomicU64, Ordering};
use redlock_proof::simulate::{BRANCHES, Coverage, Dice, Size, run_sized};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::{env, thread, time};

const USAGE: &str =
    "usage: simulate [--small|--medium|--large] [--seeds N] [--from S] [--threads T] [--replay SEED]";

/// So many seeds in a row have to take every branch.
const BLOCK: u64 = 1_000;

/// So many violations are printed.
const SHOWN: u64 = 10;

struct Options {
    seeds: u64,
    from: u64,
    threads: u64,
    size: Option<Size>,
    replay: Option<u64>,
}

fn options() -> Option<Options> {
    let mut options = Options { seeds: 10_000, from: 0, threads: 2, size: None, replay: None };
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let size = match word.as_str() {
            "--small" => Some(Size::Small),
            "--medium" => Some(Size::Medium),
            "--large" => Some(Size::Large),
            _ => None,
        };
        if size.is_some() {
            options.size = size;
            continue;
        }
        let number = words.next()?.parse().ok()?;
        match word.as_str() {
            "--seeds" => options.seeds = number,
            "--from" => options.from = number,
            "--threads" => options.threads = number,
            "--replay" => options.replay = Some(number),
            _ => return None,
        }
    }
    Some(options)
}

const fn flag(size: Option<Size>) -> &'static str {
    match size {
        None => "",
        Some(Size::Small) => "--small ",
        Some(Size::Medium) => "--medium ",
        Some(Size::Large) => "--large ",
    }
}

fn replay(seed: u64, size: Option<Size>) -> ExitCode {
    let outcome = run_sized(Dice::seeded(seed), size, None, true);
    print!("{}", outcome.timeline);
    for violation in &outcome.violations {
        println!("violation: {violation}");
    }
    println!("seeds=1 violations={}", outcome.violations.len());
    if outcome.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What was seen in all runs so far.
#[derive(Default)]
struct Seen {
    coverage: Coverage,
    /// By branch, how often it was taken in the block of seeds in which it was taken least; empty before the first.
    least: Vec<u64>,
    grants: u64,
    violations: u64,
}

impl Seen {
    fn add_block(&mut self, coverage: &Coverage, is_whole: bool) {
        self.coverage.add(coverage);
        if is_whole {
            let counts = BRANCHES.iter().map(|branch| coverage.count(branch));
            self.least = if self.least.is_empty() {
                counts.collect()
            } else {
                self.least.iter().zip(counts).map(|(least, count)| count.min(*least)).collect()
            };
        }
    }

    /// The branches that some block of seeds never took.
    fn missing(&self) -> Vec<&'static str> {
        let least = BRANCHES.iter().zip(&self.least);
        least.filter(|(_, least)| **least == 0).map(|(branch, _)| *branch).collect()
    }
}

/// Runs blocks of seeds until none is left.
fn work(options: &Options, next: &AtomicU64, seen: &Mutex<Seen>) {
    let lock = || seen.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let start = next.fetch_add(BLOCK, Ordering::Relaxed);
        if start >= options.seeds {
            return;
        }
        let seeds = BLOCK.min(options.seeds - start);
        let (mut coverage, mut grants) = (Coverage::default(), 0);
        for index in start..start + seeds {
            let seed = options.from.wrapping_add(index);
            let outcome = run_sized(Dice::seeded(seed), options.size, None, false);
            coverage.add(&outcome.coverage);
            grants += outcome.grants;
            if let Some(first) = outcome.violations.first() {
                let mut seen = lock();
                seen.violations += 1;
                if seen.violations <= SHOWN {
                    println!("seed {seed}: {first}");
                    println!("  replay: cargo simulate {}--replay {seed}", flag(options.size));
                }
            }
        }
        let mut seen = lock();
        seen.grants += grants;
        seen.add_block(&coverage, seeds == BLOCK);
    }
}

#[expect(clippy::disallowed_methods, reason = "how long the command itself took, and nothing about locks")]
fn main() -> ExitCode {
    let Some(options) = options() else {
        eprintln!("{USAGE}");
        return ExitCode::from(64);
    };
    if let Some(seed) = options.replay {
        return replay(seed, options.size);
    }
    let begin = time::Instant::now();
    let (next, seen) = (AtomicU64::new(0), Mutex::new(Seen::default()));
    thread::scope(|scope| {
        for _ in 0..options.threads.max(1) {
            scope.spawn(|| work(&options, &next, &seen));
        }
    });
    let seen = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("branches taken, per {BLOCK} seeds on average, and in the {BLOCK} with the fewest:");
    for (index, branch) in BRANCHES.iter().enumerate() {
        let average = seen.coverage.count(branch) as f64 * BLOCK as f64 / options.seeds.max(1) as f64;
        // Too few seeds prove nothing about rare branches.
        let least = seen.least.get(index).map(u64::to_string).unwrap_or_default();
        println!("  {branch:32} {average:10.1} {least:>7}");
    }
    let missing = seen.missing();
    if !missing.is_empty() {
        println!("never taken in some {BLOCK} seeds: {missing:?}");
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{:.0} seeds a second and thread",
        options.seeds as f64 / seconds / options.threads.max(1) as f64
    );
    let Seen { grants, violations, .. } = seen;
    println!("seeds={} grants={grants} violations={violations}", options.seeds);
    if violations == 0 && missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
