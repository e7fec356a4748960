//! `redlock check` against simulated nodes: each verdict where it belongs, and not where it does not.

use core::time::Duration;
use std::time::Instant;

use redlock_core::sim::{Condition, Dialect, Server, TcpNode};
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Fleet, Outcome, Running, outcome, redlock};

/// `redlock check --json` of these nodes.
pub(crate) fn check(urls: &[String], options: &str) -> (Outcome, Value) {
    let sampling = if options.contains("--sampling") { "" } else { "--sampling 150ms" };
    let mut command = redlock(&format!("check --json {sampling} {options}"));
    command.env("REDLOCK_NODES", urls.join(","));
    let outcome = outcome(command);
    let json = serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome:?}"));
    (outcome, json)
}

/// The worst that is said of a node about a topic: severity and sentence.
pub(crate) fn said(json: &Value, node: usize, topic: &str) -> (String, String) {
    let verdicts = json["nodes"][node]["verdicts"].as_array().unwrap();
    let rank = |verdict: &&Value| {
        ["ok", "note", "warning", "problem"].iter().position(|name| verdict["severity"] == **name).unwrap()
    };
    let of_topic = verdicts.iter().filter(|verdict| verdict["topic"] == topic);
    of_topic.max_by_key(rank).map_or_else(
        || ("nothing".into(), String::new()),
        |verdict| {
            let text = |field: &str| verdict[field].as_str().unwrap_or_default().to_owned();
            (text("severity"), format!("{} {}", text("finding"), text("advice")))
        },
    )
}

fn urls(nodes: &[TcpNode]) -> Vec<String> {
    nodes.iter().map(|node| format!("redis://{}", node.addr())).collect()
}

fn start(servers: Vec<Server>) -> Vec<TcpNode> {
    servers.into_iter().map(|server| TcpNode::start(server).unwrap()).collect()
}

/// Sets all clocks alike, and that of one node ahead. A node's clock begins when it is started.
fn set_clocks(nodes: &[TcpNode], ahead: usize, by_millis: i64) {
    let base = Instant::now();
    for (index, node) in nodes.iter().enumerate() {
        node.with(|server, now| {
            let alike =
                i64::try_from(base.elapsed().as_millis()).unwrap() - i64::try_from(now.as_millis()).unwrap();
            // Behind no clock of before, or the node would be up for less than no time.
            let shift = 600_000 + if index == ahead { by_millis } else { 0 };
            server.set_clock(alike + shift, 0, now);
        });
    }
}

fn sound(seed: u64) -> Server {
    Server::new(Dialect::Valkey9, seed).with_config("appendonly", "yes").with_config("appendfsync", "always")
}

#[test]
fn what_redlock_nodes_serves_is_fit() {
    let mut running = Running::start(redlock("nodes --port 0 --count 3"));
    let line = running.line();
    let mut command = redlock("check --sampling 150ms");
    command.env("REDLOCK_NODES", line.strip_prefix("export REDLOCK_NODES=").unwrap());
    let outcome = outcome(command);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    assert!(outcome.stdout.contains("valkey 9.1.2"), "{outcome:?}");
    assert!(outcome.stdout.contains("3 of 3 nodes are fit for locks"), "{outcome:?}");
    running.signal(Signal::TERM);
    assert_eq!(running.finish().code, Some(0));
}

#[test]
fn sound_nodes_have_nothing_to_be_said() {
    let nodes = start(vec![sound(1), sound(2), sound(3)]);
    set_clocks(&nodes, 0, 0);
    let (outcome, json) = check(&urls(&nodes), "");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(json["safe"], true);
    for node in json["nodes"].as_array().unwrap() {
        assert_eq!(node["severity"], "ok", "{node:#}");
    }
    // Nothing is left behind.
    for node in &nodes {
        assert_eq!(node.with(|server, now| server.keys(now)), Vec::<Vec<u8>>::new());
    }
}

#[test]
fn each_fault_is_named_at_its_node_and_at_no_other() {
    let fault = |seed: u64, with: fn(Server) -> Server| with(sound(seed));
    let nodes = start(vec![
        sound(1),
        fault(2, |server| {
            server.with_config("maxmemory-policy", "allkeys-lru").with_config("maxmemory", "100000000")
        }),
        fault(3, |mut server| {
            server.set_condition(Some(Condition::Readonly));
            server
        }),
        fault(4, |mut server| {
            server.set_condition(Some(Condition::Cluster { moved: None }));
            server
        }),
        fault(5, |server| server.with_config("appendfsync", "everysec")),
        sound(6),
        fault(7, |server| server.with_password("sesame")),
        Server::new(Dialect::Redis7, 8).with_config("appendonly", "yes").with_config("appendfsync", "always"),
        sound(9),
        sound(10),
        sound(11),
        sound(12),
        sound(13),
    ]);
    set_clocks(&nodes, 5, 5_000);
    nodes[8].kill();
    let mut urls = urls(&nodes);
    urls[6] = urls[6].replace("redis://", "redis://:hunter2@");
    // One server by another name, at the end.
    urls.push(urls[0].replace("127.0.0.1", "localhost"));
    let (outcome, json) = check(&urls, "");
    assert_eq!(outcome.code, Some(0), "8 of 14 are a majority: {outcome:?}");
    assert!(!outcome.stdout.contains("hunter2"));
    let expected = [
        (1, "eviction", "problem", "allkeys-lru"),
        (2, "role", "problem", "replica"),
        (3, "role", "problem", "cluster"),
        (4, "persistence", "warning", "everysec"),
        (5, "clock", "warning", "ahead"),
        (6, "login", "problem", "WRONGPASS"),
        (7, "version", "note", "7.0.15"),
        (8, "reach", "problem", "refused"),
        (13, "identity", "problem", "redis://127.0.0.1"),
    ];
    for (node, topic, severity, word) in expected {
        let (found, text) = said(&json, node, topic);
        assert_eq!(found, severity, "{topic}: {text}");
        assert!(text.contains(word), "{text}");
        for other in (0..14).filter(|other| *other != node) {
            let is_other_fault =
                expected.iter().any(|(node, other_topic, ..)| *node == other && *other_topic == topic);
            let (found, text) = said(&json, other, topic);
            assert!(
                is_other_fault || matches!(found.as_str(), "ok" | "nothing"),
                "{topic} of {other}: {text}"
            );
        }
    }
    assert_eq!((json["usable"].as_u64(), json["quorum"].as_u64()), (Some(8), Some(8)));
}

#[test]
fn without_a_safe_quorum_it_is_69() {
    let fleet = Fleet::new();
    for node in &fleet.nodes[..2] {
        node.kill();
    }
    let outcome_with = |fleet: &Fleet| outcome(fleet.redlock("check --sampling 0"));
    let two = outcome_with(&fleet);
    assert_eq!(two.code, Some(0), "{two:?}");
    assert!(two.stdout.contains("with one node less no lock can be had"), "{two:?}");
    fleet.nodes[2].kill();
    let three = outcome_with(&fleet);
    assert_eq!(three.code, Some(69), "{three:?}");
    for node in 0..3 {
        assert!(three.stdout.contains(&fleet.url(node)), "{three:?}");
    }
    assert!(three.stdout.contains("2 of 5 nodes are fit for locks, and 3 have to be"), "{three:?}");
}

#[test]
fn nodes_that_say_nothing_hold_it_up_for_a_bounded_time() {
    let fleet = Fleet::new();
    for node in &fleet.nodes[..2] {
        node.freeze();
    }
    let outcome = outcome(fleet.redlock("check --sampling 0 --timeout 500ms"));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stdout.contains("No handshake within 500ms"), "{outcome:?}");
    assert!(outcome.took < Duration::from_secs(10), "{outcome:?}");
}

#[test]
fn clocks_are_compared_with_their_error() {
    let nodes = start(vec![sound(1), sound(2), sound(3)]);
    set_clocks(&nodes, 1, 250);
    let (_, json) = check(&urls(&nodes), "");
    let (found, text) = said(&json, 1, "clock");
    assert_eq!(found, "note", "{text}");
    assert!(text.contains("ahead of") && text.contains('±'), "{text}");
    let offset = json["nodes"][1]["clock_offset_ms"].as_f64().unwrap();
    let error = json["nodes"][1]["clock_error_ms"].as_f64().unwrap();
    // The clocks were set to the millisecond.
    assert!((offset - 250.0).abs() <= error + 2.0, "{offset} ± {error}");
}

#[test]
fn rights_that_are_missing_are_named_and_the_key_prefix_is_honoured() {
    let rules = ["+info", "+ping", "+set", "+eval", "+get", "~app:*"];
    let nodes = start((1..4).map(|seed| sound(seed).with_user("ann", "pw", &rules)).collect());
    let urls: Vec<String> =
        urls(&nodes).iter().map(|url| url.replace("redis://", "redis://ann:pw@")).collect();
    let (outcome, json) = check(&urls, "");
    assert_eq!(outcome.code, Some(69));
    assert!(said(&json, 0, "rights").1.contains("--key-prefix"), "{json:#}");
    let (outcome, json) = check(&urls, "--key-prefix app:");
    assert_eq!(outcome.code, Some(69));
    let (severity, text) = said(&json, 0, "rights");
    assert_eq!(severity, "problem");
    assert!(text.contains("cannot be released") && text.contains("+delifeq (or +del)"), "{text}");
    assert!(!outcome.stdout.contains("\"pw\""), "{outcome:?}");
    for right in ["+delifeq", "+del", "+pexpire"] {
        assert!(json["nodes"][0]["missing_rights"].as_array().unwrap().contains(&right.into()), "{json:#}");
    }
}

#[test]
fn a_restart_guard_is_counted_in() {
    let nodes = start(vec![Server::new(Dialect::Valkey9, 1)]);
    let (_, json) = check(&urls(&nodes), "");
    assert_eq!(said(&json, 0, "persistence").0, "warning");
    assert_eq!(said(&json, 0, "restart-guard").0, "nothing");
    let (_, json) = check(&urls(&nodes), "--restart-guard 1m");
    assert_eq!(said(&json, 0, "persistence").0, "ok");
    assert_eq!(said(&json, 0, "restart-guard").0, "warning");
}

#[test]
fn the_names_of_the_fields_stay() {
    let nodes = start(vec![sound(1), sound(2), sound(3)]);
    let (_, json) = check(&urls(&nodes), "");
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(names(&json), "nodes quorum safe usable verdicts");
    assert_eq!(
        names(&json["nodes"][0]),
        "address appendfsync appendonly clock_drift_error_ppm clock_drift_ppm clock_error_ms clock_offset_ms \
         evicted_keys extend_by fault latency_median_ms latency_min_ms maxmemory maxmemory_policy missing_rights mode \
         product protocol reached release_by role run_id severity trial uptime_seconds verdicts version"
    );
    assert_eq!(names(&json["nodes"][0]["trial"]), "extend extend_by_script release set");
    assert_eq!(names(&json["nodes"][0]["verdicts"][0]), "advice finding severity topic");
    assert_eq!(names(&json["verdicts"][0]), "advice finding severity topic");
    let readme = include_str!("../../README.md");
    for name in json["nodes"][0].as_object().unwrap().keys().chain(json.as_object().unwrap().keys()) {
        assert!(readme.contains(&format!("`{name}`")), "{name} is not documented");
    }
}

#[test]
fn what_makes_no_sense_is_64() {
    for line in [
        "check",
        "check --node http://127.0.0.1",
        "check --node redis://127.0.0.1:1 --node redis://127.0.0.1:1",
        "check --node redis://127.0.0.1:1 --timeout 0",
        "check --node redis://127.0.0.1:1 --sampling 2h",
        "check --node redis://127.0.0.1:1 --cacert ca.pem",
    ] {
        let outcome = outcome(redlock(line));
        assert_eq!(outcome.code, Some(64), "{line}: {outcome:?}");
        assert!(outcome.stderr.starts_with("redlock: "), "{outcome:?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{line}: {outcome:?}");
    }
}

#[test]
fn help_teaches() {
    for (line, words) in [
        ("check --help", ["Examples", "69", "maxmemory-policy", "restart-guard", "--sampling"]),
        ("status --help", ["Examples", "69", "split", "held", "client-name"]),
        ("unlock --help", ["Examples", "69", "--force", "fence counter", "renewal"]),
    ] {
        let outcome = outcome(redlock(line));
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{line}");
        for word in words {
            assert!(outcome.stdout.contains(word), "{line}: {word} is not explained");
        }
    }
}
