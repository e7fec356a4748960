//! What `--json` prints. The names of the fields are a promise to programs: they stay (README, "JSON").

use core::time::Duration;

use redlock_core::inspect::{
    Assessment, FenceState, HeldKey, Holding, KeyState, NodeReport, Remaining, Tried, Verdict,
};
use serde::Serialize;

use super::status::largest_fence;

/// Of `redlock check`.
#[derive(Debug, Serialize)]
pub(super) struct Check<'a> {
    safe: bool,
    usable: usize,
    quorum: usize,
    nodes: Vec<CheckedNode<'a>>,
    verdicts: Vec<Said<'a>>,
}

#[derive(Debug, Serialize)]
struct CheckedNode<'a> {
    address: String,
    severity: &'static str,
    reached: bool,
    fault: Option<String>,
    product: Option<&'static str>,
    version: Option<String>,
    protocol: Option<u8>,
    role: Option<&'static str>,
    mode: Option<&'static str>,
    run_id: Option<&'a str>,
    uptime_seconds: Option<i64>,
    extend_by: Option<&'static str>,
    release_by: Option<&'static str>,
    trial: Trial,
    missing_rights: Vec<&'static str>,
    latency_min_ms: Option<f64>,
    latency_median_ms: Option<f64>,
    appendonly: Option<bool>,
    appendfsync: Option<&'static str>,
    maxmemory: Option<u64>,
    maxmemory_policy: Option<&'a str>,
    evicted_keys: Option<u64>,
    clock_offset_ms: Option<f64>,
    clock_error_ms: Option<f64>,
    clock_drift_ppm: Option<i64>,
    clock_drift_error_ppm: Option<i64>,
    verdicts: Vec<Said<'a>>,
}

#[derive(Debug, Serialize)]
struct Trial {
    set: Option<bool>,
    extend: Option<bool>,
    extend_by_script: Option<bool>,
    release: Option<bool>,
}

#[derive(Debug, Serialize)]
struct Said<'a> {
    topic: &'static str,
    severity: &'static str,
    finding: &'a str,
    advice: Option<&'a str>,
}

impl<'a> Check<'a> {
    pub(super) fn new(reports: &'a [NodeReport], assessment: &'a Assessment) -> Self {
        let node = |(index, report): (usize, &'a NodeReport)| checked(index, report, assessment);
        Self {
            safe: assessment.is_safe(),
            usable: assessment.usable,
            quorum: assessment.quorum,
            nodes: reports.iter().enumerate().map(node).collect(),
            verdicts: assessment.fleet.iter().map(said).collect(),
        }
    }
}

fn checked<'a>(index: usize, report: &'a NodeReport, assessment: &'a Assessment) -> CheckedNode<'a> {
    let (server, settings) = (&report.server, &report.settings);
    let clock = assessment.clocks.get(index).copied().flatten();
    let trips = report.round_trips();
    let verdicts = assessment.nodes.get(index).map(Vec::as_slice).unwrap_or_default();
    CheckedNode {
        address: report.address.to_string(),
        severity: assessment.worst(index).name(),
        reached: report.is_reached,
        fault: report.fault.as_ref().map(ToString::to_string),
        product: server.product.map(|product| product.name()),
        version: server.version.map(|version| version.to_string()),
        protocol: server.protocol,
        role: server.role.map(|role| role.name()),
        mode: server.mode.map(|mode| mode.name()),
        run_id: server.run_id.as_deref(),
        uptime_seconds: server.uptime_secs,
        extend_by: server.extend.map(|form| form.name()),
        release_by: server.delete.map(|form| form.name()),
        trial: Trial {
            set: worked(&report.trial.set),
            extend: worked(&report.trial.extend),
            extend_by_script: worked(&report.trial.extend_by_script),
            release: worked(&report.trial.delete),
        },
        missing_rights: report.rights.denied().into_iter().map(|right| right.rule()).collect(),
        latency_min_ms: trips.map(|(least, _)| millis(least)),
        latency_median_ms: trips.map(|(_, median)| millis(median)),
        appendonly: settings.appendonly,
        appendfsync: settings.appendfsync.map(|fsync| fsync.name()),
        maxmemory: settings.maxmemory,
        maxmemory_policy: settings.maxmemory_policy.as_deref(),
        evicted_keys: settings.evicted_keys,
        clock_offset_ms: clock.map(|clock| from_micros(clock.offset_micros)),
        clock_error_ms: clock.map(|clock| from_micros(clock.error_micros)),
        clock_drift_ppm: clock.and_then(|clock| clock.drift_ppm),
        clock_drift_error_ppm: clock.and_then(|clock| clock.drift_error_ppm),
        verdicts: verdicts.iter().map(said).collect(),
    }
}

const fn worked(tried: &Tried) -> Option<bool> {
    match tried {
        Tried::Not => None,
        Tried::Worked => Some(true),
        Tried::Refused(_) | Tried::Odd(_) => Some(false),
    }
}

fn said(verdict: &Verdict) -> Said<'_> {
    Said {
        topic: verdict.topic.name(),
        severity: verdict.severity.name(),
        finding: &verdict.finding,
        advice: verdict.advice.as_deref(),
    }
}

/// Of `redlock status`.
#[derive(Debug, Serialize)]
pub(super) struct Status {
    resource: String,
    state: &'static str,
    holder: Option<String>,
    token: Option<String>,
    redlock_token: Option<bool>,
    held_on: usize,
    quorum: usize,
    remaining_ms: Option<u64>,
    expires: Option<bool>,
    fence: Option<String>,
    nodes: Vec<StatusNode>,
}

#[derive(Debug, Serialize)]
struct StatusNode {
    address: String,
    state: &'static str,
    holder: Option<String>,
    token: Option<String>,
    redlock_token: Option<bool>,
    is_holder: bool,
    remaining_ms: Option<u64>,
    expires: Option<bool>,
    fence: Option<String>,
    error: Option<String>,
}

impl Status {
    pub(super) fn new(resource: String, reports: &[NodeReport], holding: &Holding) -> Self {
        let (by, held_on, remaining) = match holding {
            Holding::Held { by, on, remaining } => (Some(by), *on, Some(*remaining)),
            Holding::Split { free_in } => (None, 0, Some(*free_in)),
            Holding::Free { .. } | Holding::Untold => (None, 0, None),
        };
        let (remaining_ms, expires) = left(remaining);
        Self {
            resource,
            state: super::status::state(holding),
            holder: by.and_then(HeldKey::client_name),
            token: by.map(HeldKey::masked),
            redlock_token: by.map(HeldKey::is_ours),
            held_on,
            quorum: reports.len() / 2 + 1,
            remaining_ms,
            expires,
            fence: largest_fence(reports),
            nodes: reports.iter().map(|report| node(report, holding)).collect(),
        }
    }
}

fn node(report: &NodeReport, holding: &Holding) -> StatusNode {
    let found = holding.node(report);
    let held = if let Some(KeyState::Held(held)) = found.key { Some(held) } else { None };
    let remaining = match found.key {
        Some(KeyState::NotAString(remaining)) => Some(*remaining),
        Some(_) | None => held.map(HeldKey::remaining),
    };
    let (remaining_ms, expires) = left(remaining);
    StatusNode {
        address: report.address.to_string(),
        state: super::status::node_state(found.key),
        holder: held.and_then(HeldKey::client_name),
        token: held.map(HeldKey::masked),
        redlock_token: held.map(HeldKey::is_ours),
        is_holder: found.is_holder,
        remaining_ms,
        expires,
        fence: fence(report),
        error: super::status::error(report),
    }
}

pub(super) fn fence(report: &NodeReport) -> Option<String> {
    match &report.fence {
        Some(FenceState::Number(number)) => Some(number.clone()),
        Some(_) | None => None,
    }
}

fn left(remaining: Option<Remaining>) -> (Option<u64>, Option<bool>) {
    match remaining {
        Some(Remaining::For(left)) => (u64::try_from(left.as_millis()).ok(), Some(true)),
        Some(Remaining::Forever) => (None, Some(false)),
        Some(Remaining::Untold) | None => (None, None),
    }
}

/// To the microsecond.
fn millis(span: Duration) -> f64 {
    (span.as_secs_f64() * 1_000_000.0).round() / 1_000.0
}

fn from_micros(micros: i64) -> f64 {
    let span = millis(Duration::from_micros(micros.unsigned_abs()));
    if micros < 0 { -span } else { span }
}
