//! What happened, in lanes: one per client and node.

use redlock_core::Instant;
use std::fmt;

/// Whose lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// A client's.
    Client(usize),
    /// A node's.
    Node(usize),
    /// Nobody's.
    World,
}

/// The notes of one run.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    is_kept: bool,
    notes: Vec<(Instant, Lane, String)>,
}

impl Timeline {
    /// A timeline that keeps what it is told, or not.
    #[must_use]
    pub const fn new(is_kept: bool) -> Self {
        Self { is_kept, notes: Vec::new() }
    }

    /// Notes what happened. Nothing is formatted where nothing is kept.
    pub fn note(&mut self, at: Instant, lane: Lane, what: impl FnOnce() -> String) {
        if self.is_kept {
            self.notes.push((at, lane, what()));
        }
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, lane, what) in &self.notes {
            let (indent, name) = match lane {
                Lane::Client(client) => (2 + client * 3, format!("client {client}")),
                Lane::Node(node) => (20 + node * 2, format!("node {node}")),
                Lane::World => (0, "world".to_owned()),
            };
            writeln!(f, "{at:?} {:indent$}{name}: {what}", "")?;
        }
        Ok(())
    }
}
