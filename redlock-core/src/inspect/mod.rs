//! Looking at nodes from outside: is this set of servers fit for locks, who holds a key on each, and a key removed by force.
//!
//! The same sans-IO manner as the engine's: a [`Probe`] is one conversation with one node, bytes out and bytes in, time as
//! an argument. It ends in a [`NodeReport`], plain data. Pure functions make something of all reports together:
//! [`assess`] whether locks are safe on these nodes, with a [`Verdict`] in words for everything that was looked at;
//! [`Holding::of`] who holds a resource.
//!
//! It reads RESP with the engine's own wire layer, logs in by the engine's own handshake, and tries exactly the commands
//! that the engine sends. The `redlock` command is a driver of it; so can be a health endpoint.
//!
//! ```
//! use core::time::Duration;
//! use redlock_core::inspect::{Expectations, Probe, Task, Topic, assess};
//! use redlock_core::sim::{Dialect, Server};
//! use redlock_core::{Address, Instant};
//!
//! # fn main() -> Result<(), redlock_core::AddressError> {
//! let mut server = Server::new(Dialect::Valkey9, 7).with_config("maxmemory-policy", "allkeys-lru");
//! let mut now = Instant::ZERO;
//! let session = server.open(now);
//! let task = Task::check("redlock-check:d5a1", Duration::from_secs(1));
//! let mut probe = Probe::new(Address::parse("10.0.0.1")?, task, Duration::from_secs(2), now);
//! probe.handle_connected(now);
//! while !probe.is_done() {
//!     while let Some(bytes) = probe.poll_transmit(now) {
//!         server.receive(session, &bytes, now);
//!         now = now.saturating_add(Duration::from_micros(300));
//!         probe.handle_input(&server.output(session), now);
//!     }
//!     now = probe.poll_timeout().unwrap_or(now);
//!     probe.handle_timeout(now);
//! }
//! let assessment = assess(&[probe.into_report()], &Expectations::default());
//! let eviction = assessment.nodes[0].iter().find(|verdict| verdict.topic == Topic::Eviction);
//! assert!(eviction.is_some_and(|verdict| verdict.finding.contains("allkeys-lru")));
//! # Ok(()) }
//! ```

mod check;
mod clock;
mod facts;
mod fleet;
mod holding;
#[cfg(test)]
mod hostile_tests;
mod judge;
mod key;
mod probe;
mod report;
mod rights;
#[cfg(test)]
mod tests;
mod verdict;

pub use self::clock::{ClockReading, Sample, readings};
pub use self::fleet::{Assessment, Expectations, assess};
pub use self::holding::{Holding, NodeHolding};
pub use self::key::{FenceState, HeldKey, KeyState, Remaining, Removal};
pub use self::probe::{Probe, Task};
pub use self::report::{Fsync, NodeReport, ServerFacts, Settings, Trial, Tried};
pub use self::rights::{Access, Right, Rights};
pub use self::verdict::{Severity, Topic, Verdict};
pub use crate::wire::handshake::{DeleteForm, ExtendForm, Mode, Product, Role, Version};
