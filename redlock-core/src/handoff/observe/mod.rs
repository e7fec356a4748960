//! What operators are told: `tracing` and `metrics`, each behind its feature, from what the engine says.
//!
//! What is to be told is [noted](Observer) under the hub's mutex and [told](tell) after it: a subscriber or a recorder is a
//! user's code. Without both features nothing is noted.

#[cfg(any(feature = "metrics", feature = "tracing"))]
mod book;
#[cfg(feature = "tracing")]
mod log;
#[cfg(feature = "metrics")]
mod measure;
#[cfg(not(any(feature = "metrics", feature = "tracing")))]
mod nothing;
#[cfg(any(feature = "metrics", feature = "tracing"))]
mod something;
mod span;

#[cfg(not(any(feature = "metrics", feature = "tracing")))]
pub(super) use nothing::{News, Observer, tell};
#[cfg(any(feature = "metrics", feature = "tracing"))]
pub(super) use something::{News, Observer, tell};
pub(super) use span::Span;
