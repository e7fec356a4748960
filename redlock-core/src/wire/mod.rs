//! Commands and replies as bytes.
//!
//! Knows no quorums and no time: [`command`] encodes what is asked, [`decode`] cuts the answers out of the stream,
//! [`answer`] says what an answer means for what was asked, [`handshake`] reads who answered. RESP itself is
//! `redis-protocol`'s, behind the capped scan of [`frame`] (R21).

pub(crate) mod answer;
pub(crate) mod command;
pub(crate) mod decode;
pub(crate) mod error;
pub(crate) mod frame;
pub(crate) mod handshake;
pub(crate) mod reply;
pub(crate) mod script;
pub(crate) mod template;
pub(crate) mod violation;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod recorded_tests;
