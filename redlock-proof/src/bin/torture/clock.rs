//! The clock of the record: the one that deadlines of locks are counted by, the same in all processes of this machine.

use redlock_blocking::{Clock as _, Instant, SystemClock};

/// Now.
pub(crate) fn now() -> Instant {
    SystemClock.now()
}
