//! The calling contract, line by line.

use crate::bench::*;
use redlock_core::{
    AcquireErrorKind, AcquireRequest, Client, Config, Event, ExtendErrorKind, ExtendRefused, Instant,
    LimitKind, Limits, NodeFault, NodeOutcome, Output, TimeoutReason,
};

fn limited(change: impl FnOnce(&mut Limits)) -> Bench {
    let mut limits = Limits::default();
    change(&mut limits);
    Bench::with(3, |config| config.limits(limits))
}

#[test]
fn c1_call_drain_arm_wait_is_all_that_a_driver_does() {
    let config = Config::builder().nodes(["a", "b", "c"]).build().unwrap();
    let mut client = Client::new(config, 7, Instant::ZERO);
    client.acquire(AcquireRequest::new("orders", [1; 16]), Instant::ZERO);
    let (mut now, mut granted) = (Instant::ZERO, None);
    'driver: for _ in 0..1_000 {
        while let Some(output) = client.poll_output() {
            now = now.saturating_add(ms(1));
            match output {
                Output::Connect { connection, .. } => client.handle_connected(connection, now),
                Output::Transmit { connection, payload } => {
                    for command in decode(&payload) {
                        let answer = match &command[0][..] {
                            b"HELLO" => hello("redis", "8.4.0"),
                            b"INFO" => info(u32::try_from(connection.node.index()).unwrap(), 90),
                            b"PING" => b"+PONG\r\n".to_vec(),
                            _ => OK.to_vec(),
                        };
                        client.handle_input(connection, &answer, now);
                    }
                }
                Output::Disconnect { .. } => {}
                Output::Event(Event::Acquired { deadline, .. }) => {
                    granted = Some(deadline);
                    break 'driver;
                }
                Output::Event(_) => {}
            }
        }
        now = client.poll_timeout().map_or(now, |due| due.at);
        client.handle_timeout(now);
    }
    assert_eq!(granted, Some(at(9_898)));
}

#[test]
fn c2_several_calls_before_a_drain_lose_nothing_and_queue_in_order() {
    let run = |drain_between: bool| {
        let mut bench = Bench::new(3);
        bench.log.clear();
        let step = |bench: &mut Bench, call: &mut dyn FnMut(&mut Bench)| {
            call(bench);
            if drain_between {
                bench.drain();
            }
        };
        for (resource, entropy) in [("a", [1; 16]), ("b", [2; 16])] {
            step(&mut bench, &mut |bench| {
                bench.client.acquire(AcquireRequest::new(resource, entropy), bench.now);
            });
        }
        bench.drain();
        step(&mut bench, &mut |bench| bench.feed(0, b"+OK\r\n_\r\n"));
        step(&mut bench, &mut |bench| bench.feed(1, b"+OK\r\n_\r\n"));
        step(&mut bench, &mut |bench| bench.feed(2, b"+OK\r\n_\r\n"));
        bench.drain();
        (bench.sent_to_all(), bench.told())
    };
    let (once, between) = (run(false), run(true));
    assert_eq!(once, between);
    assert_eq!(once.0, ["SET a T1 NX PX 10000", "SET b T2 NX PX 10000", "DELEX b IFEQ T2"]);
}

#[test]
fn c3_timers_fire_before_the_input_expiry_wins_a_tie() {
    // The answer that would win comes at the very instant of the node timeout.
    let mut bench = Bench::new(3);
    bench.try_acquire("orders");
    bench.reply(0, OK);
    bench.now = at(500);
    bench.reply(1, OK);
    assert_eq!(bench.acquire_failed().kind, AcquireErrorKind::NoQuorum);
    // A confirmation at the deadline itself.
    let mut bench = Bench::new(1);
    let lock = bench.hold("orders");
    bench.extend(lock, 10_000);
    bench.now = at(9_898);
    bench.reply(0, OK);
    assert!(bench.told().iter().any(|event| matches!(event, Event::Lost { .. })));
    // An extend and a release at the deadline.
    let mut bench = Bench::new(1);
    let lock = bench.hold("orders");
    assert!(bench.client.extend(lock, ms(10_000), at(9_898)).is_err());
}

#[test]
fn c3_b47_now_going_backwards_is_the_newest_seen() {
    let run = |times: [u64; 6]| {
        let mut bench = Bench::new(3);
        let mut now = times.into_iter().map(at);
        let mut next = || now.next().unwrap();
        bench.client.acquire(AcquireRequest::new("orders", [1; 16]), next());
        bench.drain();
        for node in 0..3 {
            let connection = bench.connection(node);
            bench.client.handle_input(connection, OK, next());
        }
        bench.client.handle_timeout(next());
        bench.drain();
        let lock = bench.told().iter().find_map(|event| match event {
            Event::Acquired { lock, .. } => Some(*lock),
            _ => None,
        });
        let extended = bench.client.extend(lock.unwrap(), ms(5_000), next());
        assert!(extended.is_ok());
        bench.drain();
        (bench.log, bench.client.now(), bench.client.poll_timeout())
    };
    assert_eq!(run([100, 90, 100, 100, 95, 0]), run([100, 100, 100, 100, 100, 100]));
}

#[test]
fn c3_early_and_repeated_timeouts_are_harmless() {
    let mut bench = Bench::new(3);
    let lock = bench.hold("orders");
    bench.forget();
    for now in [1, 1, 2, 2, 7_000, 7_000, 3] {
        bench.client.handle_timeout(at(now));
        bench.client.handle_timeout(at(now));
        bench.drain();
    }
    bench.nothing_told();
    assert!(bench.sent_to_all().is_empty());
    assert_eq!(bench.deadline(lock), 9_898);
}

#[test]
fn c4_while_output_is_queued_the_wake_up_is_now_after_the_drain_it_is_later() {
    let mut bench = Bench::new(3);
    bench.at(123);
    let request = bench.request("orders");
    bench.client.acquire(request, at(456));
    let due = bench.client.poll_timeout().unwrap();
    assert_eq!((due.at, due.reason), (at(456), TimeoutReason::Output));
    bench.drain();
    let due = bench.client.poll_timeout().unwrap();
    assert_eq!((due.at, due.reason), (at(956), TimeoutReason::Lock));
    assert_eq!(bench.client.poll_timeout(), Some(due), "a state");
}

#[test]
fn c4_nothing_to_wait_for_is_none() {
    let mut bench = Bench::new(3);
    assert_eq!(bench.client.poll_timeout(), None);
    let lock = bench.hold("orders");
    bench.release(lock);
    bench.reply_all(ONE);
    bench.released();
    assert_eq!(bench.client.poll_timeout(), None);
    assert!(bench.client.is_idle());
}

#[test]
fn c5_too_many_operations_are_an_error_not_growth() {
    let mut bench = limited(|limits| limits.operations = 2);
    bench.try_acquire("a");
    bench.try_acquire("b");
    bench.nothing_told();
    bench.try_acquire("c");
    let error = bench.acquire_failed();
    assert_eq!(error.kind, AcquireErrorKind::LimitReached(LimitKind::Operations));
    assert!(error.to_string().contains("too many"), "{error}");
    assert_eq!(bench.sent_to_all().len(), 2);
}

#[test]
fn c5_connects_count_as_operations() {
    let mut limits = Limits::default();
    limits.operations = 2;
    let mut bench = Bench::cold_with(3, |config| config.limits(limits));
    let first = bench.client.connect(ms(5_000), bench.now);
    bench.client.connect(ms(5_000), bench.now);
    bench.drain();
    bench.nothing_told();
    bench.client.connect(ms(5_000), bench.now);
    bench.drain();
    match bench.one() {
        Event::ConnectFailed { error, .. } => {
            assert_eq!(
                (error.limit, error.timed_out, error.closed),
                (Some(LimitKind::Operations), false, false)
            );
            assert_eq!(error.to_string(), "too many pending operations");
        }
        other => panic!("{other:?}"),
    }
    bench.try_acquire("a");
    assert_eq!(bench.acquire_failed().kind, AcquireErrorKind::LimitReached(LimitKind::Operations));
    bench.cancel(first);
    assert!(matches!(bench.one(), Event::ConnectFailed { .. }));
    bench.try_acquire("a");
    bench.nothing_told();
}

#[test]
fn c5_too_many_locks_are_an_error_and_releases_are_never_refused() {
    let mut bench = limited(|limits| limits.locks = 2);
    let first = bench.hold("a");
    bench.hold("b");
    bench.try_acquire("c");
    assert_eq!(bench.acquire_failed().kind, AcquireErrorKind::LimitReached(LimitKind::Locks));
    assert!(bench.sent_to_all().is_empty());
    bench.release(first);
    bench.reply_all(ONE);
    bench.released();
    bench.forget();
    bench.hold("c");
}

#[test]
fn c5_releases_owed_to_a_node_that_is_away_are_bounded_before_the_set_is_sent() {
    let mut bench = limited(|limits| {
        limits.locks = 2;
        limits.cleanups = 3;
    });
    bench.at(1_000);
    let mut lost = 0;
    for _ in 0..20 {
        bench.try_acquire("orders");
        if bench.is_connected(2) && lost == 5 {
            bench.cut(2);
        }
        let failed = bench.told();
        if failed.iter().any(|event| matches!(event, Event::AcquireFailed { error, .. } if error.kind == AcquireErrorKind::LimitReached(LimitKind::Locks))) {
            return;
        }
        for node in [0, 1] {
            for command in bench.sent(node) {
                bench.reply(
                    node,
                    if command.starts_with("PTTL") {
                        b":1\r\n"
                    } else if command.starts_with("SET") {
                        NIL
                    } else {
                        ZERO
                    },
                );
            }
        }
        for node in [0, 1] {
            for command in bench.sent(node) {
                bench.reply(node, if command.starts_with("PTTL") { b":1\r\n" } else { ZERO });
            }
        }
        lost += 1;
    }
    panic!("{lost} releases are owed, and no limit");
}

#[test]
fn c5_too_many_open_extensions_of_one_lock() {
    let mut bench = Bench::new(3);
    let lock = bench.hold("orders");
    let mut refused = 0;
    for _ in 0..40 {
        match bench.client.extend(lock, ms(10_000), bench.now) {
            Ok(_) => assert_eq!(refused, 0),
            Err(ExtendRefused::Because(ExtendErrorKind::LimitReached(LimitKind::Extensions))) => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
        bench.drain();
    }
    assert_eq!(refused, 24);
    assert!(bench.is_held(lock));
}

#[test]
fn c5_a_node_at_its_pipeline_limit_counts_as_one_to_which_nothing_was_sent() {
    let mut bench = limited(|limits| limits.in_flight_per_node = 16);
    for index in 0..16 {
        bench.try_acquire(&format!("key{index}"));
        bench.reply(1, OK);
        bench.reply(2, OK);
    }
    bench.forget();
    bench.try_acquire("orders");
    assert!(bench.sent(0).is_empty());
    assert_eq!(bench.sent(1).len(), 1);
    bench.reply(1, OK);
    bench.reply(2, OK);
    bench.acquired();
}

#[test]
fn c5_notices_that_nobody_polls_are_bounded() {
    let mut bench = {
        let mut limits = Limits::default();
        limits.queued_events = 16;
        Bench::cold_with(3, |config| config.limits(limits))
    };
    // Never drained: handshake timeouts and reconnects for an hour.
    for _ in 0..1_200 {
        bench.now = bench.now.saturating_add(ms(3_000));
        bench.client.handle_timeout(bench.now);
    }
    let mut outputs = 0;
    while bench.client.poll_output().is_some() {
        outputs += 1;
    }
    assert!(outputs < 100, "{outputs}");
}

/// A story with every kind of output; the log of it.
fn story(seed: u64) -> Vec<Output> {
    let config = Config::builder().nodes(["a", "b", "c"]).retry_delay(ms(50), ms(250)).build().unwrap();
    let mut client = Client::new(config, seed, Instant::ZERO);
    let mut log = Vec::new();
    let mut now = Instant::ZERO;
    for round in 0..3 {
        client.acquire(
            AcquireRequest::new(format!("key{round}"), [round; 16]).ttl(ms(2_000)).auto_renew(ms(9_000)),
            now,
        );
    }
    for step in 0..2_000_u64 {
        while let Some(output) = client.poll_output() {
            log.push(output.clone());
            match output {
                Output::Connect { connection, .. } if step % 7 == 3 => {
                    client.handle_disconnected(
                        connection,
                        redlock_core::DisconnectReason::Refused("no".into()),
                        now,
                    );
                }
                Output::Connect { connection, .. } => client.handle_connected(connection, now),
                Output::Transmit { connection, payload } => {
                    for command in decode(&payload) {
                        let answer = match (&command[0][..], (step + connection.node.index() as u64) % 11) {
                            (b"HELLO", _) => hello("redis", "8.4.0"),
                            (b"INFO", _) => info(1, 90),
                            (b"PING", _) => b"+PONG\r\n".to_vec(),
                            (b"SET", 0..=6) => OK.to_vec(),
                            (b"SET", 7) => NIL.to_vec(),
                            (b"SET", 8) => OOM.to_vec(),
                            (b"SET", _) => b"?".to_vec(),
                            _ => ONE.to_vec(),
                        };
                        client.handle_input(connection, &answer, now);
                    }
                }
                Output::Disconnect { .. } | Output::Event(_) => {}
            }
        }
        now = client.poll_timeout().map_or(now, |due| due.at);
        client.handle_timeout(now);
    }
    log
}

#[test]
fn c6_same_calls_same_outputs_to_the_byte() {
    let (first, second) = (story(7), story(7));
    assert!(first.len() > 100);
    assert_eq!(first, second);
    assert_ne!(story(8), first, "the seed decides the jitter");
}

#[test]
fn c7_the_clock_read_before_the_operation_and_after_the_read_keeps_belief_on_the_safe_side() {
    // The servers counted from when the SET ran, at 40 at the earliest; the answer was read at 90.
    let mut bench = Bench::new(1);
    bench.at(30);
    bench.try_acquire("orders");
    bench.at(90);
    bench.reply(0, OK);
    let (_, deadline) = bench.acquired();
    assert!(deadline <= 40 + 10_000 - 102 && deadline == 30 + 9_898);
}

#[test]
fn b55_values_that_cannot_be_reached_are_told_with_their_reason() {
    let mut bench = limited(|limits| limits.in_flight_per_node = 16);
    bench.cut_for(0, redlock_core::DisconnectReason::Tls("certificate expired".into()));
    bench.cut_for(1, redlock_core::DisconnectReason::Tls("certificate expired".into()));
    bench.forget();
    bench.try_acquire("orders");
    let error = bench.acquire_failed();
    assert!(matches!(&error.nodes[0].outcome, NodeOutcome::Unsent(NodeFault::Tls(_))));
    assert!(error.to_string().contains("certificate expired"), "{error}");
}
