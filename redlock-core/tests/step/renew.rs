//! Renewal, `Expiring` and loss: R16 and R17.

use crate::bench::*;
use redlock_core::{Event, ExtendErrorKind, ExtendRefused, LockId, LostReason};
use std::time::Duration;

/// A lock that is renewed, over three nodes, held from 0 on. The jitter of the renewal is up to a tenth of a third.
fn renewed(ttl: u64, max_hold: Duration) -> (Bench, LockId) {
    let mut bench = Bench::new(3);
    let request = bench.request("orders").ttl(ms(ttl)).auto_renew(max_hold);
    let lock = bench.hold_by(request);
    bench.forget();
    (bench, lock)
}

/// Runs until then with nodes that confirm everything; answers with when and with which ttl n0 was extended.
fn confirmed_until(bench: &mut Bench, end: u64) -> Vec<(u64, u64)> {
    let mut extensions = Vec::new();
    while let Some(due) = bench.client.poll_timeout().filter(|due| due.at <= at(end)) {
        bench.until(due.at);
        for node in 0..3 {
            for command in bench.sent(node) {
                if node == 0 && command.contains(" IFEQ ") && command.starts_with("SET") {
                    let ttl = command.rsplit(' ').next().unwrap().parse().unwrap();
                    extensions.push((bench.now.as_millis(), ttl));
                }
                bench.reply(node, if command.starts_with("SET") { OK } else { ONE });
            }
        }
    }
    bench.at(end);
    extensions
}

#[test]
fn r16_due_when_a_third_of_the_time_has_passed() {
    let (mut bench, lock) = renewed(10_000, Duration::MAX);
    // A third of 9 898 is 3 299; up to a tenth of that earlier.
    bench.at(2_969);
    assert!(bench.sent_to_all().is_empty());
    bench.at(3_300);
    assert_eq!(bench.sent_to_all(), ["SET orders T1 IFEQ T1 PX 10000"]);
    bench.reply_all(OK);
    let told = bench.told();
    let renewed = told.iter().find_map(|event| match event {
        Event::Renewed { lock: of, deadline, confirmed } if *of == lock => {
            Some((deadline.as_millis(), *confirmed))
        }
        _ => None,
    });
    let (deadline, confirmed) = renewed.unwrap();
    assert!((2_969 + 9_898..=3_300 + 9_898).contains(&deadline));
    assert_eq!(confirmed, 3, "the margin; those that confirmed the SET count");
    assert_eq!(bench.deadline(lock), deadline);
}

#[test]
fn r16_b50_without_a_bound_a_thousand_renewals_work() {
    let (mut bench, lock) = renewed(3_000, Duration::MAX);
    let extensions = confirmed_until(&mut bench, 1_000_000);
    assert!(extensions.len() > 1_000 && extensions.iter().all(|(_, ttl)| *ttl == 3_000));
    let gaps: Vec<u64> = extensions.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(gaps.iter().all(|gap| (889..=990).contains(gap)), "{gaps:?}");
    assert!(gaps.iter().min() < gaps.iter().max(), "jitter");
    assert!(bench.is_held(lock));
}

#[test]
fn r16_a_node_timeout_longer_than_the_lock_keeps_only_retries_apart() {
    let mut bench = Bench::with(3, |config| config.node_timeout(ms(250)));
    let request = bench.request("orders").ttl(ms(120)).auto_renew(Duration::MAX);
    let lock = bench.hold_by(request);
    bench.forget();
    let extensions = confirmed_until(&mut bench, 10_000);
    assert!(extensions.windows(2).all(|pair| pair[1].0 - pair[0].0 <= 40), "{extensions:?}");
    assert!(bench.is_held(lock));
}

#[test]
fn r16_b50_without_renewal_it_ends_after_one_ttl() {
    let mut bench = Bench::new(3);
    let request = bench.request("orders").ttl(ms(3_000));
    let lock = bench.hold_by(request);
    bench.forget();
    assert!(confirmed_until(&mut bench, 2_968).is_empty());
    assert!(!bench.is_held(lock));
}

#[test]
fn r16_the_ttl_is_that_of_the_last_successful_extend() {
    let (mut bench, lock) = renewed(10_000, Duration::MAX);
    bench.extend(lock, 20_000);
    bench.reply_all(OK);
    bench.at(1_000);
    bench.extend(lock, 30_000); // fails
    bench.reply_all(b"-MISCONF x\r\n");
    bench.forget();
    let extensions = confirmed_until(&mut bench, 10_000);
    assert_eq!(extensions.first().map(|(_, ttl)| *ttl), Some(20_000));
    assert!(extensions[0].0 > 5_900, "{extensions:?}");
}

#[test]
fn r16_timed_anew_when_the_deadline_moves_down_and_up() {
    let (mut bench, lock) = renewed(10_000, Duration::MAX);
    bench.at(100);
    bench.extend(lock, 1_500);
    bench.forget();
    assert_eq!(bench.deadline(lock), 100 + 1_483);
    bench.at(200);
    bench.reply_all(b"-MISCONF x\r\n"); // not applied
    assert_eq!(bench.deadline(lock), 9_898);
    bench.at(2_900);
    assert!(bench.sent_to_all().is_empty(), "back to a third of the whole");

    let (mut bench, lock) = renewed(10_000, Duration::MAX);
    bench.at(100);
    bench.extend(lock, 1_500);
    bench.forget();
    bench.at(1_583 / 3 + 1);
    assert_eq!(bench.sent_to_all(), ["SET orders T1 IFEQ T1 PX 10000"], "a third of what is in force");
    bench.reply_all(b"+OK\r\n+OK\r\n");
    assert!(bench.deadline(lock) > 10_000);
}

#[test]
fn r16_b43_tried_again_within_the_lease_at_a_distance() {
    let (mut bench, lock) = renewed(3_000, Duration::MAX); // node timeout 150, ttl / 20 = 150
    let mut sent = Vec::new();
    for now in 0..2_968 {
        bench.at(now);
        for node in 0..3 {
            for command in bench.sent(node) {
                if node == 0 {
                    sent.push((bench.now.as_nanos(), command));
                }
                bench.reply(node, b"-MISCONF x\r\n");
            }
        }
    }
    let gaps: Vec<u64> = sent.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(sent.len() > 10 && gaps.iter().all(|gap| *gap >= 150_000_000), "{gaps:?}");
    let told = bench.told();
    assert!(
        told.iter().all(|event| matches!(event, Event::RenewalFailed { .. } | Event::Expiring { .. })),
        "{told:?}"
    );
    assert!(bench.is_held(lock), "not lost earlier without cause");
    bench.at(2_968);
    assert!(bench.told().contains(&Event::Lost { lock, reason: LostReason::Expired }), "and not later");
}

#[test]
fn r16_b43_broken_connections_while_a_renewal_is_due() {
    let (mut bench, lock) = renewed(3_000, Duration::MAX);
    let (other, held) = {
        let request = bench.request("invoices").ttl(ms(60_000)).auto_renew(Duration::MAX);
        let other = bench.hold_by(request);
        (other, bench.deadline(other))
    };
    bench.at(880);
    (0..3).for_each(|node| bench.cut(node));
    bench.at(1_300);
    for node in 0..3 {
        bench.until_wanted(node);
        bench.up(node);
    }
    let healthy = bench.now.as_millis();
    bench.told();
    while bench.sent(0).is_empty() {
        let due = bench.client.poll_timeout().unwrap();
        bench.until(due.at);
    }
    assert!(bench.now.as_millis() <= healthy + 151);
    bench.reply_all(OK);
    assert!(bench.told().iter().any(|event| matches!(event, Event::Renewed { lock: of, .. } if *of == lock)));
    assert_eq!(bench.deadline(other), held, "two locks do not disturb each other");
}

#[test]
fn r16_a_renewal_broken_between_write_and_reply_and_one_answered_after_its_decision() {
    let (mut bench, lock) = renewed(3_000, Duration::MAX);
    bench.at(990);
    let started = bench.sent(0).len();
    assert_eq!(started, 1);
    bench.cut(0);
    bench.reply(1, OK);
    bench.nothing_told();
    bench.at(1_200); // past its node timeout
    assert!(bench.told().iter().any(|event| matches!(event, Event::RenewalFailed { .. })));
    bench.reply(2, OK);
    assert!(bench.deadline(lock) > 3_800, "late, but before the deadline");
    assert!(bench.is_held(lock));
}

#[test]
fn r16_b50_max_hold_bounds_it_and_the_last_one_is_cut() {
    let (mut bench, lock) = renewed(3_000, ms(10_000));
    let extensions = confirmed_until(&mut bench, 9_600);
    let reached = |&(start, ttl): &(u64, u64)| start + ttl - ttl.div_ceil(100) - 2;
    assert!(extensions.iter().all(|extension| reached(extension) <= 10_000), "{extensions:?}");
    let last = extensions.last().unwrap();
    assert!(last.1 < 3_000 && reached(last) >= 9_996, "to the end after drift: {extensions:?}");
    // None moved the deadline by less than a tenth of the full ttl.
    let mut before = 2_968;
    for extension in &extensions {
        assert!(reached(extension) + 2 >= before + 300, "{extensions:?}");
        before = reached(extension);
    }
    let deadline = bench.deadline(lock);
    assert!(deadline <= 10_000 && deadline > 9_990);
    let more = confirmed_until(&mut bench, 10_000);
    assert!(more.is_empty());
    let told = bench.told();
    assert!(told.contains(&Event::Lost { lock, reason: LostReason::Expired }), "{told:?}");
}

#[test]
fn r16_a_manual_extend_beyond_max_hold_is_refused_with_nothing_sent() {
    let (mut bench, lock) = renewed(3_000, ms(10_000));
    bench.at(500);
    let refused = bench.client.extend(lock, ms(9_700), bench.now).unwrap_err();
    assert_eq!(refused, ExtendRefused::Because(ExtendErrorKind::BeyondMaxHold));
    bench.drain();
    assert!(bench.sent_to_all().is_empty());
    bench.extend(lock, 9_500);
    assert_eq!(bench.sent_to_all(), ["SET orders T1 IFEQ T1 PX 9500"]);
}

#[test]
fn r16_b14_max_hold_counts_from_the_winning_attempt() {
    let mut bench = Bench::with(3, |config| config.retry_delay(ms(200), ms(200)));
    let request = bench.request("orders").ttl(ms(3_000)).auto_renew(ms(5_000));
    bench.ask(request);
    bench.reply_all(NIL);
    bench.reply_all(ZERO);
    bench.at(200);
    bench.forget();
    bench.reply_all(OK);
    let (lock, _) = bench.acquired();
    confirmed_until(&mut bench, 5_000);
    assert!(bench.deadline(lock) > 5_000 && bench.deadline(lock) <= 5_200);
}

#[test]
fn r16_b41_it_stops_before_the_release_is_sent() {
    let (mut bench, lock) = renewed(3_000, Duration::MAX);
    bench.at(990);
    assert_eq!(bench.sent(0), ["SET orders T1 IFEQ T1 PX 3000"]);
    bench.release(lock);
    assert_eq!(bench.sent(0), ["DELEX orders IFEQ T1"]);
    bench.reply_all(b"+OK\r\n:1\r\n");
    bench.at(60_000);
    assert!(bench.sent(0).is_empty(), "no key re-appears");
    assert!(bench.client.is_idle());
    assert!(bench.client.poll_timeout().is_none(), "no timer is left");
}

#[test]
fn r16_b41_a_renewal_that_is_queued_is_withdrawn_by_the_release() {
    let (mut bench, lock) = renewed(3_000, Duration::MAX);
    bench.stopped_until(990);
    bench.client.handle_timeout(bench.now);
    bench.client.release(lock, bench.now).unwrap();
    bench.drain();
    assert_eq!(bench.sent_to_all(), ["DELEX orders IFEQ T1"]);
}

#[test]
fn r16_b45_blocked_for_half_a_ttl_it_is_still_held_for_longer_it_is_lost() {
    let (mut bench, lock) = renewed(10_000, Duration::MAX);
    bench.stopped_until(5_000);
    bench.client.handle_timeout(bench.now);
    bench.drain();
    assert_eq!(bench.sent_to_all().len(), 1);
    bench.reply_all(OK);
    assert_eq!(bench.deadline(lock), 14_898);
    bench.stopped_until(20_000);
    bench.client.handle_timeout(bench.now);
    bench.drain();
    assert!(bench.told().contains(&Event::Lost { lock, reason: LostReason::Expired }));
}

#[test]
fn r16_b43_after_a_loss_a_fresh_lock_on_the_same_key_is_renewed_normally() {
    let (mut bench, _) = renewed(3_000, Duration::MAX);
    bench.at(3_000);
    (0..3).for_each(|node| {
        if bench.is_connected(node) {
            bench.cut(node)
        }
    });
    for node in 0..3 {
        bench.until_wanted(node);
        bench.up(node);
    }
    for node in 0..3 {
        for _ in bench.sent(node) {
            bench.reply(node, ZERO);
        }
    }
    bench.forget();
    let start = bench.now.as_millis();
    let request = bench.request("orders").ttl(ms(3_000)).auto_renew(Duration::MAX);
    let lock = bench.hold_by(request);
    let extensions = confirmed_until(&mut bench, start + 30_000);
    assert!(extensions.len() >= 30 && bench.is_held(lock), "{extensions:?}");
}

#[test]
fn r17_expiring_a_quarter_before_the_deadline_then_lost_at_the_deadline_once() {
    let mut bench = Bench::new(3);
    let lock = bench.hold("orders");
    bench.forget();
    bench.at(7_423);
    bench.nothing_told();
    bench.at(7_424);
    assert_eq!(bench.told(), [Event::Expiring { lock, deadline: at(9_898) }]);
    bench.at(9_897);
    bench.nothing_told();
    assert!(bench.is_held(lock));
    bench.at(9_898);
    assert_eq!(bench.told(), [Event::Lost { lock, reason: LostReason::Expired }]);
    assert_eq!(bench.sent_to_all(), ["DELEX orders IFEQ T1"]);
    bench.reply_all(ONE);
    bench.at(60_000);
    bench.nothing_told();
    assert!(bench.sent_to_all().is_empty(), "once");
}

#[test]
fn r17_the_lead_is_configurable() {
    let mut bench = Bench::new(3);
    let request = bench.request("orders").expiring_lead(ms(1_000));
    let lock = bench.hold_by(request);
    bench.at(8_897);
    bench.nothing_told();
    bench.at(8_898);
    assert_eq!(bench.told(), [Event::Expiring { lock, deadline: at(9_898) }]);
}

#[test]
fn r17_an_extension_calls_for_another_expiring() {
    let mut bench = Bench::new(3);
    let lock = bench.hold("orders");
    bench.at(8_000);
    bench.told();
    bench.extend(lock, 10_000);
    bench.reply_all(OK);
    bench.extended();
    bench.at(17_898 - 2_475);
    bench.nothing_told();
    bench.at(17_898 - 2_474);
    assert_eq!(bench.told(), [Event::Expiring { lock, deadline: at(17_898) }]);
}

#[test]
fn r17_b45_a_lock_that_is_renewed_in_time_is_never_called_expiring() {
    let (mut bench, lock) = renewed(3_000, Duration::MAX);
    confirmed_until(&mut bench, 100_000);
    assert!(!bench.told().iter().any(|event| matches!(event, Event::Expiring { .. } | Event::Lost { .. })));
    assert!(bench.is_held(lock));
}

#[test]
fn r17_lost_at_the_deadline_itself_with_a_renewal_unanswered() {
    let (mut bench, lock) = renewed(1_000, Duration::MAX);
    bench.at(987);
    assert!(bench.is_held(lock));
    bench.told();
    bench.forget();
    bench.at(988);
    let told = bench.told();
    assert_eq!(told[0], Event::Lost { lock, reason: LostReason::Expired });
    assert_eq!(bench.sent(0).last().unwrap(), "DELEX orders IFEQ T1");
    // All its renewals are confirmed a moment too late.
    let outstanding = bench.client.node(node(0)).unwrap().in_flight;
    for _ in 1..outstanding {
        (0..3).for_each(|node| bench.reply(node, OK));
    }
    assert!(!bench.is_held(lock), "a lost handle never becomes held again");
    assert!(bench.told().iter().all(|event| !matches!(event, Event::Lost { .. } | Event::Renewed { .. })));
}

#[test]
fn r17_queued_extensions_are_withdrawn_by_the_loss() {
    let mut bench = Bench::new(3);
    let lock = bench.hold("orders");
    bench.at(9_000);
    bench.told();
    bench.client.extend(lock, ms(10_000), bench.now).unwrap();
    bench.stopped_until(9_898);
    bench.client.handle_timeout(bench.now);
    bench.drain();
    assert_eq!(bench.sent_to_all(), ["DELEX orders IFEQ T1"]);
    let told = bench.told();
    assert_eq!(told[0], Event::Lost { lock, reason: LostReason::Expired });
    assert!(
        matches!(&told[1], Event::ExtendFailed { error, .. } if error.kind == ExtendErrorKind::Lost(LostReason::Expired))
    );
}

#[test]
fn r17_loss_by_missing_tokens_releases_on_all_nodes_once() {
    let mut bench = Bench::new(3);
    bench.at(1_000);
    let lock = bench.hold("orders");
    bench.extend(lock, 10_000);
    bench.cut(2);
    bench.forget();
    bench.reply(0, NIL);
    let told = bench.told();
    if !told.iter().any(|event| matches!(event, Event::Lost { .. })) {
        bench.reply(1, NIL);
        assert!(bench.told().contains(&Event::Lost { lock, reason: LostReason::TokenGone }));
    }
    bench.up(2);
    assert_eq!(bench.sent_to_all(), ["DELEX orders IFEQ T1"]);
}
