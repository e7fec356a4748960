//! The command that runs under the lock, and the process group that it leads.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use rustix::io::Errno;
#[cfg(target_os = "linux")]
use rustix::process::set_parent_process_death_signal;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getppid, kill_process_group, test_kill_process_group, waitid,
};

use crate::exit::{self, Exit};
use crate::out;

/// A command, and all that it started and that stayed in its process group.
#[derive(Debug)]
pub(crate) struct Child {
    /// The command's process id, which is that of the group.
    leader: Pid,
    exit_code: Option<u8>,
    /// Whether the group was seen to be empty: its number may be another's by now.
    is_gone: bool,
}

/// What happened to the command since it was last looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It ended with this exit code, as shells count it.
    Ended(u8),
    /// It was stopped by this signal; it may be continued.
    Stopped(i32),
}

impl Child {
    /// Starts the command in a process group of its own. On Linux this program goes first, and [becomes](become_command) it.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn start<'e>(
        command: &[OsString],
        environment: impl IntoIterator<Item = (&'e str, &'e OsStr)>,
    ) -> io::Result<Self> {
        let mut command = if cfg!(target_os = "linux") && Path::new(OURSELVES).exists() {
            let mut ourselves = Command::new(OURSELVES);
            ourselves.arg0("redlock").args([BECOME, &std::process::id().to_string()]).args(command);
            ourselves
        } else {
            bare(command).ok_or(io::ErrorKind::InvalidInput)?
        };
        let child = command.envs(environment).process_group(0).spawn()?;
        let leader =
            i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { leader, exit_code: None, is_gone: false })
    }

    /// The process group.
    pub(crate) const fn group(&self) -> Pid {
        self.leader
    }

    /// Sends a signal to the whole group. Whoever is gone does not mind.
    pub(crate) fn signal(&self, signal: Signal) {
        if !self.is_gone {
            let _gone = kill_process_group(self.leader, signal);
        }
    }

    /// Asks the whole group to end, those that are stopped too.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// What happened since the last call; `None` for nothing. To be called until then.
    pub(crate) fn poll(&mut self) -> Option<Change> {
        if self.exit_code.is_some() {
            return None;
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        let ended = match waitid(WaitId::Pid(self.leader), options) {
            Ok(None) | Err(Errno::INTR) => return None,
            Ok(Some(status)) => {
                if let Some(signal) = status.stopping_signal() {
                    return Some(Change::Stopped(signal));
                }
                match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => u8::try_from(code & 0xff).unwrap_or(u8::MAX),
                    (None, Some(signal)) => exit::by_signal(signal),
                    (None, None) => return None,
                }
            }
            // Somebody else has taken its exit code: it is gone, and not known to have ended well.
            Err(_) => exit::LOST,
        };
        self.exit_code = Some(ended);
        Some(Change::Ended(ended))
    }

    /// Whether anything of the group is left. The kernel gives its number to nobody else as long as that is so.
    pub(crate) fn is_group_alive(&mut self) -> bool {
        self.is_gone = self.is_gone || test_kill_process_group(self.leader) == Err(Errno::SRCH);
        !self.is_gone
    }
}

/// This program, also when its file was replaced since.
const OURSELVES: &str = "/proc/self/exe";

/// The first argument of this program where it is to become the command; the process id of its parent is the second.
const BECOME: &str = "__become";

/// Answers whether this process was started to become the command of a `redlock run`: then these are its arguments.
pub(crate) fn is_to_become(mut arguments: impl Iterator<Item = OsString>) -> Option<Vec<OsString>> {
    (arguments.nth(1)? == BECOME).then(|| arguments.collect())
}

/// Becomes the command, such that the kernel kills it should its parent die: nobody would stop it then when the lock ends.
/// Returns only where that fails.
pub(crate) fn become_command(arguments: &[OsString]) -> Exit {
    let Some((parent, command)) = arguments.split_first() else { return Exit(exit::USAGE) };
    #[cfg(target_os = "linux")]
    {
        let _supported = set_parent_process_death_signal(Some(Signal::KILL));
    }
    // It may have died before that.
    let is_alive = getppid().is_some_and(|pid| parent.to_str() == Some(&pid.as_raw_nonzero().to_string()));
    if !is_alive {
        return Exit(exit::LOST);
    }
    let Some(mut program) = bare(command) else { return Exit(exit::USAGE) };
    start_failure(command, &program.exec())
}

/// Says that the command could not be started, and gives the exit code that shells have for it.
pub(crate) fn start_failure(command: &[OsString], error: &io::Error) -> Exit {
    let program = command.first().map(|program| program.to_string_lossy()).unwrap_or_default();
    out::say(format_args!("cannot run {program}: {error}"));
    Exit(if error.kind() == io::ErrorKind::NotFound { exit::NOT_FOUND } else { exit::NOT_EXECUTABLE })
}

fn bare(command: &[OsString]) -> Option<Command> {
    let (program, arguments) = command.split_first()?;
    let mut command = Command::new(program);
    command.args(arguments);
    Some(command)
}
