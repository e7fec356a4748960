//! Who answered: the replies to `HELLO` and `INFO`, and the dialect that follows from them (R22).

use alloc::string::String;
use core::fmt;

use super::reply::{Reply, push_escaped};

/// The most bytes of a name, a run id or a mode that are kept.
const MAX_WORD: usize = 64;

/// How a key is deleted if its value is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DeleteForm {
    /// `DELEX key IFEQ value`: Redis from 8.4 on.
    Delex,
    /// `DELIFEQ key value`: Valkey from 9.0 on.
    Delifeq,
    /// A script: everywhere.
    Script,
}

/// How a key's expiry is set anew if its value is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ExtendForm {
    /// `SET key value IFEQ value PX ttl`: Redis from 8.4 on, Valkey from 8.1 on.
    Ifeq,
    /// A script: everywhere.
    Script,
}

/// The forms that a node is asked in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Dialect {
    /// For release.
    pub(crate) delete: DeleteForm,
    /// For extension.
    pub(crate) extend: ExtendForm,
}

/// Whose server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Product {
    /// Redis, or something that says it is.
    Redis,
    /// Valkey.
    Valkey,
    /// Neither.
    Other,
}

/// A server's version. What is not a number counts as 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// The third number.
    pub patch: u32,
}

/// What a server is in its replication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// It takes writes.
    Master,
    /// It copies another: `replica` in `HELLO`, `slave` in `INFO`.
    Replica,
    /// Something else.
    Other,
}

/// How a server is deployed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// By itself: the only one that can be a node.
    Standalone,
    /// As a member of a cluster.
    Cluster,
    /// As a sentinel, which holds no data.
    Sentinel,
    /// Something else.
    Other,
}

/// The answer to `HELLO`. What it does not say is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Hello {
    /// Whose server it says it is.
    pub(crate) product: Option<Product>,
    /// Its version.
    pub(crate) version: Option<Version>,
    /// The protocol's version from now on.
    pub(crate) protocol: Option<i64>,
    /// How it is deployed.
    pub(crate) mode: Option<Mode>,
    /// What it is in its replication.
    pub(crate) role: Option<Role>,
}

/// The answer to `INFO`. What it does not say is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Info {
    /// 40 hex digits that change with every start of the server.
    pub(crate) run_id: Option<String>,
    /// Seconds since its start by the wall clock: a clock that was set back makes it negative.
    pub(crate) uptime_secs: Option<i64>,
    /// What it is in its replication.
    pub(crate) role: Option<Role>,
    /// How it is deployed.
    pub(crate) mode: Option<Mode>,
    /// The version of Redis that it is, or is compatible with: 7.2.4 on every Valkey.
    pub(crate) redis_version: Option<Version>,
    /// The version of Valkey that it is, whatever it says in `HELLO`.
    pub(crate) valkey_version: Option<Version>,
    /// Whether it is still reading its data. Only there if the section `persistence` was asked for too.
    pub(crate) loading: Option<bool>,
}

impl Hello {
    /// Reads a map, or the flat array that RESP2 has for it; `None` for any other reply. Fields that are unknown,
    /// missing or garbled are passed over.
    pub(crate) fn parse(reply: &Reply) -> Option<Self> {
        let mut hello = Self::default();
        match reply {
            Reply::Map(pairs) => pairs.iter().for_each(|(key, value)| hello.field(key, value)),
            Reply::Array(items) => items.chunks_exact(2).for_each(|pair| {
                if let [key, value] = pair {
                    hello.field(key, value);
                }
            }),
            Reply::Ok
            | Reply::Simple(_)
            | Reply::Error(_)
            | Reply::Integer(_)
            | Reply::Bulk(_)
            | Reply::Null
            | Reply::Push(_)
            | Reply::Other(_) => return None,
        }
        Some(hello)
    }

    fn field(&mut self, key: &Reply, value: &Reply) {
        match key.as_bytes() {
            Some(b"server") => self.product = value.as_bytes().map(Product::parse),
            Some(b"version") => self.version = value.as_bytes().and_then(Version::parse),
            Some(b"proto") => self.protocol = value.as_integer(),
            Some(b"mode") => self.mode = value.as_bytes().map(Mode::parse),
            Some(b"role") => self.role = value.as_bytes().map(Role::parse),
            Some(_) | None => {}
        }
    }
}

impl Info {
    /// Reads the text, which RESP2 has in a bulk and RESP3 in a verbatim string; `None` for any other reply. Lines
    /// that are unknown or garbled are passed over, and of a field that comes twice the first one counts.
    pub(crate) fn parse(reply: &Reply) -> Option<Self> {
        let Reply::Bulk(text) = reply else {
            return None;
        };
        let mut info = Self::default();
        for line in text.split(|byte| *byte == b'\n') {
            let line = line.trim_ascii();
            if let Some(colon) = line.iter().position(|byte| *byte == b':') {
                let (key, value) = line.split_at(colon);
                info.field(key, value.get(1..).unwrap_or_default().trim_ascii());
            }
        }
        Some(info)
    }

    fn field(&mut self, key: &[u8], value: &[u8]) {
        match key {
            b"run_id" => keep(&mut self.run_id, word(value)),
            b"uptime_in_seconds" => keep(&mut self.uptime_secs, integer(value)),
            b"role" => keep(&mut self.role, Some(Role::parse(value))),
            b"redis_mode" | b"server_mode" => keep(&mut self.mode, Some(Mode::parse(value))),
            b"redis_version" => keep(&mut self.redis_version, Version::parse(value)),
            b"valkey_version" => keep(&mut self.valkey_version, Version::parse(value)),
            b"loading" => keep(&mut self.loading, integer(value).map(|value| value != 0)),
            _ => {}
        }
    }
}

impl DeleteForm {
    /// The command that is sent.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delex => "DELEX",
            Self::Delifeq => "DELIFEQ",
            Self::Script => "script",
        }
    }
}

impl ExtendForm {
    /// The command that is sent.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ifeq => "SET IFEQ",
            Self::Script => "script",
        }
    }
}

impl Dialect {
    /// Scripts only: understood everywhere.
    pub(crate) const SCRIPTS: Self = Self { delete: DeleteForm::Script, extend: ExtendForm::Script };

    /// The cheapest forms that a server with these answers has. One that turns out to be refused is given up (R22).
    ///
    /// `INFO` has the last word: a Valkey with `extended-redis-compatibility` says in `HELLO` that it is Redis 7.2.4.
    pub(crate) fn choose(hello: Option<&Hello>, info: Option<&Info>) -> Self {
        match identity(hello, info) {
            Some((Product::Redis, version)) if version >= Version::new(8, 4, 0) => {
                Self { delete: DeleteForm::Delex, extend: ExtendForm::Ifeq }
            }
            Some((Product::Valkey, version)) if version >= Version::new(9, 0, 0) => {
                Self { delete: DeleteForm::Delifeq, extend: ExtendForm::Ifeq }
            }
            Some((Product::Valkey, version)) if version >= Version::new(8, 1, 0) => {
                Self { delete: DeleteForm::Script, extend: ExtendForm::Ifeq }
            }
            Some(_) | None => Self::SCRIPTS,
        }
    }
}

/// What the server really is, as far as its answers say.
pub(crate) fn identity(hello: Option<&Hello>, info: Option<&Info>) -> Option<(Product, Version)> {
    if let Some(version) = info.and_then(|info| info.valkey_version) {
        return Some((Product::Valkey, version));
    }
    let said = hello.and_then(|hello| Some((hello.product?, hello.version?)));
    said.or_else(|| Some((Product::Redis, info?.redis_version?)))
}

impl Version {
    /// A version.
    pub(crate) const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// Reads `8.4.0`, `9.1`, `8.4-rc1`; `None` where it does not begin with a number.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let mut numbers = text.split(|byte| *byte == b'.').map(leading_number);
        let major = numbers.next()??;
        let mut next = || numbers.next().flatten().unwrap_or_default();
        Some(Self { major, minor: next(), patch: next() })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Product {
    /// As an operator types it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Valkey => "valkey",
            Self::Other => "other",
        }
    }

    fn parse(name: &[u8]) -> Self {
        if name.eq_ignore_ascii_case(b"redis") {
            Self::Redis
        } else if name.eq_ignore_ascii_case(b"valkey") {
            Self::Valkey
        } else {
            Self::Other
        }
    }
}

impl Role {
    /// As servers of today say it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Master => "master",
            Self::Replica => "replica",
            Self::Other => "other",
        }
    }

    fn parse(name: &[u8]) -> Self {
        match name {
            b"master" | b"primary" => Self::Master,
            b"replica" | b"slave" => Self::Replica,
            _ => Self::Other,
        }
    }
}

impl Mode {
    /// As servers say it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standalone => "standalone",
            Self::Cluster => "cluster",
            Self::Sentinel => "sentinel",
            Self::Other => "other",
        }
    }

    fn parse(name: &[u8]) -> Self {
        match name {
            b"standalone" => Self::Standalone,
            b"cluster" => Self::Cluster,
            b"sentinel" => Self::Sentinel,
            _ => Self::Other,
        }
    }
}

fn keep<T>(field: &mut Option<T>, value: Option<T>) {
    if field.is_none() {
        *field = value;
    }
}

fn word(value: &[u8]) -> Option<String> {
    let value = value.get(..MAX_WORD).unwrap_or(value);
    if value.is_empty() {
        return None;
    }
    let mut text = String::new();
    push_escaped(&mut text, value);
    Some(text)
}

fn integer(value: &[u8]) -> Option<i64> {
    core::str::from_utf8(value).ok()?.parse().ok()
}

fn leading_number(text: &[u8]) -> Option<u32> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    core::str::from_utf8(text.get(..digits)?).ok()?.parse().ok()
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
