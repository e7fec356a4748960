//! Names of things that live in one engine: short in a trace, never reused.

use core::fmt;

/// One node of the configuration: its index there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u8);

impl NodeId {
    /// The node's index in the configuration.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The node at `index` of the configuration.
    #[must_use]
    pub const fn new(index: u8) -> Self {
        Self(index)
    }
}

/// One connection to one node. A reconnect has a new generation; none is ever reused, so that a late read from an old
/// socket is dropped instead of being taken for the answer to something else (R21).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    /// The node that the connection goes to.
    pub node: NodeId,
    /// Counts the connections to that node, from 1.
    pub generation: u32,
}

/// One operation that was asked of the engine; it ends in exactly one event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub(crate) u64);

/// One lock: one token's life, from its attempt to the end of its clean-up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockId(pub(crate) u64);

/// A fencing token: a number that grows from grant to grant of a resource, so that the store which the lock protects can
/// refuse a write that comes with a smaller one than it has seen.
///
/// It is larger than every fence that was granted before its attempt started, and no two grants have the same; of two
/// attempts that overlapped, one whose keys were gone early, by a wrong clock, may be granted last with the smaller one.
///
/// A majority of the nodes held it before the lock was granted. It grows for as long as no node both loses its counter
/// (an emptied or replaced server) *and* restarts it from a clock that is behind the last number, granted or about to be:
/// a counter that is not there starts from its node's clock, in microseconds since 1970, which grants never catch up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub(crate) u64);

impl Fence {
    /// A fence of that number: one that was stored, to compare with.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number. It fits into a signed 64-bit integer: that is what a node's counter is.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl From<Fence> for u64 {
    fn from(fence: Fence) -> Self {
        fence.0
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}#{}", self.node, self.generation)
    }
}

impl fmt::Debug for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "op{}", crate::table::serial(self.0))
    }
}

impl fmt::Debug for LockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lock{}", crate::table::serial(self.0))
    }
}
