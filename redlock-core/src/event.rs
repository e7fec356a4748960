//! What the engine wants done, and what it has to say.

use crate::address::Address;
use crate::error::{AcquireError, ConnectError, ExtendError, NodeFault};
use crate::ids::{ConnectionId, Fence, LockId, NodeId, OperationId};
use crate::machine::RoundLoss;
use crate::time::Instant;
use alloc::string::String;
use alloc::sync::Arc;
use bytes::Bytes;
use core::fmt;
use core::time::Duration;

/// What a driver has to do. Exhaustive: a new kind of output must break every driver.
#[derive(Clone, PartialEq, Eq)]
#[must_use]
#[expect(clippy::exhaustive_enums, reason = "a new kind of output must break every driver")]
pub enum Output {
    /// Make a connection, then say so with [`handle_connected`](crate::Client::handle_connected), or say why not with
    /// [`handle_disconnected`](crate::Client::handle_disconnected). The engine has the timeout: it asks for
    /// `Disconnect` when the connection takes too long, name resolution included.
    Connect {
        /// The name of the connection, in everything that is said about it from now on.
        connection: ConnectionId,
        /// Where to.
        address: Arc<Address>,
    },
    /// Write these bytes to the connection, in order. All that was queued for it since the last drain is one payload.
    Transmit {
        /// Where to.
        connection: ConnectionId,
        /// What.
        payload: Bytes,
    },
    /// Close the connection, or give up making it, with all that was not written. Nothing has to be said about it later.
    Disconnect {
        /// Which.
        connection: ConnectionId,
    },
    /// Something to tell the user, or whoever waits for an operation.
    Event(Event),
}

/// Of a payload only its length: it may hold a password or a token (R26).
impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect { connection, address } => write!(f, "Connect({connection:?} to {address})"),
            Self::Transmit { connection, payload } => {
                write!(f, "Transmit({connection:?}, {} bytes)", payload.len())
            }
            Self::Disconnect { connection } => write!(f, "Disconnect({connection:?})"),
            Self::Event(event) => write!(f, "Event({event:?})"),
        }
    }
}

/// What the engine has to say. Open: ignore what you do not know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The lock is held.
    Acquired {
        /// The acquire that this answers.
        operation: OperationId,
        /// The lock's name from now on.
        lock: LockId,
        /// Until when it is held: start + ttl − drift (R6).
        deadline: Instant,
        /// Its fencing token, if one was [asked for](crate::AcquireRequest::fenced).
        fence: Option<Fence>,
    },
    /// The acquire failed; whatever it left on nodes is being cleaned up.
    AcquireFailed {
        /// The acquire that this answers.
        operation: OperationId,
        /// Why.
        error: AcquireError,
    },
    /// A round of an acquire was lost, and another one follows: when the resource gets free, or after the retry delay (R9).
    AttemptLost {
        /// The acquire, which goes on.
        operation: OperationId,
        /// How many rounds it has made so far.
        attempts: u32,
        /// Why this one was lost.
        loss: RoundLoss,
    },
    /// A quorum confirmed the extension.
    Extended {
        /// The extend that this answers.
        operation: OperationId,
        /// Of which lock.
        lock: LockId,
        /// The deadline in force.
        deadline: Instant,
    },
    /// The extension failed. The lock may still be held, until the deadline in force.
    ExtendFailed {
        /// The extend that this answers.
        operation: OperationId,
        /// Of which lock.
        lock: LockId,
        /// Why.
        error: ExtendError,
    },
    /// The release is decided.
    Released {
        /// The release that this answers.
        operation: OperationId,
        /// Of which lock.
        lock: LockId,
        /// What was learnt.
        outcome: ReleaseOutcome,
    },
    /// The lock was renewed: a quorum confirmed it.
    Renewed {
        /// Which lock.
        lock: LockId,
        /// The deadline in force.
        deadline: Instant,
        /// How many nodes have confirmed so far: the margin.
        confirmed: u8,
    },
    /// A renewal failed; it is tried again while the lock is held.
    RenewalFailed {
        /// Which lock.
        lock: LockId,
        /// What the nodes said.
        error: ExtendError,
    },
    /// The deadline in force moved, either way, without an operation that says so (R14).
    DeadlineMoved {
        /// Of which lock.
        lock: LockId,
        /// The deadline in force.
        deadline: Instant,
    },
    /// The lock's deadline is near (R17).
    Expiring {
        /// Which lock.
        lock: LockId,
        /// The deadline in force.
        deadline: Instant,
    },
    /// The lock is lost; said once (R17). Its release is on the way to all nodes.
    Lost {
        /// Which lock.
        lock: LockId,
        /// Why.
        reason: LostReason,
    },
    /// The lock was set again on a node that had lost it (R15).
    Repaired {
        /// Which lock.
        lock: LockId,
        /// Where.
        node: NodeId,
    },
    /// A node confirmed a token that it cannot have: it is the second name of another configured node. No vote (R14a).
    AliasSuspected {
        /// Of which lock.
        lock: LockId,
        /// Which node.
        node: NodeId,
    },
    /// A node is ready.
    NodeUp {
        /// Which.
        node: NodeId,
    },
    /// A node is not ready (any more), or still not: said at each change of the reason.
    NodeDown {
        /// Which.
        node: NodeId,
        /// Why.
        fault: NodeFault,
    },
    /// A node does not say who it is (`INFO` was refused): restarts and second names will go unnoticed (R22).
    IdentityUnknown {
        /// Which.
        node: NodeId,
    },
    /// A node has restarted since it was last heard: another run id.
    NodeRestarted {
        /// Which.
        node: NodeId,
    },
    /// A node that is ready has not been up for long enough to vote: it may have forgotten locks that are still held
    /// (R25).
    NodeQuarantined {
        /// Which.
        node: NodeId,
        /// For how long.
        left: Duration,
    },
    /// The votes of a node that was kept out count again (R25).
    QuarantineOver {
        /// Which.
        node: NodeId,
    },
    /// The wall clock of a node was set: its keys expire too early where it went forward, too late where it went back. The
    /// drift allowance covers neither.
    ClockStepped {
        /// Which.
        node: NodeId,
        /// By how much, at least: what the time on the way leaves in doubt is taken off.
        by: Duration,
        /// Whether it went forward.
        is_forward: bool,
    },
    /// A quorum of nodes is ready (R27).
    Connected {
        /// The connect that this answers.
        operation: OperationId,
    },
    /// No quorum of nodes can be had, or not in time (R27).
    ConnectFailed {
        /// The connect that this answers.
        operation: OperationId,
        /// Why, node by node.
        error: ConnectError,
    },
    /// All is closed: nothing more will be said.
    Closed,
}

/// What a release has learnt, in one round (R19).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReleaseOutcome {
    /// A quorum deleted it before the deadline.
    Released,
    /// The deadline had passed before a quorum deleted it: others may have held the lock since.
    Expired,
    /// So many nodes no longer had it that it was not ours any more, before its deadline.
    NotMine,
    /// Too few nodes answered to know. The servers will have dropped it by then.
    Unknown {
        /// When it will be gone where it may still be.
        gone_by: Instant,
    },
    /// Another handle of the same lock is alive: it is released with the last.
    StillShared,
}

/// Why a lock is no longer held, though nobody released it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LostReason {
    /// The deadline passed.
    Expired,
    /// So many nodes no longer have the token that no quorum is left: deleted by someone, evicted, or forgotten in a
    /// restart.
    TokenGone,
    /// Two addresses turned out to be one server, and no quorum was left without the second name (R24).
    DuplicateNode,
    /// The client was closed.
    Closed,
}

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "its deadline passed before a quorum confirmed an extension",
            Self::TokenGone => "so many nodes no longer have its token that no quorum is left",
            Self::DuplicateNode => "two addresses are one server, and no quorum is left without the second",
            Self::Closed => "the client was closed",
        })
    }
}

impl fmt::Display for ReleaseOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Released => "released: a quorum deleted it before its deadline",
            Self::Expired => "expired: its deadline had passed; others may have held it since",
            Self::NotMine => "no longer mine: its token was gone from a quorum before its deadline",
            Self::Unknown { .. } => {
                "unknown: too few nodes answered; it will be gone when its ttl has passed"
            }
            Self::StillShared => "still shared: released with the last handle",
        })
    }
}

/// Why a connection could not be made, or is gone, as its driver saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DisconnectReason {
    /// The name could not be resolved.
    Unresolvable(String),
    /// Every address of the name refused the connection.
    Refused(String),
    /// The peer closed it.
    Closed,
    /// Any other error of the network, in the system's words.
    Io(String),
    /// The TLS handshake failed.
    Tls(String),
}

/// How one node stands, for `votes()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeVote {
    /// It confirmed the token; it supports the lock until then.
    Confirmed {
        /// Its support (R14).
        until: Instant,
    },
    /// It said that the token is not there.
    Gone,
    /// It has not answered (yet), or could not be asked.
    Silent,
    /// It answered with an error.
    Failed,
}
