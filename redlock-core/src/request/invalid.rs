//! Arguments that make no sense.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::time::Duration;

use bytes::Bytes;

/// An argument that makes no sense; nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidArgument {
    /// A resource without a name.
    EmptyResource,
    /// A resource that has the name of another one's fence counter, in a fenced request.
    FenceCounter {
        /// Which.
        resource: Bytes,
    },
    /// A lock that would have to end before its first ttl does.
    MaxHoldBelowTtl {
        /// The longest hold that was asked for.
        max_hold: Duration,
        /// The ttl that it would have to be at least.
        ttl: Duration,
    },
    /// An attempt limit of zero.
    NoAttempts,
    /// No resource at all.
    NoResources,
    /// The same resource twice in one request.
    RepeatedResource {
        /// Which.
        resource: Bytes,
    },
    /// A name that is too long for a key.
    ResourceTooLong {
        /// Its bytes, those of the key prefix counted in.
        len: usize,
        /// The most that are accepted.
        most: usize,
    },
    /// More resources in one request than a server should be held up for.
    TooManyResources {
        /// The most that are accepted.
        most: usize,
    },
    /// A ttl above what the restart guard counts on.
    TtlAboveRestartGuard {
        /// The one that was given.
        ttl: Duration,
        /// What the guard was told to be the longest.
        max_ttl: Duration,
    },
    /// A ttl of more than a year.
    TtlTooLong {
        /// The one that was given.
        ttl: Duration,
        /// The longest that is accepted.
        most: Duration,
    },
    /// A ttl of which nothing is left after the drift.
    TtlTooShort {
        /// The one that was given.
        ttl: Duration,
        /// The shortest that is accepted.
        least: Duration,
    },
}

impl fmt::Display for InvalidArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyResource => f.write_str("the resource has no name; give it at least one byte"),
            Self::FenceCounter { resource } => write!(
                f,
                "{} is the fence counter of another resource of this request; name it otherwise",
                Shown(resource)
            ),
            Self::MaxHoldBelowTtl { max_hold, ttl } => write!(
                f,
                "a max_hold of {max_hold:?} is below the ttl of {ttl:?}; raise it, shorten the ttl, or do not renew"
            ),
            Self::NoAttempts => {
                f.write_str("no attempts are allowed; allow at least one, or leave the limit out")
            }
            Self::NoResources => f.write_str("no resources; name at least one"),
            Self::RepeatedResource { resource } => {
                write!(f, "{} is named twice; name it once", Shown(resource))
            }
            Self::ResourceTooLong { len, most } => {
                write!(
                    f,
                    "the resource has {len} bytes with the key prefix; at most {most}, take a digest of it"
                )
            }
            Self::TooManyResources { most } => {
                write!(f, "more than {most} resources at once; take fewer, or one name that stands for them")
            }
            Self::TtlAboveRestartGuard { ttl, max_ttl } => write!(
                f,
                "a ttl of {ttl:?} is above the {max_ttl:?} that restarted nodes are kept out for; shorten it, or raise \
                 restart_guard in every client of these nodes"
            ),
            Self::TtlTooLong { ttl, most } => {
                write!(
                    f,
                    "a ttl of {ttl:?} is above {} days; shorten it and renew the lock",
                    most.as_secs() / 86_400
                )
            }
            Self::TtlTooShort { ttl, least } => {
                write!(
                    f,
                    "a ttl of {ttl:?} leaves nothing after the drift; at least {least:?}, seconds are usual"
                )
            }
        }
    }
}

impl core::error::Error for InvalidArgument {}

/// The name of a lock in an error: its resources, escaped, joined by commas.
pub(crate) fn resource_text(keys: &[Bytes]) -> String {
    let mut text = String::new();
    for key in keys {
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&format!("{}", Shown(key)));
    }
    text
}

/// A resource in a text: in backticks, escaped where it is not printable, shortened where it is long.
pub(crate) struct Shown<'a>(pub(crate) &'a [u8]);

impl Shown<'_> {
    /// Names are shorter, and a line of a log stays readable.
    const MOST: usize = 80;
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not within a letter, where it is text.
        let within = |end: &usize| self.0.get(*end).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000);
        let end = (Self::MOST - 3..=Self::MOST).rev().find(|end| !within(end)).unwrap_or(Self::MOST);
        let head = self.0.get(..end).unwrap_or(self.0);
        f.write_str("`")?;
        for chunk in head.utf8_chunks() {
            write!(f, "{}{}", chunk.valid().escape_debug(), chunk.invalid().escape_ascii())?;
        }
        f.write_str("`")?;
        if head.len() < self.0.len() {
            write!(f, "… ({} bytes)", self.0.len())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
