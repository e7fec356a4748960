//! Belief and extension through the engine: R13, R14, R14a, R15.

use crate::bench::*;
use redlock_core::{AcquireErrorKind, Event, ExtendErrorKind, LockId, LostReason, NodeVote};

fn settled(nodes: u8) -> (Bench, LockId) {
    let mut bench = Bench::new(nodes);
    bench.at(1_000);
    let lock = bench.hold("orders");
    bench.forget();
    (bench, lock)
}

fn moved(told: &[Event]) -> Vec<u64> {
    let deadlines = told.iter().filter_map(|event| match event {
        Event::DeadlineMoved { deadline, .. } => Some(deadline.as_millis()),
        _ => None,
    });
    deadlines.collect()
}

#[test]
fn r13_b13_held_is_answered_from_the_local_clock_alone() {
    let (bench, lock) = settled(3);
    let view = bench.client.lock(lock).unwrap();
    assert!(view.is_held(at(10_897)));
    assert!(!view.is_held(at(10_898)), "held means now < deadline");
    assert!(!view.is_held(at(60_000)), "without any call in between");
}

#[test]
fn r14_an_extension_succeeds_with_a_quorum_and_counts_from_its_start() {
    let (mut bench, lock) = settled(3);
    bench.at(3_000);
    bench.extend(lock, 10_000);
    assert_eq!(bench.sent_to_all(), ["SET orders T1 IFEQ T1 PX 10000"]);
    bench.at(3_100);
    bench.reply(0, OK);
    bench.nothing_told();
    bench.reply(1, OK);
    assert_eq!(bench.extended(), 3_000 + 9_898);
    assert_eq!(bench.deadline(lock), 12_898);
}

#[test]
fn r14_b04_too_few_confirmations_fail_and_delete_nothing() {
    let (mut bench, lock) = settled(5);
    bench.at(3_000);
    bench.extend(lock, 10_000);
    bench.forget();
    bench.reply(0, OK);
    bench.reply(1, OK);
    bench.reply(2, NIL);
    bench.reply(3, NIL);
    bench.at(3_500);
    assert_eq!(bench.extend_failed().kind, ExtendErrorKind::NoQuorum);
    assert!(bench.is_held(lock));
    assert_eq!(bench.deadline(lock), 10_898, "not later than before");
    assert!(bench.sent_to_all().is_empty(), "the lock is still inside its deadline");
}

#[test]
fn r14_b04_a_quorum_of_nodes_without_the_token_is_the_loss_at_once() {
    let (mut bench, lock) = settled(5);
    bench.at(3_000);
    bench.extend(lock, 10_000);
    bench.forget();
    bench.reply(0, OK);
    bench.reply(1, OK);
    bench.reply(2, NIL);
    bench.reply(3, NIL);
    bench.nothing_told();
    bench.reply(4, NIL);
    let told = bench.told();
    assert_eq!(told[0], Event::Lost { lock, reason: LostReason::TokenGone });
    assert!(
        matches!(&told[1], Event::ExtendFailed { error, .. } if error.kind == ExtendErrorKind::Lost(LostReason::TokenGone))
    );
    assert!(!bench.is_held(lock));
    assert_eq!(bench.sent_to_all(), ["DELEX orders IFEQ T1"]);
}

#[test]
fn r14_b04_b06_answers_that_are_no_confirmation() {
    let wrong: [&[u8]; 5] = [b":1\r\n", b":2\r\n", b":-1\r\n", b"$1\r\n1\r\n", b"+QUEUED\r\n"];
    for reply in wrong {
        let (mut bench, lock) = settled(3);
        bench.extend(lock, 10_000);
        bench.reply(0, OK);
        bench.reply(1, reply);
        assert!(!bench.is_connected(1), "{reply:?}");
        let told = bench.told();
        assert!(!told.iter().any(|event| matches!(event, Event::Extended { .. })), "{told:?}");
    }
}

#[test]
fn r14_b06_an_expired_lock_is_not_extended_and_nothing_is_created() {
    let (mut bench, lock) = settled(3);
    bench.at(10_898);
    bench.told();
    bench.forget();
    assert!(bench.client.extend(lock, ms(10_000), bench.now).is_err());
    bench.drain();
    for node in 0..3 {
        assert!(bench.sent(node).iter().all(|command| !command.starts_with("SET")));
    }
}

#[test]
fn r14_a_shorter_extension_counts_from_its_hand_out() {
    let (mut bench, lock) = settled(3);
    bench.at(3_000);
    bench.client.extend(lock, ms(1_000), bench.now).unwrap();
    assert_eq!(bench.deadline(lock), 10_898, "not handed out yet");
    bench.drain();
    assert_eq!(bench.deadline(lock), 3_988, "answered or not");
    assert_eq!(moved(&bench.told()), [3_988]);
    // The belief sank before the bytes were out.
    let log = &bench.log;
    let event = log
        .iter()
        .rposition(|output| matches!(output, redlock_core::Output::Event(Event::DeadlineMoved { .. })));
    let transmits =
        log.iter().enumerate().filter(|(_, output)| matches!(output, redlock_core::Output::Transmit { .. }));
    let after = transmits.filter(|(index, _)| Some(*index) > event).count();
    assert!(after >= 2, "before the second node's bytes, which made it the q-th");
    bench.at(3_988);
    assert!(bench.told().contains(&Event::Lost { lock, reason: LostReason::Expired }));
}

#[test]
fn r14_an_error_that_means_not_applied_lifts_the_shorter_one() {
    let (mut bench, lock) = settled(3);
    bench.at(3_000);
    bench.extend(lock, 1_000);
    bench.told();
    bench.reply(0, b"-MISCONF x\r\n");
    assert_eq!(bench.deadline(lock), 3_988);
    bench.reply(1, b"-MISCONF x\r\n");
    assert_eq!(bench.deadline(lock), 10_898);
}

#[test]
fn r14_a_script_error_with_the_suffix_does_not_lift_it() {
    let mut bench = Bench::of(3, REDIS_7);
    let lock = bench.hold("orders");
    bench.at(3_000);
    bench.extend(lock, 1_000);
    for node in 0..3 {
        bench.reply(node, b"-ERR oops script: on @user_script:1.\r\n");
    }
    assert_eq!(bench.deadline(lock), 3_988);
}

#[test]
fn r14_a_short_one_stuck_in_a_dead_connection_cannot_surprise_us() {
    let (mut bench, lock) = settled(3);
    bench.at(3_000);
    bench.extend(lock, 1_000);
    bench.cut(0);
    bench.cut(1);
    bench.up(0);
    bench.up(1);
    bench.told();
    bench.at(3_100);
    bench.extend(lock, 10_000);
    // The short one was sent again on the new connections, before the long one.
    bench.reply_all(b"+OK\r\n+OK\r\n");
    // Where the short one may still run behind the long one, its 988 ms count from the long one's start.
    assert_eq!(bench.deadline(lock), 3_100 + 988);
    let votes: Vec<_> = bench.client.lock(lock).unwrap().votes().map(|(_, vote)| vote).collect();
    assert_eq!(votes[2], NodeVote::Confirmed { until: at(3_100 + 9_898) });
    assert_eq!(votes[0], NodeVote::Confirmed { until: at(4_088) });
}

#[test]
fn r14_a_short_one_counts_on_when_its_connection_breaks() {
    let mut bench = Bench::new(3);
    let lock = bench.hold("orders");
    bench.at(900); // too young to be connected anew at once: nothing is sent again
    bench.extend(lock, 1_000);
    bench.told();
    bench.cut(0);
    bench.cut(1);
    assert_eq!(bench.deadline(lock), 1_888, "it may have run, or may still");
    bench.reply(2, b"-MISCONF x\r\n");
    assert_eq!(bench.deadline(lock), 1_888);
    bench.at(1_888);
    assert!(bench.told().contains(&Event::Lost { lock, reason: LostReason::Expired }));
}

#[test]
fn r14_the_deadline_in_force_is_the_qth_largest_support() {
    let (mut bench, lock) = settled(5);
    bench.at(2_000);
    bench.extend(lock, 10_000);
    bench.reply(0, OK);
    bench.at(2_500);
    bench.extend_failed();
    bench.at(3_000);
    bench.extend(lock, 10_000);
    bench.reply(1, b"+OK\r\n+OK\r\n");
    bench.at(3_500);
    bench.told();
    // Supports: 11 898, 12 898, 10 898 × 3.
    assert_eq!(bench.deadline(lock), 10_898);
    bench.reply(2, OK); // of the first round
    assert_eq!(bench.deadline(lock), 11_898);
}

#[test]
fn r14_confirmations_after_the_answer_still_count_with_an_event() {
    let (mut bench, lock) = settled(3);
    bench.at(3_000);
    bench.extend(lock, 10_000);
    bench.at(3_500);
    bench.extend_failed();
    bench.at(4_000);
    bench.reply(0, OK);
    bench.nothing_told();
    bench.reply(1, OK);
    assert_eq!(moved(&bench.told()), [12_898]);
    assert!(bench.is_held(lock));
}

#[test]
fn r14_a_confirmation_after_the_deadline_lifts_nothing() {
    let (mut bench, lock) = settled(3);
    bench.at(10_800);
    bench.told();
    bench.extend(lock, 10_000);
    bench.reply(0, OK);
    bench.stopped_until(10_898);
    bench.reply(1, OK);
    let told = bench.told();
    assert!(told.contains(&Event::Lost { lock, reason: LostReason::Expired }), "{told:?}");
    assert!(!bench.is_held(lock));
}

#[test]
fn r14_out_of_memory_the_script_extends_as_a_hand_out_of_its_own() {
    let (mut bench, lock) = settled(3);
    bench.at(3_000);
    bench.extend(lock, 10_000);
    bench.forget();
    bench.at(3_050);
    bench.reply(0, OOM);
    bench.reply(1, OOM);
    assert_eq!(bench.sent(0), ["EVAL extend 1 orders T1 10000"]);
    bench.reply(0, ONE);
    bench.reply(1, ONE);
    assert_eq!(bench.extended(), 3_050 + 9_898, "with a start of its own");
    bench.extend(lock, 10_000);
    assert_eq!(bench.sent(0), ["EVAL extend 1 orders T1 10000"], "until the next handshake");
    assert_eq!(bench.sent(2), ["SET orders T1 IFEQ T1 PX 10000"]);
}

#[test]
fn r14_out_of_memory_acquires_nothing() {
    let mut bench = Bench::new(3);
    bench.try_acquire("orders");
    bench.reply(0, OOM);
    bench.reply(1, OOM);
    assert_eq!(bench.acquire_failed().kind, AcquireErrorKind::NoQuorum);
}

#[test]
fn r14_an_extension_is_never_sent_again_once_another_was_handed_out() {
    let (mut bench, lock) = settled(3);
    bench.at(3_000);
    bench.extend(lock, 2_000);
    bench.extend(lock, 10_000);
    bench.forget();
    bench.reply(0, OOM); // to the first
    assert!(bench.sent(0).is_empty());
    bench.reply(0, OOM); // to the second
    assert_eq!(bench.sent(0), ["EVAL extend 1 orders T1 10000"]);
}

#[test]
fn r14_nor_behind_another_that_waits_in_the_same_packet() {
    let (mut bench, lock) = settled(3);
    bench.at(3_000);
    bench.extend(lock, 2_000);
    bench.forget();
    // No drain between the two calls: the second extension is queued when the first is refused.
    bench.client.extend(lock, ms(10_000), bench.now).unwrap();
    bench.reply(0, OOM);
    let sent = bench.sent(0);
    assert!(!sent.iter().any(|command| command.ends_with("2000")), "{sent:?}");
}

#[test]
fn r14_broken_between_write_and_reply_it_goes_again_on_the_next_connection() {
    let (mut bench, lock) = settled(3);
    bench.at(3_000);
    bench.extend(lock, 10_000);
    bench.reply(0, OK);
    bench.cut(1);
    bench.cut(2);
    bench.nothing_told();
    bench.at(3_100);
    bench.up(1);
    assert_eq!(bench.sent(1), ["SET orders T1 IFEQ T1 PX 10000"]);
    bench.reply(1, OK);
    // 3 000 at n0, 3 100 at n1, but the first one may still run there: the same ttl, so nothing is lost.
    assert_eq!(bench.extended(), 12_898);
}

#[test]
fn r14_node_faults_are_told_apart_in_the_error() {
    let (mut bench, lock) = settled(3);
    bench.extend(lock, 10_000);
    bench.reply(0, b"-MISCONF x\r\n");
    bench.reply(1, b"-MISCONF x\r\n");
    let error = bench.extend_failed();
    assert_eq!(error.kind, ExtendErrorKind::NoQuorum);
    assert!(error.to_string().contains("MISCONF x"), "{error}");
    assert!(bench.is_held(lock));
}

#[test]
fn r14a_a_node_that_refused_the_set_and_confirms_is_an_alias() {
    let mut bench = Bench::new(3);
    bench.try_acquire("orders");
    bench.reply(0, OK);
    bench.reply(1, OK);
    bench.reply(2, NIL);
    let (lock, deadline) = bench.acquired();
    bench.at(1_000);
    bench.extend(lock, 10_000);
    bench.reply(0, OK);
    bench.reply(2, OK);
    assert_eq!(bench.told(), [Event::AliasSuspected { lock, node: node(2) }], "no vote");
    assert_eq!(bench.deadline(lock), deadline);
    bench.reply(1, OK);
    assert_eq!(bench.extended(), 10_898);
}

#[test]
fn r14a_an_ambiguous_set_may_have_run() {
    let mut bench = Bench::new(3);
    bench.at(1_000);
    bench.try_acquire("orders");
    bench.reply(0, OK);
    bench.cut(2);
    bench.reply(1, OK);
    let (lock, _) = bench.acquired();
    bench.up(2);
    bench.extend(lock, 10_000);
    bench.reply(2, OK);
    bench.reply(0, OK);
    assert_eq!(bench.extended(), 10_898);
}

#[test]
fn r14a_one_that_was_repaired_confirms_its_own() {
    let (mut bench, lock) = refused_by_the_third();
    bench.extend(lock, 10_000);
    bench.reply(0, OK);
    bench.reply(1, OK);
    bench.reply(2, NIL);
    bench.told();
    bench.reply(2, OK); // the repair
    assert_eq!(bench.told(), [Event::Repaired { lock, node: node(2) }]);
    bench.extend(lock, 10_000);
    bench.reply(2, OK);
    bench.reply(0, OK);
    bench.extended();
}

fn refused_by_the_third() -> (Bench, LockId) {
    let mut bench = Bench::new(3);
    bench.try_acquire("orders");
    bench.reply(0, OK);
    bench.reply(1, OK);
    bench.reply(2, NIL);
    let (lock, _) = bench.acquired();
    bench.at(1_000);
    bench.forget();
    (bench, lock)
}

#[test]
fn r15_nodes_that_lost_the_token_are_set_again_for_what_is_left_after_a_confirmed_round() {
    let (mut bench, lock) = settled(3);
    bench.at(3_000);
    bench.extend(lock, 10_000);
    bench.forget();
    bench.at(3_200);
    bench.reply(2, NIL);
    assert!(bench.sent(2).is_empty(), "no quorum confirmed yet");
    bench.reply(0, OK);
    assert!(bench.sent(2).is_empty());
    bench.at(3_250);
    bench.reply(1, OK);
    // start + ttl of the extension − now, drift not taken off.
    assert_eq!(bench.sent(2), ["SET orders T1 NX PX 9750"]);
    bench.extended();
    bench.reply(2, OK);
    assert_eq!(bench.told(), [Event::Repaired { lock, node: node(2) }]);
    let votes: Vec<_> = bench.client.lock(lock).unwrap().votes().map(|(_, vote)| vote).collect();
    assert_eq!(votes[2], NodeVote::Silent, "it supports with the next extension that it confirms");
}

#[test]
fn r15_an_answer_that_comes_after_the_decision_is_repaired_too() {
    let (mut bench, lock) = settled(3);
    bench.extend(lock, 10_000);
    bench.reply(0, OK);
    bench.reply(1, OK);
    bench.extended();
    bench.forget();
    bench.at(1_700);
    bench.reply(2, NIL);
    assert_eq!(bench.sent(2), ["SET orders T1 NX PX 9300"]);
}

#[test]
fn r15_never_counted_for_the_round_and_never_without_a_confirmed_round() {
    let (mut bench, lock) = settled(5);
    bench.extend(lock, 10_000);
    bench.forget();
    bench.reply(0, NIL);
    bench.reply(1, NIL);
    bench.reply(2, OK);
    bench.reply(3, OK);
    bench.at(1_500);
    bench.extend_failed();
    bench.reply(4, OK);
    assert!(bench.sent_to_all().is_empty(), "the round failed");
    assert!(bench.is_held(lock));
}

#[test]
fn r15_extension_itself_never_creates_a_key_and_a_foreign_one_is_left_alone() {
    let (mut bench, lock) = settled(3);
    bench.extend(lock, 10_000);
    let sent = bench.sent(0);
    assert!(sent[0].contains("IFEQ") && !sent[0].contains("IFNE"), "{sent:?}");
    bench.reply(2, NIL);
    bench.reply(0, OK);
    bench.reply(1, OK);
    bench.extended();
    bench.reply(2, NIL); // the repair: held by another
    bench.nothing_told();
    assert!(bench.is_held(lock));
}

#[test]
fn r15_a_queued_repair_is_withdrawn_by_the_release() {
    let (mut bench, lock) = settled(3);
    bench.extend(lock, 10_000);
    bench.reply(2, NIL);
    bench.reply(0, OK);
    bench.forget();
    bench.feed(1, OK);
    bench.client.release(lock, bench.now).unwrap();
    bench.drain();
    assert_eq!(bench.sent(2), ["DELEX orders IFEQ T1"]);
}

#[test]
fn r15_none_after_the_release_was_asked_or_the_lock_is_lost() {
    for lose in [true, false] {
        let (mut bench, lock) = settled(3);
        bench.at(10_000);
        bench.told();
        bench.extend(lock, 800);
        bench.reply(0, OK);
        bench.forget();
        if lose {
            bench.at(10_788);
        } else {
            bench.release(lock);
        }
        bench.forget();
        bench.reply(1, OK);
        bench.reply(2, NIL);
        for node in 0..3 {
            assert!(bench.sent(node).iter().all(|command| !command.starts_with("SET")), "{lose}");
        }
    }
}

#[test]
fn r14_r15_a_repaired_node_can_stand_in_for_another_that_forgets() {
    let (mut bench, lock) = settled(3);
    bench.extend(lock, 10_000);
    bench.reply(2, NIL);
    bench.reply(0, OK);
    bench.reply(1, OK);
    bench.reply(2, OK); // repaired
    bench.told();
    bench.extend(lock, 10_000);
    bench.reply(2, OK);
    bench.reply(1, NIL);
    bench.nothing_told();
    bench.reply(0, OK);
    bench.extended();
}

#[test]
fn r14_b16_a_second_winner_on_a_quorum_is_noticed_at_the_next_extension() {
    let mut bench = Bench::new(3);
    bench.try_acquire("orders");
    bench.reply(0, OK);
    bench.reply(1, OK);
    bench.cut(2);
    let (lock, _) = bench.acquired();
    bench.at(1_000);
    // n1 lost its memory, a rival holds n1 and n2.
    bench.until_wanted(2);
    bench.up(2);
    bench.told();
    bench.extend(lock, 10_000);
    bench.reply(0, OK);
    bench.reply(1, NIL);
    assert!(
        bench.told().contains(&Event::Lost { lock, reason: LostReason::TokenGone }),
        "n2 never confirmed anything"
    );
}
