//! What all adapters share: operations as futures, the state of a guard, events for many.
//!
//! An adapter brings a [`Driver`] (connections, without blocking), an [`Environment`] (a clock, entropy, a place for
//! callbacks), and a thread or task that waits for sockets and timers and gives each its [turn](Shared::turn). It gets:
//!
//! - [`Hub`]: the client, as its users have it; clones count, the last one closes.
//! - [`Acquiring`], [`Extending`], [`Releasing`], [`Connecting`], [`Closing`], [`Lost`]: futures that know
//!   [`core::task::Waker`] and nothing else. A runtime awaits them; a thread polls them with a waker that unparks it.
//! - [`Handle`]: what a guard is made of. It answers from the local clock, without the engine.
//! - [`Election`]: a candidate, whose [`Campaigning`] ends with the handle of a term.
//! - [`Subscription`]: the events, bounded.
//! - [`dial`] and [`CallbackThread`]: from a name to a connection, and where callbacks run.
//! - `task` (feature `task`): all of an asynchronous adapter that is not its runtime.
//!
//! # The mutex
//!
//! Engine, driver and tables live under one mutex, held for the length of one call into the engine and what that wants
//! done; sockets are written to under it, so that whoever starts an operation can send its bytes himself. Nothing of a user
//! runs meanwhile: wakers are woken, callbacks handed over and both dropped after it is free.
//!
//! # Forks
//!
//! In a forked child the mutex may be held by a thread that does not exist there, and the sockets are the parent's. So every
//! call compares the process id first: there all is closed, nothing is held, and nothing is touched, by drops neither.

mod after;
mod callbacks;
mod cell;
pub mod dial;
mod election;
mod environment;
mod feed;
mod handle;
mod hub;
#[cfg(all(test, loom))]
mod loom_tests;
mod methods;
pub mod names;
mod observe;
mod options;
mod outcome;
mod pending;
mod state;
mod sync;
#[cfg(feature = "task")]
pub mod task;
// Built from loom's primitives, nothing runs outside of a model.
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
mod unsent;

pub use after::Callback;
pub use callbacks::CallbackThread;
pub use cell::Expiring;
pub use election::{Campaigning, Election};
pub use environment::{CallbackRunner, Clock, Entropy, Environment};
pub use feed::{DEFAULT_FEED, Subscription};
pub use handle::{Handle, Lost};
pub use hub::{Driver, Hub, LONGEST_SLEEP, Shared, Turn};
pub use options::AcquireOptions;
pub use outcome::{BuildError, HoldError, ReleaseError, Released, Vote, settle};
pub use pending::{Acquiring, Closing, Connecting, Extending, Releasing};
pub use unsent::Unsent;
