//! The clock, and entropy.

redlock_core::__system!();
