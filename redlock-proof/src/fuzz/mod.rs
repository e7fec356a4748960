//! What fuzzers drive: bytes in, and what was wrong with how the shipped code took them.
//!
//! The bodies live here, not in `fuzz/`, so that plain `cargo test` replays the corpus that the fuzzers have left
//! (`fuzz/corpus/`) with any toolchain. The targets in `fuzz/` only panic where one of these says no.

#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a checker that runs on a host, never without std"
)]

mod addresses;
mod engine;
mod nodes;
mod replies;
mod rig;
mod scenario;

pub use addresses::addresses;
pub use engine::engine;
pub use replies::replies;
pub use scenario::scenario;

/// What is to be driven with bytes; the error says what was wrong.
pub type Target = fn(&[u8]) -> Result<(), String>;

/// Every target by its name, which is also the name of its corpus.
pub const TARGETS: [(&str, Target); 4] =
    [("addresses", addresses), ("engine", engine), ("replies", replies), ("scenario", scenario)];

/// An error unless what must hold does.
fn check(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}
