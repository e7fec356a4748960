//! Acquire and release, while all is well.

use super::{Make, client, eventually, ms, no_key, same_everywhere, timed, within};
use core::time::Duration;
use redlock_blocking::{AcquireErrorKind, Holder, InvalidArgument, Redlock, ReleaseOutcome};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

pub fn r2_all_nodes_are_set_and_release_leaves_no_key(make: &Make<'_>) {
    let cluster = make(5);
    let redlock = client(&*cluster);
    let guard = redlock.acquire("door").ttl(Duration::from_secs(30)).lock().unwrap();
    assert!(guard.is_held());
    assert_eq!(guard.resource(), "door");
    assert!(guard.remaining() <= Duration::from_secs(30) && guard.remaining() > Duration::from_secs(25));
    same_everywhere(&*cluster, "door");
    for node in 0..5 {
        assert!(cluster.ttl(node, "door").is_some_and(|left| left > Duration::from_secs(25)));
    }
    assert_eq!(guard.release().unwrap().outcome, ReleaseOutcome::Released);
    no_key(&*cluster, "door");
}

pub fn r8b_the_key_is_the_resource_and_the_value_names_the_client(make: &Make<'_>) {
    let cluster = make(1);
    let redlock = Redlock::builder()
        .nodes(cluster.urls())
        .client_name("billing")
        .key_prefix("locks:")
        .connect()
        .unwrap();
    let first = redlock.acquire("a b\r\n{c}").lock().unwrap();
    let value = same_everywhere(&*cluster, "locks:a b\r\n{c}");
    assert!(value.ends_with(b":billing"), "{value:?}");
    assert_eq!(cluster.keys(0), 1);
    first.release().unwrap();
    let second = redlock.acquire("a b\r\n{c}").lock().unwrap();
    assert_ne!(same_everywhere(&*cluster, "locks:a b\r\n{c}"), value, "a fresh token for every attempt (R8)");
    drop(second);
    no_key(&*cluster, "locks:a b\r\n{c}");
}

pub fn r9_waiting_wins_once_the_holder_is_gone(make: &Make<'_>) {
    let cluster = make(3);
    let (ann, bob) = (client(&*cluster), client(&*cluster));
    let guard = ann.acquire("door").lock().unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| bob.acquire("door").wait(Duration::from_secs(20)).lock());
        assert!(!within(ms(100), || waiting.is_finished()));
        drop(guard);
        let second = waiting.join().unwrap().unwrap();
        assert!(second.is_held());
    });
    no_key(&*cluster, "door");
}

pub fn r12_what_makes_no_sense_is_refused_with_nothing_sent(make: &Make<'_>) {
    let cluster = make(1);
    let redlock = client(&*cluster);
    let kind = |acquire: redlock_blocking::Acquire<'_>| acquire.lock().unwrap_err().kind;
    assert_eq!(kind(redlock.acquire("")), AcquireErrorKind::Invalid(InvalidArgument::EmptyResource));
    assert_eq!(
        kind(redlock.acquire("a").attempts(0)),
        AcquireErrorKind::Invalid(InvalidArgument::NoAttempts)
    );
    let short = kind(redlock.acquire("a").ttl(ms(1)));
    assert!(matches!(short, AcquireErrorKind::Invalid(InvalidArgument::TtlTooShort { .. })), "{short:?}");
    let hold = kind(redlock.acquire("a").ttl(ms(500)).auto_renew(ms(100)));
    assert!(matches!(hold, AcquireErrorKind::Invalid(InvalidArgument::MaxHoldBelowTtl { .. })), "{hold:?}");
    let twice = kind(redlock.acquire_all(["a", "a"]));
    assert!(
        matches!(twice, AcquireErrorKind::Invalid(InvalidArgument::RepeatedResource { .. })),
        "{twice:?}"
    );
    let guard = redlock.acquire("a").lock().unwrap();
    let error = guard.extend(ms(1)).unwrap_err();
    assert!(error.to_string().contains("ttl"), "{error}");
    assert!(guard.is_held());
    assert_eq!(cluster.keys(0), 1);
}

pub fn b52_contention_is_told_in_full(make: &Make<'_>) {
    let cluster = make(3);
    let (ann, bob) = (client(&*cluster), client(&*cluster));
    let guard = ann.acquire("door").ttl(Duration::from_secs(30)).lock().unwrap();
    same_everywhere(&*cluster, "door");
    let (error, took) = timed(|| bob.try_acquire("door").lock().unwrap_err());
    assert!(error.kind.is_contended(), "{error}");
    assert_eq!(error.attempts, 1);
    assert!(took < Duration::from_secs(2), "{took:?}");
    let text = error.to_string();
    assert!(text.contains("door") && text.contains("held by another"), "{text}");
    for addr in cluster.addrs() {
        assert!(text.contains(&addr.to_string()), "{text}");
    }
    let holders = error.nodes.iter().filter(|node| matches!(node.holder, Some(Holder::Lock { .. }))).count();
    assert!(holders >= 2, "the holder's remaining time is told: {text}");

    let (error, took) = timed(|| bob.acquire("door").wait(ms(200)).lock().unwrap_err());
    assert!(matches!(error.kind, AcquireErrorKind::WaitOver { .. }) && error.kind.is_contended(), "{error}");
    assert!(took >= ms(150), "{took:?}");
    assert!(error.attempts > 1, "{error}");

    guard.release().unwrap();
    cluster.put(0, "door", "no lock", None);
    cluster.put(1, "door", "no lock", None);
    let error = bob.try_acquire("door").lock().unwrap_err();
    assert!(error.to_string().contains("no lock of ours"), "{error}");
    assert_eq!(cluster.value(0, "door"), Some(b"no lock".to_vec()));
}

pub fn b10_a_slow_holder_does_not_remove_the_next_ones_lock(make: &Make<'_>) {
    let cluster = make(3);
    let (ann, bob) = (client(&*cluster), client(&*cluster));
    let slow = ann.acquire("door").ttl(ms(100)).lock().unwrap();
    // A node on which it expires a moment later would refuse the next one.
    no_key(&*cluster, "door");
    let next = bob.acquire("door").ttl(Duration::from_secs(30)).lock().unwrap();
    let value = same_everywhere(&*cluster, "door");
    assert!(!slow.is_held());
    assert_eq!(slow.release().unwrap().outcome, ReleaseOutcome::Expired);
    assert!(ann.try_acquire("door").lock().is_err());
    assert!(next.is_held());
    assert_eq!(same_everywhere(&*cluster, "door"), value);
    assert!(cluster.ttl(0, "door").is_some_and(|left| left > Duration::from_secs(20)));
}

pub fn b54_many_resources_leave_nothing_behind(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    for index in 0..300 {
        let guard = redlock.acquire(format!("invoice:{index}")).lock().unwrap();
        assert!(guard.is_held());
        if index % 2 == 0 {
            guard.release().unwrap();
        }
    }
    let held: Vec<_> =
        (0..100).map(|index| redlock.acquire(format!("held:{index}")).lock().unwrap()).collect();
    assert!(held.iter().all(redlock_blocking::Guard::is_held));
    drop(held);
    for node in 0..3 {
        eventually("no key is left", || cluster.keys(node) == 0);
    }
}

pub fn acquire_all_takes_all_or_none(make: &Make<'_>) {
    let cluster = make(3);
    let (ann, bob) = (client(&*cluster), client(&*cluster));
    let both = ann.acquire_all(["a", "b"]).lock().unwrap();
    assert_eq!(both.resource(), "a, b");
    assert_eq!(both.resources().collect::<Vec<_>>(), [b"a", b"b"]);
    same_everywhere(&*cluster, "a");
    same_everywhere(&*cluster, "b");
    let error = bob.acquire_all(["b", "c"]).wait(ms(50)).lock().unwrap_err();
    assert!(error.kind.is_contended(), "{error}");
    no_key(&*cluster, "c");
    both.extend(Duration::from_secs(20)).unwrap();
    assert!(both.release().unwrap().is_clean());
    no_key(&*cluster, "a");
    no_key(&*cluster, "b");
}

pub fn many_threads_share_one_client(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let (inside, entered) = (Arc::new(AtomicU32::new(0)), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..4 {
                    let guard = redlock.acquire("door").wait(Duration::from_secs(60)).lock().unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two owners");
                    entered.fetch_add(1, Ordering::SeqCst);
                    thread::yield_now();
                    assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                    assert!(guard.is_held());
                }
            });
        }
        for thread in 0..4 {
            let redlock = redlock.clone();
            scope.spawn(move || {
                for round in 0..20 {
                    redlock.acquire(format!("own:{thread}:{round}")).lock().unwrap().release().unwrap();
                }
            });
        }
    });
    assert_eq!(entered.into_inner(), 32);
    for node in 0..3 {
        eventually("no key is left", || cluster.keys(node) == 0);
    }
}
