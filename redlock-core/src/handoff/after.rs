//! What is done once the mutex is free again: nothing of a user's runs while it is held.

use super::environment::CallbackRunner;
use super::observe::{News, tell};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;
use core::panic::AssertUnwindSafe;
use core::task::Waker;
use std::panic::catch_unwind;

/// A callback of a user, with what it is to be told.
pub struct Callback(Box<dyn FnOnce() + Send>);

impl Callback {
    pub(super) fn new(call: impl FnOnce() + Send + 'static) -> Self {
        Self(Box::new(call))
    }

    /// Runs it. A panic in it is reported as any panic is, and ends here.
    pub fn run(self) {
        // What it was unwound out of is its own; nothing of this crate is borrowed by it.
        let _reported = catch_unwind(AssertUnwindSafe(self.0));
    }
}

impl fmt::Debug for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callback")
    }
}

/// Collected under the mutex, done after it.
#[derive(Default)]
pub(super) struct After {
    wakers: Vec<Waker>,
    callbacks: Vec<Callback>,
    /// Values of users to be dropped: their `drop` may do anything.
    trash: Vec<Box<dyn Any + Send>>,
    /// For operators: what they have their records written with is a user's code, too.
    news: Vec<News>,
}

impl After {
    pub(super) fn wake(&mut self, waker: Option<Waker>) {
        self.wakers.extend(waker);
    }

    pub(super) fn call(&mut self, callback: Callback) {
        self.callbacks.push(callback);
    }

    #[cfg(any(feature = "metrics", feature = "tracing"))]
    pub(super) fn tell(&mut self, news: News) {
        self.news.push(news);
    }

    pub(super) fn discard(&mut self, value: impl Any + Send) {
        self.trash.push(Box::new(value));
    }

    pub(super) fn run(self, runner: &dyn CallbackRunner) {
        for waker in self.wakers {
            waker.wake();
        }
        for callback in self.callbacks {
            runner.run(callback);
        }
        self.news.iter().for_each(tell);
        if !self.trash.is_empty() {
            Callback::new(move || drop(self.trash)).run();
        }
    }
}
