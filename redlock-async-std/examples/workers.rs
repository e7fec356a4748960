//! On smol: workers that share resources: each takes one after the other, works on it, and gives it back. What was done under
//! a lock that was lost meanwhile is thrown away.
//!
//! ```text
//! REDLOCK_NODES=redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3 cargo run -p redlock-async-std --example async-std-workers
//! ```
#![expect(clippy::print_stdout, reason = "an example")]

use core::error::Error;
use core::time::Duration;
use redlock_async_std::{AcquireError, Guard, HoldError, Redlock, parse_list};

const WORKERS: u32 = 8;
const ACCOUNTS: [&str; 3] = ["account:17", "account:42", "account:99"];

fn main() -> Result<(), Box<dyn Error>> {
    smol::block_on(start())
}

async fn start() -> Result<(), Box<dyn Error>> {
    let nodes = std::env::var("REDLOCK_NODES").unwrap_or_else(|_| "redis://localhost".into());
    let redlock = Redlock::connect(parse_list(&nodes)?).await?;
    let workers: Vec<_> = (0..WORKERS).map(|worker| smol::spawn(run(worker, redlock.clone()))).collect();
    for worker in workers {
        worker.await?;
    }
    redlock.close().await;
    Ok(())
}

async fn run(worker: u32, redlock: Redlock) -> Result<(), AcquireError> {
    for account in ACCOUNTS {
        let booked = redlock
            .acquire(account)
            .ttl(Duration::from_secs(3))
            .wait(Duration::from_secs(60))
            .auto_renew(Duration::from_secs(30))
            .hold(async |guard| book(worker, guard).await)
            .await;
        match booked {
            Ok(amount) => println!("worker {worker} booked {amount} on {account}"),
            Err(HoldError::NotAcquired(error)) => return Err(error),
            // Others may have worked on it meanwhile: nothing of this counts.
            Err(error) => println!("worker {worker} throws its work on {account} away: {error}"),
        }
    }
    Ok(())
}

async fn book(worker: u32, guard: &Guard) -> u32 {
    println!("worker {worker} has {} for at least {:?}", guard.resource(), guard.remaining());
    smol::Timer::after(Duration::from_millis(200)).await;
    worker * 10
}
