//! The model: states, actions, properties, the search, and the configurations.

mod actions;
mod candidate;
mod configs;
mod faults;
mod models;
mod properties;
mod search;
mod state;
mod step;
mod table;
mod trace;

pub use configs::{Model, Plan};
pub use faults::{Fault, Planted, planted};
pub use models::{deep_models, models};
pub use properties::{Met, Property, Violation};
pub use search::{Outcome, search};
pub use trace::Trace;
