//! `redlock nodes`: simulated nodes behind real sockets.

use core::fmt::Write as _;
use core::net::{Ipv4Addr, SocketAddr};
use std::io;

use redlock_core::sim::{Dialect, Server, TcpNode};

use crate::args::NodesArgs;
use crate::exit::{self, Exit};
use crate::{clock, out, signals};

/// Serves until it is asked to end.
pub(crate) fn run(args: &NodesArgs) -> Exit {
    match serve(args) {
        Ok(()) => Exit(0),
        Err((code, message)) => {
            out::say(message);
            Exit(code)
        }
    }
}

fn serve(args: &NodesArgs) -> Result<(), (u8, String)> {
    let dialect = args.dialect.into();
    let password = args.password.as_deref();
    let ports = ports(args.port, args.count).ok_or_else(|| {
        (exit::USAGE, format!("{} ports from {} on go beyond 65535", args.count, args.port))
    })?;
    let mut nodes = Vec::new();
    for port in ports {
        let node = start(port, dialect, password)
            .map_err(|error| (exit::UNAVAILABLE, format!("cannot serve on 127.0.0.1:{port}: {error}")))?;
        nodes.push(node);
    }
    let urls: Vec<String> = nodes.iter().map(|node| url(node.addr(), password)).collect();
    out::print(&format!("export REDLOCK_NODES={}\n", urls.join(",")));
    let (server, version) = (dialect.server_name(), dialect.version());
    out::say(format_args!("serving {} simulated {server} {version} nodes; Ctrl-C ends them", nodes.len()));
    signals::wait_for_end().map_err(|error| (exit::UNAVAILABLE, format!("cannot wait for signals: {error}")))
}

/// The ports to serve on. Any free ones for 0.
fn ports(first: u16, count: u16) -> Option<Vec<u16>> {
    if first == 0 {
        return Some(vec![0; count.into()]);
    }
    let last = first.checked_add(count.checked_sub(1)?)?;
    Some((first..=last).collect())
}

/// One node. Its identity is new each time: nodes of two fleets may be used together.
pub(crate) fn start(port: u16, dialect: Dialect, password: Option<&str>) -> io::Result<TcpNode> {
    let server = Server::new(dialect, clock::now().as_nanos());
    let server = password.into_iter().fold(server, Server::with_password);
    TcpNode::start_at(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port), server)
}

/// The address, in a form that neither a shell nor the list takes apart.
fn url(addr: SocketAddr, password: Option<&str>) -> String {
    let Some(password) = password else { return format!("redis://{addr}") };
    let mut encoded = String::new();
    for byte in password.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _written = write!(encoded, "%{byte:02X}");
        }
    }
    format!("redis://:{encoded}@{addr}")
}

#[cfg(test)]
mod tests {
    use redlock_core::Address;

    use super::*;

    #[test]
    fn addresses_come_back_with_any_password() {
        let addr = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 7001);
        assert_eq!(url(addr, None), "redis://127.0.0.1:7001");
        for password in ["secret", "a,b@c:d/e", "it's $HOME %41 ä"] {
            let url = url(addr, Some(password));
            assert!(
                url.bytes().all(|byte| byte.is_ascii_graphic() && !b"'\"$`\\,&;".contains(&byte)),
                "{url}"
            );
            assert_eq!(Address::parse(&url).unwrap().password(), Some(password));
        }
    }

    #[test]
    fn ports_do_not_go_beyond_the_last() {
        assert_eq!(ports(7001, 3).unwrap(), [7001, 7002, 7003]);
        assert_eq!(ports(65_535, 1).unwrap(), [65_535]);
        assert_eq!(ports(65_535, 2), None);
        assert_eq!(ports(0, 2).unwrap(), [0, 0]);
    }
}
