//! The engine's events as `metrics`, for whatever recorder the program has installed.
//!
//! Labels are few on purpose: a node's address, an outcome. Resources are in none, there may be as many as orders in a shop.
//! The names are documented in `OBSERVABILITY.md`, which a test compares with what is scraped.

use super::book::Context;
use super::something::News;
use crate::error::AcquireErrorKind;
use crate::event::{Event, LostReason, ReleaseOutcome};
use crate::machine::RoundLoss;
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

const ACQUIRE: &str = "redlock_acquire_seconds";
const HOLD: &str = "redlock_hold_seconds";
const WAITERS: &str = "redlock_waiters";
const HELD: &str = "redlock_held";
const ATTEMPTS_LOST: &str = "redlock_attempts_lost_total";
const EXTENSIONS: &str = "redlock_extensions_total";
const RENEWALS: &str = "redlock_renewals_total";
const EXPIRING: &str = "redlock_expiring_total";
const LOST: &str = "redlock_lost_total";
const REPAIRS: &str = "redlock_repairs_total";
const ALIASES: &str = "redlock_aliases_total";
const NODE_UP: &str = "redlock_node_up";
const NODE_QUARANTINED: &str = "redlock_node_quarantined";
const NODE_FAILURES: &str = "redlock_node_failures_total";
const NODE_RESTARTS: &str = "redlock_node_restarts_total";
const NODE_CLOCK_STEPS: &str = "redlock_node_clock_steps_total";
const NODE_VOTES: &str = "redlock_node_votes_total";

fn describe() {
    describe_histogram!(ACQUIRE, Unit::Seconds, "How long acquires took, by outcome; what waited is in it");
    describe_histogram!(HOLD, Unit::Seconds, "How long locks were held, by how that ended");
    describe_gauge!(WAITERS, "Acquires that have no answer yet");
    describe_gauge!(HELD, "Locks that are held");
    describe_counter!(ATTEMPTS_LOST, "Rounds of acquires that were lost, by reason, and followed by another");
    describe_counter!(EXTENSIONS, "Extensions that a caller asked for, by outcome");
    describe_counter!(RENEWALS, "Renewals in the background, by outcome");
    describe_counter!(EXPIRING, "Locks that came near their deadline without being renewed");
    describe_counter!(LOST, "Locks that were lost, by reason");
    describe_counter!(REPAIRS, "Locks that were set again on a node that had lost them");
    describe_counter!(ALIASES, "Nodes that turned out to be the second name of another");
    describe_gauge!(NODE_UP, "Whether the node is connected and takes part");
    describe_gauge!(NODE_QUARANTINED, "Whether the node may have forgotten locks and does not vote yet");
    describe_counter!(NODE_FAILURES, "How often the node went down, or failed for another reason");
    describe_counter!(NODE_RESTARTS, "How often the node was found restarted");
    describe_counter!(NODE_CLOCK_STEPS, "How often the node's wall clock was found set, by direction");
    describe_counter!(NODE_VOTES, "What the node answered to acquires, extensions and repairs");
}

/// A series that appears with its first event has no rate then, and an alert on it does not fire: all start with the client.
fn start_at_zero(nodes: &[Arc<str>]) {
    gauge!(WAITERS).increment(0.0);
    gauge!(HELD).increment(0.0);
    for reason in ["contended", "no_quorum", "mixed", "too_slow"] {
        counter!(ATTEMPTS_LOST, "reason" => reason).increment(0);
    }
    for (counter, outcome) in
        [(EXTENSIONS, "extended"), (EXTENSIONS, "failed"), (RENEWALS, "renewed"), (RENEWALS, "failed")]
    {
        counter!(counter, "outcome" => outcome).increment(0);
    }
    counter!(EXPIRING).increment(0);
    for reason in ["expired", "token_gone", "duplicate_node", "closed"] {
        counter!(LOST, "reason" => reason).increment(0);
    }
    for node in nodes {
        for counter in [REPAIRS, ALIASES, NODE_FAILURES, NODE_RESTARTS] {
            counter!(counter, "node" => node.to_string()).increment(0);
        }
        for vote in ["granted", "refused", "failed", "unanswered"] {
            counter!(NODE_VOTES, "node" => node.to_string(), "vote" => vote).increment(0);
        }
        for direction in ["forward", "back"] {
            counter!(NODE_CLOCK_STEPS, "node" => node.to_string(), "direction" => direction).increment(0);
        }
    }
}

pub(super) fn tell(news: &News) {
    match news {
        News::Opened { nodes } => {
            describe();
            start_at_zero(nodes);
        }
        News::Asked => gauge!(WAITERS).increment(1.0),
        News::Event(event, context) => on_event(event, context),
        News::Votes { node, more } => {
            let count = |vote: &'static str, count: u64| {
                if count > 0 {
                    counter!(NODE_VOTES, "node" => node.to_string(), "vote" => vote).increment(count);
                }
            };
            count("granted", more.granted);
            count("refused", more.refused);
            count("failed", more.failed);
            count("unanswered", more.unanswered);
        }
        News::Closed { waiting, held, nodes } => {
            (0..*waiting).for_each(|_| gauge!(WAITERS).decrement(1.0));
            (0..*held).for_each(|_| gauge!(HELD).decrement(1.0));
            for node in nodes {
                gauge!(NODE_UP, "node" => node.to_string()).set(0.0);
            }
        }
    }
}

fn on_event(event: &Event, context: &Context) {
    let node = || -> String { context.node.as_deref().unwrap_or_default().to_string() };
    match event {
        Event::Acquired { .. } => {
            acquired(context, "acquired");
            gauge!(HELD).increment(1.0);
        }
        Event::AcquireFailed { error, .. } => acquired(context, acquire_outcome(&error.kind)),
        Event::AttemptLost { loss, .. } => {
            counter!(ATTEMPTS_LOST, "reason" => loss_reason(*loss)).increment(1);
        }
        Event::Extended { .. } => counter!(EXTENSIONS, "outcome" => "extended").increment(1),
        Event::ExtendFailed { .. } => counter!(EXTENSIONS, "outcome" => "failed").increment(1),
        Event::Renewed { .. } => counter!(RENEWALS, "outcome" => "renewed").increment(1),
        Event::RenewalFailed { .. } => counter!(RENEWALS, "outcome" => "failed").increment(1),
        Event::Released { outcome, .. } => ended(context, release_outcome(*outcome)),
        Event::Lost { reason, .. } => {
            let reason = lost_reason(*reason);
            counter!(LOST, "reason" => reason).increment(1);
            ended(context, reason);
        }
        Event::Expiring { .. } => counter!(EXPIRING).increment(1),
        Event::Repaired { .. } => counter!(REPAIRS, "node" => node()).increment(1),
        Event::AliasSuspected { .. } => counter!(ALIASES, "node" => node()).increment(1),
        Event::NodeUp { .. } => {
            gauge!(NODE_UP, "node" => node()).set(1.0);
            gauge!(NODE_QUARANTINED, "node" => node()).set(0.0);
        }
        Event::NodeDown { .. } => {
            gauge!(NODE_UP, "node" => node()).set(0.0);
            counter!(NODE_FAILURES, "node" => node()).increment(1);
        }
        Event::NodeRestarted { .. } => counter!(NODE_RESTARTS, "node" => node()).increment(1),
        Event::NodeQuarantined { .. } => gauge!(NODE_QUARANTINED, "node" => node()).set(1.0),
        Event::QuarantineOver { .. } => gauge!(NODE_QUARANTINED, "node" => node()).set(0.0),
        Event::ClockStepped { is_forward, .. } => {
            let direction = if *is_forward { "forward" } else { "back" };
            counter!(NODE_CLOCK_STEPS, "node" => node(), "direction" => direction).increment(1);
        }
        Event::HolderSeen { .. }
        | Event::DeadlineMoved { .. }
        | Event::IdentityUnknown { .. }
        | Event::Connected { .. }
        | Event::ConnectFailed { .. }
        | Event::Closed => {}
    }
}

/// An acquire has its answer. One that was never started is not counted.
fn acquired(context: &Context, outcome: &'static str) {
    if let Some(took) = context.span {
        gauge!(WAITERS).decrement(1.0);
        histogram!(ACQUIRE, "outcome" => outcome).record(took);
    }
}

/// A lock is not held any more. Of one that was lost, the release that follows is not counted.
fn ended(context: &Context, end: &'static str) {
    if let Some(held) = context.span {
        gauge!(HELD).decrement(1.0);
        histogram!(HOLD, "end" => end).record(held);
    }
}

const fn acquire_outcome(kind: &AcquireErrorKind) -> &'static str {
    match kind {
        AcquireErrorKind::Contended => "contended",
        AcquireErrorKind::NoQuorum => "no_quorum",
        AcquireErrorKind::Mixed => "mixed",
        AcquireErrorKind::TooSlow => "too_slow",
        AcquireErrorKind::WaitOver { last } => loss_reason(*last),
        AcquireErrorKind::Cancelled => "cancelled",
        AcquireErrorKind::LimitReached(_) => "limit_reached",
        AcquireErrorKind::Invalid(_) => "invalid",
        AcquireErrorKind::Closed => "closed",
        AcquireErrorKind::NoEntropy(_) => "no_entropy",
        // The engine has acquired by then: an election says this of a grant, and no event does.
        AcquireErrorKind::StaleEpoch { .. } => "stale_epoch",
    }
}

const fn loss_reason(loss: RoundLoss) -> &'static str {
    match loss {
        RoundLoss::Contended => "contended",
        RoundLoss::NoQuorum => "no_quorum",
        RoundLoss::Mixed => "mixed",
        RoundLoss::TooSlow => "too_slow",
    }
}

const fn release_outcome(outcome: ReleaseOutcome) -> &'static str {
    match outcome {
        ReleaseOutcome::Released => "released",
        ReleaseOutcome::Expired => "expired",
        ReleaseOutcome::NotMine => "not_mine",
        ReleaseOutcome::Unknown { .. } => "unknown",
        ReleaseOutcome::StillShared => "still_shared",
    }
}

const fn lost_reason(reason: LostReason) -> &'static str {
    match reason {
        LostReason::Expired => "expired",
        LostReason::TokenGone => "token_gone",
        LostReason::DuplicateNode => "duplicate_node",
        LostReason::Closed => "closed",
    }
}
