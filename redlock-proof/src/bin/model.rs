//! Runs the models.
#![expect(clippy::print_stdout, reason = "it is what it is for")]

use core::sync::atomic::{AtomicUsize, Ordering};
use redlock_proof::model::{Model, Outcome, deep_models, models, planted, search};
use std::process::ExitCode;
use std::sync::Mutex;

/// How many models run at the same time.
const THREADS: usize = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    if has("--faults") {
        return faults();
    }
    let named: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    let mut chosen = if has("--deep") { deep_models() } else { models() };
    if !named.is_empty() {
        chosen.retain(|model| named.iter().any(|name| *name == model.name()));
    }
    if chosen.is_empty() {
        println!("no such model");
        return ExitCode::from(64);
    }
    let outcomes = run(&chosen);
    let states: u64 = outcomes.iter().map(|outcome| outcome.states).sum();
    let violations = outcomes.iter().filter(|outcome| outcome.violation.is_some()).count();
    let weak =
        outcomes.iter().filter(|outcome| outcome.violation.is_none() && !outcome.missing.is_empty()).count();
    if weak > 0 {
        println!("too weak: {weak} models");
    }
    println!("states={states} violations={violations}");
    if violations + weak > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Runs every model, and prints each outcome as soon as it is there.
fn run(models: &[Model]) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(model) = models.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = search(model);
                    show(&outcome);
                    if let Ok(mut outcomes) = outcomes.lock() {
                        outcomes.push(outcome);
                    }
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_default()
}

fn show(outcome: &Outcome) {
    let Outcome { model, states, transitions, depth, excused, missing, violation, .. } = outcome;
    let violations = u8::from(violation.is_some());
    let mut line = format!(
        "model={model} states={states} transitions={transitions} depth={depth} violations={violations}"
    );
    if *excused > 0 {
        line += &format!(" assumption-broken={excused}");
    }
    println!("{line}");
    if let Some(trace) = violation {
        println!("{trace}");
    } else if !missing.is_empty() {
        println!("      model={model} is too weak: never met {missing:?}");
    }
}

/// Every planted fault, and what it leads to.
fn faults() -> ExitCode {
    let mut missed = 0;
    for planted in planted() {
        let outcome = search(&planted.model);
        match &outcome.violation {
            Some(trace) => println!(
                "fault={:?} found after {} states, in {} steps:\n{trace}\n",
                planted.fault,
                outcome.states,
                trace.steps.len()
            ),
            None => {
                missed += 1;
                println!("fault={:?} NOT FOUND in {} states\n", planted.fault, outcome.states);
            }
        }
    }
    println!("missed={missed}");
    if missed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
