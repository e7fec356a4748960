//! Distributed locks for threads: Redlock over independent Redis or Valkey nodes, without async and without a runtime.
//!
//! ```no_run
//! use core::time::Duration;
//! use redlock_blocking::Redlock;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let redlock = Redlock::connect(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])?;
//! let guard = redlock.acquire("invoice:42").ttl(Duration::from_secs(10)).wait(Duration::from_secs(5)).lock()?;
//! // Nobody else who asks a majority of these nodes holds `invoice:42` while this is true:
//! assert!(guard.is_held());
//! guard.release()?;
//! # Ok(()) }
//! ```
//!
//! Work that may take longer than a ttl renews its lock, and hears when it is lost all the same:
//!
//! ```no_run
//! # use core::time::Duration;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let redlock = redlock_blocking::Redlock::connect(["redis://10.0.0.1"])?;
//! let an_hour = Duration::from_secs(3600);
//! let rows = redlock.acquire("import").auto_renew(an_hour).hold(|guard| {
//!     let mut rows = 0;
//!     while guard.is_held() && rows < 1_000_000 {
//!         rows += 1;
//!     }
//!     rows
//! })?;
//! # Ok(()) }
//! ```
//!
//! # How it works
//!
//! A client has one thread of its own that reads from its sockets and keeps its timers; whoever starts an operation writes
//! its bytes to the sockets himself, and then sleeps until the answer is there. A second thread runs callbacks
//! ([`Guard::on_lost`], [`Guard::on_expiring`]), so that they may block, and may call into the client.
//!
//! - Dropping a [`Guard`] hands its release to the sockets without waiting for answers: a process that ends right after has
//!   released. [`Guard::release`] waits, and says what it has learnt.
//! - The clock is `CLOCK_BOOTTIME` on Linux, which counts the time that the machine is suspended. Elsewhere it is
//!   `std::time::Instant`, which on most systems does not: a lock that ran out in a suspend is believed in until the
//!   difference is made up there. [`Builder::clock`] takes another.
//! - The client, its guards and their drops do nothing in a forked child: there all is closed, and no lock is held.
//! - `rediss://` is refused when a client is built: this crate speaks no TLS yet.
//!
//! What Redlock guarantees, and what it does not, is said in [`redlock_core`].
#![forbid(unsafe_code)]

extern crate alloc;

mod acquire;
mod callbacks;
mod clock;
mod driver;
mod entropy;
mod events;
mod guard;
mod redlock;
mod wait;

pub use acquire::Acquire;
pub use clock::SystemClock;
pub use events::Events;
pub use guard::Guard;
pub use redlock::{Builder, Redlock};

pub use redlock_core::handoff::{BuildError, Clock, Expiring, HoldError, ReleaseError, Released, Vote};
pub use redlock_core::{
    AcquireError, AcquireErrorKind, Address, AddressError, ConfigError, ConnectError, DisconnectReason,
    Drift, Endpoint, ErrorCode, Event, ExtendError, ExtendErrorKind, Holder, Instant, InvalidArgument,
    LimitKind, Limits, LockId, LostReason, Node, NodeFault, NodeId, NodeOutcome, NodeReport, NodeState,
    NodeStatus, NodeVote, ReleaseOutcome, RoundLoss, ServerError, parse_list,
};
