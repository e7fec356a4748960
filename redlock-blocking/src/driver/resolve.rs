//! Names are looked up on a thread of their own, at most one for each node: a resolver that hangs holds up one node, and
//! does not gather threads.

use alloc::sync::Arc;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::io;
use std::net::ToSocketAddrs;
use std::sync::mpsc::Sender;
use std::thread;

/// What a look-up found, for the node with this index.
pub(super) type Found = (usize, Result<Vec<SocketAddr>, String>);

/// The addresses of a host that need no looking up.
pub(super) fn known(host: &str, port: u16) -> Option<Vec<SocketAddr>> {
    if host == "localhost" {
        let ips = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        return Some(ips.map(|ip| SocketAddr::new(ip, port)).to_vec());
    }
    host.parse().ok().map(|ip: IpAddr| vec![SocketAddr::new(ip, port)])
}

/// Looks a name up, and says what was found into `found`, then wakes the driver.
pub(super) fn start(
    node: usize,
    host: String,
    port: u16,
    found: Sender<Found>,
    waker: Arc<mio::Waker>,
) -> io::Result<()> {
    let look_up = move || {
        let addresses = (host.as_str(), port).to_socket_addrs();
        let addresses = match addresses.map(Iterator::collect::<Vec<_>>) {
            Ok(addresses) if addresses.is_empty() => Err(format!("{host} has no address")),
            Ok(addresses) => Ok(addresses),
            Err(error) => Err(format!("{host}: {error}")),
        };
        // The client may be gone meanwhile.
        if found.send((node, addresses)).is_ok() {
            let _woken = waker.wake();
        }
    };
    thread::Builder::new().name("redlock-resolve".into()).spawn(look_up)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_localhost_need_no_thread() {
        assert_eq!(known("10.0.0.1", 1), Some(vec![SocketAddr::from(([10, 0, 0, 1], 1))]));
        assert_eq!(known("::1", 2), Some(vec![SocketAddr::from((Ipv6Addr::LOCALHOST, 2))]));
        assert_eq!(known("localhost", 3).map(|addresses| addresses.len()), Some(2));
        assert_eq!(known("redis.example.com", 3), None);
        assert_eq!(known("fe80::1%eth0", 3), None);
    }
}
