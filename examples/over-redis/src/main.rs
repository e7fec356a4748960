//! Takes a lock over the clients of the `redis` crate that a program has: over three simulated nodes, or the addresses in
//! the arguments. `cargo run --manifest-path examples/over-redis/Cargo.toml [redis://…]…`

use over_redis::{Locks, request};
use redlock_core::Config;
use redlock_core::sim::{Dialect, Server, TcpNode};
use std::error::Error;
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let nodes = (1..=3).map(|seed| TcpNode::start(Server::new(Dialect::Valkey9, seed)));
    let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
    let mut urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        urls = nodes.iter().map(|node| format!("redis://{}", node.addr())).collect();
    }

    // What the program has: a client per node, here with nothing but an address.
    let clients = urls.iter().map(|url| redis::Client::open(url.as_str())).collect::<Result<Vec<_>, _>>()?;

    let mut locks = Locks::over(&clients, Config::builder().client_name("over-redis"))?;
    let lock = locks.acquire(request("orders")?.auto_renew(Duration::from_secs(60))).await?;
    let done = locks
        .while_held(lock, async {
            println!("held: the work goes here");
            tokio::time::sleep(Duration::from_millis(100)).await;
        })
        .await;
    if let Err(reason) = done {
        return Err(format!("lost in the middle: {reason}").into());
    }
    println!("{}", locks.release(lock).await?);
    locks.close().await;
    Ok(())
}
