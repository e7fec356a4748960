//! What is the same in every adapter to the letter, written once: methods, and the system's clock and entropy, for which
//! this crate has no dependencies.

/// The configuration's methods, for a builder whose field `config` is a [`ConfigBuilder`](crate::ConfigBuilder).
#[doc(hidden)]
#[macro_export]
macro_rules! __config_methods {
    () => {
        /// Adds nodes: addresses, or [`Node`](redlock_core::Node)s with more to say. At least one, at most 63; an odd number
        /// is best, since four nodes bear the loss of no more nodes than three.
        pub fn nodes<N: Into<redlock_core::Node>>(self, nodes: impl IntoIterator<Item = N>) -> Self {
            Self { config: self.config.nodes(nodes), ..self }
        }

        /// Adds one node.
        pub fn node(self, node: impl Into<redlock_core::Node>) -> Self {
            Self { config: self.config.node(node), ..self }
        }

        /// What operators see: the name of the connections, and in every lock's value after the token (R8b). Printable
        /// ASCII without spaces, 1 to 64 bytes.
        pub fn client_name(self, name: impl Into<String>) -> Self {
            Self { config: self.config.client_name(name), ..self }
        }

        /// What comes before every resource to make its key. None by default: only clients that use the same keys exclude
        /// each other, those of other libraries too.
        pub fn key_prefix(self, prefix: impl AsRef<[u8]>) -> Self {
            Self { config: self.config.key_prefix(prefix.as_ref().to_vec()), ..self }
        }

        /// The allowance for clocks that run differently, below 100 %; 1 % by default, and 2 ms on top (R6).
        pub fn drift(self, drift: redlock_core::Drift) -> Self {
            Self { config: self.config.drift(drift), ..self }
        }

        /// How long a round waits for its slowest node, whatever the ttl. By default a twentieth of the lock's ttl, at
        /// least 10 ms and at most 1 s.
        pub fn node_timeout(self, timeout: core::time::Duration) -> Self {
            Self { config: self.config.node_timeout(timeout), ..self }
        }

        /// The shortest and the longest random delay between two attempts; 50 and 250 ms by default, never below 1 ms (R9).
        pub fn retry_delay(self, min: core::time::Duration, max: core::time::Duration) -> Self {
            Self { config: self.config.retry_delay(min, max), ..self }
        }

        /// How long `connect` waits for a quorum of nodes (R27); 5 s by default. Nodes that are not ready by then go on in
        /// the background.
        pub fn connect_timeout(self, timeout: core::time::Duration) -> Self {
            Self { config: self.config.connect_timeout(timeout), ..self }
        }

        /// How long one connection may take before it is given up and another is tried: the name's resolution, all its
        /// addresses, TLS and login (R11). 2 s by default, or the connect timeout where that is shorter.
        pub fn handshake_timeout(self, timeout: core::time::Duration) -> Self {
            Self { config: self.config.handshake_timeout(timeout), ..self }
        }

        /// Keeps a node that restarted from voting until every lock it may have forgotten has expired (R25): `max_ttl` is
        /// the longest ttl that any client of these nodes uses, and a longer one is refused from now on. Nodes
        /// [declared durable](redlock_core::Node::durable) are exempt. Off by default.
        pub fn restart_guard(self, max_ttl: core::time::Duration) -> Self {
            Self { config: self.config.restart_guard(max_ttl), ..self }
        }

        /// Has nodes forget the counter of a fenced resource when nobody took it for so long; whole milliseconds, at least one
        /// second. By default counters stay for ever, which costs a key for each resource that was ever fenced.
        ///
        /// **It assumes more**: a counter that was forgotten starts again from its node's clock, so fences grow only while the
        /// nodes' clocks are less than this apart. Choose days, not seconds.
        pub fn fence_retention(self, retention: core::time::Duration) -> Self {
            Self { config: self.config.fence_retention(retention), ..self }
        }

        /// Whether a node that is in use is asked for its time every ten seconds, along with what is sent to it anyway, so that
        /// a wall clock that was set is told as [`Event::ClockStepped`](redlock_core::Event::ClockStepped): locks there expire
        /// too early or too late. On by default; a user without the right to `TIME` is not asked again.
        pub fn watch_clocks(self, watch: bool) -> Self {
            Self { config: self.config.watch_clocks(watch), ..self }
        }

        /// Whether an acquire that waits has the nodes tell it when the lock gets free, by client tracking, in the place of
        /// trying again and again. On by default. It takes RESP3 and the rights to `client|tracking`, `client|caching` and
        /// `pttl`; where a quorum of nodes lacks them the [`retry_delay`](Self::retry_delay) rules, as it does without.
        pub fn wake_ups(self, wake_ups: bool) -> Self {
            Self { config: self.config.wake_ups(wake_ups), ..self }
        }

        /// The ttl of an acquire that names none; 10 s by default.
        pub fn default_ttl(self, ttl: core::time::Duration) -> Self {
            Self { config: self.config.default_ttl(ttl), ..self }
        }

        /// The wait of an acquire that names none; 10 s by default, `Duration::MAX` is for ever, zero is one round.
        pub fn default_wait(self, wait: core::time::Duration) -> Self {
            Self { config: self.config.default_wait(wait), ..self }
        }

        /// What bounds the client's memory.
        pub fn limits(self, limits: redlock_core::Limits) -> Self {
            Self { config: self.config.limits(limits), ..self }
        }
    };
}

/// The methods of an acquire, for a builder whose field `options` is an
/// [`AcquireOptions`](crate::handoff::AcquireOptions).
#[doc(hidden)]
#[macro_export]
macro_rules! __acquire_methods {
    () => {
        /// After which time nodes forget the lock if it is neither released nor extended; 10 s where none is named. Whole
        /// milliseconds: what is below is cut off. At most one year, and at least what leaves something after the drift:
        /// 3 ms with the usual one.
        pub fn ttl(self, ttl: core::time::Duration) -> Self {
            Self { options: self.options.ttl(ttl), ..self }
        }

        /// How long to try and queue; 10 s where none is named. Zero is exactly one full round, `Duration::MAX` is for ever.
        pub fn wait(self, wait: core::time::Duration) -> Self {
            Self { options: self.options.wait(wait), ..self }
        }

        /// At most so many rounds, at least one; without it only the wait ends them.
        pub fn attempts(self, attempts: u32) -> Self {
            Self { options: self.options.attempts(attempts), ..self }
        }

        /// Renews the lock while it is held, until `max_hold` after the start of the attempt that won it; `Duration::MAX` is
        /// without end. Not below the ttl (R16).
        pub fn auto_renew(self, max_hold: core::time::Duration) -> Self {
            Self { options: self.options.auto_renew(max_hold), ..self }
        }

        /// Asks for a [`Fence`]($crate::Fence) with the lock, a number that grows from grant to grant of the resource; see
        /// [`AcquireRequest::fenced`]($crate::AcquireRequest::fenced) for what it costs, and `fence()` of the guard.
        pub fn fenced(self) -> Self {
            Self { options: self.options.fenced(), ..self }
        }

        /// Has the nodes tell when the lock's keys are deleted or overwritten by somebody, so that the lock is lost at once and
        /// not with the next extension. Silently without effect where nodes cannot tell; see
        /// [`AcquireRequest::watch_loss`]($crate::AcquireRequest::watch_loss) for what it takes and costs.
        pub fn watch_loss(self) -> Self {
            Self { options: self.options.watch_loss(), ..self }
        }

        /// How long before its deadline a lock that is not renewed in time is reported as expiring; a quarter of the time
        /// that it was last good for where none is named (R17).
        pub fn expiring_lead(self, lead: core::time::Duration) -> Self {
            Self { options: self.options.expiring_lead(lead), ..self }
        }
    };
}

/// A candidate's methods that do not wait, for a type whose field `election` is an [`Election`](crate::handoff::Election).
#[doc(hidden)]
#[macro_export]
macro_rules! __election_methods {
    () => {
        /// After which time nodes forget a leader that is gone, and others can be elected; 10 s where none is named. See
        /// [`Acquire::ttl`].
        pub fn ttl(self, ttl: core::time::Duration) -> Self {
            Self { election: self.election.with(|options| options.ttl(ttl)) }
        }

        /// Gives each term a [`Fence`]($crate::Fence), its epoch, which grows from term to term, whoever leads: hand it to the
        /// store that the leader writes to, which has to refuse what comes with a smaller one than it has seen. See
        /// [`AcquireRequest::fenced`]($crate::AcquireRequest::fenced) for what it costs, and `fence()` of the guard.
        pub fn fenced(self) -> Self {
            Self { election: self.election.with(|options| options.fenced()) }
        }

        /// How long before its deadline a term that is not renewed in time is reported as expiring; a quarter of the time
        /// that it was last good for where none is named (R17).
        pub fn expiring_lead(self, lead: core::time::Duration) -> Self {
            Self { election: self.election.with(|options| options.expiring_lead(lead)) }
        }

        /// What is stood for, as text; what is no UTF-8 is replaced.
        #[must_use]
        pub fn resource(&self) -> alloc::borrow::Cow<'_, str> {
            self.election.resource()
        }

        /// The largest fence of this candidate's terms; `None` before the first of them, and where it is not
        /// [fenced](Self::fenced).
        #[must_use]
        pub fn epoch(&self) -> Option<$crate::Fence> {
            self.election.epoch()
        }
    };
}

/// A client's methods that do not wait, for a type whose field `hub` is a [`Hub`](crate::handoff::Hub), with an `Acquire`, an
/// `Election` and `Events` in scope.
#[doc(hidden)]
#[macro_export]
macro_rules! __client_methods {
    () => {
        /// Acquires a lock: any name, as text or as bytes.
        pub fn acquire(&self, resource: impl AsRef<[u8]>) -> Acquire<'_> {
            Acquire::new(self, $crate::handoff::AcquireOptions::one(resource))
        }

        /// Acquires a lock if it is free: exactly one round, a wait of zero.
        pub fn try_acquire(&self, resource: impl AsRef<[u8]>) -> Acquire<'_> {
            self.acquire(resource).wait(core::time::Duration::ZERO)
        }

        /// Acquires several resources as one lock, all or none on each node.
        pub fn acquire_all(&self, resources: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Acquire<'_> {
            Acquire::new(self, $crate::handoff::AcquireOptions::all(resources))
        }

        /// Stands for election: whoever holds the resource leads. A term is a lock that is renewed for as long as the leader
        /// wants and [watched](Acquire::watch_loss); nothing is asked before the first
        /// [campaign](Election::campaign).
        pub fn elect(&self, resource: impl AsRef<[u8]>) -> Election {
            Election::new($crate::handoff::Election::new(&self.hub, resource))
        }

        /// How the nodes stand, in the order in which they were given.
        #[must_use]
        pub fn nodes(&self) -> Vec<$crate::NodeStatus> {
            self.hub.nodes()
        }

        /// What happens from now on: locks acquired, renewed, lost; nodes up and down.
        #[must_use]
        pub fn events(&self) -> Events {
            self.events_with_capacity($crate::handoff::DEFAULT_FEED)
        }

        /// The client's clock, by which a guard's `valid_until` counts.
        #[must_use]
        pub fn now(&self) -> $crate::Instant {
            self.hub.shared().now()
        }

        /// The configuration.
        #[must_use]
        pub fn config(&self) -> &$crate::Config {
            self.hub.shared().config()
        }

        /// Whether it is closed.
        #[must_use]
        pub fn is_closed(&self) -> bool {
            self.hub.is_closed()
        }
    };
}

/// A guard's methods that do not wait, for a type whose field `handle` is a [`Handle`](crate::handoff::Handle).
#[doc(hidden)]
#[macro_export]
macro_rules! __guard_methods {
    () => {
        /// The resource as text. Several are joined by `, `; what is no UTF-8 is replaced.
        #[must_use]
        pub fn resource(&self) -> alloc::borrow::Cow<'_, str> {
            self.handle.resource()
        }

        /// The resources, byte for byte as they were asked for.
        pub fn resources(&self) -> impl Iterator<Item = &[u8]> {
            self.handle.resources().iter().map(|resource| &resource[..])
        }

        /// The lock's name in events.
        #[must_use]
        pub fn id(&self) -> $crate::LockId {
            self.handle.id()
        }

        /// The lock's fencing token, if one was asked for with `fenced()`: hand it to the store that the lock protects, which
        /// has to refuse what comes with a smaller one than it has seen.
        #[must_use]
        pub fn fence(&self) -> Option<$crate::Fence> {
            self.handle.fence()
        }

        /// Whether the lock is held: no I/O, only the clock. Once this is false it stays so.
        #[must_use]
        pub fn is_held(&self) -> bool {
            self.handle.is_held()
        }

        /// What is left until the deadline in force; nothing once it is not held any more.
        #[must_use]
        pub fn remaining(&self) -> core::time::Duration {
            self.handle.remaining()
        }

        /// The deadline in force, on the client's clock (its method `now`); the last one, once it is not held any more.
        /// Extensions and renewals move it, either way.
        #[must_use]
        pub fn valid_until(&self) -> $crate::Instant {
            self.handle.valid_until()
        }

        /// How each node stands to the lock, in the order of the configuration: the margin. Nothing once the lock has ended
        /// and is cleaned up.
        #[must_use]
        pub fn votes(&self) -> Vec<$crate::handoff::Vote> {
            self.handle.votes()
        }

        /// Why the lock is not held any more; `None` while it is.
        #[must_use]
        pub fn lost_reason(&self) -> Option<$crate::LostReason> {
            self.handle.lost_reason()
        }

        /// Has `callback` called once when the lock is lost, also if that has happened already; not when it is released.
        ///
        /// It is called on a thread that the client keeps for callbacks, one after the other: it may block, but holds up
        /// those that come after it, and it may call into the client. A panic in it ends nothing else.
        pub fn on_lost(&self, callback: impl FnOnce($crate::LostReason) + Send + 'static) {
            self.handle.on_lost(callback);
        }

        /// Has `callback` called whenever the deadline is near and the lock was not renewed in time (R17): the last chance
        /// to stop in an orderly way. Runs where [`on_lost`](Self::on_lost)'s do.
        pub fn on_expiring(&self, callback: impl FnMut($crate::handoff::Expiring) + Send + 'static) {
            self.handle.on_expiring(callback);
        }

        /// Another handle of the same lock, for re-entrance: the lock is released with the last one.
        pub fn share(&self) -> Self {
            Self { handle: self.handle.share() }
        }
    };
}

/// The system's clock, as `SystemClock`, and its entropy, as `SystemEntropy`, for a crate that depends on `rustix` and
/// `getrandom`.
#[doc(hidden)]
#[macro_export]
macro_rules! __system {
    () => {
        /// The system's clock that never goes back and, where there is one, counts the time that the machine is suspended:
        /// `CLOCK_BOOTTIME` on Linux and Android, `std::time::Instant` elsewhere.
        #[derive(Clone, Copy, Debug, Default)]
        pub struct SystemClock;

        #[cfg(any(target_os = "linux", target_os = "android"))]
        impl $crate::handoff::Clock for SystemClock {
            fn now(&self) -> $crate::Instant {
                let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
                let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
                let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
                $crate::Instant::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
            }
        }

        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        impl $crate::handoff::Clock for SystemClock {
            #[expect(
                clippy::disallowed_methods,
                reason = "the only clock that every other system has; the documentation says what it counts"
            )]
            fn now(&self) -> $crate::Instant {
                static ORIGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
                let origin = ORIGIN.get_or_init(std::time::Instant::now);
                $crate::Instant::ZERO.saturating_add(origin.elapsed())
            }
        }

        /// The operating system's generator.
        #[derive(Debug)]
        pub(crate) struct SystemEntropy;

        impl $crate::handoff::Entropy for SystemEntropy {
            fn draw(&self) -> Result<[u8; 16], String> {
                let mut bytes = [0; 16];
                getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
                Ok(bytes)
            }
        }
    };
}

/// How TCP connections are tuned, as `tune`, and a look at it for tests, as `assert_tuned`, for a crate that depends on
/// `socket2`, and in its tests on `rustix` with `net`.
#[doc(hidden)]
#[macro_export]
macro_rules! __tune {
    () => {
        /// A connection on which nothing was said for so long is asked whether it still stands, so that one that was cut
        /// silently is found before a lock is; and so that what is in between does not forget it for idleness.
        const KEEPALIVE: core::time::Duration = core::time::Duration::from_secs(30);
        /// When no answer comes, it is asked again so often that it is given up within a few of these.
        const KEEPALIVE_AGAIN: core::time::Duration = core::time::Duration::from_secs(10);

        /// Small packets go out at once, and a silent peer is asked whether it is there. Neither is worth failing for.
        fn tune<'a>(stream: impl Into<socket2::SockRef<'a>>) {
            let socket = stream.into();
            let _no_delay = socket.set_tcp_nodelay(true);
            let keepalive = socket2::TcpKeepalive::new().with_time(KEEPALIVE);
            #[cfg(any(
                target_os = "linux",
                target_os = "android",
                target_os = "freebsd",
                target_os = "macos",
                target_os = "windows",
            ))]
            let keepalive = keepalive.with_interval(KEEPALIVE_AGAIN);
            let _keepalive = socket.set_tcp_keepalive(&keepalive);
        }

        #[cfg(all(test, target_os = "linux"))]
        fn assert_tuned(socket: impl std::os::fd::AsFd) {
            use rustix::net::sockopt;

            assert_eq!(sockopt::tcp_nodelay(&socket), Ok(true));
            assert_eq!(sockopt::socket_keepalive(&socket), Ok(true));
            assert_eq!(sockopt::tcp_keepidle(&socket), Ok(KEEPALIVE));
            assert_eq!(sockopt::tcp_keepintvl(&socket), Ok(KEEPALIVE_AGAIN));
        }
    };
}
