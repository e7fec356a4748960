//! What `redlock-core` costs, measured with nothing around it: an engine whose nodes answer at once, by literal bytes.
//!
//! The programs and tests of this package share it: `tests/allocations.rs`, `src/bin/instructions.rs` (under callgrind),
//! `benches/engine.rs` (criterion). `src/bin/compare` measures the adapters, over real servers.

mod rig;

pub use rig::{Dialect, Rig};
