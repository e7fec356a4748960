//! The time between the grant and the end: the command runs, the lock is watched, signals are passed on.

use core::time::Duration;
use std::ffi::OsStr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};

use redlock_blocking::{Guard, Instant, LostReason, ReleaseOutcome};
use rustix::process::Signal;
use signal_hook::consts::signal::{SIGCHLD, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU};

use crate::child::{Change, Child, start_failure};
use crate::exit::{self, Exit};
use crate::ladder::{Ladder, Lock, Step};
use crate::run::{Note, Plan};
use crate::terminal::{self, Terminal};
use crate::{clock, out, verbose};

/// How long to sleep at most, while nothing happens: timers stop when the machine is suspended, and the lock does not. So
/// long, too, may the command run on after that.
const LONGEST_SLEEP: Duration = Duration::from_millis(250);
/// How often to look whether the rest of the group has ended; nobody tells.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// How long to wait for a command that was killed: the kernel may be unable to end it, in a device or a dead file
/// system.
const KILLED_GRACE: Duration = Duration::from_secs(2);

/// A held lock and what is done under it.
#[derive(Debug)]
pub(crate) struct Hold<'p> {
    plan: &'p Plan,
    guard: Guard,
    start: Instant,
    ladder: Ladder,
    /// The deadline that was reported as near.
    expiring: Option<Instant>,
    terminal: Option<Terminal>,
    /// Whether the command should have the keyboard when there is one to give.
    wants_terminal: bool,
    /// Whether we were asked to stop as Ctrl-Z does, which waits for the command to stop first.
    stops_with_child: bool,
    killed_at: Option<Instant>,
}

impl<'p> Hold<'p> {
    pub(crate) fn new(plan: &'p Plan, guard: Guard, start: Instant) -> Self {
        let terminal = Terminal::open();
        let wants_terminal = terminal.as_ref().is_some_and(Terminal::is_interactive);
        Self {
            plan,
            guard,
            start,
            ladder: Ladder::new(),
            expiring: None,
            terminal,
            wants_terminal,
            stops_with_child: false,
            killed_at: None,
        }
    }

    /// Runs the command to its end and gives the lock back.
    pub(crate) fn run(mut self, sender: &Sender<Note>, notes: &Receiver<Note>) -> Exit {
        if self.plan.args.verbose {
            verbose::told_grant(&self.plan.resource(), &self.guard, self.start);
        }
        let to = sender.clone();
        self.guard.on_expiring(move |expiring| drop(to.send(Note::Expiring(expiring.deadline))));
        let to = sender.clone();
        self.guard.on_lost(move |_| drop(to.send(Note::Lost)));
        let fence = self.guard.fence().map(|fence| fence.to_string());
        let fence = fence.as_ref().map(|fence| ("REDLOCK_FENCE", OsStr::new(fence)));
        let environment = [("REDLOCK_RESOURCE", self.plan.args.resource.as_os_str())];
        let mut child = match Child::start(&self.plan.args.command, environment.into_iter().chain(fence)) {
            Ok(child) => child,
            Err(error) => {
                let exit = start_failure(&self.plan.args.command, &error);
                drop(self.guard.release());
                return exit;
            }
        };
        let code = self.watch(&mut child, notes);
        if let Some(terminal) = &mut self.terminal {
            terminal.take_back();
        }
        self.finish(code)
    }

    /// Until the command has ended, and where it was stopped all that it started.
    fn watch(&mut self, child: &mut Child, notes: &Receiver<Note>) -> Option<u8> {
        let mut code = None;
        loop {
            self.climb(child);
            self.lend_terminal(child);
            while let Some(change) = child.poll() {
                match change {
                    Change::Ended(ended) => code = Some(ended),
                    Change::Stopped(signal) => self.child_stopped(child, signal),
                }
            }
            if code.is_some()
                && (!self.ladder.is_stopping() || self.ladder.was_killed() || !child.is_group_alive())
            {
                return code;
            }
            if code.is_none() && self.is_beyond_killing() {
                out::say("the command was killed, and the kernel does not end it; leaving it");
                return None;
            }
            match notes.recv_timeout(self.sleep(code.is_some())) {
                Ok(Note::Expiring(deadline)) => self.expiring = Some(deadline),
                Ok(Note::Signal(signal)) => {
                    // Before the command hears of it: it must not be continued when the lock is gone.
                    self.climb(child);
                    self.pass_on(child, signal);
                }
                Ok(Note::Lost | Note::Connected(_) | Note::Acquired(_) | Note::Failed(_)) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    fn sleep(&self, is_child_gone: bool) -> Duration {
        if is_child_gone {
            return LOOK_AGAIN;
        }
        let due = self.ladder.due().map(|due| due.saturating_duration_since(clock::now()));
        due.map_or(LONGEST_SLEEP, |due| due.min(LONGEST_SLEEP))
    }

    /// How the lock stands.
    fn lock(&self) -> Lock {
        let remaining = self.guard.remaining();
        if remaining.is_zero() {
            let has_run_out = matches!(self.guard.lost_reason(), None | Some(LostReason::Expired));
            return if has_run_out { Lock::Over } else { Lock::TakenAway };
        }
        // A renewal that came in since has moved the deadline on.
        if self.expiring.is_some_and(|deadline| self.guard.valid_until() <= deadline) {
            Lock::Expiring { remaining }
        } else {
            Lock::Held
        }
    }

    fn climb(&mut self, child: &Child) {
        let lock = self.lock();
        let now = clock::now();
        let Some(step) = self.ladder.step(lock, now) else { return };
        // First the deed, then the words.
        match step {
            Step::Terminate => child.terminate(),
            Step::Kill => {
                self.killed_at = Some(now);
                child.signal(Signal::KILL);
            }
        }
        let resource = self.plan.resource();
        let what = match step {
            Step::Terminate => "asking the command to end",
            Step::Kill => "killed the command",
        };
        match lock {
            Lock::Expiring { remaining } if self.is_end_of_max_hold(remaining) => {
                out::say(format_args!("{resource} is held until --max-hold, in {remaining:.1?}; {what}"));
            }
            Lock::Expiring { remaining } => {
                out::say(format_args!(
                    "{resource} was not renewed in time and ends in {remaining:.1?}; {what}"
                ));
            }
            Lock::Held | Lock::TakenAway | Lock::Over => match self.guard.lost_reason() {
                Some(reason) => out::say(format_args!("{resource} is lost: {reason}; {what}")),
                None => out::say(format_args!("{resource} is lost; {what}")),
            },
        }
    }

    /// Whether the lock ends because it was to be held no longer, not for want of a renewal. The last renewal may be left
    /// out where it would have gained less than a tenth of the ttl.
    fn is_end_of_max_hold(&self, remaining: Duration) -> bool {
        let end = clock::now().saturating_add(remaining).saturating_add(self.plan.ttl / 5);
        self.plan.args.max_hold.is_some_and(|max_hold| end >= self.start.saturating_add(max_hold))
    }

    fn is_beyond_killing(&self) -> bool {
        self.killed_at.is_some_and(|at| clock::now() >= at.saturating_add(KILLED_GRACE))
    }

    // ---- signals and the terminal ----

    fn pass_on(&mut self, child: &Child, signal: i32) {
        match signal {
            SIGCHLD => {}
            // Asked to end, it was continued already, and must not be held up.
            SIGCONT | SIGTSTP if self.ladder.is_stopping() => {}
            _ => {
                self.stops_with_child = signal == SIGTSTP || (self.stops_with_child && signal != SIGCONT);
                if let Some(signal) = Signal::from_named_raw(signal) {
                    child.signal(signal);
                }
            }
        }
    }

    fn child_stopped(&mut self, child: &Child, signal: i32) {
        if self.ladder.is_stopping() {
            return child.signal(Signal::CONT);
        }
        if matches!(signal, SIGTTIN | SIGTTOU) {
            self.wants_terminal = true;
            return self.lend_terminal(child);
        }
        match &mut self.terminal {
            Some(terminal) if terminal.is_lent() => {
                terminal.take_back();
                Terminal::stop_pipeline();
            }
            _ if self.stops_with_child => terminal::stop_self(),
            // Somebody stopped the command alone, and may continue it: the lock is held for it.
            _ => {}
        }
        self.stops_with_child = false;
    }

    /// Gives the command the keyboard if it wants it and we have it: from the start, when it reads, and after `fg`.
    fn lend_terminal(&mut self, child: &Child) {
        if self.wants_terminal
            && !self.ladder.is_stopping()
            && let Some(terminal) = &mut self.terminal
            && terminal.lend(child.group())
        {
            // It may have been stopped for reading too early.
            child.signal(Signal::CONT);
        }
    }

    // ---- the end ----

    fn finish(self, code: Option<u8>) -> Exit {
        let resource = self.plan.resource();
        let was_held = self.guard.is_held();
        let reason = self.guard.lost_reason();
        let released = self.guard.release();
        if self.ladder.was_asked() {
            return Exit(exit::LOST);
        }
        if !was_held {
            let why = reason.map_or_else(String::new, |reason| format!(": {reason}"));
            out::say(format_args!("{resource} was lost before the command ended{why}"));
            return Exit(exit::LOST);
        }
        let code = code.unwrap_or(exit::LOST);
        match released {
            Ok(released) if released.outcome == ReleaseOutcome::NotMine => {
                out::say(format_args!(
                    "{resource} is {released}; it may have been gone while the command ran"
                ));
                Exit(exit::LOST)
            }
            Ok(released) if released.is_clean() => {
                if self.plan.args.verbose {
                    out::say(format_args!("released {resource}"));
                }
                Exit(code)
            }
            // It was ours when the command had ended: only its end is unclear.
            Ok(released) => {
                out::say(format_args!("the release of {resource} is {released}"));
                Exit(code)
            }
            Err(error) => {
                out::say(error);
                Exit(code)
            }
        }
    }
}
