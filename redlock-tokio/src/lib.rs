//! Distributed locks for Tokio: Redlock over independent Redis or Valkey nodes.
//!
//! ```no_run
//! use core::time::Duration;
//! use redlock_tokio::Redlock;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let redlock = Redlock::connect(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"]).await?;
//! let guard = redlock.acquire("invoice:42").ttl(Duration::from_secs(10)).wait(Duration::from_secs(5)).await?;
//! // Nobody else who asks a majority of these nodes holds `invoice:42` while this is true:
//! assert!(guard.is_held());
//! guard.release().await?;
//! # Ok(()) }
//! ```
//!
//! Work that may take longer than a ttl renews its lock, and is stopped at its next await when that is lost all the same:
//!
//! ```no_run
//! # use core::time::Duration;
//! # async fn import() -> u64 { 0 }
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! # let redlock = redlock_tokio::Redlock::connect(["redis://10.0.0.1"]).await?;
//! let an_hour = Duration::from_secs(3600);
//! let rows = redlock.acquire("import").auto_renew(an_hour).hold(async |_guard| import().await).await?;
//! # Ok(()) }
//! ```
//!
//! Of many processes one leads, and another takes over when it is gone:
//!
//! ```no_run
//! # async fn scheduler(epoch: Option<redlock_tokio::Fence>) {}
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! # let redlock = redlock_tokio::Redlock::connect(["redis://10.0.0.1"]).await?;
//! let mut election = redlock.elect("scheduler").fenced();
//! loop {
//!     let term = election.campaign().await?;
//!     // Dropped at its next await when the term is lost; then it campaigns again.
//!     if let Err(reason) = term.until_lost(scheduler(term.fence())).await {
//!         eprintln!("leads no more: {reason}");
//!     }
//! }
//! # }
//! ```
//!
//! A guard is gone once it is released:
//!
//! ```compile_fail,E0382
//! # async fn run(guard: redlock_tokio::Guard) -> Result<(), Box<dyn std::error::Error>> {
//! guard.release().await?;
//! assert!(!guard.is_held());
//! # Ok(()) }
//! ```
//!
//! # How it works
//!
//! A client has one task of its own, the driver, in the runtime in which it was made, of either kind; that needs
//! `enable_all`, or I/O and time. The driver reads from the sockets and keeps the timers. Whoever starts an operation, on
//! whichever thread and in whichever runtime, writes its bytes to the sockets himself, and then waits for the answer. Where
//! many operations are under way, they leave their bytes to the driver, which writes those of all at once.
//!
//! | what | where | what happens |
//! | --- | --- | --- |
//! | a client is made | outside of a runtime | [`BuildError::NoRuntime`], unless [`spawn_with`](Builder::spawn_with) says where its driver runs |
//! | a guard is dropped | anywhere: another runtime, a plain thread, while a panic unwinds | the release is handed to the sockets at once; nothing blocks or panics |
//! | the runtime ends | while locks are held | the releases are written, the client is closed, its locks are [lost](LostReason::Closed), and everyone who waits in another runtime gets an answer |
//! | a guard is dropped | after its runtime ended | nothing: the client is closed. What of its release did not reach a node ends with its ttl |
//! | a pending operation is dropped | `timeout`, `select!`, `abort` | it is called off; a lock that it got, or may have got, is released |
//!
//! Each asynchronous method says what dropping it does, under *Cancel safety*.
//!
//! Callbacks ([`Guard::on_lost`], [`Guard::on_expiring`]) run on a thread that is started for the first of them, so that
//! they may block, and may call into the client.
//!
//! # Time
//!
//! The clock is `CLOCK_BOOTTIME` on Linux, which counts the time that the machine is suspended. Elsewhere it is
//! `std::time::Instant`, which on most systems does not: a lock that ran out in a suspend is believed in until the
//! difference is made up there. Tokio's timers do not count a suspend anywhere; while there is anything to do, the driver
//! sleeps a second at most before it reads the clock again.
//!
//! Under `tokio::time::pause` give the client a clock that reads Tokio's ([`Builder::clock`]), and, so that no socket is
//! waited for in real time, simulated nodes in memory ([`Builder::transport`], `redlock_core::sim::MemoryNodes`).
//!
//! # TLS
//!
//! `rediss://` needs the feature `tls` (rustls with `ring`), `tls-aws-lc-rs`, or `tls-no-provider` for cryptography of your
//! own; without one, and without [`Builder::tls`], such an address is refused when a client is built. It trusts what the
//! system trusts. For an authority of your own, Mozilla's (feature `tls-webpki-roots`), a client certificate or another
//! server name, give the builder a [`redlock_tls::Tls`](https://docs.rs/redlock-tls). The handshake is a part of the handshake
//! timeout.
//!
//! What Redlock guarantees, and what it does not, is said in [`redlock_core`].
#![forbid(unsafe_code)]

extern crate alloc;

mod runtime;
mod socket;
mod system;

pub use runtime::Tokio;
pub use system::SystemClock;

pub use redlock_core::handoff::names::*;
#[doc(inline)]
pub use redlock_core::handoff::task::{
    Acquire, Acquiring, BoxFuture, Election, Events, Guard, Lost, Runtime, Secure, Socket, Transport,
};
#[cfg(feature = "tls-no-provider")]
#[doc(no_inline)]
pub use redlock_tls::{Tls, TlsBuilder, TlsError};

/// A client of N nodes.
pub type Redlock = redlock_core::handoff::task::Redlock<Tokio>;
/// Makes a [`Redlock`].
pub type Builder = redlock_core::handoff::task::Builder<Tokio>;

// What users rely on without saying so.
const _: () = {
    const fn shared<T: Clone + Send + Sync + 'static>() {}
    const fn sent<T: Send + Sync + 'static>() {}
    const fn error<T: core::error::Error + Send + Sync + 'static>() {}
    shared::<Redlock>();
    sent::<Builder>();
    sent::<Guard>();
    sent::<Events>();
    sent::<Election>();
    error::<BuildError>();
    error::<AcquireError>();
    error::<ExtendError>();
    error::<ReleaseError>();
    error::<HoldError<()>>();
};

/// The README's program compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;
