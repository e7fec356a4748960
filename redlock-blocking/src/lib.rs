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
//! A client has one thread of its own, which reads from its sockets and keeps its timers. Whoever starts an operation writes
//! its bytes to the sockets himself (what many start at once is written together), then sleeps until the answer is there, or,
//! where the client's thread has stood aside for him, reads it himself. Callbacks ([`Guard::on_lost`], [`Guard::on_expiring`]) run on a thread that is started for the first
//! of them, so that they may block, and may call into the client.
//!
//! - Dropping a [`Guard`] hands its release to the sockets without waiting for answers: a process that ends right after has
//!   released. [`Guard::release`] waits, and says what it has learnt.
//! - The clock is `CLOCK_BOOTTIME` on Linux, which counts the time that the machine is suspended. Elsewhere it is
//!   `std::time::Instant`, which on most systems does not: a lock that ran out in a suspend is believed in until the
//!   difference is made up there. [`Builder::clock`] takes another.
//! - The client, its guards and their drops do nothing in a forked child: there all is closed, and no lock is held.
//! - `rediss://` needs the feature `tls` (rustls with `ring`), `tls-aws-lc-rs`, or `tls-no-provider` for cryptography of your
//!   own; without one such an address is refused when a client is built. It trusts what the system trusts. For an authority of
//!   your own, Mozilla's (feature `tls-webpki-roots`), a client certificate or another server name, give the builder a `Tls`.
//!   The handshake is a part of the handshake timeout.
//!
//! # Tests without a server
//!
//! Simulated nodes behind real sockets come with `redlock-core`'s feature `sim`:
//!
//! ```
//! use redlock_blocking::Redlock;
//! use redlock_core::sim::{Dialect, Server, TcpNode};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let nodes: Vec<TcpNode> =
//!     (0..3).map(|seed| TcpNode::start(Server::new(Dialect::Valkey9, seed))).collect::<Result<_, _>>()?;
//! let redlock = Redlock::connect(nodes.iter().map(|node| format!("redis://{}", node.addr())))?;
//! let guard = redlock.acquire("door").lock()?;
//! // A majority has granted it by now; the others may still be on their way.
//! let granted = nodes.iter().filter(|node| node.with(|server, now| server.value(b"door", now)).is_some());
//! assert!(granted.count() >= 2);
//! assert!(guard.release()?.is_clean());
//! # Ok(()) }
//! ```
//!
//! What Redlock guarantees, and what it does not, is said in [`redlock_core`].
#![forbid(unsafe_code)]

extern crate alloc;

mod acquire;
mod driver;
mod election;
mod events;
mod guard;
mod redlock;
mod system;
mod wait;

pub use acquire::Acquire;
pub use election::Election;
pub use events::Events;
pub use guard::Guard;
pub use redlock::{Builder, Redlock};
pub use system::SystemClock;

pub use redlock_core::handoff::names::*;
#[cfg(feature = "tls-no-provider")]
#[doc(no_inline)]
pub use redlock_tls::{Tls, TlsBuilder, TlsError};

/// The crate's front page, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
