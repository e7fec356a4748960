//! A candidate of an election.

#[cfg(doc)]
use super::{Acquire, Redlock};
use super::{Connections, Guard};
use crate::error::AcquireError;
#[cfg(doc)]
use crate::error::AcquireErrorKind;
use crate::handoff;

/// A candidate: [`campaign`](Self::campaign) waits until it leads, again after each term.
///
/// ```
/// # use redlock_core::handoff::task::{Guard, Redlock, Runtime};
/// # async fn scheduler(term: &Guard) {}
/// # async fn run<R: Runtime>(redlock: &Redlock<R>) -> Result<(), Box<dyn std::error::Error>> {
/// let mut election = redlock.elect("scheduler").fenced();
/// loop {
///     let term = election.campaign().await?;
///     // Dropped at its next await when the term is lost; the next round of the loop campaigns again.
///     if term.until_lost(scheduler(&term)).await.is_ok() {
///         break;
///     }
/// }
/// # Ok(()) }
/// ```
///
/// A term is a [`Guard`]: `is_held()` says whether it still leads, by the local clock alone, [`lost`](Guard::lost) and
/// `on_lost` tell when it does not any more, `fence()` is the term's epoch where it is [fenced](Self::fenced), and releasing or
/// dropping it resigns. Two candidates may believe for a moment that they lead where the assumptions of the lock are broken, as
/// with every lock of this kind: what must not be done twice is to be refused by the epoch.
///
/// Who has led stays out of the next election for the longest [`retry_delay`](super::Builder::retry_delay), so that others come
/// first; with nobody else there it leads again after that.
#[derive(Debug)]
#[must_use = "nobody is elected before `campaign`"]
pub struct Election {
    election: handoff::Election<Connections>,
}

impl Election {
    pub(super) const fn new(election: handoff::Election<Connections>) -> Self {
        Self { election }
    }

    crate::__election_methods!();

    /// Waits until this candidate leads. It stands in line like an [acquire](Redlock::acquire) without end: nodes that are
    /// down, or another leader, are waited for.
    ///
    /// A campaign begins when the candidate's last term is over: with its guard still held this waits for that.
    ///
    /// # Errors
    ///
    /// What waiting does not mend, with what every node said: no rights, a wrong password, a limit of the client
    /// ([`AcquireErrorKind::LimitReached`]), a fence that does not grow ([`AcquireErrorKind::StaleEpoch`]). Call again to go on:
    /// each failure in a row makes the pause before the next round longer, up to 10 s. Only
    /// [`Closed`](AcquireErrorKind::Closed) and [`Invalid`](AcquireErrorKind::Invalid) stay so.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the campaign is called off: a lock that it got, or may have got, is released. A rest or a pause goes on, and is
    /// not shortened by calling again.
    pub async fn campaign(&mut self) -> Result<Guard, AcquireError> {
        self.election.campaign().await.map(Guard::new)
    }
}
