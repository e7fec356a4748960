//! B57: what the compiler says about wrong uses of this adapter.

#[path = "../../redlock-tokio/tests/facts/facts.rs"]
mod facts;

use redlock_async_std as redlock;
