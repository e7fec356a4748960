//! A holder that is told by its nodes when its keys change: a push is a hint, and only reads lose the lock.

use crate::bench::*;
use redlock_core::{Event, LockId, LostReason};

const PUSH: &[u8] = b">2\r\n$10\r\ninvalidate\r\n*1\r\n$6\r\norders\r\n";
const PUSH_ALL: &[u8] = b">2\r\n$10\r\ninvalidate\r\n_\r\n";
/// Of a value of 40 bytes one more is read.
const ASK: [&str; 2] = ["CLIENT CACHING YES", "GETRANGE orders 0 40"];
const GONE: &[u8] = b"+OK\r\n$0\r\n\r\n";
const FOREIGN: &[u8] = b"+OK\r\n$7\r\nforeign\r\n";

/// The node says that it has the token.
fn ours(bench: &mut Bench, node: u8) {
    let value = bulk(&bench.token(1));
    bench.reply(node, format!("+OK\r\n{value}").as_bytes());
}

/// A lock for 10 s over three nodes, which all have confirmed it and were asked to tell.
fn asked(bench: &mut Bench) -> LockId {
    let request = bench.request("orders").watch_loss();
    bench.ask(request);
    assert_eq!(bench.sent_to_all(), ["SET orders T1 NX PX 10000"]);
    bench.reply_all(OK);
    for node in 0..3 {
        assert_eq!(bench.sent(node), ["CLIENT TRACKING ON OPTIN", ASK[0], ASK[1]]);
    }
    let (lock, _) = bench.acquired();
    lock
}

/// The same, and all are registered.
fn watching(bench: &mut Bench) -> LockId {
    let lock = asked(bench);
    for node in 0..3 {
        bench.reply(node, OK);
        ours(bench, node);
    }
    lock
}

fn bench() -> Bench {
    Bench::with(3, |config| config.wake_ups(true))
}

fn lost(bench: &mut Bench, lock: LockId) {
    let told = bench.told();
    let is_loss =
        matches!(&told[..], [Event::Lost { lock: of, reason: LostReason::TokenGone }] if *of == lock);
    assert!(is_loss, "{told:?}");
    assert!(!bench.is_held(lock));
}

#[test]
fn reads_of_a_blocking_share_lose_the_lock_at_once() {
    let mut bench = bench();
    let lock = watching(&mut bench);
    bench.at(3_000);
    for node in 0..3 {
        bench.reply(node, PUSH);
        assert_eq!(bench.sent(node), ASK, "tracking is asked for once per connection");
    }
    bench.nothing_told();
    bench.reply(0, GONE);
    bench.nothing_told();
    assert_eq!(bench.deadline(lock), 9_898, "no deadline moves");
    bench.reply(2, FOREIGN);
    lost(&mut bench, lock);
    assert_eq!(bench.sent(0), ["DELEX orders IFEQ T1"]);
    assert_eq!(bench.sent(1), ["DELEX orders IFEQ T1"]);
    // What comes late is of nobody's lock.
    bench.reply(1, GONE);
    bench.nothing_told();
}

#[test]
fn pushes_alone_lose_nothing() {
    let mut bench = bench();
    let lock = watching(&mut bench);
    for _ in 0..5 {
        for node in 0..3 {
            bench.reply(node, PUSH);
            bench.reply(node, PUSH);
            assert_eq!(bench.sent(node), ASK, "one read at a time");
            // The second push may be of a change behind the read.
            ours(&mut bench, node);
            assert_eq!(bench.sent(node), ASK);
            ours(&mut bench, node);
            assert!(bench.sent(node).is_empty());
        }
    }
    bench.nothing_told();
    assert!(bench.is_held(lock));
}

#[test]
fn a_push_for_all_keys_is_for_this_one_too_and_others_are_for_nobody() {
    let mut bench = bench();
    let lock = watching(&mut bench);
    bench.reply_all(b">2\r\n$10\r\ninvalidate\r\n*1\r\n$5\r\nstock\r\n");
    bench.reply_all(b">2\r\n$7\r\nmessage\r\n*1\r\n$6\r\norders\r\n");
    assert!(bench.sent_to_all().is_empty());
    bench.reply_all(PUSH_ALL);
    assert_eq!(bench.sent_to_all(), ASK);
    bench.reply(0, GONE);
    bench.reply(1, GONE);
    lost(&mut bench, lock);
}

#[test]
fn a_key_that_went_before_the_first_read_is_told_by_it() {
    let mut bench = bench();
    let lock = asked(&mut bench);
    bench.reply(0, b"+OK\r\n+OK\r\n$0\r\n\r\n");
    bench.nothing_told();
    bench.reply(1, b"+OK\r\n+OK\r\n$0\r\n\r\n");
    lost(&mut bench, lock);
}

#[test]
fn a_longer_value_that_begins_like_ours_is_not_ours() {
    let mut bench = bench();
    let lock = watching(&mut bench);
    let longer = bulk(&format!("{}x", bench.token(1)));
    for node in 0..2 {
        bench.reply(node, PUSH);
        bench.reply(node, format!("+OK\r\n{longer}").as_bytes());
    }
    lost(&mut bench, lock);
}

#[test]
fn r14_with_less_than_a_quorum_of_supports_left_it_is_not_held() {
    let mut bench = bench();
    let request = bench.request("orders").watch_loss();
    bench.ask(request);
    bench.reply(0, OK);
    bench.reply(1, OK);
    let (lock, _) = bench.acquired();
    bench.forget();
    assert!(bench.sent(2).is_empty(), "one that has said nothing is not asked");
    bench.reply(0, b"+OK\r\n+OK\r\n$0\r\n\r\n");
    // The third node may have it, or not: only one is known to.
    lost(&mut bench, lock);
}

#[test]
fn what_is_known_to_be_gone_is_not_read_again() {
    let mut bench = bench();
    let lock = watching(&mut bench);
    bench.reply(0, PUSH);
    bench.reply(0, GONE);
    bench.forget();
    bench.reply(0, PUSH);
    assert!(bench.sent(0).is_empty());
    assert!(bench.is_held(lock));
}

#[test]
fn r14_a_deadline_does_not_lean_on_a_node_that_has_lost_it() {
    let mut bench = bench();
    let lock = watching(&mut bench);
    let first = bench.client.lock(lock).expect("held").deadline();
    bench.at(1_000);
    bench.extend(lock, 10_000);
    bench.reply(0, OK);
    bench.reply(1, OK);
    let second = bench.extended();
    assert_eq!(second, first.as_millis() + 1_000);
    bench.forget();
    bench.reply(0, PUSH);
    bench.reply(0, GONE);
    assert_eq!(bench.client.lock(lock).expect("held").deadline(), first, "that of the third node");
}

#[test]
fn one_that_refused_the_set_and_one_that_lost_it_are_two_without_it() {
    let mut bench = bench();
    let request = bench.request("orders").watch_loss();
    bench.ask(request);
    bench.reply(2, NIL);
    bench.reply(0, OK);
    bench.reply(1, OK);
    let (lock, _) = bench.acquired();
    bench.reply(0, b"+OK\r\n+OK\r\n$0\r\n\r\n");
    lost(&mut bench, lock);
}

#[test]
fn it_is_read_again_after_our_own_extension_and_after_a_reconnect() {
    let mut bench = bench();
    let lock = watching(&mut bench);
    bench.at(1_000);
    bench.extend(lock, 10_000);
    bench.forget();
    for node in 0..3 {
        bench.reply(node, PUSH);
        bench.reply(node, OK);
        assert_eq!(bench.sent(node), ASK);
        ours(&mut bench, node);
    }
    bench.extended();
    bench.at(2_000);
    bench.reconnect(0);
    assert_eq!(bench.sent(0).last().map(String::as_str), Some(ASK[1]));
    bench.reply(0, b"+OK\r\n+OK\r\n$0\r\n\r\n");
    bench.nothing_told();
    bench.reply(1, PUSH);
    bench.reply(1, GONE);
    lost(&mut bench, lock);
}

#[test]
fn r15_a_node_that_was_repaired_counts_again_once_it_has_confirmed_an_extension() {
    let mut bench = bench();
    let lock = watching(&mut bench);
    bench.reply(0, PUSH);
    bench.reply(0, GONE);
    for seconds in 1..=2 {
        bench.at(1_000 * seconds);
        bench.extend(lock, 10_000);
        bench.forget();
        bench.reply(1, OK);
        bench.reply(2, OK);
        bench.extended();
        bench.reply(0, if seconds == 1 { NIL } else { OK });
        if seconds == 1 {
            assert_eq!(bench.sent(0), ["SET orders T1 NX PX 10000"]);
            bench.reply(0, OK);
        }
        bench.told();
    }
    bench.reply(1, PUSH);
    bench.reply(1, GONE);
    bench.nothing_told();
    assert!(bench.is_held(lock));
}

#[test]
fn nothing_is_asked_without_it_nor_where_wake_ups_are_off_nor_without_resp3() {
    let registers = |sent: &String| sent.starts_with("CLIENT") || sent.starts_with("GETRANGE");
    let mut plain = bench();
    plain.hold("orders");
    let mut off = Bench::with(3, |config| config.wake_ups(false));
    let mut old = Bench::cold_with(3, |config| config.wake_ups(true));
    (0..3).for_each(|node| old.up_as(node, Says::NoHello));
    old.forget();
    for bench in [&mut off, &mut old] {
        let request = bench.request("orders").watch_loss();
        bench.hold_by(request);
    }
    for bench in [&mut plain, &mut off, &mut old] {
        assert!((0..3).all(|node| !bench.sent(node).iter().any(registers)));
    }
}

#[test]
fn a_node_that_refuses_is_asked_once_and_costs_nothing() {
    const REFUSED: &[u8] = b"-NOPERM this user has no permissions to run the 'getrange' command\r\n";
    let mut bench = bench();
    let lock = asked(&mut bench);
    bench.reply_all(&[b"+OK\r\n+OK\r\n", REFUSED].concat());
    bench.reply_all(PUSH);
    bench.at(1_000);
    bench.extend(lock, 10_000);
    bench.forget();
    bench.reply_all(OK);
    bench.extended();
    assert!(bench.sent_to_all().is_empty());
    assert!(bench.is_held(lock));
}
