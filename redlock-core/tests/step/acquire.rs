//! Attempts and their decision: R1–R6, R8, R8a, R8b.

use crate::bench::*;
use redlock_core::machine::{Answer, Claim, Effect, Quorum, Reach, Terms, Verb};
use redlock_core::{
    AcquireErrorKind, AcquireRequest, DisconnectReason, Drift, Event, NodeFault, NodeOutcome, NodeVote,
    RoundLoss,
};
use std::time::Duration;

#[test]
fn r1_b01_the_start_is_before_the_first_byte_and_every_deadline_counts_from_it() {
    let mut bench = Bench::new(3);
    bench.at(100);
    let request = bench.request("orders");
    // Asked for at 100, handed out at 130, answered at 300: it counts from 100.
    bench.client.acquire(request, bench.now);
    bench.stopped_until(130);
    bench.drain();
    bench.at(300);
    bench.reply(0, OK);
    bench.reply(1, OK);
    let (lock, deadline) = bench.acquired();
    assert_eq!(deadline, 100 + 10_000 - 102);
    assert_eq!(bench.client.lock(lock).unwrap().start(), at(100));
}

#[test]
fn r1_b14_of_several_attempts_the_winning_one_counts() {
    let mut bench = Bench::with(3, |config| config.retry_delay(ms(200), ms(200)));
    let request = bench.request("orders").ttl(ms(1_000));
    bench.ask(request);
    for round in 0..6 {
        bench.at(200 * round);
        assert!(bench.sent(0).last().unwrap().starts_with("SET orders"), "round {round}");
        bench.reply_all(NIL);
        bench.reply_all(ZERO);
    }
    bench.nothing_told();
    bench.at(1_200);
    bench.at(1_210);
    bench.reply_all(OK);
    let (_, deadline) = bench.acquired();
    assert_eq!(deadline, 1_200 + 1_000 - 12);
}

#[test]
fn r2_the_set_goes_to_all_nodes_at_once() {
    let mut bench = Bench::new(5);
    bench.try_acquire("orders");
    assert_eq!(bench.sent_to_all(), ["SET orders T1 NX PX 10000"]);
}

#[test]
fn r2_b01_the_ttl_on_the_wire_is_in_milliseconds() {
    let mut bench = Bench::new(3);
    let request = bench.request("orders").ttl(ms(1_500));
    bench.ask(request);
    assert_eq!(bench.sent_to_all(), ["SET orders T1 NX PX 1500"]);
    bench.reply_all(OK);
    assert_eq!(bench.acquired().1, 1_500 - 17);
}

#[test]
fn r2_nodes_that_are_late_get_their_set_after_the_majority_too() {
    let mut bench = Bench::cold(5);
    (0..4).for_each(|node| bench.up(node));
    bench.forget();
    bench.try_acquire("orders");
    (0..3).for_each(|node| bench.reply(node, OK));
    let (lock, deadline) = bench.acquired();
    assert_eq!(bench.sent(3), ["SET orders T1 NX PX 10000"], "sent, though not answered yet");
    bench.at(100);
    bench.up(4);
    assert_eq!(bench.sent(4), ["SET orders T1 NX PX 10000"], "it was connecting when the lock was granted");
    bench.reply(4, OK);
    let votes: Vec<_> = bench.client.lock(lock).unwrap().votes().map(|(_, vote)| vote).collect();
    assert_eq!(votes[4], NodeVote::Confirmed { until: at(deadline) });
    assert_eq!(votes[3], NodeVote::Silent);
}

#[test]
fn r3_b08_quorum_counts_the_configured_nodes() {
    for (nodes, quorum) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4), (7, 4)] {
        let mut bench = Bench::new(nodes);
        bench.try_acquire("orders");
        for node in 0..quorum {
            bench.nothing_told();
            bench.reply(node, OK);
        }
        bench.acquired();
    }
}

#[test]
fn r3_b08_names_that_do_not_resolve_leave_the_quorum_as_it_is() {
    let mut bench = Bench::cold(5);
    bench.up(0);
    bench.up(1);
    for node in 2..5 {
        bench.cut_for(node, DisconnectReason::Unresolvable("no such host".into()));
    }
    bench.forget();
    bench.try_acquire("orders");
    let error = bench.acquire_failed();
    assert_eq!(error.kind, AcquireErrorKind::NoQuorum);
    let unresolvable = NodeOutcome::Unsent(NodeFault::Unresolvable("no such host".into()));
    assert_eq!(error.nodes[4].outcome, unresolvable);
}

#[test]
fn r3_b08_two_halves_of_four_nodes_hold_nothing_and_clean_up() {
    let (mut a, mut b) = (Bench::new(4), Bench::new(4));
    for (bench, mine) in [(&mut a, [0, 1]), (&mut b, [2, 3])] {
        bench.try_acquire("orders");
        for node in 0..4 {
            bench.reply(node, if mine.contains(&node) { OK } else { NIL });
        }
        for node in 0..4 {
            assert_eq!(bench.sent(node)[..2], ["SET orders T1 NX PX 10000", "DELEX orders IFEQ T1"]);
        }
        bench.at(500);
        assert_eq!(bench.acquire_failed().kind, AcquireErrorKind::Contended);
    }
}

#[test]
fn r3_b04_only_the_exact_reply_is_a_vote() {
    let wrong: [&[u8]; 8] =
        [b"+QUEUED\r\n", b"+ok\r\n", b"$2\r\nOK\r\n", b":1\r\n", b":0\r\n", b"*0\r\n", b"#t\r\n", b"%0\r\n"];
    for reply in wrong {
        let mut bench = Bench::new(3);
        bench.try_acquire("orders");
        bench.reply(0, OK);
        bench.reply(1, reply);
        bench.nothing_told();
        assert!(!bench.is_connected(1), "what comes next could be anything's answer: {reply:?}");
        bench.reply(2, NIL);
        let error = bench.acquire_failed_after_asking(2, b":9000\r\n");
        assert_eq!(error.kind, AcquireErrorKind::Mixed, "{reply:?}");
        let said = &error.nodes[1].outcome;
        assert!(matches!(said, NodeOutcome::Failed(NodeFault::Protocol(_))), "{said:?}");
    }
}

#[test]
fn r4_a_nodes_result_is_one_of_five() {
    let mut bench = Bench::cold(5);
    (0..4).for_each(|node| bench.up(node));
    bench.cut_for(4, DisconnectReason::Refused("connection refused".into()));
    bench.forget();
    bench.try_acquire("orders");
    bench.reply(0, OK);
    bench.reply(1, NIL);
    bench.reply(2, b"-MISCONF Errors writing to the AOF file\r\n");
    let error = bench.acquire_failed_after_asking(1, b":9000\r\n");
    let outcomes: Vec<_> = error.nodes.iter().map(|report| report.outcome.clone()).collect();
    assert_eq!(outcomes[0], NodeOutcome::Granted);
    assert_eq!(outcomes[1], NodeOutcome::Refused);
    assert!(
        matches!(&outcomes[2], NodeOutcome::Failed(NodeFault::Server(error)) if error.text().starts_with("MISCONF"))
    );
    assert_eq!(outcomes[3], NodeOutcome::Unanswered);
    assert_eq!(outcomes[4], NodeOutcome::Unsent(NodeFault::Refused("connection refused".into())));
}

#[test]
fn r4_sent_without_an_answer_is_no_vote_and_is_cleaned_up() {
    let mut bench = Bench::new(3);
    bench.try_acquire("orders");
    bench.at(1_500);
    let error = bench.acquire_failed();
    assert_eq!(error.kind, AcquireErrorKind::NoQuorum);
    assert_eq!(bench.sent_to_all(), ["SET orders T1 NX PX 10000", "DELEX orders IFEQ T1"]);
}

#[test]
fn r4_half_an_answer_is_no_vote() {
    let mut bench = Bench::new(3);
    bench.try_acquire("orders");
    bench.reply(0, OK);
    bench.reply(1, b"+OK\r");
    bench.nothing_told();
    bench.cut(1);
    bench.nothing_told();
    bench.reply(2, b"-ERR oops\r\n");
    assert_eq!(bench.acquire_failed().kind, AcquireErrorKind::NoQuorum);
}

#[test]
fn r4_a_script_error_with_the_suffix_is_ambiguous_and_one_without_is_not_applied() {
    // Over several keys the SET is a script.
    for (text, then) in [("ERR x script: on @user_script:1.", true), ("OOM command not allowed", false)] {
        let mut bench = Bench::new(3);
        let request = AcquireRequest::all(["a", "b"], [9; 16]).try_once();
        bench.ask(request);
        bench.reply(0, format!("-{text}\r\n").as_bytes());
        bench.reply(1, ONE);
        bench.reply(2, ONE);
        let (lock, _) = bench.acquired();
        bench.forget();
        // Now the node confirms an extension: of its own key only if part of the script may have run (R14a).
        bench.extend(lock, 10_000);
        bench.reply(0, ONE);
        let suspects = bench.told().iter().any(|event| matches!(event, Event::AliasSuspected { .. }));
        assert_eq!(suspects, !then, "{text}");
    }
}

#[test]
fn r5_decided_at_the_first_answer_that_makes_it_certain() {
    let mut bench = Bench::new(5);
    bench.try_acquire("orders");
    bench.reply(4, OK);
    bench.reply(2, OK);
    bench.nothing_told();
    bench.reply(0, OK);
    bench.acquired();

    let mut bench = Bench::new(5);
    bench.try_acquire("orders");
    bench.reply(4, NIL);
    bench.reply(2, b"-ERR oops\r\n");
    bench.nothing_told();
    bench.reply(0, b"-ERR oops\r\n");
    let error = bench.acquire_failed_after_asking(4, b":1\r\n");
    assert_eq!(error.kind, AcquireErrorKind::Mixed);
}

#[test]
fn r5_a_tie_of_an_even_number_is_certain() {
    let mut bench = Bench::new(4);
    bench.try_acquire("orders");
    bench.reply(0, OK);
    bench.reply(1, OK);
    bench.reply(2, NIL);
    bench.nothing_told();
    bench.reply(3, NIL);
    bench.reply(2, ZERO);
    bench.reply(3, ZERO);
    bench.reply(2, b":5000\r\n");
    bench.reply(3, b":5000\r\n");
    assert_eq!(bench.acquire_failed().kind, AcquireErrorKind::Contended);
}

#[test]
fn r5_late_answers_are_still_drained() {
    let mut bench = Bench::new(3);
    let lock = {
        bench.try_acquire("a");
        bench.reply(0, OK);
        bench.reply(1, OK);
        bench.acquired().0
    };
    bench.at(300);
    bench.try_acquire("b");
    bench.reply(0, NIL);
    bench.reply(2, OK); // of "a", late
    bench.nothing_told();
    assert!(matches!(bench.client.lock(lock).unwrap().votes().last().unwrap().1, NodeVote::Confirmed { .. }));
    bench.reply(2, OK); // of "b"
    bench.reply(1, OK); // of "b"
    bench.acquired();
}

#[test]
fn r6_granted_only_while_validity_is_left_when_the_deciding_answer_is_handled() {
    let slow = || Bench::with(3, |config| config.node_timeout(ms(60_000)).connect_timeout(ms(60_000)));
    for (reply_at, granted) in [(9_897_999_999, true), (9_898_000_000, false), (9_898_000_001, false)] {
        let mut bench = slow();
        bench.try_acquire("orders");
        bench.reply(0, OK);
        bench.now = redlock_core::Instant::from_nanos(reply_at);
        bench.reply(1, OK);
        match bench.one() {
            Event::Acquired { deadline, .. } => assert!(granted && deadline == at(9_898), "{reply_at}"),
            Event::AcquireFailed { error, .. } => {
                assert!(!granted && error.kind == AcquireErrorKind::TooSlow, "{reply_at} {error:?}")
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn r6_the_machine_alone_grants_nothing_at_the_deadline_either() {
    for (nanos, granted) in [(97_999_999, true), (98_000_000, false)] {
        let terms = Terms {
            quorum: Quorum::majority(1),
            drift: Drift::from_parts_per_million(0),
            ttl: ms(100),
            node_timeout: ms(500),
            attempt_timeout: ms(500),
            max_hold: None,
            expiring_lead: None,
            jitter: 0,
            fenced: false,
        };
        let mut effects = Vec::new();
        let mut claim = Claim::new(terms, [Reach::Ready], at(0), &mut effects);
        claim.handed_out(node(0), Verb::Set, at(0), &mut effects);
        let now = redlock_core::Instant::from_nanos(nanos);
        claim.answered(node(0), Verb::Set, Answer::Yes, now, &mut effects);
        assert_eq!(claim.is_held(), granted, "{effects:?}");
        assert_eq!(effects.contains(&Effect::Send(node(0), Verb::Release)), !granted, "{effects:?}");
    }
}

#[test]
fn r6_b13_answers_that_lay_in_a_buffer_for_too_long_grant_nothing() {
    let mut bench = Bench::new(5);
    let request = bench.request("orders").ttl(ms(1_000)).try_once();
    bench.ask(request);
    bench.stopped_until(1_500);
    for node in 0..5 {
        bench.reply(node, OK);
    }
    assert_eq!(bench.acquire_failed().kind, AcquireErrorKind::TooSlow);
    assert_eq!(bench.sent_to_all(), ["SET orders T1 NX PX 1000", "DELEX orders IFEQ T1"]);
}

#[test]
fn r6_b13_one_slow_node_costs_no_validity() {
    let mut bench = Bench::with(3, |config| config.node_timeout(ms(1_000)));
    let request = bench.request("orders").ttl(ms(300)).wait(ms(1_000));
    bench.ask(request);
    bench.at(5);
    bench.reply(0, OK);
    bench.reply(1, OK);
    assert_eq!(bench.acquired().1, 300 - 5);
}

#[test]
fn r6_the_drift_factor_is_configurable() {
    let mut bench = Bench::with(1, |config| config.drift(Drift::from_parts_per_million(100_000)));
    bench.try_acquire("orders");
    bench.reply(0, OK);
    assert_eq!(bench.acquired().1, 10_000 - 1_000 - 2);
}

#[test]
fn r6_r12_sub_millisecond_parts_are_cut_off_and_belief_counts_what_was_sent() {
    let mut bench = Bench::new(1);
    let request = bench.request("orders").ttl(Duration::from_micros(5_999));
    bench.ask(request);
    assert_eq!(bench.sent(0), ["SET orders T1 NX PX 5"]);
    bench.reply(0, OK);
    let Event::Acquired { deadline, .. } = bench.one() else { panic!() };
    assert_eq!(deadline.as_nanos(), 5_000_000 - 50_000 - 2_000_000);
}

#[test]
fn r8_every_attempt_has_a_token_of_its_own_and_releases_that_one() {
    let mut bench = Bench::with(3, |config| config.retry_delay(ms(50), ms(50)));
    let request = bench.request("orders");
    bench.ask(request);
    bench.reply_all(NIL);
    assert_eq!(bench.sent_to_all(), ["SET orders T1 NX PX 10000", "DELEX orders IFEQ T1"]);
    bench.at(50);
    assert_eq!(bench.sent_to_all(), ["SET orders T2 NX PX 10000"]);
    bench.reply_all(ZERO);
    bench.reply_all(NIL);
    assert_eq!(bench.sent_to_all(), ["DELEX orders IFEQ T2"]);
}

#[test]
fn r8_a_late_yes_to_a_lost_attempt_is_no_vote_for_the_next() {
    let mut bench = Bench::with(3, |config| config.retry_delay(ms(50), ms(50)));
    let request = bench.request("orders");
    bench.ask(request);
    bench.reply(0, NIL);
    bench.reply(1, NIL);
    bench.at(50);
    bench.reply(2, OK); // attempt 1
    bench.reply(2, ONE); // its release
    bench.reply(0, ZERO);
    bench.reply(0, OK); // attempt 2
    bench.nothing_told();
    bench.reply(2, OK); // attempt 2
    bench.acquired();
}

#[test]
fn r8a_connecting_is_not_down_the_set_goes_right_after_the_handshake() {
    let mut bench = Bench::cold(3);
    bench.try_acquire("orders");
    bench.nothing_told();
    for node in 0..3 {
        bench.at(100 + u64::from(node));
        bench.up(node);
        assert_eq!(bench.sent(node), ["SET orders T1 NX PX 10000"]);
        bench.reply(node, OK);
    }
    assert_eq!(bench.acquired().1, 9_898);
}

#[test]
fn r8a_after_the_node_timeout_the_set_is_withdrawn() {
    let mut bench = Bench::cold(3);
    bench.up(0);
    bench.up(1);
    bench.forget();
    bench.try_acquire("orders");
    bench.reply(0, OK);
    bench.reply(1, OK);
    let (lock, _) = bench.acquired();
    bench.at(500);
    bench.up(2);
    assert!(bench.sent(2).is_empty(), "the handshake ended with the node timeout, not within it");
    assert!(bench.is_held(lock));
}

#[test]
fn r8a_a_lost_or_released_attempt_sends_nothing_to_a_node_that_comes_up() {
    for lose in [true, false] {
        let mut bench = Bench::cold(3);
        bench.up(0);
        bench.up(1);
        bench.forget();
        bench.try_acquire("orders");
        bench.reply(0, if lose { NIL } else { OK });
        bench.reply(1, if lose { NIL } else { OK });
        if let Some(Event::Acquired { lock, .. }) = bench.told().first() {
            bench.release(*lock);
        }
        bench.at(100);
        bench.up(2);
        assert!(bench.sent(2).is_empty(), "{lose}");
    }
}

#[test]
fn r8a_a_set_is_never_parked_for_a_node_that_is_down() {
    let mut bench = Bench::cold(3);
    bench.up(0);
    bench.cut_for(1, DisconnectReason::Refused("refused".into()));
    bench.cut_for(2, DisconnectReason::Refused("refused".into()));
    bench.forget();
    bench.try_acquire("orders");
    assert_eq!(bench.acquire_failed().kind, AcquireErrorKind::NoQuorum, "at once");
    bench.at(400);
    assert!(bench.is_wanted(1));
    bench.up(1);
    assert!(bench.sent(1).is_empty());
}

#[test]
fn r8a_a_set_that_was_not_handed_out_is_sent_on_the_next_connection_in_time() {
    let mut bench = Bench::new(3);
    bench.at(1_000);
    let request = bench.request("orders").try_once();
    bench.client.acquire(request, bench.now);
    // The connection breaks before the drain, another one is made at once.
    bench.cut(2);
    assert!(bench.is_wanted(2));
    bench.up(2);
    assert_eq!(bench.sent(2), ["SET orders T1 NX PX 10000"]);
}

#[test]
fn r8b_b55_the_key_is_the_resource_byte_for_byte() {
    for resource in
        [&b"x"[..], b"\0", b"\xff\xfe", b"\r\n", b"a b", b"{tag}x", "é🔒".as_bytes(), &[b'k'; 65_536]]
    {
        let mut bench = Bench::new(1);
        bench.ask(AcquireRequest::new(resource.to_vec(), [1; 16]).try_once());
        let payloads = bench.payloads(0);
        let commands = decode(&payloads.concat());
        assert_eq!(commands.len(), 1);
        assert_eq!(commands[0][1], resource);
    }
}

#[test]
fn r8b_the_value_is_the_token_in_hex_and_the_name() {
    let mut bench = Bench::with(3, |config| config.client_name("billing").key_prefix("locks:"));
    bench.ask(AcquireRequest::new("orders", [0xab; 16]).try_once());
    let commands = decode(&bench.payloads(0).concat());
    assert_eq!(commands[0][1], b"locks:orders");
    assert_eq!(commands[0][2], b"abababababababababababababababab00000001:billing");
    bench.reply_all(OK);
    let (lock, _) = bench.acquired();
    assert_eq!(bench.client.lock(lock).unwrap().keys(), ["locks:orders"]);
    bench.forget();
    bench.release(lock);
    assert_eq!(bench.sent_to_all(), ["DELEX locks:orders IFEQ T1:billing"], "the whole value is compared");
}

#[test]
fn r5_r6_b52_six_ways_to_fail_are_told_apart() {
    let round = |answers: [&[u8]; 2]| {
        let mut bench = Bench::new(3);
        bench.try_acquire("orders");
        bench.reply(0, answers[0]);
        bench.reply(1, answers[1]);
        bench.at(499);
        bench.at(500);
        bench.acquire_failed()
    };
    let error: &[u8] = b"-ERR oops\r\n";
    assert_eq!(round([NIL, NIL]).kind, AcquireErrorKind::Contended);
    assert_eq!(round([error, error]).kind, AcquireErrorKind::NoQuorum);
    assert_eq!(round([NIL, error]).kind, AcquireErrorKind::Mixed);
    let mut bench = Bench::with(3, |config| config.retry_delay(ms(400), ms(400)));
    let request = bench.request("orders").wait(ms(300));
    bench.ask(request);
    bench.reply_all(NIL);
    bench.reply_all(ZERO);
    bench.at(300);
    bench.reply_all(NIL);
    bench.reply_all(ZERO);
    bench.reply_all(b":77\r\n");
    let error = bench.acquire_failed();
    assert_eq!(error.kind, AcquireErrorKind::WaitOver { last: RoundLoss::Contended });
    assert_eq!((error.attempts, error.elapsed), (2, ms(300)));
    let text = error.to_string();
    for part in ["orders", "wait is over", "2 attempts", "node0:6379", "held by another", "77ms"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
}
