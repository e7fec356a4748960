//! The command over TLS, against a real server that asks for a certificate, too.

use std::process::Command;

use crate::server::Server;
use crate::support::{outcome, redlock};

/// The command line, with what TLS needs; the server's certificate is for another name than its address.
fn secured(server: &Server, line: &str) -> Command {
    let file = |name| server.file(name).display().to_string();
    let (ca, cert, key) = (file("ca.pem"), file("client.pem"), file("client.key"));
    let (verb, rest) = line.split_once(' ').unwrap();
    let options = format!("--cacert {ca} --cert {cert} --key {key} --sni redis.example.com");
    let mut command = redlock(&format!("{verb} {options} {rest}"));
    command.env("REDLOCK_NODES", server.url("127.0.0.1"));
    command
}

#[test]
fn all_that_speaks_to_nodes_speaks_tls() {
    let Some(server) = Server::start("redis.example.com", true) else { return };
    for line in [
        "check --sampling 100ms",
        "run door -- true",
        "status door",
        "unlock --force --yes door",
        "bench --duration 200ms",
    ] {
        let outcome = outcome(secured(&server, line));
        assert_eq!(outcome.code, Some(0), "{line}: {outcome:?}");
        assert!(!format!("{outcome:?}").contains(":pw@"), "{line}: {outcome:?}");
    }
}

#[test]
fn what_is_wrong_with_tls_is_told() {
    let Some(server) = Server::start("redis.example.com", false) else { return };
    for line in ["run --wait 1s door -- true", "status door"] {
        let ca = server.file("ca.pem").display().to_string();
        let (verb, rest) = line.split_once(' ').unwrap();
        let mut command = redlock(&format!("{verb} --cacert {ca} {rest}"));
        command.env("REDLOCK_NODES", server.url("127.0.0.1"));
        let outcome = outcome(command);
        assert_eq!(outcome.code, Some(69), "{outcome:?}");
        assert!(format!("{outcome:?}").contains("not valid for name"), "{outcome:?}");
    }
    let mut command = redlock("run --cacert /nowhere/ca.pem door -- true");
    command.env("REDLOCK_NODES", server.url("127.0.0.1"));
    let outcome = outcome(command);
    assert_eq!(outcome.code, Some(64), "{outcome:?}");
    assert!(outcome.stderr.contains("/nowhere/ca.pem"), "{outcome:?}");
}
