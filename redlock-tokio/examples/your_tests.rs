//! How code that locks is tested: with simulated nodes in memory and Tokio's paused time. No server, no socket, no waiting:
//! an hour takes a millisecond, and every run is the same.
//!
//! `cargo test -p redlock-tokio --example tokio-your-tests` runs the tests below; as an example there is nothing to see.

#![allow(clippy::std_instead_of_alloc, reason = "as in a program")]

use core::time::Duration;
use redlock_tokio::{HoldError, Redlock};

/// The code under test: bills once a day, in one process of many.
async fn bill(redlock: &Redlock, work: Duration) -> &'static str {
    let lock = redlock.acquire("billing").ttl(Duration::from_secs(10)).wait(Duration::ZERO);
    let billed =
        lock.auto_renew(Duration::from_secs(3600)).hold(async |_guard| tokio::time::sleep(work).await);
    match billed.await {
        Ok(()) => "billed",
        Err(HoldError::NotAcquired(error)) if error.kind.is_contended() => "another process does it",
        Err(HoldError::NotAcquired(error)) if error.kind.is_no_quorum() => "too few nodes",
        Err(HoldError::Lost { .. }) => "stopped in the middle",
        Err(_) => "failed",
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn core::error::Error>> {
    let redlock = Redlock::connect(["redis://127.0.0.1"]).await?;
    bill(&redlock, Duration::from_secs(1)).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use redlock_core::sim::{Dialect, MemoryNodes, Server};
    use redlock_tokio::{Clock, Instant};

    /// Tokio's time, which stands still while there is something to do, and jumps to the next timer when there is not.
    #[derive(Clone)]
    struct Paused(tokio::time::Instant);

    impl Clock for Paused {
        fn now(&self) -> Instant {
            Instant::ZERO.saturating_add(self.0.elapsed())
        }
    }

    fn nodes() -> (MemoryNodes, Paused) {
        let clock = Paused(tokio::time::Instant::now());
        let servers = (0..3).map(|seed| Server::new(Dialect::Valkey9, seed));
        (MemoryNodes::new(servers, clock.clone(), |span| Box::pin(tokio::time::sleep(span))), clock)
    }

    async fn client((nodes, clock): &(MemoryNodes, Paused)) -> Redlock {
        let builder = Redlock::builder().nodes(nodes.urls()).transport(nodes.clone()).clock(clock.clone());
        builder.connect().await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn an_hour_of_work_is_done_by_one_of_two() {
        let nodes = nodes();
        let (here, there) = (client(&nodes).await, client(&nodes).await);
        let work = Duration::from_secs(3000);
        let (first, second) = tokio::join!(bill(&here, work), bill(&there, work));
        let mut said = [first, second];
        said.sort_unstable();
        assert_eq!(said, ["another process does it", "billed"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_majority_that_dies_in_the_middle_stops_the_work() {
        let nodes = nodes();
        let redlock = client(&nodes).await;
        let work = bill(&redlock, Duration::from_secs(3000));
        let trouble = async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            nodes.0.kill(0);
            nodes.0.kill(1);
        };
        let (said, ()) = tokio::join!(work, trouble);
        assert_eq!(said, "stopped in the middle");
        assert_eq!(bill(&redlock, Duration::ZERO).await, "too few nodes");
    }
}
