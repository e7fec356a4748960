//! Simulated nodes, network and clocks: the test kit.

mod random;
mod server;
mod tcp;

pub use server::{Condition, Dialect, LogEntry, Memory, Server, SessionId};
pub use tcp::TcpNode;
