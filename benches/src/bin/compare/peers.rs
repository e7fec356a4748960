//! Other clients: the crate `rslock`, and what one writes by hand over the crate `redis`.

use crate::locker::{Ask, Locker};
use core::future::Future;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use redis::aio::MultiplexedConnection;
use std::sync::Arc;
use std::time::Instant;

#[derive(Clone)]
pub(crate) struct Rslock(rslock::LockManager);

impl Locker for Rslock {
    type Held = rslock::Lock;
    const RENEWS: bool = false;

    async fn connect(urls: &[String]) -> Result<Self, String> {
        Ok(Self(rslock::LockManager::new(urls.iter().map(String::as_str).collect())))
    }

    async fn acquire(&self, resource: &str, ask: Ask) -> Result<Self::Held, String> {
        let until = Instant::now() + ask.wait;
        loop {
            match self.0.lock(resource.as_bytes(), ask.ttl).await {
                Ok(lock) => return Ok(lock),
                Err(error) if Instant::now() >= until => return Err(error.to_string()),
                Err(_) => {}
            }
        }
    }

    async fn release(&self, held: Self::Held) -> Result<(), String> {
        self.0.unlock(&held).await;
        Ok(())
    }

    async fn extend(&self, held: &Self::Held, ttl: Duration) -> Result<(), String> {
        self.0.extend(held, ttl).await.map(|_| ()).map_err(|error| error.to_string())
    }

    fn is_held(_held: &Self::Held) -> bool {
        true
    }
}

const DELETE: &str =
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0";
const EXTEND: &str =
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('PEXPIRE',KEYS[1],ARGV[2]) end return 0";

/// A multiplexed connection to each node, and a command to all of them at once that is done at the third answer.
#[derive(Clone)]
pub(crate) struct ByHand {
    nodes: Vec<MultiplexedConnection>,
    delete: Arc<redis::Script>,
    extend: Arc<redis::Script>,
    serial: Arc<AtomicU64>,
}

impl ByHand {
    /// Sends to all; true at the third yes, false when there can be none. The others go on by themselves.
    async fn quorum<F: Future<Output = bool> + Send>(
        &self,
        ask: impl Fn(MultiplexedConnection) -> F + Send,
    ) -> bool {
        let mut asked: FuturesUnordered<_> = self.nodes.iter().map(|node| ask(node.clone())).collect();
        let (mut yes, mut no) = (0, 0);
        while let Some(answer) = asked.next().await {
            if answer {
                yes += 1;
            } else {
                no += 1;
            }
            if yes == 3 || no == 3 {
                break;
            }
        }
        yes == 3
    }

    fn number(&self) -> u64 {
        // SplitMix64: no two are the same, and none is guessed here.
        let mut z = self.serial.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Locker for ByHand {
    type Held = (String, String);
    const RENEWS: bool = false;

    async fn connect(urls: &[String]) -> Result<Self, String> {
        let mut nodes = Vec::new();
        for url in urls {
            let client = redis::Client::open(url.as_str()).map_err(|error| error.to_string())?;
            nodes.push(client.get_multiplexed_async_connection().await.map_err(|error| error.to_string())?);
        }
        Ok(Self {
            nodes,
            delete: Arc::new(redis::Script::new(DELETE)),
            extend: Arc::new(redis::Script::new(EXTEND)),
            serial: Arc::new(AtomicU64::new(u64::from(std::process::id()))),
        })
    }

    async fn acquire(&self, resource: &str, ask: Ask) -> Result<Self::Held, String> {
        let until = Instant::now() + ask.wait;
        loop {
            let token = format!("{:016x}{:016x}", self.number(), self.number());
            let mut set = redis::cmd("SET");
            let millis = u64::try_from(ask.ttl.as_millis()).unwrap_or(u64::MAX);
            set.arg(resource).arg(&token).arg("NX").arg("PX").arg(millis);
            let set = &set;
            let granted = self
                .quorum(move |mut node: MultiplexedConnection| async move {
                    set.query_async::<Option<String>>(&mut node).await.is_ok_and(|said| said.is_some())
                })
                .await;
            let held = (resource.to_owned(), token);
            if granted {
                return Ok(held);
            }
            self.release(held).await.unwrap_or_default();
            if Instant::now() >= until {
                return Err("not granted".to_owned());
            }
            tokio::time::sleep(Duration::from_millis(50 + self.number() % 200)).await;
        }
    }

    async fn release(&self, held: Self::Held) -> Result<(), String> {
        let (held, delete) = (&held, &self.delete);
        let gone = self
            .quorum(move |mut node: MultiplexedConnection| async move {
                let mut delete = delete.key(&held.0);
                delete.arg(&held.1).invoke_async::<i64>(&mut node).await.is_ok_and(|said| said == 1)
            })
            .await;
        if gone { Ok(()) } else { Err("not released".to_owned()) }
    }

    async fn extend(&self, held: &Self::Held, ttl: Duration) -> Result<(), String> {
        let extend = &self.extend;
        let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let kept = self
            .quorum(move |mut node: MultiplexedConnection| async move {
                let mut extend = extend.key(&held.0);
                let extend = extend.arg(&held.1).arg(millis);
                extend.invoke_async::<i64>(&mut node).await.is_ok_and(|said| said == 1)
            })
            .await;
        if kept { Ok(()) } else { Err("not extended".to_owned()) }
    }

    fn is_held(_held: &Self::Held) -> bool {
        true
    }
}
