//! B57: what the compiler says about wrong uses of this adapter.

mod facts;

use redlock_tokio as redlock;
