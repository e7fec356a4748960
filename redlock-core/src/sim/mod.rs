//! Simulated nodes, network and clocks: the test kit.

mod line;
mod network;
mod random;
mod server;
mod tcp;

pub use network::{Arrival, Connects, Delivery, Direction, Flow, Link, Network};
pub use server::{Condition, Dialect, LogEntry, Memory, Server, SessionId};
pub use tcp::TcpNode;
