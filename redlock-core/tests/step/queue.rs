//! Acquires of one resource that wait for each other inside the client: only the first contends, and the lock goes from one
//! to the next in the packet of its release.

use crate::bench::*;
use redlock_core::{
    AcquireErrorKind, AcquireRequest, DisconnectReason, Event, Holder, LimitKind, LockId, LostReason,
    NodeOutcome, OperationId, RoundLoss,
};

/// One more acquire that waits for so long.
fn waits(bench: &mut Bench, millis: u64) -> OperationId {
    let request = bench.request("orders").wait(ms(millis));
    bench.ask(request)
}

/// The only command that each node was sent is a SET: of whose token.
fn only_a_set(bench: &mut Bench) -> String {
    let sent = bench.sent_to_all();
    assert!(sent.len() == 1 && sent[0].starts_with("SET orders T"), "{sent:?}");
    sent[0].clone()
}

/// What each node was sent in the only packet since this was last asked.
fn one_packet(bench: &mut Bench) -> Vec<String> {
    for node in 0..3 {
        assert_eq!(bench.payloads(node).len(), 1, "node {node}");
    }
    bench.sent_to_all()
}

fn granted(told: &[Event], operation: OperationId) -> LockId {
    let grant = |event: &Event| match event {
        Event::Acquired { operation: of, lock, .. } if *of == operation => Some(*lock),
        _ => None,
    };
    told.iter().find_map(grant).unwrap_or_else(|| panic!("{operation:?} is not granted: {told:?}"))
}

#[test]
fn only_the_first_contends_and_first_come_is_first_served() {
    let mut bench = Bench::new(3);
    let waiters = [(); 4].map(|()| waits(&mut bench, 10_000));
    only_a_set(&mut bench);
    bench.reply_all(OK);
    let mut lock = granted(&bench.told(), waiters[0]);
    for next in &waiters[1..] {
        bench.forget();
        bench.release(lock);
        assert_eq!(one_packet(&mut bench).len(), 2);
        bench.reply_all(ONE);
        bench.reply_all(OK);
        let told = bench.told();
        lock = granted(&told, *next);
        assert_eq!(told.len(), 2, "the release, and one grant: {told:?}");
    }
}

#[test]
fn r7_the_release_goes_before_the_next_set_in_one_packet_and_need_not_be_answered() {
    let mut bench = Bench::new(3);
    let lock = bench.hold("orders");
    let waiter = waits(&mut bench, 10_000);
    assert!(bench.sent_to_all().is_empty());
    bench.forget();
    bench.release(lock);
    assert_eq!(one_packet(&mut bench), ["DELEX orders IFEQ T1", "SET orders T2 NX PX 10000"]);
    // The nodes' answers come together, as they do.
    bench.reply(0, b":1\r\n+OK\r\n");
    bench.reply(1, b":1\r\n+OK\r\n");
    granted(&bench.told(), waiter);
}

#[test]
fn a_forgotten_guard_stalls_nobody_beyond_its_deadline() {
    let mut bench = Bench::new(3);
    bench.hold("orders");
    let waiter = waits(&mut bench, 30_000);
    bench.at(9_897);
    assert!(bench.sent_to_all().is_empty());
    bench.forget();
    bench.at(9_898);
    assert_eq!(one_packet(&mut bench), ["DELEX orders IFEQ T1", "SET orders T2 NX PX 10000"]);
    bench.reply_all(ONE);
    bench.reply_all(OK);
    granted(&bench.told(), waiter);
}

#[test]
fn the_queue_moves_when_the_lock_is_lost() {
    let mut bench = Bench::new(3);
    let lock = bench.hold("orders");
    let waiter = waits(&mut bench, 10_000);
    bench.extend(lock, 10_000);
    bench.forget();
    bench.reply(0, NIL);
    assert!(bench.sent(0).is_empty());
    bench.reply(1, NIL);
    let told = bench.told();
    let lost = |event: &Event| matches!(event, Event::Lost { reason: LostReason::TokenGone, .. });
    assert!(told.iter().any(lost), "{told:?}");
    assert_eq!(one_packet(&mut bench), ["DELEX orders IFEQ T1", "SET orders T2 NX PX 10000"]);
    bench.reply(2, NIL);
    bench.reply_all(ZERO);
    bench.reply_all(OK);
    granted(&bench.told(), waiter);
}

#[test]
fn r20_the_one_that_contends_is_called_off_and_the_next_takes_its_turn() {
    let mut bench = Bench::new(3);
    let first = waits(&mut bench, 10_000);
    let second = waits(&mut bench, 10_000);
    let third = waits(&mut bench, 10_000);
    bench.forget();
    bench.cancel(second);
    assert_eq!(bench.acquire_failed().kind, AcquireErrorKind::Cancelled);
    bench.cancel(first);
    assert_eq!(bench.acquire_failed().attempts, 1);
    assert_eq!(one_packet(&mut bench), ["DELEX orders IFEQ T1", "SET orders T2 NX PX 10000"]);
    bench.reply_all(OK);
    bench.reply_all(ONE);
    bench.reply_all(OK);
    granted(&bench.told(), third);
}

#[test]
fn a_grant_that_nobody_saw_is_taken_back_and_handed_on() {
    let mut bench = Bench::new(3);
    let first = waits(&mut bench, 10_000);
    let second = waits(&mut bench, 10_000);
    bench.feed(0, OK);
    bench.feed(1, OK);
    bench.forget();
    bench.cancel(first);
    assert_eq!(bench.acquire_failed().kind, AcquireErrorKind::Cancelled);
    assert_eq!(one_packet(&mut bench), ["DELEX orders IFEQ T1", "SET orders T2 NX PX 10000"]);
    bench.reply(2, OK);
    bench.reply_all(ONE);
    bench.reply_all(OK);
    granted(&bench.told(), second);
}

#[test]
fn r10_a_waiter_ends_at_its_wait_with_the_last_rounds_results() {
    let mut bench = Bench::with(3, |config| config.retry_delay(ms(250), ms(250)));
    waits(&mut bench, 10_000);
    waits(&mut bench, 100);
    let cancelled = waits(&mut bench, 10_000);
    bench.at(2);
    bench.reply_all(NIL);
    bench.at(99);
    bench.nothing_told();
    bench.at(100);
    let error = bench.acquire_failed();
    assert_eq!(error.kind, AcquireErrorKind::WaitOver { last: RoundLoss::Contended });
    assert_eq!((error.attempts, error.elapsed, &error.resource[..]), (0, ms(100), "`orders`"));
    let refused = error.nodes.iter().filter(|node| node.outcome == NodeOutcome::Refused).count();
    assert_eq!(refused, 2, "as far as it was heard when the round was decided: {error}");
    bench.cancel(cancelled);
    assert_eq!(bench.acquire_failed().nodes.len(), 3);
}

#[test]
fn r10_a_waiter_behind_the_clients_own_lock_is_told_how_long_that_lasts() {
    let mut bench = Bench::new(3);
    bench.hold("orders");
    waits(&mut bench, 98);
    bench.at(98);
    let error = bench.acquire_failed();
    assert_eq!(error.kind, AcquireErrorKind::WaitOver { last: RoundLoss::Contended });
    assert_eq!(error.nodes[2].outcome, NodeOutcome::Refused);
    assert_eq!(error.nodes[2].holder, Some(Holder::Lock { remaining: ms(9_800) }));
    assert!(error.to_string().contains("for 9.8s more"), "{error}");
    assert!(bench.sent_to_all().is_empty());
}

#[test]
fn r9_one_round_without_waiting_never_queues_and_always_goes_out() {
    let mut bench = Bench::new(3);
    bench.hold("orders");
    waits(&mut bench, 10_000);
    bench.try_acquire("orders");
    only_a_set(&mut bench);
    bench.reply(0, NIL);
    bench.reply(1, NIL);
    bench.reply(0, ZERO);
    bench.reply(1, ZERO);
    bench.reply(0, b":5000\r\n");
    bench.reply(1, b":5000\r\n");
    assert_eq!(bench.acquire_failed().kind, AcquireErrorKind::Contended);
}

#[test]
fn several_resources_contend_by_themselves() {
    let mut bench = Bench::new(3);
    bench.hold("orders");
    bench.ask(AcquireRequest::all(["orders", "stock"], [9; 16]));
    let sent = bench.sent_to_all();
    assert!(sent.len() == 1 && sent[0].starts_with("EVAL "), "{sent:?}");
}

#[test]
fn different_resources_do_not_wait_for_each_other() {
    let mut bench = Bench::new(3);
    bench.hold("orders");
    waits(&mut bench, 10_000);
    bench.hold("stock");
}

#[test]
fn others_get_a_chance_after_thirty_two_hand_offs() {
    let mut bench = Bench::new(3);
    let mut lock = bench.hold("orders");
    let waiters: Vec<OperationId> = (0..40).map(|_| waits(&mut bench, 60_000)).collect();
    for waiter in &waiters[..32] {
        bench.forget();
        bench.release(lock);
        assert_eq!(one_packet(&mut bench).len(), 2);
        bench.reply_all(ONE);
        bench.reply_all(OK);
        lock = granted(&bench.told(), *waiter);
    }
    bench.forget();
    bench.release(lock);
    let alone = one_packet(&mut bench);
    assert!(alone.len() == 1 && alone[0].starts_with("DELEX"), "{alone:?}");
    bench.at(1);
    assert!(bench.sent_to_all().is_empty());
    bench.at(2);
    only_a_set(&mut bench);
    bench.reply_all(ONE);
    bench.reply_all(OK);
    lock = granted(&bench.told(), waiters[32]);
    // The row starts anew.
    bench.forget();
    bench.release(lock);
    assert_eq!(one_packet(&mut bench).len(), 2);
}

#[test]
fn others_get_a_chance_after_a_tenth_of_a_second_of_hand_offs() {
    let mut bench = Bench::new(3);
    let mut lock = bench.hold("orders");
    let waiters: Vec<OperationId> = (0..4).map(|_| waits(&mut bench, 60_000)).collect();
    for (now, waiter, commands) in [(10, 0, 2), (60, 1, 2), (109, 2, 2), (110, 3, 1)] {
        bench.at(now);
        bench.forget();
        bench.release(lock);
        assert_eq!(one_packet(&mut bench).len(), commands, "{now}");
        bench.at(now + 2 * u64::from(commands == 1));
        bench.reply_all(ONE);
        bench.reply_all(OK);
        lock = granted(&bench.told(), waiters[waiter]);
    }
}

#[test]
fn the_delay_of_a_lost_round_goes_over_to_the_next() {
    let mut bench = Bench::with(3, |config| config.retry_delay(ms(200), ms(200)));
    let first = waits(&mut bench, 10_000);
    let second = waits(&mut bench, 10_000);
    bench.reply_all(NIL);
    bench.reply_all(ZERO);
    bench.forget();
    bench.at(50);
    bench.cancel(first);
    bench.acquire_failed();
    bench.at(199);
    assert!(bench.sent_to_all().is_empty());
    bench.at(200);
    only_a_set(&mut bench);
    bench.reply_all(OK);
    granted(&bench.told(), second);
}

#[test]
fn one_whose_rounds_are_used_up_makes_way() {
    let mut bench = Bench::new(3);
    let request = bench.request("orders").attempts(1);
    let first = bench.ask(request);
    let second = waits(&mut bench, 10_000);
    bench.forget();
    bench.reply(0, NIL);
    bench.reply(1, NIL);
    for node in 0..2 {
        assert_eq!(
            bench.sent(node),
            ["DELEX orders IFEQ T1", "PTTL orders", "SET orders T2 NX PX 10000"],
            "its release, what it still wants to know, and the next"
        );
        bench.reply(node, ZERO);
        bench.reply(node, b":7\r\n");
        bench.reply(node, OK);
    }
    let told = bench.told();
    granted(&told, second);
    assert!(
        told.iter()
            .any(|event| matches!(event, Event::AcquireFailed { operation, .. } if *operation == first))
    );
}

#[test]
fn one_that_slept_while_the_client_got_the_lock_by_another_way_waits_for_its_end() {
    let mut bench = Bench::with(3, |config| config.retry_delay(ms(100), ms(100)));
    let waiter = waits(&mut bench, 10_000);
    bench.reply_all(NIL);
    bench.reply_all(ZERO);
    bench.try_acquire("orders");
    bench.reply_all(OK);
    let (lock, _) = bench.acquired();
    bench.forget();
    bench.at(1_000);
    assert!(bench.sent_to_all().is_empty(), "no rounds against itself");
    bench.release(lock);
    let sent = one_packet(&mut bench);
    assert!(sent.len() == 2 && sent[1].starts_with("SET orders"), "{sent:?}");
    bench.reply_all(ONE);
    bench.reply_all(OK);
    granted(&bench.told(), waiter);
}

#[test]
fn one_that_loses_to_the_clients_own_lock_waits_for_its_end() {
    let mut bench = Bench::with(3, |config| config.retry_delay(ms(100), ms(100)));
    bench.try_acquire("orders");
    let waiter = waits(&mut bench, 10_000);
    bench.reply_all(OK);
    let (lock, _) = bench.acquired();
    bench.reply_all(NIL);
    bench.reply_all(ZERO);
    bench.forget();
    bench.at(1_000);
    assert!(bench.sent_to_all().is_empty());
    bench.release(lock);
    assert_eq!(one_packet(&mut bench).len(), 2);
    bench.reply_all(ONE);
    bench.reply_all(OK);
    granted(&bench.told(), waiter);
}

#[test]
fn c5_waiters_are_bounded_by_the_limit_of_operations() {
    let mut limits = redlock_core::Limits::default();
    limits.operations = 3;
    let mut bench = Bench::with(3, |config| config.limits(limits));
    bench.hold("orders");
    for _ in 0..3 {
        waits(&mut bench, 10_000);
    }
    bench.nothing_told();
    waits(&mut bench, 10_000);
    assert_eq!(bench.acquire_failed().kind, AcquireErrorKind::LimitReached(LimitKind::Operations));
}

#[test]
fn c5_waiters_that_all_fail_at_once_do_so_one_after_the_other() {
    let mut bench = Bench::new(3);
    let lock = bench.hold("orders");
    let count = 20_000;
    for _ in 0..count {
        let request = bench.request("orders").attempts(1);
        bench.client.acquire(request, bench.now);
    }
    bench.drain();
    bench.at(100);
    for node in 0..3 {
        bench.cut(node);
    }
    // They stood too shortly to be made anew at once: every round is lost as soon as it starts.
    bench.release(lock);
    let told = bench.told();
    let failed = told.iter().filter(|event| matches!(event, Event::AcquireFailed { .. })).count();
    assert_eq!(failed, count);
}

#[test]
fn r9_those_behind_one_that_can_get_nothing_are_told_as_soon_as_they_have_asked() {
    let mut bench = Bench::new(1);
    let waiters = [(); 3].map(|()| waits(&mut bench, 10_000));
    for _ in waiters {
        assert!(bench.sent(0).iter().any(|command| command.starts_with("SET orders")));
        bench.reply(0, b"-NOPERM User u has no permissions to run the 'set' command\r\n");
        let error = bench.acquire_failed();
        assert_eq!((error.kind, error.attempts), (AcquireErrorKind::NoQuorum, 1));
        bench.reply(0, ZERO);
    }
    assert_eq!(bench.now, at(0));
}

#[test]
fn r9_with_all_nodes_down_one_waiter_tries_for_all() {
    let mut bench = Bench::cold_with(1, |config| config.retry_delay(ms(100), ms(100)));
    bench.cut_for(0, DisconnectReason::Refused("refused".into()));
    waits(&mut bench, 1_000);
    waits(&mut bench, 300);
    bench.at(300);
    let error = bench.told().into_iter().find_map(|event| match event {
        Event::AcquireFailed { error, .. } => Some(error),
        _ => None,
    });
    let error = error.unwrap();
    assert_eq!(error.kind, AcquireErrorKind::WaitOver { last: RoundLoss::NoQuorum });
    assert!(matches!(error.nodes[0].outcome, NodeOutcome::Unsent(_)), "{error}");
}

#[test]
fn everybody_is_answered_once_at_the_end() {
    let mut bench = Bench::new(3);
    bench.hold("orders");
    for _ in 0..5 {
        waits(&mut bench, 10_000);
    }
    bench.forget();
    bench.client.close(bench.now);
    bench.drain();
    let sent = bench.sent_to_all();
    assert_eq!(sent, ["DELEX orders IFEQ T1"], "no turn any more");
    let told = bench.told();
    let failed = told.iter().filter(|event| matches!(event, Event::AcquireFailed { .. })).count();
    assert_eq!(failed, 5, "{told:?}");
}
