//! The thread that waits for sockets and timers.
//!
//! `sockets` is what the engine writes to, on any thread; `stream` one connection; `resolve` looks names up. The loop here
//! only reads, and gives the engine its turns.

mod resolve;
mod sockets;
mod stream;

use core::time::Duration;
use mio::{Events, Poll};
use redlock_core::Config;
use redlock_core::handoff::{Shared, Turn};
use std::io::{self, ErrorKind};
use std::thread;

pub(crate) use sockets::Sockets;
use sockets::{Readiness, Schedule, WAKER};

/// Readiness that is taken at once: a few for each node and the waker.
const EVENTS: usize = 256;
/// What is read at once: far more than all replies that are outstanding, usually.
const BUFFER: usize = 64 * 1024;

/// What the thread waits on.
pub(crate) struct Reactor {
    poll: Poll,
    schedule: Schedule,
}

/// A reactor, and the sockets that are registered with it.
pub(crate) fn new(config: &Config) -> io::Result<(Reactor, Sockets)> {
    let poll = Poll::new()?;
    let schedule = Schedule::default();
    let sockets = Sockets::new(config, &poll, schedule.clone())?;
    Ok((Reactor { poll, schedule }, sockets))
}

impl Reactor {
    /// Starts the thread.
    pub(crate) fn start(self, shared: Shared<Sockets>) -> io::Result<()> {
        thread::Builder::new().name("redlock".into()).spawn(move || {
            let winding_down = WindDown(&shared);
            self.run(&shared);
            drop(winding_down);
        })?;
        Ok(())
    }

    fn run(mut self, shared: &Shared<Sockets>) {
        let mut events = Events::with_capacity(EVENTS);
        let mut buffer = vec![0; BUFFER];
        loop {
            let span = self.schedule.span(shared.now());
            match self.poll.poll(&mut events, span) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // Nothing can be waited for any more.
                Err(_) => return,
            }
            let is_closed = shared.turn(|turn| {
                take_turn(turn, &events, &mut buffer);
                turn.driver.is_closed()
            });
            if is_closed != Some(false) {
                return;
            }
        }
    }
}

/// Tells the engine what has happened, and fires what is due.
fn take_turn(turn: &mut Turn<'_, Sockets>, events: &Events, buffer: &mut [u8]) {
    turn.driver.wake_up();
    // Before anything that was read: what is due by now is not to wait for a flood of it.
    turn.client.handle_timeout(turn.now());
    for event in events {
        if event.token() != WAKER {
            sockets::on_ready(turn, event.token().0, Readiness::of(event), buffer);
        }
    }
    sockets::on_wake(turn, buffer);
}

/// When the thread ends without the client being closed, by a fault of the system or of ours, nobody may wait for ever: what
/// is pending is answered as the engine's timers say.
struct WindDown<'a>(&'a Shared<Sockets>);

impl Drop for WindDown<'_> {
    fn drop(&mut self) {
        while let Some(false) = self.0.turn(|turn| {
            let now = turn.now();
            turn.client.close(now);
            turn.driver.is_closed()
        }) {
            thread::sleep(Duration::from_millis(10));
        }
    }
}
