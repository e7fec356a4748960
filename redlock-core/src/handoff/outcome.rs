//! What operations answer, in all adapters alike.

use crate::config::ConfigError;
use crate::error::{AcquireError, ConnectError};
use crate::event::{LostReason, NodeVote, ReleaseOutcome};
use crate::ids::NodeId;
use alloc::string::String;
use alloc::sync::Arc;
use core::error::Error;
use core::fmt;

/// What a release has learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Released {
    /// What the nodes said.
    pub outcome: ReleaseOutcome,
}

impl Released {
    pub(super) const fn new(outcome: ReleaseOutcome) -> Self {
        Self { outcome }
    }

    /// Whether the lock was ours until it was released, as far as can be known: it was deleted before its deadline, or
    /// another handle still holds it.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        matches!(self.outcome, ReleaseOutcome::Released | ReleaseOutcome::StillShared)
    }
}

impl fmt::Display for Released {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.outcome.fmt(f)
    }
}

/// A lock that cannot be released, because its client is closed (which has released it), or because this is a forked child
/// of the process that acquired it (and still has it).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReleaseError {
    /// The resource, escaped where it is not printable; several are joined by commas.
    pub resource: String,
}

impl fmt::Display for ReleaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not release {}: the client is closed", self.resource)
    }
}

impl Error for ReleaseError {}

/// How one node stands to a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Vote {
    /// Which node.
    pub node: NodeId,
    /// Its address, without the password.
    pub address: Arc<str>,
    /// How it stands.
    pub vote: NodeVote,
}

/// Why a client could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// The configuration cannot be used.
    Config(ConfigError),
    /// No quorum of nodes could be connected.
    Connect(ConnectError),
    /// There is no runtime here that a client's driver could run in.
    NoRuntime(String),
    /// The operating system refused what a client needs: a thread, a descriptor.
    System(String),
    /// A node asks for TLS, which this build of the crate does not speak.
    TlsUnsupported {
        /// Its address, without the password.
        address: String,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Connect(error) => error.fmt(f),
            Self::NoRuntime(detail) => f.write_str(detail),
            Self::System(detail) => write!(f, "the system refuses what a client needs: {detail}"),
            Self::TlsUnsupported { address } => {
                write!(
                    f,
                    "{address} asks for TLS, which this build does not speak: turn the feature `tls` on"
                )
            }
        }
    }
}

impl Error for BuildError {
    // The texts above are those of the errors inside; their sources are what is left to say.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Config(error) => error.source(),
            Self::Connect(error) => error.source(),
            Self::NoRuntime(_) | Self::System(_) | Self::TlsUnsupported { .. } => None,
        }
    }
}

impl From<ConfigError> for BuildError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<ConnectError> for BuildError {
    fn from(error: ConnectError) -> Self {
        Self::Connect(error)
    }
}

/// Why what was done under a lock cannot be relied upon.
///
/// `R` is what the body returned; it is handed back wherever the body ran to its end.
#[non_exhaustive]
pub enum HoldError<R> {
    /// The body did not run.
    NotAcquired(AcquireError),
    /// The lock was lost while the body ran: others may have held it meanwhile.
    Lost {
        /// Why.
        reason: LostReason,
        /// What the body returned, if it ran to its end.
        output: Option<R>,
    },
    /// The body ran while the lock was held, but whether it was released is not known: it will be gone when its ttl has
    /// passed.
    ReleaseFailed {
        /// What the body returned.
        output: R,
        /// What was learnt.
        outcome: ReleaseOutcome,
    },
}

/// What `hold` answers after the body ran to its end: `lost` is how the lock stood then, `released` what its release said.
///
/// # Errors
///
/// See [`HoldError`].
pub fn settle<R>(
    output: R,
    lost: Option<LostReason>,
    released: Result<Released, ReleaseError>,
) -> Result<R, HoldError<R>> {
    let reason = match (lost, released) {
        (Some(reason), _) => reason,
        (None, Err(_)) => LostReason::Closed,
        (None, Ok(Released { outcome })) => match outcome {
            ReleaseOutcome::Released | ReleaseOutcome::StillShared => return Ok(output),
            ReleaseOutcome::Unknown { .. } => return Err(HoldError::ReleaseFailed { output, outcome }),
            ReleaseOutcome::Expired => LostReason::Expired,
            ReleaseOutcome::NotMine => LostReason::TokenGone,
        },
    };
    Err(HoldError::Lost { reason, output: Some(output) })
}

impl<R> HoldError<R> {
    /// What the body returned, if it ran to its end.
    #[must_use]
    pub fn into_output(self) -> Option<R> {
        match self {
            Self::NotAcquired(_) => None,
            Self::Lost { output, .. } => output,
            Self::ReleaseFailed { output, .. } => Some(output),
        }
    }
}

impl<R> fmt::Display for HoldError<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAcquired(error) => error.fmt(f),
            Self::Lost { reason, .. } => write!(f, "the lock was lost: {reason}"),
            Self::ReleaseFailed { outcome, .. } => write!(f, "the lock may not be released: {outcome}"),
        }
    }
}

/// Without what the body returned, which need not be `Debug`.
impl<R> fmt::Debug for HoldError<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAcquired(error) => f.debug_tuple("NotAcquired").field(error).finish(),
            Self::Lost { reason, .. } => {
                f.debug_struct("Lost").field("reason", reason).finish_non_exhaustive()
            }
            Self::ReleaseFailed { outcome, .. } => {
                f.debug_struct("ReleaseFailed").field("outcome", outcome).finish_non_exhaustive()
            }
        }
    }
}

impl<R> Error for HoldError<R> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NotAcquired(error) => error.source(),
            Self::Lost { .. } | Self::ReleaseFailed { .. } => None,
        }
    }
}

impl<R> From<AcquireError> for HoldError<R> {
    fn from(error: AcquireError) -> Self {
        Self::NotAcquired(error)
    }
}
