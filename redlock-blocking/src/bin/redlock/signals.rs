//! Which signals are passed on, and how they are received.

use std::fs;
use std::io;
use std::sync::mpsc::Sender;
use std::thread;

use signal_hook::consts::signal::{
    SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH,
};
use signal_hook::iterator::Signals;

/// Those that mean the command when they are sent to us.
const PASSED_ON: [i32; 10] =
    [SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH];

/// Whether this signal asks for an end.
pub(crate) fn is_end(signal: i32) -> bool {
    matches!(signal, SIGALRM | SIGHUP | SIGINT | SIGQUIT | SIGTERM | SIGUSR1 | SIGUSR2)
}

/// Receives signals on a thread of their own from now on: those that are passed on, and `SIGCHLD`.
///
/// What was ignored when this process was started stays so, for the command as well (`nohup`, or `&` in a script).
///
/// # Errors
///
/// Those of the system.
pub(crate) fn listen<N: Send + 'static>(
    notes: Sender<N>,
    note: impl Fn(i32) -> N + Send + 'static,
) -> io::Result<()> {
    let ignored = ignored();
    let passed_on = PASSED_ON.into_iter().filter(|signal| !ignored(*signal));
    let mut signals = Signals::new(passed_on.chain([SIGCHLD]))?;
    thread::Builder::new().name("redlock-signals".into()).spawn(move || {
        for signal in signals.forever() {
            if notes.send(note(signal)).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

/// Waits until the process is asked to end.
///
/// # Errors
///
/// Those of the system.
pub(crate) fn wait_for_end() -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    signals.forever().next();
    Ok(())
}

/// Which signals this process ignores, as the kernel tells it (Linux; elsewhere none are known to be).
fn ignored() -> impl Fn(i32) -> bool {
    let mask = fs::read_to_string("/proc/self/status").map_or(0, |status| ignored_mask(&status));
    move |signal| {
        u32::try_from(signal)
            .ok()
            .and_then(|signal| signal.checked_sub(1))
            .is_some_and(|bit| mask.checked_shr(bit).is_some_and(|rest| rest & 1 == 1))
    }
}

fn ignored_mask(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_what_is_ignored() {
        assert_eq!(
            ignored_mask("Name:\tredlock\nSigBlk:\t0\nSigIgn:\t0000000000001001\nSigCgt:\t0\n"),
            0x1001
        );
        assert_eq!(ignored_mask("Name:\tredlock\n"), 0);
        assert_eq!(ignored_mask("SigIgn:\tnonsense\n"), 0);
    }
}
