//! One engine, everyone who asks something of it, and the driver that does what it wants.

use super::after::After;
use super::environment::{CallbackRunner, Clock, Entropy, Environment};
use super::feed::{Feed, Subscription};
use super::observe::Span;
use super::options::AcquireOptions;
use super::pending::{Acquiring, Closing, Connecting};
use super::state::State;
use super::sync::{Arc, AtomicUsize, Mutex, Ordering, lock, process_id};
use crate::address::Address;
use crate::client::{Client, NodeState, NodeStatus};
use crate::config::Config;
use crate::error::AcquireErrorKind;
use crate::event::DisconnectReason;
use crate::ids::{ConnectionId, NodeId};
use crate::node::VoteCounts;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use core::task::Waker;
use core::time::Duration;

/// While there is anything to do, no driver sleeps longer than this: the timers of most systems stop while the machine is
/// suspended, and the clock must be read soon after that (R13).
pub const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Does what the engine wants. Called with the hub's mutex held, on whichever thread made the engine want it: it must not
/// block, and must not call the hub.
pub trait Driver: Send {
    /// Starts to make a connection. That it stands, or that it cannot be made, is told to the engine in a later
    /// [turn](Shared::turn).
    ///
    /// # Errors
    ///
    /// It is known at once that it cannot be made.
    fn connect(
        &mut self,
        connection: ConnectionId,
        address: &Arc<Address>,
        now: Instant,
    ) -> Result<(), DisconnectReason>;

    /// Writes, at once or when it is told to [flush](Self::flush), and keeps what cannot be written yet. A broken connection
    /// is told in a later turn, after what can still be read from it.
    fn transmit(&mut self, connection: ConnectionId, payload: Bytes);

    /// All that this turn transmits was transmitted; so many operations have no answer yet. Where it `may_gather`, many
    /// operations are under way, and one write of what several turns transmit saves many: it can be left to who takes the
    /// driver's next turn, who has to be woken for it. Else all must be with the sockets, as far as these take it, when
    /// this returns: somebody waits for his answer alone, or nobody does and the process may end (R20).
    fn flush(&mut self, _unanswered: usize, _may_gather: bool) {}

    /// Closes a connection, or gives up making it.
    fn disconnect(&mut self, connection: ConnectionId);

    /// When the next [turn](Shared::turn) is due if nothing else happens; said at the end of each turn.
    fn arm(&mut self, at: Option<Instant>, now: Instant);

    /// The engine is closed and its connections are: no turn is needed any more.
    fn close(&mut self);

    /// Who has to be woken so that he takes a turn: asked at the end of each, and woken once the mutex is free.
    fn wakes(&mut self) -> Option<Waker> {
        None
    }
}

/// One client, as those see it who drive it; [`Hub`] is the same for those who use it.
pub struct Shared<D> {
    inner: Arc<Inner<D>>,
}

struct Inner<D> {
    config: Config,
    clock: Box<dyn Clock>,
    entropy: Box<dyn Entropy>,
    callbacks: Box<dyn CallbackRunner>,
    /// The process that made it: a forked child has its memory, but not its threads, and must not touch its sockets.
    process: u32,
    /// Live [`Hub`]s.
    users: AtomicUsize,
    state: Mutex<State<D>>,
}

/// The engine and its driver, for the length of one call into them.
#[derive(Debug)]
pub struct Turn<'a, D> {
    /// The engine.
    pub client: &'a mut Client,
    /// The driver.
    pub driver: &'a mut D,
    clock: &'a dyn Clock,
}

impl<D> Turn<'_, D> {
    /// Reads the clock: after a wait or a read returned, before its result is handed to the engine.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }
}

impl fmt::Debug for dyn Clock + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.now().fmt(f)
    }
}

impl<D> Clone for Shared<D> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<D> fmt::Debug for Shared<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("config", &self.inner.config).finish_non_exhaustive()
    }
}

impl<D> Shared<D> {
    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// Reads the clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.inner.clock.now()
    }

    /// Whether this is a forked child of the process that made the client. Nothing may be touched then: another thread may
    /// have held the mutex when the process was forked, and the sockets are the parent's.
    #[must_use]
    pub fn is_forked(&self) -> bool {
        process_id() != self.inner.process
    }
}

impl<D: Driver> Shared<D> {
    /// Runs `work` on the engine and its driver, then carries out what the engine wants, and after that, with the mutex
    /// free again, wakes and calls whom it concerns. `None` in a forked child, with nothing done.
    ///
    /// `work` must drain no output.
    pub fn turn<R>(&self, work: impl FnOnce(&mut Turn<'_, D>) -> R) -> Option<R> {
        let clock = &*self.inner.clock;
        self.with(|state, _, _| {
            work(&mut Turn { client: &mut state.client, driver: &mut state.driver, clock })
        })
    }

    /// Looks at the driver, without a turn: the engine is not asked. `None` in a forked child.
    pub fn with_driver<R>(&self, look: impl FnOnce(&mut D) -> R) -> Option<R> {
        self.peek(|state, _| look(&mut state.driver))
    }

    /// The same for the calls of this module. The clock is read when the mutex is had: what waited for it is not younger.
    pub(super) fn with<R>(&self, work: impl FnOnce(&mut State<D>, Instant, &mut After) -> R) -> Option<R> {
        if self.is_forked() {
            return None;
        }
        let mut after = After::default();
        let mut state = lock(&self.inner.state);
        let now = self.inner.clock.now();
        let result = work(&mut state, now, &mut after);
        state.settle(now, &mut after);
        drop(state);
        after.run(&*self.inner.callbacks);
        Some(result)
    }

    /// As [`with`](Self::with), for calls that move nothing in the engine.
    pub(super) fn peek<R>(&self, work: impl FnOnce(&mut State<D>, &mut After) -> R) -> Option<R> {
        if self.is_forked() {
            return None;
        }
        let mut after = After::default();
        let result = work(&mut lock(&self.inner.state), &mut after);
        after.run(&*self.inner.callbacks);
        Some(result)
    }
}

#[cfg(all(test, not(loom)))]
impl<D> Shared<D> {
    /// Runs `work` while another thread seems to have the mutex.
    pub(super) fn while_locked(&self, work: impl FnOnce()) {
        let state = lock(&self.inner.state);
        work();
        drop(state);
    }
}

/// One client, as its users have it: the last one that is dropped, guards and pending operations counted, closes it.
pub struct Hub<D: Driver> {
    shared: Shared<D>,
}

impl<D: Driver> Hub<D> {
    /// A client with these nodes; the driver is told to connect to them before this returns.
    pub fn new(config: Config, environment: Environment, driver: D) -> Self {
        let Environment { clock, entropy, callbacks } = environment;
        let clock = Arc::new(clock);
        let now = clock.now();
        // Jitter only: where there is no entropy, acquiring will say so.
        let seed = entropy.draw().map_or(now.as_nanos(), |bytes| {
            bytes.iter().fold(0, |seed: u64, byte| seed.rotate_left(8) ^ u64::from(*byte))
        });
        let state = State::new(&config, driver, seed, {
            let clock = Arc::clone(&clock);
            Arc::new(move || clock.now())
        });
        let inner = Inner {
            config,
            clock: Box::new(clock),
            entropy,
            callbacks,
            process: process_id(),
            users: AtomicUsize::new(1),
            state: Mutex::new(state),
        };
        let hub = Self { shared: Shared { inner: Arc::new(inner) } };
        hub.shared.turn(|_| ());
        hub
    }

    /// The same client for those who drive it.
    #[must_use]
    pub const fn shared(&self) -> &Shared<D> {
        &self.shared
    }

    /// Starts to acquire.
    pub fn acquire(&self, options: &AcquireOptions) -> Acquiring<D> {
        let entropy = match self.shared.inner.entropy.draw() {
            Ok(entropy) => entropy,
            Err(detail) => return Acquiring::failed(self, options, AcquireErrorKind::NoEntropy(detail)),
        };
        let span = Span::acquire(options);
        let started = self.shared.with(|state, now, after| {
            let operation = state.client.acquire(options.request(entropy), now);
            state.observer.asked(operation, options.resources(), now, after);
            state.wait_for(operation, options.resources().to_vec());
            operation
        });
        match started {
            Some(operation) => Acquiring::started(self, operation, span),
            None => Acquiring::failed(self, options, AcquireErrorKind::Closed),
        }
    }

    /// Asks to be told when a quorum of nodes is ready, or cannot be had, within the configured connect timeout (R27).
    pub fn connect(&self) -> Connecting<D> {
        let timeout = self.shared.config().connect_timeout();
        let started = self.shared.with(|state, now, _| {
            let operation = state.client.connect(timeout, now);
            state.wait_for(operation, Vec::new());
            operation
        });
        Connecting::new(self, started)
    }

    /// Closes: releases what is held, calls off what is pending, then ends all connections. The answer is waited for, not
    /// the start: that is made here.
    pub fn close(&self) -> Closing<D> {
        self.shared.with(|state, now, _| state.close(now));
        Closing::new(self)
    }

    /// How the nodes stand, in the order of the configuration.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeStatus> {
        let ids = || (0..=u8::MAX).map(NodeId::new).zip(self.shared.config().nodes());
        let known = |state: &mut State<D>| ids().filter_map(|(node, _)| state.client.node(node)).collect();
        self.shared.peek(|state, _| known(state)).unwrap_or_else(|| {
            let closed = |(node, config): (NodeId, &crate::config::NodeConfig)| NodeStatus {
                node,
                address: config.address().to_string().into(),
                state: NodeState::Closed,
                server: None,
                run_id: None,
                in_flight: 0,
                votes: VoteCounts::default(),
            };
            ids().map(closed).collect()
        })
    }

    /// All events from now on, of which at most `capacity` wait.
    #[must_use]
    pub fn subscribe(&self, capacity: usize) -> Subscription {
        let feed = self.shared.peek(|state, _| {
            let feed = Arc::new(Feed::new(capacity, state.is_closed));
            state.feeds.push(Arc::clone(&feed));
            feed
        });
        let feed = feed.unwrap_or_else(|| Arc::new(Feed::new(capacity, true)));
        Subscription::new(feed, self.shared.inner.process)
    }

    /// Whether it is closed for good, or belongs to another process.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.peek(|state, _| state.is_closed).unwrap_or(true)
    }
}

impl<D: Driver> Clone for Hub<D> {
    fn clone(&self) -> Self {
        self.shared.inner.users.fetch_add(1, Ordering::Relaxed);
        Self { shared: self.shared.clone() }
    }
}

impl<D: Driver> Drop for Hub<D> {
    fn drop(&mut self) {
        if self.shared.inner.users.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.shared.with(|state, now, _| state.close(now));
        }
    }
}

impl<D: Driver> fmt::Debug for Hub<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("config", self.shared.config()).finish_non_exhaustive()
    }
}
