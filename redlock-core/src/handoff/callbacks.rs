//! Where callbacks run: a thread of their own, one after the other.

use super::after::Callback;
use super::environment::CallbackRunner;
use super::sync::{Mutex, lock};
use core::fmt;
use std::io;
use std::sync::mpsc::{self, Sender};
use std::thread;

/// Runs callbacks on a thread of their own, in order. It is started for the first one, and ends with the client.
///
/// They may block, and call into the client. Where the system refuses a thread, a callback runs where it was handed over.
#[derive(Default)]
pub struct CallbackThread {
    queue: Mutex<Option<Sender<Callback>>>,
}

impl CallbackRunner for CallbackThread {
    fn run(&self, callback: Callback) {
        let mut queue = lock(&self.queue);
        if queue.is_none() {
            *queue = start().ok();
        }
        let refused = match &*queue {
            // The thread is there as long as this is: a panicking callback does not end it.
            Some(sender) => sender.send(callback).err().map(|refused| refused.0),
            None => Some(callback),
        };
        drop(queue);
        if let Some(callback) = refused {
            callback.run();
        }
    }
}

fn start() -> io::Result<Sender<Callback>> {
    let (queue, callbacks) = mpsc::channel::<Callback>();
    let run = move || callbacks.into_iter().for_each(Callback::run);
    thread::Builder::new().name("redlock-callbacks".into()).spawn(run)?;
    Ok(queue)
}

impl fmt::Debug for CallbackThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackThread").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn callbacks_run_in_order_and_a_panic_ends_none_of_the_others() {
        let thread = CallbackThread::default();
        let (said, heard) = mpsc::channel();
        for number in 0..100 {
            let said = said.clone();
            thread.run(Callback::new(move || {
                said.send(number).unwrap();
                assert!(number != 7, "the callback of a test panics");
            }));
        }
        drop((said, thread));
        assert_eq!(heard.into_iter().collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
    }
}
