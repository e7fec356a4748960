//! Why an operation failed: one type per operation, each with what every node said.

use crate::event::{DisconnectReason, LostReason};
use crate::ids::{Fence, NodeId};
use crate::machine::RoundLoss;
use crate::request::InvalidArgument;
use crate::wire::error::ServerError;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

/// Why a node cannot take part (now).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeFault {
    /// Its connection is being made.
    Connecting,
    /// Its name cannot be resolved.
    Unresolvable(String),
    /// Every address of its name refuses connections.
    Refused(String),
    /// Another error of the network, in the system's words.
    Io(String),
    /// The TLS handshake failed.
    Tls(String),
    /// No connection and handshake within the handshake timeout: it swallows packets, or is not what it should be
    /// (a TLS port taken for a plain one answers nothing).
    HandshakeTimeout(Duration),
    /// Replies are outstanding and not a byte came for so long.
    Silent(Duration),
    /// It closed the connection.
    Closed,
    /// It closed the connection before it said anything.
    ClosedInHandshake,
    /// It answered with something that is not RESP, or not what the command answers.
    Protocol(String),
    /// Its first bytes are no RESP at all.
    NotRedis(String),
    /// It answered with an error.
    Server(ServerError),
    /// It is a replica: its data is another server's.
    Replica,
    /// It is a member of a cluster, or a sentinel: not an independent node.
    NotStandalone(String),
    /// The login was refused.
    Login(ServerError),
    /// The database cannot be selected.
    Database(ServerError),
    /// It refuses a command that locks need, for lack of a right: it gives no vote until its next handshake (R22).
    MissingRight(ServerError),
    /// It was started so recently that it may have forgotten locks that are still held: it gives no vote yet (R25).
    Quarantined {
        /// For how long it gives none.
        left: Duration,
    },
    /// It does not say who it is (`INFO` is refused), so that its restarts go unnoticed: with the restart guard on it gives
    /// no vote (R22).
    UnknownIdentity,
    /// The same server as another configured node (R24).
    Duplicate {
        /// The node that counts.
        of: Arc<str>,
    },
}

impl NodeFault {
    /// Why a connection is gone: what the node said last where it closed it, else what the driver saw. `was_mute` is
    /// whether it had not said anything in its handshake.
    pub(crate) fn of_disconnect(
        reason: DisconnectReason,
        words: Option<ServerError>,
        was_mute: bool,
    ) -> Self {
        match (reason, words) {
            (DisconnectReason::Closed | DisconnectReason::Io(_), Some(error)) => Self::Server(error),
            (DisconnectReason::Closed | DisconnectReason::Io(_), None) if was_mute => Self::ClosedInHandshake,
            (DisconnectReason::Closed, None) => Self::Closed,
            (DisconnectReason::Io(detail), None) => Self::Io(detail),
            (DisconnectReason::Unresolvable(detail), _) => Self::Unresolvable(detail),
            (DisconnectReason::Refused(detail), _) => Self::Refused(detail),
            (DisconnectReason::Tls(detail), _) => Self::Tls(detail),
        }
    }

    /// Whether trying again cannot help until somebody changes something (R9).
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        match self {
            Self::Server(error) => error.is_fatal(),
            Self::NotRedis(_)
            | Self::Replica
            | Self::NotStandalone(_)
            | Self::Login(_)
            | Self::Database(_)
            | Self::MissingRight(_)
            | Self::UnknownIdentity
            | Self::Duplicate { .. } => true,
            Self::Connecting
            | Self::Unresolvable(_)
            | Self::Refused(_)
            | Self::Io(_)
            | Self::Tls(_)
            | Self::HandshakeTimeout(_)
            | Self::Silent(_)
            | Self::Closed
            | Self::ClosedInHandshake
            | Self::Quarantined { .. }
            | Self::Protocol(_) => false,
        }
    }

    /// Whether `connect` need not wait for this node any longer (R27): silence may end, a refusal by all addresses of a
    /// name, a name that does not resolve, and what is fatal do not by themselves.
    #[must_use]
    pub fn is_final_for_connect(&self) -> bool {
        self.is_fatal() || matches!(self, Self::Refused(_) | Self::Unresolvable(_))
    }
}

impl fmt::Display for NodeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting => f.write_str("still connecting"),
            Self::Unresolvable(detail) => write!(f, "name cannot be resolved: {detail}"),
            Self::Refused(detail) => write!(f, "connection refused: {detail}"),
            Self::Io(detail) => write!(f, "network error: {detail}"),
            Self::Tls(detail) => write!(f, "TLS: {detail}"),
            Self::HandshakeTimeout(after) => {
                write!(
                    f,
                    "no handshake within {after:?} (is the port right, and TLS on both sides or on none?)"
                )
            }
            Self::Silent(after) => write!(f, "silent for {after:?} with replies outstanding"),
            Self::Closed => f.write_str("closed the connection"),
            Self::ClosedInHandshake => {
                f.write_str("closed the connection before it said anything (does the port want TLS?)")
            }
            Self::Protocol(detail) => write!(f, "broke the protocol: {detail}"),
            Self::NotRedis(detail) => write!(f, "not a Redis or Valkey server: {detail}"),
            Self::Server(error) => error.fmt(f),
            Self::Replica => f.write_str("is a replica; name its primary, or better an independent server"),
            Self::NotStandalone(mode) => write!(f, "runs in {mode} mode; Redlock needs independent servers"),
            Self::Login(error) => write!(f, "login refused: {error}"),
            Self::Database(error) => write!(f, "database refused: {error}"),
            Self::MissingRight(error) => write!(f, "refuses a command that locks need: {error}"),
            Self::Quarantined { left } => {
                write!(f, "started recently, may have forgotten locks, and gives no vote for {left:.1?} yet")
            }
            Self::UnknownIdentity => f.write_str(
                "does not say who it is, so that a restart would go unnoticed: give its user +info, or declare it durable",
            ),
            Self::Duplicate { of } => write!(f, "is the same server as {of}"),
        }
    }
}

impl core::error::Error for NodeFault {}

/// What one node said in the last round.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeOutcome {
    /// Yes.
    Granted,
    /// No: the key is held by another, or (to an extension) the token is not there.
    Refused,
    /// Not asked: it could not be reached.
    Unsent(NodeFault),
    /// Asked, and answered with a fault, or its connection broke.
    Failed(NodeFault),
    /// Asked, and no answer when the round was decided.
    Unanswered,
}

impl fmt::Display for NodeOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted => f.write_str("granted"),
            Self::Refused => f.write_str("refused, held by another"),
            Self::Unsent(fault) => write!(f, "not asked, {fault}"),
            Self::Failed(fault) => fault.fmt(f),
            Self::Unanswered => f.write_str("no answer yet"),
        }
    }
}

/// One node's part in an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeReport {
    /// Which node.
    pub node: NodeId,
    /// Its address, without the password.
    pub address: Arc<str>,
    /// What it said.
    pub outcome: NodeOutcome,
    /// How long its answer took, from the start of the round.
    pub took: Option<Duration>,
    /// What stands in the way there, where it is known.
    pub holder: Option<Holder>,
}

/// What a node holds under the name of a lock that it refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Holder {
    /// A lock that is held for so much longer at most, unless its owner extends it.
    Lock {
        /// What is left of its ttl.
        remaining: Duration,
    },
    /// A key without an expiry: no lock of ours. It will not go away by itself.
    NoExpiry,
    /// Gone by now.
    Gone,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock { remaining } => write!(f, "for {remaining:?} more unless extended"),
            Self::NoExpiry => {
                f.write_str("by a key without expiry: no lock of ours; it will not go away by itself")
            }
            Self::Gone => f.write_str("gone by now"),
        }
    }
}

impl fmt::Display for NodeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.address, self.outcome)?;
        if let Some(holder) = &self.holder {
            write!(f, " ({holder})")?;
        }
        if let Some(took) = self.took {
            write!(f, " after {took:.1?}")?;
        }
        Ok(())
    }
}

fn write_nodes(f: &mut fmt::Formatter<'_>, nodes: &[NodeReport]) -> fmt::Result {
    for (index, node) in nodes.iter().enumerate() {
        f.write_str(if index == 0 { ": " } else { "; " })?;
        write!(f, "{node}")?;
    }
    Ok(())
}

/// Which limit was reached; see [`Limits`](crate::Limits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LimitKind {
    /// Pending operations.
    Operations,
    /// Locks that are held, attempted or being cleaned up.
    Locks,
    /// Unanswered extensions of one lock.
    Extensions,
}

impl fmt::Display for LimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Operations => "pending operations",
            Self::Locks => "locks that are held, attempted or being cleaned up",
            Self::Extensions => "unanswered extensions of one lock",
        })
    }
}

/// Why a lock was not acquired.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AcquireError {
    /// What kind of failure.
    pub kind: AcquireErrorKind,
    /// The resource, escaped where it is not printable; several are joined by commas.
    pub resource: String,
    /// How many attempts were made.
    pub attempts: u32,
    /// How long it took.
    pub elapsed: Duration,
    /// What each node said in the last round; empty where no round was made.
    pub nodes: Vec<NodeReport>,
}

/// The kinds of [`AcquireError`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcquireErrorKind {
    /// Somebody else holds it on so many nodes that no quorum was left.
    Contended,
    /// So many nodes are faulty or silent that no quorum was left.
    NoQuorum,
    /// Refusals and faults together left no quorum.
    Mixed,
    /// The answers came too late: no validity was left.
    TooSlow,
    /// The wait is over; the last round was lost for this reason.
    WaitOver {
        /// Why the last round was lost: one of `Contended`, `NoQuorum`, `Mixed`, `TooSlow`.
        last: RoundLoss,
    },
    /// The caller called it off.
    Cancelled,
    /// A limit of the client was reached.
    LimitReached(LimitKind),
    /// The request makes no sense; nothing was sent.
    Invalid(InvalidArgument),
    /// The client is closed, or this is a forked child of the process that made it.
    Closed,
    /// The operating system gave no entropy for a token, in its words; nothing was sent.
    NoEntropy(String),
    /// An election was won with a fence that does not exceed that of the candidate's last term: a node has lost its counter
    /// and its clock is behind. The lock was released.
    StaleEpoch {
        /// The fence of the last term.
        known: Fence,
        /// The one that was granted.
        granted: Fence,
    },
}

impl AcquireErrorKind {
    /// Whether somebody else was seen to hold the lock: waiting longer may help.
    #[must_use]
    pub const fn is_contended(&self) -> bool {
        matches!(self, Self::Contended | Self::WaitOver { last: RoundLoss::Contended })
    }

    /// Whether faults of nodes, not another owner, were the reason.
    #[must_use]
    pub const fn is_no_quorum(&self) -> bool {
        matches!(self, Self::NoQuorum | Self::WaitOver { last: RoundLoss::NoQuorum })
    }
}

impl From<RoundLoss> for AcquireErrorKind {
    fn from(loss: RoundLoss) -> Self {
        match loss {
            RoundLoss::Contended => Self::Contended,
            RoundLoss::NoQuorum => Self::NoQuorum,
            RoundLoss::Mixed => Self::Mixed,
            RoundLoss::TooSlow => Self::TooSlow,
        }
    }
}

impl fmt::Display for RoundLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Contended => "held by another owner",
            Self::NoQuorum => "no quorum of nodes could be reached",
            Self::Mixed => "held by another owner on some nodes and others are faulty",
            Self::TooSlow => "the nodes answered too late to leave any validity",
        })
    }
}

impl fmt::Display for AcquireErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contended => RoundLoss::Contended.fmt(f),
            Self::NoQuorum => RoundLoss::NoQuorum.fmt(f),
            Self::Mixed => RoundLoss::Mixed.fmt(f),
            Self::TooSlow => RoundLoss::TooSlow.fmt(f),
            Self::WaitOver { last } => write!(f, "the wait is over; {last}"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::LimitReached(limit) => write!(f, "too many {limit}"),
            Self::Invalid(argument) => argument.fmt(f),
            Self::Closed => f.write_str("the client is closed"),
            Self::NoEntropy(detail) => write!(f, "no entropy for a token: {detail}"),
            Self::StaleEpoch { known, granted } => write!(
                f,
                "elected with fence {granted}, which does not exceed the last term's {known}: a node lost its counter and \
                 its clock is behind"
            ),
        }
    }
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not acquire {}: {}", self.resource, self.kind)?;
        if self.attempts > 0 {
            let s = if self.attempts == 1 { "" } else { "s" };
            write!(f, " ({} attempt{s} in {:.1?})", self.attempts, self.elapsed)?;
        }
        write_nodes(f, &self.nodes)
    }
}

impl core::error::Error for AcquireError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        if let AcquireErrorKind::Invalid(argument) = &self.kind {
            return Some(argument);
        }
        self.nodes.iter().find_map(|report| match &report.outcome {
            NodeOutcome::Failed(fault) | NodeOutcome::Unsent(fault) => {
                Some(fault as &(dyn core::error::Error + 'static))
            }
            NodeOutcome::Granted | NodeOutcome::Refused | NodeOutcome::Unanswered => None,
        })
    }
}

/// Why a lock was not extended. Unless the kind is [`Lost`](ExtendErrorKind::Lost) or
/// [`Released`](ExtendErrorKind::Released) it may still be held, until the deadline in force.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExtendError {
    /// What kind of failure.
    pub kind: ExtendErrorKind,
    /// The resource, escaped where it is not printable; several are joined by commas.
    pub resource: String,
    /// How long it took.
    pub elapsed: Duration,
    /// What each node said; empty where nothing was sent.
    pub nodes: Vec<NodeReport>,
}

/// The kinds of [`ExtendError`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExtendErrorKind {
    /// No quorum confirmed within the node timeout.
    NoQuorum,
    /// The lock is lost.
    Lost(LostReason),
    /// The lock was released.
    Released,
    /// The extension would reach beyond the end of `max_hold` (R16).
    BeyondMaxHold,
    /// The caller called it off.
    Cancelled,
    /// A limit was reached.
    LimitReached(LimitKind),
    /// The ttl makes no sense; nothing was sent.
    Invalid(InvalidArgument),
    /// The client is closed, or this is a forked child of the process that made it.
    Closed,
}

impl fmt::Display for ExtendErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoQuorum => f.write_str("no quorum of nodes confirmed it"),
            Self::Lost(reason) => write!(f, "the lock is lost: {reason}"),
            Self::Released => f.write_str("the lock was released"),
            Self::BeyondMaxHold => f.write_str("it would reach beyond the end of max_hold"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::LimitReached(limit) => write!(f, "too many {limit}"),
            Self::Invalid(argument) => argument.fmt(f),
            Self::Closed => f.write_str("the client is closed"),
        }
    }
}

impl fmt::Display for ExtendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not extend {}: {}", self.resource, self.kind)?;
        write_nodes(f, &self.nodes)
    }
}

impl core::error::Error for ExtendError {}

/// Why [`Client::extend`](crate::Client::extend) sent nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExtendRefused {
    /// No such lock, or it ended and its clean-up is done.
    UnknownLock,
    /// The reason, as an [`ExtendError`] would say it.
    Because(ExtendErrorKind),
}

impl fmt::Display for ExtendRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownLock => UnknownLock.fmt(f),
            Self::Because(kind) => kind.fmt(f),
        }
    }
}

impl core::error::Error for ExtendRefused {}

/// There is no such lock, or it ended and its clean-up is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownLock;

impl fmt::Display for UnknownLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such lock, or it ended and its clean-up is done")
    }
}

impl core::error::Error for UnknownLock {}

/// Why no quorum of nodes could be connected (R27).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectError {
    /// How many nodes are ready.
    pub ready: u8,
    /// How many are needed.
    pub needed: u8,
    /// Whether the connect timeout is why: some nodes were silent.
    pub timed_out: bool,
    /// Whether the client was closed, or the call cancelled, meanwhile.
    pub closed: bool,
    /// The limit that was reached, if that is why.
    pub limit: Option<LimitKind>,
    /// How long it took.
    pub elapsed: Duration,
    /// The nodes that are not ready, and why.
    pub nodes: Vec<NodeReport>,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.closed {
            return f.write_str("the client was closed");
        }
        if let Some(limit) = self.limit {
            return write!(f, "too many {limit}");
        }
        write!(f, "no quorum of nodes: {} of the {} needed are ready", self.ready, self.needed)?;
        if self.timed_out {
            write!(f, " after {:.1?}", self.elapsed)?;
        }
        write_nodes(f, &self.nodes)
    }
}

impl core::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.nodes.iter().find_map(|report| match &report.outcome {
            NodeOutcome::Failed(fault) | NodeOutcome::Unsent(fault) => {
                Some(fault as &(dyn core::error::Error + 'static))
            }
            NodeOutcome::Granted | NodeOutcome::Refused | NodeOutcome::Unanswered => None,
        })
    }
}
