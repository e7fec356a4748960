//! What a lost attempt, or a lock that has ended, leaves behind: R7.

use crate::bench::*;
use redlock_core::{AcquireErrorKind, DisconnectReason, Event, LostReason, ReleaseOutcome};

/// Three nodes whose connections have stood for a second, so that a broken one is made anew at once.
fn settled() -> Bench {
    let mut bench = Bench::new(3);
    bench.at(1_000);
    bench
}

#[test]
fn r7_b19_a_lost_attempt_releases_the_refused_the_failed_and_the_silent_at_once() {
    let mut bench = settled();
    let request = bench.request("orders");
    bench.ask(request);
    bench.forget();
    bench.reply(0, NIL);
    assert!(bench.sent(0).is_empty(), "not decided yet");
    bench.reply(1, b"-ERR oops\r\n");
    // Decided: the release goes out in the same drain, and the next attempt has to wait.
    assert_eq!(bench.sent_to_all(), ["DELEX orders IFEQ T1"]);
    assert_eq!(bench.client.now(), at(1_000));
    bench.nothing_told();
}

#[test]
fn r7_b19_the_node_that_granted_is_released_too_and_a_clean_up_that_fails_changes_no_error() {
    let mut bench = settled();
    let request = bench.request("orders").ttl(ms(30_000)).try_once();
    bench.ask(request);
    bench.forget();
    bench.reply(0, OK);
    bench.reply(2, NIL);
    bench.at(2_000); // n1 executes, its answer is lost
    assert_eq!(bench.sent(0), ["DELEX orders IFEQ T1"]);
    assert_eq!(bench.sent(1), ["DELEX orders IFEQ T1"]);
    assert_eq!(bench.sent(2)[0], "DELEX orders IFEQ T1");
    let kind = bench.acquire_failed().kind;
    bench.reply(0, b"-ERR oops\r\n");
    bench.cut(1);
    bench.nothing_told();
    assert_eq!(kind, AcquireErrorKind::Mixed);
}

#[test]
fn r7_nodes_that_were_sent_nothing_get_nothing() {
    let mut bench = Bench::cold(3);
    bench.up(0);
    bench.forget();
    bench.try_acquire("orders");
    bench.at(500);
    assert_eq!(bench.sent(0), ["SET orders T1 NX PX 10000", "DELEX orders IFEQ T1"]);
    bench.up(1);
    bench.up(2);
    assert!(bench.sent(1).is_empty() && bench.sent(2).is_empty());
}

#[test]
fn r7_an_attempt_called_off_before_the_drain_sends_nothing() {
    let mut bench = settled();
    let request = bench.request("orders");
    let operation = bench.client.acquire(request, bench.now);
    bench.client.cancel(operation, bench.now);
    bench.drain();
    assert!(bench.sent_to_all().is_empty());
    assert_eq!(bench.acquire_failed().kind, AcquireErrorKind::Cancelled);
    assert!(bench.client.is_idle());
}

#[test]
fn r7_the_release_goes_out_on_the_connection_of_its_set() {
    let mut bench = settled();
    let connection = bench.connection(2);
    bench.try_acquire("orders");
    bench.reply(0, NIL);
    bench.reply(1, NIL);
    assert_eq!(bench.connection(2), connection);
    assert_eq!(bench.sent(2), ["SET orders T1 NX PX 10000", "DELEX orders IFEQ T1"]);
    assert_eq!(bench.disconnects(2), 0);
    // The silent node answers late, in order.
    bench.reply(2, OK);
    bench.reply(2, ONE);
    bench.reply(0, b":0\r\n:1\r\n");
    bench.reply(1, b":0\r\n:1\r\n");
    bench.acquire_failed();
    assert!(bench.client.is_idle());
}

#[test]
fn r7_broken_with_the_set_unanswered_the_release_is_first_after_the_handshake_before_any_new_set() {
    let mut bench = settled();
    bench.try_acquire("orders");
    bench.cut(2);
    bench.reply(0, NIL);
    bench.nothing_told();
    bench.reply(1, NIL);
    assert!(bench.is_wanted(2), "it had stood");
    bench.forget();
    // A rival attempt of the same client is under way when the handshake ends.
    bench.try_acquire("invoices");
    bench.up(2);
    assert_eq!(bench.sent(2), ["DELEX orders IFEQ T1", "SET invoices T2 NX PX 10000"]);
}

#[test]
fn r7_broken_before_the_decision_the_same_holds_for_a_silent_node() {
    let mut bench = settled();
    bench.try_acquire("orders");
    bench.cut(2);
    bench.up(2); // a new connection, the attempt is still undecided
    assert!(bench.sent(2).is_empty(), "a SET that was handed out is not sent again");
    bench.reply(0, NIL);
    assert_eq!(bench.sent(2), ["DELEX orders IFEQ T1"]);
}

#[test]
fn r7_it_is_kept_over_several_reconnects_until_it_is_answered() {
    let mut bench = settled();
    let request = bench.request("orders").ttl(ms(100)).try_once();
    bench.ask(request);
    bench.cut(2);
    bench.reply(0, NIL);
    bench.reply(1, NIL);
    for node in [0, 1] {
        bench.reply(node, ZERO);
        bench.reply(node, b":90\r\n");
    }
    bench.acquire_failed();
    for round in 1..6 {
        // Each connection stands for a while, long after the ttl, and breaks with the release unanswered.
        bench.up(2);
        assert_eq!(bench.sent(2), ["DELEX orders IFEQ T1"], "connection {round}");
        bench.at(1_000 + 1_500 * round);
        assert!(!bench.client.is_idle());
        bench.cut(2);
    }
    bench.up(2);
    bench.reply(2, ZERO);
    assert!(bench.client.is_idle());
    bench.cut(2);
    bench.until_wanted(2);
    bench.up(2);
    assert!(bench.sent(2).is_empty());
}

#[test]
fn r7_where_all_was_answered_it_is_dropped_one_ttl_and_a_millisecond_after_the_last_answer() {
    for (back_at, sent) in [(1_150, true), (1_161, false)] {
        let mut bench = settled();
        bench.at(1_010);
        let request = bench.request("orders").ttl(ms(100)).try_once();
        bench.ask(request);
        bench.at(1_015);
        bench.reply(2, OK);
        bench.reply(0, NIL);
        bench.at(1_018);
        bench.cut(2);
        bench.reply(1, NIL);
        for node in [0, 1] {
            bench.reply(node, ZERO);
            bench.reply(node, b":90\r\n");
        }
        bench.acquire_failed();
        // Its last answer was at 1015: the key is gone by 1116.
        bench.at(1_115);
        assert!(!bench.client.is_idle());
        if sent {
            bench.up(2);
            assert_eq!(bench.sent(2), ["DELEX orders IFEQ T1"]);
        } else {
            bench.at(1_116);
            assert!(bench.client.is_idle());
            bench.at(back_at);
            bench.up(2);
            assert!(bench.sent(2).is_empty());
        }
    }
}

#[test]
fn r7_while_a_lock_is_held_nothing_of_it_is_released() {
    let mut bench = settled();
    bench.try_acquire("orders");
    bench.reply(0, OK);
    bench.cut(2);
    bench.reply(1, OK);
    let (lock, _) = bench.acquired();
    bench.forget();
    bench.up(2);
    assert!(bench.sent(2).is_empty(), "its SET may still run, and then protects the lock");
    bench.extend(lock, 10_000);
    assert_eq!(bench.sent_to_all(), ["SET orders T1 IFEQ T1 PX 10000"]);
    bench.reply(2, NIL);
    bench.reply(0, OK);
    bench.reply(1, OK);
    bench.at(2_000);
    assert!(bench.is_held(lock));
    // Ended: the release goes everywhere, also to the node whose connection broke.
    bench.forget();
    bench.release(lock);
    for node in 0..3 {
        assert_eq!(bench.sent(node).last().unwrap(), "DELEX orders IFEQ T1");
    }
}

#[test]
fn r7_released_while_a_node_is_away_with_its_set_unanswered() {
    let mut bench = settled();
    bench.try_acquire("orders");
    bench.reply(0, OK);
    bench.cut(2);
    bench.reply(1, OK);
    let (lock, _) = bench.acquired();
    bench.release(lock);
    bench.reply(0, ONE);
    bench.reply(1, ONE);
    assert_eq!(bench.released(), ReleaseOutcome::Released);
    bench.forget();
    bench.try_acquire("orders");
    bench.up(2);
    assert_eq!(bench.sent(2), ["DELEX orders IFEQ T1", "SET orders T2 NX PX 10000"]);
    assert!(bench.client.lock(lock).is_some());
    bench.reply(2, ONE);
    assert!(bench.client.lock(lock).is_none());
}

#[test]
fn r7_broken_with_an_extension_unanswered() {
    let mut bench = settled();
    let lock = bench.hold("orders");
    bench.extend(lock, 10_000);
    bench.cut(2);
    bench.reply(0, OK);
    bench.reply(1, OK);
    bench.extended();
    bench.release(lock);
    bench.reply(0, ONE);
    bench.reply(1, ONE);
    bench.released();
    bench.forget();
    // Long after the ttl it is still owed: the extension may run at any time.
    bench.at(60_000);
    bench.until_wanted(2);
    bench.up(2);
    assert_eq!(bench.sent(2), ["DELEX orders IFEQ T1"]);
    bench.reply(2, ONE);
    assert!(bench.client.is_idle());
}

#[test]
fn r7_broken_with_a_repair_unanswered() {
    let mut bench = settled();
    let lock = bench.hold("orders");
    bench.extend(lock, 10_000);
    bench.reply(2, NIL);
    bench.reply(0, OK);
    bench.reply(1, OK);
    assert_eq!(bench.sent(2), ["SET orders T1 IFEQ T1 PX 10000", "SET orders T1 NX PX 10000"]);
    bench.told();
    bench.cut(2);
    bench.release(lock);
    bench.reply(0, ONE);
    bench.reply(1, ONE);
    bench.released();
    bench.at(60_000);
    bench.until_wanted(2);
    bench.up(2);
    assert_eq!(bench.sent(2), ["DELEX orders IFEQ T1"]);
}

#[test]
fn r7_broken_with_the_release_unanswered_it_is_sent_again() {
    let mut bench = settled();
    let lock = bench.hold("orders");
    bench.forget();
    bench.release(lock);
    bench.reply(0, ONE);
    bench.reply(1, ONE);
    bench.released();
    assert_eq!(bench.sent(2), ["DELEX orders IFEQ T1"]);
    bench.cut(2);
    bench.up(2);
    assert_eq!(bench.sent(2), ["DELEX orders IFEQ T1"]);
    bench.reply(2, ZERO);
    assert!(bench.client.is_idle());
}

#[test]
fn r7_r23_a_release_that_meets_a_loading_server_is_sent_again() {
    let mut bench = settled();
    let lock = bench.hold("orders");
    bench.forget();
    bench.release(lock);
    bench.reply(2, b"-LOADING Redis is loading the dataset in memory\r\n");
    assert!(!bench.is_connected(2));
    bench.up(2);
    assert_eq!(bench.sent(2), ["DELEX orders IFEQ T1"]);
}

#[test]
fn r7_a_lost_lock_owes_its_release_to_a_node_that_is_away() {
    let mut bench = settled();
    bench.try_acquire("orders");
    bench.reply(0, OK);
    bench.reply(1, OK);
    bench.cut(2);
    let (lock, _) = bench.acquired();
    bench.forget();
    bench.cut_for(2, DisconnectReason::Refused("refused".into()));
    bench.at(10_898);
    let told = bench.told();
    assert!(
        matches!(told.as_slice(), [Event::Expiring { .. }, Event::Lost { reason: LostReason::Expired, .. }]),
        "{told:?}"
    );
    assert_eq!(bench.sent(0), ["DELEX orders IFEQ T1"]);
    bench.until_wanted(2);
    bench.up(2);
    assert_eq!(bench.sent(2), ["DELEX orders IFEQ T1"]);
    assert!(!bench.is_held(lock));
}

#[test]
fn r7_r8_the_reply_after_the_decision_belongs_to_the_old_token() {
    let mut bench = Bench::with(3, |config| config.retry_delay(ms(50), ms(50)));
    bench.at(1_000);
    let request = bench.request("orders");
    bench.ask(request);
    bench.reply(0, NIL);
    bench.reply(1, NIL);
    bench.at(1_050);
    bench.forget();
    // n2 was slow: it grants attempt 1, deletes it again, and grants attempt 2.
    bench.reply(2, b"+OK\r\n:1\r\n+OK\r\n");
    bench.reply(0, b":0\r\n+OK\r\n");
    bench.acquired();
}

#[test]
fn b28_answers_of_attempts_called_off_never_reach_the_wrong_operation() {
    let mut bench = Bench::new(1);
    let a = bench.try_acquire("a");
    bench.cancel(a);
    bench.acquire_failed();
    let lock = bench.hold_after("b");
    let extension = bench.extend(lock, 5_000);
    assert_eq!(bench.told().len(), 1, "the deadline moved");
    // The answers so far: SET a, DELEX a, SET b were OK, 1, OK. Now the extension is refused.
    bench.reply(0, NIL);
    let told = bench.told();
    assert!(
        told.iter()
            .any(|event| matches!(event, Event::ExtendFailed { operation, .. } if *operation == extension))
    );
    assert!(!bench.is_held(lock));
}

impl Bench {
    /// Acquires on the only node, behind a SET and its release that are not answered yet.
    fn hold_after(&mut self, resource: &str) -> redlock_core::LockId {
        self.try_acquire(resource);
        self.reply(0, OK); // the other SET
        self.nothing_told();
        self.reply(0, ONE); // its release
        self.nothing_told();
        self.reply(0, OK);
        self.acquired().0
    }
}
