//! Who woke the driver, and until when it sleeps.

use super::super::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering, lock};
use crate::time::Instant;
use alloc::task::Wake;
use core::task::Waker;

/// What the driver sleeps on. Its alarm is set under the hub's mutex, and read by the driver.
#[derive(Debug, Default)]
pub(super) struct Bell {
    alarm: AtomicU64,
    driver: Mutex<Option<Waker>>,
}

impl Bell {
    /// The driver listens, with this waker from now on.
    pub(super) fn listen(&self, waker: &Waker) {
        let mut driver = lock(&self.driver);
        if driver.as_ref().is_none_or(|known| !known.will_wake(waker)) {
            let old = driver.replace(waker.clone());
            drop(driver);
            drop(old);
        }
    }

    /// Who is to be woken, if the driver listens.
    pub(super) fn driver(&self) -> Option<Waker> {
        lock(&self.driver).clone()
    }

    pub(super) fn alarm(&self) -> Instant {
        Instant::from_nanos(self.alarm.load(Ordering::Acquire))
    }

    pub(super) fn set_alarm(&self, at: Instant) {
        self.alarm.store(at.as_nanos(), Ordering::Release);
    }
}

/// One node's string at the bell: remembers that it was pulled, so that the driver looks at no others.
#[derive(Debug)]
pub(super) struct Signal {
    bell: Arc<Bell>,
    is_set: AtomicBool,
}

impl Signal {
    pub(super) fn new(bell: Arc<Bell>) -> Self {
        Self { bell, is_set: AtomicBool::new(false) }
    }

    /// Remembers without ringing.
    pub(super) fn set(&self) {
        self.is_set.store(true, Ordering::Release);
    }

    /// Whether there is something to look at; forgets that there is.
    pub(super) fn take(&self) -> bool {
        self.is_set.swap(false, Ordering::AcqRel)
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.set();
        if let Some(driver) = self.bell.driver() {
            driver.wake();
        }
    }
}
