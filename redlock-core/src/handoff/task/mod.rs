//! The asynchronous client, once for all runtimes.
//!
//! A runtime's crate brings a [`Runtime`]: where to spawn a task, how to sleep, a clock, entropy, and a [`Transport`] that
//! makes connections. What its users see is here: [`Redlock`], [`Acquire`], [`Guard`], [`Election`], [`Events`].
//!
//! One task per client, the driver, reads from the sockets and keeps the timers. Whoever starts an operation writes its
//! bytes himself, on whichever thread he is, and then waits for the answer; where many are under way, they leave their bytes
//! to the driver, which writes them at once. When the driver's task ends before its client is closed, because its runtime
//! ends, the client is closed: nothing waits for ever.

mod acquire;
mod client;
mod connections;
mod drive;
mod election;
mod events;
mod guard;
mod signal;

use super::environment::{Clock, Entropy};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::net::SocketAddr;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::io;

pub use acquire::{Acquire, Acquiring};
pub use client::{Builder, Redlock};
pub use connections::Connections;
pub use election::Election;
pub use events::Events;
pub use guard::{Guard, Lost};

/// A future without a name.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What a runtime is to a client.
pub trait Runtime: Copy + fmt::Debug + Send + Sync + 'static {
    /// Has the driver of a client run, to its end. Called where the client is made.
    ///
    /// # Errors
    ///
    /// Why nothing can be run here, in words for the user.
    fn spawn(driver: BoxFuture<()>) -> Result<(), String>;

    /// Ready once `span` is over, not before; called by the driver.
    fn sleep(span: Duration) -> BoxFuture<()>;

    /// The clock, where a user brings none.
    fn clock() -> Arc<dyn Clock>;

    /// The source of tokens.
    fn entropy() -> Box<dyn Entropy>;

    /// What makes connections, where a user brings nothing else.
    fn transport() -> Arc<dyn Transport>;

    /// What speaks TLS for `rediss://`, where a user brings nothing else: none, if the crate was built without it.
    ///
    /// # Errors
    ///
    /// Why it cannot be had here, in words for the user.
    fn secure() -> Result<Option<Arc<dyn Secure>>, String> {
        Ok(None)
    }
}

/// Puts TLS between a client and its sockets.
pub trait Secure: Send + Sync {
    /// Speaks TLS over a connection that stands, to the node with this host and port in its address; ready once the
    /// handshake is done. It must not block. Its time is part of the handshake timeout.
    fn secure(
        &self,
        host: String,
        port: u16,
        socket: Box<dyn Socket>,
    ) -> BoxFuture<io::Result<Box<dyn Socket>>>;
}

/// Makes connections: the runtime's sockets, or what a test puts in their place.
///
/// All of this is called with the client's mutex held, or by its driver: it must not block, and must not call the client;
/// nor must dropping what it returns.
pub trait Transport: Send + Sync {
    /// Looks a name up. Literal addresses and `localhost` are not asked for.
    fn resolve(&self, host: String, port: u16) -> BoxFuture<io::Result<Vec<SocketAddr>>>;

    /// Connects to one address.
    fn connect(&self, address: SocketAddr) -> BoxFuture<io::Result<Box<dyn Socket>>>;

    /// Connects to a Unix socket.
    fn connect_unix(&self, path: String) -> BoxFuture<io::Result<Box<dyn Socket>>>;
}

/// A connection: bytes in order, both ways. Polled from one place at a time, but not always from the same thread or task.
pub trait Socket: Send {
    /// Reads what is there; 0 is the end. When nothing is there yet, the waker is woken when there is.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Writes what there is room for. When there is none, the waker is woken when there is.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;
}
