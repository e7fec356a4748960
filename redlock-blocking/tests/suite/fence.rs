//! Fencing tokens: numbers that grow from grant to grant, whatever happens to a minority of the nodes.

use super::{Cluster, Make, client, client_of, eventually, ms, no_key, same_everywhere};
use core::time::Duration;
use redlock_blocking::{Fence, Redlock};
use std::collections::BTreeMap;

const LONG: Duration = Duration::from_secs(30);

/// A number that a double cannot hold: scripts that compute with it lose it.
const BEYOND_DOUBLES: u64 = (1 << 53) + 1;

fn grant(redlock: &Redlock, resource: &str) -> Fence {
    let guard = redlock.acquire(resource).ttl(LONG).fenced().lock().unwrap();
    let fence = guard.fence().unwrap();
    assert_eq!(guard.share().fence(), Some(fence));
    guard.release().unwrap();
    fence
}

fn counter(cluster: &dyn Cluster, node: usize, key: &str) -> Option<u64> {
    let text = String::from_utf8(cluster.value(node, &format!("{key}:fence"))?).unwrap();
    Some(text.parse().unwrap())
}

fn nodes_at_least(cluster: &dyn Cluster, key: &str, fence: Fence) -> usize {
    let at_least = |node: &usize| counter(cluster, *node, key) >= Some(fence.get());
    (0..cluster.urls().len()).filter(at_least).count()
}

pub fn fences_grow_from_grant_to_grant_and_a_majority_holds_each(make: &Make<'_>) {
    let cluster = make(5);
    let (first, second) = (client(&*cluster), client(&*cluster));
    let mut last = Fence::new(0);
    for turn in 0..20 {
        let redlock = if turn % 3 == 0 { &first } else { &second };
        let guard = redlock.acquire("door").ttl(LONG).fenced().lock().unwrap();
        let fence = guard.fence().unwrap();
        assert!(fence > last, "{fence} after {last}");
        assert!(nodes_at_least(&*cluster, "door", fence) >= 3, "{fence} is not held by a majority");
        last = fence;
        guard.release().unwrap();
    }
    no_key(&*cluster, "door");
    assert!(cluster.ttl(0, "door:fence").is_none(), "counters stay");
}

pub fn a_plain_lock_has_no_fence_and_makes_no_counter(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let guard = redlock.acquire("door").lock().unwrap();
    assert_eq!(guard.fence(), None);
    guard.release().unwrap();
    no_key(&*cluster, "door");
    no_key(&*cluster, "door:fence");
}

pub fn plain_and_fenced_holders_exclude_each_other(make: &Make<'_>) {
    let cluster = make(3);
    let (first, second) = (client(&*cluster), client(&*cluster));
    let plain = first.acquire("door").ttl(LONG).lock().unwrap();
    second.try_acquire("door").fenced().lock().unwrap_err();
    plain.release().unwrap();
    no_key(&*cluster, "door");
    let fenced = second.acquire("door").ttl(LONG).fenced().lock().unwrap();
    first.try_acquire("door").lock().unwrap_err();
    fenced.release().unwrap();
}

pub fn fences_grow_while_nodes_are_killed_and_come_back_empty(make: &Make<'_>) {
    let cluster = make(5);
    let redlock = client(&*cluster);
    let mut last = Fence::new(0);
    for turn in 0..10 {
        // One node at a time: nodes come back empty, and two of five might not.
        let node = turn % 5;
        cluster.kill(node);
        let fence = grant(&redlock, "door");
        assert!(fence > last, "{fence} after {last}, node {node} killed");
        cluster.restart(node);
        let next = grant(&redlock, "door");
        assert!(next > fence, "{next} after {fence}, node {node} restarted");
        last = next;
        super::all_ready(&redlock);
    }
}

pub fn numbers_beyond_doubles_are_kept_to_the_last_digit(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    // Ahead of every clock, and of the others'.
    for (node, ahead) in [(0, 0), (1, 1), (2, 2)] {
        cluster.put(node, "door:fence", &(BEYOND_DOUBLES + ahead).to_string(), None);
    }
    let fence = grant(&redlock, "door").get();
    assert!((BEYOND_DOUBLES + 2..=BEYOND_DOUBLES + 3).contains(&fence), "{fence}");
    let next = grant(&redlock, "door").get();
    assert!(next > fence, "{next} after {fence}");
}

pub fn acquire_all_has_one_fence_above_all_its_counters(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let before = grant(&redlock, "b");
    for node in 0..3 {
        cluster.put(node, "a:fence", "5", None);
    }
    let guard = redlock.acquire_all(["a", "b"]).ttl(LONG).fenced().lock().unwrap();
    let fence = guard.fence().unwrap();
    assert!(fence > before, "{fence} after {before}");
    assert!(nodes_at_least(&*cluster, "a", fence) >= 2);
    assert!(nodes_at_least(&*cluster, "b", fence) >= 2);
    guard.release().unwrap();
    for resource in ["a", "b"] {
        let next = grant(&redlock, resource);
        assert!(next > fence, "{resource}: {next} after {fence}");
    }
}

pub fn retention_gives_counters_an_end_and_its_absence_takes_it_away(make: &Make<'_>) {
    let cluster = make(3);
    let day = Duration::from_secs(86_400);
    let keeping = Redlock::builder().nodes(cluster.urls()).fence_retention(day).connect().unwrap();
    super::all_ready(&keeping);
    let fence = grant(&keeping, "door");
    for node in 0..3 {
        eventually("the counter is there", || counter(&*cluster, node, "door").is_some());
        let left = cluster.ttl(node, "door:fence").unwrap();
        assert!(left > Duration::from_secs(86_000) && left <= day, "{left:?}");
    }
    let next = grant(&client(&*cluster), "door");
    assert!(next > fence);
    // On those that granted it: the release of the lock before may be late on a third one.
    let staying = || (0..3).filter(|node| cluster.ttl(*node, "door:fence").is_none()).count();
    assert!(staying() >= 2, "{} counters stay", staying());
}

pub fn r15_a_repaired_node_has_the_fence(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let guard = redlock.acquire("door").ttl(ms(1_500)).auto_renew(Duration::MAX).fenced().lock().unwrap();
    let fence = guard.fence().unwrap();
    let value = same_everywhere(&*cluster, "door");
    cluster.kill(1);
    cluster.restart(1);
    assert_eq!(same_everywhere(&*cluster, "door"), value);
    assert!(counter(&*cluster, 1, "door") >= Some(fence.get()), "the counter comes back with the key");
    assert_eq!(guard.fence(), Some(fence), "renewal does not move it");
    guard.release().unwrap();
    no_key(&*cluster, "door");
    assert!(grant(&redlock, "door") > fence);
}

pub fn contending_clients_never_share_a_fence(make: &Make<'_>) {
    let cluster = make(3);
    let urls = cluster.urls();
    let held = std::sync::Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let redlock = client_of(&urls);
                for _ in 0..10 {
                    let guard = redlock.acquire("door").ttl(LONG).wait(LONG).fenced().lock().unwrap();
                    let fence = guard.fence().unwrap();
                    let mut held = held.lock().unwrap();
                    if let Some((last, ())) = held.last_key_value() {
                        assert!(fence > *last, "{fence} after {last}");
                    }
                    held.insert(fence, ());
                    drop(held);
                    guard.release().unwrap();
                }
            });
        }
    });
    assert_eq!(held.into_inner().unwrap().len(), 30);
}
