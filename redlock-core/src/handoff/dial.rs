//! Getting from a node's address to a connection: what is known without a resolver, and what is said when none of a name's
//! addresses can be connected.

use crate::event::DisconnectReason;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::time::Duration;
use std::io;

/// The addresses of a host that need no looking up: literals, and `localhost`, which is both loopback addresses on every
/// system.
#[must_use]
pub fn known_addresses(host: &str, port: u16) -> Option<Vec<SocketAddr>> {
    if host == "localhost" {
        let ips = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        return Some(ips.map(|ip| SocketAddr::new(ip, port)).to_vec());
    }
    host.parse().ok().map(|ip: IpAddr| vec![SocketAddr::new(ip, port)])
}

/// What a look-up of `host` found, in the engine's words.
///
/// # Errors
///
/// The resolver's words, or that there is no address.
pub fn looked_up(
    host: &str,
    found: io::Result<Vec<SocketAddr>>,
) -> Result<Vec<SocketAddr>, DisconnectReason> {
    match found {
        Ok(addresses) if addresses.is_empty() => {
            Err(DisconnectReason::Unresolvable(format!("{host} has no address")))
        }
        Ok(addresses) => Ok(addresses),
        Err(error) => Err(DisconnectReason::Unresolvable(format!("{host}: {error}"))),
    }
}

/// How long each of `addresses` may take: an equal share, so that a silent one does not use up all of the time.
#[must_use]
pub fn share_of(time: Duration, addresses: usize) -> Duration {
    time / u32::try_from(addresses).unwrap_or(u32::MAX).max(1)
}

/// Why addresses could not be connected.
#[derive(Debug, Default)]
pub struct DialFaults {
    text: String,
    /// One was not refused: silent, unreachable.
    is_mixed: bool,
    /// With one, no TLS could be spoken.
    is_tls: bool,
}

impl DialFaults {
    /// One more.
    pub fn add(&mut self, target: &str, error: &io::Error) {
        if !self.text.is_empty() {
            self.text.push_str("; ");
        }
        self.text.push_str(&format!("{target}: {error}"));
        self.is_mixed |= !matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound);
    }

    /// One more, which was connected, but not to speak TLS.
    pub fn add_tls(&mut self, target: &str, error: &io::Error) {
        self.add(target, error);
        self.is_mixed = true;
        self.is_tls = true;
    }

    /// All of them, for the engine. Only where each address was refused it is final (R27).
    #[must_use]
    pub fn reason(self) -> DisconnectReason {
        match (self.is_tls, self.is_mixed) {
            (true, _) => DisconnectReason::Tls(self.text),
            (false, true) => DisconnectReason::Io(self.text),
            (false, false) => DisconnectReason::Refused(self.text),
        }
    }
}

/// Why a connection cannot be read from, for the engine. Invalid data is not the system's word, but that of TLS.
#[must_use]
pub fn unreadable(error: &io::Error) -> DisconnectReason {
    let is_tls = error.kind() == io::ErrorKind::InvalidData;
    (if is_tls { DisconnectReason::Tls } else { DisconnectReason::Io })(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    #[test]
    fn b37_literals_and_localhost_need_no_resolver() {
        assert_eq!(known_addresses("10.0.0.1", 1), Some(vec![SocketAddr::from(([10, 0, 0, 1], 1))]));
        assert_eq!(known_addresses("::1", 2), Some(vec![SocketAddr::from((Ipv6Addr::LOCALHOST, 2))]));
        assert_eq!(known_addresses("localhost", 3).map(|addresses| addresses.len()), Some(2));
        assert_eq!(known_addresses("redis.example.com", 3), None);
        assert_eq!(known_addresses("fe80::1%eth0", 3), None);
    }

    #[test]
    fn r27_only_a_refusal_by_all_is_one() {
        let mut faults = DialFaults::default();
        faults.add("[::1]:1", &ErrorKind::ConnectionRefused.into());
        faults.add("/run/r.sock", &ErrorKind::NotFound.into());
        let text = "[::1]:1: connection refused; /run/r.sock: entity not found";
        assert_eq!(faults.reason(), DisconnectReason::Refused(text.into()));
        let mut faults = DialFaults::default();
        faults.add("a", &ErrorKind::ConnectionRefused.into());
        faults.add("b", &ErrorKind::TimedOut.into());
        assert_eq!(faults.reason(), DisconnectReason::Io("a: connection refused; b: timed out".into()));
    }

    #[test]
    fn a_handshake_that_fails_is_told_as_tls() {
        let mut faults = DialFaults::default();
        faults.add("a", &ErrorKind::ConnectionRefused.into());
        faults.add_tls("b", &io::Error::other("unknown issuer"));
        assert_eq!(faults.reason(), DisconnectReason::Tls("a: connection refused; b: unknown issuer".into()));
    }

    #[test]
    fn b37_addresses_share_the_time() {
        assert_eq!(share_of(Duration::from_secs(2), 2), Duration::from_secs(1));
        assert_eq!(share_of(Duration::from_secs(2), 0), Duration::from_secs(2));
    }
}
