//! A job that one process at a time does, however many are started: each waits for its turn, and takes over when the one
//! before it ends, dies or loses its lock.
//!
//! ```text
//! REDLOCK_NODES=redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3 cargo run -p redlock-tokio --example tokio-singleton
//! ```
#![expect(clippy::print_stdout, reason = "an example")]

use core::error::Error;
use core::time::Duration;
use redlock_tokio::{HoldError, Redlock, parse_list};

/// How often the job does its work before it is done.
const ROUNDS: u32 = 10;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let nodes = std::env::var("REDLOCK_NODES").unwrap_or_else(|_| "redis://localhost".into());
    let redlock = Redlock::builder().nodes(parse_list(&nodes)?).client_name("singleton").connect().await?;
    loop {
        println!("waiting for the job");
        // Short, so that another takes over soon when this process dies; renewed for as long as the job runs.
        let job = redlock.acquire("example:singleton").ttl(Duration::from_secs(5)).auto_renew(Duration::MAX);
        match job.wait(Duration::MAX).hold(async |_guard| work().await).await {
            Ok(()) => break,
            // It was stopped at an await: another may have begun, so it starts anew behind that.
            Err(HoldError::Lost { reason, output: None }) => println!("stopped: the lock was lost, {reason}"),
            Err(error) => return Err(error.into()),
        }
    }
    redlock.close().await;
    Ok(())
}

async fn work() {
    for round in 1..=ROUNDS {
        println!("round {round} of {ROUNDS}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
