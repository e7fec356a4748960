//! What users of an adapter need of this crate: each adapter re-exports all of it, so that they depend on one crate.

pub use super::{BuildError, Clock, Expiring, HoldError, ReleaseError, Released, Vote};
pub use crate::{
    AcquireError, AcquireErrorKind, Address, AddressError, Config, ConfigError, ConnectError,
    DisconnectReason, Drift, Endpoint, ErrorCode, Event, ExtendError, ExtendErrorKind, Fence, Holder,
    Instant, InvalidArgument, LimitKind, Limits, LockId, LostReason, NameFault, Node, NodeFault, NodeId,
    NodeOutcome, NodeReport, NodeState, NodeStatus, NodeVote, ReleaseOutcome, RoundLoss, ServerError,
    parse_list,
};
