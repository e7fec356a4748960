//! Deterministic simulation: whole clients, as shipped, against simulated nodes, in virtual time, from one seed.
//!
//! A run has two phases. In the first everything goes wrong that the assumptions allow: connections are cut at any byte,
//! stranded with commands in them, half-open; nodes are stopped, paused, restarted with their memory, run out of it;
//! clients are paused for longer than the ttl, crash, cancel. Then all is healed, and what was asked for must be answered,
//! everybody must get the lock, and in the end no node may hold a key.
//!
//! The oracle looks after every step. What breaks an assumption on purpose ([`Breakage`]) must make it
//! cry: that is tested beside it.

#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a checker that runs on a host, never without std"
)]

mod coverage;
mod dice;
mod election;
mod oracle;
mod plan;
mod scenario;
mod timeline;

pub use coverage::{BRANCHES, Coverage};
pub use dice::Dice;
pub use plan::{Breakage, Size};
pub use scenario::{Outcome, run, run_sized};
pub use timeline::{Lane, Timeline};
