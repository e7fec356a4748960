//! The behaviours, with simulated nodes behind real sockets.
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

mod suite;

use suite::Make;
use suite::cluster::Simulated;

fn on_simulated_nodes(behaviour: &dyn Fn(&Make<'_>)) {
    behaviour(&Simulated::start);
}

behaviours!(on_simulated_nodes);
