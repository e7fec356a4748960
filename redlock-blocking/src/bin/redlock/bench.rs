//! `redlock bench`: what locks cost on these nodes, from here.

use core::fmt::Write as _;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::thread;

use indicatif::{ProgressBar, ProgressStyle};
use redlock_blocking::{BuildError, Instant, Redlock, ReleaseOutcome};
use serde::Serialize;

use crate::args::BenchArgs;
use crate::exit::{self, Exit};
use crate::{clock, inspect, out, run};

/// So often does the bar move.
const TICK: Duration = Duration::from_millis(100);
/// The widest bar of the histogram.
const WIDTH: usize = 50;

/// What one thread has measured.
#[derive(Debug, Default)]
struct Samples {
    acquire: Vec<Duration>,
    release: Vec<Duration>,
    /// Why cycles failed: how many, and the first one's words.
    failures: u64,
    first_failure: Option<String>,
}

/// The percentiles of one kind of call, in microseconds.
#[derive(Debug, Serialize)]
struct Spread {
    p50: u64,
    p99: u64,
    p999: u64,
    max: u64,
}

#[derive(Debug, Serialize)]
struct Report {
    nodes: usize,
    threads: u16,
    fenced: bool,
    cycles: usize,
    elapsed_ms: u64,
    cycles_per_second: f64,
    acquire_us: Spread,
    release_us: Spread,
    cycle_us: Spread,
}

pub(crate) fn run(args: &BenchArgs) -> Exit {
    let config = match inspect::config(&args.nodes) {
        Ok(config) => config,
        Err(message) => return fail(exit::USAGE, message),
    };
    let tls = match inspect::tls(&args.nodes, &config) {
        Ok(tls) => tls,
        Err(message) => return fail(exit::USAGE, message),
    };
    let mut builder = Redlock::builder()
        .nodes(inspect::addresses(&config))
        .key_prefix(config.key_prefix())
        .default_ttl(args.ttl)
        .connect_timeout(args.nodes.timeout)
        // Each cycle is another resource: its fence's counter need not stay.
        .fence_retention(Duration::from_secs(1))
        .client_name("redlock-bench");
    if let Some(tls) = tls {
        builder = builder.tls(tls);
    }
    if let Some(timeout) = args.node_timeout {
        builder = builder.node_timeout(timeout);
    }
    let redlock = match builder.connect() {
        Ok(redlock) => redlock,
        Err(error @ BuildError::Config(_)) => return fail(exit::USAGE, run::text(&error)),
        Err(error) => return fail(exit::UNAVAILABLE, error),
    };
    let (samples, elapsed) = measure(&redlock, args);
    redlock.close();
    if let Some(first) = &samples.first_failure {
        let cycles = samples.failures + u64::try_from(samples.acquire.len()).unwrap_or(u64::MAX);
        return fail(
            exit::UNAVAILABLE,
            format_args!(
                "{} of {cycles} cycles failed; figures of locks that fail say nothing. The first one: {first}",
                samples.failures
            ),
        );
    }
    if samples.acquire.is_empty() {
        return fail(exit::UNAVAILABLE, "not one cycle was done in that time");
    }
    let cycle: Vec<Duration> =
        samples.acquire.iter().zip(&samples.release).map(|(one, other)| *one + *other).collect();
    let report = Report {
        nodes: config.nodes().len(),
        threads: args.threads,
        fenced: args.fenced,
        cycles: cycle.len(),
        elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        cycles_per_second: (f64::from(u32::try_from(cycle.len()).unwrap_or(u32::MAX))
            / elapsed.as_secs_f64())
        .round(),
        acquire_us: Spread::of(samples.acquire),
        release_us: Spread::of(samples.release),
        cycle_us: Spread::of(cycle.clone()),
    };
    out::print(&if args.json { json(&report) } else { table(&report, &cycle) });
    Exit(0)
}

fn fail(code: u8, message: impl core::fmt::Display) -> Exit {
    out::say(message);
    Exit(code)
}

fn json(report: &Report) -> String {
    serde_json::to_string_pretty(report).map_or_else(|error| error.to_string(), |text| text + "\n")
}

/// All threads acquire and release, each its own resource, until the time is over.
fn measure(redlock: &Redlock, args: &BenchArgs) -> (Samples, Duration) {
    let (cycles, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let start = clock::now();
    let mut all = Samples::default();
    thread::scope(|scope| {
        let work = |thread: u16| {
            let (cycles, is_over) = (&cycles, &is_over);
            scope.spawn(move || one_thread(redlock, args, thread, cycles, is_over))
        };
        let threads: Vec<_> = (0..args.threads).map(work).collect();
        watch(args.duration, start, &cycles);
        is_over.store(true, Ordering::Relaxed);
        for thread in threads {
            match thread.join() {
                Ok(samples) => all.add(samples),
                Err(_) => all.fail("a thread panicked".to_owned()),
            }
        }
    });
    (all, clock::now().saturating_duration_since(start))
}

fn one_thread(
    redlock: &Redlock,
    args: &BenchArgs,
    thread: u16,
    cycles: &AtomicU64,
    is_over: &AtomicBool,
) -> Samples {
    let mut samples = Samples::default();
    let process = std::process::id();
    let mut number = 0_u64;
    while !is_over.load(Ordering::Relaxed) && samples.failures < 100 {
        number += 1;
        // A fresh name each time: nothing is contended but the nodes.
        let acquire = redlock.acquire(format!("redlock:bench:{process}:{thread}:{number}")).ttl(args.ttl);
        let acquire = if args.fenced { acquire.fenced() } else { acquire };
        let start = clock::now();
        let guard = match acquire.wait(Duration::ZERO).lock() {
            Ok(guard) => guard,
            Err(error) => {
                samples.fail(error.to_string());
                continue;
            }
        };
        let granted = clock::now();
        // What says that it is held has to hold it, or fast locks are cheap.
        let was_held = guard.is_held() && guard.fence().is_some() == args.fenced;
        let before = clock::now();
        match guard.release() {
            Ok(released) if was_held && released.outcome == ReleaseOutcome::Released => {
                samples.acquire.push(granted.saturating_duration_since(start));
                samples.release.push(clock::now().saturating_duration_since(before));
                cycles.fetch_add(1, Ordering::Relaxed);
            }
            Ok(_) if !was_held => samples.fail("a lock was granted and not held".to_owned()),
            Ok(released) => samples.fail(released.to_string()),
            Err(error) => samples.fail(error.to_string()),
        }
    }
    samples
}

/// Waits until the time is over; shows how far it is, if somebody looks.
fn watch(duration: Duration, start: Instant, cycles: &AtomicU64) {
    let ticks = u64::try_from(duration.as_millis() / TICK.as_millis()).unwrap_or(u64::MAX);
    let bar = if out::is_watched() { ProgressBar::new(ticks.max(1)) } else { ProgressBar::hidden() };
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {elapsed} of {prefix}  {msg} cycles") {
        bar.set_style(style);
    }
    bar.set_prefix(format!("{duration:?}"));
    loop {
        let elapsed = clock::now().saturating_duration_since(start);
        let left = duration.saturating_sub(elapsed);
        if left.is_zero() {
            return bar.finish_and_clear();
        }
        bar.set_position(u64::try_from(elapsed.as_millis() / TICK.as_millis()).unwrap_or(u64::MAX));
        bar.set_message(cycles.load(Ordering::Relaxed).to_string());
        thread::sleep(left.min(TICK));
    }
}

impl Samples {
    fn fail(&mut self, why: String) {
        self.failures += 1;
        self.first_failure.get_or_insert(why);
    }

    fn add(&mut self, other: Self) {
        self.acquire.extend(other.acquire);
        self.release.extend(other.release);
        self.failures += other.failures;
        if let (None, Some(first)) = (&self.first_failure, other.first_failure) {
            self.first_failure = Some(first);
        }
    }
}

impl Spread {
    fn of(mut spans: Vec<Duration>) -> Self {
        spans.sort_unstable();
        let micros = |span: Option<&Duration>| {
            span.map_or(0, |span| u64::try_from(span.as_micros()).unwrap_or(u64::MAX))
        };
        // The smallest value that so many of a thousand do not exceed.
        let at =
            |per_mille: usize| micros(spans.get((spans.len() * per_mille).div_ceil(1_000).saturating_sub(1)));
        Self { p50: at(500), p99: at(990), p999: at(999), max: micros(spans.last()) }
    }
}

fn table(report: &Report, cycle: &[Duration]) -> String {
    let mut text = String::new();
    let Report { nodes, threads, cycles, elapsed_ms, cycles_per_second, .. } = report;
    let fenced = if report.fenced { ", fenced" } else { "" };
    let _ = writeln!(
        text,
        "{cycles} cycles of acquire and release over {nodes} node{} by {threads} thread{} in {:.1} s{fenced}: {cycles_per_second} a second\n",
        if *nodes == 1 { "" } else { "s" },
        if *threads == 1 { "" } else { "s" },
        Duration::from_millis(*elapsed_ms).as_secs_f64()
    );
    let _ = writeln!(text, "{:<10}{:>10}{:>10}{:>10}{:>10}", "µs", "p50", "p99", "p99.9", "max");
    for (name, spread) in
        [("acquire", &report.acquire_us), ("release", &report.release_us), ("both", &report.cycle_us)]
    {
        let Spread { p50, p99, p999, max } = spread;
        let _ = writeln!(text, "{name:<10}{p50:>10}{p99:>10}{p999:>10}{max:>10}");
    }
    text.push('\n');
    text + &histogram(cycle)
}

/// How many took how long: each row up to twice as long as the one before.
fn histogram(spans: &[Duration]) -> String {
    let mut rows: Vec<usize> = Vec::new();
    for span in spans {
        let row = usize::try_from(span.as_micros().max(1).ilog2()).unwrap_or(0);
        if rows.len() <= row {
            rows.resize(row + 1, 0);
        }
        if let Some(count) = rows.get_mut(row) {
            *count += 1;
        }
    }
    let most = rows.iter().copied().max().unwrap_or(1).max(1);
    let mut text = String::new();
    for (row, count) in rows.iter().enumerate().skip_while(|(_, count)| **count == 0) {
        let upto = Duration::from_micros(2_u64.saturating_pow(u32::try_from(row + 1).unwrap_or(u32::MAX)));
        let bar = "#".repeat((count * WIDTH).div_ceil(most));
        let _ = writeln!(text, "below {:>9}  {count:>8}  {bar}", format!("{upto:?}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let spans = (1..=1_000).map(Duration::from_micros).collect();
        let Spread { p50, p99, p999, max } = Spread::of(spans);
        assert_eq!((p50, p99, p999, max), (500, 990, 999, 1_000));
        let Spread { p50, p999, max, .. } = Spread::of(vec![Duration::from_micros(7)]);
        assert_eq!((p50, p999, max), (7, 7, 7));
    }

    #[test]
    fn the_histogram_has_a_row_for_every_span() {
        let text = histogram(&[3, 3, 5, 300].map(Duration::from_micros));
        assert_eq!(text.lines().count(), 8, "{text}");
        let first = text.lines().next().unwrap_or_default();
        assert!(first.contains("4µs") && first.ends_with(&"#".repeat(WIDTH)), "{text}");
        assert_eq!(histogram(&[]), "");
    }
}
