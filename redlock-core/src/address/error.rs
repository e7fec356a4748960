//! What is wrong with an address, told without its password.

use alloc::string::String;
use core::fmt::{self, Write as _};

use super::parse::split_scheme;
use super::{MOST_DATABASE, lower};

/// The most characters of a refused address that a text shows.
const MOST_SHOWN: usize = 200;

/// An address that cannot be used: which part, why, and what is accepted.
///
/// No text of it holds a password. Where an address does not parse, nobody can tell what in it was meant as one, so
/// everything before the last `@`, every port that is none and the value of every parameter are shown as `***`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressError {
    kind: AddressErrorKind,
    shown: String,
    entry: Option<usize>,
}

/// What is wrong with an address.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressErrorKind {
    /// Nothing was given.
    Empty,
    /// A raw control character, such as a line end within the text.
    ControlCharacter,
    /// A scheme that is none of the accepted ones.
    Scheme,
    /// Credentials or a path without a scheme in front, or a comma in a password within a list.
    SchemeMissing,
    /// A raw `@`, `/`, `?` or `#` in what seems to be the user or the password.
    CredentialsNotEncoded,
    /// A `%` that is not followed by two hex digits.
    Escape {
        /// Where it stands.
        part: AddressPart,
    },
    /// Percent-encoded bytes that are not UTF-8.
    NotUtf8 {
        /// Where they stand.
        part: AddressPart,
    },
    /// More than can be sent or used.
    TooLong {
        /// What is too long.
        part: AddressPart,
        /// The most that is accepted, in bytes.
        most: usize,
    },
    /// No host.
    HostMissing,
    /// A character that no host name has.
    HostCharacter {
        /// The first of them.
        found: char,
    },
    /// A host name that is too long, or has two dots in a row or an overlong piece.
    HostName,
    /// Ends in a number but is no IPv4 address.
    HostIpv4,
    /// Brackets, but no IPv6 address in them.
    HostIpv6,
    /// An IPv6 address without brackets, or more than one `:`.
    HostBrackets,
    /// The zone of an IPv6 address is empty or holds something that no zone does.
    HostZone,
    /// Not a number from 1 to 65535.
    Port,
    /// Not a database number.
    Database,
    /// A socket's path that is not absolute, not that of a file, or holds a raw `#` or NUL.
    Path,
    /// A parameter that is not known.
    UnknownParameter {
        /// Its name.
        name: String,
    },
    /// The same thing said twice.
    RepeatedParameter {
        /// Its name.
        name: String,
    },
    /// A `#` after the address.
    Fragment,
}

/// A part of an address that can be percent-encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressPart {
    /// The user.
    Username,
    /// The password.
    Password,
    /// The path of a Unix socket.
    Path,
}

impl AddressError {
    pub(crate) fn new(kind: AddressErrorKind, text: &str) -> Self {
        Self { kind, shown: without_secrets(text), entry: None }
    }

    /// The same, said of an entry of a list.
    pub(crate) fn at_entry(self, index: usize) -> Self {
        Self { entry: Some(index), ..self }
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> &AddressErrorKind {
        &self.kind
    }

    /// The address without what may be a secret, shortened.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.shown
    }

    /// Where the address stands in a list or configuration of several, counted from 0.
    #[must_use]
    pub fn entry(&self) -> Option<usize> {
        self.entry
    }
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("address ")?;
        if let Some(index) = self.entry {
            write!(f, "{} ", index.saturating_add(1))?;
        }
        write!(f, "`{}`: {}", self.shown, self.kind)
    }
}

impl core::error::Error for AddressError {}

impl fmt::Display for AddressErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Empty => "nothing was given; write redis://host:port, rediss://host:port or unix:///path",
            Self::ControlCharacter => "it contains a control character; percent-encode it where it is meant",
            Self::Scheme => "the scheme is not known; use redis://, rediss:// (TLS) or unix:///path",
            Self::SchemeMissing => {
                "a path or credentials need a scheme in front: unix:///path, redis://user:password@host \
                 (and in a list, a comma in a password must be written %2C)"
            }
            Self::CredentialsNotEncoded => {
                "`@`, `/`, `?` and `#` in the user or password must be percent-encoded: %40, %2F, %3F, %23"
            }
            Self::Escape { part } => {
                return write!(
                    f,
                    "a `%` in the {part} is not followed by two hex digits; write a plain `%` as %25"
                );
            }
            Self::NotUtf8 { part } => return write!(f, "the percent-encoded {part} is not UTF-8"),
            Self::TooLong { part, most } => return write!(f, "the {part} is longer than {most} bytes"),
            Self::HostMissing => "the host is missing; write redis://host:port",
            Self::HostCharacter { found: ',' } => {
                "the host contains a comma; give several addresses one by one"
            }
            Self::HostCharacter { found } if !found.is_ascii() => {
                return write!(
                    f,
                    "the host contains `{}`; write an international name as xn--…",
                    found.escape_debug()
                );
            }
            Self::HostCharacter { found } => {
                return write!(
                    f,
                    "the host contains `{}`; a name has letters, digits, `-`, `_` and dots, IPv6 stands in brackets",
                    found.escape_debug()
                );
            }
            Self::HostName => "the host is no name: 253 characters at most, 1 to 63 between dots",
            Self::HostIpv4 => {
                "the host is neither a name nor an IPv4 address, which is four numbers from 0 to 255 without leading \
                 zeros (a port needs a host before it: localhost:6379)"
            }
            Self::HostIpv6 => {
                "in brackets stands an IPv6 address, after them nothing or the port: redis://[::1]:6379"
            }
            Self::HostBrackets => {
                "there is more than one `:`; an IPv6 address stands in brackets: redis://[::1]:6379"
            }
            Self::HostZone => {
                "the zone of an IPv6 address is the name of an interface: redis://[fe80::1%25eth0]:6379"
            }
            Self::Port => "the port is not a number from 1 to 65535",
            Self::Database => return write!(f, "the database is not a number from 0 to {MOST_DATABASE}"),
            Self::Path => {
                "the path of a Unix socket is absolute and that of a file: unix:///run/redis.sock, with `#`, `?` and \
                 `%` in it percent-encoded"
            }
            Self::UnknownParameter { name } => {
                return write!(
                    f,
                    "the parameter `{}` is not known; there is only db, and credentials go before an `@`",
                    name.escape_debug()
                );
            }
            Self::RepeatedParameter { name } => {
                return write!(f, "`{}` is given twice; give it once", name.escape_debug());
            }
            Self::Fragment => {
                "there is a `#`; nothing follows the database (percent-encode it where it is meant)"
            }
        };
        f.write_str(text)
    }
}

impl fmt::Display for AddressPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Username => "user",
            Self::Password => "password",
            Self::Path => "path",
        })
    }
}

/// `text` as far as it can hold no secret, whatever its author may have meant.
fn without_secrets(text: &str) -> String {
    const HIDDEN: &str = "***";
    let mut shown = String::new();
    let mut rest = text;
    if let Some((scheme, after)) = split_scheme(text) {
        shown.push_str(&lower(scheme));
        shown.push_str("://");
        rest = after;
    }
    if let Some((_, after)) = rest.rsplit_once('@') {
        shown.push_str(HIDDEN);
        shown.push('@');
        rest = after;
    }
    let host_end = match rest.find(']') {
        Some(end) if rest.starts_with('[') => end.saturating_add(1),
        _ => rest.find([':', '/', '?', '#']).unwrap_or(rest.len()),
    };
    let (host, rest) = rest.split_at_checked(host_end).unwrap_or((rest, ""));
    shown.push_str(host);
    let (mut path, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    if let Some(after) = path.strip_prefix(':') {
        let (port, after) = after.split_at(after.find('/').unwrap_or(after.len()));
        shown.push(':');
        // "redis://user:secret" has no host: its port is a password.
        if host.is_empty() || !matches!(port.parse::<u16>(), Ok(1..)) {
            shown.push_str(HIDDEN);
            return limited(&shown);
        }
        shown.push_str(port);
        path = after;
    }
    shown.push_str(path);
    let (query, fragment) = query.split_at(query.find('#').unwrap_or(query.len()));
    let mut before = '?';
    for pair in query.strip_prefix('?').into_iter().flat_map(|query| query.split('&')) {
        shown.push(before);
        before = '&';
        match pair.split_once('=') {
            Some((name, _)) => {
                shown.push_str(name);
                shown.push('=');
                shown.push_str(HIDDEN);
            }
            None => shown.push_str(pair),
        }
    }
    if !fragment.is_empty() {
        shown.push('#');
        shown.push_str(HIDDEN);
    }
    limited(&shown)
}

/// Escaped and shortened: the text goes into a line of a log.
fn limited(shown: &str) -> String {
    let mut text = String::new();
    for (count, letter) in shown.chars().enumerate() {
        if count == MOST_SHOWN {
            text.push('…');
            break;
        }
        if letter.is_ascii_graphic() || letter == ' ' {
            text.push(letter);
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "{}", letter.escape_debug());
        }
    }
    text
}
