//! Many at once.

use crate::bench::{Bench, ms, secs};
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use redlock_tokio::Guard;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio::time::sleep;

#[tokio::test(start_paused = true)]
async fn b45_ten_thousand_guards_are_renewed_in_one_runtime() {
    let bench = Bench::new(3);
    let redlock = bench.client().await;
    let mut tasks = JoinSet::new();
    for index in 0..10_000 {
        let acquire = redlock.acquire(format!("door:{index}")).ttl(secs(60)).auto_renew(Duration::MAX);
        tasks.spawn(acquire.into_future());
    }
    let guards: Vec<Guard> = tasks.join_all().await.into_iter().collect::<Result<_, _>>().unwrap();
    assert_eq!(guards.len(), 10_000);
    for _ in 0..9 {
        sleep(secs(10)).await;
        let lost = guards.iter().filter(|guard| !guard.is_held()).count();
        assert_eq!(lost, 0);
    }
    assert_eq!(bench.keys(), 30_000);
    drop(guards);
    sleep(ms(1)).await;
    assert_eq!(bench.keys(), 0);
}

#[tokio::test(start_paused = true)]
async fn b26_fifty_tasks_have_their_turn_one_at_a_time() {
    let bench = Bench::new(3);
    let clients = [bench.client().await, bench.client().await];
    let inside = Arc::new(AtomicU32::new(0));
    let mut tasks = JoinSet::new();
    for index in 0..50 {
        let (redlock, inside) = (clients[index % 2].clone(), Arc::clone(&inside));
        tasks.spawn(async move {
            let hold = redlock.acquire("door").wait(Duration::MAX).hold(async |_| {
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two owners");
                sleep(ms(20)).await;
                inside.fetch_sub(1, Ordering::SeqCst);
            });
            hold.await.unwrap();
        });
    }
    assert_eq!(tasks.join_all().await.len(), 50);
    assert_eq!(bench.keys(), 0);
}
