//! The test kit: simulated nodes, network and clocks, for tests of code that locks, and for our own.
//!
//! In layers, each of use by itself:
//!
//! - [`Server`]: a node as a state machine, bytes in and bytes out, in the dialects of four servers, with faults.
//! - [`Network`]: carries bytes between clients of any kind and servers, in virtual time, with every fault of TCP.
//! - [`World`]: engines, servers and a network, stepped to the next thing that is due. Everything follows from one seed.
//! - [`TcpNode`]: a server behind a real socket, in real time.
//! - [`MemoryNodes`]: servers that an asynchronous adapter connects to without sockets, in whichever time it has.

mod line;
mod memory;
mod network;
mod random;
mod server;
mod tcp;
mod world;

pub use memory::MemoryNodes;
pub use network::{Arrival, Connects, Delivery, Direction, Flow, Link, Network};
pub use server::{Condition, Dialect, LogEntry, Memory, Server, SessionId};
pub use tcp::TcpNode;
pub use world::{Belief, World};
