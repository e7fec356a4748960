//! What is told at the end.

use crate::check::{Overlap, Report, Visit};
use crate::record::{Record, What};
use alloc::collections::BTreeMap;
use core::fmt::Write as _;
use core::time::Duration;
use redlock_blocking::Instant;

/// How much around a violation is told.
const AROUND: Duration = Duration::from_millis(100);
/// How many lines of it at most.
const MOST_LINES: usize = 80;
/// How many violations are told in full.
const MOST_TOLD: usize = 3;

/// The numbers, and what is wrong.
pub(crate) fn tell(report: &Report, records: &[Record], done: &BTreeMap<&'static str, u64>) -> String {
    let start = records.first().map_or(Instant::ZERO, |record| record.at);
    let mut text = String::new();
    let list = |pairs: Vec<String>| pairs.join(", ");
    let ends = report.ends;
    let lines = [
        format!(
            "  ends: left {}, expired {}, client closed {}, killed {}",
            ends.left, ends.expired, ends.closed, ends.killed
        ),
        format!(
            "  by adapter: {}",
            list(report.by_flavour.iter().map(|(of, count)| format!("{} {count}", of.name())).collect())
        ),
        format!(
            "  by style: {}",
            list(report.by_style.iter().map(|(of, count)| format!("{of} {count}")).collect())
        ),
        format!(
            "  by phase: {}",
            list(report.phases.iter().map(|(of, count)| format!("{} {count}", of.name())).collect())
        ),
        format!("  done to them: {}", list(done.iter().map(|(of, count)| format!("{of} {count}")).collect())),
    ];
    for line in lines {
        let _infallible = writeln!(text, "{line}");
    }
    for overlap in report.overlaps.iter().take(MOST_TOLD) {
        let Overlap { first, second } = overlap;
        let _infallible =
            writeln!(text, "TWO HOLDERS AT ONCE: {} and {}", shown(first, start), shown(second, start));
        text.push_str(&timeline(records, start, first.start.min(second.start), first.end.max(second.end)));
    }
    for visit in report.fence_regressions.iter().take(MOST_TOLD) {
        let _infallible = writeln!(text, "A FENCE WENT BACK: {:?} of {}", visit.fence, shown(visit, start));
        text.push_str(&timeline(records, start, visit.start, visit.end));
    }
    for (at, fault) in report.faults.iter().take(MOST_TOLD * 3) {
        let _infallible = writeln!(text, "WRONG: {fault} ({})", since(*at, start));
    }
    for (at, _) in report.faults.iter().take(MOST_TOLD) {
        text.push_str(&timeline(records, start, *at, *at));
    }
    text
}

fn since(at: Instant, start: Instant) -> String {
    format!("{:.6} s", at.saturating_duration_since(start).as_secs_f64())
}

fn shown(visit: &Visit, start: Instant) -> String {
    let Visit { grant, flavour, resources, start: from, end, .. } = visit;
    format!(
        "{grant} ({}) has {} from {} to {}",
        flavour.name(),
        resources.join(" and "),
        since(*from, start),
        since(*end, start)
    )
}

/// What happened from shortly before `from` until shortly after `to`.
fn timeline(records: &[Record], start: Instant, from: Instant, to: Instant) -> String {
    let (from, to) = (from.saturating_sub(AROUND), to.saturating_add(AROUND));
    let mut around: Vec<&Record> =
        records.iter().filter(|record| record.at >= from && record.at <= to).collect();
    around.sort_by_key(|record| record.at);
    let mut text = String::new();
    for record in around.iter().take(MOST_LINES) {
        let _infallible = writeln!(text, "    {:>12} {}", since(record.at, start), told(record, start));
    }
    if around.len() > MOST_LINES {
        let _infallible = writeln!(text, "    … {} more", around.len() - MOST_LINES);
    }
    text
}

/// A record, with its deadline counted as the times are.
fn told(record: &Record, start: Instant) -> String {
    let text = record.what.to_string();
    match &record.what {
        What::Enter { until, .. } | What::Lost { until, .. } | What::Until { until, .. } => {
            text.replace(&until.as_nanos().to_string(), &since(*until, start))
        }
        What::Broken { .. }
        | What::Chaos(_)
        | What::Dead { .. }
        | What::Done { .. }
        | What::Leave { .. }
        | What::Phase(_) => text,
    }
}
