//! The engine, step by step: every rule of the design with the calls and the literal bytes that show it.
//!
//! Virtual time only. A test's name begins with the rule (`r7_…`), the line of the calling contract (`c4_…`) or the case
//! (`b28_…`) that it is for.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::wildcard_enum_match_arm,
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "a test"
)]
#![allow(dead_code, reason = "the bench has more than each test needs")]

mod acquire;
mod bench;
mod cases;
mod cleanup;
mod clock;
mod connect;
mod connection;
mod contention;
mod contract;
mod ending;
mod extend;
mod fence;
mod handshake;
mod loss;
mod machine;
mod mutants;
mod queue;
mod random;
mod release;
mod renew;
mod restart;
mod retry;
mod search;
mod secrets;
mod wake;
mod world;
