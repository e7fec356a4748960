//! What all reports together mean: whether locks on these nodes are safe.

use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use super::clock::{ClockReading, readings};
use super::judge;
use super::report::NodeReport;
use super::verdict::{Severity, Topic, Verdict};
use crate::config::Config;

/// How the locks are used that the nodes are judged for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Expectations {
    /// How long the client waits for a node's answer.
    pub node_timeout: Duration,
    /// The client's restart guard, if it has one: its longest ttl.
    pub restart_guard: Option<Duration>,
}

impl Default for Expectations {
    /// The node timeout of the default ttl, and no restart guard.
    fn default() -> Self {
        Self { node_timeout: (Config::DEFAULT_TTL / 20).min(Duration::from_secs(1)), restart_guard: None }
    }
}

impl Expectations {
    /// With this node timeout.
    #[must_use]
    pub fn node_timeout(self, node_timeout: Duration) -> Self {
        Self { node_timeout, ..self }
    }

    /// With this restart guard.
    #[must_use]
    pub fn restart_guard(self, restart_guard: Option<Duration>) -> Self {
        Self { restart_guard, ..self }
    }
}

/// What was found, in words.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Assessment {
    /// The verdicts on each node, in the order of the reports.
    pub nodes: Vec<Vec<Verdict>>,
    /// The verdicts on all of them together.
    pub fleet: Vec<Verdict>,
    /// Each node's clock against the middle one, where it was read.
    pub clocks: Vec<Option<ClockReading>>,
    /// On how many nodes there is no [`Problem`](Severity::Problem).
    pub usable: usize,
    /// How many that have to be.
    pub quorum: usize,
}

impl Assessment {
    /// Whether a quorum of nodes has no problem.
    #[must_use]
    pub const fn is_safe(&self) -> bool {
        self.quorum > 0 && self.usable >= self.quorum
    }

    /// The worst of a node's verdicts.
    #[must_use]
    pub fn worst(&self, node: usize) -> Severity {
        let verdicts = self.nodes.get(node).map(Vec::as_slice).unwrap_or_default();
        verdicts.iter().map(|verdict| verdict.severity).max().unwrap_or(Severity::Ok)
    }
}

/// Judges nodes by what they were heard to say, one report for each configured node, in the order of the configuration.
#[must_use]
pub fn assess(reports: &[NodeReport], expected: &Expectations) -> Assessment {
    let clocks = readings(reports);
    let mut nodes: Vec<Vec<Verdict>> = reports.iter().map(|report| judge::judge(report, expected)).collect();
    for (index, verdicts) in nodes.iter_mut().enumerate() {
        verdicts.extend(identity(index, reports));
        let clock = clocks.get(index).copied().flatten();
        // One clock alone agrees with itself.
        if let Some(clock) = clock.filter(|_| clocks.iter().flatten().count() > 1) {
            verdicts.extend(judge::clock(&clock));
        }
    }
    let is_usable =
        |verdicts: &&Vec<Verdict>| verdicts.iter().all(|verdict| verdict.severity != Severity::Problem);
    let usable = nodes.iter().filter(is_usable).count();
    let quorum = reports.len() / 2 + 1;
    let mut fleet: Vec<Verdict> = Vec::new();
    fleet.extend(node_count(reports.len()));
    fleet.push(quorum_verdict(usable, quorum, reports.len()));
    Assessment { nodes, fleet, clocks, usable, quorum }
}

/// Of one server under two names the later one is at fault, as in the engine (R24).
fn identity(index: usize, reports: &[NodeReport]) -> Option<Verdict> {
    let report = reports.get(index)?;
    let run_id = report.server.run_id.as_deref()?;
    let earlier = reports.get(..index)?;
    let twin = earlier.iter().find(|other| other.server.run_id.as_deref() == Some(run_id));
    Some(match twin {
        Some(twin) => Verdict::problem(
            Topic::Identity,
            format!(
                "It is the same server as {} (both have the run id {run_id}): it would vote twice, \
                 so this address is refused.",
                twin.address
            ),
        )
        .advice("Name each server once; a server more is needed to have as many nodes."),
        None => Verdict::ok(Topic::Identity, "It is none of the nodes before it."),
    })
}

fn node_count(count: usize) -> Option<Verdict> {
    match count {
        0 => None,
        1 => Some(
            Verdict::note(
                Topic::NodeCount,
                "There is one node: when it is down no lock can be had, and when it forgets, a lock \
                 is granted twice.",
            )
            .advice("Use three or five nodes if that matters."),
        ),
        count if count % 2 == 0 => Some(
            Verdict::note(
                Topic::NodeCount,
                format!("There are {count} nodes: of an even number no more may fail than of {}.", count - 1),
            )
            .advice(format!("Use {} or {} nodes.", count - 1, count + 1)),
        ),
        count => Some(Verdict::ok(
            Topic::NodeCount,
            format!("There are {count} nodes: {} of them may fail.", count / 2),
        )),
    }
}

fn quorum_verdict(usable: usize, quorum: usize, count: usize) -> Verdict {
    if usable < quorum {
        return Verdict::problem(
            Topic::Quorum,
            format!("{usable} of {count} nodes are fit for locks, and {quorum} have to be."),
        )
        .advice("Mend the nodes with a problem.");
    }
    let spare = usable - quorum;
    let said = format!("{usable} of {count} nodes are fit for locks, a quorum is {quorum}");
    if usable < count && spare == 0 {
        return Verdict::warning(Topic::Quorum, format!("{said}: with one node less no lock can be had."))
            .advice("Mend the nodes with a problem.");
    }
    Verdict::ok(Topic::Quorum, format!("{said}."))
}
