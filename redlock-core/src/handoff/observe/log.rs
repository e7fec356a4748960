//! The engine's events as `tracing` events, with the target `redlock`.
//!
//! Levels: `error` for what may break a promise, `warn` for what an operator should look at, `info` for what changes seldom,
//! `debug` for what every lock does.

use super::book::Context;
use crate::error::AcquireErrorKind;
use crate::event::{Event, LostReason};
use crate::ids::LockId;
use crate::machine::RoundLoss;
use core::time::Duration;
use tracing::{debug, error, info, warn};

/// The target of all of them.
pub(super) const TARGET: &str = "redlock";

pub(super) fn tell(event: &Event, context: &Context) {
    let resource = context.resource.as_deref();
    let node = context.node.as_deref();
    let seconds = context.span.as_ref().map(Duration::as_secs_f64);
    match event {
        Event::Acquired { lock, fence, .. } => {
            let fence = fence.map(crate::Fence::get);
            debug!(target: TARGET, resource, ?lock, fence, took_seconds = seconds, "acquired");
        }
        Event::AcquireFailed { error, .. } => match &error.kind {
            // Somebody else has it, or the caller has changed his mind: nobody's fault.
            AcquireErrorKind::Contended
            | AcquireErrorKind::WaitOver { last: RoundLoss::Contended }
            | AcquireErrorKind::Cancelled
            | AcquireErrorKind::Closed => {
                debug!(target: TARGET, resource, %error, took_seconds = seconds, "not acquired")
            }
            AcquireErrorKind::NoQuorum
            | AcquireErrorKind::Mixed
            | AcquireErrorKind::TooSlow
            | AcquireErrorKind::WaitOver { .. }
            | AcquireErrorKind::LimitReached(_)
            | AcquireErrorKind::Invalid(_)
            | AcquireErrorKind::NoEntropy(_)
            | AcquireErrorKind::StaleEpoch { .. } => {
                warn!(target: TARGET, resource, %error, took_seconds = seconds, "not acquired")
            }
        },
        Event::AttemptLost { attempts, loss, .. } => {
            debug!(target: TARGET, resource, attempts, ?loss, "a round was lost");
        }
        Event::HolderSeen { remaining, .. } => {
            let remaining_seconds = remaining.as_secs_f64();
            debug!(target: TARGET, resource, remaining_seconds, "waiting for another owner");
        }
        Event::Extended { lock, .. } => debug!(target: TARGET, resource, ?lock, "extended"),
        Event::ExtendFailed { lock, error, .. } => {
            warn!(target: TARGET, resource, ?lock, %error, "not extended");
        }
        Event::Released { lock, outcome, .. } => {
            debug!(target: TARGET, resource, ?lock, %outcome, held_seconds = seconds, "released");
        }
        Event::Renewed { lock, confirmed, .. } => {
            debug!(target: TARGET, resource, ?lock, confirmed, "renewed");
        }
        Event::RenewalFailed { lock, error } => {
            warn!(target: TARGET, resource, ?lock, %error, "a renewal failed, and is tried again");
        }
        Event::DeadlineMoved { lock, deadline } => {
            debug!(target: TARGET, resource, ?lock, ?deadline, "the deadline moved");
        }
        Event::Expiring { lock, .. } => warn!(target: TARGET, resource, ?lock, "the deadline is near"),
        Event::Lost { lock, reason } => lost(resource, *lock, *reason, seconds),
        Event::Repaired { lock, .. } => {
            info!(target: TARGET, resource, ?lock, node, "set again on a node that had lost it");
        }
        Event::AliasSuspected { lock, .. } => {
            error!(target: TARGET, resource, ?lock, node, "the node is the second name of another");
        }
        Event::NodeUp { .. } => info!(target: TARGET, node, "node up"),
        Event::NodeDown { fault, .. } => warn!(target: TARGET, node, %fault, "node down"),
        Event::IdentityUnknown { .. } => {
            warn!(target: TARGET, node, "node does not say who it is: its restarts go unnoticed");
        }
        Event::NodeRestarted { .. } => warn!(target: TARGET, node, "node has restarted"),
        Event::NodeQuarantined { left, .. } => {
            warn!(target: TARGET, node, ?left, "node may have forgotten locks: it does not vote");
        }
        Event::QuarantineOver { .. } => info!(target: TARGET, node, "node votes again"),
        Event::ClockStepped { by, is_forward, .. } => {
            warn!(target: TARGET, node, ?by, is_forward, "the node's clock was set");
        }
        Event::Connected { .. } => info!(target: TARGET, "connected to a quorum of nodes"),
        Event::ConnectFailed { error, .. } => warn!(target: TARGET, %error, "not connected"),
        Event::Closed => info!(target: TARGET, "closed"),
    }
}

fn lost(resource: Option<&str>, lock: LockId, reason: LostReason, held_seconds: Option<f64>) {
    match reason {
        LostReason::Closed => debug!(target: TARGET, resource, ?lock, %reason, held_seconds, "lost"),
        LostReason::Expired | LostReason::TokenGone | LostReason::DuplicateNode => {
            error!(target: TARGET, resource, ?lock, %reason, held_seconds, "lost");
        }
    }
}
