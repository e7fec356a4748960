//! R20: whatever is dropped, and whenever, nothing leaks, hangs, or gets the answer of something else.
//!
//! Each operation is dropped unpolled, and then at every millisecond of its life: the nodes answer 10, 20 and 30 ms after
//! they were asked, so that before the first write, after it, after each reply and after the decision are all among these.

use crate::bench::{Bench, Random, all_ready, ms, secs};
use core::time::Duration;
use redlock_tokio::Redlock;
use tokio::time::{sleep, timeout};

/// Longer than any of the operations takes.
const LIFE: u64 = 80;

/// Drops what `work` makes after each of so many milliseconds, and expects that nothing is left of it: no key, no
/// connection that had to be made anew, no answer for anybody else.
async fn dropped_at_any_time(work: impl AsyncFn(&Redlock)) {
    let bench = Bench::new(3);
    let redlock = bench.client().await;
    let connects = bench.connects();
    for life in 0..LIFE {
        bench.delay_each();
        let _over = timeout(ms(life), work(&redlock)).await;
        // What was under way ends.
        sleep(secs(2)).await;
        assert_eq!(bench.keys(), 0, "dropped after {life} ms");
        assert_eq!(bench.connects(), connects, "dropped after {life} ms");
        // All answers reach whom they are for.
        bench.no_delay();
        bench.take("taken");
        let guard = redlock.try_acquire("free").await.unwrap();
        assert!(redlock.try_acquire("taken").await.unwrap_err().kind.is_contended());
        assert!(guard.extend(secs(20)).await.is_ok());
        assert!(guard.release().await.unwrap().is_clean());
        assert_eq!((bench.holding("free"), bench.holding("taken")), (0, 3));
        for node in 0..3 {
            bench.nodes.with(node, |server, now| server.remove(b"taken", now));
        }
    }
    redlock.close().await;
}

#[tokio::test(start_paused = true)]
async fn r20_acquire() {
    dropped_at_any_time(async |redlock| drop(redlock.acquire("door").ttl(secs(3_600)).await)).await;
}

#[tokio::test(start_paused = true)]
async fn r20_acquire_of_several() {
    dropped_at_any_time(async |redlock| drop(redlock.acquire_all(["a", "b"]).ttl(secs(3_600)).await)).await;
}

#[tokio::test(start_paused = true)]
async fn r20_acquire_that_waits_for_another() {
    dropped_at_any_time(async |redlock| {
        let holder = redlock.acquire("door").ttl(secs(3_600)).await.unwrap();
        let waiting = redlock.acquire("door").ttl(secs(3_600));
        let (first, second) = tokio::join!(waiting.into_future(), async {
            sleep(ms(5)).await;
            drop(holder);
        });
        drop((first, second));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn r20_campaign() {
    dropped_at_any_time(async |redlock| {
        let mut election = redlock.elect("door").ttl(secs(3_600));
        let _over = timeout(ms(15), election.campaign()).await;
        drop(election.campaign().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn r20_extend() {
    dropped_at_any_time(async |redlock| {
        let guard = redlock.acquire("door").ttl(secs(3_600)).await.unwrap();
        // The guard outlives its extension, unless it goes with it.
        let _over = timeout(ms(15), guard.extend(secs(7_200))).await;
        assert!(guard.is_held());
        let _deadline = guard.extend(secs(7_200)).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn b51_release() {
    dropped_at_any_time(async |redlock| {
        let guard = redlock.acquire("door").ttl(secs(3_600)).auto_renew(Duration::MAX).await.unwrap();
        let _released = guard.release().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn b51_release_that_was_never_polled() {
    dropped_at_any_time(async |redlock| {
        let guard = redlock.acquire("door").ttl(secs(3_600)).await.unwrap();
        drop(guard.release());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn b41_renewal_ends_with_the_guard() {
    dropped_at_any_time(async |redlock| {
        let guard = redlock.acquire("door").ttl(ms(120)).auto_renew(Duration::MAX).await.unwrap();
        sleep(ms(LIFE)).await;
        drop(guard);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn r20_hold() {
    dropped_at_any_time(async |redlock| {
        let _output = redlock.acquire("door").ttl(secs(3_600)).hold(async |_| sleep(ms(5)).await).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn r20_shared_handles_and_waits_for_the_loss() {
    dropped_at_any_time(async |redlock| {
        let guard = redlock.acquire("door").ttl(secs(3_600)).await.unwrap();
        let second = guard.share();
        tokio::select! {
            _ = second.lost() => unreachable!("it is held"),
            () = sleep(ms(5)) => drop(second),
        }
        guard.release().await.unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn r20_connect_and_close() {
    let bench = Bench::new(3);
    bench.delay_each();
    for life in 0..2 * LIFE {
        let _over = timeout(ms(life), async {
            let redlock = bench.builder().connect().await.unwrap();
            let guard = redlock.acquire("door").ttl(secs(3_600)).await.unwrap();
            redlock.close().await;
            assert!(!guard.is_held());
        })
        .await;
        sleep(secs(2)).await;
        assert_eq!(bench.keys(), 0, "dropped after {life} ms");
        let connections: usize = (0..3).map(|node| bench.nodes.connections(node)).sum();
        assert_eq!(connections, 0, "dropped after {life} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn r20_aborted_tasks() {
    dropped_at_any_time(async |redlock| {
        let redlock = redlock.clone();
        // All tasks of a set are aborted when it is dropped.
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(async move {
            let guard = redlock.acquire("door").ttl(secs(3_600)).await.unwrap();
            guard.extend(secs(7_200)).await.unwrap();
            guard.release().await.unwrap();
        });
        tasks.join_next().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn b28_a_thousand_dropped_among_ten_thousand_shift_no_reply() {
    let seed = std::env::var("REDLOCK_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(28);
    eprintln!("REDLOCK_SEED={seed}");
    let mut random = Random(seed);
    let bench = Bench::new(3);
    let redlock = bench.client().await;
    let connects = bench.connects();
    (0..20).for_each(|index| bench.take(&format!("taken:{index}")));
    for round in 0..100 {
        (0..3).for_each(|node| bench.nodes.set_delay(node, ms(random.below(10))));
        let mut tasks = tokio::task::JoinSet::new();
        for call in 0..100 {
            let (redlock, life, is_taken) = (redlock.clone(), random.below(40), random.below(2) == 0);
            let key = if is_taken { format!("taken:{}", call % 20) } else { format!("free:{call}") };
            let is_dropped = random.below(10) == 0;
            tasks.spawn(async move {
                let acquire = redlock.try_acquire(&key).ttl(secs(3_600));
                let answer = if is_dropped {
                    let Ok(answer) = timeout(ms(life), acquire.into_future()).await else { return };
                    answer
                } else {
                    acquire.await
                };
                match answer {
                    Ok(guard) => {
                        assert!(!is_taken, "{key} was granted");
                        assert!(guard.extend(secs(3_600)).await.is_ok());
                        assert!(guard.release().await.unwrap().is_clean());
                    }
                    Err(error) => assert!(is_taken && error.kind.is_contended(), "{error}"),
                }
            });
        }
        tasks.join_all().await;
        sleep(secs(2)).await;
        assert_eq!(bench.keys(), 60, "round {round}");
    }
    assert_eq!(bench.connects(), connects);
    all_ready(&redlock).await;
}
