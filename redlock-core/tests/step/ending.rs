//! Calling off and closing: R20.

use crate::bench::*;
use redlock_core::{
    AcquireErrorKind, Event, ExtendErrorKind, ExtendRefused, LostReason, NodeState, ReleaseOutcome,
};

fn settled() -> Bench {
    let mut bench = Bench::new(3);
    bench.at(1_000);
    bench
}

#[test]
fn r20_cancelled_after_the_sets_were_sent() {
    let mut bench = settled();
    let operation = bench.try_acquire("orders");
    bench.forget();
    bench.cancel(operation);
    assert_eq!(bench.acquire_failed().kind, AcquireErrorKind::Cancelled);
    assert_eq!(bench.sent_to_all(), ["DELEX orders IFEQ T1"]);
    bench.reply_all(b"+OK\r\n:1\r\n");
    bench.nothing_told();
    assert!(bench.client.is_idle());
}

#[test]
fn r20_cancelled_after_some_answers() {
    let mut bench = settled();
    let operation = bench.try_acquire("orders");
    bench.reply(0, OK);
    bench.cut(1);
    bench.cancel(operation);
    let error = bench.acquire_failed();
    assert_eq!((error.kind.clone(), error.attempts), (AcquireErrorKind::Cancelled, 1));
    assert!(error.to_string().contains("node0:6379: granted"), "{error}");
    bench.up(1);
    for node in 0..3 {
        assert_eq!(bench.sent(node).last().unwrap(), "DELEX orders IFEQ T1");
    }
    bench.reply(0, ONE);
    bench.reply(1, ONE);
    bench.reply(2, b"+OK\r\n:1\r\n");
    assert!(bench.client.is_idle());
}

#[test]
fn r20_cancelled_between_two_attempts() {
    let mut bench = settled();
    let request = bench.request("orders");
    let operation = bench.ask(request);
    bench.reply_all(NIL);
    bench.reply_all(ZERO);
    bench.forget();
    bench.cancel(operation);
    let error = bench.acquire_failed();
    assert_eq!(error.kind, AcquireErrorKind::Cancelled);
    assert_eq!(error.nodes.len(), 3, "the last round's results");
    assert!(bench.client.is_idle() && bench.sent_to_all().is_empty());
    bench.at(60_000);
    assert!(bench.sent_to_all().is_empty());
}

#[test]
fn r20_cancelled_while_it_is_asked_what_stands_in_the_way() {
    let mut bench = settled();
    let operation = bench.try_acquire("orders");
    bench.reply_all(NIL);
    bench.nothing_told();
    bench.cancel(operation);
    assert_eq!(bench.acquire_failed().kind, AcquireErrorKind::Cancelled);
    // The answers that are outstanding are for nobody, and nothing gets out of step.
    bench.reply_all(ZERO);
    bench.reply(0, b":77\r\n");
    bench.reply(1, b":77\r\n");
    bench.forget();
    bench.hold("invoices");
}

#[test]
fn r20_granted_but_not_polled_is_released_and_the_event_replaced() {
    let mut bench = settled();
    let operation = bench.try_acquire("orders");
    bench.forget();
    bench.feed(0, OK);
    bench.feed(1, OK);
    bench.client.cancel(operation, bench.now);
    bench.drain();
    assert_eq!(bench.acquire_failed().kind, AcquireErrorKind::Cancelled);
    assert_eq!(bench.sent_to_all(), ["DELEX orders IFEQ T1"]);
    bench.reply_all(ONE);
}

#[test]
fn r20_granted_not_polled_and_expired_meanwhile_says_one_thing_only() {
    let mut bench = settled();
    let operation = bench.try_acquire("orders");
    bench.forget();
    bench.feed(0, OK);
    bench.feed(1, OK);
    bench.stopped_until(20_000);
    bench.client.cancel(operation, bench.now);
    bench.drain();
    assert_eq!(bench.acquire_failed().kind, AcquireErrorKind::Cancelled);
}

#[test]
fn r20_the_attempts_are_told_of_a_grant_that_was_taken_back() {
    let mut bench = Bench::with(3, |config| config.retry_delay(ms(50), ms(50)));
    let request = bench.request("orders");
    let operation = bench.ask(request);
    bench.reply_all(NIL);
    bench.reply_all(ZERO);
    bench.at(50);
    bench.feed(0, OK);
    bench.feed(1, OK);
    bench.client.cancel(operation, bench.now);
    bench.drain();
    let error = bench.acquire_failed();
    assert_eq!((error.attempts, error.elapsed), (2, ms(50)));
}

#[test]
fn r20_polled_cancel_does_nothing_nor_does_one_of_an_unknown_operation() {
    let mut bench = settled();
    let operation = bench.try_acquire("orders");
    bench.reply_all(OK);
    let (lock, _) = bench.acquired();
    bench.forget();
    bench.cancel(operation);
    bench.cancel(operation);
    bench.nothing_told();
    assert!(bench.is_held(lock) && bench.sent_to_all().is_empty());
}

#[test]
fn r20_a_cancelled_extension_ends_and_its_confirmations_still_count() {
    let mut bench = settled();
    let lock = bench.hold("orders");
    bench.at(3_000);
    let operation = bench.extend(lock, 10_000);
    bench.cancel(operation);
    assert_eq!(bench.extend_failed().kind, ExtendErrorKind::Cancelled);
    bench.reply(0, OK);
    bench.reply(1, OK);
    assert_eq!(bench.deadline(lock), 12_898);
    let told = bench.told();
    assert!(!told.iter().any(|event| matches!(event, Event::Extended { .. })), "{told:?}");
}

#[test]
fn r20_a_cancelled_connect_ends() {
    let mut bench = Bench::cold(3);
    let operation = bench.client.connect(ms(5_000), bench.now);
    bench.cancel(operation);
    assert!(matches!(bench.one(), Event::ConnectFailed { error, .. } if error.closed));
    (0..3).for_each(|node| bench.up(node));
    bench.nothing_told();
}

#[test]
fn r20_cancel_with_the_connection_broken_between_write_and_reply() {
    let mut bench = settled();
    let operation = bench.try_acquire("orders");
    bench.cut(0);
    bench.cancel(operation);
    bench.acquire_failed();
    bench.forget();
    bench.try_acquire("orders");
    bench.up(0);
    assert_eq!(bench.sent(0), ["DELEX orders IFEQ T1", "SET orders T2 NX PX 10000"]);
}

#[test]
fn r20_close_releases_what_is_held_calls_off_what_is_pending_and_closes_all_connections() {
    let mut bench = settled();
    let lock = bench.hold("orders");
    let extension = bench.extend(lock, 20_000);
    let acquire = bench.try_acquire("invoices");
    bench.forget();
    bench.client.close(bench.now);
    bench.drain();
    let told = bench.told();
    assert!(told.contains(&Event::Lost { lock, reason: LostReason::Closed }), "{told:?}");
    let closed = |event: &Event| match event {
        Event::ExtendFailed { operation, error, .. } => {
            *operation == extension && error.kind == ExtendErrorKind::Closed
        }
        Event::AcquireFailed { operation, error } => {
            *operation == acquire && error.kind == AcquireErrorKind::Closed
        }
        _ => false,
    };
    assert_eq!(told.iter().filter(|event| closed(event)).count(), 2, "{told:?}");
    assert!(!bench.client.is_closed());
    let sent = bench.sent_to_all();
    assert!(sent.contains(&"DELEX orders IFEQ T1".into()) && sent.contains(&"DELEX invoices IFEQ T2".into()));
    for node in 0..3 {
        bench.reply(node, b"+OK\r\n+OK\r\n:1\r\n:1\r\n");
    }
    assert_eq!(bench.told(), [Event::Closed]);
    assert!(bench.client.is_closed());
    assert!((0..3).all(|node| bench.disconnects(node) == 1));
    assert_eq!(bench.client.node(node(0)).unwrap().state, NodeState::Closed);
}

#[test]
fn r20_close_does_not_wait_for_silent_nodes_longer_than_a_node_timeout_nor_for_those_away() {
    let mut bench = settled();
    bench.hold("orders");
    bench.cut(0);
    bench.client.close(bench.now);
    bench.drain();
    bench.reply(1, ONE);
    bench.at(1_499);
    assert!(!bench.client.is_closed());
    bench.at(1_500);
    assert!(bench.client.is_closed());
    assert_eq!(bench.told().last(), Some(&Event::Closed));

    let mut bench = Bench::cold(3);
    bench.client.close(bench.now);
    bench.drain();
    assert!(bench.client.is_closed(), "nothing to release");
    assert_eq!(bench.one(), Event::Closed);
}

#[test]
fn r20_close_ends_with_a_last_answer_that_makes_its_node_unusable() {
    for last in [&b"-LOADING Redis is loading the dataset in memory\r\n"[..], b"+huh\r\n", b"garbage"] {
        let mut bench = settled();
        bench.hold("orders");
        bench.client.close(bench.now);
        bench.drain();
        bench.reply(0, ONE);
        bench.reply(1, ONE);
        bench.reply(2, last);
        bench.at(1_500);
        assert_eq!(bench.told().last(), Some(&Event::Closed));
        assert!((0..3).all(|node| bench.disconnects(node) == 1));
        bench.at(60_000);
        assert_eq!(bench.client.node(node(2)).unwrap().state, NodeState::Closed);
        assert_eq!(bench.client.poll_timeout(), None);
        assert!(bench.client.is_idle());
    }
}

#[test]
fn r20_close_releases_a_held_lock_though_an_unsent_attempt_ends_first() {
    let mut bench = settled();
    let first = bench.hold("first");
    let lock = bench.hold("orders");
    bench.release(first);
    bench.reply_all(ONE);
    bench.released();
    bench.forget();
    // It takes the place of the first one, and is not drained.
    let request = bench.request("invoices");
    bench.client.acquire(request, bench.now);
    bench.client.close(bench.now);
    bench.drain();
    assert_eq!(bench.sent_to_all(), ["DELEX orders IFEQ T2"]);
    assert!(bench.told().contains(&Event::Lost { lock, reason: LostReason::Closed }));
}

#[test]
fn r20_a_pending_release_is_answered_by_what_it_learns_before_the_close() {
    let mut bench = settled();
    let lock = bench.hold("orders");
    bench.release(lock);
    bench.client.close(bench.now);
    bench.drain();
    bench.reply_all(ONE);
    let told = bench.told();
    assert!(matches!(&told[0], Event::Released { outcome: ReleaseOutcome::Released, .. }), "{told:?}");
}

#[test]
fn r20_a_closed_client_says_so_to_everything() {
    let mut bench = settled();
    let lock = bench.hold("orders");
    bench.client.close(bench.now);
    bench.drain();
    let extended = bench.client.extend(lock, ms(5_000), bench.now);
    assert!(matches!(extended, Err(ExtendRefused::Because(ExtendErrorKind::Closed))), "{extended:?}");
    bench.reply_all(ONE);
    bench.told();
    bench.try_acquire("invoices");
    assert_eq!(bench.acquire_failed().kind, AcquireErrorKind::Closed);
    bench.client.connect(ms(100), bench.now);
    bench.drain();
    assert!(matches!(bench.one(), Event::ConnectFailed { error, .. } if error.closed));
    assert!(bench.client.release(lock, bench.now).is_err());
    bench.client.close(bench.now);
    bench.at(60_000);
    bench.nothing_told();
    assert!(!bench.is_wanted(0));
}

#[test]
fn r20_b41_thousands_of_quick_locks_leave_nothing_behind() {
    let mut bench = settled();
    for round in 0..3_000_u64 {
        let request = bench.request("orders").ttl(ms(1_000)).auto_renew(ms(60_000));
        let lock = bench.hold_by(request);
        bench.release(lock);
        bench.reply_all(ONE);
        bench.released();
        bench.sent_to_all();
        bench.log.clear();
        (0..3).for_each(|node| drop(bench.payloads(node)));
        bench.at(1_000 + round);
    }
    assert!(bench.client.is_idle());
    assert_eq!(bench.client.poll_timeout(), None);
}
