//! `redlock bench`: figures of locks that are held, or none.

use crate::support::{Fleet, outcome, redlock};

#[test]
fn the_figures_are_printed_and_nothing_is_left() {
    let fleet = Fleet::new();
    let mut command = redlock("bench --duration 300ms --threads 4");
    command.env("REDLOCK_NODES", fleet.urls());
    let said = outcome(command);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    for word in [
        "cycles of acquire and release over 5 nodes by 4 threads",
        "p99.9",
        "acquire",
        "release",
        "below",
        "#",
    ] {
        assert!(said.stdout.contains(word), "{word}: {}", said.stdout);
    }
    let keys = fleet.nodes.iter().map(|node| node.with(|server, now| server.keys(now)));
    assert!(keys.into_iter().all(|keys| keys.is_empty()));
}

#[test]
fn json_has_stable_names() {
    let fleet = Fleet::new();
    let mut command = redlock("bench --duration 200ms --fenced --json");
    command.env("REDLOCK_NODES", fleet.urls());
    let said = outcome(command);
    assert_eq!(said.code, Some(0), "{said:?}");
    let report: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    let names = [
        "nodes",
        "threads",
        "fenced",
        "cycles",
        "elapsed_ms",
        "cycles_per_second",
        "acquire_us",
        "release_us",
        "cycle_us",
    ];
    assert_eq!(report.as_object().unwrap().len(), names.len());
    for name in names {
        assert!(report.get(name).is_some(), "{name}");
    }
    for name in ["p50", "p99", "p999", "max"] {
        assert!(report["cycle_us"][name].as_u64().unwrap() > 0, "{name}");
    }
    assert_eq!(report["fenced"], true);
    for node in &fleet.nodes {
        let lasting = node.with(|server, now| {
            let keys = server.keys(now);
            keys.into_iter().filter(|key| server.pttl(key, now).is_none()).collect::<Vec<_>>()
        });
        assert!(lasting.is_empty(), "counters that stay: {lasting:?}");
    }
}

#[test]
fn it_reports_nothing_where_locks_fail() {
    let fleet = Fleet::new();
    for node in &fleet.nodes[..3] {
        node.with(|server, _| server.set_condition(Some(redlock_core::sim::Condition::Oom)));
    }
    let mut command = redlock("bench --duration 200ms");
    command.env("REDLOCK_NODES", fleet.urls());
    let said = outcome(command);
    assert_eq!((said.code, said.stdout.as_str()), (Some(69), ""), "{said:?}");
    assert!(said.stderr.contains("cycles failed") && said.stderr.contains("OOM"), "{said:?}");
    let mut command = redlock("bench --duration 100ms --ttl 1ms");
    command.env("REDLOCK_NODES", fleet.urls());
    let said = outcome(command);
    assert_eq!(said.code, Some(64));
    assert!(said.stderr.contains("--ttl: "), "{}", said.stderr);
}
