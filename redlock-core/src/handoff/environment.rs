//! What the engine does not have: a clock, entropy, and a place where callbacks run.

use super::after::Callback;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

/// A clock that never goes back.
///
/// It should count the time during which the machine is suspended, since the servers' expiry does (R13): where it does
/// not, a lock that ran out in a suspend is believed in until the difference is made up.
pub trait Clock: Send + Sync {
    /// The time since the clock's origin. Never less than an earlier answer, on any thread.
    fn now(&self) -> Instant;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Instant {
        (**self).now()
    }
}

impl<C: Clock + ?Sized> Clock for Box<C> {
    fn now(&self) -> Instant {
        (**self).now()
    }
}

/// A source of tokens that nobody can guess and nobody had before: the operating system's generator.
pub trait Entropy: Send + Sync {
    /// Sixteen random bytes.
    ///
    /// # Errors
    ///
    /// The source's words. The acquire that asked fails with them, with nothing sent: there is no second source.
    fn draw(&self) -> Result<[u8; 16], String>;
}

/// Where callbacks of users run: a place that holds no lock of this crate and whose blocking stops no driver, so that they
/// may call into the client.
pub trait CallbackRunner: Send + Sync {
    /// Runs it, soon, after those that were handed over before. Called on any thread; must not block.
    fn run(&self, callback: Callback);
}

/// What an adapter brings besides its [`Driver`](super::Driver).
pub struct Environment {
    /// The clock that everything is counted by.
    pub clock: Box<dyn Clock>,
    /// The source of tokens.
    pub entropy: Box<dyn Entropy>,
    /// Where callbacks run.
    pub callbacks: Box<dyn CallbackRunner>,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").finish_non_exhaustive()
    }
}
