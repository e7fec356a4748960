//! What servers reply: recorded, simulated and real, against each other.
//!
//! `simulated` checks the node of `redlock_core::sim` against replies that were recorded from four servers; `live` puts the
//! same situations to the servers that are installed here, and `matrix` puts everything that the engine sends into every
//! situation, to the node and to the server at once.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    clippy::print_stderr,
    reason = "a test"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "real servers take real time; it only bounds how long they are waited for"
)]

#[cfg(unix)]
mod live;
#[cfg(unix)]
mod matrix;
#[cfg(unix)]
mod real;
mod simulated;
