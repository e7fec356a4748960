//! The primitives that this module is built from, by one name each: under `--cfg loom` a model checker's take their place.

// Not loom's: it only shares. Nothing depends on its count (live users and handles are counted by atomics of their own), and
// loom's can be neither a `dyn Fn` nor a `Waker`.
pub(super) use alloc::sync::Arc;
#[cfg(all(not(loom), feature = "task"))]
pub(super) use core::sync::atomic::AtomicBool;
pub(super) use core::sync::atomic::Ordering;
#[cfg(not(loom))]
pub(super) use core::sync::atomic::{AtomicU64, AtomicUsize};
#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU64, AtomicUsize};
#[cfg(loom)]
pub(super) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(super) use std::sync::{Mutex, MutexGuard};

use std::sync::PoisonError;

/// Locks. A panic elsewhere is no reason to panic here: what the mutex guards is whole between any two statements that
/// could.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This process.
pub(super) fn process_id() -> u32 {
    #[cfg(all(test, not(loom)))]
    if let Some(id) = super::tests::pretended_process() {
        return id;
    }
    std::process::id()
}

/// Loom lets a swap read any store that is not certainly the older one, though a swap that came before that store has fixed
/// their order by what it read: a signal that was set would be missed. Where storing swaps too, the order is certain.
#[cfg(all(loom, feature = "task"))]
#[derive(Debug)]
pub(super) struct AtomicBool(loom::sync::atomic::AtomicBool);

#[cfg(all(loom, feature = "task"))]
impl AtomicBool {
    pub(super) fn new(value: bool) -> Self {
        Self(loom::sync::atomic::AtomicBool::new(value))
    }

    pub(super) fn store(&self, value: bool, order: Ordering) {
        self.0.swap(value, order);
    }

    pub(super) fn swap(&self, value: bool, order: Ordering) -> bool {
        self.0.swap(value, order)
    }
}
