//! What can go wrong with a node.

use alloc::vec::Vec;
use core::time::Duration;

use super::{Condition, Failure, Memory, Pause, Server, Waiting, run_id};
use crate::Instant;

/// # Faults
impl Server {
    /// The process dies and comes up again at once: every session is closed without a word, commands that waited for
    /// the end of a pause are lost, the run id is new and the uptime 0. Also starts a node that was stopped.
    pub fn restart(&mut self, memory: Memory, now: Instant) {
        self.stop();
        if memory == Memory::Lose {
            self.core.store.clear();
            self.core.store.take_touches();
        }
        self.start(now);
    }

    /// The process ends. Its data stay, as on a disk, for [`start`](Self::start).
    pub fn stop(&mut self) {
        self.is_up = false;
        self.pause = None;
        self.sessions.clear();
        self.core.tracked.clear();
        self.core.scripts.clear();
    }

    /// The process starts, with the data that it had and a new run id. Does nothing if it is up.
    pub fn start(&mut self, now: Instant) {
        if !self.is_up {
            self.is_up = true;
            self.core.run_id = run_id(&mut self.random);
            self.core.started_ms = self.clock.millis(now);
        }
    }

    /// Whether it can be connected to.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.is_up
    }

    /// Stops the process where it is (`SIGSTOP`): connections are accepted by the kernel, bytes pile up, nothing runs.
    pub fn pause(&mut self) {
        self.set_pause(None);
    }

    /// As [`pause`](Self::pause), and [resumes](Self::resume) by itself, at the first call from `now + span` on.
    pub fn pause_for(&mut self, span: Duration, now: Instant) {
        self.set_pause(Some(now.saturating_add(span)));
    }

    /// Continues: what arrived meanwhile runs now, in the order in which it came, also for clients that have gone. The
    /// ttl of a key counts from now, not from the arrival of its `SET`.
    pub fn resume(&mut self, now: Instant) {
        let Some(pause) = self.pause.take() else { return };
        for waiting in pause.waiting {
            match waiting {
                Waiting::Open(session) => self.greet(session),
                Waiting::Bytes(session, bytes) => self.execute(session, &bytes, now),
                Waiting::HangUp(session) => self.remove_session(session),
            }
        }
    }

    /// Whether the process is stopped.
    #[must_use]
    pub const fn is_paused(&self) -> bool {
        self.pause.is_some()
    }

    /// Sets the server's wall clock, by which keys run out: `offset_ms` ahead of an undisturbed one at `now` (behind,
    /// if negative), and from then on faster by `rate_ppm` millionths.
    pub fn set_clock(&mut self, offset_ms: i64, rate_ppm: i64, now: Instant) {
        self.clock.set(offset_ms, rate_ppm, now);
    }

    /// Moves the server's wall clock by `ms`, forwards or, if negative, back.
    pub fn jump_clock(&mut self, ms: i64, now: Instant) {
        self.clock.jump(ms, now);
    }

    /// Brings the node into a condition, or with `None` out of it.
    pub fn set_condition(&mut self, condition: Option<Condition>) {
        self.core.condition = condition;
    }

    /// Answers the next `command` with this error line (without `-`), and does not run it. A subcommand is named as in
    /// `client|tracking`. Several failures of one command are used up in order.
    pub fn fail_next(&mut self, command: &str, error: &str) {
        self.failures.push(Failure { command: command.into(), error: error.into(), once: true });
    }

    /// As [`fail_next`](Self::fail_next), until [`clear_failures`](Self::clear_failures).
    pub fn fail_always(&mut self, command: &str, error: &str) {
        self.failures.push(Failure { command: command.into(), error: error.into(), once: false });
    }

    /// Ends what [`fail_next`](Self::fail_next) and [`fail_always`](Self::fail_always) asked for.
    pub fn clear_failures(&mut self) {
        self.failures.clear();
    }

    /// Half-open: the node still runs what it is sent, but nothing that it says gets out, until this is unset.
    pub fn mute(&mut self, is_muted: bool) {
        self.is_muted = is_muted;
    }

    /// Closes every session without a word, as `CLIENT KILL` of all does. Commands that wait for the end of a pause
    /// still run.
    pub fn kill_sessions(&mut self) {
        for session in self.sessions.values_mut() {
            session.closing = true;
        }
    }

    fn set_pause(&mut self, until: Option<Instant>) {
        if self.is_up {
            self.pause.get_or_insert(Pause { until: None, waiting: Vec::new() }).until = until;
        }
    }
}
