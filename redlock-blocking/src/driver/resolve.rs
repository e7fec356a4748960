//! Names are looked up on a thread of their own, at most one for each node: a resolver that hangs holds up one node, and
//! does not gather threads.

use super::Reactor;
use alloc::sync::Arc;
use core::net::SocketAddr;
use redlock_core::DisconnectReason;
use redlock_core::handoff::dial::looked_up;
use std::io;
use std::net::ToSocketAddrs;
use std::sync::mpsc::Sender;
use std::thread;

/// Looks a name up; it may block for as long as it likes.
pub(crate) type LookUp = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// By the system's resolver.
pub(crate) fn system(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    (host, port).to_socket_addrs().map(Iterator::collect)
}

/// What a look-up found, for the node with this index.
pub(super) type Found = (usize, Result<Vec<SocketAddr>, DisconnectReason>);

/// Looks a name up, and says what was found into `found`, then wakes the reader.
pub(super) fn start(
    look_up: LookUp,
    node: usize,
    host: String,
    port: u16,
    found: Sender<Found>,
    reactor: Arc<Reactor>,
) -> io::Result<()> {
    let work = move || {
        let addresses = look_up(&host, port);
        // The client may be gone meanwhile.
        if found.send((node, looked_up(&host, addresses))).is_ok() {
            reactor.ring();
        }
    };
    thread::Builder::new().name("redlock-resolve".into()).spawn(work)?;
    Ok(())
}
