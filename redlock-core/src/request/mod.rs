//! What is asked of a client, and whether that makes sense.

mod invalid;
#[cfg(test)]
mod tests;

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use bytes::Bytes;

use crate::config::Config;
use crate::time::{Drift, whole_millis};
use crate::wire::command::COUNTER_SUFFIX;

pub use invalid::InvalidArgument;
pub(crate) use invalid::{Shown, resource_text};

/// The longest key, prefix and resource together, in bytes (R12).
pub(crate) const MOST_RESOURCE: usize = 64 * 1024;
/// The most resources of one request. They are taken by one script, which stops the server for all its clients while
/// it runs, and the longest of them together stay within what a server takes as one command.
pub(crate) const MOST_RESOURCES: usize = 64;
/// The longest ttl: a lock that nobody renews must end while somebody remembers it.
pub(crate) const MOST_TTL: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// What is asked of `Client::acquire`.
///
/// ```
/// use core::time::Duration;
/// use redlock_core::AcquireRequest;
///
/// // Drawn from the operating system for each request; here by a die.
/// let entropy = [4; 16];
/// let request = AcquireRequest::new("invoice:42", entropy).ttl(Duration::from_secs(5)).wait(Duration::from_secs(1));
/// assert_eq!(request.resources().len(), 1);
/// ```
///
/// `Debug` does not show the entropy: who knows it knows the lock's token.
#[derive(Clone)]
#[must_use = "a request does nothing until it is handed to `Client::acquire`"]
pub struct AcquireRequest {
    pub(crate) resources: Vec<Bytes>,
    pub(crate) ttl: Option<Duration>,
    pub(crate) wait: Option<Duration>,
    pub(crate) attempts: Option<u32>,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) expiring_lead: Option<Duration>,
    pub(crate) fenced: bool,
    pub(crate) watch_loss: bool,
    pub(crate) delay: Duration,
    pub(crate) entropy: [u8; 16],
}

impl AcquireRequest {
    /// Asks for one resource: any bytes, 1 to 65536 of them with the key prefix.
    ///
    /// `entropy` makes the token: 16 bytes that nobody can guess and nobody had before, from the operating system's
    /// generator, drawn for this request.
    pub fn new(resource: impl Into<Bytes>, entropy: [u8; 16]) -> Self {
        Self {
            resources: vec![resource.into()],
            ttl: None,
            wait: None,
            attempts: None,
            max_hold: None,
            expiring_lead: None,
            fenced: false,
            watch_loss: false,
            delay: Duration::ZERO,
            entropy,
        }
    }

    /// Asks for several resources at once, all or none on each node; at most 64, each named once.
    pub fn all(resources: impl IntoIterator<Item = impl Into<Bytes>>, entropy: [u8; 16]) -> Self {
        // One more than is allowed is enough to refuse it, however many an iterator has.
        let resources = resources.into_iter().take(MOST_RESOURCES + 1).map(Into::into).collect();
        Self { resources, ..Self::new(Bytes::new(), entropy) }
    }

    /// After which time nodes forget the lock if it is neither released nor extended; the configuration's default ttl
    /// where none is named. Whole milliseconds: what is below is cut off. At most one year, and long enough that
    /// something is left after the drift: 3 ms with the usual one.
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { ttl: Some(ttl), ..self }
    }

    /// How long to try and queue; the configuration's default wait where none is named. Zero is exactly one full round,
    /// `Duration::MAX` is for ever.
    pub fn wait(self, wait: Duration) -> Self {
        Self { wait: Some(wait), ..self }
    }

    /// One full round, without queueing: a wait of zero.
    pub fn try_once(self) -> Self {
        self.wait(Duration::ZERO)
    }

    /// At most so many rounds, at least one; without it only the wait ends them.
    pub fn attempts(self, attempts: u32) -> Self {
        Self { attempts: Some(attempts), ..self }
    }

    /// Renews the lock while it is held, until `max_hold` after the start of the attempt that won it; `Duration::MAX` is
    /// without end. Not below the ttl.
    pub fn auto_renew(self, max_hold: Duration) -> Self {
        Self { max_hold: Some(max_hold), ..self }
    }

    /// How long before its deadline a lock that is not renewed in time is reported as expiring; a quarter of the time
    /// that it was last good for where none is named (R17).
    pub fn expiring_lead(self, lead: Duration) -> Self {
        Self { expiring_lead: Some(lead), ..self }
    }

    /// Asks for a [`Fence`](crate::Fence) with the lock: a number that grows from grant to grant of a resource, for the
    /// store that the lock protects to refuse a late writer by. Of several resources it is one number, above all that any
    /// of them had.
    ///
    /// It costs a script in the place of `SET`, one more round trip where the nodes' counters differ, and a key
    /// `<key>:fence` on each node, which has no expiry unless [`fence_retention`](crate::ConfigBuilder::fence_retention)
    /// gives it one. Rights that it needs: `eval`, `exists`, `get`, `incr`, `set`, `time`, `pexpire`, `persist`.
    pub fn fenced(self) -> Self {
        Self { fenced: true, ..self }
    }

    /// Has the nodes tell the holder when the lock's keys change, by client tracking, so that a lock whose keys somebody
    /// deleted or overwrote is lost within a round trip, not with the next extension or at the deadline.
    ///
    /// What a node tells is a hint only: the key is then read. The lock is lost (`LostReason::TokenGone`) once N − quorum + 1
    /// nodes' latest answer is that the token is not there: then no quorum can have it. A node that is down, or was never
    /// heard, is not among them, and no deadline is moved. It promises nothing of when: what is lost with a connection is
    /// read after the next handshake, what a silent node knows is not heard at all, and the deadline ends every lock.
    ///
    /// It costs one read of each key on each node after the grant, and one after each extension. It takes RESP3 and the
    /// rights to `client|tracking`, `client|caching` and `getrange`; nodes that lack them, and all nodes of a client with
    /// [`wake_ups(false)`](crate::ConfigBuilder::wake_ups), tell nothing, and the lock is as one that is not watched.
    pub fn watch_loss(self) -> Self {
        Self { watch_loss: true, ..self }
    }

    /// Sends the first round after so long, not at once; until then it asks nothing and holds no place in the line of
    /// those that wait in the same client. The wait counts from the call all the same: where it ends sooner, the round is sent
    /// then. For who must let others come first, as after a term of an [election](crate::machine::Election).
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// The resources, as they were given.
    #[must_use]
    pub fn resources(&self) -> &[Bytes] {
        &self.resources
    }

    /// The ttl, where one was named.
    #[must_use]
    pub fn named_ttl(&self) -> Option<Duration> {
        self.ttl
    }

    /// The wait, where one was named.
    #[must_use]
    pub fn named_wait(&self) -> Option<Duration> {
        self.wait
    }

    /// The most rounds, where a number was named.
    #[must_use]
    pub fn named_attempts(&self) -> Option<u32> {
        self.attempts
    }

    /// Until when the lock is renewed after its start; `None` is not at all.
    #[must_use]
    pub fn max_hold(&self) -> Option<Duration> {
        self.max_hold
    }

    /// Whether a fence was asked for.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        self.fenced
    }

    /// Whether the nodes shall tell the holder that its keys change.
    #[must_use]
    pub fn watches_loss(&self) -> bool {
        self.watch_loss
    }

    /// After how long the first round is sent.
    #[must_use]
    pub fn named_delay(&self) -> Duration {
        self.delay
    }

    /// How long before its deadline the lock is reported as expiring, where that was named.
    #[must_use]
    pub fn named_expiring_lead(&self) -> Option<Duration> {
        self.expiring_lead
    }
}

impl fmt::Debug for AcquireRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resources: Vec<_> = self.resources.iter().map(|resource| Shown(resource)).collect();
        f.debug_struct("AcquireRequest")
            .field("resources", &resources)
            .field("ttl", &self.ttl)
            .field("wait", &self.wait)
            .field("attempts", &self.attempts)
            .field("max_hold", &self.max_hold)
            .field("expiring_lead", &self.expiring_lead)
            .field("fenced", &self.fenced)
            .field("watch_loss", &self.watch_loss)
            .field("delay", &self.delay)
            .finish_non_exhaustive()
    }
}

/// What a request that makes sense comes to, with the configuration's defaults where it named nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    /// In whole milliseconds: what is sent, and what belief counts.
    pub(crate) ttl: Duration,
    /// Zero is one round without queueing.
    pub(crate) wait: Duration,
    /// At least 1.
    pub(crate) attempts: Option<u32>,
    /// Not below `ttl`; `None` is no renewal.
    pub(crate) max_hold: Option<Duration>,
    pub(crate) expiring_lead: Option<Duration>,
}

/// Refuses what must not be sent (R12).
pub(crate) fn check_request(request: &AcquireRequest, config: &Config) -> Result<Checked, InvalidArgument> {
    let mut names = BTreeSet::new();
    if request.resources.is_empty() {
        return Err(InvalidArgument::NoResources);
    }
    if request.resources.len() > MOST_RESOURCES {
        return Err(InvalidArgument::TooManyResources { most: MOST_RESOURCES });
    }
    for resource in &request.resources {
        if resource.is_empty() {
            return Err(InvalidArgument::EmptyResource);
        }
        let len = config.key_prefix().len().saturating_add(resource.len());
        if len > MOST_RESOURCE {
            return Err(InvalidArgument::ResourceTooLong { len, most: MOST_RESOURCE });
        }
        // The set takes from the heap: one name needs none.
        if request.resources.len() > 1 && !names.insert(resource) {
            return Err(InvalidArgument::RepeatedResource { resource: resource.clone() });
        }
    }
    let is_counter = |resource: &&Bytes| {
        resource.strip_suffix(COUNTER_SUFFIX).is_some_and(|of| names.iter().any(|name| name[..] == *of))
    };
    if request.fenced
        && let Some(resource) = request.resources.iter().find(is_counter)
    {
        return Err(InvalidArgument::FenceCounter { resource: resource.clone() });
    }
    let ttl = check_ttl(request.ttl.unwrap_or_else(|| config.default_ttl()), config)?;
    if request.attempts == Some(0) {
        return Err(InvalidArgument::NoAttempts);
    }
    if let Some(max_hold) = request.max_hold.filter(|max_hold| *max_hold < ttl) {
        return Err(InvalidArgument::MaxHoldBelowTtl { max_hold, ttl });
    }
    Ok(Checked {
        ttl,
        wait: request.wait.unwrap_or_else(|| config.default_wait()),
        attempts: request.attempts,
        max_hold: request.max_hold,
        expiring_lead: request.expiring_lead,
    })
}

/// Refuses a ttl, of an acquire or an extend, that must not be sent (R12, R25); what is below a millisecond is cut off.
pub(crate) fn check_ttl(ttl: Duration, config: &Config) -> Result<Duration, InvalidArgument> {
    valid_ttl(ttl, config.drift(), config.restart_guard())
}

pub(crate) fn valid_ttl(
    ttl: Duration,
    drift: Drift,
    max_ttl: Option<Duration>,
) -> Result<Duration, InvalidArgument> {
    let sent = whole_millis(ttl);
    if drift.validity(sent).is_zero() {
        let least = drift.ttl_for_validity(Duration::ZERO).saturating_add(Duration::from_millis(1));
        return Err(InvalidArgument::TtlTooShort { ttl, least });
    }
    if sent > MOST_TTL {
        return Err(InvalidArgument::TtlTooLong { ttl, most: MOST_TTL });
    }
    match max_ttl {
        Some(max_ttl) if sent > max_ttl => Err(InvalidArgument::TtlAboveRestartGuard { ttl, max_ttl }),
        _ => Ok(sent),
    }
}
