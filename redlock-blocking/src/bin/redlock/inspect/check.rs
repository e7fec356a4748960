//! `redlock check`.

use core::fmt::Write as _;
use core::time::Duration;

use redlock_core::Config;
use redlock_core::inspect::{
    Assessment, ClockReading, Expectations, NodeReport, Severity, Task, Verdict, assess,
};

use super::args::CheckArgs;
use super::table::Table;
use super::{addresses, config, json, sockets, span, tls};
use crate::exit::{self, Exit};
use crate::out;

/// The longest time that clocks are looked at.
const MOST_SAMPLING: Duration = Duration::from_secs(3_600);

/// Asks, and says what was found.
pub(crate) fn run(args: &CheckArgs) -> Exit {
    match config(&args.node).and_then(|config| check(args, &config)) {
        Ok(true) => Exit(0),
        Ok(false) => Exit(exit::UNAVAILABLE),
        Err(message) => {
            out::say(message);
            Exit(exit::USAGE)
        }
    }
}

fn check(args: &CheckArgs, config: &Config) -> Result<bool, String> {
    if args.sampling > MOST_SAMPLING {
        return Err(format!("--sampling {:?} is too long; an hour is the most", args.sampling));
    }
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| format!("no random bytes: {error}"))?;
    // One for each node: two of them may be one server.
    let task = |node: usize| {
        let name = format!("redlock-check:{:032x}:{node}", u128::from_be_bytes(random));
        Task::check([config.key_prefix(), name.as_bytes()].concat(), args.sampling)
    };
    let tls = tls(&args.node, config)?;
    let reports = sockets::ask_all(&addresses(config), tls.as_ref(), task, args.node.timeout, args.sampling);
    let expected = Expectations::default()
        .node_timeout(args.node_timeout.unwrap_or_else(|| config.node_timeout_for(args.ttl)))
        .restart_guard(args.restart_guard);
    let assessment = assess(&reports, &expected);
    if args.json {
        let json = json::Check::new(&reports, &assessment);
        let text = serde_json::to_string_pretty(&json).map_err(|error| error.to_string())?;
        out::print(&format!("{text}\n"));
    } else {
        out::print(&text(&reports, &assessment, args.verbose));
    }
    Ok(assessment.is_safe())
}

fn text(reports: &[NodeReport], assessment: &Assessment, is_verbose: bool) -> String {
    let mut text = table(reports, assessment);
    text.push('\n');
    for group in groups(reports, assessment, is_verbose) {
        let Group { severity, nodes, verdict } = group;
        let who = if nodes.len() == reports.len() && nodes.len() > 1 {
            "all nodes".to_owned()
        } else {
            nodes.join(", ")
        };
        // Writing to a string does not fail.
        let _written = writeln!(text, "{:<8} {who}: {}", severity.name(), verdict.finding);
        tell_advice(&mut text, verdict);
    }
    for verdict in &assessment.fleet {
        let is_last = verdict.topic == redlock_core::inspect::Topic::Quorum;
        if is_verbose || is_last || verdict.severity > Severity::Ok {
            let _written = writeln!(text, "{:<8} {}", verdict.severity.name(), verdict.finding);
            tell_advice(&mut text, verdict);
        }
    }
    text
}

fn tell_advice(text: &mut String, verdict: &Verdict) {
    if let Some(advice) = verdict.advice.as_ref().filter(|_| verdict.severity > Severity::Ok) {
        let _written = writeln!(text, "         What to do: {advice}");
    }
}

/// The same thing said of several nodes.
struct Group<'a> {
    severity: Severity,
    nodes: Vec<String>,
    verdict: &'a Verdict,
}

/// All that is to be said of single nodes, the worst first.
fn groups<'a>(reports: &[NodeReport], assessment: &'a Assessment, is_verbose: bool) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (report, verdicts) in reports.iter().zip(&assessment.nodes) {
        for verdict in verdicts.iter().filter(|verdict| is_verbose || verdict.severity > Severity::Ok) {
            let node = report.address.to_string();
            match groups.iter_mut().find(|group| group.verdict == verdict) {
                Some(group) => group.nodes.push(node),
                None => groups.push(Group { severity: verdict.severity, nodes: vec![node], verdict }),
            }
        }
    }
    groups.sort_by_key(|group| core::cmp::Reverse(group.severity));
    groups
}

fn table(reports: &[NodeReport], assessment: &Assessment) -> String {
    let mut table = Table::default();
    table.row([
        "node",
        "server",
        "role",
        "up",
        "answers in",
        "extend, release",
        "disk",
        "eviction",
        "clock",
        "verdict",
    ]);
    for (index, report) in reports.iter().enumerate() {
        let (server, settings) = (&report.server, &report.settings);
        let dash = || "-".to_owned();
        let name = server
            .product
            .zip(server.version)
            .map(|(product, version)| format!("{} {version}", product.name()));
        let up = server.uptime_secs.map(|secs| match u64::try_from(secs) {
            Ok(secs) => span(Duration::from_secs(secs)).replace(".0s", "s"),
            Err(_) => format!("{secs}s"),
        });
        let forms = server
            .extend
            .zip(server.delete)
            .map(|(extend, delete)| format!("{}, {}", extend.name(), delete.name()));
        let disk = settings.appendonly.map(|appendonly| match (appendonly, settings.appendfsync) {
            (false, _) => "none".to_owned(),
            (true, Some(fsync)) => fsync.name().to_owned(),
            (true, None) => "some".to_owned(),
        });
        let clock = assessment.clocks.get(index).and_then(Option::as_ref).map(clock);
        let trips = report
            .round_trips()
            .map(|(least, median)| format!("{:.2}/{:.2}ms", millis(least), millis(median)));
        table.row([
            report.address.to_string(),
            name.unwrap_or_else(dash),
            role(report),
            up.unwrap_or_else(dash),
            trips.unwrap_or_else(dash),
            forms.unwrap_or_else(dash),
            disk.unwrap_or_else(dash),
            settings.maxmemory_policy.clone().unwrap_or_else(dash),
            clock.unwrap_or_else(dash),
            assessment.worst(index).name().to_owned(),
        ]);
    }
    table.render()
}

fn role(report: &NodeReport) -> String {
    use redlock_core::inspect::Mode;
    match (report.server.mode, report.server.role) {
        (Some(mode @ (Mode::Cluster | Mode::Sentinel)), _) => mode.name().to_owned(),
        (Some(_) | None, Some(role)) => role.name().to_owned(),
        (Some(_) | None, None) => "-".to_owned(),
    }
}

fn clock(reading: &ClockReading) -> String {
    let micros = |micros: i64| millis(Duration::from_micros(micros.unsigned_abs()));
    let sign = if reading.offset_micros < 0 { '-' } else { '+' };
    format!("{sign}{:.2}±{:.2}ms", micros(reading.offset_micros), micros(reading.error_micros))
}

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1_000.0
}
