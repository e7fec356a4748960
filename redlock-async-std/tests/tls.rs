//! `rediss://`, with real servers.

mod adapter;
#[path = "../../redlock-blocking/tests/tls/cases/mod.rs"]
mod cases;

// What the cases are written against.
extern crate self as redlock_blocking;
use adapter::*;
