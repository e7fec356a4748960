//! Waiting for a lock: inside one client, and between clients that the nodes tell when it gets free.

use super::proxy::Proxy;
use super::{Make, all_ready, eventually, is_quiet, ms, no_key, now, timed};
use core::time::Duration;
use redlock_blocking::{Instant, Redlock};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const LONG: Duration = Duration::from_secs(30);
/// Whoever is told needs none of it.
const DELAY: Duration = Duration::from_secs(5);

/// A client that comes back by itself only after seconds.
fn slow(urls: &[String]) -> Redlock {
    let redlock = Redlock::builder().nodes(urls).retry_delay(DELAY, DELAY).connect().unwrap();
    all_ready(&redlock);
    redlock
}

/// One client holds the lock and another waits for it; when it was released, and when it was taken over.
fn hand_over(holder: &Redlock, waiter: &Redlock, meanwhile: impl FnOnce()) -> (Instant, Instant) {
    let guard = holder.acquire("door").ttl(LONG).lock().unwrap();
    thread::scope(|scope| {
        let taken = scope.spawn(|| {
            let guard = waiter.acquire("door").wait(LONG).lock().unwrap();
            let taken = now();
            guard.release().unwrap();
            taken
        });
        // It has lost its first round.
        thread::sleep(ms(200));
        meanwhile();
        let released = now();
        guard.release().unwrap();
        (released, taken.join().unwrap())
    })
}

pub fn a_waiter_is_told_that_the_lock_is_free(make: &Make<'_>) {
    let cluster = make(3);
    let (holder, waiter) = (slow(&cluster.urls()), slow(&cluster.urls()));
    for _ in 0..3 {
        let (released, taken) = hand_over(&holder, &waiter, || {});
        let took = taken.saturating_duration_since(released);
        assert!(took < DELAY / 2, "{took:?}");
    }
    no_key(&*cluster, "door");
}

pub fn a_waiter_is_told_that_keys_are_deleted_or_expire(make: &Make<'_>) {
    let cluster = make(3);
    let (holder, waiter) = (slow(&cluster.urls()), slow(&cluster.urls()));
    let forgotten = holder.acquire("door").ttl(ms(700)).lock().unwrap();
    let (guard, took) = timed(|| waiter.acquire("door").ttl(LONG).wait(LONG).lock().unwrap());
    assert!(took < DELAY / 2 + ms(700), "{took:?}");
    assert!(!forgotten.is_held());
    let removed = thread::scope(|scope| {
        let next = scope.spawn(|| timed(|| holder.acquire("door").wait(LONG).lock().unwrap()).1);
        thread::sleep(ms(200));
        (0..3).for_each(|node| cluster.remove(node, "door"));
        next.join().unwrap()
    });
    assert!(removed < DELAY / 2 + ms(200), "{removed:?}");
    drop(guard);
}

pub fn waiters_of_one_client_take_turns_without_a_delay(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = slow(&cluster.urls());
    let inside = AtomicUsize::new(0);
    let (_, took) = timed(|| {
        thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    for _ in 0..5 {
                        let guard = redlock.acquire("door").ttl(LONG).wait(LONG).lock().unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
                        inside.fetch_sub(1, Ordering::SeqCst);
                        guard.release().unwrap();
                    }
                });
            }
        });
    });
    assert!(took < DELAY, "a hundred turns and no delay: {took:?}");
    no_key(&*cluster, "door");
}

pub fn two_hundred_waiters_of_two_clients_all_get_it(make: &Make<'_>) {
    let cluster = make(3);
    let clients = [slow(&cluster.urls()), slow(&cluster.urls())];
    let (inside, turns) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for index in 0..200 {
            let (redlock, inside, turns) = (&clients[index % 2], &inside, &turns);
            scope.spawn(move || {
                let guard = redlock.acquire("door").ttl(LONG).wait(LONG).lock().unwrap();
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
                turns.fetch_add(1, Ordering::SeqCst);
                inside.fetch_sub(1, Ordering::SeqCst);
                guard.release().unwrap();
            });
        }
    });
    assert_eq!(turns.load(Ordering::SeqCst), 200);
    no_key(&*cluster, "door");
}

pub fn a_node_that_refuses_to_tell_costs_nothing(make: &Make<'_>) {
    let cluster = make(3);
    cluster.refuse_tracking(1);
    let (holder, waiter) = (slow(&cluster.urls()), slow(&cluster.urls()));
    let (released, taken) = hand_over(&holder, &waiter, || {});
    let took = taken.saturating_duration_since(released);
    assert!(took < DELAY / 2, "{took:?}");
}

pub fn r9_where_no_quorum_tells_the_retry_delay_rules(make: &Make<'_>) {
    let cluster = make(3);
    (0..3).for_each(|node| cluster.refuse_tracking(node));
    let client = || Redlock::builder().nodes(cluster.urls()).retry_delay(ms(300), ms(300)).connect().unwrap();
    let (holder, waiter) = (client(), client());
    let (released, taken) = hand_over(&holder, &waiter, || {});
    let took = taken.saturating_duration_since(released);
    assert!(took < DELAY / 2, "{took:?}");
}

pub fn a_node_that_restarts_is_asked_again(make: &Make<'_>) {
    let cluster = make(3);
    let (holder, waiter) = (slow(&cluster.urls()), slow(&cluster.urls()));
    let (released, taken) = hand_over(&holder, &waiter, || {
        // Two that restart one after the other: each of their registrations is made anew.
        for node in 0..2 {
            cluster.cut(node);
            all_ready(&waiter);
            all_ready(&holder);
        }
        cluster.kill(2);
        cluster.restart(2);
        all_ready(&waiter);
        all_ready(&holder);
        is_quiet(&waiter);
    });
    let took = taken.saturating_duration_since(released);
    assert!(took < DELAY / 2, "{took:?}");
}

pub fn r9_a_push_lost_with_its_connection_is_made_up_for(make: &Make<'_>) {
    let cluster = make(3);
    let holder = slow(&cluster.urls());
    let proxies: Vec<Proxy> = cluster.addrs().into_iter().map(Proxy::start).collect();
    let urls: Vec<String> = proxies.iter().map(Proxy::url).collect();
    let waiter = slow(&urls);
    let guard = holder.acquire("door").ttl(LONG).lock().unwrap();
    thread::scope(|scope| {
        let taken = scope.spawn(|| {
            let guard = waiter.acquire("door").wait(LONG).lock().unwrap();
            (now(), guard.release().unwrap()).0
        });
        thread::sleep(ms(200));
        // The next thing that each node says is the push: it is lost, and its connection with it.
        proxies.iter().for_each(Proxy::lose_next_reply);
        let released = now();
        guard.release().unwrap();
        eventually("what was said is lost", || proxies.iter().all(|proxy| proxy.lost() > 0));
        let took = taken.join().unwrap().saturating_duration_since(released);
        assert!(took < DELAY / 2, "read again after the handshake: {took:?}");
    });
}
