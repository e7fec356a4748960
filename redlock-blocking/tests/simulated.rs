//! The behaviours, with simulated nodes behind real sockets.

mod suite;

behaviours!(simulated_nodes);
