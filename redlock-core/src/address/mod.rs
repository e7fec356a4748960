//! Addresses of nodes: what a user writes, checked and taken apart.
//!
//! An own parser instead of a URL library: the grammar is small, a general one pulls in tables for international
//! names, and none of them keeps a password out of its errors.

mod error;
mod parse;
#[cfg(test)]
mod tests;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::net::Ipv6Addr;
use core::str::FromStr;

pub use error::{AddressError, AddressErrorKind, AddressPart};

/// The port of an address that names none.
pub(crate) const DEFAULT_PORT: u16 = 6379;
/// The highest database number that a server can be asked for: it reads a signed 32-bit integer.
pub(crate) const MOST_DATABASE: u32 = i32::MAX.unsigned_abs();
/// What a server takes as one argument before the client is logged in; a longer password cannot be sent.
pub(crate) const MOST_CREDENTIAL: usize = 16 * 1024;
/// The longest socket path that is looked at; operating systems stop at about a hundred bytes.
const MOST_PATH: usize = 4096;

/// Where a node is, and how to log in.
///
/// ```
/// use redlock_core::{Address, Endpoint};
///
/// let address = Address::parse("rediss://billing:p%40ss@Redis.example.com/2")?;
/// let at = Endpoint::Tcp { host: "redis.example.com".into(), port: 6379 };
/// assert_eq!((address.endpoint(), address.is_tls()), (&at, true));
/// assert_eq!((address.username(), address.password()), (Some("billing"), Some("p@ss")));
/// assert_eq!(address.to_string(), "rediss://billing@redis.example.com:6379/2");
/// # Ok::<(), redlock_core::AddressError>(())
/// ```
///
/// # What is accepted
///
/// | written | means |
/// | --- | --- |
/// | `redis://[user[:password]@]host[:port][/db]` | TCP; the port is 6379 and the database 0 where none is named |
/// | `rediss://…` | the same over TLS |
/// | `valkey://…`, `valkeys://…` | the same as `redis://…`, `rediss://…` |
/// | `unix:///path[?db=1]`, `redis+unix:///path` | a Unix socket; credentials go before the path: `unix://user:password@/path` |
/// | `host`, `host:port`, `[::1]:6380`, `host/1` | `redis://` in front is understood; not with credentials |
///
/// - IPv6 addresses stand in brackets, with a zone where they need one: `[fe80::1%25eth0]` or `[fe80::1%eth0]`.
/// - In user, password and path every byte can be written as `%` and two hex digits, and `% @ / ? #` must be (a path
///   keeps its `/`, and its `@` where no credentials come before it). In a comma-separated list (see [`parse_list`](crate::parse_list)) so must `,`.
/// - `?db=1` is another way to write the database. Other parameters are refused by name, since one that is silently
///   ignored would be believed to work.
/// - A name alone before the `@` is a *user* (who needs no password), as in a URL, and is shown in texts. A password
///   alone is written `:password@`.
/// - Blanks around the whole are cut off. Letter case counts in user, password and path only.
///
/// # Secrets
///
/// `Display` and `Debug` never show the password, and no [`AddressError`] does. `Display` is canonical: what it writes
/// parses to the same address without its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    endpoint: Endpoint,
    tls: bool,
    username: Option<String>,
    password: Option<String>,
    database: u32,
}

/// What to connect to.
///
/// `Display` writes `host:port`, with IPv6 in brackets, or the path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver has to be able to connect to every kind")]
pub enum Endpoint {
    /// A TCP port.
    Tcp {
        /// A name in lower case, or an IPv4 or IPv6 address in its canonical form, the latter without brackets and with
        /// `%zone` where it has one: as the system's resolver takes it.
        host: String,
        /// The port, not 0.
        port: u16,
    },
    /// A Unix socket.
    Unix {
        /// The absolute path, percent-decoded.
        path: String,
    },
}

impl Address {
    /// Reads one address.
    ///
    /// # Errors
    ///
    /// Says which part is wrong, why, and what is accepted; the text is shown without its password.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        parse::address(text)
    }

    /// What to connect to.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Whether TLS is to be spoken: `rediss://`.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// The user to log in as; `None` is the server's default user.
    #[must_use]
    pub fn username(&self) -> Option<&str> {
        self.username.as_deref()
    }

    /// The password, percent-decoded, never empty. A [`username`](Self::username) without one logs in with an empty
    /// password, which servers take from users that need none; `None` for both is no login at all.
    #[must_use]
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// The database to select; 0 is where a connection starts.
    #[must_use]
    pub fn database(&self) -> u32 {
        self.database
    }

    /// Logs in with these; an empty `username` is the default user, an empty `password` none. Taken as they are,
    /// without percent-decoding.
    ///
    /// More than 16 KiB in either is refused when the configuration is built.
    #[must_use]
    pub fn with_credentials(self, username: impl Into<String>, password: impl Into<String>) -> Self {
        let some = |text: String| (!text.is_empty()).then_some(text);
        Self { username: some(username.into()), password: some(password.into()), ..self }
    }

    /// Selects this database. Above 2³¹ − 1 is refused when the configuration is built.
    #[must_use]
    pub fn with_database(self, database: u32) -> Self {
        Self { database, ..self }
    }

    /// What a builder method of this type may have made wrong.
    pub(crate) fn check(&self) -> Result<(), AddressError> {
        let wrong = |kind| Err(AddressError::new(kind, &self.to_string()));
        for (part, text) in [(AddressPart::Username, &self.username), (AddressPart::Password, &self.password)]
        {
            if text.as_ref().is_some_and(|text| text.len() > MOST_CREDENTIAL) {
                return wrong(AddressErrorKind::TooLong { part, most: MOST_CREDENTIAL });
            }
        }
        if self.database > MOST_DATABASE {
            return wrong(AddressErrorKind::Database);
        }
        Ok(())
    }

    /// The same for two addresses of one server, however they are written: user, database and TLS do not tell servers
    /// apart (R12). What only the network knows (two names of one host) is found by the handshake (R24).
    pub(crate) fn server_key(&self) -> String {
        match &self.endpoint {
            Endpoint::Tcp { host, port } => {
                let mapped = host.parse::<Ipv6Addr>().ok().and_then(|ip| ip.to_ipv4_mapped());
                match mapped {
                    Some(ip) => format!("{ip}:{port}"),
                    None => format!("{}:{port}", host.strip_suffix('.').unwrap_or(host)),
                }
            }
            Endpoint::Unix { path } => {
                let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
                format!("/{}", parts.collect::<Vec<_>>().join("/"))
            }
        }
    }
}

/// Without the password; parses to the same address.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_address(self, None, f)
    }
}

/// As `Display`, with `***` for a password.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_address(self, self.password.as_ref().map(|_| "***"), f)
    }
}

fn write_address(address: &Address, password: Option<&str>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let scheme = match (&address.endpoint, address.tls) {
        (Endpoint::Unix { .. }, _) => "unix",
        (Endpoint::Tcp { .. }, true) => "rediss",
        (Endpoint::Tcp { .. }, false) => "redis",
    };
    write!(f, "{scheme}://")?;
    if let Some(user) = &address.username {
        write!(f, "{}", Encoded { text: user, keep: "" })?;
    }
    if let Some(password) = password {
        write!(f, ":{password}")?;
    }
    if address.username.is_some() || password.is_some() {
        f.write_str("@")?;
    }
    match &address.endpoint {
        Endpoint::Tcp { host, port } => {
            match host.split_once('%') {
                Some((ip, zone)) => write!(f, "[{ip}%25{zone}]:{port}")?,
                None if host.contains(':') => write!(f, "[{host}]:{port}")?,
                None => write!(f, "{host}:{port}")?,
            }
            if address.database != 0 {
                write!(f, "/{}", address.database)?;
            }
        }
        Endpoint::Unix { path } => {
            write!(f, "{}", Encoded { text: path, keep: "/" })?;
            if address.database != 0 {
                write!(f, "?db={}", address.database)?;
            }
        }
    }
    Ok(())
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix { path } => write!(f, "{}", path.escape_debug()),
        }
    }
}

/// Percent-encodes all but letters, digits, `-._~` and what is to be kept.
struct Encoded<'a> {
    text: &'a str,
    keep: &'static str,
}

impl fmt::Display for Encoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.text.bytes() {
            let plain = parse::is_unreserved(byte) || self.keep.as_bytes().contains(&byte);
            if plain { write!(f, "{}", char::from(byte))? } else { write!(f, "%{byte:02X}")? }
        }
        Ok(())
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        Self::parse(text)
    }
}

impl TryFrom<&str> for Address {
    type Error = AddressError;

    fn try_from(text: &str) -> Result<Self, AddressError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Address {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        Self::parse(&text)
    }
}

impl TryFrom<&String> for Address {
    type Error = AddressError;

    fn try_from(text: &String) -> Result<Self, AddressError> {
        Self::parse(text)
    }
}

/// Reads a comma-separated list of addresses, as in `REDLOCK_NODES`. Blanks and line ends around each are cut off; a
/// comma in a password must be written `%2C`.
///
/// # Errors
///
/// As [`Address::parse`], with the number of the entry ([`AddressError::entry`]). An empty entry is an error too: it
/// may stand for a variable that was not set, and one node less is another quorum.
pub fn parse_list(text: &str) -> Result<Vec<Address>, AddressError> {
    // A password with a raw comma falls into several entries, of which the last is told by its `@`. It is reported
    // first, since an error about the one before would show a piece of the password as host or database.
    let entries: Vec<_> = text.split(',').enumerate().collect();
    for (index, entry) in entries.iter().rev().filter(|(_, entry)| entry.contains('@')) {
        if !parse::has_known_scheme(entry.trim()) {
            Address::parse(entry).map_err(|error| error.at_entry(*index))?;
        }
    }
    entries
        .into_iter()
        .map(|(index, entry)| Address::parse(entry).map_err(|error| error.at_entry(index)))
        .collect()
}

/// `text` in lower case; most are already.
fn lower(text: &str) -> String {
    let mut text = text.to_owned();
    text.make_ascii_lowercase();
    text
}
