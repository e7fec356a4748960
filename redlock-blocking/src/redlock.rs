//! The client, and how one is made.

use crate::acquire::Acquire;
use crate::driver::{self, Sockets};
use crate::election::Election;
use crate::events::Events;
#[cfg(doc)]
use crate::guard::Guard;
use crate::system::{SystemClock, SystemEntropy};
use crate::wait::wait_for_answer;
use alloc::sync::Arc;
use core::fmt;
use redlock_core::handoff::{BuildError, CallbackThread, Clock, Environment, Hub};
use redlock_core::{Config, ConfigBuilder, Node};

/// A client of N nodes. Cheap to clone; clones are the same client.
///
/// It has connections to all its nodes, and a thread that reads from them. When the last clone is gone
/// and the last guard, it closes in the background; [`close`](Self::close) waits for that.
#[derive(Clone, Debug)]
pub struct Redlock {
    hub: Hub<Sockets>,
}

impl Redlock {
    /// Connects to these nodes, with the defaults, and waits for a quorum of them.
    ///
    /// # Errors
    ///
    /// See [`Builder::connect`].
    pub fn connect<N: Into<Node>>(nodes: impl IntoIterator<Item = N>) -> Result<Self, BuildError> {
        Self::builder().nodes(nodes).connect()
    }

    /// A client to be configured.
    pub fn builder() -> Builder {
        let look_up = driver::resolve::system;
        Builder { config: Config::builder(), clock: Arc::new(SystemClock), tls: None, look_up }
    }

    pub(crate) const fn hub(&self) -> &Hub<Sockets> {
        &self.hub
    }

    redlock_core::__client_methods!();

    /// The same, with room for so many events that nobody has taken yet.
    #[must_use]
    pub fn events_with_capacity(&self, capacity: usize) -> Events {
        Events::new(self.hub.subscribe(capacity), self.hub.shared().clone())
    }

    /// Releases every lock that is held, calls off what is pending, and closes all connections; for all clones. Waits for
    /// the nodes' answers, at most for one node timeout.
    pub fn close(&self) {
        wait_for_answer(self.hub.shared(), self.hub.close());
    }
}

/// Makes a [`Redlock`].
#[derive(Clone)]
#[must_use = "no client is made before `connect` or `connect_lazy`"]
pub struct Builder {
    config: ConfigBuilder,
    clock: Arc<dyn Clock>,
    tls: Option<driver::Tls>,
    /// Of tests, where it is not the system's.
    look_up: driver::LookUp,
}

impl Builder {
    redlock_core::__config_methods!();

    /// Another clock than the [system's](SystemClock). Waits still last as long as the system's timers say, which are looked
    /// at once a second at least while there is anything to do.
    pub fn clock(self, clock: impl Clock + 'static) -> Self {
        Self { clock: Arc::new(clock), ..self }
    }

    /// How TLS is spoken to nodes whose address says `rediss://`: with an authority of your own, for instance (and what
    /// single nodes have for themselves). Without it what the system trusts is trusted.
    #[cfg(feature = "tls-no-provider")]
    pub fn tls(self, tls: redlock_tls::Tls) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// Connects, and waits for a quorum of nodes; the others go on in the background (R27).
    ///
    /// # Errors
    ///
    /// The configuration cannot be used, the system refuses a thread or a descriptor, or no quorum of nodes can be had, or
    /// not within the connect timeout: then with the reason of each.
    pub fn connect(self) -> Result<Redlock, BuildError> {
        let redlock = self.connect_lazy()?;
        match wait_for_answer(redlock.hub.shared(), redlock.hub.connect()) {
            Ok(()) => Ok(redlock),
            Err(error) => Err(error.into()),
        }
    }

    /// Starts to connect, and returns at once. What is acquired before a quorum is connected is sent as soon as the
    /// handshakes end.
    ///
    /// # Errors
    ///
    /// The configuration cannot be used, or the system refuses a thread or a descriptor.
    pub fn connect_lazy(self) -> Result<Redlock, BuildError> {
        let config = self.config.build()?;
        let tls = driver::secure::for_nodes(&config, self.tls)?;
        let system = |error: std::io::Error| BuildError::System(error.to_string());
        let (reactor, sockets) = driver::new(&config, tls, self.look_up).map_err(system)?;
        let environment = Environment {
            clock: Box::new(self.clock),
            entropy: Box::new(SystemEntropy),
            callbacks: Box::new(CallbackThread::default()),
        };
        let hub = Hub::new(config, environment, sockets);
        reactor.start(hub.shared().clone()).map_err(system)?;
        Ok(Redlock { hub })
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("config", &self.config).finish_non_exhaustive()
    }
}

// What users rely on without saying so.
const _: () = {
    const fn shared<T: Clone + Send + Sync + 'static>() {}
    const fn sent<T: Send + Sync + 'static>() {}
    const fn error<T: core::error::Error + Send + Sync + 'static>() {}
    shared::<Redlock>();
    sent::<crate::Guard>();
    sent::<Builder>();
    sent::<Election>();
    sent::<Events>();
    error::<BuildError>();
    error::<redlock_core::AcquireError>();
    error::<redlock_core::ExtendError>();
    error::<redlock_core::handoff::ReleaseError>();
    error::<redlock_core::handoff::HoldError<()>>();
};

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::SocketAddr;
    use core::sync::atomic::{AtomicUsize, Ordering};
    use core::time::Duration;
    use redlock_core::{NodeFault, NodeState};
    use std::{io, thread};

    static ASKED: AtomicUsize = AtomicUsize::new(0);

    fn hangs(_: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        ASKED.fetch_add(1, Ordering::SeqCst);
        loop {
            thread::park();
        }
    }

    #[test]
    fn r27_a_resolver_that_hangs_ends_at_the_connect_timeout() {
        let ms = Duration::from_millis;
        let nodes = ["redis://redis-1.example.com", "redis://redis-2.example.com"];
        let builder = || Builder { look_up: hangs, ..Redlock::builder().nodes(nodes) };
        let lazy = builder().handshake_timeout(ms(50)).connect_lazy().unwrap();
        let start = lazy.now();
        let error = builder().connect_timeout(ms(300)).connect().unwrap_err();
        let took = lazy.now().saturating_duration_since(start);
        assert!(took >= ms(290) && took < Duration::from_secs(2), "{took:?}");
        assert!(matches!(&error, BuildError::Connect(error) if error.timed_out), "{error}");
        // Each connection is given up, and the next one waits for the look-up that is under way: it gathers no threads.
        let (mut given_up, until) = (Vec::new(), start.saturating_add(Duration::from_secs(10)));
        while given_up.len() < 3 {
            assert!(lazy.now() < until, "{:?}", lazy.nodes());
            for node in lazy.nodes() {
                let NodeState::Down { fault, retry_at } = node.state else { continue };
                assert!(matches!(fault, NodeFault::HandshakeTimeout(_)), "{fault}");
                if !given_up.contains(&retry_at) {
                    given_up.push(retry_at);
                }
            }
            thread::sleep(ms(1));
        }
        assert_eq!(ASKED.load(Ordering::SeqCst), 4, "two clients, two nodes each");
        // Nor does closing wait for it.
        let start = lazy.now();
        lazy.close();
        assert!(lazy.now().saturating_duration_since(start) < Duration::from_secs(1));
    }
}
