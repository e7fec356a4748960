//! What is compared, behind one trait: a lock library, and the tasks that use it.

use core::future::Future;
use core::pin::Pin;
use core::time::Duration;
use std::thread;

/// What is asked of a lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) ttl: Duration,
    pub(crate) wait: Duration,
    /// Renewed by the library, where it can.
    pub(crate) renew: bool,
}

/// A client of five nodes.
pub(crate) trait Locker: Clone + Send + Sync + 'static {
    type Held: Send + Sync + 'static;
    /// Whether it renews locks by itself; else the workload calls `extend`.
    const RENEWS: bool = true;
    fn connect(urls: &[String]) -> impl Future<Output = Result<Self, String>> + Send;
    fn acquire(&self, resource: &str, ask: Ask) -> impl Future<Output = Result<Self::Held, String>> + Send;
    fn release(&self, held: Self::Held) -> impl Future<Output = Result<(), String>> + Send;
    fn extend(&self, held: &Self::Held, ttl: Duration) -> impl Future<Output = Result<(), String>> + Send;
    /// Whether it believes that it holds the lock.
    fn is_held(held: &Self::Held) -> bool;
}

pub(crate) type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Tasks, or threads.
pub(crate) trait Tasks: Copy + Send + Sync + 'static {
    fn spawn<T: Send + 'static>(self, task: impl Future<Output = T> + Send + 'static) -> Boxed<T>;
    fn sleep(self, span: Duration) -> Boxed<()>;
}

#[derive(Clone, Copy)]
pub(crate) struct Tokio;

impl Tasks for Tokio {
    fn spawn<T: Send + 'static>(self, task: impl Future<Output = T> + Send + 'static) -> Boxed<T> {
        let task = tokio::spawn(task);
        Box::pin(async { task.await.expect("no task panics") })
    }

    /// By another timer than Tokio's own, which is up to a millisecond late: a critical section of 1 ms would take two.
    fn sleep(self, span: Duration) -> Boxed<()> {
        Box::pin(async move {
            smol::Timer::after(span).await;
        })
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Smol;

impl Tasks for Smol {
    fn spawn<T: Send + 'static>(self, task: impl Future<Output = T> + Send + 'static) -> Boxed<T> {
        Box::pin(smol::spawn(task))
    }

    fn sleep(self, span: Duration) -> Boxed<()> {
        Box::pin(async move {
            smol::Timer::after(span).await;
        })
    }
}

/// A thread for each task; what is awaited blocks.
#[derive(Clone, Copy)]
pub(crate) struct Threads;

impl Tasks for Threads {
    fn spawn<T: Send + 'static>(self, task: impl Future<Output = T> + Send + 'static) -> Boxed<T> {
        let thread = thread::Builder::new().stack_size(256 * 1024).spawn(|| smol::block_on(task));
        let thread = thread.expect("the system has room for a thread");
        Box::pin(async { thread.join().expect("no thread panics") })
    }

    fn sleep(self, span: Duration) -> Boxed<()> {
        Box::pin(async move { thread::sleep(span) })
    }
}

fn text(error: impl core::fmt::Display) -> String {
    error.to_string()
}

const LONG: Duration = Duration::from_secs(600);

/// The same words for the two asynchronous adapters.
macro_rules! adapter {
    ($library:ident) => {
        impl Locker for $library::Redlock {
            type Held = $library::Guard;

            async fn connect(urls: &[String]) -> Result<Self, String> {
                Self::connect(urls.iter().map(String::as_str)).await.map_err(text)
            }

            async fn acquire(&self, resource: &str, ask: Ask) -> Result<Self::Held, String> {
                let acquire = Self::acquire(self, resource).ttl(ask.ttl).wait(ask.wait);
                let acquire = if ask.renew { acquire.auto_renew(LONG) } else { acquire };
                acquire.await.map_err(text)
            }

            async fn release(&self, held: Self::Held) -> Result<(), String> {
                held.release().await.map(|_| ()).map_err(text)
            }

            async fn extend(&self, held: &Self::Held, ttl: Duration) -> Result<(), String> {
                held.extend(ttl).await.map(|_| ()).map_err(text)
            }

            fn is_held(held: &Self::Held) -> bool {
                held.is_held()
            }
        }
    };
}

adapter!(redlock_tokio);

/// Our own client as every other one waits: by trying again after a random time, 50 to 250 ms.
#[derive(Clone)]
pub(crate) struct Polling(redlock_tokio::Redlock);

impl Locker for Polling {
    type Held = redlock_tokio::Guard;

    async fn connect(urls: &[String]) -> Result<Self, String> {
        let nodes = urls.iter().map(String::as_str);
        let builder = redlock_tokio::Redlock::builder().nodes(nodes).wake_ups(false);
        let delays = (Duration::from_millis(50), Duration::from_millis(250));
        builder.retry_delay(delays.0, delays.1).connect().await.map(Self).map_err(text)
    }

    async fn acquire(&self, resource: &str, ask: Ask) -> Result<Self::Held, String> {
        Locker::acquire(&self.0, resource, ask).await
    }

    async fn release(&self, held: Self::Held) -> Result<(), String> {
        Locker::release(&self.0, held).await
    }

    async fn extend(&self, held: &Self::Held, ttl: Duration) -> Result<(), String> {
        Locker::extend(&self.0, held, ttl).await
    }

    fn is_held(held: &Self::Held) -> bool {
        held.is_held()
    }
}
adapter!(redlock_async_std);

impl Locker for redlock_blocking::Redlock {
    type Held = redlock_blocking::Guard;

    async fn connect(urls: &[String]) -> Result<Self, String> {
        Self::connect(urls.iter().map(String::as_str)).map_err(text)
    }

    async fn acquire(&self, resource: &str, ask: Ask) -> Result<Self::Held, String> {
        let acquire = Self::acquire(self, resource).ttl(ask.ttl).wait(ask.wait);
        let acquire = if ask.renew { acquire.auto_renew(LONG) } else { acquire };
        acquire.lock().map_err(text)
    }

    async fn release(&self, held: Self::Held) -> Result<(), String> {
        held.release().map(|_| ()).map_err(text)
    }

    async fn extend(&self, held: &Self::Held, ttl: Duration) -> Result<(), String> {
        held.extend(ttl).map(|_| ()).map_err(text)
    }

    fn is_held(held: &Self::Held) -> bool {
        held.is_held()
    }
}
