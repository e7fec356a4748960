//! The adapter in paused time, over simulated nodes in memory: everything is decided by the order of events.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::std_instead_of_alloc,
    clippy::wildcard_enum_match_arm,
    missing_docs,
    reason = "a test may fail by panicking"
)]

mod bench;
mod cancel;
mod connect;
mod election;
mod gather;
mod hold;
mod many;
mod narrow;
mod time;
