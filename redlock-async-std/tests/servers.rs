//! The behaviours that all adapters have, with real servers: every one that is found (`suite::cluster::programs` says where).
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::wildcard_enum_match_arm,
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "a test may fail by panicking, and needs only a part of the suite"
)]

mod adapter;
#[path = "../../redlock-blocking/tests/suite/mod.rs"]
mod suite;

// What the suite is written against.
extern crate self as redlock_blocking;
pub use adapter::*;

use suite::Make;
use suite::cluster::{Real, programs};

fn on_real_servers(behaviour: &dyn Fn(&Make<'_>)) {
    for program in programs() {
        behaviour(&|count| Real::start(program, count));
    }
}

behaviours!(on_real_servers);

#[test]
fn b37_unix_sockets_connect() {
    for program in programs() {
        let (cluster, paths) = Real::sockets(program, 3);
        let urls = paths.iter().map(|path| format!("unix://{}", path.display()));
        let redlock = Redlock::connect(urls).unwrap();
        let guard = redlock.acquire("door").lock().unwrap();
        suite::same_everywhere(&*cluster, "door");
        drop(guard);
        suite::no_key(&*cluster, "door");
    }
}
