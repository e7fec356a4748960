//! What is wanted of the adapters, and whether a comparison has shown it.

use crate::report::Table;
use core::fmt::Write as _;

const BLOCKING: &str = "redlock-blocking";
const CURRENT: &str = "redlock-tokio, current-thread";
const MULTI: &str = "redlock-tokio, multi-thread";
const SMOL: &str = "redlock-async-std";
const OURS: [&str; 4] = [BLOCKING, CURRENT, MULTI, SMOL];

/// What a figure is held against.
#[derive(Clone, Copy)]
enum Against {
    /// A number.
    Number,
    /// So many times the same figure of another contestant.
    Contestant(&'static str),
    /// So many times its own figure where all nodes are well.
    Healthy,
}

#[derive(Clone, Copy)]
enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

use Against::{Contestant, Healthy, Number};
use Limit::{AtLeast, AtMost};

/// Workload, contestants, figure, limit, and what that is a multiple of.
const TARGETS: [(&str, &[&str], &str, Limit, Against); 20] = [
    ("w1", &[BLOCKING], "pair p50 µs", AtMost(1.10), Contestant("floor-q3")),
    ("w1", &[CURRENT], "pair p50 µs", AtMost(1.25), Contestant("floor-q3")),
    ("w1", &[MULTI, SMOL], "pair p50 µs", AtMost(1.5), Contestant("floor-q3")),
    ("w1", &OURS, "pair p99 µs", AtMost(1.5), Contestant("floor-q3")),
    ("w2", &[CURRENT, MULTI], "cycles/s", AtLeast(0.75), Contestant("floor-all5")),
    ("w2", &[CURRENT, MULTI], "cycles/s", AtLeast(2.5), Contestant("rslock, current-thread")),
    ("w2", &[BLOCKING], "cycles/s", AtLeast(0.4), Contestant("floor-all5")),
    ("w2", &[CURRENT, MULTI], "client CPU µs/cycle", AtMost(12.0), Number),
    ("w3", &OURS, "grants/s", AtLeast(0.95), Contestant("floor-q3")),
    ("w3", &OURS, "wait p99 ms", AtMost(1.3), Contestant("floor-q3")),
    ("w3", &OURS, "least ÷ most served", AtLeast(0.9), Number),
    ("w3", &OURS, "commands/grant", AtMost(11.0), Number),
    ("w4", &OURS, "acquire p50 µs", AtMost(1.1), Healthy),
    ("w4", &OURS, "acquire p99 µs", AtMost(2.0), Healthy),
    ("w4", &OURS, "success %", AtLeast(100.0), Number),
    ("w5", &OURS, "hand-over ÷ acquire", AtMost(3.0), Number),
    ("w6", &OURS, "client CPU µs/renewal", AtMost(30.0), Number),
    ("w6", &OURS, "locks lost", AtMost(0.0), Number),
    ("w7", &OURS, "share of the one %", AtLeast(1.0), Number),
    ("w8", &[CURRENT], "commands/grant", AtMost(0.1), Contestant("redlock-tokio, polling")),
];

/// A table of the targets whose figures are there. Medians against medians.
pub(crate) fn markdown(tables: &[Table]) -> String {
    let mut text = String::from(
        "\n**targets**\n\n| | contestant | limit | measured | |\n| --- | --- | ---: | ---: | --- |\n",
    );
    let (mut reached, mut of) = (0, 0);
    for (workload, contestants, figure, limit, against) in TARGETS {
        for table in tables.iter().filter(|table| table.title.starts_with(workload)) {
            let healthy = tables.iter().find(|other| {
                other.program == table.program && other.title == format!("{workload}, healthy")
            });
            for name in contestants {
                let median =
                    |table: &Table, name: &str| table.figure(name, figure).map(|(median, ..)| median);
                let Some(measured) = median(table, name) else { continue };
                let (unit, words) = match against {
                    Number => (Some(1.0), String::new()),
                    Contestant(other) => (median(table, other), format!(" × {other}")),
                    Healthy => (healthy.and_then(|healthy| median(healthy, name)), " × healthy".to_owned()),
                };
                let Some(unit) = unit else { continue };
                let measured = measured / unit;
                let (sign, limit, is_reached) = match limit {
                    AtMost(most) => ("≤", most, measured <= most),
                    AtLeast(least) => ("≥", least, measured >= least),
                };
                let verdict = if is_reached { "reached" } else { "**missed**" };
                let _fits = writeln!(
                    text,
                    "| {}, {}: {figure} | {name} | {sign} {limit}{words} | {measured:.2} | {verdict} |",
                    table.title, table.program
                );
                reached += usize::from(is_reached);
                of += 1;
            }
        }
    }
    let _fits = writeln!(text, "\n{reached} of {of} reached");
    text
}
