//! One round of an extension: its votes, and what they decide (R14).

use super::quorum::{Quorum, Tally, Verdict, Vote};
use crate::time::Instant;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

/// Why an extension was not even sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExtendBar {
    /// The lock is not held any more.
    NotHeld,
    /// It would reach beyond the end of `max_hold` (R16).
    BeyondMaxHold,
    /// Too many extensions of this lock are unanswered.
    TooMany,
}

/// Why a round of an extension failed. The lock may still be held, until the deadline in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RoundFailure {
    /// The nodes' answers, or their silence within the node timeout, left no quorum.
    NoQuorum,
    /// The lock was lost, or released, before the round was decided.
    Ended,
}

/// How far the round is with one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum At {
    /// The node's connection is being made; sent if its handshake ends within the node timeout.
    Waiting,
    /// Sent, or queued to be.
    Sent,
    /// Decided for this round.
    Voted(Vote),
}

/// One round of an extension, manual or a renewal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Round {
    pub(super) number: u32,
    pub(super) renewal: bool,
    pub(super) start: Instant,
    pub(super) ttl: Duration,
    pub(super) validity: Duration,
    /// When the round is given up: its start + the node timeout.
    pub(super) until: Instant,
    pub(super) decided: bool,
    pub(super) confirmed: bool,
    pub(super) nodes: Vec<At>,
}

impl Round {
    pub(super) fn new(
        number: u32,
        renewal: bool,
        start: Instant,
        ttl: Duration,
        validity: Duration,
        until: Instant,
        nodes: u8,
    ) -> Self {
        let nodes = vec![At::Voted(Vote::Unsent); usize::from(nodes)];
        Self { number, renewal, start, ttl, validity, until, decided: false, confirmed: false, nodes }
    }

    pub(super) fn at(&self, node: usize) -> At {
        self.nodes.get(node).copied().unwrap_or(At::Voted(Vote::Unsent))
    }

    pub(super) fn set(&mut self, node: usize, at: At) {
        if let Some(slot) = self.nodes.get_mut(node) {
            *slot = at;
        }
    }

    pub(super) fn verdict(&self, quorum: Quorum) -> Verdict {
        let votes = self.nodes.iter().map(|at| match at {
            At::Waiting | At::Sent => None,
            At::Voted(vote) => Some(*vote),
        });
        Tally::count(votes).verdict(quorum)
    }

    /// Whether any node may still answer, so that the round has to be remembered.
    pub(super) fn is_open(&self) -> bool {
        !self.decided || self.nodes.contains(&At::Sent)
    }

    /// Nodes that were waited for are waited for no longer.
    pub(super) fn stop_waiting(&mut self) {
        for at in &mut self.nodes {
            if *at == At::Waiting {
                *at = At::Voted(Vote::Unsent);
            }
        }
    }
}
