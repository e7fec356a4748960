//! Three simulated nodes on real sockets, of different dialects; for the tests of both asynchronous adapters.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::std_instead_of_core,
    unreachable_pub,
    reason = "a test may fail by panicking, and may look at the time"
)]

use redlock_core::sim::{Dialect, Server, TcpNode};
use std::thread;
use std::time::{Duration, Instant};

pub struct Nodes(pub Vec<TcpNode>);

impl Nodes {
    pub fn start() -> Self {
        let node = |seed| TcpNode::start(Server::new(Dialect::ALL[seed % Dialect::ALL.len()], seed as u64));
        Self((0..3).map(|seed| node(seed).unwrap()).collect())
    }

    pub fn urls(&self) -> Vec<String> {
        self.0.iter().map(|node| format!("redis://{}", node.addr())).collect()
    }

    #[track_caller]
    pub fn has_no_key(&self) {
        let until = Instant::now() + Duration::from_secs(10);
        for node in &self.0 {
            while node.with(|server, now| !server.keys(now).is_empty()) {
                assert!(Instant::now() < until, "keys are left");
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
}
