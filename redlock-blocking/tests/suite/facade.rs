//! An asynchronous adapter as threads use it, under the names of the blocking one: so that one suite is for all.
//!
//! Not a part of the suite: the asynchronous adapters' tests include it beside it.
#![allow(
    unnameable_types,
    missing_debug_implementations,
    missing_docs,
    dead_code,
    unreachable_pub,
    clippy::missing_errors_doc,
    clippy::unwrap_used,
    clippy::std_instead_of_alloc,
    reason = "of tests only, which need only a part of it"
)]

use core::ops::Deref;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use redlock_core::handoff::names::{
    AcquireError, BuildError, Event, ExtendError, HoldError, Instant, LostReason, Node, ReleaseError,
    Released,
};
use redlock_core::handoff::task;
use std::sync::Arc;
use std::task::Wake;
use std::thread::{self, Thread};

/// An adapter, and where its drivers run in these tests.
pub trait Adapter: task::Runtime {
    fn place(builder: task::Builder<Self>) -> task::Builder<Self>;
}

// ---- waiting ----

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    wait_for(future, Duration::MAX).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a timeout of a test")]
fn wait_for<T>(future: impl Future<Output = T>, timeout: Duration) -> Option<T> {
    let start = std::time::Instant::now();
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        let left = timeout.saturating_sub(start.elapsed());
        if left.is_zero() {
            return None;
        }
        thread::park_timeout(left);
    }
}

// ---- the client ----

#[derive(Clone, Debug)]
pub struct Redlock<R: Adapter>(task::Redlock<R>);

impl<R: Adapter> Deref for Redlock<R> {
    type Target = task::Redlock<R>;

    fn deref(&self) -> &task::Redlock<R> {
        &self.0
    }
}

impl<R: Adapter> Redlock<R> {
    pub fn connect<N: Into<Node>>(nodes: impl IntoIterator<Item = N>) -> Result<Self, BuildError> {
        Self::builder().nodes(nodes).connect()
    }

    pub fn builder() -> Builder<R> {
        Builder(R::place(task::Redlock::builder()))
    }

    pub fn acquire(&self, resource: impl AsRef<[u8]>) -> Acquire<'_> {
        Acquire(self.0.acquire(resource))
    }

    pub fn try_acquire(&self, resource: impl AsRef<[u8]>) -> Acquire<'_> {
        Acquire(self.0.try_acquire(resource))
    }

    pub fn acquire_all(&self, resources: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Acquire<'_> {
        Acquire(self.0.acquire_all(resources))
    }

    pub fn elect(&self, resource: impl AsRef<[u8]>) -> Election {
        Election(self.0.elect(resource))
    }

    pub fn events(&self) -> Events {
        Events(self.0.events())
    }

    pub fn events_with_capacity(&self, capacity: usize) -> Events {
        Events(self.0.events_with_capacity(capacity))
    }

    pub fn close(&self) {
        wait(self.0.close());
    }
}

pub struct Builder<R: Adapter>(task::Builder<R>);

macro_rules! builder_methods {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(
            pub fn $name(self, $($argument: $type),*) -> Self {
                Self(self.0.$name($($argument),*))
            }
        )*
    };
}

impl<R: Adapter> Builder<R> {
    pub fn nodes<N: Into<Node>>(self, nodes: impl IntoIterator<Item = N>) -> Self {
        Self(self.0.nodes(nodes))
    }

    builder_methods! {
        node(node: impl Into<Node>);
        tls(tls: impl task::Secure + 'static);
        client_name(name: &str);
        key_prefix(prefix: &str);
        node_timeout(timeout: Duration);
        retry_delay(min: Duration, max: Duration);
        connect_timeout(timeout: Duration);
        handshake_timeout(timeout: Duration);
        restart_guard(max_ttl: Duration);
        fence_retention(retention: Duration);
        default_ttl(ttl: Duration);
    }

    pub fn connect(self) -> Result<Redlock<R>, BuildError> {
        wait(self.0.connect()).map(Redlock)
    }

    pub fn connect_lazy(self) -> Result<Redlock<R>, BuildError> {
        self.0.connect_lazy().map(Redlock)
    }
}

pub struct Acquire<'a>(task::Acquire<'a>);

impl Acquire<'_> {
    builder_methods! {
        ttl(ttl: Duration);
        wait(wait: Duration);
        attempts(attempts: u32);
        auto_renew(max_hold: Duration);
        expiring_lead(lead: Duration);
        fenced();
        watch_loss();
    }

    pub fn lock(self) -> Result<Guard, AcquireError> {
        wait(self.0.into_future()).map(Guard)
    }

    /// The body never awaits, so that it is not stopped, as in a thread.
    pub fn hold<R>(self, body: impl FnOnce(&Guard) -> R) -> Result<R, HoldError<R>> {
        wait(self.0.hold(async |guard| body(&Guard(guard.share()))))
    }
}

#[derive(Debug)]
pub struct Election(task::Election);

impl Deref for Election {
    type Target = task::Election;

    fn deref(&self) -> &task::Election {
        &self.0
    }
}

impl Election {
    builder_methods! {
        ttl(ttl: Duration);
        fenced();
    }

    pub fn campaign(&mut self) -> Result<Guard, AcquireError> {
        wait(self.0.campaign()).map(Guard)
    }

    pub fn campaign_for(&mut self, timeout: Duration) -> Result<Option<Guard>, AcquireError> {
        wait_for(self.0.campaign(), timeout).transpose().map(|guard| guard.map(Guard))
    }
}

#[derive(Debug)]
pub struct Guard(task::Guard);

impl Deref for Guard {
    type Target = task::Guard;

    fn deref(&self) -> &task::Guard {
        &self.0
    }
}

impl Guard {
    pub fn is_held(&self) -> bool {
        self.0.is_held()
    }

    pub fn wait_lost(&self, timeout: Duration) -> Option<LostReason> {
        wait_for(self.0.lost(), timeout)
    }

    pub fn extend(&self, ttl: Duration) -> Result<Instant, ExtendError> {
        wait(self.0.extend(ttl))
    }

    pub fn release(self) -> Result<Released, ReleaseError> {
        wait(self.0.release())
    }

    pub fn share(&self) -> Self {
        Self(self.0.share())
    }
}

#[derive(Debug)]
pub struct Events(task::Events);

impl Events {
    pub fn try_next(&mut self) -> Option<Event> {
        self.0.try_next()
    }

    pub fn next_timeout(&mut self, timeout: Duration) -> Option<Event> {
        wait_for(self.0.next(), timeout).flatten()
    }

    pub fn missed(&self) -> u64 {
        self.0.missed()
    }
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        wait(self.0.next())
    }
}
