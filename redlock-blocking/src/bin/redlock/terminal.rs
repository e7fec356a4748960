//! Who has the keyboard: a command in a process group of its own can only read from the terminal while that group is
//! the terminal's foreground one, and only then do Ctrl-C and Ctrl-Z go to it.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _};

use nix::sys::signal::{SigSet, Signal as NixSignal};
use rustix::process::{Pid, Signal, getpgrp, getpid, kill_current_process_group, kill_process};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The terminal that this process was started from.
#[derive(Debug)]
pub(crate) struct Terminal {
    tty: File,
    /// Our process group.
    ours: Pid,
    /// Whether the command has the keyboard from the start. Not in a pipeline, where another program may want it: there
    /// the command gets it when it asks.
    is_interactive: bool,
    lent_to: Option<Pid>,
}

impl Terminal {
    /// `None` where there is none, as in a cron job.
    pub(crate) fn open() -> Option<Self> {
        let tty = OpenOptions::new().read(true).write(true).open("/dev/tty").ok()?;
        let is_interactive = io::stdin().is_terminal() && io::stdout().is_terminal();
        Some(Self { tty, ours: getpgrp(), is_interactive, lent_to: None })
    }

    /// Whether the command should have the keyboard without asking.
    pub(crate) const fn is_interactive(&self) -> bool {
        self.is_interactive
    }

    /// Whether our group has the keyboard, and so can lend it.
    pub(crate) fn is_ours(&self) -> bool {
        tcgetpgrp(&self.tty) == Ok(self.ours)
    }

    /// Whether it was lent and not taken back.
    pub(crate) const fn is_lent(&self) -> bool {
        self.lent_to.is_some()
    }

    /// Gives the keyboard to this group, if we have it.
    pub(crate) fn lend(&mut self, to: Pid) -> bool {
        if self.is_ours() && tcsetpgrp(&self.tty, to).is_ok() {
            self.lent_to = Some(to);
            return true;
        }
        false
    }

    /// Takes the keyboard back, if whom we lent it to still has it: a shell may have taken it meanwhile.
    pub(crate) fn take_back(&mut self) {
        let Some(borrower) = self.lent_to.take() else { return };
        if tcgetpgrp(&self.tty) != Ok(borrower) {
            return;
        }
        // Who is not in the foreground is stopped for changing that, unless it blocks the signal.
        let mut blocked = SigSet::empty();
        blocked.add(NixSignal::SIGTTOU);
        let before = blocked.thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK);
        let _gone = tcsetpgrp(&self.tty, self.ours);
        if let Ok(before) = before {
            let _restored = before.thread_set_mask();
        }
    }

    /// Stops this process and the pipeline that it is part of, as Ctrl-Z does. Returns when it is continued.
    pub(crate) fn stop_pipeline() {
        let _stopped = kill_current_process_group(Signal::STOP);
    }
}

/// Stops this process. Returns when it is continued.
pub(crate) fn stop_self() {
    let _stopped = kill_process(getpid(), Signal::STOP);
}
