//! The `redlock` command, run as a user runs it, against simulated nodes in this process.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests: a panic is how they fail, and what they time is the command, not a lock"
)]

mod demo;
mod loss;
mod nodes;
mod run;
mod support;
