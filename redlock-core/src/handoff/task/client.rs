//! The client, and how one is made.

use super::drive::Drive;
use super::{Acquire, BoxFuture, Connections, Election, Events, Runtime, Secure, Transport};
use crate::config::{Config, ConfigBuilder, Node};
use crate::handoff::{BuildError, CallbackThread, Clock, Environment, Hub};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

/// A client of N nodes. Cheap to clone; clones are the same client.
///
/// It has connections to all its nodes, and a task that reads from them and keeps its timers, the driver. When the last
/// clone is gone and the last guard, it closes in the background; [`close`](Self::close) waits for that. When the driver
/// ends, because its runtime does, the client is closed too: locks that were held are [lost](crate::LostReason::Closed),
/// and their release was handed to the sockets.
#[derive(Clone)]
pub struct Redlock<R> {
    hub: Hub<Connections>,
    runtime: PhantomData<fn() -> R>,
}

impl<R: Runtime> Redlock<R> {
    /// Connects to these nodes, with the defaults, and waits for a quorum of them.
    ///
    /// # Errors
    ///
    /// See [`Builder::connect`].
    ///
    /// # Cancel safety
    ///
    /// Dropped, the client is closed.
    pub async fn connect<N: Into<Node>>(nodes: impl IntoIterator<Item = N>) -> Result<Self, BuildError> {
        Self::builder().nodes(nodes).connect().await
    }

    /// A client to be configured.
    pub fn builder() -> Builder<R> {
        let (config, clock, transport) = (Config::builder(), R::clock(), R::transport());
        Builder { config, clock, transport, secure: None, spawn: Arc::new(R::spawn), runtime: PhantomData }
    }

    pub(super) const fn hub(&self) -> &Hub<Connections> {
        &self.hub
    }

    crate::__client_methods!();

    /// What happens from now on, with room for so many events that nobody has taken yet.
    #[must_use]
    pub fn events_with_capacity(&self, capacity: usize) -> Events {
        Events::new(self.hub.subscribe(capacity))
    }

    /// Releases every lock that is held, calls off what is pending, and closes all connections; for all clones. Waits for
    /// the nodes' answers, at most for one node timeout.
    ///
    /// # Cancel safety
    ///
    /// Closing starts when this is first polled. Dropped after that, it goes on; dropped before, nothing is closed.
    pub async fn close(&self) {
        self.hub.close().await;
    }
}

impl<R: Runtime> fmt::Debug for Redlock<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redlock").field("config", self.config()).finish_non_exhaustive()
    }
}

type Spawn = dyn Fn(BoxFuture<()>) -> Result<(), String> + Send + Sync;

/// Makes a [`Redlock`].
#[derive(Clone)]
#[must_use = "no client is made before `connect` or `connect_lazy`"]
pub struct Builder<R> {
    config: ConfigBuilder,
    clock: Arc<dyn Clock>,
    transport: Arc<dyn Transport>,
    secure: Option<Arc<dyn Secure>>,
    spawn: Arc<Spawn>,
    runtime: PhantomData<fn() -> R>,
}

impl<R: Runtime> Builder<R> {
    crate::__config_methods!();

    /// Another clock than the system's. Waits still last as long as the runtime's timers say, which are looked at once a
    /// second at least while there is anything to do.
    pub fn clock(self, clock: impl Clock + 'static) -> Self {
        Self { clock: Arc::new(clock), ..self }
    }

    /// Other connections than the runtime's sockets: what a test puts in their place.
    pub fn transport(self, transport: impl Transport + 'static) -> Self {
        Self { transport: Arc::new(transport), ..self }
    }

    /// How TLS is spoken to nodes whose address says `rediss://`, for instance a `redlock_tls::Tls` with a CA of your own
    /// (and what single nodes have for themselves). Without it, the crate's feature `tls` trusts what the system trusts.
    pub fn tls(self, tls: impl Secure + 'static) -> Self {
        Self { secure: Some(Arc::new(tls)), ..self }
    }

    /// Where the client's driver runs, if not where the runtime's own spawn puts it: a future that has to be polled until
    /// it is ready, on a thread or by an executor that lives as long as the client. Once it is dropped, the client is
    /// closed.
    pub fn spawn_with(self, spawn: impl Fn(BoxFuture<()>) + Send + Sync + 'static) -> Self {
        let spawn = move |driver| {
            spawn(driver);
            Ok(())
        };
        Self { spawn: Arc::new(spawn), ..self }
    }

    /// Connects, and waits for a quorum of nodes; the others go on in the background (R27).
    ///
    /// # Errors
    ///
    /// The configuration cannot be used, there is no runtime here, or no quorum of nodes can be had, or not within the
    /// connect timeout: then with the reason of each.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the client is closed.
    pub async fn connect(self) -> Result<Redlock<R>, BuildError> {
        let redlock = self.connect_lazy()?;
        redlock.hub.connect().await?;
        Ok(redlock)
    }

    /// Starts to connect, and returns at once. What is acquired before a quorum is connected is sent as soon as the
    /// handshakes end.
    ///
    /// # Errors
    ///
    /// The configuration cannot be used, or there is no runtime here.
    pub fn connect_lazy(self) -> Result<Redlock<R>, BuildError> {
        let config = self.config.build()?;
        let mut secure = self.secure;
        if let Some(node) = config.nodes().iter().find(|node| node.address().is_tls()) {
            if secure.is_none() {
                secure = R::secure().map_err(BuildError::System)?;
            }
            if secure.is_none() {
                return Err(BuildError::TlsUnsupported { address: node.address().to_string() });
            }
        }
        let connections = Connections::new(&config, self.transport, secure, R::sleep);
        let bell = Arc::clone(connections.bell());
        let callbacks = Box::new(CallbackThread::default());
        let environment = Environment { clock: Box::new(self.clock), entropy: R::entropy(), callbacks };
        let hub = Hub::new(config, environment, connections);
        let driver = Drive::<R>::new(hub.shared().clone(), bell);
        (self.spawn)(Box::pin(driver)).map_err(BuildError::NoRuntime)?;
        Ok(Redlock { hub, runtime: PhantomData })
    }
}

impl<R> fmt::Debug for Builder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("config", &self.config).finish_non_exhaustive()
    }
}
