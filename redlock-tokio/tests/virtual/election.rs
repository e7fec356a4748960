//! Elections, to the millisecond.

use crate::bench::{Bench, ms, secs};
use core::sync::atomic::{AtomicU32, Ordering};
use redlock_tokio::{AcquireErrorKind, LostReason};
use tokio::time::{Instant, sleep, timeout};

#[tokio::test(start_paused = true)]
async fn who_fails_pauses_longer_each_time_and_leads_once_it_can() {
    let bench = Bench::new(3);
    let redlock = bench.client().await;
    let mut election = redlock.elect("job");
    let refuse =
        |text| (0..3).for_each(|node| bench.nodes.with(node, |server, _| server.fail_always("set", text)));
    refuse("NOPERM User default has no permissions to run the 'set' command");
    let mut pauses = Vec::new();
    for _ in 0..9 {
        let start = Instant::now();
        let error = election.campaign().await.expect_err("nobody may set");
        assert!(error.kind.is_no_quorum(), "{error}");
        assert!(error.to_string().contains("SET") || error.to_string().contains("'set'"), "{error}");
        pauses.push(start.elapsed().as_millis() / 10 * 10);
    }
    // Twice the longest delay between two attempts each time, which is 250 ms, up to 10 s.
    assert_eq!(pauses, [0, 250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
}

#[tokio::test(start_paused = true)]
async fn it_leads_for_as_long_as_it_wants_and_is_followed_at_once() {
    let bench = Bench::new(3);
    let (leader, follower) = (bench.client().await, bench.client().await);
    let mut election = leader.elect("job").ttl(secs(10));
    let term = election.campaign().await.unwrap();
    let mut next = follower.elect("job").ttl(secs(10));
    assert!(timeout(secs(300), next.campaign()).await.is_err(), "it renews");
    assert!(term.is_held());
    let start = Instant::now();
    let (term, ()) = tokio::join!(next.campaign(), async {
        sleep(secs(100)).await;
        drop(term);
    });
    assert!(term.unwrap().is_held());
    let took = start.elapsed() - secs(100);
    assert!(took <= ms(10), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn work_of_a_term_is_dropped_at_its_next_await_when_the_term_is_lost() {
    let bench = Bench::new(3);
    let redlock = bench.client().await;
    let mut election = redlock.elect("job").ttl(secs(10));
    let steps = AtomicU32::new(0);
    for _ in 0..2 {
        let term = election.campaign().await.unwrap();
        let work = async {
            loop {
                sleep(secs(1)).await;
                if steps.fetch_add(1, Ordering::SeqCst) == 4 {
                    for node in 0..3 {
                        bench.nodes.with(node, |server, now| server.remove(b"job", now));
                    }
                }
                if steps.load(Ordering::SeqCst) == 8 {
                    return 8;
                }
            }
        };
        match term.until_lost(work).await {
            Err(reason) => {
                assert_eq!(reason, LostReason::TokenGone);
                assert_eq!(steps.load(Ordering::SeqCst), 5, "told at once");
            }
            Ok(done) => assert_eq!(done, 8),
        }
    }
    assert_eq!(steps.into_inner(), 8, "it led again, and went on");
    assert_eq!(bench.keys(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_campaign_ends_when_its_client_is_closed() {
    let bench = Bench::new(3);
    bench.take("job");
    let redlock = bench.client().await;
    let mut election = redlock.elect("job");
    let (answer, ()) = tokio::join!(election.campaign(), async {
        sleep(secs(100)).await;
        redlock.close().await;
    });
    assert_eq!(answer.unwrap_err().kind, AcquireErrorKind::Closed);
    assert_eq!(election.campaign().await.unwrap_err().kind, AcquireErrorKind::Closed);
}
