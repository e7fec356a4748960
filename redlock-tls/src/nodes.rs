//! Which node something is meant for.

use crate::error::TlsError;
use core::fmt;
use core::net::IpAddr;

/// A host, on any port or on one.
#[derive(PartialEq, Eq)]
pub(crate) struct Place {
    host: String,
    port: Option<u16>,
}

impl Place {
    pub(crate) fn parse(text: &str) -> Result<Self, TlsError> {
        Self::read(text).ok_or_else(|| {
            // Not what comes before: of an address it may be a password.
            let shown = text.rsplit('@').next().unwrap_or_default().to_owned();
            TlsError::Node { node: shown, detail: "no host, and no host and port".into() }
        })
    }

    fn read(text: &str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => match rest.split_once(']')? {
                (host, "") => (host, None),
                (host, port) => (host, Some(port.strip_prefix(':')?)),
            },
            None => match text.split_once(':') {
                // With more of them it is an IPv6 address.
                Some((host, port)) if !port.contains(':') => (host, Some(port)),
                _ => (text, None),
            },
        };
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:%".contains(&byte);
        if host.is_empty() || !host.bytes().all(is_allowed) {
            return None;
        }
        Some(Self { host: canonical(host), port: port.map(str::parse).transpose().ok()? })
    }

    /// Whether this is meant; more so with a port.
    fn fits(&self, host: &str, port: u16) -> Option<Fit> {
        let is_it = self.host == host && self.port.is_none_or(|own| own == port);
        is_it.then_some(if self.port.is_some() { Fit::Port } else { Fit::Host })
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Host,
    Port,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            None => f.write_str(&self.host),
            Some(port) if self.host.contains(':') => write!(f, "[{}]:{port}", self.host),
            Some(port) => write!(f, "{}:{port}", self.host),
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One way to write each host.
fn canonical(host: &str) -> String {
    match host.parse::<IpAddr>() {
        Ok(ip) => ip.to_string(),
        Err(_) => host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase(),
    }
}

/// What is meant for this node, if anything is: what was said of its port before what was said of its host.
pub(crate) fn find<'a, T>(nodes: &'a [(Place, T)], host: &str, port: u16) -> Option<&'a T> {
    if nodes.is_empty() {
        return None;
    }
    let host = canonical(host);
    let fitting = nodes.iter().filter_map(|(place, what)| Some((place.fits(&host, port)?, what)));
    fitting.max_by(|one, other| one.0.cmp(&other.0)).map(|(_, what)| what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_read_as_users_write_them() {
        for (text, shown) in [
            ("10.0.0.1", "10.0.0.1"),
            ("10.0.0.1:6379", "10.0.0.1:6379"),
            ("LOCALHOST.:7001", "localhost:7001"),
            ("::1", "::1"),
            ("0:0:0:0:0:0:0:1", "::1"),
            ("[::1]", "::1"),
            ("[::1]:7001", "[::1]:7001"),
            ("fe80::1%eth0", "fe80::1%eth0"),
            ("redis_1", "redis_1"),
        ] {
            assert_eq!(Place::parse(text).unwrap().to_string(), shown);
        }
        for text in ["", ":6379", "host:", "host:port", "host:65536", "[::1", "[::1]7001", "[]:1", "a b"] {
            assert!(Place::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn r26_an_address_is_refused_without_its_password() {
        let error = Place::parse("rediss://:pass@word@10.0.0.1:6379").unwrap_err().to_string();
        assert!(error.contains("10.0.0.1:6379") && !error.contains("word"), "{error}");
    }

    #[test]
    fn a_port_counts_more_than_its_host() {
        let places = ["localhost", "localhost:7001", "[::1]:7001", "10.0.0.1"];
        let nodes: Vec<_> =
            places.iter().map(|place| (Place::parse(place).unwrap(), (*place).to_owned())).collect();
        for (host, port, found) in [
            ("localhost", 7001, Some("localhost:7001")),
            ("localhost", 7002, Some("localhost")),
            ("Localhost.", 7001, Some("localhost:7001")),
            ("::1", 7001, Some("[::1]:7001")),
            ("::1", 7002, None),
            ("10.0.0.1", 1, Some("10.0.0.1")),
            ("10.0.0.2", 1, None),
        ] {
            assert_eq!(find(&nodes, host, port).map(String::as_str), found, "{host}:{port}");
        }
    }
}
