//! Fencing tokens: the counters, the number that a majority holds, and the raise where they differ.

use crate::bench::*;
use redlock_core::{
    AcquireErrorKind, AcquireRequest, Event, Fence, InvalidArgument, LockId, LostReason, RoundLoss,
};

const SET: &str = "EVAL fenced-set 2 orders orders:fence T1 10000 0";

fn raise(fence: u64) -> String {
    format!("EVAL raise 2 orders orders:fence T1 0 0 {fence}")
}

/// A fenced acquire of one round over so many nodes, its SET sent at 1 000 ms.
fn asked(nodes: u8) -> Bench {
    let mut bench = Bench::new(nodes);
    bench.at(1_000);
    let request = bench.request("orders").try_once().fenced();
    bench.ask(request);
    assert_eq!(bench.sent_to_all(), [SET]);
    bench
}

fn granted(bench: &mut Bench) -> (LockId, u64) {
    match bench.one() {
        Event::Acquired { lock, fence: Some(fence), .. } => {
            assert_eq!(bench.client.lock(lock).unwrap().fence(), Some(fence));
            (lock, fence.get())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_round_trip_where_a_quorum_of_counters_agrees() {
    let mut bench = asked(3);
    bench.reply(0, &counters(&[7]));
    bench.nothing_told();
    bench.reply(1, &counters(&[7]));
    let (lock, fence) = granted(&mut bench);
    assert_eq!(fence, 7);
    assert_eq!(bench.deadline(lock), 1_000 + 9_898);
    assert!(bench.sent_to_all().is_empty(), "no second step");
}

#[test]
fn an_acquire_that_is_not_fenced_has_none() {
    let mut bench = Bench::new(3);
    let request = bench.request("orders").try_once();
    bench.ask(request);
    assert_eq!(bench.sent_to_all(), ["SET orders T1 NX PX 10000"]);
    bench.reply(0, OK);
    bench.reply(1, OK);
    assert!(matches!(bench.one(), Event::Acquired { fence: None, .. }));
}

#[test]
fn counters_that_are_behind_are_raised_before_it_is_held() {
    let mut bench = asked(3);
    bench.reply(0, &counters(&[7]));
    bench.reply(1, &counters(&[1_789_000_000_000_001]));
    bench.nothing_told();
    assert_eq!(bench.sent(0), [raise(1_789_000_000_000_001)], "the one that is behind alone");
    assert!(bench.sent(1).is_empty());
    bench.at(1_100);
    bench.reply(0, ONE);
    let (lock, fence) = granted(&mut bench);
    assert_eq!(fence, 1_789_000_000_000_001);
    assert_eq!(bench.deadline(lock), 10_898, "from the attempt's start, not the raise's");
}

#[test]
fn a_late_grant_does_not_move_the_fence() {
    let mut bench = asked(5);
    for (node, counter) in [(0, 5), (1, 4), (2, 3)] {
        bench.reply(node, &counters(&[counter]));
    }
    assert_eq!(bench.sent(1), [raise(5)]);
    assert_eq!(bench.sent(2), [raise(5)]);
    bench.reply(3, &counters(&[9]));
    bench.nothing_told();
    bench.reply(2, ONE);
    bench.nothing_told();
    bench.reply(1, ONE);
    let (_, fence) = granted(&mut bench);
    assert_eq!(fence, 5);
    bench.reply(4, &counters(&[2]));
    bench.nothing_told();
    assert_eq!(bench.sent(4), [raise(5)], "raised all the same: the next grant finds the counters agreed");
}

/// Its key was gone early on the other nodes, and somebody else was granted this very number there: the model check finds
/// it in fourteen steps.
#[test]
fn a_late_grant_beyond_the_fence_does_not_hold_it() {
    let mut bench = asked(3);
    bench.reply(0, &counters(&[7]));
    bench.reply(1, &counters(&[6]));
    assert_eq!(bench.sent(1), [raise(7)]);
    bench.reply(2, &counters(&[8]));
    bench.nothing_told();
    assert!(bench.sent(2).is_empty(), "nothing to raise");
    bench.reply(1, ZERO);
    for node in 0..3 {
        assert_eq!(bench.sent(node)[0], "DELEX orders IFEQ T1", "no quorum holds 7: the attempt is lost");
    }
    bench.reply(2, ONE);
    bench.reply(2, b":-2\r\n");
    let error = bench.acquire_failed_after_asking(1, b":-2\r\n");
    assert_eq!(error.kind, AcquireErrorKind::Contended, "{error}");
}

#[test]
fn keys_that_are_no_longer_ours_are_not_raised_and_do_not_count() {
    let mut bench = asked(3);
    bench.reply(0, &counters(&[7]));
    bench.reply(1, &counters(&[6]));
    assert_eq!(bench.sent(1), [raise(7)]);
    bench.reply(1, ZERO);
    bench.nothing_told();
    bench.reply(2, &counters(&[5]));
    assert_eq!(bench.sent(2), [raise(7)]);
    bench.reply(2, b"-ERR oops script: x, on @user_script:1.\r\n");
    for node in 0..3 {
        assert_eq!(bench.sent(node)[0], "DELEX orders IFEQ T1", "an attempt without a fence is lost");
    }
    let error = bench.acquire_failed_after_asking(1, b":-2\r\n");
    assert_eq!(error.kind, AcquireErrorKind::Mixed, "{error}");
}

#[test]
fn a_raise_is_covered_by_the_node_timeout_of_its_attempt() {
    let mut bench = asked(3);
    bench.at(1_400);
    bench.reply(0, &counters(&[7]));
    bench.reply(1, &counters(&[6]));
    bench.at(1_499);
    bench.nothing_told();
    bench.at(1_500);
    let error = bench.acquire_failed();
    assert_eq!(error.kind, AcquireErrorKind::NoQuorum, "{error}");
    assert!(bench.sent(1).contains(&"DELEX orders IFEQ T1".to_string()));
    bench.reply(1, ONE);
    bench.nothing_told();
}

#[test]
fn a_raise_whose_connection_breaks_is_sent_again() {
    let mut bench = asked(3);
    bench.at(1_100);
    bench.reply(0, &counters(&[7]));
    bench.reply(1, &counters(&[6]));
    assert_eq!(bench.sent(1), [raise(7)]);
    bench.cut(1);
    bench.nothing_told();
    bench.up(1);
    assert_eq!(bench.sent(1), [raise(7)]);
    bench.reply(1, ONE);
    assert_eq!(granted(&mut bench).1, 7);
}

#[test]
fn the_counter_of_a_restarted_node_is_that_of_its_clock_and_the_token_is_gone_there() {
    let mut bench = asked(3);
    bench.reply_all(&counters(&[7]));
    let (lock, _) = granted(&mut bench);
    bench.at(3_000);
    bench.extend(lock, 10_000);
    bench.forget();
    bench.reply(0, OK);
    bench.reply(2, NIL);
    bench.reply(1, OK);
    bench.told();
    assert_eq!(bench.sent(2), ["EVAL fenced-repair 2 orders orders:fence T1 10000 0 7"]);
    bench.reply(2, ONE);
    assert!(matches!(bench.one(), Event::Repaired { .. }));
}

#[test]
fn a_raise_that_finds_the_keys_gone_tells_of_the_loss() {
    let mut bench = asked(3);
    bench.reply(0, &counters(&[7]));
    bench.reply(1, &counters(&[7]));
    let (lock, _) = granted(&mut bench);
    bench.reply(2, &counters(&[3]));
    assert_eq!(bench.sent(2), [raise(7)]);
    bench.at(2_000);
    bench.extend(lock, 10_000);
    bench.reply(2, ZERO);
    bench.nothing_told();
    bench.reply(0, NIL);
    let told = bench.told();
    assert_eq!(told[0], Event::Lost { lock, reason: LostReason::TokenGone }, "two of three said so");
}

#[test]
fn several_resources_have_one_fence_above_all_their_counters() {
    let mut bench = Bench::new(3);
    let request = AcquireRequest::all(["a", "b"], [9; 16]).try_once().fenced();
    bench.ask(request);
    assert_eq!(bench.sent_to_all(), ["EVAL fenced-set 4 a b a:fence b:fence T1 10000 0"]);
    bench.reply(0, &counters(&[4, 9]));
    bench.reply(1, &counters(&[4, 9]));
    bench.nothing_told();
    for node in 0..2 {
        let raise = "EVAL raise 4 a b a:fence b:fence T1 0 0 9";
        assert_eq!(bench.sent(node), [raise], "one counter of each is behind");
        bench.reply(node, ONE);
    }
    assert_eq!(granted(&mut bench).1, 9);
}

#[test]
fn a_counter_that_is_no_number_is_no_vote() {
    let mut bench = asked(3);
    bench.reply(0, &counters(&[7]));
    bench.reply(1, b"*1\r\n$2\r\n-5\r\n");
    assert!(!bench.is_connected(1));
    bench.reply(2, ZERO);
    let error = bench.acquire_failed_after_asking(2, b":-2\r\n");
    assert!(error.to_string().contains("fence counters"), "{error}");
}

#[test]
fn a_refused_attempt_is_contended_as_ever() {
    let mut bench = asked(3);
    bench.reply(0, ZERO);
    bench.reply(1, ZERO);
    bench.forget();
    bench.at(1_500);
    assert_eq!(bench.acquire_failed().kind, RoundLoss::Contended.into());
}

#[test]
fn retention_is_handed_to_the_scripts() {
    let mut bench = Bench::with(3, |config| config.fence_retention(ms(86_400_000)));
    let request = bench.request("orders").try_once().fenced();
    bench.ask(request);
    assert_eq!(bench.sent_to_all(), ["EVAL fenced-set 2 orders orders:fence T1 10000 86400000"]);
    bench.reply(0, &counters(&[7]));
    bench.reply(1, &counters(&[5]));
    assert_eq!(bench.sent(1), ["EVAL raise 2 orders orders:fence T1 0 86400000 7"]);
}

#[test]
fn r12_a_request_cannot_lock_its_own_counter() {
    let mut bench = Bench::new(3);
    let request = AcquireRequest::all(["a", "a:fence"], [9; 16]).try_once();
    bench.ask(request.clone().fenced());
    let error = bench.acquire_failed();
    assert!(
        matches!(&error.kind, AcquireErrorKind::Invalid(InvalidArgument::FenceCounter { resource }) if resource == "a:fence"),
        "{error}"
    );
    assert!(bench.sent_to_all().is_empty());
    bench.ask(request);
    assert_eq!(bench.sent_to_all().len(), 1, "without a fence it is a name like any other");
}

#[test]
fn fences_compare_as_numbers() {
    assert!(Fence::new(10) > Fence::new(9));
    assert_eq!(Fence::new(7).to_string(), "7");
    assert_eq!(u64::from(Fence::new(7)), 7);
}
