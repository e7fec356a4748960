//! How often each rule's branches were taken. A run in which one was never taken proves nothing about it.

use redlock_core::{
    AcquireErrorKind, Event, ExtendErrorKind, LostReason, NodeFault, ReleaseOutcome, RoundLoss,
};
use std::collections::BTreeMap;

/// The branches that every run of a thousand seeds has to take.
pub const BRANCHES: &[&str] = &[
    "R5 attempt won",
    "R5 contended",
    "R5 no quorum",
    "R5 mixed",
    "R6 too slow",
    "R7 released on a later connection",
    "R9 wait over",
    "R10 cancelled",
    "R11 connection silent",
    "R11 handshake timeout",
    "R11 connection refused",
    "R12 invalid",
    "R14 extended",
    "R14 extension without quorum",
    "R14 extension of a lost lock",
    "R14 deadline moved",
    "R15 repaired",
    "R16 renewed",
    "R16 renewal failed",
    "R16 beyond max_hold",
    "R17 expiring",
    "R17 lost at the deadline",
    "R17 lost, token gone",
    "R18 deleted natively",
    "R18 deleted by script",
    "R19 released",
    "R19 expired",
    "R19 not mine",
    "R19 unknown",
    "R21 connection closed",
    "R22 handshake done",
    "R22 restart noticed",
    "R23 server error",
    "R23 replica",
    "R24 one server twice",
    "R25 node quarantined",
    "R25 quarantine over",
    "R27 connected",
    "R27 not connected",
    "queue hand-off",
    "woken by a push",
    "R9 delay",
    "first round delayed",
    "holder's watch",
    "elected",
    "elected again",
    "a leader resigned",
    "a leader lost the lock",
    "a campaign called off",
    "fence granted",
    "fence raised",
];

/// Counters by branch.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    counts: BTreeMap<&'static str, u64>,
}

impl Coverage {
    /// One more.
    pub fn hit(&mut self, branch: &'static str) {
        *self.counts.entry(branch).or_default() += 1;
    }

    /// All of another's.
    pub fn add(&mut self, other: &Self) {
        for (branch, count) in &other.counts {
            *self.counts.entry(branch).or_default() += count;
        }
    }

    /// How often a branch was taken.
    #[must_use]
    pub fn count(&self, branch: &str) -> u64 {
        self.counts.get(branch).copied().unwrap_or_default()
    }

    /// The branches that were never taken.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        BRANCHES.iter().copied().filter(|branch| self.count(branch) == 0).collect()
    }

    /// Notes the branch that an event stands for.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "counts what it knows; a new event is no branch by itself"
    )]
    pub fn note(&mut self, event: &Event) {
        let branch = match event {
            Event::Acquired { .. } => "R5 attempt won",
            Event::AcquireFailed { error, .. } => match &error.kind {
                AcquireErrorKind::Contended => "R5 contended",
                AcquireErrorKind::NoQuorum => "R5 no quorum",
                AcquireErrorKind::Mixed => "R5 mixed",
                AcquireErrorKind::TooSlow => "R6 too slow",
                AcquireErrorKind::WaitOver { last } => {
                    self.hit("R9 wait over");
                    match last {
                        RoundLoss::Contended => "R5 contended",
                        RoundLoss::NoQuorum => "R5 no quorum",
                        RoundLoss::Mixed => "R5 mixed",
                        RoundLoss::TooSlow => "R6 too slow",
                        _ => return,
                    }
                }
                AcquireErrorKind::Cancelled => "R10 cancelled",
                AcquireErrorKind::Invalid(_) => "R12 invalid",
                _ => return,
            },
            Event::Extended { .. } => "R14 extended",
            Event::ExtendFailed { error, .. } => match &error.kind {
                ExtendErrorKind::NoQuorum => "R14 extension without quorum",
                ExtendErrorKind::Lost(_) | ExtendErrorKind::Released => "R14 extension of a lost lock",
                _ => return,
            },
            Event::Released { outcome, .. } => match outcome {
                ReleaseOutcome::Released => "R19 released",
                ReleaseOutcome::Expired => "R19 expired",
                ReleaseOutcome::NotMine => "R19 not mine",
                ReleaseOutcome::Unknown { .. } => "R19 unknown",
                _ => return,
            },
            Event::Renewed { .. } => "R16 renewed",
            Event::RenewalFailed { .. } => "R16 renewal failed",
            Event::DeadlineMoved { .. } => "R14 deadline moved",
            Event::Expiring { .. } => "R17 expiring",
            Event::Lost { reason, .. } => match reason {
                LostReason::Expired => "R17 lost at the deadline",
                LostReason::TokenGone => "R17 lost, token gone",
                _ => return,
            },
            Event::Repaired { .. } => "R15 repaired",
            Event::NodeUp { .. } => "R22 handshake done",
            Event::NodeRestarted { .. } => "R22 restart noticed",
            Event::NodeQuarantined { .. } => "R25 node quarantined",
            Event::QuarantineOver { .. } => "R25 quarantine over",
            Event::Connected { .. } => "R27 connected",
            Event::ConnectFailed { .. } => "R27 not connected",
            Event::NodeDown { fault, .. } => match fault {
                NodeFault::Silent(_) => "R11 connection silent",
                NodeFault::HandshakeTimeout(_) => "R11 handshake timeout",
                NodeFault::Refused(_) => "R11 connection refused",
                NodeFault::Closed | NodeFault::ClosedInHandshake => "R21 connection closed",
                NodeFault::Server(_) => "R23 server error",
                NodeFault::Replica => "R23 replica",
                NodeFault::Duplicate { .. } => "R24 one server twice",
                _ => return,
            },
            _ => return,
        };
        self.hit(branch);
    }
}
