//! The `redlock` command, run as a user runs it, against simulated nodes in this process.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests: a panic is how they fail, and what they time is the command, not a lock"
)]

mod bench;
mod check;
mod check_servers;
#[path = "../suite/cluster.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::print_stderr,
    clippy::wildcard_enum_match_arm,
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "shared with the behaviours, which need other parts of it"
)]
mod cluster;
mod demo;
mod loss;
mod nodes;
mod run;
#[path = "../tls/cases/server.rs"]
mod server;
mod status;
mod support;
mod tls;
mod unlock;

// What `cluster` takes from whoever includes it.
use support::{until as eventually, within};
