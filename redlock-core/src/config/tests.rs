#![allow(clippy::unwrap_used, reason = "tests")]

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use super::{Config, ConfigBuilder, ConfigError, Limits, NameFault, Node};
use crate::address::{Address, AddressErrorKind};
use crate::request::InvalidArgument;
use crate::time::Drift;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn three() -> ConfigBuilder {
    Config::builder().nodes(["a", "b", "c"])
}

fn refused(builder: ConfigBuilder) -> ConfigError {
    builder.build().map(|good| panic!("{good:?}")).unwrap_err()
}

#[test]
fn defaults_are_the_documented_ones() {
    let config = three().build().unwrap();
    assert_eq!((config.nodes().len(), config.node_count(), config.quorum()), (3, 3, 2));
    assert_eq!((config.client_name(), config.key_prefix().len()), (None, 0));
    assert_eq!(config.drift(), Drift::DEFAULT);
    assert_eq!(config.retry_delay(), (ms(50), ms(250)));
    assert_eq!((config.connect_timeout(), config.handshake_timeout()), (ms(5_000), ms(2_000)));
    assert_eq!((config.default_ttl(), config.default_wait()), (ms(10_000), ms(10_000)));
    assert_eq!(config.restart_guard(), None);
}

#[test]
fn the_node_timeout_is_a_twentieth_of_the_ttl_within_bounds() {
    let config = three().build().unwrap();
    for (ttl, want) in [(3, 10), (200, 10), (400, 20), (10_000, 500), (20_000, 1_000), (86_400_000, 1_000)] {
        assert_eq!(config.node_timeout_for(ms(ttl)), ms(want), "{ttl}");
    }
    let config = three().node_timeout(ms(7)).build().unwrap();
    assert_eq!(config.node_timeout_for(ms(10_000)), ms(7));
}

#[test]
fn r3_the_quorum_is_the_majority_of_the_configured_nodes() {
    for (nodes, quorum) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (62, 32), (63, 32)] {
        let names = (0..nodes).map(|index| format!("n{index}"));
        assert_eq!(Config::builder().nodes(names).build().unwrap().quorum(), quorum, "{nodes}");
    }
    assert_eq!(three().unsafe_quorum(1).build().unwrap().quorum(), 1);
    assert_eq!(refused(three().unsafe_quorum(0)), ConfigError::Quorum { quorum: 0, nodes: 3 });
    assert_eq!(refused(three().unsafe_quorum(4)), ConfigError::Quorum { quorum: 4, nodes: 3 });
}

#[test]
fn nodes_are_taken_from_whatever_names_them() {
    let owned: Vec<String> = ["b1", "b2"].map(String::from).into();
    let address = Address::parse("redis://u:pw@d").unwrap();
    let node = Node::new("e").durable(true);
    let config = Config::builder()
        .nodes(["a"])
        .nodes(&owned)
        .nodes(["c1", "c2"].iter())
        .nodes([&address])
        .node(address.with_database(3).with_credentials("x", "y"))
        .node(&node);
    // The same address twice is told, with both as they were given.
    let ConfigError::DuplicateNode { first, second } = refused(config.clone()) else { panic!() };
    assert_eq!((first.as_str(), second.as_str()), ("redis://u@d:6379", "redis://x@d:6379/3"));
    let config = Config::builder().nodes(owned).node(String::from("c")).node(node).build().unwrap();
    let shown: Vec<_> =
        config.nodes().iter().map(|node| (node.address().to_string(), node.is_durable())).collect();
    let want = [("b1", false), ("b2", false), ("c", false), ("e", true)];
    assert_eq!(shown, want.map(|(host, durable)| (format!("redis://{host}:6379"), durable)));
}

#[test]
fn r12_zero_nodes_are_refused() {
    assert_eq!(refused(Config::builder()), ConfigError::NoNodes);
    assert_eq!(refused(Config::builder().nodes::<&str>([])), ConfigError::NoNodes);
    let many = (0..64).map(|index| format!("n{index}"));
    assert_eq!(refused(Config::builder().nodes(many)), ConfigError::TooManyNodes { nodes: 64, most: 63 });
}

#[test]
fn r12_the_same_address_twice_is_refused_however_it_is_written() {
    for (first, second) in [
        ("redis://h", "redis://h"),
        ("redis://h", "redis://H"),
        ("redis://h", "redis://h:6379"),
        ("redis://u:p@h", "redis://v:q@h"),
        ("redis://h/0", "redis://h/1"),
        ("redis://h", "rediss://h"),
        ("unix:///r.sock", "unix:///r.sock?db=1"),
    ] {
        let error = refused(Config::builder().nodes([first, "other", second]));
        let show = |text: &str| Address::parse(text).unwrap().to_string();
        assert_eq!(error, ConfigError::DuplicateNode { first: show(first), second: show(second) });
        let text = error.to_string();
        assert!(text.contains(&show(first)) && text.contains(&show(second)), "{text}");
    }
    assert!(Config::builder().nodes(["redis://h", "redis://h:6380"]).build().is_ok());
}

#[test]
fn r12_a_client_name_that_a_server_would_refuse_is_refused() {
    for (name, reason) in [
        ("", NameFault::Empty),
        ("two words", NameFault::Character { found: ' ' }),
        ("line\n", NameFault::Character { found: '\n' }),
        ("\u{7f}", NameFault::Character { found: '\u{7f}' }),
        ("größe", NameFault::Character { found: 'ö' }),
        (&"x".repeat(65), NameFault::TooLong { len: 65, most: 64 }),
    ] {
        assert_eq!(refused(three().client_name(name)), ConfigError::ClientName { reason }, "{name}");
    }
    for name in ["x", "!~:,{}", &"x".repeat(64)] {
        assert_eq!(three().client_name(name).build().unwrap().client_name(), Some(name));
    }
}

#[test]
fn r12_a_node_timeout_of_zero_is_refused() {
    assert_eq!(refused(three().node_timeout(Duration::ZERO)), ConfigError::NodeTimeout);
    assert!(three().node_timeout(Duration::MAX).build().is_ok());
}

#[test]
fn addresses_that_do_not_parse_are_told_at_build_with_their_number() {
    let error = refused(Config::builder().nodes(["a", "redis://u:hunter2@b:x"]));
    let ConfigError::Address(inner) = &error else { panic!("{error:?}") };
    assert_eq!((inner.entry(), inner.kind()), (Some(1), &AddressErrorKind::Port));
    assert_eq!(error.to_string(), "address 2 `redis://***@b:***`: the port is not a number from 1 to 65535");
    let address = Address::parse("a").unwrap().with_database(u32::MAX);
    assert!(matches!(refused(Config::builder().node(address)), ConfigError::Address(_)));
}

#[test]
fn r9_retry_delays_are_in_order_and_not_below_a_millisecond() {
    for (min, max) in [(ms(0), ms(10)), (Duration::from_micros(999), ms(10)), (ms(10), ms(9))] {
        assert_eq!(refused(three().retry_delay(min, max)), ConfigError::RetryDelay { min, max });
    }
    assert_eq!(three().retry_delay(ms(1), ms(1)).build().unwrap().retry_delay(), (ms(1), ms(1)));
}

#[test]
fn timeouts_fit_into_each_other() {
    assert_eq!(refused(three().connect_timeout(Duration::ZERO)), ConfigError::ConnectTimeout);
    for handshake_timeout in [Duration::ZERO, ms(5_001)] {
        let error = ConfigError::HandshakeTimeout { handshake_timeout, connect_timeout: ms(5_000) };
        assert_eq!(refused(three().handshake_timeout(handshake_timeout)), error);
    }
    assert_eq!(three().connect_timeout(ms(300)).build().unwrap().handshake_timeout(), ms(300));
    let config = three().connect_timeout(ms(30_000)).handshake_timeout(ms(9_000)).build().unwrap();
    assert_eq!(config.handshake_timeout(), ms(9_000));
}

#[test]
fn r6_a_drift_that_leaves_nothing_is_refused() {
    let drift = Drift::from_parts_per_million(1_000_000);
    assert_eq!(refused(three().drift(drift)), ConfigError::Drift { drift });
    // Below 100 %, but nothing is left of the default ttl.
    let nearly = three().drift(Drift::from_parts_per_million(999_999));
    assert!(matches!(refused(nearly), ConfigError::DefaultTtl(InvalidArgument::TtlTooShort { .. })));
}

#[test]
fn r25_the_restart_guard_bounds_the_default_ttl() {
    let config = three().restart_guard(ms(60_000)).build().unwrap();
    assert_eq!((config.restart_guard(), config.default_ttl()), (Some(ms(60_000)), ms(10_000)));
    assert_eq!(three().restart_guard(ms(5_000)).build().unwrap().default_ttl(), ms(5_000));
    let error = refused(three().restart_guard(ms(5_000)).default_ttl(ms(5_001)));
    let inner = InvalidArgument::TtlAboveRestartGuard { ttl: ms(5_001), max_ttl: ms(5_000) };
    assert_eq!(error, ConfigError::DefaultTtl(inner));
    for max_ttl in [Duration::ZERO, ms(2), Duration::MAX] {
        assert!(
            matches!(refused(three().restart_guard(max_ttl)), ConfigError::RestartGuard(_)),
            "{max_ttl:?}"
        );
    }
}

#[test]
fn limits_and_prefixes_that_stop_everything_are_refused() {
    for (name, least, change) in [
        ("operations", 1, (|limits| limits.operations = 0) as fn(&mut Limits)),
        ("locks", 1, |limits| limits.locks = 0),
        ("in_flight_per_node", 16, |limits| limits.in_flight_per_node = 15),
        ("cleanups", 1, |limits| limits.cleanups = 0),
        ("queued_events", 16, |limits| limits.queued_events = 15),
    ] {
        let mut limits = Limits::default();
        change(&mut limits);
        let ConfigError::Limit { name: told, limit, least: told_least } = refused(three().limits(limits))
        else {
            panic!()
        };
        assert_eq!((told, told_least, limit), (name, least, least - 1));
    }
    let error = refused(three().key_prefix(alloc::vec![b'x'; 65_536]));
    assert_eq!(error, ConfigError::KeyPrefixTooLong { len: 65_536, most: 65_535 });
}

#[test]
fn r26_no_debug_shows_a_password() {
    let builder = Config::builder().nodes(["redis://u:hunter2@a", "unix://:hunter2@/b"]);
    let text = format!(
        "{builder:?} {:?} {:?}",
        builder.clone().build(),
        builder.clone().node("redis://u:hunter2@").build()
    );
    assert!(text.contains("***") && !text.contains("hunter2"), "{text}");
}

#[test]
fn every_error_says_what_to_do() {
    for (error, want) in [
        (
            refused(Config::builder()),
            "no nodes; give the address of at least one, for example redis://localhost:6379",
        ),
        (
            refused(three().client_name("a b")),
            "client name: servers refuse ' '; use printable ASCII without spaces, for example `billing-1`",
        ),
        (
            refused(three().retry_delay(ms(9), ms(8))),
            "a retry delay from 9ms to 8ms is not possible: at least 1 ms, the shorter one first; 50ms to 250ms is usual",
        ),
        (
            refused(three().default_ttl(ms(1))),
            "default ttl: a ttl of 1ms leaves nothing after the drift; at least 3ms, seconds are usual",
        ),
    ] {
        assert_eq!(error.to_string(), want);
    }
}
