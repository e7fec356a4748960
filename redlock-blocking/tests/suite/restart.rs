//! A node that restarts without its memory: the race that hands one lock to two owners, and the guard against it (R25).

use super::{Make, client_of, eventually, ms, within};
use core::time::Duration;
use redlock_blocking::{NodeState, Redlock};

const TTL: Duration = Duration::from_secs(2);

/// A client of these nodes that is connected to all of them.
fn guarded(urls: &[String], guard: Option<Duration>) -> Redlock {
    let mut builder = Redlock::builder().nodes(urls).retry_delay(ms(5), ms(20));
    if let Some(max_ttl) = guard {
        builder = builder.restart_guard(max_ttl);
    }
    let redlock = builder.connect().unwrap();
    eventually("all nodes answer", || {
        redlock
            .nodes()
            .iter()
            .all(|node| matches!(node.state, NodeState::Ready | NodeState::Quarantined { .. }))
    });
    redlock
}

/// Two clients of three nodes. The first one gets a lock on nodes 1 and 2 while node 0 is away for it; node 2 restarts and
/// forgets it; then the second one asks. Answers whether both hold it.
fn two_owners(make: &Make<'_>, guard: Option<Duration>) -> bool {
    let cluster = make(3);
    let urls = cluster.urls();
    if guard.is_some() {
        // The fleet has just been started: nothing is voted on for a while.
        let early = guarded(&urls, guard);
        early.try_acquire("door").lock().unwrap_err();
        eventually("all nodes vote", || early.nodes().iter().all(|node| node.state == NodeState::Ready));
    }
    let (first, second) = (guarded(&urls, guard), guarded(&urls, guard));
    // The key is taken on node 0, for a moment, by somebody else.
    cluster.put(0, "door", "another", None);
    let ttl = guard.unwrap_or(Duration::from_secs(30));
    let held = first.acquire("door").ttl(ttl).lock().unwrap();
    let run = second.nodes()[2].run_id.clone();
    cluster.kill(2);
    cluster.restart(2);
    eventually("the second client knows the restarted node", || {
        let node = &second.nodes()[2];
        node.run_id != run && matches!(node.state, NodeState::Ready | NodeState::Quarantined { .. })
    });
    cluster.remove(0, "door");
    let both = |won: &Redlock| won.try_acquire("door").ttl(ttl).lock().is_ok_and(|_| held.is_held());
    within(ms(500), || both(&second))
}

pub fn r25_without_the_guard_a_restarted_node_lets_a_second_owner_in(make: &Make<'_>) {
    assert!(two_owners(make, None), "the race that the guard is for");
}

pub fn r25_with_the_guard_it_does_not(make: &Make<'_>) {
    assert!(!two_owners(make, Some(TTL)));
}

pub fn r25_a_restarted_node_is_shown_as_quarantined_and_votes_again(make: &Make<'_>) {
    let cluster = make(1);
    let redlock = guarded(&cluster.urls(), Some(ms(500)));
    eventually("it votes", || redlock.nodes()[0].state == NodeState::Ready);
    let run = redlock.nodes()[0].run_id.clone();
    cluster.kill(0);
    cluster.restart(0);
    eventually("it is shown", || {
        let node = &redlock.nodes()[0];
        node.run_id != run
            && matches!(node.state, NodeState::Quarantined { left } if left <= Duration::from_secs(2))
    });
    let error = redlock.try_acquire("door").ttl(ms(400)).lock().unwrap_err();
    assert!(error.to_string().contains("gives no vote"), "{error}");
    // Waiting is enough: 1 s for the ttl, rounded up, and 1 s for what a reported uptime leaves out.
    redlock.acquire("door").ttl(ms(400)).wait(Duration::from_secs(10)).lock().unwrap().release().unwrap();
    assert!(
        client_of(&cluster.urls()).try_acquire("door").lock().unwrap().is_held(),
        "without the guard at once"
    );
}
