//! Builder methods that are the same in every adapter, written once.

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

        /// How long before its deadline a lock that is not renewed in time is reported as expiring; a quarter of the time
        /// that it was last good for where none is named (R17).
        pub fn expiring_lead(self, lead: core::time::Duration) -> Self {
            Self { options: self.options.expiring_lead(lead), ..self }
        }
    };
}
