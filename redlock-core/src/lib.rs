//! Redlock as a sans-IO state machine: a distributed lock over N independent Redis or Valkey nodes, for any runtime.
//!
//! Time and reply bytes go in, RESP commands and events come out. There are no sockets in here, no clock and no entropy:
//! whoever drives a [`Client`] brings them. `redlock-tokio`, `redlock-async-std` and `redlock-blocking` are such drivers; a
//! loop of your own is another, and a test under injected time a third.
//!
//! What the algorithm promises and what it does not, how to choose its numbers, and what else to use: the [`guide`].
//!
//! # By hand
//!
//! From nothing to a granted lock over three nodes, played by literal bytes:
//!
//! ```
//! use redlock_core::{AcquireRequest, Client, Config, Event, Instant, Output};
//!
//! # fn main() -> Result<(), redlock_core::ConfigError> {
//! let config = Config::builder().nodes(["10.0.0.1", "10.0.0.2", "10.0.0.3"]).build()?;
//! let mut client = Client::new(config, 7, Instant::ZERO);
//! client.acquire(AcquireRequest::new("orders/42", *b"16 random bytes!"), Instant::ZERO);
//! let (mut ms, mut deadline) = (0, None);
//! while let (None, Some(output)) = (deadline, client.poll_output()) {
//!     ms += 1;
//!     match output {
//!         Output::Connect { connection, .. } => client.handle_connected(connection, Instant::from_millis(ms)),
//!         Output::Transmit { connection, payload } => {
//!             let asks = |command: &[u8]| payload.windows(command.len()).any(|part| part == command);
//!             let hello = if asks(b"HELLO") { "%0\r\n" } else { "" };
//!             let ready = if asks(b"INFO") { "$0\r\n\r\n+PONG\r\n" } else { "" };
//!             let granted = if asks(b"SET") { "+OK\r\n" } else { "" }; // SET orders/42 … NX PX 10000
//!             client.handle_input(connection, [hello, ready, granted].concat().as_bytes(), Instant::from_millis(ms));
//!         }
//!         Output::Event(Event::Acquired { deadline: at, .. }) => deadline = Some(at),
//!         Output::Event(_) | Output::Disconnect { .. } => {}
//!     }
//! }
//! assert!(deadline.is_some_and(|at| at < Instant::from_secs(10)));
//! # Ok(()) }
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;
// Methods that adapters have by macro name this crate; one of them is in here (`handoff::task`).
#[cfg(feature = "task")]
extern crate self as redlock_core;

mod address;
mod client;
mod config;
mod error;
mod event;
#[doc = include_str!("../GUIDE.md")]
pub mod guide {}
#[cfg(feature = "std")]
pub mod handoff;
mod ids;
#[doc = include_str!("../OBSERVABILITY.md")]
pub mod observability {}
pub mod inspect;
#[doc(hidden)]
#[expect(
    clippy::exhaustive_enums,
    reason = "no part of the API: whoever checks the machines has to see every variant"
)]
pub mod machine;
mod node;
mod request;
mod rng;
#[cfg(feature = "sim")]
#[expect(clippy::exhaustive_enums, reason = "a harness has to deal with all that can happen in it")]
pub mod sim;
mod table;
mod time;
mod token;
mod wire;

pub use address::{Address, AddressError, AddressErrorKind, AddressPart, Endpoint, parse_list};
pub use client::{Client, LockView, NodeState, NodeStatus};
pub use config::{Config, ConfigBuilder, ConfigError, Limits, NameFault, Node, NodeConfig};
pub use error::{
    AcquireError, AcquireErrorKind, ConnectError, ExtendError, ExtendErrorKind, ExtendRefused, Holder,
    LimitKind, NodeFault, NodeOutcome, NodeReport, UnknownLock,
};
pub use event::{DisconnectReason, Event, LostReason, NodeVote, Output, ReleaseOutcome};
pub use ids::{ConnectionId, Fence, LockId, NodeId, OperationId};
pub use machine::RoundLoss;
pub use node::VoteCounts;
pub use request::{AcquireRequest, InvalidArgument};
pub use time::{Deadline, Drift, Instant, TimeoutReason};
pub use wire::error::{ErrorCode, ServerError};
