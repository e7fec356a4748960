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

/// What a look-up found, for the node with this index.
pub(super) type Found = (usize, Result<Vec<SocketAddr>, DisconnectReason>);

/// Looks a name up, and says what was found into `found`, then wakes the reader.
pub(super) fn start(
    node: usize,
    host: String,
    port: u16,
    found: Sender<Found>,
    reactor: Arc<Reactor>,
) -> io::Result<()> {
    let look_up = move || {
        let addresses = (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
        // The client may be gone meanwhile.
        if found.send((node, looked_up(&host, addresses))).is_ok() {
            reactor.ring();
        }
    };
    thread::Builder::new().name("redlock-resolve".into()).spawn(look_up)?;
    Ok(())
}
