//! Which server a simulated node speaks like.

/// The server that a simulated node speaks like, to the byte of its replies.
///
/// Each stands for a family that differs in what a lock client can use: Redis before 8.4 has neither a conditional
/// `SET` nor a conditional delete, Redis from 8.4 has `SET … IFEQ` and `DELEX`, Valkey 8.1 has `SET … IFEQ` only, and
/// Valkey from 9.0 has `SET … IFEQ` and `DELIFEQ`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// Redis 7.0.15.
    Redis7,
    /// Redis 8.6.3, for every Redis from 8.4.
    Redis84,
    /// Valkey 8.1.1.
    Valkey81,
    /// Valkey 9.1.2, for every Valkey from 9.0.
    Valkey9,
}

impl Dialect {
    /// All of them, oldest first.
    pub const ALL: [Self; 4] = [Self::Redis7, Self::Redis84, Self::Valkey81, Self::Valkey9];

    /// What `HELLO` calls the server: `redis` or `valkey`.
    #[must_use]
    pub const fn server_name(self) -> &'static str {
        if self.is_valkey() { "valkey" } else { "redis" }
    }

    /// The version in `HELLO`.
    #[must_use]
    pub const fn version(self) -> &'static str {
        match self {
            Self::Redis7 => "7.0.15",
            Self::Redis84 => "8.6.3",
            Self::Valkey81 => "8.1.1",
            Self::Valkey9 => "9.1.2",
        }
    }

    /// Whether `SET` takes `IFEQ`.
    #[must_use]
    pub const fn has_set_ifeq(self) -> bool {
        !matches!(self, Self::Redis7)
    }

    /// Whether there is `DELEX`.
    #[must_use]
    pub const fn has_delex(self) -> bool {
        matches!(self, Self::Redis84)
    }

    /// Whether there is `DELIFEQ`.
    #[must_use]
    pub const fn has_delifeq(self) -> bool {
        matches!(self, Self::Valkey9)
    }

    pub(super) const fn is_valkey(self) -> bool {
        matches!(self, Self::Valkey81 | Self::Valkey9)
    }

    /// The product's name in error texts.
    pub(super) const fn product(self) -> &'static str {
        if self.is_valkey() { "Valkey" } else { "Redis" }
    }

    /// The order in which several parameters come back from `CONFIG GET`: that of the server's hash table.
    pub(super) const fn config_order(self) -> [&'static str; 5] {
        match self {
            Self::Redis7 => ["appendfsync", "maxmemory", "appendonly", "save", "maxmemory-policy"],
            Self::Redis84 | Self::Valkey81 => {
                ["save", "appendfsync", "maxmemory", "appendonly", "maxmemory-policy"]
            }
            Self::Valkey9 => ["appendfsync", "appendonly", "maxmemory", "maxmemory-policy", "save"],
        }
    }
}
