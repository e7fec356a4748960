//! What is wrong with a configuration, and what to do about it.

use alloc::string::String;
use core::fmt;
use core::time::Duration;

use super::{Config, MOST_NAME};
use crate::address::AddressError;
use crate::request::InvalidArgument;
use crate::time::Drift;

/// A configuration that cannot be used. Nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// An address that cannot be used; it says which one ([`AddressError::entry`]).
    Address(AddressError),
    /// A client name that a server would refuse.
    ClientName {
        /// What is wrong with it.
        reason: NameFault,
    },
    /// A connect timeout of zero.
    ConnectTimeout,
    /// A default ttl that no acquire could use.
    DefaultTtl(InvalidArgument),
    /// A drift that leaves nothing of any ttl.
    Drift {
        /// The one that was given.
        drift: Drift,
    },
    /// Two addresses of one server: it would vote twice.
    DuplicateNode {
        /// The one that was given first.
        first: String,
        /// The one that was given later.
        second: String,
    },
    /// A handshake timeout of zero, or above the connect timeout.
    HandshakeTimeout {
        /// The one that was given.
        handshake_timeout: Duration,
        /// What it has to fit into.
        connect_timeout: Duration,
    },
    /// A prefix that leaves no room for a resource.
    KeyPrefixTooLong {
        /// Its length in bytes.
        len: usize,
        /// The most that is accepted.
        most: usize,
    },
    /// A limit with which nothing would work.
    Limit {
        /// Its field in [`Limits`](super::Limits).
        name: &'static str,
        /// What was given.
        limit: usize,
        /// The least that is accepted.
        least: usize,
    },
    /// No nodes.
    NoNodes,
    /// A node timeout of zero.
    NodeTimeout,
    /// A quorum of none, or of more nodes than there are.
    Quorum {
        /// What was given.
        quorum: u8,
        /// The number of nodes.
        nodes: usize,
    },
    /// A retention of fence counters that is shorter than what comes between two grants.
    FenceRetention {
        /// The one that was given.
        retention: Duration,
        /// The shortest that is accepted.
        least: Duration,
    },
    /// A restart guard for a ttl that no acquire could use.
    RestartGuard(InvalidArgument),
    /// A shortest delay below one millisecond, or above the longest.
    RetryDelay {
        /// The shortest.
        min: Duration,
        /// The longest.
        max: Duration,
    },
    /// More nodes than can be counted.
    TooManyNodes {
        /// How many were given.
        nodes: usize,
        /// The most that are accepted.
        most: usize,
    },
}

/// What is wrong with a client name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameFault {
    /// A character that is no printable ASCII, or a space.
    Character {
        /// The first of them.
        found: char,
    },
    /// No character at all.
    Empty,
    /// Too many bytes.
    TooLong {
        /// How many.
        len: usize,
        /// The most that are accepted.
        most: usize,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(error) => write!(f, "{error}"),
            Self::ClientName { reason } => write!(f, "client name: {reason}"),
            Self::ConnectTimeout => {
                f.write_str("a connect timeout of zero cannot be met; give it some time, 5 s is usual")
            }
            Self::DefaultTtl(error) => write!(f, "default ttl: {error}"),
            Self::Drift { drift } => write!(
                f,
                "a drift of {} millionths leaves no lock valid; 1 % ({}) is usual, and it must be below 1000000",
                drift.parts_per_million(),
                Drift::DEFAULT.parts_per_million()
            ),
            Self::DuplicateNode { first, second } => write!(
                f,
                "{first} and {second} are one server, which would vote twice; each node must be a server of its own \
                 (letter case, user, database and TLS do not tell servers apart)"
            ),
            Self::HandshakeTimeout { handshake_timeout, connect_timeout } => write!(
                f,
                "the handshake timeout of {handshake_timeout:?} must be above zero and at most the connect timeout of \
                 {connect_timeout:?}; shorten the one or raise the other"
            ),
            Self::KeyPrefixTooLong { len, most } => {
                write!(
                    f,
                    "the key prefix has {len} bytes; {most} at most, and the resource has to fit behind it"
                )
            }
            Self::Limit { name, limit, least } => {
                write!(f, "the limit {name} is {limit}; give at least {least}")
            }
            Self::NoNodes => {
                f.write_str("no nodes; give the address of at least one, for example redis://localhost:6379")
            }
            Self::NodeTimeout => f.write_str(
                "a node timeout of zero can never be met; leave it out for a twentieth of the ttl",
            ),
            Self::Quorum { quorum, nodes } => {
                write!(f, "a quorum of {quorum} out of {nodes} nodes is not possible")
            }
            Self::FenceRetention { retention, least } => write!(
                f,
                "a fence retention of {retention:?} is too short: at least {least:?}, and more than the nodes' clocks can \
                 ever be apart; days are usual"
            ),
            Self::RestartGuard(error) => write!(f, "restart guard: {error}"),
            Self::RetryDelay { min, max } => {
                let (usual_min, usual_max) = Config::DEFAULT_RETRY_DELAY;
                write!(
                    f,
                    "a retry delay from {min:?} to {max:?} is not possible: at least 1 ms, the shorter one first; \
                     {usual_min:?} to {usual_max:?} is usual"
                )
            }
            Self::TooManyNodes { nodes, most } => {
                write!(f, "{nodes} nodes are too many; at most {most}, and 3, 5 or 7 are usual")
            }
        }
    }
}

// The texts above hold those of the errors inside, so that `source` would say them twice.
impl core::error::Error for ConfigError {}

impl fmt::Display for NameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Character { found } => {
                write!(
                    f,
                    "servers refuse {found:?}; use printable ASCII without spaces, for example `billing-1`"
                )
            }
            Self::Empty => f.write_str("it is empty; leave it out for no name"),
            Self::TooLong { len, most } => write!(f, "{len} bytes are too many; at most {most}"),
        }
    }
}

const _: () = assert!(MOST_NAME == 64, "the documentation of `ConfigBuilder::client_name` says 64");
