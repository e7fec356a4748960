//! Distributed locks for async-std and smol: Redlock over independent Redis or Valkey nodes.
//!
//! async-std was discontinued by its authors in 2025, and names smol as its successor; it was made of smol's parts. So is
//! this crate, of [`async_io`] and [`blocking`]: it works under smol's executors and async-std's alike, and under any other,
//! without depending on one. What is written against async-std today goes on to work once its executor is replaced.
//!
//! ```no_run
//! use core::time::Duration;
//! use redlock_async_std::Redlock;
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
//! # let redlock = redlock_async_std::Redlock::connect(["redis://10.0.0.1"]).await?;
//! let an_hour = Duration::from_secs(3600);
//! let rows = redlock.acquire("import").auto_renew(an_hour).hold(async |_guard| import().await).await?;
//! # Ok(()) }
//! ```
//!
//! A guard is gone once it is released:
//!
//! ```compile_fail,E0382
//! # async fn run(guard: redlock_async_std::Guard) -> Result<(), Box<dyn std::error::Error>> {
//! guard.release().await?;
//! assert!(!guard.is_held());
//! # Ok(()) }
//! ```
//!
//! # How it works
//!
//! A client has one thread of its own, on which its driver reads from the sockets and keeps the timers: so that it needs no
//! executor, and outlives whichever it is used from. Each answer then comes with a switch from that thread to yours. Where
//! one executor serves the whole program, have it run the driver: what is read there is awaited there, which is faster for
//! one operation at a time and more so for many.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let redlock = redlock_async_std::Redlock::builder()
//!     .node("redis://10.0.0.1")
//!     .spawn_with(|driver| smol::spawn(driver).detach())
//!     .connect()
//!     .await?;
//! # Ok(()) }
//! ```
//!
//! Whoever starts an operation, on whichever thread, writes its bytes to the sockets himself, and then waits for the answer.
//! Where many operations are under way, they leave their bytes to the driver, which writes those of all at once.
//!
//! | what | where | what happens |
//! | --- | --- | --- |
//! | a client is made | anywhere | its driver gets a thread |
//! | a guard is dropped | anywhere: another executor, a plain thread, while a panic unwinds | the release is handed to the sockets at once; nothing blocks or panics |
//! | a pending operation is dropped | a timeout, a race, a cancelled task | it is called off; a lock that it got, or may have got, is released |
//! | the executor of [`spawn_with`](Builder::spawn_with) ends | while locks are held | the releases are written, the client is closed, its locks are [lost](LostReason::Closed), and everyone who waits elsewhere gets an answer |
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
//! difference is made up there. The timers do not count a suspend anywhere; while there is anything to do, the driver
//! sleeps a second at most before it reads the clock again.
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

pub use runtime::AsyncIo;
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
pub type Redlock = redlock_core::handoff::task::Redlock<AsyncIo>;
/// Makes a [`Redlock`].
pub type Builder = redlock_core::handoff::task::Builder<AsyncIo>;

// What users rely on without saying so.
const _: () = {
    const fn shared<T: Clone + Send + Sync + 'static>() {}
    shared::<Redlock>();
};

/// The README's program compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;

/// The workspace's front page, compiled where all adapters are at hand.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct WorkspaceReadme;
