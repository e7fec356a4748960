//! Delayed restart: R25, and what R22 and R23 say of it.

use crate::bench::*;
use redlock_core::{
    AcquireErrorKind, ConfigBuilder, Event, ExtendErrorKind, InvalidArgument, Node, NodeFault, NodeOutcome,
    NodeState,
};

/// Locks live for 4.5 s at most: a node votes when it has been up for 6 s.
fn guarded(config: ConfigBuilder) -> ConfigBuilder {
    config.restart_guard(ms(4_500)).retry_delay(ms(100), ms(100))
}

/// Three nodes that have been up for long; the last one restarts empty at 10 s, connected again at once.
fn after_a_restart() -> Bench {
    let mut bench = Bench::with(3, guarded);
    bench.at(10_000);
    bench.cut(2);
    bench.restarted(2);
    bench.up_for(2, 0);
    bench.up(2);
    bench
}

fn quarantined(bench: &Bench, index: u8) -> Option<u64> {
    match bench.client.node(node(index)).unwrap().state {
        NodeState::Quarantined { left } => Some(left.as_millis().try_into().unwrap()),
        NodeState::Ready => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn r25_the_restart_race_without_the_guard_and_with_it() {
    for guard in [false, true] {
        let mut bench = Bench::with(3, |config| if guard { guarded(config) } else { config });
        // Somebody holds the lock on nodes 1 and 2. Node 2 forgets it, and node 0 never had it.
        bench.at(10_000);
        bench.cut(2);
        bench.restarted(2);
        bench.up_for(2, 0);
        bench.up(2);
        bench.forget();
        let request = bench.request("orders").try_once().ttl(ms(4_000));
        bench.ask(request);
        assert_eq!(bench.sent_to_all(), ["SET orders T1 NX PX 4000"], "it is asked all the same");
        bench.reply(0, OK);
        bench.reply(1, NIL);
        bench.reply(2, OK);
        if guard {
            assert!(bench.sent(2).contains(&"DELEX orders IFEQ T1".to_string()), "and cleaned up");
            let error = bench.acquire_failed_after_asking(1, b":1200\r\n");
            assert_eq!(error.kind, AcquireErrorKind::Mixed);
            let fault = NodeFault::Quarantined { left: ms(6_000) };
            assert_eq!(error.nodes[2].outcome, NodeOutcome::Failed(fault));
            assert!(error.to_string().contains("gives no vote for 6.0s yet"), "{error}");
        } else {
            assert!(matches!(bench.one(), Event::Acquired { .. }), "two owners");
        }
    }
}

#[test]
fn r25_its_votes_count_again_when_it_has_been_up_for_long_enough() {
    let mut bench = after_a_restart();
    let notices = bench.notices();
    assert!(notices.contains(&Event::NodeQuarantined { node: node(2), left: ms(6_000) }), "{notices:?}");
    assert_eq!(quarantined(&bench, 2), Some(6_000));
    bench.at(15_999);
    assert_eq!(quarantined(&bench, 2), Some(1));
    bench.at(16_000);
    assert_eq!(quarantined(&bench, 2), None);
    assert_eq!(bench.notices(), [Event::QuarantineOver { node: node(2) }]);
    bench.forget();
    let request = bench.request("orders").try_once();
    bench.ask(request);
    bench.reply(1, OK);
    bench.reply(2, OK);
    assert!(matches!(bench.one(), Event::Acquired { .. }));
}

#[test]
fn r25_a_vote_asked_for_in_quarantine_does_not_count_though_it_comes_later() {
    let mut bench = after_a_restart();
    bench.at(15_900);
    bench.forget();
    let request = bench.request("orders").try_once().ttl(ms(4_500));
    bench.ask(request);
    bench.at(16_050);
    bench.reply(2, OK);
    bench.reply(1, OK);
    bench.nothing_told();
    bench.reply(0, OK);
    assert!(matches!(bench.one(), Event::Acquired { .. }));
}

#[test]
fn r25_an_extension_that_it_confirms_counts() {
    let mut bench = after_a_restart();
    bench.forget();
    let request = bench.request("orders").ttl(ms(4_000));
    let lock = bench.hold_by(request);
    bench.at(11_000);
    bench.extend(lock, 4_000);
    bench.forget();
    bench.reply(2, OK);
    bench.nothing_told();
    bench.reply(0, OK);
    bench.extended();
}

#[test]
fn r15_r25_a_quarantined_node_is_not_repaired() {
    let mut bench = Bench::with(3, guarded);
    bench.at(9_000);
    let request = bench.request("orders").ttl(ms(4_000));
    let lock = bench.hold_by(request);
    bench.at(10_000);
    bench.cut(2);
    bench.restarted(2);
    bench.up_for(2, 0);
    bench.up(2);
    bench.extend(lock, 4_000);
    bench.forget();
    bench.reply(2, NIL);
    bench.reply(0, OK);
    bench.reply(1, OK);
    bench.extended();
    assert!(bench.sent(2).is_empty(), "no SET on it");
}

#[test]
fn r25_a_fleet_that_just_started_says_so() {
    let mut bench = Bench::cold_with(3, guarded);
    for node in 0..3 {
        bench.up_for(node, 2);
        bench.up(node);
    }
    bench.forget();
    let request = bench.request("orders").try_once();
    bench.ask(request);
    bench.forget();
    bench.reply_all(OK);
    let error = bench.acquire_failed();
    assert_eq!(error.kind, AcquireErrorKind::NoQuorum);
    assert_eq!(error.to_string().matches("started recently").count(), 2, "certain after two: {error}");
    // It is waited for: no fault that only an operator can mend.
    let request = bench.request("orders").wait(ms(10_000));
    bench.ask(request);
    while bench.now < at(4_200) {
        for node in 0..3 {
            while let Some(command) = bench.next_command(node) {
                bench.reply(node, if command.starts_with("SET") { OK } else { ONE });
            }
        }
        bench.until(bench.client.poll_timeout().unwrap().at);
    }
    assert!(matches!(bench.told()[0], Event::Acquired { .. }), "up for 2 s at 0, for 6 s at 4 000 ms");
}

#[test]
fn r25_a_ttl_above_the_guard_is_refused() {
    let mut bench = Bench::with(3, guarded);
    let request = bench.request("orders").ttl(ms(4_501));
    bench.ask(request);
    let error = bench.acquire_failed();
    assert!(
        matches!(error.kind, AcquireErrorKind::Invalid(InvalidArgument::TtlAboveRestartGuard { .. })),
        "{error}"
    );
    let request = bench.request("orders").ttl(ms(4_500));
    let lock = bench.hold_by(request);
    let refused = bench.client.extend(lock, ms(4_501), bench.now).unwrap_err();
    assert!(
        matches!(
            refused,
            redlock_core::ExtendRefused::Because(ExtendErrorKind::Invalid(
                InvalidArgument::TtlAboveRestartGuard { .. }
            ))
        ),
        "{refused:?}"
    );
}

#[test]
fn r25_durable_nodes_are_exempt() {
    let nodes = (0..3).map(|index| Node::new(format!("node{index}")).durable(index == 2));
    let config = redlock_core::Config::builder().nodes(nodes);
    let mut bench = Bench::over(guarded(config).build().unwrap());
    for node in 0..3 {
        bench.up_for(node, 0);
        bench.up(node);
    }
    assert_eq!(quarantined(&bench, 2), None);
    assert_eq!(quarantined(&bench, 1), Some(6_000));
}

#[test]
fn r22_r25_a_node_that_does_not_say_who_it_is_gives_no_vote() {
    let mut bench = Bench::cold_with(3, guarded);
    bench.shy(2);
    for node in 0..3 {
        bench.up(node);
    }
    assert_eq!(bench.client.node(node(2)).unwrap().state, NodeState::Unusable(NodeFault::UnknownIdentity));
    bench.at(60_000);
    bench.forget();
    let request = bench.request("orders").try_once();
    bench.ask(request);
    bench.forget();
    bench.reply(2, OK);
    bench.reply(1, OK);
    bench.nothing_told();
    bench.reply(0, NIL);
    let error = bench.acquire_failed_after_asking(0, b":-2\r\n");
    assert!(error.to_string().contains("+info"), "{error}");
}

#[test]
fn r23_r25_a_server_that_loads_on_a_live_connection_counts_as_just_started() {
    let mut bench = Bench::with(3, guarded);
    bench.at(10_000);
    let request = bench.request("orders").try_once();
    bench.ask(request);
    bench.forget();
    bench.reply(2, b"-LOADING Redis is loading the dataset in memory\r\n");
    bench.up_for(2, 100);
    bench.up(2);
    assert_eq!(quarantined(&bench, 2), Some(6_000), "though it is the same run, up for long");
}

#[test]
fn r25_an_uptime_beyond_the_silence_of_the_old_run_is_not_believed() {
    let mut bench = Bench::with(3, guarded);
    bench.at(10_000);
    bench.cut(2);
    bench.restarted(2);
    bench.up_for(2, 3_000);
    bench.up(2);
    assert_eq!(quarantined(&bench, 2), Some(6_000), "another server, or a clock that was set");
}
