//! Waiting, retries and back-off: R9, R10, R11, R12.

use crate::bench::*;
use redlock_core::{
    AcquireErrorKind, AcquireRequest, DisconnectReason, Event, ExtendErrorKind, ExtendRefused,
    InvalidArgument, NodeFault, NodeOutcome, NodeState, RoundLoss,
};
use std::time::Duration;

/// The instants, in ms, at which the node was sent a SET, while it refuses every one; until the acquire fails.
fn attempts_against(bench: &mut Bench, refusal: &[u8]) -> Vec<u64> {
    let mut attempts = Vec::new();
    loop {
        let sent = bench.sent(0);
        let idle = sent.is_empty();
        for command in sent {
            let answer = match command.split(' ').next() {
                Some("SET") => {
                    attempts.push(bench.now.as_nanos());
                    refusal
                }
                Some("PTTL") => b":-1\r\n",
                _ => ZERO,
            };
            bench.reply(0, answer);
        }
        if !bench.told().is_empty() {
            return attempts.iter().map(|nanos| nanos / 1_000_000).collect();
        }
        if idle {
            let due = bench.client.poll_timeout().expect("something to wait for");
            bench.until(due.at);
        }
    }
}

#[test]
fn r9_delays_are_random_within_their_bounds() {
    let mut bench = Bench::with(1, |config| config.retry_delay(ms(50), ms(250)));
    let request = bench.request("orders").wait(ms(60_000)).attempts(200);
    bench.ask(request);
    let attempts = attempts_against(&mut bench, NIL);
    let delays: Vec<u64> = attempts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(delays.len() > 100 && delays.iter().all(|delay| (50..=250).contains(delay)), "{delays:?}");
    let long = delays.iter().filter(|delay| **delay > 150).count();
    assert!(long * 4 > delays.len() && long * 4 < delays.len() * 3, "spread over the range: {delays:?}");
}

#[test]
fn a_delayed_acquire_asks_nothing_before_and_stands_in_nobodys_way() {
    let mut bench = Bench::new(3);
    let request = bench.request("orders").delay(ms(250)).wait(Duration::MAX);
    let delayed = bench.ask(request);
    let request = bench.request("orders").wait(Duration::MAX);
    let other = bench.ask(request);
    assert_eq!(bench.sent_to_all(), ["SET orders T1 NX PX 10000"], "who comes later is first");
    bench.reply_all(OK);
    let told = bench.told();
    let lock = match &told[..] {
        [Event::Acquired { operation, lock, .. }] if *operation == other => *lock,
        told => panic!("{told:?}"),
    };
    bench.at(249);
    bench.nothing_told();
    assert_eq!(bench.client.poll_timeout().expect("its delay").at, at(250));
    bench.at(250);
    for node in 0..3 {
        assert_eq!(bench.sent(node), [] as [String; 0], "it waits in line behind the client's own lock");
    }
    bench.release(lock);
    let sent = bench.sent_to_all();
    assert!(sent.len() == 2 && sent[1].starts_with("SET orders T2"), "{sent:?}");
    bench.reply_all(ONE);
    bench.reply_all(OK);
    let is_granted =
        |event: &Event| matches!(event, Event::Acquired { operation, .. } if *operation == delayed);
    assert!(bench.told().iter().any(is_granted));
}

#[test]
fn a_delay_is_cut_to_the_wait_and_can_be_called_off() {
    let mut bench = Bench::new(3);
    let request = bench.request("orders").delay(ms(250)).wait(ms(100));
    bench.ask(request);
    bench.at(99);
    for node in 0..3 {
        assert_eq!(bench.sent(node), [] as [String; 0]);
    }
    bench.at(100);
    assert_eq!(bench.sent_to_all(), ["SET orders T1 NX PX 10000"], "one round when the wait ends");
    let request = bench.request("orders").delay(ms(250)).wait(Duration::MAX);
    let operation = bench.ask(request);
    bench.forget();
    bench.client.cancel(operation, bench.now);
    bench.drain();
    let error = bench.acquire_failed();
    assert_eq!((error.kind, error.attempts), (AcquireErrorKind::Cancelled, 0));
}

#[test]
fn r10_a_delay_that_took_all_of_the_wait_leaves_none_to_stand_in_line() {
    let mut bench = Bench::new(3);
    let lock = bench.hold("orders");
    let request = bench.request("orders").delay(ms(250)).wait(ms(100));
    bench.ask(request);
    bench.at(99);
    bench.nothing_told();
    // A timer that fires late: the answer comes in the same call.
    bench.client.handle_timeout(at(190));
    bench.drain();
    let error = bench.acquire_failed();
    assert_eq!(error.kind, AcquireErrorKind::WaitOver { last: RoundLoss::Contended });
    assert_eq!((error.attempts, error.elapsed), (0, ms(190)));
    assert!(bench.is_held(lock));
}

#[test]
fn each_lost_round_that_another_one_follows_is_told_and_counted() {
    let mut bench = Bench::with(1, |config| config);
    let request = bench.request("orders").wait(ms(60_000)).attempts(3);
    let operation = bench.ask(request);
    bench.notices();
    let attempts = attempts_against(&mut bench, NIL);
    assert_eq!(attempts.len(), 3);
    let lost = |attempts| Event::AttemptLost { operation, attempts, loss: RoundLoss::Contended };
    assert_eq!(bench.notices(), [lost(1), lost(2)], "the third is told by the failure");
    let votes = bench.client.votes(node(0)).expect("a node");
    assert_eq!((votes.granted, votes.refused, votes.failed, votes.unanswered), (0, 3, 0, 0));
}

#[test]
fn r9_b25_never_below_a_millisecond() {
    let mut bench = Bench::with(1, |config| config.retry_delay(ms(1), ms(1)));
    let request = bench.request("orders").wait(ms(1_000));
    bench.ask(request);
    let attempts = attempts_against(&mut bench, b"-BUSY Redis is busy running a script\r\n");
    assert!(attempts.len() <= 1_001 && attempts.len() > 900, "{}", attempts.len());
    assert!(attempts.windows(2).all(|pair| pair[1] > pair[0]));
}

#[test]
fn r9_b23_zero_wait_is_exactly_one_full_round() {
    let mut bench = Bench::new(3);
    bench.try_acquire("orders");
    bench.at(499);
    bench.nothing_told();
    bench.at(500);
    let error = bench.acquire_failed();
    assert_eq!((error.attempts, error.elapsed, error.kind), (1, ms(500), AcquireErrorKind::NoQuorum));
    bench.at(1_900);
    assert_eq!(bench.sent(0), ["SET orders T1 NX PX 10000", "DELEX orders IFEQ T1"]);
}

#[test]
fn r9_b23_so_many_tries_are_so_many_rounds_and_no_sleep_after_the_last() {
    for tries in 1..=3 {
        let mut bench = Bench::with(1, |config| config.retry_delay(ms(100), ms(100)));
        let request = bench.request("orders").attempts(tries);
        bench.ask(request);
        let attempts = attempts_against(&mut bench, NIL);
        assert_eq!(attempts.len(), usize::try_from(tries).unwrap());
        assert_eq!(bench.now, at(100 * u64::from(tries - 1)));
    }
}

#[test]
fn r9_b34_fatal_answers_that_leave_no_quorum_fail_at_once() {
    for fatal in [
        "NOPERM User u has no permissions to run the 'set' command",
        "NOAUTH Authentication required.",
        "WRONGPASS invalid username-password pair or user is disabled.",
        "MOVED 12182 127.0.0.1:7001",
        "READONLY You can't write against a read only replica.",
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        "ERR unknown command 'SET', with args beginning with: 'orders' ",
    ] {
        let mut bench = Bench::new(3);
        let request = bench.request("orders").wait(Duration::MAX);
        bench.ask(request);
        bench.reply(0, format!("-{fatal}\r\n").as_bytes());
        bench.nothing_told();
        bench.reply(1, format!("-{fatal}\r\n").as_bytes());
        let error = bench.acquire_failed();
        assert_eq!((error.kind.clone(), error.attempts), (AcquireErrorKind::NoQuorum, 1), "{fatal}");
        assert!(error.to_string().contains(fatal.split(' ').next().unwrap()), "{error}");
    }
}

#[test]
fn r9_r4_an_acl_failure_inside_a_script_counts_as_noperm() {
    for text in [
        "ERR The user executing the script can't run this command or subcommand script: 0f, on @user_script:1.",
        "ERR ACL failure in script: User u has no permissions to run the 'set' command script: on @user_script:1.",
    ] {
        let mut bench = Bench::new(3);
        bench.ask(AcquireRequest::all(["a", "b"], [5; 16]).wait(Duration::MAX));
        bench.reply(0, format!("-{text}\r\n").as_bytes());
        bench.reply(1, format!("-{text}\r\n").as_bytes());
        let error = bench.acquire_failed();
        assert_eq!((error.kind.clone(), error.attempts), (AcquireErrorKind::NoQuorum, 1), "{text}");
        assert!(error.to_string().contains("lacks a right"), "{error}");
    }
}

#[test]
fn r9_one_fatal_node_of_three_changes_nothing() {
    let mut bench = Bench::new(3);
    bench.try_acquire("orders");
    bench.reply(0, b"-NOPERM User u has no permissions to run the 'set' command\r\n");
    bench.reply(1, OK);
    bench.reply(2, OK);
    bench.acquired();

    let mut bench = Bench::new(3);
    let request = bench.request("orders");
    bench.ask(request);
    bench.reply(0, b"-NOPERM User u has no permissions to run the 'set' command\r\n");
    bench.reply(1, NIL);
    bench.nothing_told();
}

#[test]
fn r9_nodes_that_a_login_shut_out_are_fatal_too() {
    let mut bench = Bench::cold(3);
    bench.up(0);
    for node in [1, 2] {
        bench.accept(node);
        bench.reply(node, b"-NOAUTH HELLO must be called with the client already authenticated\r\n");
    }
    bench.forget();
    let request = bench.request("orders").wait(Duration::MAX);
    bench.ask(request);
    let error = bench.acquire_failed();
    assert_eq!(error.kind, AcquireErrorKind::NoQuorum);
    assert!(matches!(error.nodes[1].outcome, NodeOutcome::Unsent(NodeFault::Login(_))));
}

#[test]
fn r9_b34_every_other_failure_is_tried_again() {
    for passing in [
        "LOADING Redis is loading the dataset in memory",
        "BUSY Redis is busy running a script.",
        "OOM command not allowed when used memory > 'maxmemory'.",
        "MISCONF Redis is configured to save RDB snapshots",
        "NOREPLICAS Not enough good replicas to write.",
        "CLUSTERDOWN The cluster is down",
        "TRYAGAIN Multiple keys request during rehashing of slot",
        "WRONGTYPE Operation against a key holding the wrong kind of value",
        "oops",
        "ERR something new",
    ] {
        let mut bench = Bench::new(3);
        let request = bench.request("orders");
        bench.ask(request);
        bench.reply(0, format!("-{passing}\r\n").as_bytes());
        bench.reply(1, format!("-{passing}\r\n").as_bytes());
        bench.at(9_000);
        bench.nothing_told();
        bench.at(10_500);
        let error = bench.acquire_failed();
        assert_eq!(error.kind, AcquireErrorKind::WaitOver { last: RoundLoss::NoQuorum }, "{passing}");
        assert!(error.attempts > 1, "{passing}");
    }
}

#[test]
fn r10_b23_waiting_ends_by_wait_and_one_node_timeout_whatever_the_nodes_do() {
    // Silent, refusing, broken, answering late.
    for behaviour in 0..4 {
        let mut bench = Bench::new(3);
        let request = bench.request("orders").wait(ms(1_000));
        bench.ask(request);
        let mut end = None;
        for now in 0..1_600 {
            bench.at(now);
            for node in 0..3 {
                if bench.is_wanted(node) && behaviour == 2 {
                    bench.cut_for(node, DisconnectReason::Refused("refused".into()));
                } else if bench.is_connected(node) {
                    for command in bench.sent(node) {
                        match (behaviour, command.starts_with("SET")) {
                            (1 | 3, true) => bench.reply(node, NIL),
                            (1, false) => bench.reply(node, ZERO),
                            (2, _) if bench.is_connected(node) => bench.cut(node),
                            _ => {}
                        }
                    }
                }
            }
            if end.is_none() && !bench.told().is_empty() {
                end = Some(now);
            }
        }
        let end = end.expect("an answer");
        assert!((999..=1_500).contains(&end), "{behaviour}: {end}");
    }
}

#[test]
fn r10_b23_a_lock_that_gets_free_while_waiting_is_won_within_one_delay() {
    let mut bench = Bench::new(1);
    let request = bench.request("orders").wait(ms(60_000));
    bench.ask(request);
    bench.reply(0, NIL);
    bench.reply(0, ZERO);
    bench.forget();
    bench.at(250);
    assert_eq!(bench.sent(0).len(), 1);
    bench.reply(0, OK);
    bench.acquired();
}

#[test]
fn r10_a_process_that_is_stopped_over_the_end_of_the_wait_makes_no_attempt_after_it() {
    for (woken, attempts) in [(1_000, 2), (1_200, 2), (1_251, 1), (60_000, 1)] {
        let mut bench = Bench::with(1, |config| config.retry_delay(ms(900), ms(900)));
        let request = bench.request("orders").wait(ms(1_000));
        bench.ask(request);
        bench.at(500); // the node timeout
        bench.stopped_until(woken);
        bench.client.handle_timeout(bench.now);
        bench.drain();
        bench.at(woken.max(1_500));
        let error = bench.acquire_failed();
        assert_eq!(error.kind, AcquireErrorKind::WaitOver { last: RoundLoss::NoQuorum }, "{woken}");
        assert_eq!(error.attempts, attempts, "{woken}");
        assert!(error.elapsed <= ms(woken.max(1_500)));
    }
}

#[test]
fn r10_for_ever_is_for_ever() {
    let mut bench = Bench::cold(1);
    bench.cut_for(0, DisconnectReason::Refused("refused".into()));
    bench.forget();
    let request = bench.request("orders").wait(Duration::MAX);
    bench.ask(request);
    for _ in 0..200 {
        let due = bench.client.poll_timeout().unwrap();
        bench.until(due.at);
        if bench.is_wanted(0) {
            bench.cut_for(0, DisconnectReason::Refused("refused".into()));
        }
    }
    bench.nothing_told();
    bench.until_wanted(0);
    bench.up(0);
    while bench.sent(0).is_empty() {
        let due = bench.client.poll_timeout().unwrap();
        bench.until(due.at);
    }
    bench.reply(0, OK);
    bench.acquired();
}

#[test]
fn r11_b22_a_node_that_is_down_costs_no_time() {
    let mut bench = Bench::cold(3);
    bench.up(0);
    bench.up(1);
    bench.cut_for(2, DisconnectReason::Refused("refused".into()));
    bench.forget();
    for round in 0..100 {
        bench.at(round * 10);
        bench.try_acquire("orders");
        bench.reply(0, OK);
        bench.reply(1, OK);
        let (lock, _) = bench.acquired();
        bench.release(lock);
        bench.reply(0, ONE);
        bench.reply(1, ONE);
        bench.released();
        if bench.is_wanted(2) {
            bench.cut_for(2, DisconnectReason::Refused("refused".into()));
        }
    }
    // In the background, not once for each of the 200 operations.
    assert!(bench.connects(2) <= 10, "{}", bench.connects(2));
}

#[test]
fn r11_b22_a_hung_node_costs_nothing_once_the_vote_is_decided() {
    let mut bench = Bench::new(3);
    bench.try_acquire("orders");
    bench.at(2);
    bench.reply(0, OK);
    bench.reply(1, OK);
    let (lock, _) = bench.acquired();
    bench.extend(lock, 10_000);
    bench.reply(0, OK);
    bench.reply(1, OK);
    bench.extended();
    bench.release(lock);
    bench.reply(0, ONE);
    bench.reply(1, ONE);
    bench.released();
    assert_eq!(bench.now, at(2));
}

#[test]
fn r11_b39_reconnects_back_off_exponentially_with_jitter() {
    let mut bench = Bench::new(1);
    bench.at(5_000);
    bench.cut(0);
    let mut attempts = Vec::new();
    while bench.now < at(20_000) {
        bench.until_wanted(0);
        attempts.push(bench.now.as_nanos());
        bench.cut_for(0, DisconnectReason::Refused("refused".into()));
    }
    assert_eq!(attempts[0], 5_000_000_000, "at once: it had stood");
    assert!(attempts.len() <= 30, "{}", attempts.len());
    let gaps: Vec<u64> = attempts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps[0] < 50_000_000 && *gaps.last().unwrap() >= 1_000_000_000, "{gaps:?}");
    assert!(gaps.iter().any(|gap| gap % 1_000_000 != 0), "jitter: {gaps:?}");
    bench.until_wanted(0);
    let down_for = bench.now;
    bench.up(0);
    assert_eq!(bench.now, down_for);
}

#[test]
fn r11_silence_with_replies_outstanding_gives_the_connection_up() {
    // max(3 × node timeout, 2 s).
    for (ttl, node_timeout, silence) in [(10_000, 500, 2_000), (20_000, 1_000, 3_000)] {
        let mut bench = Bench::new(3);
        let request = bench.request("orders").ttl(ms(ttl)).try_once();
        bench.ask(request);
        bench.reply(0, OK);
        bench.reply(1, OK);
        let (lock, _) = bench.acquired();
        bench.at(node_timeout);
        bench.at(silence - 1);
        assert!(bench.is_connected(2), "until then clean-up uses it");
        bench.at(silence);
        assert!(!bench.is_connected(2));
        let fault = NodeFault::Silent(ms(silence));
        assert!(bench.notices().contains(&Event::NodeDown { node: node(2), fault }));
        assert!(bench.is_connected(0) && bench.is_held(lock));
    }
}

#[test]
fn r11_a_byte_is_a_sign_of_life() {
    let mut bench = Bench::new(3);
    bench.try_acquire("orders");
    bench.at(1_900);
    bench.reply(0, b"+");
    bench.at(3_899);
    assert!(bench.is_connected(0) && !bench.is_connected(1));
    bench.at(3_900);
    assert!(!bench.is_connected(0));
}

#[test]
fn r11_b38_an_idle_connection_is_left_alone_and_a_new_command_starts_the_count() {
    let mut bench = Bench::new(1);
    bench.at(3_600_000);
    assert!(bench.is_connected(0));
    bench.try_acquire("orders");
    bench.at(3_601_999);
    assert!(bench.is_connected(0));
    bench.at(3_602_000);
    assert!(!bench.is_connected(0));
}

#[test]
fn r11_b35_the_handshake_has_a_timeout_of_its_own() {
    // Never made (DNS, swallowed packets); made and silent; answers HELLO only.
    for stage in 0..3 {
        let mut bench = Bench::cold_with(1, |config| config.handshake_timeout(ms(700)));
        bench.at(100);
        if stage > 0 {
            bench.accept(0);
        }
        if stage > 1 {
            bench.reply(0, &hello("redis", "8.4.0"));
        }
        bench.at(699);
        assert_eq!(bench.disconnects(0), 0, "{stage}");
        bench.at(700);
        assert_eq!(bench.disconnects(0), 1, "{stage}");
        let fault = NodeFault::HandshakeTimeout(ms(700));
        let state = bench.client.node(node(0)).unwrap().state;
        assert!(
            matches!(state, NodeState::Down { fault: of, retry_at } if of == fault && retry_at > at(700))
        );
    }
}

#[test]
fn r12_what_makes_no_sense_is_refused_with_nothing_sent() {
    let mut bench = Bench::new(3);
    let lock = bench.hold("held");
    bench.ask(AcquireRequest::new("", [1; 16]));
    assert_eq!(bench.acquire_failed().kind, AcquireErrorKind::Invalid(InvalidArgument::EmptyResource));
    bench.ask(AcquireRequest::new("orders", [1; 16]).ttl(Duration::from_micros(999)));
    assert!(matches!(
        bench.acquire_failed().kind,
        AcquireErrorKind::Invalid(InvalidArgument::TtlTooShort { .. })
    ));
    bench.ask(AcquireRequest::new("orders", [1; 16]).ttl(ms(5_000)).auto_renew(ms(4_999)));
    assert!(matches!(
        bench.acquire_failed().kind,
        AcquireErrorKind::Invalid(InvalidArgument::MaxHoldBelowTtl { .. })
    ));
    let refused = bench.client.extend(lock, ms(2), bench.now).unwrap_err();
    let short = |kind: &ExtendErrorKind| {
        matches!(kind, ExtendErrorKind::Invalid(InvalidArgument::TtlTooShort { .. }))
    };
    assert!(matches!(&refused, ExtendRefused::Because(kind) if short(kind)), "{refused:?}");
    bench.drain();
    assert!(bench.sent_to_all().is_empty());
    assert!(bench.is_held(lock));
}
