//! What a client is made of: its nodes, its times, its limits; checked once, before anything is sent.

mod error;
mod limits;
#[cfg(test)]
mod tests;

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use bytes::Bytes;

use crate::address::{Address, AddressError};
use crate::request::{MOST_RESOURCE, valid_ttl};
use crate::time::{Drift, whole_millis};

pub use error::{ConfigError, NameFault};
pub use limits::Limits;

/// The most nodes of one configuration: a set of them is one machine word, and each is asked at every acquire.
/// Redlock over more than nine gains nothing.
pub(crate) const MOST_NODES: usize = 63;
/// The longest client name, in bytes: it is part of every value (R8b).
pub(crate) const MOST_NAME: usize = 64;
/// Below it a counter would be forgotten between two grants, and the order of fences hang on clocks alone.
const LEAST_RETENTION: Duration = Duration::from_secs(1);
const ONE_MILLI: Duration = Duration::from_millis(1);

/// A node as a user names it: its address, and what is known about it.
///
/// A string is taken as an [address](Address); one that does not parse is told by [`ConfigBuilder::build`].
#[derive(Clone, PartialEq, Eq)]
pub struct Node {
    address: Result<Arc<Address>, AddressError>,
    durable: bool,
}

impl Node {
    /// A node at this address.
    pub fn new(address: impl Into<Self>) -> Self {
        address.into()
    }

    /// Declares that what this node acknowledged survives its crash and restart (`appendonly yes` with
    /// `appendfsync always`, on a disk that keeps its promises). The restart guard then does not keep it waiting.
    #[must_use]
    pub fn durable(self, durable: bool) -> Self {
        Self { durable, ..self }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Ok(address) => write!(f, "{address:?}")?,
            Err(error) => write!(f, "{error}")?,
        }
        f.write_str(if self.durable { " (durable)" } else { "" })
    }
}

impl From<&str> for Node {
    fn from(text: &str) -> Self {
        Self { address: Address::parse(text).map(Arc::new), durable: false }
    }
}

impl From<&&str> for Node {
    fn from(text: &&str) -> Self {
        (*text).into()
    }
}

impl From<String> for Node {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<&String> for Node {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<Address> for Node {
    fn from(address: Address) -> Self {
        Self { address: Ok(Arc::new(address)), durable: false }
    }
}

impl From<&Address> for Node {
    fn from(address: &Address) -> Self {
        address.clone().into()
    }
}

impl From<&Self> for Node {
    fn from(node: &Self) -> Self {
        node.clone()
    }
}

/// A node of a checked configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    address: Arc<Address>,
    durable: bool,
}

impl NodeConfig {
    /// Where the node is.
    #[must_use]
    pub fn address(&self) -> &Arc<Address> {
        &self.address
    }

    /// Whether it was [declared durable](Node::durable).
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.durable
    }
}

/// The configuration of a client: checked, so that nothing in it can fail later.
///
/// ```
/// use core::time::Duration;
/// use redlock_core::Config;
///
/// let nodes = ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"];
/// let config = Config::builder().nodes(nodes).client_name("billing").build()?;
/// assert_eq!((config.nodes().len(), config.quorum()), (3, 2));
/// assert_eq!(config.node_timeout_for(Duration::from_secs(10)), Duration::from_millis(500));
/// # Ok::<(), redlock_core::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    nodes: Vec<NodeConfig>,
    quorum: u8,
    client_name: Option<String>,
    key_prefix: Bytes,
    drift: Drift,
    node_timeout: Option<Duration>,
    retry_delay: (Duration, Duration),
    connect_timeout: Duration,
    handshake_timeout: Duration,
    restart_guard: Option<Duration>,
    fence_retention: Option<Duration>,
    watch_clocks: bool,
    wake_ups: bool,
    default_ttl: Duration,
    default_wait: Duration,
    limits: Limits,
}

impl Config {
    /// The ttl of an acquire that names none: long enough for a renewal to fail twice, short enough to wait for.
    pub const DEFAULT_TTL: Duration = Duration::from_secs(10);
    /// The wait of an acquire that names none.
    pub const DEFAULT_WAIT: Duration = Duration::from_secs(10);
    /// The shortest and the longest random delay between two attempts (R9).
    pub const DEFAULT_RETRY_DELAY: (Duration, Duration) =
        (Duration::from_millis(50), Duration::from_millis(250));
    /// How long the first quorum of connections may take (R27).
    pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
    /// How long one connection may take, so that two tries fit into the default above.
    pub const DEFAULT_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(2);

    /// A configuration with the defaults and no nodes yet.
    pub fn builder() -> ConfigBuilder {
        ConfigBuilder::default()
    }

    /// The nodes, in the order in which they were given; a `NodeId` is an index into it.
    #[must_use]
    pub fn nodes(&self) -> &[NodeConfig] {
        &self.nodes
    }

    /// How many nodes must agree: the majority of the configured ones (R3).
    #[must_use]
    pub fn quorum(&self) -> u8 {
        self.quorum
    }

    /// The number of nodes.
    pub(crate) fn node_count(&self) -> u8 {
        u8::try_from(self.nodes.len()).unwrap_or(u8::MAX)
    }

    /// What operators see of this client, if it was named.
    #[must_use]
    pub fn client_name(&self) -> Option<&str> {
        self.client_name.as_deref()
    }

    /// What comes before every resource to make its key; empty by default.
    #[must_use]
    pub fn key_prefix(&self) -> &Bytes {
        &self.key_prefix
    }

    /// The allowance for clocks that run differently (R6).
    #[must_use]
    pub fn drift(&self) -> Drift {
        self.drift
    }

    /// The node timeout of a lock with this ttl: how long a round waits for its slowest node, a fence's raise included
    /// (R10). The one that was configured, else a twentieth of the ttl, at least 10 ms and at most 1 s.
    #[must_use]
    pub fn node_timeout_for(&self, ttl: Duration) -> Duration {
        let usual = || (ttl / 20).clamp(Duration::from_millis(10), Duration::from_secs(1));
        self.node_timeout.unwrap_or_else(usual)
    }

    /// The shortest and the longest random delay between two attempts (R9).
    #[must_use]
    pub fn retry_delay(&self) -> (Duration, Duration) {
        self.retry_delay
    }

    /// How long a client may take until a quorum of its nodes can be used (R27).
    #[must_use]
    pub fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }

    /// How long one connection may take: the name's resolution, all its addresses, TLS, login (R11).
    #[must_use]
    pub fn handshake_timeout(&self) -> Duration {
        self.handshake_timeout
    }

    /// The longest ttl that any client of these nodes uses, if restarted nodes are to be kept out for that long (R25).
    #[must_use]
    pub fn restart_guard(&self) -> Option<Duration> {
        self.restart_guard
    }

    /// How long nodes keep the counter of a fenced resource that nobody takes; `None` for ever.
    #[must_use]
    pub fn fence_retention(&self) -> Option<Duration> {
        self.fence_retention
    }

    /// Whether nodes are asked for their time now and then.
    #[must_use]
    pub fn watch_clocks(&self) -> bool {
        self.watch_clocks
    }

    /// Whether nodes are asked to tell when a key that is waited for changes.
    #[must_use]
    pub fn wake_ups(&self) -> bool {
        self.wake_ups
    }

    /// The ttl of an acquire that names none.
    #[must_use]
    pub fn default_ttl(&self) -> Duration {
        self.default_ttl
    }

    /// The wait of an acquire that names none.
    #[must_use]
    pub fn default_wait(&self) -> Duration {
        self.default_wait
    }

    /// What bounds the client's memory.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
}

/// Makes a [`Config`]. Nothing is checked before [`build`](Self::build).
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ConfigBuilder {
    nodes: Vec<Node>,
    quorum: Option<u8>,
    client_name: Option<String>,
    key_prefix: Bytes,
    drift: Drift,
    node_timeout: Option<Duration>,
    retry_delay: Option<(Duration, Duration)>,
    connect_timeout: Option<Duration>,
    handshake_timeout: Option<Duration>,
    restart_guard: Option<Duration>,
    fence_retention: Option<Duration>,
    ignore_clocks: bool,
    no_wake_ups: bool,
    default_ttl: Option<Duration>,
    default_wait: Option<Duration>,
    limits: Limits,
}

impl ConfigBuilder {
    /// Adds nodes: addresses, or [`Node`]s with more to say. At least one, at most 63; an odd number is best, since
    /// four nodes bear the loss of no more nodes than three.
    pub fn nodes<N: Into<Node>>(mut self, nodes: impl IntoIterator<Item = N>) -> Self {
        self.nodes.extend(nodes.into_iter().map(Into::into));
        self
    }

    /// Adds one node.
    pub fn node(mut self, node: impl Into<Node>) -> Self {
        self.nodes.push(node.into());
        self
    }

    /// What operators see: the name of the connections, and in every lock's value after the token (R8b). Printable
    /// ASCII without spaces, 1 to 64 bytes.
    pub fn client_name(self, name: impl Into<String>) -> Self {
        Self { client_name: Some(name.into()), ..self }
    }

    /// What comes before every resource to make its key. None by default: only clients that use the same keys exclude
    /// each other, those of other libraries too.
    pub fn key_prefix(self, prefix: impl Into<Bytes>) -> Self {
        Self { key_prefix: prefix.into(), ..self }
    }

    /// The allowance for clocks that run differently, below 100 %; 1 % by default, and 2 ms on top (R6).
    pub fn drift(self, drift: Drift) -> Self {
        Self { drift, ..self }
    }

    /// How long a round waits for its slowest node, whatever the ttl. By default a twentieth of the lock's ttl, at
    /// least 10 ms and at most 1 s.
    pub fn node_timeout(self, timeout: Duration) -> Self {
        Self { node_timeout: Some(timeout), ..self }
    }

    /// The shortest and the longest random delay between two attempts; 50 and 250 ms by default, never below 1 ms (R9).
    pub fn retry_delay(self, min: Duration, max: Duration) -> Self {
        Self { retry_delay: Some((min, max)), ..self }
    }

    /// How long `connect` waits for a quorum of nodes (R27); 5 s by default. Nodes that are not ready by then go on in
    /// the background.
    pub fn connect_timeout(self, timeout: Duration) -> Self {
        Self { connect_timeout: Some(timeout), ..self }
    }

    /// How long one connection may take before it is given up and another is tried: the name's resolution, all its
    /// addresses, TLS and login (R11). 2 s by default, or the connect timeout where that is shorter; not above it, or
    /// `connect` would end with its first try still on the way.
    pub fn handshake_timeout(self, timeout: Duration) -> Self {
        Self { handshake_timeout: Some(timeout), ..self }
    }

    /// Keeps a node that restarted from voting until every lock it may have forgotten has expired (R25): `max_ttl` is
    /// the longest ttl that any client of these nodes uses, and a longer one is refused from now on. Nodes
    /// [declared durable](Node::durable) are exempt. Off by default.
    ///
    /// Where it is below 10 s and no [default ttl](Self::default_ttl) is set, it is that too.
    pub fn restart_guard(self, max_ttl: Duration) -> Self {
        Self { restart_guard: Some(max_ttl), ..self }
    }

    /// Has nodes forget the counter of a fenced resource when nobody took it for so long; whole milliseconds, at least one
    /// second. By default counters stay for ever, which costs a key for each resource that was ever fenced.
    ///
    /// **It assumes more**: a counter that was forgotten starts again from its node's clock, so fences grow only while the
    /// nodes' clocks are less than this apart. Choose days, not seconds.
    pub fn fence_retention(self, retention: Duration) -> Self {
        Self { fence_retention: Some(retention), ..self }
    }

    /// Whether a node that is in use is asked for its time every ten seconds, along with what is sent to it anyway, so that
    /// a wall clock that was set is told as [`Event::ClockStepped`](crate::Event::ClockStepped): locks there expire too
    /// early or too late. On by default; a user without the right to `TIME` is not asked again.
    pub fn watch_clocks(self, watch: bool) -> Self {
        Self { ignore_clocks: !watch, ..self }
    }

    /// Whether an acquire that waits has the nodes tell it when the lock gets free, by client tracking, in the place of
    /// trying again and again. On by default. It takes RESP3 and the rights to `client|tracking`, `client|caching` and
    /// `pttl`; where a quorum of nodes lacks them the [`retry_delay`](Self::retry_delay) rules, as it does without.
    pub fn wake_ups(self, wake_ups: bool) -> Self {
        Self { no_wake_ups: !wake_ups, ..self }
    }

    /// The ttl of an acquire that names none; 10 s by default.
    pub fn default_ttl(self, ttl: Duration) -> Self {
        Self { default_ttl: Some(ttl), ..self }
    }

    /// The wait of an acquire that names none; 10 s by default, `Duration::MAX` is for ever, zero is one round.
    pub fn default_wait(self, wait: Duration) -> Self {
        Self { default_wait: Some(wait), ..self }
    }

    /// What bounds the client's memory.
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Another quorum than the majority. **Below the majority, two owners can hold one lock.** It exists only so that
    /// the checks which look for two owners can be shown to find them.
    #[doc(hidden)]
    pub fn unsafe_quorum(self, quorum: u8) -> Self {
        Self { quorum: Some(quorum), ..self }
    }

    /// Checks all of it.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with what to do about it; see [`ConfigError`].
    pub fn build(self) -> Result<Config, ConfigError> {
        let nodes = checked_nodes(self.nodes)?;
        let majority = u8::try_from(nodes.len() / 2 + 1).unwrap_or(u8::MAX);
        let quorum = self.quorum.unwrap_or(majority);
        if quorum == 0 || usize::from(quorum) > nodes.len() {
            return Err(ConfigError::Quorum { quorum, nodes: nodes.len() });
        }
        if let Some(reason) = self.client_name.as_deref().and_then(name_fault) {
            return Err(ConfigError::ClientName { reason });
        }
        if self.key_prefix.len() >= MOST_RESOURCE {
            return Err(ConfigError::KeyPrefixTooLong {
                len: self.key_prefix.len(),
                most: MOST_RESOURCE - 1,
            });
        }
        if self.drift.parts_per_million() >= 1_000_000 {
            return Err(ConfigError::Drift { drift: self.drift });
        }
        if self.node_timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(ConfigError::NodeTimeout);
        }
        let (min, max) = self.retry_delay.unwrap_or(Config::DEFAULT_RETRY_DELAY);
        if min < ONE_MILLI || max < min {
            return Err(ConfigError::RetryDelay { min, max });
        }
        let connect_timeout = self.connect_timeout.unwrap_or(Config::DEFAULT_CONNECT_TIMEOUT);
        if connect_timeout.is_zero() {
            return Err(ConfigError::ConnectTimeout);
        }
        let usual = Config::DEFAULT_HANDSHAKE_TIMEOUT.min(connect_timeout);
        let handshake_timeout = self.handshake_timeout.unwrap_or(usual);
        if handshake_timeout.is_zero() || handshake_timeout > connect_timeout {
            return Err(ConfigError::HandshakeTimeout { handshake_timeout, connect_timeout });
        }
        let guard = |max_ttl| valid_ttl(max_ttl, self.drift, None).map_err(ConfigError::RestartGuard);
        let restart_guard = self.restart_guard.map(guard).transpose()?;
        let fence_retention = self.fence_retention.map(whole_millis);
        if let Some(retention) = fence_retention.filter(|retention| *retention < LEAST_RETENTION) {
            return Err(ConfigError::FenceRetention { retention, least: LEAST_RETENTION });
        }
        let usual = restart_guard.map_or(Config::DEFAULT_TTL, |max_ttl| max_ttl.min(Config::DEFAULT_TTL));
        let default_ttl = self.default_ttl.unwrap_or(usual);
        let default_ttl =
            valid_ttl(default_ttl, self.drift, restart_guard).map_err(ConfigError::DefaultTtl)?;
        self.limits.check()?;
        Ok(Config {
            nodes,
            quorum,
            client_name: self.client_name,
            key_prefix: self.key_prefix,
            drift: self.drift,
            node_timeout: self.node_timeout,
            retry_delay: (min, max),
            connect_timeout,
            handshake_timeout,
            restart_guard,
            fence_retention,
            watch_clocks: !self.ignore_clocks,
            wake_ups: !self.no_wake_ups,
            default_ttl,
            default_wait: self.default_wait.unwrap_or(Config::DEFAULT_WAIT),
            limits: self.limits,
        })
    }
}

fn checked_nodes(nodes: Vec<Node>) -> Result<Vec<NodeConfig>, ConfigError> {
    if nodes.is_empty() {
        return Err(ConfigError::NoNodes);
    }
    if nodes.len() > MOST_NODES {
        return Err(ConfigError::TooManyNodes { nodes: nodes.len(), most: MOST_NODES });
    }
    let mut known = BTreeMap::new();
    let mut checked = Vec::with_capacity(nodes.len());
    for (index, Node { address, durable }) in nodes.into_iter().enumerate() {
        let wrong = |error: AddressError| ConfigError::Address(error.at_entry(index));
        let address = address.map_err(wrong)?;
        address.check().map_err(wrong)?;
        if let Some(first) = known.insert(address.server_key(), Arc::clone(&address)) {
            return Err(ConfigError::DuplicateNode { first: first.to_string(), second: address.to_string() });
        }
        checked.push(NodeConfig { address, durable });
    }
    Ok(checked)
}

fn name_fault(name: &str) -> Option<NameFault> {
    if name.is_empty() {
        return Some(NameFault::Empty);
    }
    if name.len() > MOST_NAME {
        return Some(NameFault::TooLong { len: name.len(), most: MOST_NAME });
    }
    name.chars().find(|letter| !letter.is_ascii_graphic()).map(|found| NameFault::Character { found })
}
