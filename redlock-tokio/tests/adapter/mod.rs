//! This adapter, as the suite wants it.
#![allow(
    unreachable_pub,
    unused_imports,
    clippy::unwrap_used,
    reason = "of tests, of which each needs a part"
)]

#[path = "../../../redlock-blocking/tests/suite/facade.rs"]
mod facade;

use redlock_core::handoff::task;
use redlock_tokio::Tokio;
use std::sync::LazyLock;
use tokio::runtime::Runtime;

pub use facade::{Acquire, Election, Events, Guard};
pub use redlock_core::handoff::names::*;
pub use redlock_tokio::SystemClock;

pub type Redlock = facade::Redlock<Tokio>;

/// Where the clients' drivers run; those who wait are threads outside of it.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

impl facade::Adapter for Tokio {
    fn place(builder: task::Builder<Self>) -> task::Builder<Self> {
        builder.spawn_with(|driver| drop(RUNTIME.spawn(driver)))
    }
}
