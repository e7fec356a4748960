//! How far a holder's watch over its keys is with each node.
//!
//! ```text
//!            asked                  all read: ours                  push
//!   Unasked ───────▶ Asked ────────────────────────▶ Registered ────────────▶ Unasked
//!      ▲               │ │ all read, and a push came meanwhile: read again        ▲
//!      │               │ └────────────────────────────────────────────────────────┘
//!    broken            └─refused─▶ Deaf, until the connection breaks
//! ```
//!
//! A push is no more than a hint, and the end of the registration: our own extensions bring it, too. Whoever got one reads
//! again, and the claim is told only what a read has found ([`Claim::read_without_token`](super::Claim::read_without_token)).

use crate::ids::NodeId;
use alloc::vec::Vec;

/// How far it is with one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Ear {
    /// Nothing is registered there.
    Unasked,
    /// So many of the keys are still to be read; whether a push came since they were asked for.
    Asked { outstanding: u8, pushed: bool },
    /// The next change will be told.
    Registered,
    /// It tells nothing, or may not be asked.
    Deaf,
}

/// A holder's watch over the keys of its lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LossWatch {
    nodes: Vec<Ear>,
    /// How many keys the lock has: each is read by itself.
    keys: u8,
}

impl LossWatch {
    /// A watch with so many nodes, of a lock over so many keys.
    #[must_use]
    pub fn new(nodes: u8, keys: u8) -> Self {
        Self { nodes: (0..nodes).map(|_| Ear::Unasked).collect(), keys }
    }

    /// Whether the node is to be asked, as soon as it has confirmed the token.
    #[must_use]
    pub fn is_unasked(&self, node: NodeId) -> bool {
        self.nodes.get(node.index()) == Some(&Ear::Unasked)
    }

    /// The reads of all keys are queued, each registering for its key's next change.
    pub fn asked(&mut self, node: NodeId) {
        self.set(node, Ear::Asked { outstanding: self.keys, pushed: false });
    }

    /// One of the keys was read.
    pub fn read(&mut self, node: NodeId) {
        let Some(Ear::Asked { outstanding, pushed }) = self.nodes.get(node.index()).copied() else { return };
        let ear = match outstanding.saturating_sub(1) {
            0 if pushed => Ear::Unasked,
            0 => Ear::Registered,
            outstanding => Ear::Asked { outstanding, pushed },
        };
        self.set(node, ear);
    }

    /// The node does not tell changes, or not of this key.
    pub fn refused(&mut self, node: NodeId) {
        self.set(node, Ear::Deaf);
    }

    /// One of the keys has changed, or may have.
    pub fn pushed(&mut self, node: NodeId) {
        match self.nodes.get(node.index()) {
            Some(Ear::Asked { outstanding, .. }) => {
                self.set(node, Ear::Asked { outstanding: *outstanding, pushed: true });
            }
            Some(Ear::Registered) => self.set(node, Ear::Unasked),
            Some(Ear::Unasked | Ear::Deaf) | None => {}
        }
    }

    /// The connection is gone, and what was registered and asked on it.
    pub fn broken(&mut self, node: NodeId) {
        self.set(node, Ear::Unasked);
    }

    fn set(&mut self, node: NodeId, ear: Ear) {
        if let Some(place) = self.nodes.get_mut(node.index()) {
            *place = ear;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId::new(0);

    #[test]
    fn a_push_at_any_moment_is_followed_by_a_read() {
        for pushed_after in 0..=2 {
            let mut watch = LossWatch::new(1, 2);
            watch.asked(NODE);
            for read in 0..2 {
                if read == pushed_after {
                    watch.pushed(NODE);
                }
                assert!(!watch.is_unasked(NODE), "one read of a key at a time");
                watch.read(NODE);
            }
            assert_eq!(watch.is_unasked(NODE), pushed_after < 2);
            watch.pushed(NODE);
            assert!(watch.is_unasked(NODE));
        }
    }

    #[test]
    fn a_deaf_node_is_asked_again_after_its_connection_broke() {
        let mut watch = LossWatch::new(1, 1);
        watch.asked(NODE);
        watch.refused(NODE);
        watch.read(NODE);
        watch.pushed(NODE);
        assert!(!watch.is_unasked(NODE));
        watch.broken(NODE);
        assert!(watch.is_unasked(NODE));
        watch.pushed(NODE);
        watch.read(NODE);
        assert!(watch.is_unasked(NODE));
    }
}
