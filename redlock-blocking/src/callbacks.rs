//! Where callbacks run: a thread of their own, one after the other.

use redlock_core::handoff::{Callback, CallbackRunner};
use std::io;
use std::sync::mpsc::{self, Sender};
use std::thread;

/// Hands callbacks to their thread, which ends with the client.
#[derive(Debug)]
pub(crate) struct Callbacks {
    queue: Sender<Callback>,
}

impl Callbacks {
    pub(crate) fn start() -> io::Result<Self> {
        let (queue, callbacks) = mpsc::channel::<Callback>();
        let run = move || callbacks.into_iter().for_each(Callback::run);
        thread::Builder::new().name("redlock-callbacks".into()).spawn(run)?;
        Ok(Self { queue })
    }
}

impl CallbackRunner for Callbacks {
    fn run(&self, callback: Callback) {
        // The thread is there as long as this is: a panicking callback does not end it.
        let _handed_over = self.queue.send(callback);
    }
}
