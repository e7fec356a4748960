//! `redlock unlock`: only with --force, only when confirmed, and then whoever holds it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::cluster::{RealServer, Said, programs};
use crate::support::{Fleet, Running, outcome, redlock};

fn fence(fleet: &Fleet) {
    for node in &fleet.nodes {
        node.with(|server, now| server.put(b"job:fence", b"42", None, now));
    }
}

#[test]
fn without_force_it_explains_and_does_nothing() {
    let fleet = Fleet::new();
    fleet.occupy("job");
    let refused = outcome(fleet.redlock("unlock --yes job"));
    assert_eq!(refused.code, Some(64), "{refused:?}");
    assert!(refused.stderr.contains("--force") && refused.stderr.contains("redlock status"), "{refused:?}");
    // Nobody to ask, and not told not to.
    let refused = outcome(fleet.redlock("unlock --force job"));
    assert_eq!(refused.code, Some(64), "{refused:?}");
    assert!(refused.stderr.contains("--yes"), "{refused:?}");
    assert!(fleet.values("job").iter().all(Option::is_some));
}

#[test]
fn by_force_it_is_gone_from_all_nodes_and_the_fence_counter_stays() {
    let fleet = Fleet::new();
    fleet.occupy("app:job");
    fleet.delete("app:job", 1);
    fence(&fleet);
    let done = outcome(fleet.redlock("unlock --force --yes --key-prefix app: job"));
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(fleet.is_free("app:job"));
    assert!(fleet.values("job:fence").iter().all(Option::is_some));
    let words: Vec<&str> = done.stdout.lines().map(|line| line.split("  ").last().unwrap()).collect();
    assert_eq!(words, ["was free", "removed", "removed", "removed", "removed"], "{done:?}");
    assert!(done.stderr.contains("was removed from 4 of 5 nodes"), "{done:?}");
    let again = outcome(fleet.redlock("unlock --force --yes --key-prefix app: job"));
    assert_eq!(again.code, Some(0), "it is free, as was asked: {again:?}");
}

#[test]
fn a_majority_has_to_be_cleared() {
    let fleet = Fleet::new();
    fleet.occupy("job");
    fleet.nodes[0].kill();
    fleet.nodes[1].kill();
    let done = outcome(fleet.redlock("unlock --force --yes job"));
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.contains("not removed: connection refused"), "{done:?}");
    fleet.occupy("job");
    fleet.nodes[2].kill();
    let done = outcome(fleet.redlock("unlock --force --yes job"));
    assert_eq!(done.code, Some(69), "{done:?}");
    assert!(done.stderr.contains("2 of 5 nodes only"), "{done:?}");
}

/// Runs it on a terminal of its own, on which `answer` is typed.
fn on_a_terminal(fleet: &Fleet, line: &str, answer: &str) -> (Option<i32>, String) {
    let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&main).unwrap();
    unlockpt(&main).unwrap();
    let name = ptsname(&main, Vec::new()).unwrap();
    let side = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut command = fleet.redlock(line);
    command.stdin(Stdio::from(side.try_clone().unwrap())).stderr(Stdio::from(side));
    let mut main = File::from(main);
    let mut running = command.stdout(Stdio::null()).spawn().unwrap();
    drop(command);
    let mut said = Vec::new();
    let mut buffer = [0; 1024];
    while !String::from_utf8_lossy(&said).contains("Type yes:") {
        let length = main.read(&mut buffer).unwrap();
        said.extend_from_slice(&buffer[..length]);
    }
    main.write_all(answer.as_bytes()).unwrap();
    // A terminal whose other side is closed answers with an error.
    while let Ok(length @ 1..) = main.read(&mut buffer) {
        said.extend_from_slice(&buffer[..length]);
    }
    (running.wait().unwrap().code(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn on_a_terminal_it_asks() {
    let fleet = Fleet::new();
    fleet.occupy("job");
    for answer in ["no\n", "\n", "y\n", "\u{4}"] {
        let (code, said) = on_a_terminal(&fleet, "unlock --force job", answer);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("is held by") && said.contains("nothing was removed"), "{said}");
        assert!(fleet.values("job").iter().all(Option::is_some));
    }
    let (code, said) = on_a_terminal(&fleet, "unlock --force job", "yes\n");
    assert_eq!(code, Some(0), "{said}");
    assert!(fleet.is_free("job"));
}

#[test]
fn the_holder_notices() {
    let fleet = Fleet::new();
    let running = Running::start(fleet.run("--ttl 1s job -- sleep 30"));
    crate::support::until("the lock", || fleet.values("job").iter().all(Option::is_some));
    let done = outcome(fleet.redlock("unlock --force --yes job"));
    assert_eq!(done.code, Some(0), "{done:?}");
    let lost = running.finish();
    assert_eq!(lost.code, Some(70), "{lost:?}");
}

#[test]
fn real_servers_are_cleared() {
    for program in programs() {
        let servers: Vec<RealServer> = (0..3).map(|_| RealServer::start(program, &[])).collect();
        let urls: Vec<String> = servers.iter().map(|server| format!("redis://{}", server.addr())).collect();
        for server in &servers {
            assert_eq!(server.ask(&["RPUSH", "job", "a"]), Said::Line(":1".into()));
        }
        // A replica is no node: it is not written to, and said so.
        assert_eq!(servers[2].ask(&["REPLICAOF", "127.0.0.1", "1"]), Said::Line("+OK".into()));
        let mut command = redlock("unlock --force --yes job");
        command.env("REDLOCK_NODES", urls.join(","));
        let outcome = outcome(command);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert!(outcome.stdout.lines().nth(2).unwrap().contains("replica"), "{outcome:?}");
        assert_eq!(
            [0, 1, 2].map(|node: usize| servers[node].ask(&["EXISTS", "job"])),
            [":0", ":0", ":1"].map(|line| Said::Line(line.into()))
        );
    }
}
