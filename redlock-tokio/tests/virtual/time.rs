//! Deadlines, renewal and loss, to the millisecond.

use crate::bench::{Bench, ms, secs};
use core::time::Duration;
use redlock_tokio::{AcquireErrorKind, Event, LostReason};
use std::sync::mpsc;
use tokio::time::{sleep, timeout};

#[tokio::test(start_paused = true)]
async fn r13_held_until_the_deadline_and_told_there() {
    let bench = Bench::new(3);
    let redlock = bench.client().await;
    let guard = redlock.acquire("door").ttl(secs(5)).await.unwrap();
    assert_eq!(guard.remaining(), secs(5) - ms(52), "a drift of 1 % and 2 ms is taken off (R6)");
    sleep(guard.remaining() - ms(1)).await;
    assert!(guard.is_held());
    let reason = guard.lost().await;
    assert_eq!(reason, LostReason::Expired);
    let late = redlock.now().saturating_duration_since(guard.valid_until());
    assert!(!guard.is_held() && late <= ms(1), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn r13_a_suspended_machine_hears_of_the_loss_within_a_second_of_waking() {
    let bench = Bench::new(3);
    let redlock = bench.client().await;
    let guard = redlock.acquire("door").ttl(secs(3_600)).await.unwrap();
    sleep(secs(10)).await;
    bench.clock.suspend(secs(4_000));
    assert!(!guard.is_held(), "whoever asks reads the clock");
    let second = redlock.acquire("other").ttl(secs(3_600)).auto_renew(Duration::MAX).await.unwrap();
    bench.clock.suspend(secs(4_000));
    let woken = tokio::time::Instant::now();
    assert_eq!(second.lost().await, LostReason::Expired);
    assert!(woken.elapsed() <= secs(1), "{:?}", woken.elapsed());
}

#[tokio::test(start_paused = true)]
async fn r16_renewed_for_a_day_until_max_hold() {
    let bench = Bench::new(3);
    let redlock = bench.client().await;
    let day = secs(24 * 3_600);
    let guard = redlock.acquire("door").ttl(secs(600)).auto_renew(day).await.unwrap();
    let start = redlock.now();
    for _ in 0..95 {
        sleep(secs(900)).await;
        assert!(guard.is_held());
        assert_eq!(bench.holding("door"), 3);
    }
    assert_eq!(guard.lost().await, LostReason::Expired);
    let held = redlock.now().saturating_duration_since(start);
    assert!(held <= day && held > day - secs(120), "{held:?}");
}

#[tokio::test(start_paused = true)]
async fn r17_expiring_comes_before_the_loss() {
    let bench = Bench::new(3);
    let redlock = bench.client().await;
    let guard = redlock.acquire("door").ttl(secs(10)).auto_renew(Duration::MAX).await.unwrap();
    let (said, heard) = mpsc::channel();
    let lost = said.clone();
    guard.on_expiring(move |_| said.send("expiring").unwrap());
    guard.on_lost(move |_| lost.send("lost").unwrap());
    (0..3).for_each(|node| bench.nodes.freeze(node));
    let mut events = redlock.events();
    guard.lost().await;
    // The callbacks have a thread of their own.
    assert_eq!(heard.recv().unwrap(), "expiring");
    assert_eq!(heard.recv().unwrap(), "lost");
    let mut seen = Vec::new();
    while let Some(event) = events.try_next() {
        match event {
            Event::Expiring { .. } => seen.push("expiring"),
            Event::Lost { .. } => seen.push("lost"),
            _ => {}
        }
    }
    assert_eq!(seen, ["expiring", "lost"]);
}

#[tokio::test(start_paused = true)]
async fn r10_waiting_ends_at_the_wait_whatever_the_nodes_do() {
    let bench = Bench::new(3);
    let redlock = bench.client().await;
    (0..3).for_each(|node| bench.nodes.freeze(node));
    let start = redlock.now();
    let error = redlock.acquire("door").wait(secs(3)).await.unwrap_err();
    let took = redlock.now().saturating_duration_since(start);
    assert!(matches!(error.kind, AcquireErrorKind::WaitOver { .. }), "{error}");
    assert!(took >= secs(3) && took <= secs(3) + ms(501), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn b14_the_deadline_counts_from_the_attempt_that_won() {
    let bench = Bench::new(3);
    let (ann, bob) = (bench.client().await, bench.client().await);
    let guard = ann.acquire("door").ttl(secs(2)).await.unwrap();
    let next = bob.acquire("door").ttl(secs(2)).wait(secs(60)).await.unwrap();
    assert!(!guard.is_held());
    assert_eq!(next.remaining(), secs(2) - ms(22));
}

#[tokio::test(start_paused = true)]
async fn b45_a_blocked_executor_loses_the_lock_only_when_its_time_is_over() {
    let bench = Bench::new(3);
    let redlock = bench.client().await;
    let guard = redlock.acquire("door").ttl(secs(10)).auto_renew(Duration::MAX).await.unwrap();
    // Nothing is polled meanwhile.
    tokio::time::advance(secs(5)).await;
    sleep(ms(100)).await;
    assert!(guard.is_held());
    assert!(guard.remaining() > secs(9), "renewed as soon as the driver runs again");
    bench.clock.suspend(secs(15));
    assert_eq!(timeout(secs(2), guard.lost()).await.unwrap(), LostReason::Expired);
    assert!(redlock.acquire("door").await.unwrap().is_held(), "the client lives");
}

#[tokio::test(start_paused = true)]
async fn an_idle_client_sleeps() {
    let bench = Bench::new(3);
    let redlock = bench.client().await;
    let start = redlock.now();
    let connects = bench.connects();
    sleep(secs(24 * 3_600)).await;
    assert_eq!(bench.connects(), connects);
    assert!(redlock.now().saturating_duration_since(start) >= secs(24 * 3_600));
    assert!(redlock.acquire("door").await.unwrap().is_held());
}
