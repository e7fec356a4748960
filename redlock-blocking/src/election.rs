//! A candidate of an election.

use crate::driver::Sockets;
use crate::guard::Guard;
#[cfg(doc)]
use crate::redlock::Redlock;
use crate::wait::{wait_for_answer, wait_until};
#[cfg(doc)]
use crate::{Acquire, Builder};
use core::time::Duration;
#[cfg(doc)]
use redlock_core::AcquireErrorKind;
use redlock_core::{AcquireError, handoff};

/// A candidate: [`campaign`](Self::campaign) waits until it leads, again after each term.
///
/// ```no_run
/// # use core::time::Duration;
/// # fn run_what_is_due(epoch: u64) {}
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_blocking::Redlock::connect(["redis://10.0.0.1"])?;
/// let mut election = redlock.elect("scheduler").fenced();
/// loop {
///     let term = election.campaign()?;
///     let epoch = term.fence().expect("it is fenced").get();
///     while term.wait_lost(Duration::from_secs(1)).is_none() {
///         run_what_is_due(epoch);
///     }
/// }
/// # }
/// ```
///
/// A term is a [`Guard`]: `is_held()` says whether it still leads, by the local clock alone, [`wait_lost`](Guard::wait_lost)
/// and `on_lost` tell when it does not any more, `fence()` is the term's epoch where it is [fenced](Self::fenced), and releasing
/// or dropping it resigns. Two candidates may believe for a moment that they lead where the assumptions of the lock are broken,
/// as with every lock of this kind: what must not be done twice is to be refused by the epoch.
///
/// Who has led stays out of the next election for the longest [`retry_delay`](Builder::retry_delay), so that others come
/// first; with nobody else there it leads again after that.
#[derive(Debug)]
#[must_use = "nobody is elected before `campaign`"]
pub struct Election {
    election: handoff::Election<Sockets>,
}

impl Election {
    pub(crate) const fn new(election: handoff::Election<Sockets>) -> Self {
        Self { election }
    }

    redlock_core::__election_methods!();

    /// Blocks until this candidate leads. It stands in line like an [acquire](Redlock::acquire) without end: nodes that are
    /// down, or another leader, are waited for. [Closing](Redlock::close) the client, from another thread, ends it.
    ///
    /// A campaign begins when the candidate's last term is over: with its guard still held this waits for that.
    ///
    /// # Errors
    ///
    /// What waiting does not mend, with what every node said: no rights, a wrong password, a limit of the client
    /// ([`AcquireErrorKind::LimitReached`]), a fence that does not grow ([`AcquireErrorKind::StaleEpoch`]). Call again to go on:
    /// each failure in a row makes the pause before the next round longer, up to 10 s. Only
    /// [`Closed`](AcquireErrorKind::Closed) and [`Invalid`](AcquireErrorKind::Invalid) stay so.
    pub fn campaign(&mut self) -> Result<Guard, AcquireError> {
        let shared = self.election.hub().shared().clone();
        wait_for_answer(&shared, self.election.campaign()).map(Guard::new)
    }

    /// The same, for `timeout` at most; `None` if it does not lead by then, and the campaign is called off. A rest or a pause
    /// goes on, and is not shortened by calling again.
    ///
    /// # Errors
    ///
    /// See [`campaign`](Self::campaign).
    pub fn campaign_for(&mut self, timeout: Duration) -> Result<Option<Guard>, AcquireError> {
        let shared = self.election.hub().shared().clone();
        let until = shared.now().saturating_add(timeout);
        let answer = wait_until(self.election.campaign(), until, || shared.now());
        answer.transpose().map(|handle| handle.map(Guard::new))
    }
}
