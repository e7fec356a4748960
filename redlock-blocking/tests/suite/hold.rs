//! A lock that is held, and the ways in which that ends.

use super::{Cluster, Make, client, client_of, eventually, ms, no_key, now, same_everywhere, timed};
use core::time::Duration;
use redlock_blocking::{
    AcquireErrorKind, Event, ExtendErrorKind, Guard, HoldError, LostReason, NodeVote, Redlock, ReleaseOutcome,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::mpsc;

const LONG: Duration = Duration::from_secs(30);

/// Somebody deletes the lock's key on a majority, and the next extension finds that out.
fn lose(cluster: &dyn Cluster, guard: &Guard) {
    let key = guard.resource().to_string();
    let nodes = cluster.addrs().len();
    same_everywhere(cluster, &key);
    (0..=nodes / 2).for_each(|node| cluster.remove(node, &key));
    guard.extend(LONG).unwrap_err();
}

pub fn r14_extend_moves_the_deadline_and_the_keys(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let guard = redlock.acquire("door").ttl(Duration::from_secs(5)).lock().unwrap();
    let value = same_everywhere(&*cluster, "door");
    let before = guard.valid_until();
    let deadline = guard.extend(LONG).unwrap();
    assert_eq!(deadline, guard.valid_until());
    assert!(deadline.saturating_duration_since(before) > Duration::from_secs(20));
    for node in 0..3 {
        eventually("the node has extended it", || {
            cluster.ttl(node, "door").is_some_and(|left| left > Duration::from_secs(25))
        });
    }
    assert_eq!(same_everywhere(&*cluster, "door"), value);
    // A shorter one counts, too.
    guard.extend(Duration::from_secs(2)).unwrap();
    assert!(guard.remaining() <= Duration::from_secs(2));
    assert!(guard.release().unwrap().is_clean());
    no_key(&*cluster, "door");
}

pub fn r14_extend_never_brings_a_lost_lock_back(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let guard = redlock.acquire("door").ttl(ms(60)).lock().unwrap();
    eventually("it has run out", || now() >= guard.valid_until());
    let error = guard.extend(LONG).unwrap_err();
    assert_eq!(error.kind, ExtendErrorKind::Lost(LostReason::Expired), "{error}");
    assert!(!guard.is_held());
    no_key(&*cluster, "door");
}

pub fn r14_keys_gone_from_a_majority_are_a_loss_at_once(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let guard = redlock.acquire("door").ttl(LONG).lock().unwrap();
    lose(&*cluster, &guard);
    assert_eq!(guard.wait_lost(LONG), Some(LostReason::TokenGone));
    assert!(!guard.is_held());
    assert_eq!(guard.remaining(), Duration::ZERO);
    assert_eq!(guard.lost_reason(), Some(LostReason::TokenGone));
    assert_eq!(guard.release().unwrap().outcome, ReleaseOutcome::NotMine);
    no_key(&*cluster, "door");
}

pub fn a_watched_lock_is_lost_with_its_keys(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let guard = redlock.acquire("door").ttl(LONG).watch_loss().lock().unwrap();
    same_everywhere(&*cluster, "door");
    super::is_quiet(&redlock);
    cluster.remove(0, "door");
    assert_eq!(guard.wait_lost(ms(300)), None, "a minority's keys are no loss");
    cluster.remove(1, "door");
    let (reason, took) = timed(|| guard.wait_lost(LONG));
    assert_eq!(reason, Some(LostReason::TokenGone));
    assert!(took < LONG / 3, "told, not found out at the deadline: {took:?}");
    assert!(!guard.is_held());
    no_key(&*cluster, "door");
}

pub fn a_watched_lock_that_is_renewed_is_lost_with_its_keys_and_not_before(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let guard = redlock.acquire("door").ttl(ms(900)).auto_renew(Duration::MAX).watch_loss().lock().unwrap();
    assert_eq!(guard.wait_lost(ms(3_000)), None, "its own extensions are no loss");
    let long = guard.extend(LONG).unwrap();
    eventually("the extension has come to all nodes", || {
        (0..3).all(|node| cluster.ttl(node, "door").is_some_and(|left| left > LONG / 2))
    });
    cluster.cut(2);
    super::all_ready(&redlock);
    super::is_quiet(&redlock);
    cluster.remove(0, "door");
    cluster.remove(2, "door");
    assert_eq!(guard.wait_lost(LONG), Some(LostReason::TokenGone));
    assert!(now() < long.saturating_sub(LONG / 2));
}

pub fn a_watched_lock_over_several_resources_is_lost_with_one(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let guard = redlock.acquire_all(["door", "gate"]).ttl(LONG).watch_loss().lock().unwrap();
    same_everywhere(&*cluster, "gate");
    super::is_quiet(&redlock);
    cluster.remove(0, "gate");
    cluster.remove(1, "door");
    assert_eq!(guard.wait_lost(LONG / 3), Some(LostReason::TokenGone));
    no_key(&*cluster, "door");
    no_key(&*cluster, "gate");
}

pub fn where_nodes_cannot_tell_a_watched_lock_is_as_any_other(make: &Make<'_>) {
    let cluster = make(3);
    (0..3).for_each(|node| cluster.refuse_tracking(node));
    let redlock = client(&*cluster);
    let guard = redlock.acquire("door").ttl(LONG).watch_loss().lock().unwrap();
    lose(&*cluster, &guard);
    assert_eq!(guard.wait_lost(LONG), Some(LostReason::TokenGone));
}

pub fn r15_a_restarted_node_is_repaired(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let guard = redlock.acquire("door").ttl(ms(1_500)).auto_renew(Duration::MAX).lock().unwrap();
    let value = same_everywhere(&*cluster, "door");
    cluster.kill(1);
    cluster.restart(1);
    assert_eq!(same_everywhere(&*cluster, "door"), value);
    assert!(guard.is_held());
    drop(guard);
    no_key(&*cluster, "door");
}

pub fn r16_renewal_keeps_the_lock_over_many_ttls(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let guard = redlock.acquire("door").ttl(ms(500)).auto_renew(Duration::MAX).lock().unwrap();
    let value = same_everywhere(&*cluster, "door");
    assert_eq!(guard.wait_lost(ms(2_000)), None);
    assert!(guard.is_held());
    assert_eq!(same_everywhere(&*cluster, "door"), value);
    assert!(guard.release().unwrap().is_clean());
    no_key(&*cluster, "door");
}

pub fn r16_max_hold_ends_the_renewal(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let guard = redlock.acquire("door").ttl(ms(300)).auto_renew(ms(900)).lock().unwrap();
    let end = now().saturating_add(ms(900));
    assert_eq!(guard.extend(LONG).unwrap_err().kind, ExtendErrorKind::BeyondMaxHold);
    assert_eq!(guard.wait_lost(LONG), Some(LostReason::Expired));
    assert!(guard.valid_until() <= end, "{:?} {end:?}", guard.valid_until());
    no_key(&*cluster, "door");
}

pub fn r17_loss_is_signalled_at_the_deadline_after_expiring(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let guard = redlock.acquire("door").ttl(ms(600)).auto_renew(Duration::MAX).lock().unwrap();
    let (said, heard) = mpsc::channel();
    let lost = said.clone();
    guard.on_expiring(move |expiring| said.send(Ok(expiring)).unwrap());
    guard.on_lost(move |reason| lost.send(Err(reason)).unwrap());
    cluster.kill(0);
    cluster.kill(1);
    assert_eq!(guard.wait_lost(LONG), Some(LostReason::Expired));
    let late = now().saturating_duration_since(guard.valid_until());
    assert!(now() >= guard.valid_until() && late < Duration::from_secs(1), "{late:?}");
    let expiring = heard.recv_timeout(LONG).unwrap().unwrap();
    assert_eq!(expiring.deadline, guard.valid_until());
    assert!(expiring.remaining <= ms(600));
    assert_eq!(heard.recv_timeout(LONG).unwrap(), Err(LostReason::Expired));
    // Once, and nothing after it: both callbacks are gone.
    assert!(heard.recv_timeout(LONG).is_err_and(|error| error == mpsc::RecvTimeoutError::Disconnected));
    cluster.restart(0);
    cluster.restart(1);
    assert!(!guard.is_held());
    assert!(redlock.acquire("door").wait(LONG).lock().unwrap().is_held());
}

pub fn r19_a_shared_lock_is_released_with_the_last_handle(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let first = redlock.acquire("door").ttl(LONG).lock().unwrap();
    let (second, third) = (first.share(), first.share());
    assert_eq!(first.release().unwrap().outcome, ReleaseOutcome::StillShared);
    drop(second);
    assert!(third.is_held());
    same_everywhere(&*cluster, "door");
    third.extend(LONG).unwrap();
    assert_eq!(third.release().unwrap().outcome, ReleaseOutcome::Released);
    no_key(&*cluster, "door");
}

pub fn r20_drop_releases_without_waiting(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let guard = redlock.acquire("door").ttl(LONG).lock().unwrap();
    same_everywhere(&*cluster, "door");
    (0..3).for_each(|node| cluster.freeze(node));
    let ((), took) = timed(|| drop(guard));
    (0..3).for_each(|node| cluster.thaw(node));
    assert!(took < ms(100), "{took:?}");
    no_key(&*cluster, "door");
    assert!(redlock.acquire("door").lock().unwrap().is_held());
}

pub fn r20_a_process_that_ends_right_after_drop_has_released(make: &Make<'_>) {
    let cluster = make(5);
    for _ in 0..5 {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child
            .args(["--exact", "a_child_process", "--nocapture", "--quiet"])
            .env(CHILD, cluster.urls().join(","));
        let output = child.output().unwrap();
        assert_eq!(output.status.code(), Some(42), "{output:?}");
        no_key(&*cluster, "door");
    }
}

const CHILD: &str = "REDLOCK_TEST_CHILD";

/// Acquires, drops, and ends with a status that tells that it came so far.
pub fn child() {
    let Ok(urls) = std::env::var(CHILD) else { return };
    let urls: Vec<String> = urls.split(',').map(str::to_string).collect();
    let redlock = client_of(&urls);
    let guard = redlock.acquire("door").ttl(Duration::from_secs(3_600)).lock().unwrap();
    assert!(guard.is_held());
    drop(guard);
    std::process::exit(42);
}

pub fn r20_close_releases_all(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let guards: Vec<Guard> = (0..10)
        .map(|index| redlock.acquire(format!("door:{index}")).ttl(LONG).auto_renew(LONG).lock().unwrap())
        .collect();
    let ((), took) = timed(|| redlock.close());
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(redlock.is_closed());
    for guard in guards {
        assert!(!guard.is_held());
        assert_eq!(guard.lost_reason(), Some(LostReason::Closed));
        assert_eq!(guard.wait_lost(LONG), Some(LostReason::Closed));
        guard.extend(LONG).unwrap_err();
        guard.release().unwrap_err();
    }
    for node in 0..3 {
        eventually("no key is left", || cluster.keys(node) == 0);
    }
    assert_eq!(redlock.acquire("door").lock().unwrap_err().kind, AcquireErrorKind::Closed);
    redlock.close();
}

pub fn r20_a_panic_in_a_callback_or_under_a_lock_ends_nothing_else(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let guard = redlock.acquire("door").ttl(LONG).lock().unwrap();
    let (said, heard) = mpsc::channel();
    guard.on_lost(|reason| panic!("a callback of a test panics: {reason}"));
    guard.on_lost(move |reason| said.send(reason).unwrap());
    lose(&*cluster, &guard);
    assert_eq!(heard.recv_timeout(LONG), Ok(LostReason::TokenGone));
    no_key(&*cluster, "door");
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        redlock.acquire("door").ttl(LONG).hold(|_| panic!("a body of a test panics")).unwrap();
    }));
    assert!(panicked.is_err());
    no_key(&*cluster, "door");
    assert!(redlock.acquire("door").lock().unwrap().is_held());
}

pub fn r20_the_last_handle_closes_the_client(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let mut events = redlock.events();
    let guard = redlock.acquire("door").ttl(LONG).auto_renew(LONG).lock().unwrap();
    drop(redlock.clone());
    drop(redlock);
    guard.extend(LONG).unwrap();
    assert!(guard.is_held(), "a guard keeps its client alive");
    drop(guard);
    no_key(&*cluster, "door");
    let last = events.by_ref().last();
    assert_eq!(last, Some(Event::Closed));
    assert_eq!(events.next_timeout(Duration::ZERO), None);
}

pub fn b13_a_lock_that_ran_out_unseen_is_not_held(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let guard = redlock.acquire("door").ttl(ms(60)).lock().unwrap();
    eventually("it has run out", || now() >= guard.valid_until());
    assert!(!guard.is_held());
    assert_eq!(guard.remaining(), Duration::ZERO);
    assert_eq!(guard.lost_reason(), Some(LostReason::Expired));
    assert_eq!(guard.release().unwrap().outcome, ReleaseOutcome::Expired);
    no_key(&*cluster, "door");
}

pub fn callbacks_may_call_into_the_client(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let guard = redlock.acquire("door").ttl(LONG).lock().unwrap();
    let (said, heard) = mpsc::channel();
    let again = redlock.clone();
    let callback = move |reason| {
        let guard = again.acquire("door").wait(LONG).lock().unwrap();
        guard.extend(LONG).unwrap();
        said.send((reason, guard.is_held())).unwrap();
    };
    lose(&*cluster, &guard);
    guard.on_lost(callback);
    assert_eq!(heard.recv_timeout(LONG), Ok((LostReason::TokenGone, true)));
}

pub fn events_tell_what_happens_and_are_bounded(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let (mut events, mut few) = (redlock.events(), redlock.events_with_capacity(2));
    let guard = redlock.acquire("door").ttl(ms(600)).auto_renew(LONG).lock().unwrap();
    let id = guard.id();
    let mut seen = |what: &str, is_it: &dyn Fn(&Event) -> bool| {
        let found = events.by_ref().find(is_it);
        assert!(found.is_some(), "{what}");
    };
    seen("acquired", &|event| matches!(event, Event::Acquired { lock, .. } if *lock == id));
    seen("renewed", &|event| matches!(event, Event::Renewed { lock, .. } if *lock == id));
    guard.release().unwrap();
    seen("released", &|event| matches!(event, Event::Released { lock, .. } if *lock == id));
    cluster.kill(2);
    seen("down", &|event| matches!(event, Event::NodeDown { node, .. } if node.index() == 2));
    cluster.restart(2);
    seen("up", &|event| matches!(event, Event::NodeUp { node, .. } if node.index() == 2));
    assert!(few.missed() > 0);
    assert!(few.try_next().is_some() && few.try_next().is_some());
    assert_eq!(few.try_next(), None);
    redlock.close();
    assert_eq!(few.last(), Some(Event::Closed));
}

pub fn votes_are_told_node_by_node(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let guard = redlock.acquire("door").ttl(LONG).lock().unwrap();
    same_everywhere(&*cluster, "door");
    eventually("all have confirmed", || {
        let votes = guard.votes();
        votes.len() == 3 && votes.iter().all(|vote| matches!(vote.vote, NodeVote::Confirmed { .. }))
    });
    for (vote, addr) in guard.votes().iter().zip(cluster.addrs()) {
        assert!(vote.address.contains(&addr.to_string()), "{vote:?}");
    }
    cluster.remove(2, "door");
    guard.extend(LONG).unwrap();
    assert!(guard.is_held());
}

pub fn hold_releases_and_tells_a_loss(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let output = redlock.acquire("door").ttl(LONG).hold(|guard| {
        same_everywhere(&*cluster, "door");
        guard.is_held()
    });
    assert!(output.unwrap());
    no_key(&*cluster, "door");

    let output = redlock.acquire("door").ttl(LONG).hold(|guard| {
        lose(&*cluster, guard);
        7
    });
    assert!(
        matches!(output, Err(HoldError::Lost { reason: LostReason::TokenGone, output: Some(7) })),
        "{output:?}"
    );
    no_key(&*cluster, "door");

    let other = client(&*cluster);
    let guard = other.acquire("door").ttl(LONG).lock().unwrap();
    let output = redlock.try_acquire("door").hold(|_| ());
    assert!(matches!(&output, Err(HoldError::NotAcquired(error)) if error.kind.is_contended()), "{output:?}");
    drop(guard);
    let kept: Option<Guard> = redlock.acquire("door").wait(LONG).hold(|guard| Some(guard.share())).unwrap();
    assert!(kept.is_some_and(|guard| guard.is_held()));
    is_clean_in_the_end(&redlock, &*cluster);
}

fn is_clean_in_the_end(redlock: &Redlock, cluster: &dyn Cluster) {
    redlock.close();
    no_key(cluster, "door");
}
