//! Faults that are planted, so that the check is seen to find them.
//!
//! They are planted in the harness: in what is told to the claims, and where commands and answers go. The shipped code is
//! the same in all models.

use super::configs::{Model, models_for_faults};

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Every attempt of a client has the same token (against R8).
    OneToken,
    /// N/2 nodes are taken for a quorum (against R3).
    HalfQuorum,
    /// A late reply to one attempt's SET is credited to the next attempt (against R21).
    LateReplyCredited,
    /// Nodes of which the answer is not known get no release (against R7).
    AmbiguousNotReleased,
    /// What is owed to a node is not sent after the reconnect (against R7).
    OwedForgotten,
    /// A repair is taken for a confirmation of its own round (against R15).
    RepairCounted,
    /// A queued repair is sent after the release (against R15).
    RepairAfterRelease,
    /// A shorter extension is told to the claim with its answer, not from the hand-out on (against R14 a).
    ShorterFromAnswer,
    /// An extension that is stuck in a dead connection is taken for one that cannot run any more (against R14 b).
    StuckForgotten,
    /// A node in quarantine gives votes (against R25).
    QuarantineIgnored,
    // To come with fencing: a raise that is unconditional, a fence taken from fewer than a quorum, a counter that restarts
    // from zero, a repair that puts an old number. To come with pushes: a wake-up lost between read and registration.
}

/// A fault, and the smallest model in which it is looked for.
#[derive(Clone, Debug)]
pub struct Planted {
    /// The fault.
    pub fault: Fault,
    /// A model with the fault in it.
    pub model: Model,
}

/// Every planted fault.
#[must_use]
pub fn planted() -> Vec<Planted> {
    models_for_faults()
        .into_iter()
        .map(|(fault, model)| Planted { fault, model: model.with(fault) })
        .collect()
}
