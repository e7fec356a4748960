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
fn each_node_has_its_own_name() {
    let names = ["redis-1.example.com", "redis-2.example.com", "redis-3.example.com"];
    let [Some(one), Some(two), Some(three)] = names.map(|name| Server::start(name, false)) else { return };
    let servers = [one, two, three];
    // One file with all authorities, and a name for each port.
    let all: Vec<u8> =
        servers.iter().flat_map(|server| std::fs::read(server.file("ca.pem")).unwrap()).collect();
    let ca = servers[0].file("all.pem");
    std::fs::write(&ca, all).unwrap();
    let place = |server: &Server, name: &str| format!("--sni 127.0.0.1:{}={name}", server.port);
    let nodes = servers.each_ref().map(|server| server.url("127.0.0.1")).join(",");
    let run = |verb: &str, options: String| {
        let mut command = redlock(&format!("{verb} --cacert {} {options}", ca.display()));
        command.env("REDLOCK_NODES", &nodes);
        outcome(command)
    };
    let named = [place(&servers[0], names[0]), place(&servers[1], names[1])];
    let [one, two] = &named;
    // All of them are asked, and the third has the name that all others have.
    let checked = run("check", format!("{one} {two} --sni {} --sampling 100ms", names[2]));
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(!checked.stdout.contains("problem"), "{checked:?}");
    let locked = run("run", format!("{one} {two} --sni {} door -- true", names[2]));
    assert_eq!(locked.code, Some(0), "{locked:?}");
    let checked = run("check", format!("{one} --sni {} --sampling 100ms", names[2]));
    assert!(format!("{checked:?}").contains("not valid for name"), "{checked:?}");
    let stray = run("check", "--sni 127.0.0.2=redis-1.example.com".to_owned());
    assert_eq!(stray.code, Some(64), "{stray:?}");
    assert!(stray.stderr.contains("127.0.0.2"), "{stray:?}");
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
