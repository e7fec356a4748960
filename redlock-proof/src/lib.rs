//! An exhaustive model check of `redlock-core`'s quorum machines.
//!
//! What is checked is the shipped [`Claim`](redlock_core::machine::Claim), never a copy of it: the harness plays the engine
//! that carries out its effects, the network, the servers, and a rival, and tries every order of what can happen within
//! the bounds of a [`Model`](model::Model). In some both clients are candidates of an election, each with the shipped
//! [`Election`](redlock_core::machine::Election), and the harness is the adapter around it. Every state that can be reached is looked at once; in each the
//! [properties](model::Property) have to hold, and each model says what must happen in it *sometimes*, so that one which
//! proves nothing because nothing happens in it fails as well.
//!
//! A proof within bounds, not beyond: two clients, three nodes, a few ticks of time, a few faults. That the harness can see
//! a fault at all is proven by planting some ([`Fault`](model::Fault)), each of which has to be found.
//!
//! ```text
//! cargo model              every model, with the bounds that CI checks
//! cargo model --deep       larger bounds: minutes
//! cargo model extend       models by name
//! cargo model --faults     what the planted faults lead to, step by step
//! ```
#![forbid(unsafe_code)]
#![allow(
    clippy::indexing_slicing,
    reason = "a checker with arrays of fixed size and no input: a wrong index is a bug in it, and has to stop it"
)]
#![expect(clippy::exhaustive_enums, reason = "not published; a check has to see every variant")]

extern crate alloc;

pub mod fuzz;
pub mod model;
pub mod simulate;
