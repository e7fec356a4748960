//! Whether everything went right, judged afterwards from the record alone.
//!
//! What exclusion promises is that no two *believed* intervals of one resource overlap: from an instant after the grant to
//! the last one after which the lock was seen to be held; or, where nobody could look any more, to the deadline that the
//! holder believed in last. Somebody that was stopped beyond that deadline and has not looked yet believes in nothing.

use crate::record::{Flavour, Grant, Loss, Phase, Record, What};
use alloc::collections::{BTreeMap, BTreeSet};
use redlock_blocking::Instant;

/// One grant, from its start to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Visit {
    pub(crate) grant: Grant,
    pub(crate) flavour: Flavour,
    pub(crate) resources: Vec<String>,
    pub(crate) fence: Option<u64>,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}

/// Two who believed to hold one resource at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Overlap {
    pub(crate) first: Visit,
    pub(crate) second: Visit,
}

/// How grants ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) left: u64,
    pub(crate) expired: u64,
    pub(crate) closed: u64,
    pub(crate) killed: u64,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub(crate) grants: u64,
    pub(crate) by_flavour: BTreeMap<Flavour, u64>,
    pub(crate) by_style: BTreeMap<String, u64>,
    pub(crate) ends: Ends,
    /// How many grants each phase had.
    pub(crate) phases: Vec<(Phase, u64)>,
    pub(crate) overlaps: Vec<Overlap>,
    /// Grants whose fence was not above that of an earlier one.
    pub(crate) fence_regressions: Vec<Visit>,
    /// How many grants have a fence.
    pub(crate) fenced: u64,
    /// Everything else that must not be, in words, and when.
    pub(crate) faults: Vec<(Instant, String)>,
}

impl Report {
    /// Whether nothing is wrong.
    pub(crate) fn is_clean(&self) -> bool {
        self.overlaps.is_empty() && self.fence_regressions.is_empty() && self.faults.is_empty()
    }
}

/// A grant that has not ended yet, as far as was read.
#[derive(Debug)]
struct Open {
    visit: Visit,
    /// Where it ends if its process is killed.
    promised: Instant,
}

/// Reads the record, in whatever order its lines are.
pub(crate) fn check(records: &[Record]) -> Report {
    let mut report = Report::default();
    let mut dead = BTreeSet::new();
    let mut done: BTreeMap<(u32, u32), (Instant, u32)> = BTreeMap::new();
    let mut granted: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    let mut open: BTreeMap<Grant, Open> = BTreeMap::new();
    let mut visits = Vec::new();
    let mut begun = Vec::new();
    // A worker writes its own lines in order; those of others may be anywhere between.
    for Record { at, what } in records {
        let at = *at;
        let mut unknown = |grant: &Grant| {
            report.faults.push((at, format!("{grant} goes on without being granted, or after its end")));
        };
        match what {
            What::Enter { grant, flavour, resources, until, fence, style } => {
                report.grants += 1;
                *report.by_flavour.entry(*flavour).or_default() += 1;
                *report.by_style.entry(style.clone()).or_default() += 1;
                report.fenced += u64::from(fence.is_some());
                *granted.entry((grant.process, grant.actor)).or_default() += 1;
                let visit = Visit {
                    grant: *grant,
                    flavour: *flavour,
                    resources: resources.clone(),
                    fence: *fence,
                    start: at,
                    end: at,
                };
                if open.insert(*grant, Open { visit, promised: *until }).is_some() {
                    report.faults.push((at, format!("{grant} is granted twice")));
                }
            }
            What::Until { grant, until } => match open.get_mut(grant) {
                Some(open) => {
                    open.visit.end = at;
                    open.promised = *until;
                }
                None => unknown(grant),
            },
            What::Leave { grant } => match open.remove(grant) {
                Some(Open { visit, .. }) => {
                    report.ends.left += 1;
                    visits.push(Visit { end: at, ..visit });
                }
                None => unknown(grant),
            },
            What::Lost { grant, until, reason } => match open.remove(grant) {
                Some(Open { visit, .. }) => {
                    let end = match reason {
                        Loss::Expired => at.max(*until),
                        Loss::Closed | Loss::Gone => at,
                    };
                    match reason {
                        Loss::Expired => report.ends.expired += 1,
                        Loss::Closed => report.ends.closed += 1,
                        Loss::Gone => {
                            report.faults.push((at, format!("{grant} was gone from nodes before its time")))
                        }
                    }
                    visits.push(Visit { end, ..visit });
                }
                None => unknown(grant),
            },
            What::Broken { process, text } => report.faults.push((at, format!("process {process}: {text}"))),
            What::Done { process, actor, grants } => {
                done.insert((*process, *actor), (at, *grants));
            }
            What::Dead { process } => {
                dead.insert(*process);
            }
            What::Phase(phase) => begun.push((at, *phase)),
            What::Chaos(_) => {}
        }
    }
    for Open { visit, promised } in open.into_values() {
        if dead.contains(&visit.grant.process) {
            report.ends.killed += 1;
            visits.push(Visit { end: visit.end.max(promised), ..visit });
        } else {
            report
                .faults
                .push((visit.start, format!("{} has no end, and its process was not killed", visit.grant)));
        }
    }
    for ((process, actor), (at, grants)) in done {
        let seen = granted.get(&(process, actor)).copied().unwrap_or_default();
        if seen != grants {
            let text =
                format!("actor {process}.{actor} was granted {grants} locks, of which {seen} are recorded");
            report.faults.push((at, text));
        }
    }
    visits.sort_by_key(|visit| (visit.start, visit.end));
    report.phases = phases(begun, &visits);
    let resources: BTreeSet<&String> = visits.iter().flat_map(|visit| &visit.resources).collect();
    for resource in resources {
        // Who was stopped between its grant and its first look may have had nothing any more by then.
        let of_it = |visit: &&Visit| visit.resources.contains(resource) && visit.end > visit.start;
        report.overlaps.extend(overlaps(visits.iter().filter(of_it)));
        report.fence_regressions.extend(regressions(visits.iter().filter(of_it)));
    }
    report.overlaps.sort_by_key(|overlap| overlap.second.start);
    report.faults.sort();
    report
}

/// How many grants began in each phase.
fn phases(mut begun: Vec<(Instant, Phase)>, visits: &[Visit]) -> Vec<(Phase, u64)> {
    begun.sort_by_key(|(at, _)| *at);
    let ends = begun.iter().skip(1).map(|(at, _)| *at).chain([Instant::MAX]);
    let count = |((start, phase), end): (&(Instant, Phase), Instant)| {
        let within = visits.iter().filter(|visit| visit.start >= *start && visit.start < end);
        (*phase, within.count() as u64)
    };
    begun.iter().zip(ends).map(count).collect()
}

/// Overlaps among the visits of one resource, ordered by their start; each is the second one at most once.
fn overlaps<'v>(visits: impl Iterator<Item = &'v Visit>) -> Vec<Overlap> {
    let mut found = Vec::new();
    // Of all before, the one that stayed longest.
    let mut longest: Option<&Visit> = None;
    for visit in visits {
        // At one and the same instant the first has left before the second came: a lock is held before its deadline, not at it.
        if let Some(first) = longest.filter(|first| first.end > visit.start) {
            found.push(Overlap { first: first.clone(), second: visit.clone() });
        }
        if longest.is_none_or(|first| first.end < visit.end) {
            longest = Some(visit);
        }
    }
    found
}

/// Visits of one resource, ordered by their start, whose fence is not above all before.
fn regressions<'v>(visits: impl Iterator<Item = &'v Visit>) -> Vec<Visit> {
    let mut highest = None;
    let mut found = Vec::new();
    for visit in visits {
        let Some(fence) = visit.fence else { continue };
        if highest.is_some_and(|highest| fence <= highest) {
            found.push(visit.clone());
        }
        highest = highest.max(Some(fence));
    }
    found
}

#[cfg(test)]
mod tests;
