//! The quorum machines: votes and time in, decisions out.
//!
//! They are plain data (`Clone + Eq + Hash`), know no bytes, no sockets and no clock, and are what the model checker
//! runs. [`Claim`] is one token's life: the [`attempt`](Claim::new) that sets it on every node, the hold with its
//! extensions and repairs, and the clean-up after its end. [`Acquire`] is the row of attempts that one call makes, and
//! decides after each lost one whether to try again. [`Queue`] is the order in which the
//! acquires of one client have their turn for one resource, [`Watch`] what nodes tell the one whose turn
//! it is, [`LossWatch`] how far a holder is with having its nodes tell it, [`Election`] one candidate's way through campaigns
//! and terms. The engine ([`Client`](crate::Client)) turns their [`Effect`]s into commands and events, and replies into
//! [`Answer`]s.
//!
//! Public so that they can be checked and read; not covered by the version's promise.

mod acquire;
mod claim;
mod cleanup;
mod election;
mod extend;
mod loss_watch;
mod queue;
mod quorum;
mod renew;
mod support;
mod watch;

pub use acquire::{Acquire, NextStep};
pub use claim::{Cause, Claim, Effect, EndReason, Reach, Terms, Verb};
pub use cleanup::{ReleaseResult, ReleaseVerdict};
pub use election::{Election, Stage, StaleEpoch};
pub use extend::{ExtendBar, RoundFailure as ExtendFailure};
pub use loss_watch::LossWatch;
pub use queue::Queue;
pub use quorum::{Answer, Quorum, RoundLoss, Tally, Verdict, Vote};
pub use renew::Renewal;
pub use support::Support;
pub use watch::{Look, Reading, Watch};
