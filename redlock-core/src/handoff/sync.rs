//! The primitives that this module is built from, by one name each: a model checker's can take their place.

pub(super) use alloc::sync::Arc;
#[cfg(feature = "task")]
pub(super) use core::sync::atomic::AtomicBool;
pub(super) use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
pub(super) use std::sync::{Mutex, MutexGuard};

use std::sync::PoisonError;

/// Locks. A panic elsewhere is no reason to panic here: what the mutex guards is whole between any two statements that
/// could.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This process.
pub(super) fn process_id() -> u32 {
    #[cfg(test)]
    if let Some(id) = super::tests::pretended_process() {
        return id;
    }
    std::process::id()
}
