//! Cases from other clients that are no single rule's.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::bench::*;
use crate::world::Random;
use proptest::prelude::*;
use redlock_core::{AcquireRequest, DisconnectReason, Event, LockId, NodeVote, ReleaseOutcome};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The deadline is never later than when any counted node's key can run out, less the drift.
    #[test]
    fn b01_the_deadline_is_never_later_than_any_vote_allows(
        nodes in 1..8_u8,
        ttl in 3_u64..100_000,
        start in 0..10_000_u64,
        delays in prop::collection::vec(0..200_u64, 8),
    ) {
        let mut bench = Bench::new(nodes);
        bench.at(start);
        let request = bench.request("orders").ttl(ms(ttl)).try_once();
        bench.ask(request);
        let sent_at = bench.now;
        let mut order: Vec<(u64, u8)> = delays.into_iter().zip(0..nodes).collect();
        order.sort_unstable();
        for (delay, node) in order {
            bench.at(start + delay);
            bench.reply(node, OK);
        }
        let drift = Duration::from_nanos((ttl * 10_000).div_ceil(1) ) + ms(2);
        if let Some(Event::Acquired { deadline, lock, .. }) = bench.told().first() {
            prop_assert!(*deadline <= sent_at.saturating_add(ms(ttl)).saturating_sub(drift));
            if let Some(view) = bench.client.lock(*lock) {
                for (_, vote) in view.votes() {
                    if let NodeVote::Confirmed { until } = vote {
                        prop_assert!(until <= sent_at.saturating_add(ms(ttl)).saturating_sub(drift));
                    }
                }
            }
        }
    }
}

#[test]
fn b04_three_confirmations_of_five_are_enough() {
    let mut bench = Bench::new(5);
    let lock = bench.hold("orders");
    bench.at(1_000);
    bench.extend(lock, 10_000);
    (0..3).for_each(|node| bench.reply(node, OK));
    assert_eq!(bench.extended(), 10_898);
}

#[test]
fn b06_an_extension_never_touches_another_owners_key() {
    for says in [REDIS_7, REDIS_8_4, VALKEY_8_1, VALKEY_9] {
        let mut bench = Bench::of(1, says);
        let lock = bench.hold("orders");
        bench.extend(lock, 10_000);
        let sent = bench.sent(0);
        // Compared with our whole value in the same command; never IFNE, which creates, nor a bare expire.
        assert_eq!(sent.len(), 1);
        assert!(
            sent[0] == "SET orders T1 IFEQ T1 PX 10000" || sent[0] == "EVAL extend 1 orders T1 10000",
            "{sent:?}"
        );
    }
}

#[test]
fn b12_the_token_is_the_requests_own_random_bits() {
    let mut bench = Bench::new(1);
    let mut values = BTreeSet::new();
    for byte in 0..=255_u8 {
        for place in 0..16 {
            let mut entropy = [0; 16];
            entropy[place] = byte;
            bench.payloads(0);
            bench.ask(AcquireRequest::new("orders", entropy).try_once());
            let commands = decode(&bench.payloads(0).concat());
            values.insert(commands[0][2].clone());
            bench.reply(0, NIL);
            bench.reply(0, ZERO);
            bench.reply(0, b":1\r\n");
            bench.told();
        }
    }
    assert_eq!(values.len(), 255 * 16 + 1, "every bit counts");
}

#[test]
fn b18_no_command_leaves_a_key_without_an_expiry() {
    for says in [REDIS_7, REDIS_8_4, VALKEY_8_1, VALKEY_9, Says::NoHello] {
        let mut bench = Bench::of(3, says);
        let lock = bench.hold("orders");
        bench.extend(lock, 10_000);
        let extension = bench.sent_to_all();
        let no = if extension[0].starts_with("SET") { NIL } else { ZERO };
        let yes = if extension[0].starts_with("SET") { OK } else { ONE };
        bench.reply(2, if says == Says::NoHello { ZERO } else { no });
        bench.reply(0, yes);
        bench.reply(1, yes);
        let repair = bench.sent(2);
        assert!(repair[0].starts_with("SET orders T1 NX PX "), "{repair:?}");
        for command in extension.iter().chain(&repair) {
            assert!(
                command.contains(" PX ") || command.starts_with("EVAL extend 1 orders T1 1"),
                "{command}"
            );
            assert!(!command.contains("KEEPTTL") && !command.contains("PERSIST"));
        }
    }
}

#[test]
fn b22_one_bad_node_of_three_costs_nothing_whatever_is_wrong_with_it() {
    for fault in 0..7 {
        let mut bench = Bench::cold(3);
        bench.up(0);
        bench.up(1);
        match fault {
            0 => bench.cut_for(2, DisconnectReason::Refused("refused".into())),
            1 => {} // packets are swallowed, or the resolver hangs
            2 => bench.accept(2),
            3 => bench.cut_for(2, DisconnectReason::Unresolvable("no such host".into())),
            _ => bench.up(2),
        }
        bench.forget();
        for round in 0..20 {
            bench.at(3_000 * round);
            let request = bench.request("orders").ttl(ms(2_000)).try_once();
            bench.ask(request);
            match fault {
                4 if bench.is_connected(2) => bench.reply(2, b"+O"),
                5 if bench.is_connected(2) => bench.reply(2, b"garbage"),
                _ => {}
            }
            if fault == 6 && bench.is_connected(2) {
                bench.cut(2);
            }
            bench.at(3_000 * round + 2);
            bench.reply(0, OK);
            bench.reply(1, OK);
            let (lock, deadline) = bench.acquired();
            assert_eq!(deadline, 3_000 * round + 1_978, "fault {fault}: no validity is lost");
            bench.extend(lock, 2_000);
            bench.reply(0, OK);
            bench.reply(1, OK);
            bench.extended();
            bench.release(lock);
            bench.reply(0, ONE);
            bench.reply(1, ONE);
            assert_eq!(bench.released(), ReleaseOutcome::Released);
            assert_eq!(bench.now, at(3_000 * round + 2), "fault {fault}");
            bench.log.clear();
        }
    }
}

#[test]
fn b28_a_thousand_random_drops_and_no_answer_reaches_the_wrong_call() {
    let mut random = Random(28);
    let mut bench = Bench::new(1);
    let (mut asked, mut wins) = (BTreeSet::new(), 0);
    for call in 0..3_000_u32 {
        let operation = bench.try_acquire(&format!("key{call}"));
        asked.insert((operation, call));
        if random.below(3) == 0 {
            bench.cancel(operation);
        }
        // The answers come late, several calls behind.
        while bench.client.node(node(0)).unwrap().in_flight > random.below(12) {
            let Some(command) = bench.next_command(0) else { break };
            let answer = answer_by_key(&command);
            bench.reply(0, answer);
        }
        for event in bench.told() {
            let Event::Acquired { operation, lock, .. } = event else { continue };
            let (_, call) = asked.iter().find(|(of, _)| *of == operation).unwrap();
            assert_eq!(call % 2, 0, "key{call} was refused");
            bench.release(lock);
            wins += 1;
        }
        bench.log.clear();
        bench.payloads(0);
    }
    assert!(wins > 500, "{wins}");
}

fn answer_by_key(command: &str) -> &'static [u8] {
    let even = || {
        let key = command.split(' ').nth(1).unwrap().strip_prefix("key").unwrap();
        key.parse::<u32>().unwrap() % 2 == 0
    };
    match command.split(' ').next().unwrap() {
        "SET" if even() => OK,
        "SET" => NIL,
        "PTTL" => b":9\r\n",
        _ if even() => ONE,
        _ => ZERO,
    }
}

#[test]
fn b32_one_node_with_an_empty_script_cache_or_a_new_version_changes_no_result() {
    let mut bench = Bench::of(3, VALKEY_9);
    let lock = bench.hold("orders");
    bench.at(100);
    bench.forget();
    bench.extend(lock, 10_000);
    bench.reply(0, b"-ERR unknown command 'DELIFEQ'\r\n"); // a downgraded server
    bench.reply(0, ONE);
    bench.reply(1, OK);
    bench.extended();
    bench.release(lock);
    bench.reply(0, b"-ERR unknown command 'DELIFEQ'\r\n");
    assert_eq!(bench.sent(0).last().unwrap(), "EVAL release 1 orders T1");
    bench.reply(0, ONE);
    bench.reply(1, ONE);
    assert_eq!(bench.released(), ReleaseOutcome::Released);
}

#[test]
fn b54_a_thousand_locks_at_once_are_renewed_and_released_one_by_one() {
    let mut bench = Bench::new(3);
    let mut locks: Vec<LockId> = Vec::new();
    for index in 0..1_000 {
        let request = bench.request(&format!("key{index}")).ttl(ms(10_000)).auto_renew(Duration::MAX);
        locks.push(bench.hold_by(request));
    }
    bench.log.clear();
    while bench.now < at(30_000) {
        let due = bench.client.poll_timeout().unwrap();
        bench.until(due.at);
        for node in 0..3 {
            while bench.next_command(node).is_some() {
                bench.reply(node, OK);
            }
        }
        bench.log.clear();
    }
    assert!(locks.iter().all(|lock| bench.is_held(*lock)));
    bench.told();
    for lock in locks {
        bench.release(lock);
        bench.reply_all(ONE);
        assert_eq!(bench.released(), ReleaseOutcome::Released);
    }
    assert!(bench.client.is_idle());
    assert_eq!(bench.client.poll_timeout(), None);
}

#[test]
fn b54_a_lock_that_everybody_forgot_leaves_with_its_ttl() {
    let mut bench = Bench::new(3);
    for index in 0..100 {
        bench.hold(&format!("key{index}"));
    }
    bench.at(9_898);
    for node in 0..3 {
        while bench.next_command(node).is_some() {
            bench.reply(node, ZERO);
        }
    }
    assert!(bench.client.is_idle());
}

#[test]
fn r15_r14a_a_repair_broken_between_write_and_reply_may_have_run() {
    let mut bench = Bench::new(3);
    bench.at(1_000);
    let lock = bench.hold("orders");
    bench.extend(lock, 10_000);
    bench.reply(2, NIL);
    bench.reply(0, OK);
    bench.reply(1, OK);
    assert_eq!(bench.sent(2).last().unwrap(), "SET orders T1 NX PX 10000");
    bench.told();
    bench.reconnect(2);
    bench.extend(lock, 10_000);
    bench.reply(2, OK);
    bench.reply(0, OK);
    assert_eq!(bench.extended(), 10_898, "n2 counts: its repair ran");
}

#[test]
fn r18_broken_between_write_and_reply_the_release_is_sent_and_counted_again() {
    let mut bench = Bench::new(3);
    bench.at(1_000);
    let lock = bench.hold("orders");
    bench.release(lock);
    bench.cut(0);
    bench.cut(1);
    bench.nothing_told();
    bench.up(0);
    bench.up(1);
    bench.reply(0, ONE);
    bench.reply(1, ONE);
    assert_eq!(bench.released(), ReleaseOutcome::Released);
}

#[test]
fn r18_an_answer_after_the_decision_is_nobodys() {
    let mut bench = Bench::new(3);
    let lock = bench.hold("orders");
    bench.release(lock);
    bench.reply(0, ONE);
    bench.at(500);
    assert!(matches!(bench.released(), ReleaseOutcome::Unknown { .. }));
    bench.reply(1, ONE);
    bench.reply(2, ONE);
    bench.nothing_told();
    assert!(bench.client.is_idle());
}
