//! Work under a lock.

use crate::bench::{Bench, ms, secs};
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use redlock_tokio::{HoldError, LostReason};
use std::sync::Arc;
use tokio::time::sleep;

#[tokio::test(start_paused = true)]
async fn hold_runs_to_its_end_and_releases() {
    let bench = Bench::new(3);
    let redlock = bench.client().await;
    let output = redlock.acquire("door").auto_renew(Duration::MAX).hold(async |guard| {
        sleep(secs(100)).await;
        assert_eq!(bench.holding("door"), 3);
        guard.is_held()
    });
    assert!(output.await.unwrap());
    assert_eq!(bench.keys(), 0);
}

#[tokio::test(start_paused = true)]
async fn hold_stops_its_body_at_the_next_await_when_the_lock_is_lost() {
    let bench = Bench::new(3);
    let redlock = bench.client().await;
    let steps = AtomicU32::new(0);
    let output = redlock.acquire("door").ttl(secs(10)).hold(async |_| {
        loop {
            sleep(secs(1)).await;
            steps.fetch_add(1, Ordering::SeqCst);
        }
    });
    let output: Result<(), _> = output.await;
    assert!(
        matches!(output, Err(HoldError::Lost { reason: LostReason::Expired, output: None })),
        "{output:?}"
    );
    assert_eq!(steps.into_inner(), 9, "the deadline is 9.898 s after the start");
    sleep(ms(1)).await;
    assert_eq!(bench.keys(), 0);
}

#[tokio::test(start_paused = true)]
async fn hold_hands_back_what_a_body_returned_that_lost_its_lock_on_the_way() {
    let bench = Bench::new(3);
    let redlock = bench.client().await;
    let output = redlock.acquire("door").ttl(secs(10)).hold(async |_| {
        // It never awaits.
        bench.clock.suspend(secs(10));
        7
    });
    assert_eq!(output.await.unwrap_err().into_output(), Some(7));
    let output = redlock.acquire("door").hold(async |_| {
        (0..3).for_each(|node| bench.nodes.freeze(node));
        8
    });
    let output = output.await;
    assert!(matches!(output, Err(HoldError::ReleaseFailed { output: 8, .. })), "{output:?}");
}

#[tokio::test(start_paused = true)]
async fn hold_does_not_run_its_body_without_the_lock() {
    let bench = Bench::new(3);
    let redlock = bench.client().await;
    bench.take("door");
    let ran = AtomicU32::new(0);
    let output = redlock.try_acquire("door").hold(async |_| ran.fetch_add(1, Ordering::SeqCst)).await;
    assert!(matches!(&output, Err(HoldError::NotAcquired(error)) if error.kind.is_contended()), "{output:?}");
    assert_eq!(ran.into_inner(), 0);
}

#[tokio::test(start_paused = true)]
async fn hold_releases_when_its_body_panics() {
    let bench = Bench::new(3);
    let redlock = bench.client().await;
    let task = tokio::spawn(async move {
        let hold = redlock.acquire("door").hold(async |_| {
            sleep(ms(5)).await;
            panic!("the body of a test panics");
        });
        hold.await.unwrap();
    });
    assert!(task.await.unwrap_err().is_panic());
    sleep(ms(1)).await;
    assert_eq!(bench.keys(), 0);
}

#[tokio::test(start_paused = true)]
async fn hold_can_be_spawned_with_what_it_borrows() {
    let bench = Bench::new(3);
    let redlock = bench.client().await;
    let name = Arc::new(String::from("door"));
    let task = tokio::spawn(async move {
        let text = String::from("of the task");
        redlock
            .acquire(name.as_str())
            .hold(async |guard| {
                let shared = guard.share();
                guard.extend(secs(20)).await.unwrap();
                sleep(ms(1)).await;
                shared.release().await.unwrap();
                text.len() + guard.resource().len()
            })
            .await
    });
    assert_eq!(task.await.unwrap().unwrap(), 15);
    // A body that keeps a handle keeps the lock.
    let redlock = bench.client().await;
    let kept = redlock.acquire("door").hold(async |guard| guard.share()).await.unwrap();
    assert!(kept.is_held());
}
