//! Operations and handles, with a driver that keeps its node in itself: all that is said to it is under the hub's mutex.

use super::*;
use crate::address::Address;
use crate::config::Config;
use crate::error::AcquireErrorKind;
use crate::event::{DisconnectReason, LostReason};
use crate::ids::ConnectionId;
use crate::sim::{Dialect, Server, SessionId};
use alloc::vec::Vec;
use bytes::Bytes;

struct Wired {
    server: Server,
    connects: Vec<ConnectionId>,
    link: Option<(ConnectionId, SessionId)>,
    sent: Vec<Bytes>,
    /// Operations without an answer, as last told.
    unanswered: usize,
    closed: usize,
}

impl Driver for Wired {
    fn connect(&mut self, id: ConnectionId, _: &Arc<Address>, _: Instant) -> Result<(), DisconnectReason> {
        self.connects.push(id);
        Ok(())
    }

    fn transmit(&mut self, _: ConnectionId, payload: Bytes) {
        assert_eq!(self.closed, 0, "nothing is sent once it is closed");
        self.sent.push(payload);
    }

    fn flush(&mut self, unanswered: usize, _: bool) {
        self.unanswered = unanswered;
    }

    fn disconnect(&mut self, _: ConnectionId) {
        self.link = None;
    }

    fn arm(&mut self, _: Option<Instant>, _: Instant) {}

    fn close(&mut self) {
        self.closed += 1;
    }
}

/// Connects, or has the node answer what was sent. False where there was nothing to do.
fn play_once(shared: &Shared<Wired>) -> bool {
    let play = |turn: &mut Turn<'_, Wired>| {
        let now = turn.now();
        let connects = core::mem::take(&mut turn.driver.connects);
        let sent = core::mem::take(&mut turn.driver.sent);
        let is_busy = !connects.is_empty() || !sent.is_empty();
        for id in connects {
            turn.driver.link = Some((id, turn.driver.server.open(now)));
            turn.client.handle_connected(id, now);
        }
        if let Some((id, session)) = turn.driver.link {
            for payload in sent {
                turn.driver.server.receive(session, &payload, now);
            }
            let said = turn.driver.server.output(session);
            turn.client.handle_input(id, &said, now);
        }
        is_busy
    };
    shared.turn(play).unwrap()
}

fn play(shared: &Shared<Wired>) {
    while play_once(shared) {}
}

struct Rig {
    hub: Hub<Wired>,
    shared: Shared<Wired>,
    clock: Hand,
}

impl Rig {
    /// A client that is connected to one node.
    fn new() -> Self {
        let config = Config::builder().nodes(["10.0.0.1"]).build().unwrap();
        let clock = Hand::default();
        let environment = Environment {
            clock: Box::new(clock.clone()),
            entropy: Box::new(Source::default()),
            callbacks: Box::new(Inline),
        };
        let driver = Wired {
            server: Server::new(Dialect::Redis7, 1),
            connects: Vec::new(),
            link: None,
            sent: Vec::new(),
            unanswered: 0,
            closed: 0,
        };
        let hub = Hub::new(config, environment, driver);
        let shared = hub.shared().clone();
        play(&shared);
        Self { hub, shared, clock }
    }

    fn acquire(&self) -> Acquiring<Wired> {
        self.hub.acquire(&AcquireOptions::one("door").ttl(ms(1_000)))
    }

    /// A lock until 988 ms.
    fn acquired(&self) -> Handle<Wired> {
        let mut acquiring = self.acquire();
        play(&self.shared);
        let Poll::Ready(Ok(handle)) = poll(&mut acquiring, Waker::noop()) else { panic!("not granted") };
        handle
    }

    /// Time passes, and the engine is told.
    fn pass(shared: &Shared<Wired>, clock: &Hand, millis: u64) {
        clock.set(millis);
        shared.turn(|turn| turn.client.handle_timeout(turn.now()));
    }

    fn keys(&self) -> usize {
        let now = self.shared.now();
        self.shared.with_driver(|driver| driver.server.keys(now).len()).unwrap()
    }

    fn releases(&self) -> usize {
        let count = |driver: &mut Wired| driver.server.log().iter().filter(|entry| entry.is("eval")).count();
        self.shared.with_driver(count).unwrap()
    }

    /// What has to be true in the end, whatever came first: nothing is left on the node, nobody is waited for, and the last
    /// user's end is the client's.
    fn end(self) {
        play(&self.shared);
        assert_eq!(self.keys(), 0);
        assert_eq!(self.shared.with_driver(|driver| driver.unanswered), Some(0));
        drop(self.hub);
        play(&self.shared);
        assert_eq!(self.shared.with_driver(|driver| driver.closed), Some(1));
    }
}

#[test]
fn a_grant_against_who_goes_to_sleep_for_it() {
    model("a grant against who goes to sleep for it", || {
        let rig = Rig::new();
        let acquiring = rig.acquire();
        let shared = rig.shared.clone();
        let node = spawn(move || play(&shared));
        let handle = wait(acquiring).unwrap();
        assert!(handle.is_held());
        node.join().unwrap();
        drop(handle);
        assert_eq!(rig.keys(), 1);
        rig.end();
    });
}

#[test]
fn r20_a_grant_against_the_drop_of_its_acquire() {
    model("a grant against the drop of its acquire", || {
        let rig = Rig::new();
        let mut acquiring = rig.acquire();
        assert!(poll(&mut acquiring, &Waker::from(Arc::new(Bed::default()))).is_pending());
        let shared = rig.shared.clone();
        let node = spawn(move || play_once(&shared));
        drop(acquiring);
        assert!(node.join().unwrap());
        play(&rig.shared);
        assert_eq!(rig.releases(), 1);
        rig.end();
    });
}

#[test]
fn r14_an_extension_against_the_drop_of_its_future() {
    model("an extension against the drop of its future", || {
        let rig = Rig::new();
        let handle = rig.acquired();
        let extending = handle.extend(ms(2_000));
        let shared = rig.shared.clone();
        let node = spawn(move || play_once(&shared));
        drop(extending);
        assert!(node.join().unwrap());
        assert!(handle.is_held());
        // Confirmed or not: the deadline is what is certain.
        assert!([988, 1_978].contains(&(handle.valid_until().as_nanos() / 1_000_000)));
        drop(handle);
        rig.end();
    });
}

#[test]
fn a_close_against_an_acquire() {
    model("a close against an acquire", || {
        let rig = Rig::new();
        let hub = rig.hub.clone();
        let closing = spawn(move || drop(hub.close()));
        // Before or after: answered at once, by whoever closes.
        let error = wait(rig.acquire()).unwrap_err();
        assert_eq!(error.kind, AcquireErrorKind::Closed);
        closing.join().unwrap();
        rig.end();
    });
}

#[test]
fn a_close_against_a_grant() {
    model("a close against a grant", || {
        let rig = Rig::new();
        let acquiring = rig.acquire();
        let (hub, shared) = (rig.hub.clone(), rig.shared.clone());
        let closing = spawn(move || {
            play_once(&shared);
            drop(hub.close());
        });
        match wait(acquiring) {
            // Granted before, and maybe lost since.
            Ok(handle) => assert!(matches!(handle.lost_reason(), None | Some(LostReason::Closed))),
            Err(error) => assert!(matches!(error.kind, AcquireErrorKind::Closed | AcquireErrorKind::TooSlow)),
        }
        closing.join().unwrap();
        rig.end();
    });
}

#[test]
fn the_end_against_who_goes_to_sleep_for_it() {
    model("the end against who goes to sleep for it", || {
        let rig = Rig::new();
        let handle = rig.acquired();
        let closing = rig.hub.close();
        let shared = rig.shared.clone();
        let node = spawn(move || play(&shared));
        wait(closing);
        node.join().unwrap();
        assert!(rig.hub.is_closed());
        drop(handle);
        rig.end();
    });
}

#[test]
fn r19_the_drop_of_a_handle_against_its_loss() {
    model("the drop of a handle against its loss", || {
        let rig = Rig::new();
        let handle = rig.acquired();
        let told = Arc::new(Unmodelled::new(0));
        let telling = Arc::clone(&told);
        handle.on_lost(move |_| _ = telling.fetch_add(1, Ordering::Relaxed));
        let (shared, clock) = (rig.shared.clone(), rig.clock.clone());
        let loss = spawn(move || Rig::pass(&shared, &clock, 988));
        drop(handle);
        loss.join().unwrap();
        play(&rig.shared);
        assert!(told.load(Ordering::Relaxed) <= 1);
        assert_eq!(rig.releases(), 1);
        rig.end();
    });
}

#[test]
fn r19_the_drop_of_a_handle_against_that_of_another() {
    model("the drop of a handle against that of another", || {
        let rig = Rig::new();
        let first = rig.acquired();
        let second = first.share();
        let dropping = spawn(move || drop(first));
        drop(second);
        dropping.join().unwrap();
        play(&rig.shared);
        assert_eq!(rig.releases(), 1);
        rig.end();
    });
}

#[test]
fn r17_a_loss_against_who_goes_to_sleep_for_it() {
    model("a loss against who goes to sleep for it", || {
        let rig = Rig::new();
        let handle = rig.acquired();
        let (shared, clock) = (rig.shared.clone(), rig.clock.clone());
        let loss = spawn(move || Rig::pass(&shared, &clock, 988));
        assert_eq!(wait(handle.lost()), LostReason::Expired);
        assert!(!handle.is_held());
        loss.join().unwrap();
        drop(handle);
        rig.end();
    });
}

#[test]
fn a_close_against_who_goes_to_sleep_for_the_loss() {
    model("a close against who goes to sleep for the loss", || {
        let rig = Rig::new();
        let handle = rig.acquired();
        let hub = rig.hub.clone();
        let closing = spawn(move || drop(hub.close()));
        assert_eq!(wait(handle.lost()), LostReason::Closed);
        closing.join().unwrap();
        assert_eq!(handle.lost_reason(), Some(LostReason::Closed));
        drop(handle);
        rig.end();
    });
}

#[test]
fn r20_the_drop_of_the_hub_against_a_pending_operation() {
    model("the drop of the hub against a pending operation", || {
        let Rig { hub, shared, .. } = Rig::new();
        let acquiring = hub.acquire(&AcquireOptions::one("door").ttl(ms(1_000)));
        let dropping = spawn(move || drop(hub));
        play(&shared);
        // What is pending uses the client too: it is not closed before that has its answer.
        let handle = wait(acquiring).unwrap();
        assert!(handle.is_held());
        drop(handle);
        dropping.join().unwrap();
        play(&shared);
        let left = |driver: &mut Wired| (driver.closed, driver.server.keys(Instant::ZERO).len());
        assert_eq!(shared.with_driver(left), Some((1, 0)));
    });
}

#[test]
fn r20_the_last_two_users_go_at_once() {
    model("the last two users go at once", || {
        let Rig { hub, shared, .. } = Rig::new();
        let acquiring = hub.acquire(&AcquireOptions::one("door").ttl(ms(1_000)));
        let dropping = spawn(move || drop(hub));
        drop(acquiring);
        dropping.join().unwrap();
        play(&shared);
        let left = |driver: &mut Wired| (driver.closed, driver.server.keys(Instant::ZERO).len());
        assert_eq!(shared.with_driver(left), Some((1, 0)));
    });
}

#[test]
fn r6_a_grant_is_taken_against_its_deadline() {
    model("a grant is taken against its deadline", || {
        let rig = Rig::new();
        let acquiring = rig.acquire();
        play(&rig.shared);
        let (shared, clock) = (rig.shared.clone(), rig.clock.clone());
        let passing = spawn(move || Rig::pass(&shared, &clock, 988));
        let before = rig.shared.now();
        match wait(acquiring) {
            Ok(handle) => {
                assert!(before < Instant::from_millis(988), "taken after its deadline");
                passing.join().unwrap();
                assert!(!handle.is_held());
                assert_eq!(handle.lost_reason(), Some(LostReason::Expired));
            }
            Err(error) => {
                assert_eq!(error.kind, AcquireErrorKind::TooSlow);
                passing.join().unwrap();
            }
        }
        play(&rig.shared);
        assert_eq!(rig.releases(), 1);
        rig.end();
    });
}
