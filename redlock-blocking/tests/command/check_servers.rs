//! `redlock check` against real servers: every one that is found (`cluster::programs` says where).

use std::path::Path;

use serde_json::Value;

use crate::check::{check, said};
use crate::cluster::{RealServer, Said, programs};
use crate::support::{outcome, redlock};

const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

fn url(server: &RealServer) -> String {
    format!("redis://{}", server.addr())
}

fn ok(server: &RealServer, command: &[&str]) {
    assert_eq!(server.ask(command), Said::Line("+OK".into()), "{command:?}");
}

fn start(program: &Path, count: usize) -> Vec<RealServer> {
    (0..count).map(|_| RealServer::start(program, &DURABLE)).collect()
}

/// Whether its version has commands for all that plain locks need.
fn is_native(json: &Value) -> bool {
    json["nodes"][0]["release_by"] != "script"
}

#[test]
fn five_sound_servers_are_fit() {
    for program in programs() {
        let servers = start(program, 5);
        let urls: Vec<String> = servers.iter().map(url).collect();
        let (outcome, json) = check(&urls, "");
        assert_eq!((outcome.code, json["safe"].as_bool()), (Some(0), Some(true)), "{outcome:?}");
        for node in 0..5 {
            for topic in
                ["reach", "role", "identity", "locking", "rights", "eviction", "persistence", "clock"]
            {
                let (severity, text) = said(&json, node, topic);
                assert_eq!(severity, "ok", "{topic}: {text}");
            }
            // What an old version lacks is said, and no more than that.
            let expected = if is_native(&json) { "ok" } else { "note" };
            assert_eq!(said(&json, node, "version").0, expected);
        }
        for server in &servers {
            assert_eq!(server.ask(&["DBSIZE"]), Said::Line(":0".into()), "nothing is left behind");
        }
    }
}

#[test]
fn five_servers_with_a_fault_each_are_told_apart() {
    for program in programs() {
        let mut servers = start(program, 4);
        servers.push(RealServer::start(program, &["--cluster-enabled", "yes"]));
        ok(&servers[0], &["CONFIG", "SET", "maxmemory", "100mb"]);
        ok(&servers[0], &["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"]);
        // A replica of a server that is not there.
        ok(&servers[1], &["REPLICAOF", "127.0.0.1", "1"]);
        ok(&servers[2], &["CONFIG", "SET", "requirepass", "sesame"]);
        ok(&servers[3], &["CONFIG", "SET", "appendfsync", "everysec"]);
        let urls: Vec<String> = servers.iter().map(url).collect();
        let mut command = redlock("check --sampling 150ms");
        command.env("REDLOCK_NODES", urls.join(","));
        let outcome = outcome(command);
        assert_eq!(outcome.code, Some(69), "{outcome:?}");
        for (node, severity, word) in [
            (0, "problem", "volatile-ttl"),
            (1, "problem", "replica"),
            (2, "problem", "NOAUTH"),
            (3, "warning", "appendfsync everysec"),
            (4, "problem", "cluster"),
        ] {
            let line = outcome
                .stdout
                .lines()
                .find(|line| line.starts_with(severity) && line.contains(&urls[node]) && line.contains(word));
            assert!(line.is_some(), "{word} is not said of {}:\n{}", urls[node], outcome.stdout);
            for other in (0..5).filter(|other| *other != node) {
                let wrong = outcome.stdout.lines().find(|line| {
                    line.starts_with(severity)
                        && line.contains(&format!("{}:", urls[other]))
                        && line.contains(word)
                });
                assert_eq!(wrong, None, "{}", outcome.stdout);
            }
        }
        assert!(outcome.stdout.contains("1 of 5 nodes are fit for locks, and 3 have to be"), "{outcome:?}");
        // With the password, and the policy set right, two are mended; one more is not enough of five but of three.
        ok(&servers[0], &["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
        let urls = [urls[0].clone(), urls[2].replace("redis://", "redis://:sesame@"), urls[3].clone()];
        let (outcome, json) = check(&urls, "");
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert_eq!(said(&json, 0, "eviction").0, "ok");
        assert_eq!(said(&json, 2, "persistence").0, "warning");
    }
}

#[test]
fn r24_one_server_by_two_names_is_found() {
    for program in programs() {
        let servers = start(program, 2);
        let mut urls: Vec<String> = servers.iter().map(url).collect();
        urls.push(urls[0].replace("127.0.0.1", "localhost"));
        let (outcome, json) = check(&urls, "");
        assert_eq!(outcome.code, Some(0), "two of three: {outcome:?}");
        assert_eq!([0, 1, 2].map(|node| said(&json, node, "identity").0), ["ok", "ok", "problem"]);
        assert!(said(&json, 2, "identity").1.contains(&urls[0]));
    }
}

#[test]
fn silent_and_dead_servers_and_wrong_passwords_are_told() {
    for program in programs() {
        let mut servers = start(program, 3);
        servers[0].freeze();
        ok(&servers[1], &["CONFIG", "SET", "requirepass", "sesame"]);
        let mut urls: Vec<String> = servers.iter().map(url).collect();
        urls[1] = urls[1].replace("redis://", "redis://:hunter2@");
        drop(servers.pop());
        let (outcome, json) = check(&urls, "--timeout 700ms");
        assert_eq!(outcome.code, Some(69), "{outcome:?}");
        for (node, topic, word) in [(0, "reach", "700ms"), (1, "login", "WRONGPASS"), (2, "reach", "refused")]
        {
            let (severity, text) = said(&json, node, topic);
            assert_eq!(severity, "problem", "{text}");
            assert!(text.contains(word), "{text}");
        }
        assert!(!outcome.stdout.contains("hunter2"));
    }
}

/// The least that a user needs for plain locks, as the README says.
fn least(json: &Value) -> &'static [&'static str] {
    let node = &json["nodes"][0];
    match (node["extend_by"].as_str(), node["release_by"].as_str()) {
        (Some("SET IFEQ"), Some("DELIFEQ")) => &["+info", "+ping", "+set", "+delifeq"],
        (Some("SET IFEQ"), Some("DELEX")) => &["+info", "+ping", "+set", "+delex"],
        (Some("SET IFEQ"), Some("script")) => &["+info", "+ping", "+set", "+eval", "+get", "+del"],
        (Some("script"), Some("script")) => &["+info", "+ping", "+set", "+eval", "+get", "+del", "+pexpire"],
        forms => panic!("{forms:?}"),
    }
}

#[test]
fn r22_the_least_rights_do_and_one_less_is_named() {
    for program in programs() {
        let server = RealServer::start(program, &DURABLE);
        let urls = [url(&server).replace("redis://", "redis://locks:pw@")];
        let (_, json) = check(&[url(&server)], "--sampling 0");
        let least = least(&json);
        assert!(include_str!("../../README.md").contains(&least.join(" ")), "{least:?} is not in the README");
        let grant = |rights: &[&str]| {
            let mut command = vec!["ACL", "SETUSER", "locks", "reset", "on", ">pw", "~*"];
            command.extend(rights);
            ok(&server, &command);
        };
        grant(least);
        let (outcome, json) = check(&urls, "--sampling 0");
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert_eq!(said(&json, 0, "rights").0, "note", "{json:#}");
        for missing in least {
            let rights: Vec<&str> = least.iter().filter(|right| *right != missing).copied().collect();
            grant(&rights);
            let (outcome, json) = check(&urls, "--sampling 0");
            let (severity, text) = said(&json, 0, "rights");
            let (expected, code) = match *missing {
                "+ping" => ("note", 0),
                "+info" => ("warning", 0),
                _ => ("problem", 69),
            };
            assert_eq!(
                (severity.as_str(), outcome.code),
                (expected, Some(code)),
                "without {missing}: {text}"
            );
            assert!(outcome.stdout.contains(missing), "without {missing}: {}", outcome.stdout);
            let denied = json["nodes"][0]["missing_rights"].as_array().unwrap();
            assert!(denied.contains(&(*missing).into()), "without {missing}: {denied:?}");
            assert_eq!(server.ask(&["DEL", "unrelated"]), Said::Line(":0".into()));
        }
        // Keys that the user may not touch.
        ok(&server, &["ACL", "SETUSER", "locks", "reset", "on", ">pw", "~app:*", "+@all"]);
        let (outcome, json) = check(&urls, "--sampling 0");
        assert_eq!((outcome.code, said(&json, 0, "rights").0.as_str()), (Some(69), "problem"));
        let (outcome, json) = check(&urls, "--sampling 0 --key-prefix app:");
        assert_eq!((outcome.code, said(&json, 0, "rights").0.as_str()), (Some(0), "ok"), "{json:#}");
    }
}

#[test]
fn a_server_out_of_memory_is_told() {
    for program in programs() {
        let server = RealServer::start(program, &DURABLE);
        ok(&server, &["CONFIG", "SET", "maxmemory", "1"]);
        let (outcome, json) = check(&[url(&server)], "--sampling 0");
        assert_eq!(outcome.code, Some(69), "{outcome:?}");
        let (severity, text) = said(&json, 0, "locking");
        assert_eq!(severity, "problem");
        assert!(text.contains("OOM"), "{text}");
    }
}
