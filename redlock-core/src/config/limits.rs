//! What bounds a client's memory.

use super::ConfigError;

/// What bounds a client's memory. Reaching one is an error of the operation that reached it, or closes the connection
/// that did; nothing grows beyond.
///
/// ```
/// use redlock_core::Limits;
///
/// let mut limits = Limits::default();
/// limits.locks = 500;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Operations that are not answered yet: acquires (those that wait in a queue too), extends, releases, connects.
    /// 100 000: with about a kilobyte for each, no more than 100 MB.
    pub operations: usize,
    /// Locks that are held or being taken, at once. 100 000, as for operations.
    pub locks: usize,
    /// Commands on one connection that are not answered yet. 65 536: what a node that works answers within one node
    /// timeout, and a node that hangs cannot collect more. A node at its limit counts as one to which nothing was sent.
    pub in_flight_per_node: usize,
    /// Locks and attempts that have ended and whose release waits for a node that is away (R7). Each of them took its
    /// place when it started, so that clean-up itself is never refused; a new one is refused instead. 200 000.
    pub cleanups: usize,
    /// Events that tell of nodes and locks and wait to be polled; the answers to operations are not counted, they
    /// are bounded by `operations`. 65 536: hours of a driver's time to look.
    pub queued_events: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            operations: 100_000,
            locks: 100_000,
            in_flight_per_node: 65_536,
            cleanups: 200_000,
            queued_events: 65_536,
        }
    }
}

impl Limits {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        for (name, limit, least) in [
            ("operations", self.operations, 1),
            ("locks", self.locks, 1),
            ("in_flight_per_node", self.in_flight_per_node, 16),
            ("cleanups", self.cleanups, 1),
            ("queued_events", self.queued_events, 16),
        ] {
            if limit < least {
                return Err(ConfigError::Limit { name, limit, least });
            }
        }
        Ok(())
    }
}
