//! `redlock status`.

use core::time::Duration;

use serde_json::Value;

use crate::cluster::{RealServer, Said, programs};
use crate::support::{Fleet, Running, outcome, redlock, until};

const TOKEN: &str = "3031323334353637383961626364656600000001";

fn status(fleet: &Fleet, line: &str) -> (Option<i32>, Value) {
    let outcome = outcome(fleet.redlock(&format!("status --json {line}")));
    assert!(!outcome.stdout.contains(TOKEN), "a whole token is a secret: {outcome:?}");
    let json = serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome:?}"));
    (outcome.code, json)
}

fn put(fleet: &Fleet, node: usize, key: &str, value: &str, ttl: Option<Duration>) {
    fleet.nodes[node].with(|server, now| server.put(key.as_bytes(), value.as_bytes(), ttl, now));
}

#[test]
fn a_running_command_is_seen_and_then_no_more() {
    let fleet = Fleet::new();
    let (code, json) = status(&fleet, "job");
    assert_eq!((code, json["state"].as_str()), (Some(0), Some("free")));
    let running = Running::start(fleet.run("--client-name billing --key-prefix app: job -- sleep 30"));
    until("the lock", || fleet.values("app:job").iter().all(Option::is_some));
    let (code, json) = status(&fleet, "--key-prefix app: job");
    assert_eq!(
        (code, json["state"].as_str(), json["holder"].as_str()),
        (Some(0), Some("held"), Some("billing"))
    );
    assert_eq!((json["held_on"].as_u64(), json["quorum"].as_u64()), (Some(5), Some(3)));
    let left = json["remaining_ms"].as_u64().unwrap();
    assert!(left > 0 && left <= 10_000, "{left}");
    assert_eq!(json["redlock_token"], true);
    let (_, json) = status(&fleet, "job");
    assert_eq!(json["state"], "free", "another key");
    let text = outcome(fleet.redlock("status --key-prefix app: job"));
    assert!(text.stdout.starts_with("\"job\" is held by billing (token "), "{text:?}");
    assert!(text.stdout.contains("on 5 of 5 nodes, for another "), "{text:?}");
    drop(running);
}

#[test]
fn nodes_are_told_apart() {
    let fleet = Fleet::new();
    let minute = Some(Duration::from_secs(60));
    put(&fleet, 0, "job", &format!("{TOKEN}:ann"), minute);
    put(&fleet, 1, "job", &format!("{TOKEN}:ann"), Some(Duration::from_secs(30)));
    put(&fleet, 2, "job", "what-others-write-there", None);
    fleet.nodes[3].with(|server, now| server.put_list(b"job", &[b"a"], None, now));
    put(&fleet, 0, "job:fence", "1800000000000000007", None);
    put(&fleet, 1, "job:fence", "999", None);
    let (code, json) = status(&fleet, "job");
    assert_eq!((code, json["state"].as_str()), (Some(0), Some("split")));
    assert_eq!(json["fence"], "1800000000000000007", "as numbers, not as texts");
    let states: Vec<&str> =
        json["nodes"].as_array().unwrap().iter().map(|node| node["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["held", "held", "foreign", "not-a-string", "free"]);
    assert_eq!(json["nodes"][2]["expires"], false);
    assert_eq!(json["nodes"][1]["holder"], "ann");
    put(&fleet, 4, "job", &format!("{TOKEN}:ann"), minute);
    let (_, json) = status(&fleet, "job");
    assert_eq!((json["state"].as_str(), json["held_on"].as_u64()), (Some("held"), Some(3)));
    // A quorum of three has it for as long as the third longest.
    let left = json["remaining_ms"].as_u64().unwrap();
    assert!((25_000..=30_000).contains(&left), "{left}");
    let holders: Vec<bool> =
        json["nodes"].as_array().unwrap().iter().map(|node| node["is_holder"].as_bool().unwrap()).collect();
    assert_eq!(holders, [true, true, false, false, true]);
}

#[test]
fn without_enough_answers_it_is_69() {
    let fleet = Fleet::new();
    fleet.occupy("job");
    fleet.nodes[0].kill();
    fleet.nodes[1].kill();
    let (code, json) = status(&fleet, "job");
    assert_eq!((code, json["state"].as_str(), json["held_on"].as_u64()), (Some(0), Some("held"), Some(3)));
    assert_eq!(json["redlock_token"], false);
    fleet.nodes[2].kill();
    let (code, json) = status(&fleet, "job");
    assert_eq!((code, json["state"].as_str()), (Some(69), Some("unknown")));
    assert!(json["nodes"][0]["error"].as_str().unwrap().contains("refused"));
    let text = outcome(fleet.redlock("status job"));
    assert!(text.stdout.contains("3 of 5 nodes did not say"), "{text:?}");
}

#[test]
fn the_names_of_the_fields_stay() {
    let fleet = Fleet::new();
    fleet.occupy("job");
    let (_, json) = status(&fleet, "job");
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(
        names(&json),
        "expires fence held_on holder nodes quorum redlock_token remaining_ms resource state token"
    );
    assert_eq!(
        names(&json["nodes"][0]),
        "address error expires fence holder is_holder redlock_token remaining_ms state token"
    );
    let readme = include_str!("../../README.md");
    for name in json["nodes"][0].as_object().unwrap().keys().chain(json.as_object().unwrap().keys()) {
        assert!(readme.contains(&format!("`{name}`")), "{name} is not documented");
    }
}

#[test]
fn what_makes_no_sense_is_64() {
    for line in ["status", "status job", "status --node redis://127.0.0.1:1 --timeout 0 job"] {
        assert_eq!(outcome(redlock(line)).code, Some(64), "{line}");
    }
    let mut command = redlock("status --node redis://127.0.0.1:1");
    command.arg("");
    assert_eq!(outcome(command).code, Some(64));
}

#[test]
fn real_servers_are_read() {
    for program in programs() {
        let servers: Vec<RealServer> = (0..3).map(|_| RealServer::start(program, &[])).collect();
        let urls: Vec<String> = servers.iter().map(|server| format!("redis://{}", server.addr())).collect();
        let ask = || {
            let mut command = redlock("status --json job");
            command.env("REDLOCK_NODES", urls.join(","));
            let outcome = outcome(command);
            assert!(!outcome.stdout.contains(TOKEN), "{outcome:?}");
            (outcome.code, serde_json::from_str::<Value>(&outcome.stdout).unwrap())
        };
        assert_eq!(ask().1["state"], "free");
        let value = format!("{TOKEN}:ann");
        for server in &servers[..2] {
            let said = server.ask(&["SET", "job", &value, "PX", "60000"]);
            assert_eq!(said, Said::Line("+OK".into()));
        }
        assert_eq!(servers[2].ask(&["RPUSH", "job", "a"]), Said::Line(":1".into()));
        assert_eq!(
            servers[0].ask(&["INCRBY", "job:fence", "1800000000000000007"]),
            Said::Line(":1800000000000000007".into())
        );
        let (code, json) = ask();
        assert_eq!(
            (code, json["state"].as_str(), json["holder"].as_str()),
            (Some(0), Some("held"), Some("ann"))
        );
        assert_eq!(json["fence"], "1800000000000000007");
        assert_eq!(json["nodes"][2]["state"], "not-a-string");
    }
}
