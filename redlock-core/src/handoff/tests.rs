//! One engine, a driver that only notes what it is told, a clock that is set by hand, and nodes that answer by rote.

use super::cell::{Ended, LockCell};
use super::*;
use crate::address::Address;
use crate::config::Config;
use crate::error::{AcquireErrorKind, ExtendErrorKind};
use crate::event::{DisconnectReason, Event, LostReason, ReleaseOutcome};
use crate::ids::{ConnectionId, LockId};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use bytes::Bytes;
use core::cell::Cell;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Mutex;

std::thread_local! {
    static PROCESS: Cell<Option<u32>> = const { Cell::new(None) };
}

pub(super) fn pretended_process() -> Option<u32> {
    PROCESS.get()
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[derive(Default)]
struct Notes {
    connects: Vec<ConnectionId>,
    payloads: Vec<(ConnectionId, Bytes)>,
    is_closed: bool,
}

impl Driver for Notes {
    fn connect(&mut self, id: ConnectionId, _: &Arc<Address>, _: Instant) -> Result<(), DisconnectReason> {
        self.connects.push(id);
        Ok(())
    }

    fn transmit(&mut self, id: ConnectionId, payload: Bytes) {
        self.payloads.push((id, payload));
    }

    fn disconnect(&mut self, _: ConnectionId) {}

    fn arm(&mut self, _: Option<Instant>, _: Instant) {}

    fn close(&mut self) {
        self.is_closed = true;
    }
}

/// Milliseconds.
#[derive(Clone, Default)]
struct Hand(Arc<AtomicU64>);

impl Clock for Hand {
    fn now(&self) -> Instant {
        Instant::from_millis(self.0.load(Ordering::SeqCst))
    }
}

#[derive(Clone, Default)]
struct Source {
    drawn: Arc<AtomicU64>,
    is_dry: Arc<AtomicBool>,
}

impl Entropy for Source {
    fn draw(&self) -> Result<[u8; 16], String> {
        if self.is_dry.load(Ordering::SeqCst) {
            return Err("the well is dry".to_string());
        }
        Ok(u128::from(self.drawn.fetch_add(1, Ordering::SeqCst)).to_be_bytes())
    }
}

/// Runs callbacks where they are handed over: what they call would hang if the mutex were held.
struct Inline;

impl CallbackRunner for Inline {
    fn run(&self, callback: Callback) {
        callback.run();
    }
}

struct Rig {
    hub: Hub<Notes>,
    clock: Hand,
    source: Source,
}

impl Rig {
    fn new() -> Self {
        let config = Config::builder().nodes(["10.0.0.1", "10.0.0.2", "10.0.0.3"]).build().unwrap();
        let (clock, source) = (Hand::default(), Source::default());
        let environment = Environment {
            clock: Box::new(clock.clone()),
            entropy: Box::new(source.clone()),
            callbacks: Box::new(Inline),
        };
        let rig = Self { hub: Hub::new(config, environment, Notes::default()), clock, source };
        rig.play();
        assert_eq!(rig.hub.nodes().iter().filter(|node| node.state == crate::NodeState::Ready).count(), 3);
        rig
    }

    fn at(&self, millis: u64) {
        self.clock.0.store(millis, Ordering::SeqCst);
        self.hub.shared().turn(|turn| turn.client.handle_timeout(turn.now()));
    }

    /// What was handed to the driver since the last time.
    fn sent(&self) -> Vec<(ConnectionId, Bytes)> {
        self.hub.shared().turn(|turn| core::mem::take(&mut turn.driver.payloads)).unwrap()
    }

    /// Connects, and answers all with yes, until there is nothing to answer.
    fn play(&self) {
        loop {
            let connects = self.hub.shared().turn(|turn| core::mem::take(&mut turn.driver.connects)).unwrap();
            let sent = self.sent();
            if connects.is_empty() && sent.is_empty() {
                return;
            }
            self.hub.shared().turn(|turn| {
                let now = turn.now();
                connects.into_iter().for_each(|id| turn.client.handle_connected(id, now));
            });
            self.answer(&sent);
        }
    }

    fn acquire(&self, ttl: Duration) -> Acquiring<Notes> {
        self.hub.acquire(&AcquireOptions::one("door").ttl(ttl))
    }

    fn acquired(&self, ttl: Duration) -> Handle<Notes> {
        let mut acquiring = self.acquire(ttl);
        self.play();
        ready(&mut acquiring).unwrap()
    }

    /// How many releases were sent since the last time; they are answered.
    fn releases(&self) -> usize {
        let sent = self.sent();
        self.answer(&sent);
        self.play();
        sent.iter().map(|(_, payload)| count(payload, "EVAL")).sum()
    }

    fn answer(&self, sent: &[(ConnectionId, Bytes)]) {
        self.hub.shared().turn(|turn| {
            let now = turn.now();
            for (id, payload) in sent {
                turn.client.handle_input(*id, answers(payload).as_bytes(), now);
            }
        });
    }
}

fn count(payload: &[u8], word: &str) -> usize {
    payload.windows(word.len()).filter(|part| *part == word.as_bytes()).count()
}

/// What a node says to that, if nothing is wrong.
fn answers(payload: &[u8]) -> String {
    let times = |word: &str, answer: &str| answer.repeat(count(payload, word));
    [
        times("HELLO", "%0\r\n"),
        times("INFO", "$0\r\n\r\n+PONG\r\n"),
        times("\r\nSET\r\n", "+OK\r\n"),
        times("EVAL", ":1\r\n"),
    ]
    .concat()
}

#[derive(Default)]
struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

#[track_caller]
fn ready<F: Future + Unpin>(future: &mut F) -> F::Output {
    match poll(future, Waker::noop()) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("not ready"),
    }
}

#[test]
fn an_operation_wakes_who_waits_for_it() {
    let rig = Rig::new();
    let counter = Arc::new(Counter::default());
    let waker = Waker::from(Arc::clone(&counter));
    let mut acquiring = rig.acquire(ms(1_000));
    assert!(poll(&mut acquiring, Waker::noop()).is_pending());
    assert!(poll(&mut acquiring, &waker).is_pending());
    assert_eq!(counter.0.load(Ordering::SeqCst), 0);
    rig.play();
    assert_eq!(counter.0.load(Ordering::SeqCst), 1);
    let handle = ready(&mut acquiring).unwrap();
    assert!(handle.is_held());
    assert_eq!((handle.resource().as_ref(), handle.remaining()), ("door", ms(988)));
    assert_eq!(handle.votes().len(), 3);
    drop(acquiring);
    assert!(handle.is_held(), "it was taken");

    let mut extending = handle.extend(ms(2_000));
    assert!(poll(&mut extending, &waker).is_pending());
    rig.play();
    assert_eq!(ready(&mut extending), Ok(Instant::from_millis(1_978)));
    assert_eq!(handle.valid_until(), Instant::from_millis(1_978));

    let mut releasing = handle.release();
    assert!(poll(&mut releasing, &waker).is_pending());
    rig.play();
    assert_eq!(ready(&mut releasing).unwrap().outcome, ReleaseOutcome::Released);
    assert_eq!(counter.0.load(Ordering::SeqCst), 3);
}

/// A waker that asks the hub something.
struct Nosy(Hub<Notes>, AtomicUsize);

impl Wake for Nosy {
    fn wake(self: Arc<Self>) {
        assert!(!self.0.is_closed());
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for Nosy {
    fn drop(&mut self) {
        assert!(!self.0.is_closed());
    }
}

#[test]
fn wakers_run_and_are_dropped_with_the_mutex_free() {
    let rig = Rig::new();
    let nosy = || Waker::from(Arc::new(Nosy(rig.hub.clone(), AtomicUsize::new(0))));
    let mut acquiring = rig.acquire(ms(1_000));
    assert!(poll(&mut acquiring, &nosy()).is_pending());
    assert!(poll(&mut acquiring, &nosy()).is_pending());
    rig.play();
    let handle = ready(&mut acquiring).unwrap();
    let mut lost = handle.lost();
    assert!(poll(&mut lost, &nosy()).is_pending());
    assert!(poll(&mut lost, &nosy()).is_pending());
    drop(lost);
    let mut abandoned = rig.acquire(ms(1_000));
    assert!(poll(&mut abandoned, &nosy()).is_pending());
    drop(abandoned);
    let mut subscription = rig.hub.subscribe(4);
    assert!(subscription.poll_next(&nosy()).is_pending());
    assert!(subscription.poll_next(&nosy()).is_pending());
    drop(subscription);
}

#[test]
fn r6_a_grant_that_is_taken_too_late_is_released() {
    let rig = Rig::new();
    let mut acquiring = rig.acquire(ms(1_000));
    rig.play();
    // Nobody gives the engine a turn meanwhile.
    rig.clock.0.store(988, Ordering::SeqCst);
    let error = ready(&mut acquiring).unwrap_err();
    assert_eq!(error.kind, AcquireErrorKind::TooSlow);
    assert!(error.to_string().contains("door"), "{error}");
    assert_eq!(error.nodes.len(), 3);
    assert_eq!(rig.releases(), 3);
}

#[test]
fn r20_a_dropped_acquire_gives_back_what_it_got() {
    let rig = Rig::new();
    // Sent, and not answered.
    drop(rig.acquire(ms(1_000)));
    assert_eq!(rig.releases(), 3);
    // Granted, and not taken.
    let acquiring = rig.acquire(ms(1_000));
    rig.play();
    drop(acquiring);
    assert_eq!(rig.releases(), 3);
    // Taken, and dropped.
    drop(rig.acquired(ms(1_000)));
    assert_eq!(rig.releases(), 3);
}

#[test]
fn r20_b51_a_dropped_release_goes_on() {
    let rig = Rig::new();
    let handle = rig.acquired(ms(1_000));
    drop(handle.release());
    assert_eq!(rig.releases(), 3);
    let handle = rig.acquired(ms(1_000));
    let mut releasing = handle.release();
    assert!(poll(&mut releasing, Waker::noop()).is_pending());
    rig.play();
    drop(releasing);
    assert!(rig.acquired(ms(1_000)).is_held());
}

#[test]
fn r13_once_not_held_never_held_again() {
    let rig = Rig::new();
    let handle = rig.acquired(ms(1_000));
    let lost = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&lost);
    handle.on_lost(move |reason| told.lock().unwrap().push(reason));
    rig.at(950);
    let mut extending = handle.extend(ms(5_000));
    // This thread sees the deadline pass; the answer to the extension was read a moment before.
    rig.clock.0.store(988, Ordering::SeqCst);
    assert!(!handle.is_held());
    rig.clock.0.store(960, Ordering::SeqCst);
    assert!(!handle.is_held());
    rig.play();
    assert!(!handle.is_held());
    assert_eq!(handle.remaining(), Duration::ZERO);
    assert_eq!(handle.lost_reason(), Some(LostReason::Expired));
    assert_eq!(ready(&mut handle.lost()), LostReason::Expired);
    assert_eq!(ready(&mut extending).unwrap_err().kind, ExtendErrorKind::Lost(LostReason::Expired));
    assert_eq!(*lost.lock().unwrap(), [LostReason::Expired]);
    assert_eq!(
        ready(&mut handle.extend(ms(5_000))).unwrap_err().kind,
        ExtendErrorKind::Lost(LostReason::Expired)
    );
    assert_eq!(ready(&mut handle.release()).unwrap().outcome, ReleaseOutcome::Expired);
}

#[test]
fn r17_loss_and_expiring_are_told_to_all_who_asked() {
    let rig = Rig::new();
    let handle = rig.acquired(ms(1_000));
    let (expiring, lost) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
    let told = Arc::clone(&expiring);
    handle.on_expiring(move |near| told.lock().unwrap().push(near));
    handle.on_expiring(|near| panic!("a callback of a test panics: {near:?}"));
    for _ in 0..2 {
        // A callback may call into the client: nothing is locked.
        let (told, again) = (Arc::clone(&lost), rig.hub.clone());
        handle.on_lost(move |reason| {
            assert_eq!(reason, LostReason::Expired);
            assert!(!again.is_closed());
            told.fetch_add(1, Ordering::SeqCst);
        });
    }
    let counter = Arc::new(Counter::default());
    let mut waiting = handle.lost();
    assert!(poll(&mut waiting, &Waker::from(Arc::clone(&counter))).is_pending());
    rig.at(800);
    let near = expiring.lock().unwrap()[0];
    assert_eq!((near.deadline, near.remaining), (Instant::from_millis(988), ms(188)));
    assert!(handle.is_held());
    // Asked late: told at once.
    let told = Arc::clone(&expiring);
    handle.on_expiring(move |near| told.lock().unwrap().push(near));
    assert_eq!(expiring.lock().unwrap().len(), 2);
    rig.at(988);
    assert_eq!(lost.load(Ordering::SeqCst), 2);
    assert_eq!(counter.0.load(Ordering::SeqCst), 1);
    assert_eq!(ready(&mut waiting), LostReason::Expired);
    drop(waiting);
    let told = Arc::clone(&lost);
    handle.on_lost(move |_| assert_eq!(told.fetch_add(1, Ordering::SeqCst), 2));
    assert_eq!(lost.load(Ordering::SeqCst), 3);
    rig.play();
    assert_eq!(ready(&mut handle.release()).unwrap().outcome, ReleaseOutcome::Expired);
}

#[test]
fn r19_the_last_handle_releases() {
    let rig = Rig::new();
    let first = rig.acquired(ms(1_000));
    let (second, third) = (first.share(), first.share());
    assert_eq!(ready(&mut first.release()).unwrap().outcome, ReleaseOutcome::StillShared);
    drop(second);
    assert_eq!(rig.releases(), 0);
    assert!(third.is_held());
    drop(third);
    assert_eq!(rig.releases(), 3);
}

#[test]
fn b12_without_entropy_nothing_is_sent() {
    let rig = Rig::new();
    rig.source.is_dry.store(true, Ordering::SeqCst);
    let error = ready(&mut rig.acquire(ms(1_000))).unwrap_err();
    assert_eq!(error.kind, AcquireErrorKind::NoEntropy("the well is dry".to_string()));
    assert!(rig.sent().is_empty());
    rig.source.is_dry.store(false, Ordering::SeqCst);
    assert!(rig.acquired(ms(1_000)).is_held());
}

#[test]
fn in_a_forked_child_all_is_closed_and_nothing_is_touched() {
    let rig = Rig::new();
    let handle = rig.acquired(ms(1_000));
    let (shared, dropped) = (handle.share(), handle.share());
    let mut subscription = rig.hub.subscribe(4);
    let mut waiting = rig.hub.acquire(&AcquireOptions::one("window").ttl(ms(1_000)));
    assert!(poll(&mut waiting, Waker::noop()).is_pending());
    let sent = rig.sent().len();
    // Whatever asked for the mutex would wait for ever now.
    rig.hub.shared().while_locked(|| {
        PROCESS.set(Some(std::process::id().wrapping_add(1)));
        assert_eq!(ready(&mut rig.acquire(ms(1_000))).unwrap_err().kind, AcquireErrorKind::Closed);
        assert_eq!(ready(&mut waiting).unwrap_err().kind, AcquireErrorKind::Closed);
        assert!(ready(&mut rig.hub.connect()).unwrap_err().closed);
        assert!(!handle.is_held());
        assert_eq!(handle.remaining(), Duration::ZERO);
        assert_eq!(handle.lost_reason(), Some(LostReason::Closed));
        assert_eq!(ready(&mut handle.lost()), LostReason::Closed);
        assert_eq!(ready(&mut handle.extend(ms(1_000))).unwrap_err().kind, ExtendErrorKind::Closed);
        assert!(handle.votes().is_empty());
        handle.on_lost(|_| {});
        handle.on_expiring(|_| {});
        drop(dropped);
        assert!(ready(&mut shared.release()).is_err());
        assert!(rig.hub.nodes().iter().all(|node| node.state == crate::NodeState::Closed));
        assert_eq!(rig.hub.nodes().len(), 3);
        assert!(rig.hub.is_closed());
        assert_eq!(subscription.poll_next(Waker::noop()), Poll::Ready(None));
        assert_eq!((subscription.try_next(), subscription.missed()), (None, 0));
        drop(rig.hub.subscribe(1));
        ready(&mut rig.hub.close());
        drop(rig.hub.clone());
        drop(waiting);
        drop(subscription);
        PROCESS.set(None);
    });
    assert_eq!(sent, 3);
    assert!(rig.sent().is_empty());
    assert!(handle.is_held());
}

#[test]
fn r20_the_last_user_closes_and_close_tells_everyone() {
    let rig = Rig::new();
    let handle = rig.acquired(ms(1_000));
    let shared = rig.hub.shared().clone();
    let mut subscription = rig.hub.subscribe(100);
    drop(rig);
    assert!(handle.is_held());
    let mut waiting = handle.hub().acquire(&AcquireOptions::one("other"));
    let mut closing = handle.hub().close();
    let counter = Arc::new(Counter::default());
    assert!(poll(&mut closing, &Waker::from(Arc::clone(&counter))).is_pending());
    assert_eq!(ready(&mut waiting).unwrap_err().kind, AcquireErrorKind::Closed);
    assert_eq!(handle.lost_reason(), Some(LostReason::Closed));
    assert!(!shared.turn(|turn| turn.driver.is_closed).unwrap());
    // Nobody answers the releases.
    shared.turn(|turn| turn.client.handle_timeout(Instant::from_secs(60)));
    assert!(shared.turn(|turn| turn.driver.is_closed).unwrap());
    assert_eq!(counter.0.load(Ordering::SeqCst), 1);
    ready(&mut closing);
    assert!(ready(&mut handle.release()).is_err());
    let mut last = None;
    while let Poll::Ready(Some(event)) = subscription.poll_next(Waker::noop()) {
        last = Some(event);
    }
    assert_eq!(last, Some(Event::Closed));
    assert_eq!(subscription.poll_next(Waker::noop()), Poll::Ready(None));
}

#[test]
fn slow_subscribers_lose_the_oldest_events() {
    let rig = Rig::new();
    let mut subscription = rig.hub.subscribe(2);
    let gone = rig.hub.subscribe(2);
    drop(gone);
    let handle = rig.acquired(ms(1_000));
    let id = handle.id();
    rig.at(800);
    rig.at(988);
    assert_eq!(subscription.missed(), 1);
    let deadline = Instant::from_millis(988);
    assert_eq!(subscription.try_next(), Some(Event::Expiring { lock: id, deadline }));
    assert_eq!(subscription.try_next(), Some(Event::Lost { lock: id, reason: LostReason::Expired }));
    assert_eq!(subscription.try_next(), None);
}

#[test]
fn a_deadline_never_rises_after_the_end_whoever_comes_first() {
    // Many readings of the clock at one end of the deadline, many extensions at the other.
    for _ in 0..200 {
        let cell = LockCell::new(LockId(1), Vec::new(), Instant::from_nanos(100), None);
        let saw_the_end = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for nanos in 95..105 {
                    if !cell.is_held(Instant::from_nanos(nanos)) {
                        saw_the_end.store(true, Ordering::SeqCst);
                    }
                }
            });
            for nanos in 98..104 {
                let ended = saw_the_end.load(Ordering::SeqCst);
                let moved = cell.move_deadline(Instant::from_nanos(nanos));
                assert!(!(ended && moved), "an ended lock was moved");
            }
        });
        if saw_the_end.into_inner() {
            assert!(!cell.is_held(Instant::ZERO));
        }
        let mut after = after::After::default();
        cell.end(Ended::Released, &mut after);
        assert!(!cell.is_held(Instant::ZERO));
        assert!(!cell.move_deadline(Instant::MAX));
    }
}

#[test]
fn hold_says_what_happened() {
    let released = |outcome| Ok(Released::new(outcome));
    assert_eq!(settle(7, None, released(ReleaseOutcome::Released)).unwrap(), 7);
    assert_eq!(settle(7, None, released(ReleaseOutcome::StillShared)).unwrap(), 7);
    let lost = |result: Result<i32, HoldError<i32>>| match result {
        Err(HoldError::Lost { reason, output: Some(7) }) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(lost(settle(7, None, released(ReleaseOutcome::Expired))), LostReason::Expired);
    assert_eq!(lost(settle(7, None, released(ReleaseOutcome::NotMine))), LostReason::TokenGone);
    assert_eq!(
        lost(settle(7, Some(LostReason::Closed), released(ReleaseOutcome::Expired))),
        LostReason::Closed
    );
    let unknown = ReleaseOutcome::Unknown { gone_by: Instant::ZERO };
    let failed = settle(7, None, released(unknown)).unwrap_err();
    assert!(matches!(&failed, HoldError::ReleaseFailed { output: 7, outcome } if *outcome == unknown));
    assert_eq!(failed.into_output(), Some(7));
}
