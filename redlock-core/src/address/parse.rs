//! The grammar of addresses. [`Address`] documents it.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

use super::{
    Address, AddressError, AddressErrorKind as Kind, AddressPart as Part, DEFAULT_PORT, Endpoint,
    MOST_CREDENTIAL, MOST_DATABASE, MOST_PATH, lower,
};

/// The longest name that DNS has, without the dot that may end it.
const MOST_HOST: usize = 253;
/// The longest piece of a name between dots.
const MOST_LABEL: usize = 63;
/// Longer than any interface's name.
const MOST_ZONE: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Tcp,
    Tls,
    Unix,
}

pub(super) fn address(text: &str) -> Result<Address, AddressError> {
    let text = text.trim();
    parts(text).map_err(|kind| AddressError::new(kind, text))
}

fn parts(text: &str) -> Result<Address, Kind> {
    if text.is_empty() {
        return Err(Kind::Empty);
    }
    if text.contains(char::is_control) {
        return Err(Kind::ControlCharacter);
    }
    let (scheme, rest) = match split_scheme(text) {
        Some((name, rest)) => (scheme(name)?, rest),
        None if text.contains('@') => return Err(Kind::SchemeMissing),
        None if text.starts_with('/') => return Err(Kind::SchemeMissing),
        None => (Scheme::Tcp, text),
    };
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (credentials, place) = match authority.split_once('@') {
        Some((credentials, place)) => (Some(credentials), place),
        None => (None, authority),
    };
    // A second `@`, or one after what ends the host, was meant as part of a password. Only the path of a socket may
    // have one, where nothing before it can be a password.
    let is_socket = scheme == Scheme::Unix && authority.is_empty();
    if place.contains('@') || (tail.contains('@') && !is_socket) {
        return Err(Kind::CredentialsNotEncoded);
    }
    let (username, password) = match credentials {
        Some(credentials) => login(credentials)?,
        None => (None, None),
    };
    let (path, query) = path_and_query(tail, scheme == Scheme::Unix)?;
    let (endpoint, in_path) = match scheme {
        Scheme::Tcp | Scheme::Tls => (tcp(place)?, database_of_path(path)?),
        Scheme::Unix => (unix(place, path)?, None),
    };
    let in_query = database_of_query(query)?;
    if in_path.is_some() && in_query.is_some() {
        return Err(Kind::RepeatedParameter { name: "db".to_owned() });
    }
    let database = in_path.or(in_query).unwrap_or(0);
    Ok(Address { endpoint, tls: scheme == Scheme::Tls, username, password, database })
}

/// The scheme and what comes after `://`; `None` where there is no scheme.
pub(super) fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once("://")?;
    let ok = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    (!name.is_empty() && name.bytes().all(ok)).then_some((name, rest))
}

pub(super) fn has_known_scheme(text: &str) -> bool {
    split_scheme(text).is_some_and(|(name, _)| scheme(name).is_ok())
}

fn scheme(name: &str) -> Result<Scheme, Kind> {
    match lower(name).as_str() {
        "redis" | "valkey" => Ok(Scheme::Tcp),
        "rediss" | "valkeys" => Ok(Scheme::Tls),
        "unix" | "redis+unix" => Ok(Scheme::Unix),
        _ => Err(Kind::Scheme),
    }
}

fn login(credentials: &str) -> Result<(Option<String>, Option<String>), Kind> {
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    Ok((credential(user, Part::Username)?, credential(password, Part::Password)?))
}

fn credential(text: &str, part: Part) -> Result<Option<String>, Kind> {
    let text = decoded(text, part)?;
    if text.len() > MOST_CREDENTIAL {
        return Err(Kind::TooLong { part, most: MOST_CREDENTIAL });
    }
    Ok((!text.is_empty()).then_some(text))
}

fn path_and_query(tail: &str, is_socket: bool) -> Result<(&str, Option<&str>), Kind> {
    if tail.contains('#') {
        return Err(if is_socket { Kind::Path } else { Kind::Fragment });
    }
    Ok(match tail.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (tail, None),
    })
}

fn tcp(place: &str) -> Result<Endpoint, Kind> {
    if let Some(bracketed) = place.strip_prefix('[') {
        let (inside, after) = bracketed.split_once(']').ok_or(Kind::HostIpv6)?;
        let host = ipv6(inside)?;
        let port = match after.strip_prefix(':') {
            Some(digits) => port(digits)?,
            None if after.is_empty() => DEFAULT_PORT,
            None => return Err(Kind::HostIpv6),
        };
        return Ok(Endpoint::Tcp { host, port });
    }
    let (name, port) = match place.split_once(':') {
        Some((_, digits)) if digits.contains(':') => return Err(Kind::HostBrackets),
        Some((name, digits)) => (host(name)?, port(digits)?),
        None => (host(place)?, DEFAULT_PORT),
    };
    Ok(Endpoint::Tcp { host: name, port })
}

fn ipv6(inside: &str) -> Result<String, Kind> {
    let (ip, zone) = match inside.split_once('%') {
        // `%25` is the `%` of a URL; `%` alone is what people paste.
        Some((ip, zone)) => {
            (ip, Some(zone.strip_prefix("25").filter(|rest| !rest.is_empty()).unwrap_or(zone)))
        }
        None => (inside, None),
    };
    let mut host = ip.parse::<Ipv6Addr>().map_err(|_| Kind::HostIpv6)?.to_string();
    if let Some(zone) = zone {
        if zone.is_empty() || zone.len() > MOST_ZONE || !zone.bytes().all(is_unreserved) {
            return Err(Kind::HostZone);
        }
        host.push('%');
        host.push_str(zone);
    }
    Ok(host)
}

fn host(name: &str) -> Result<String, Kind> {
    if name.is_empty() {
        return Err(Kind::HostMissing);
    }
    let allowed = |byte: char| byte.is_ascii_alphanumeric() || matches!(byte, '-' | '.' | '_');
    if let Some(found) = name.chars().find(|found| !allowed(*found)) {
        return Err(Kind::HostCharacter { found });
    }
    let labels = name.strip_suffix('.').unwrap_or(name);
    if labels.len() > MOST_HOST || labels.split('.').any(|label| label.is_empty() || label.len() > MOST_LABEL)
    {
        return Err(Kind::HostName);
    }
    // Resolvers read `10.1`, `0x7f.1` and `6379` as addresses, each in its own way; nobody means that.
    let last = labels.rsplit('.').next().unwrap_or(labels);
    let hex = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    let number = last.bytes().all(|byte| byte.is_ascii_digit())
        || hex.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if number && name.parse::<Ipv4Addr>().is_err() {
        return Err(Kind::HostIpv4);
    }
    Ok(lower(name))
}

fn port(digits: &str) -> Result<u16, Kind> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Kind::Port);
    }
    match digits.parse() {
        Ok(0) | Err(_) => Err(Kind::Port),
        Ok(port) => Ok(port),
    }
}

fn database_of_path(path: &str) -> Result<Option<u32>, Kind> {
    match path.strip_prefix('/') {
        None | Some("") => Ok(None),
        Some(digits) => database(digits).map(Some),
    }
}

fn database_of_query(query: Option<&str>) -> Result<Option<u32>, Kind> {
    let mut found = None;
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if name != "db" {
            return Err(Kind::UnknownParameter { name: shortened(name) });
        }
        if found.is_some() {
            return Err(Kind::RepeatedParameter { name: "db".to_owned() });
        }
        found = Some(database(value)?);
    }
    Ok(found)
}

fn database(digits: &str) -> Result<u32, Kind> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Kind::Database);
    }
    digits.parse().ok().filter(|number| *number <= MOST_DATABASE).ok_or(Kind::Database)
}

fn unix(place: &str, path: &str) -> Result<Endpoint, Kind> {
    if !place.is_empty() || !path.starts_with('/') {
        return Err(Kind::Path);
    }
    let path = decoded(path, Part::Path)?;
    if path.len() > MOST_PATH {
        return Err(Kind::TooLong { part: Part::Path, most: MOST_PATH });
    }
    if path.ends_with('/') || path.contains('\0') {
        return Err(Kind::Path);
    }
    Ok(Endpoint::Unix { path })
}

/// Letters, digits and `-._~`: what a URL never needs to encode.
pub(super) fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// Percent-decodes `text`.
fn decoded(text: &str, part: Part) -> Result<String, Kind> {
    let mut pieces = text.split('%');
    let mut bytes: Vec<u8> = pieces.next().unwrap_or_default().into();
    for piece in pieces {
        let (digits, plain) = piece.split_at_checked(2).ok_or(Kind::Escape { part })?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Kind::Escape { part });
        }
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| Kind::Escape { part })?);
        bytes.extend_from_slice(plain.as_bytes());
    }
    String::from_utf8(bytes).map_err(|_| Kind::NotUtf8 { part })
}

fn shortened(name: &str) -> String {
    name.chars().take(64).collect()
}
