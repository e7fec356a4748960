//! `connect`, and how nodes stand: R27.

use crate::bench::*;
use redlock_core::{ConnectError, DisconnectReason, Event, LostReason, NodeFault, NodeOutcome, NodeState};

fn connect(bench: &mut Bench, millis: u64) {
    bench.client.connect(ms(millis), bench.now);
    bench.drain();
}

fn refuse(bench: &mut Bench, node: u8) {
    bench.cut_for(node, DisconnectReason::Refused(format!("10.0.0.{node}:6379: connection refused")));
}

fn failed(bench: &mut Bench) -> ConnectError {
    match bench.one() {
        Event::ConnectFailed { error, .. } => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn r27_resolves_as_soon_as_a_quorum_finished_its_handshake_the_others_go_on() {
    let mut bench = Bench::cold(5);
    connect(&mut bench, 5_000);
    bench.up(4);
    bench.up(0);
    bench.nothing_told();
    bench.at(30);
    bench.accept(2);
    bench.nothing_told();
    bench.greet(2, REDIS_8_4);
    assert!(matches!(bench.one(), Event::Connected { .. }));
    bench.at(100);
    bench.up(1);
    bench.up(3);
    bench.nothing_told();
    assert!((0..5).all(|index| bench.client.node(node(index)).unwrap().state == NodeState::Ready));
}

#[test]
fn r27_asked_when_a_quorum_is_ready_it_is_answered_at_once() {
    let mut bench = Bench::new(3);
    connect(&mut bench, 5_000);
    assert!(matches!(bench.one(), Event::Connected { .. }));
}

#[test]
fn r27_fails_as_soon_as_no_quorum_can_be_had_naming_each_reason() {
    let mut bench = Bench::cold(3);
    connect(&mut bench, 5_000);
    bench.up(0);
    refuse(&mut bench, 1);
    bench.nothing_told();
    bench.cut_for(2, DisconnectReason::Unresolvable("no such host".into()));
    let error = failed(&mut bench);
    assert_eq!((error.ready, error.needed, error.timed_out, error.closed), (1, 2, false, false));
    assert_eq!(error.nodes.len(), 2, "those that are not ready");
    let text = error.to_string();
    for part in
        ["1 of the 2 needed", "node1:6379", "10.0.0.1:6379: connection refused", "node2:6379", "no such host"]
    {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
}

#[test]
fn r27_a_fatal_answer_is_final() {
    let fatal: [&[&[u8]]; 3] = [
        &[b"-NOAUTH HELLO must be called with the client already authenticated\r\n"],
        &[b"HTTP/1.1 400 Bad Request\r\n"],
        &[b"%1\r\n$4\r\nmode\r\n$7\r\ncluster\r\n", b"$0\r\n\r\n+PONG\r\n"],
    ];
    for answers in fatal {
        let mut bench = Bench::cold(1);
        connect(&mut bench, 5_000);
        bench.accept(0);
        answers.iter().for_each(|answer| bench.reply(0, answer));
        let error = failed(&mut bench);
        assert!(!error.timed_out && bench.now == at(0), "{error}");
    }
}

#[test]
fn r27_silence_is_not_final_and_ends_with_the_connect_timeout() {
    let mut bench = Bench::cold(3);
    connect(&mut bench, 5_000);
    bench.up(0);
    refuse(&mut bench, 1);
    bench.accept(2); // and says nothing
    bench.at(4_999);
    bench.nothing_told();
    bench.at(5_000);
    let error = failed(&mut bench);
    assert!(error.timed_out);
    assert_eq!(error.elapsed, ms(5_000));
    let silent = &error.nodes[1].outcome;
    assert!(matches!(silent, NodeOutcome::Unsent(NodeFault::HandshakeTimeout(_))), "{silent:?}");
}

#[test]
fn r27_what_passes_is_waited_for() {
    // Loading, cut, a network error: none of them is final.
    let mut bench = Bench::cold(3);
    connect(&mut bench, 5_000);
    bench.accept(0);
    bench.reply(0, b"-LOADING Redis is loading the dataset in memory\r\n");
    bench.accept(1);
    bench.cut(1);
    bench.cut_for(2, DisconnectReason::Io("host unreachable".into()));
    bench.nothing_told();
    for node in 0..2 {
        bench.until_wanted(node);
        bench.up(node);
    }
    assert!(matches!(bench.one(), Event::Connected { .. }));
    assert!(bench.now < at(1_000));
}

#[test]
fn r27_a_node_that_was_refused_before_and_is_ready_now_counts() {
    let mut bench = Bench::cold(3);
    refuse(&mut bench, 0);
    connect(&mut bench, 5_000);
    bench.up(1);
    bench.until_wanted(0);
    bench.up(0);
    assert!(matches!(bench.one(), Event::Connected { .. }));
}

#[test]
fn r27_lazily_means_not_to_ask() {
    let mut bench = Bench::cold(3);
    assert!((0..3).all(|node| bench.is_wanted(node)), "they are connected all the same");
    (0..3).for_each(|node| refuse(&mut bench, node));
    bench.nothing_told();
}

#[test]
fn r27_every_nodes_state_can_be_seen_at_any_time() {
    let mut bench = Bench::cold(2);
    let state = |bench: &Bench, index| bench.client.node(node(index)).unwrap();
    assert_eq!(state(&bench, 0).state, NodeState::Connecting(None));
    assert_eq!(&*state(&bench, 0).address, "redis://node0:6379");
    bench.up(0);
    let up = state(&bench, 0);
    assert_eq!((up.state, up.server.as_deref(), up.in_flight), (NodeState::Ready, Some("redis 8.4.0"), 0));
    assert_eq!(up.run_id.unwrap().len(), 40);
    refuse(&mut bench, 1);
    assert!(
        matches!(state(&bench, 1).state, NodeState::Down { fault: NodeFault::Refused(_), retry_at } if retry_at > at(0))
    );
    bench.until_wanted(1);
    assert!(matches!(state(&bench, 1).state, NodeState::Connecting(Some(NodeFault::Refused(_)))));
    assert!(bench.client.node(node(2)).is_none());
    let mut bench = Bench::new(2);
    bench.try_acquire("orders");
    assert_eq!(state(&bench, 0).in_flight, 1);
}

#[test]
fn r27_b39_the_same_reason_is_said_once() {
    let mut bench = Bench::cold(1);
    for _ in 0..20 {
        bench.until_wanted(0);
        refuse(&mut bench, 0);
    }
    assert_eq!(bench.notices().len(), 1);
    bench.until_wanted(0);
    bench.cut_for(0, DisconnectReason::Io("host unreachable".into()));
    assert_eq!(bench.notices().len(), 1);
}

fn is_duplicate(bench: &Bench, index: u8, of: &str) -> bool {
    match bench.client.node(node(index)).unwrap().state {
        NodeState::Down { fault: NodeFault::Duplicate { of: first }, .. } => first.contains(of),
        _ => false,
    }
}

#[test]
fn r24_the_second_name_of_a_server_is_refused_with_both_names() {
    let mut bench = Bench::cold(3);
    bench.same_process(2, 0);
    bench.up(0);
    bench.up(2);
    assert!(is_duplicate(&bench, 2, "node0"), "the later one, not the one that was there first");
    assert_eq!(bench.client.node(node(0)).unwrap().state, NodeState::Ready);
    assert_eq!(bench.sent(2), Vec::<String>::new());
    connect(&mut bench, 5_000);
    bench.nothing_told();
    bench.up(1);
    assert!(matches!(bench.one(), Event::Connected { .. }));
}

#[test]
fn r24_the_earlier_name_counts_even_if_it_is_heard_later() {
    let mut bench = Bench::cold(3);
    bench.same_process(2, 0);
    bench.up(2);
    assert_eq!(bench.client.node(node(2)).unwrap().state, NodeState::Ready);
    bench.up(0);
    assert!(is_duplicate(&bench, 2, "node0"));
    assert_eq!(bench.client.node(node(0)).unwrap().state, NodeState::Ready);
}

#[test]
fn r24_found_after_the_grant_its_support_leaves_the_lock_at_once() {
    let mut bench = Bench::cold(3);
    bench.same_process(2, 0);
    bench.up(1);
    bench.up(2);
    bench.try_acquire("a");
    bench.reply(1, OK);
    bench.reply(2, OK);
    assert!(matches!(bench.one(), Event::Acquired { .. }));
    // The first name is heard only now: the second one's vote was the first one's.
    bench.up(0);
    assert!(is_duplicate(&bench, 2, "node0"));
    assert!(matches!(bench.one(), Event::Lost { reason: LostReason::DuplicateNode, .. }));
}

#[test]
fn r24_found_during_an_attempt_its_vote_leaves_it() {
    let mut bench = Bench::cold(3);
    bench.same_process(2, 0);
    bench.up(1);
    bench.up(2);
    bench.try_acquire("a");
    bench.reply(2, OK);
    bench.up(0);
    bench.reply(1, OK);
    bench.nothing_told();
    bench.reply(0, b"_\r\n");
    bench.at(20_000);
    let told = bench.told();
    assert!(told.iter().all(|event| !matches!(event, Event::Acquired { .. })), "{told:?}");
}
