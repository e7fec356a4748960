//! Waiting without polling: nodes tell when the key that is waited for changes.

use crate::bench::*;
use redlock_core::{AcquireErrorKind, Event, Holder, OperationId, RoundLoss};

const PUSH: &[u8] = b">2\r\n$10\r\ninvalidate\r\n*1\r\n$6\r\norders\r\n";
const ASK: [&str; 2] = ["CLIENT CACHING YES", "PTTL orders"];
/// To the release, `CLIENT TRACKING`, `CLIENT CACHING` and `PTTL`: held for 5 s.
const HELD: &[u8] = b":0\r\n+OK\r\n+OK\r\n:5000\r\n";

fn waking() -> Bench {
    Bench::with(3, |config| config.wake_ups(true).retry_delay(ms(50), ms(250)))
}

fn waits(bench: &mut Bench, millis: u64) -> OperationId {
    let request = bench.request("orders").wait(ms(millis));
    bench.ask(request)
}

/// One that has lost its first round to another client at 0 ms, and was told by all nodes that the key is held for 5 s.
fn waiting(bench: &mut Bench) -> OperationId {
    let operation = waits(bench, 30_000);
    bench.reply(0, NIL);
    bench.reply(1, NIL);
    for node in 0..2 {
        let sent = bench.sent(node);
        assert_eq!(sent[..2], ["SET orders T1 NX PX 10000", "DELEX orders IFEQ T1"]);
        assert_eq!(sent[2..], ["CLIENT TRACKING ON OPTIN", ASK[0], ASK[1]]);
        bench.reply(node, HELD);
    }
    bench.reply(2, NIL);
    bench.reply(2, HELD);
    bench.forget();
    operation
}

#[test]
fn a_quorum_of_pushes_wakes_within_a_millisecond() {
    let mut bench = waking();
    waiting(&mut bench);
    bench.at(3_000);
    assert!(bench.sent_to_all().is_empty(), "no rounds while it is held");
    bench.reply(0, PUSH);
    bench.reply(2, PUSH);
    bench.at(3_001);
    assert_eq!(bench.sent_to_all(), ["SET orders T2 NX PX 10000"]);
    bench.reply_all(OK);
    bench.acquired();
}

#[test]
fn one_push_is_read_again_and_no_round_is_made() {
    let mut bench = waking();
    waiting(&mut bench);
    bench.at(100);
    bench.reply(0, PUSH);
    bench.at(101);
    assert_eq!(bench.sent(0), ASK, "tracking is asked for once per connection");
    // It was an extension.
    bench.reply(0, b"+OK\r\n:9000\r\n");
    bench.at(2_000);
    assert!(bench.sent_to_all().is_empty());
    // The second smallest of 9 100, 5 000 and 5 000, and a millisecond for the servers' resolution.
    bench.at(5_000);
    assert!(bench.sent_to_all().is_empty());
    bench.at(5_003);
    assert_eq!(bench.sent_to_all(), ["SET orders T2 NX PX 10000"]);
}

#[test]
fn a_key_that_went_before_it_was_read_is_told_by_the_read() {
    let mut bench = waking();
    waits(&mut bench, 30_000);
    bench.reply(0, NIL);
    bench.reply(1, NIL);
    bench.forget();
    for node in 0..2 {
        bench.reply(node, b":0\r\n+OK\r\n+OK\r\n:-2\r\n");
    }
    bench.at(1);
    assert_eq!(bench.sent(0), ["SET orders T1 NX PX 10000"]);
}

#[test]
fn a_push_for_all_keys_is_for_this_one_too_and_others_are_for_nobody() {
    let mut bench = waking();
    waiting(&mut bench);
    bench.reply_all(b">2\r\n$10\r\ninvalidate\r\n*1\r\n$5\r\nstock\r\n");
    bench.reply_all(b">2\r\n$7\r\nmessage\r\n*1\r\n$6\r\norders\r\n");
    bench.reply_all(b">1\r\n$10\r\ninvalidate\r\n");
    bench.at(1_000);
    assert!(bench.sent_to_all().is_empty());
    bench.reply_all(b">2\r\n$10\r\ninvalidate\r\n_\r\n");
    bench.at(1_001);
    assert_eq!(bench.sent_to_all(), ["SET orders T2 NX PX 10000"]);
}

#[test]
fn nothing_is_registered_where_nobody_waits() {
    let mut bench = waking();
    bench.try_acquire("orders");
    bench.reply_all(NIL);
    let registers = |sent: &String| sent.starts_with("CLIENT");
    for node in 0..3 {
        assert!(!bench.sent(node).iter().any(registers));
    }
    // Nor does a quorum that is down, which no key is the reason of.
    let mut bench = waking();
    waits(&mut bench, 1_000);
    bench.reply_all(OOM);
    for node in 0..3 {
        assert!(!bench.sent(node).iter().any(registers));
    }
}

#[test]
fn r9_without_resp3_or_where_it_is_refused_the_retry_delay_rules() {
    let mut bench = Bench::cold_with(1, |config| config.wake_ups(true).retry_delay(ms(50), ms(250)));
    bench.up_as(0, Says::NoHello);
    bench.forget();
    waits(&mut bench, 10_000);
    bench.reply(0, NIL2);
    let sent = bench.sent(0);
    assert!(sent.len() == 2 && sent[1].starts_with("EVAL release"), "{sent:?}");
    bench.reply(0, ZERO);
    bench.at(250);
    assert_eq!(bench.sent(0).len(), 1);

    for refusal in [
        &b"-ERR x\r\n-ERR y\r\n:5000\r\n"[..],
        b"+OK\r\n-NOPERM y\r\n:5000\r\n",
        b"+OK\r\n+OK\r\n-NOPERM z\r\n",
    ] {
        let mut bench = Bench::with(1, |config| config.wake_ups(true).retry_delay(ms(50), ms(250)));
        waits(&mut bench, 10_000);
        bench.reply(0, NIL);
        bench.reply(0, ZERO);
        bench.forget();
        bench.reply(0, refusal);
        bench.at(49);
        assert!(bench.sent(0).is_empty());
        bench.at(250);
        assert_eq!(bench.sent(0), ["SET orders T1 NX PX 10000"]);
    }
}

#[test]
fn every_handshake_registers_what_is_waited_for() {
    let mut bench = waking();
    waiting(&mut bench);
    bench.at(2_000);
    bench.cut(0);
    bench.up(0);
    assert_eq!(bench.sent(0), ["CLIENT TRACKING ON OPTIN", ASK[0], ASK[1]]);
    // With two of three told, no delay runs.
    bench.at(2_900);
    assert!(bench.sent_to_all().is_empty());
    bench.reply(0, b"+OK\r\n+OK\r\n:-2\r\n");
    bench.at(2_950);
    assert!(bench.sent_to_all().is_empty());
    bench.reply(1, PUSH);
    bench.at(2_951);
    assert_eq!(bench.sent_to_all(), ["SET orders T2 NX PX 10000"]);
}

#[test]
fn r9_a_push_lost_with_its_connection_is_made_up_for() {
    let mut bench = waking();
    waiting(&mut bench);
    bench.at(2_000);
    bench.cut(0);
    bench.cut(1);
    bench.at(2_250);
    assert_eq!(bench.sent(2), ["SET orders T2 NX PX 10000"], "too few tell: the delay runs");
}

#[test]
fn nothing_is_told_any_more_when_the_last_waiter_has_left_without_the_lock() {
    let mut bench = waking();
    let first = waiting(&mut bench);
    let second = waits(&mut bench, 30_000);
    bench.cancel(first);
    bench.acquire_failed();
    assert!(bench.sent_to_all().is_empty(), "another one waits");
    bench.cancel(second);
    bench.acquire_failed();
    assert_eq!(bench.sent_to_all(), ["CLIENT TRACKING OFF"]);
    bench.reply_all(OK);
    // The next one switches it on again.
    waits(&mut bench, 30_000);
    bench.reply_all(NIL);
    let sent = bench.sent(0);
    assert_eq!(sent[2..], ["CLIENT TRACKING ON OPTIN", ASK[0], ASK[1]]);
}

#[test]
fn what_a_waiter_was_told_is_not_asked_again_at_the_end_of_its_wait() {
    let mut bench = waking();
    let request = bench.request("orders").wait(ms(1_000));
    bench.ask(request);
    bench.reply_all(NIL);
    bench.reply_all(HELD);
    bench.forget();
    bench.at(1_000);
    bench.reply_all(NIL);
    let error = bench.acquire_failed();
    assert_eq!(error.nodes[0].holder, Some(Holder::Lock { remaining: ms(4_001) }));
    let asks = |sent: &String| sent.starts_with("PTTL");
    assert!((0..3).all(|node| !bench.sent(node).iter().any(asks)));
}

#[test]
fn a_waiter_is_told_for_how_long_another_one_has_it() {
    let mut bench = waking();
    let operation = waits(&mut bench, 30_000);
    bench.reply_all(NIL);
    bench.reply_all(HELD);
    let seen = |bench: &mut Bench| {
        let seen = |event| match event {
            Event::HolderSeen { operation: of, remaining } if of == operation => Some(remaining),
            _ => None,
        };
        bench.notices().into_iter().filter_map(seen).collect::<Vec<_>>()
    };
    assert_eq!(seen(&mut bench), [ms(5_001)], "once");
    // It is extended, on one node after the other.
    for (node, millis) in [(0, 1_000), (1, 1_100)] {
        assert!(seen(&mut bench).is_empty(), "not by a quorum yet");
        bench.at(millis);
        bench.reply(node, PUSH);
        bench.at(millis + 2);
        bench.sent(node);
        bench.reply(node, b"+OK\r\n:9000\r\n");
    }
    // The first node's was read 100 ms before.
    assert_eq!(seen(&mut bench), [ms(8_901)]);
}

#[test]
fn whoever_takes_the_turn_takes_the_watch() {
    let mut bench = waking();
    let first = waiting(&mut bench);
    let second = waits(&mut bench, 30_000);
    bench.cancel(first);
    assert_eq!(bench.acquire_failed().kind, AcquireErrorKind::Cancelled);
    bench.at(1_000);
    assert!(bench.sent_to_all().is_empty());
    bench.reply(0, PUSH);
    bench.reply(1, PUSH);
    bench.at(1_001);
    bench.sent_to_all();
    bench.reply_all(OK);
    assert!(matches!(bench.one(), Event::Acquired { operation, .. } if operation == second));
}

#[test]
fn whoever_waits_behind_is_told_how_long_it_is_held() {
    let mut bench = waking();
    waiting(&mut bench);
    waits(&mut bench, 1_000);
    bench.at(1_000);
    let error = bench.acquire_failed();
    assert_eq!(error.kind, AcquireErrorKind::WaitOver { last: RoundLoss::Contended });
    assert_eq!(error.nodes[1].holder, Some(Holder::Lock { remaining: ms(4_001) }));
}

#[test]
fn r10_the_wait_ends_with_a_last_round() {
    let mut bench = waking();
    let request = bench.request("orders").wait(ms(1_000));
    bench.ask(request);
    for node in 0..2 {
        bench.reply(node, NIL);
    }
    for node in 0..2 {
        bench.reply(node, HELD);
    }
    bench.forget();
    bench.at(1_000);
    assert_eq!(bench.sent(0), ["SET orders T1 NX PX 10000"]);
    bench.at(1_500);
    assert!(matches!(bench.acquire_failed().kind, AcquireErrorKind::WaitOver { .. }));
}
