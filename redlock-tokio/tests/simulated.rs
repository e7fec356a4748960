//! The behaviours that all adapters have, with simulated nodes behind real sockets.

mod adapter;
#[path = "../../redlock-blocking/tests/suite/mod.rs"]
mod suite;

// What the suite is written against.
extern crate self as redlock_blocking;
use adapter::*;

behaviours!(simulated_nodes);
