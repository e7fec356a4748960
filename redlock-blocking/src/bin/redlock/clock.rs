//! The clock of the command: the one that deadlines of locks are counted by.

use redlock_blocking::{Clock as _, Instant, SystemClock};

/// Now.
pub(crate) fn now() -> Instant {
    SystemClock.now()
}
