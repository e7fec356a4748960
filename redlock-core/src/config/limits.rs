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
    /// The longest reply or push of a node, in bytes, at least 4 KiB so that the handshake's answers fit. 128 KiB: an
    /// invalidation names a key of up to 64 KiB, and no error text that servers write is longer. A longer one closes
    /// the connection (R21).
    pub reply_bytes: usize,
    /// Operations that are not answered yet: acquires (those that wait in a queue too), extends, releases. 100 000: with
    /// about a kilobyte for each, no more than 100 MB.
    pub operations: usize,
    /// Locks that are held or being taken, at once. 100 000, as for operations.
    pub locks: usize,
    /// Commands on one connection that are not answered yet. 65 536: what a node that works answers within one node
    /// timeout, and a node that hangs cannot collect more. A node at its limit counts as one to which nothing was sent.
    pub in_flight_per_node: usize,
    /// Locks that one node may still have to forget: a release is due there, or would be if the lock ended now (R7). Its
    /// place is taken before the lock's first byte is sent, so that clean-up itself is never refused. 200 000: all locks,
    /// and as many lost attempts whose release waits for a node that is away.
    pub cleanups_per_node: usize,
    /// Events that tell of nodes and locks and wait to be polled; the answers to operations are not counted, they
    /// are bounded by `operations`. 65 536: hours of a driver's time to look.
    pub queued_events: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            reply_bytes: 128 * 1024,
            operations: 100_000,
            locks: 100_000,
            in_flight_per_node: 65_536,
            cleanups_per_node: 200_000,
            queued_events: 65_536,
        }
    }
}

impl Limits {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        for (name, limit, least) in [
            ("reply_bytes", self.reply_bytes, 4 * 1024),
            ("operations", self.operations, 1),
            ("locks", self.locks, 1),
            ("in_flight_per_node", self.in_flight_per_node, 16),
            ("cleanups_per_node", self.cleanups_per_node, 1),
            ("queued_events", self.queued_events, 16),
        ] {
            if limit < least {
                return Err(ConfigError::Limit { name, limit, least });
            }
        }
        Ok(())
    }
}
