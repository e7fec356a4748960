//! This adapter, as the suite wants it.
#![allow(unreachable_pub, unused_imports, reason = "of tests, of which each needs a part")]

#[path = "../../../redlock-blocking/tests/suite/facade.rs"]
mod facade;

use redlock_async_std::AsyncIo;
use redlock_core::handoff::task;

pub use facade::{Acquire, Election, Events, Guard};
pub use redlock_async_std::SystemClock;
pub use redlock_core::handoff::names::*;

pub type Redlock = facade::Redlock<AsyncIo>;

impl facade::Adapter for AsyncIo {
    fn place(builder: task::Builder<Self>) -> task::Builder<Self> {
        builder
    }
}
