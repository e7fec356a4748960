//! Release: its forms and its answers, R18 and R19.

use crate::bench::*;
use redlock_core::{AcquireRequest, Event, LostReason, ReleaseOutcome};

const DIALECTS: [(Says, &str, &str); 5] = [
    (REDIS_7, "EVAL release 1 orders T1", "EVAL extend 1 orders T1 5000"),
    (REDIS_8_4, "DELEX orders IFEQ T1", "SET orders T1 IFEQ T1 PX 5000"),
    (VALKEY_8_1, "EVAL release 1 orders T1", "SET orders T1 IFEQ T1 PX 5000"),
    (VALKEY_9, "DELIFEQ orders T1", "SET orders T1 IFEQ T1 PX 5000"),
    (Says::NoHello, "EVAL release 1 orders T1", "EVAL extend 1 orders T1 5000"),
];

fn yes(sent: &str) -> &'static [u8] {
    if sent.starts_with("SET") { OK } else { ONE }
}

#[test]
fn r18_native_where_the_server_can_else_the_whole_script() {
    for (says, release, extend) in DIALECTS {
        let mut bench = Bench::of(3, says);
        let lock = bench.hold("orders");
        bench.extend(lock, 5_000);
        assert_eq!(bench.sent_to_all(), [extend], "{says:?}");
        bench.reply_all(yes(extend));
        bench.extended();
        bench.release(lock);
        assert_eq!(bench.sent_to_all(), [release], "{says:?}");
        bench.reply_all(ONE);
        assert_eq!(bench.released(), ReleaseOutcome::Released);
    }
}

#[test]
fn r18_b10_there_is_no_unconditional_delete_no_read_before_it_and_no_script_cache() {
    for (says, ..) in DIALECTS {
        let mut bench = Bench::of(3, says);
        let lock = bench.hold("orders");
        bench.extend(lock, 5_000);
        bench.release(lock);
        for node in 0..3 {
            for command in bench.sent(node) {
                let name = command.split(' ').next().unwrap().to_string();
                assert!(["SET", "EVAL", "DELEX", "DELIFEQ"].contains(&name.as_str()), "{command}");
                assert!(command.contains("T1"), "{command}");
            }
        }
    }
}

#[test]
fn r18_to_all_nodes_also_those_that_refused_or_never_answered() {
    let mut bench = Bench::new(5);
    bench.try_acquire("orders");
    (0..3).for_each(|node| bench.reply(node, OK));
    bench.reply(3, NIL);
    let (lock, _) = bench.acquired();
    bench.forget();
    bench.release(lock);
    assert_eq!(bench.sent_to_all(), ["DELEX orders IFEQ T1"]);
}

#[test]
fn r18_a_native_form_that_is_refused_is_followed_by_the_script_in_the_same_operation() {
    for refusal in [
        &b"-ERR unknown command 'DELEX', with args beginning with: 'orders' 'IFEQ' \r\n"[..],
        b"-ERR syntax error\r\n",
        b"-NOPERM User u has no permissions to run the 'delex' command\r\n",
    ] {
        let mut bench = Bench::new(3);
        let lock = bench.hold("orders");
        bench.release(lock);
        bench.forget();
        bench.reply(0, refusal);
        assert_eq!(bench.sent(0), ["EVAL release 1 orders T1"]);
        bench.nothing_told();
        bench.reply(0, ONE);
        bench.reply(1, ONE);
        assert_eq!(bench.released(), ReleaseOutcome::Released);
    }
}

#[test]
fn r18_a_node_without_a_connection_gets_it_after_the_handshake() {
    let mut bench = Bench::new(3);
    bench.at(1_000);
    let lock = bench.hold("orders");
    bench.cut(1);
    bench.forget();
    bench.release(lock);
    assert_eq!(bench.sent(0), ["DELEX orders IFEQ T1"]);
    bench.up(1);
    assert_eq!(bench.sent(1), ["DELEX orders IFEQ T1"]);
    bench.reply(1, ONE);
    bench.reply(0, ONE);
    assert_eq!(bench.released(), ReleaseOutcome::Released);
}

#[test]
fn r18_several_keys_by_script_deleted_where_any_was_ours() {
    let mut bench = Bench::new(3);
    bench.ask(AcquireRequest::all(["a", "b"], [3; 16]));
    let sent = bench.sent_to_all();
    assert!(sent[0].starts_with("EVAL ") && sent[0].ends_with(" 2 a b T1 10000"), "{sent:?}");
    bench.reply_all(ONE);
    let (lock, _) = bench.acquired();
    bench.release(lock);
    let sent = bench.sent_to_all();
    assert!(sent[0].starts_with("EVAL ") && sent[0].ends_with(" 2 a b T1"), "{sent:?}");
    bench.reply(0, b":2\r\n");
    bench.reply(1, b":1\r\n");
    assert_eq!(bench.released(), ReleaseOutcome::Released);
}

#[test]
fn r19_released_with_the_quorums_answer() {
    let mut bench = Bench::new(5);
    let lock = bench.hold("orders");
    bench.release(lock);
    bench.reply(0, ONE);
    bench.reply(1, ZERO);
    bench.reply(2, ONE);
    bench.nothing_told();
    bench.reply(3, ONE);
    assert_eq!(bench.released(), ReleaseOutcome::Released);
}

#[test]
fn r19_b10_expired_past_the_local_deadline() {
    let mut bench = Bench::new(3);
    let request = bench.request("orders").ttl(ms(1_000));
    let lock = bench.hold_by(request);
    bench.at(988);
    bench.told();
    bench.release(lock);
    assert_eq!(bench.released(), ReleaseOutcome::Expired);
    assert_eq!(bench.sent_to_all(), ["DELEX orders IFEQ T1"], "once, by its loss");
}

#[test]
fn r19_expired_where_the_deadline_comes_before_the_quorums_answer() {
    let mut bench = Bench::new(3);
    let request = bench.request("orders").ttl(ms(1_000));
    let lock = bench.hold_by(request);
    bench.at(980);
    bench.told();
    bench.release(lock);
    bench.reply(0, ONE);
    bench.nothing_told();
    bench.at(988);
    assert_eq!(bench.released(), ReleaseOutcome::Expired, "the deadline wins a tie");
    bench.reply(1, ONE);
    bench.nothing_told();
}

#[test]
fn r19_not_mine_where_the_token_was_gone_before_the_deadline() {
    let mut bench = Bench::new(3);
    let lock = bench.hold("orders");
    bench.release(lock);
    bench.reply(0, ZERO);
    bench.nothing_told();
    bench.reply(1, ZERO);
    assert_eq!(bench.released(), ReleaseOutcome::NotMine);

    let lock = bench.hold_again();
    bench.extend(lock, 10_000);
    bench.reply(0, NIL);
    bench.reply(1, NIL);
    let told = bench.told();
    assert!(told.contains(&Event::Lost { lock, reason: LostReason::TokenGone }), "{told:?}");
    bench.release(lock);
    assert_eq!(bench.released(), ReleaseOutcome::NotMine);
}

impl Bench {
    fn hold_again(&mut self) -> redlock_core::LockId {
        self.reply(2, ZERO);
        self.forget();
        self.hold("invoices")
    }
}

/// Found by `cargo torture`: a node that never had the lock, and one whose first answer was lost, are no proof of a loss.
#[test]
fn r19_not_there_says_nothing_where_an_earlier_releases_answer_was_lost() {
    let mut bench = Bench::new(3);
    bench.at(1_000);
    bench.try_acquire("orders");
    (0..2).for_each(|node| bench.reply(node, OK));
    bench.reply(2, NIL);
    let (lock, _) = bench.acquired();
    bench.forget();
    bench.release(lock);
    assert_eq!(bench.sent_to_all(), ["DELEX orders IFEQ T1"]);
    // It has deleted the key, and its answer is lost.
    bench.cut(0);
    bench.up(0);
    assert_eq!(bench.sent(0), ["DELEX orders IFEQ T1"]);
    bench.reply(0, ZERO);
    bench.reply(2, ZERO);
    bench.nothing_told();
    bench.reply(1, ONE);
    assert!(matches!(bench.released(), ReleaseOutcome::Unknown { .. }));
}

#[test]
fn r19_unknown_with_the_time_by_which_it_is_gone() {
    let mut bench = Bench::new(3);
    let lock = bench.hold("orders");
    bench.at(2_000);
    bench.release(lock);
    bench.reply(0, ONE);
    bench.at(2_499);
    bench.nothing_told();
    bench.at(2_500);
    // n1 and n2 last answered at 0: their keys, set for 10 s, are gone at 10 001.
    assert_eq!(bench.released(), ReleaseOutcome::Unknown { gone_by: at(10_001) });
}

#[test]
fn r19_unknown_counts_from_now_where_something_unanswered_may_still_run() {
    let mut bench = Bench::new(3);
    let lock = bench.hold("orders");
    bench.extend(lock, 20_000);
    bench.reply(1, OK);
    bench.at(2_000);
    bench.told();
    bench.release(lock);
    bench.reply(1, ONE);
    bench.at(2_500);
    assert_eq!(bench.released(), ReleaseOutcome::Unknown { gone_by: at(22_501) });
}

#[test]
fn r19_unknown_at_once_where_nobody_can_answer_any_more() {
    let mut bench = Bench::new(3);
    let lock = bench.hold("orders");
    (0..3).for_each(|node| bench.cut(node));
    bench.told();
    bench.release(lock);
    assert!(matches!(bench.released(), ReleaseOutcome::Unknown { .. }));
}

#[test]
fn r19_one_round_no_loops() {
    let mut bench = Bench::new(3);
    let lock = bench.hold("orders");
    bench.release(lock);
    bench.forget();
    bench.reply_all(b"-ERR oops\r\n");
    assert!(matches!(bench.released(), ReleaseOutcome::Unknown { .. }));
    bench.at(60_000);
    assert!(bench.sent_to_all().is_empty());
}

#[test]
fn r19_r14_the_time_is_the_node_timeout_of_the_locks_own_ttl() {
    let mut bench = Bench::new(3);
    let request = bench.request("orders").ttl(ms(4_000)); // node timeout 200 ms
    let lock = bench.hold_by(request);
    bench.extend(lock, 60_000);
    bench.reply(0, OK);
    bench.at(199);
    bench.nothing_told();
    bench.at(200);
    bench.extend_failed();
    bench.release(lock);
    bench.at(399);
    bench.nothing_told();
    bench.at(400);
    assert!(matches!(bench.released(), ReleaseOutcome::Unknown { .. }));
}

#[test]
fn r19_b51_not_held_from_the_first_call_on_and_a_second_release_is_harmless() {
    let mut bench = Bench::new(3);
    let lock = bench.hold("orders");
    let operation = bench.release(lock);
    assert!(!bench.is_held(lock));
    assert!(bench.client.release(lock, bench.now).is_err());
    bench.cancel(operation);
    assert!(matches!(bench.released(), ReleaseOutcome::Unknown { .. }));
    assert!(bench.client.release(lock, bench.now).is_err());
    assert_eq!(bench.sent_to_all(), ["DELEX orders IFEQ T1"], "called off or not, it is sent once");
    bench.reply_all(ONE);
    assert!(bench.client.is_idle());
}

#[test]
fn r19_a_lost_lock_is_released_once() {
    let mut bench = Bench::new(3);
    let lock = bench.hold("orders");
    bench.at(9_898);
    assert!(matches!(bench.told().as_slice(), [Event::Expiring { .. }, Event::Lost { .. }]));
    bench.release(lock);
    assert_eq!(bench.released(), ReleaseOutcome::Expired);
    assert!(bench.client.release(lock, bench.now).is_err());
    bench.drain();
    bench.nothing_told();
}
