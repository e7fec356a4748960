//! Exit codes.

use std::process::ExitCode;

/// What was asked was not confirmed, and nothing was done.
pub(crate) const NOT_CONFIRMED: u8 = 1;
/// The command line makes no sense (`EX_USAGE`).
pub(crate) const USAGE: u8 = 64;
/// No quorum of nodes could be reached (`EX_UNAVAILABLE`).
pub(crate) const UNAVAILABLE: u8 = 69;
/// The lock was lost while the command ran, or the command was stopped so that it would not outlive the lock.
pub(crate) const LOST: u8 = 70;
/// Another owner held the lock until the wait was over (`EX_TEMPFAIL`).
pub(crate) const BUSY: u8 = 75;
/// The command was found but could not be started, as shells say it.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// The command was not found, as shells say it.
pub(crate) const NOT_FOUND: u8 = 127;

/// What shells say of a command that died by a signal.
pub(crate) fn by_signal(signal: i32) -> u8 {
    u8::try_from(signal).unwrap_or(u8::MAX).saturating_add(128)
}

/// A reason to end, which has been said already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit(pub(crate) u8);

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.0.into()
    }
}
