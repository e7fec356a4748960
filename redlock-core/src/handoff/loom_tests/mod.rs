//! Every order in which two threads can do what this module allows, within a bound of preemptions: what is shipped, built
//! from loom's primitives (`--cfg loom`), against one simulated node, in virtual time.
//!
//! Whatever the threads of a model race about goes through loom's primitives too, the nodes and the clock of these tests
//! included: loom tries other orders only of what it sees. A wake-up that is lost shows as a deadlock, which loom reports.

mod cell;
mod driver;
mod operations;

use super::environment::{CallbackRunner, Clock, Entropy, Environment};
use super::*;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::task::Wake;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicU64 as Unmodelled, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use loom::sync::atomic::AtomicU64;
use loom::sync::{Condvar, Mutex};
use loom::thread::{self, JoinHandle};
use std::io::Write;

/// Loom's own is too small for the engine.
const STACK: usize = 64 * 1024;
const MOST_BRANCHES: usize = 20_000;
const MOST_PREEMPTIONS: usize = 3;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Runs `scenario` in every order, and says how many those were.
fn model(name: &str, scenario: impl Fn() + Copy + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.max_branches = MOST_BRANCHES;
    model.preemption_bound = model.preemption_bound.or(Some(MOST_PREEMPTIONS));
    let orders = Arc::new(Unmodelled::new(0));
    let counted = Arc::clone(&orders);
    model.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        spawn(scenario).join().unwrap();
    });
    writeln!(std::io::stderr(), "{name}: {} orders", orders.load(Ordering::Relaxed)).unwrap();
}

fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    thread::Builder::new().stack_size(STACK).spawn(work).unwrap()
}

/// Puts a thread to sleep until it is woken.
#[derive(Default)]
struct Bed {
    is_woken: Mutex<bool>,
    changed: Condvar,
}

impl Wake for Bed {
    fn wake(self: Arc<Self>) {
        *self.is_woken.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

/// Polls `future` until it is ready, and sleeps meanwhile.
fn wait<F: Future + Unpin>(mut future: F) -> F::Output {
    let bed = Arc::new(Bed::default());
    let waker = Waker::from(Arc::clone(&bed));
    loop {
        if let Poll::Ready(output) = poll(&mut future, &waker) {
            return output;
        }
        let mut is_woken = bed.is_woken.lock().unwrap();
        while !*is_woken {
            is_woken = bed.changed.wait(is_woken).unwrap();
        }
        *is_woken = false;
    }
}

fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// Milliseconds. Another thread may read an older value until something tells it of the newer one, as with a real clock.
#[derive(Clone, Default)]
struct Hand(Arc<AtomicU64>);

impl Hand {
    fn set(&self, millis: u64) {
        self.0.store(millis, Ordering::Release);
    }
}

impl Clock for Hand {
    fn now(&self) -> Instant {
        Instant::from_millis(self.0.load(Ordering::Acquire))
    }
}

/// Not drawn from by two threads in any model.
#[derive(Default)]
struct Source(Unmodelled);

impl Entropy for Source {
    fn draw(&self) -> Result<[u8; 16], String> {
        Ok(u128::from(self.0.fetch_add(1, Ordering::Relaxed)).to_be_bytes())
    }
}

/// Runs callbacks where they are handed over: what they call would hang if the mutex were held.
struct Inline;

impl CallbackRunner for Inline {
    fn run(&self, callback: Callback) {
        callback.run();
    }
}
