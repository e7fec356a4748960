//! Votes, and what they add up to.

/// The number of nodes, and how many of them make a decision (R3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quorum {
    nodes: u8,
    needed: u8,
}

impl Quorum {
    /// A majority of so many configured nodes, connected or not: N/2 + 1.
    #[must_use]
    pub const fn majority(nodes: u8) -> Self {
        Self { nodes, needed: nodes / 2 + 1 }
    }

    /// Another number than the majority. Below it two owners can hold at once: it exists so that checkers can be checked.
    #[must_use]
    pub const fn planted(nodes: u8, needed: u8) -> Self {
        Self { nodes, needed }
    }

    /// The number of configured nodes.
    #[must_use]
    pub const fn nodes(self) -> u8 {
        self.nodes
    }

    /// How many must say yes.
    #[must_use]
    pub const fn needed(self) -> u8 {
        self.needed
    }

    /// How many, once they cannot say yes, make the quorum impossible: N − quorum + 1.
    #[must_use]
    pub const fn blocking(self) -> u8 {
        (self.nodes + 1).saturating_sub(self.needed)
    }
}

/// What a node's answer to one command means, whatever the command was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The exact reply that the command gives for success (R3).
    Yes,
    /// Yes to a fenced SET: what the counters of the keys are now.
    Counters {
        /// The lowest.
        lowest: u64,
        /// The highest.
        highest: u64,
    },
    /// The command ran and did nothing: the key is another's, or gone.
    No,
    /// An error that says that the command was not applied (R4).
    NotApplied,
    /// The node refused this form of the command, not the command: another form is to be sent (R22).
    FormRefused,
    /// Not applied, and the node's connection is about to be closed since its data may have been replaced (R23).
    Replaced,
    /// An answer that leaves open whether the command was applied: a script's error after which part of it may
    /// have run (R4).
    Ambiguous,
}

/// A node's result in one round (R4). Only [`Granted`](Self::Granted) is a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vote {
    /// The node said yes.
    Granted,
    /// The node said no: the key is held by another.
    Refused,
    /// The node answered with an error; nothing was applied.
    Failed,
    /// Nothing was sent to the node.
    Unsent,
    /// Sent, without a complete answer: it may have been applied, or may be later.
    Ambiguous,
}

/// What the votes of a round add up to so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Neither is certain yet.
    Pending,
    /// A quorum granted.
    Won,
    /// No quorum can grant any more.
    Lost(RoundLoss),
}

/// Why a round was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RoundLoss {
    /// So many nodes refused that no quorum was left: somebody else holds it.
    Contended,
    /// So many nodes were faulty or silent that no quorum was left.
    NoQuorum,
    /// Refusals and faults together left no quorum.
    Mixed,
    /// The answers came too late: no validity was left.
    TooSlow,
}

/// The counted votes of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tally {
    granted: u8,
    refused: u8,
    faulty: u8,
}

impl Tally {
    /// Counts the votes of those nodes that have one; `None` is a node that may still vote.
    pub fn count(votes: impl IntoIterator<Item = Option<Vote>>) -> Self {
        let mut tally = Self::default();
        for vote in votes {
            match vote {
                Some(Vote::Granted) => tally.granted += 1,
                Some(Vote::Refused) => tally.refused += 1,
                Some(Vote::Failed | Vote::Unsent | Vote::Ambiguous) => tally.faulty += 1,
                None => {}
            }
        }
        tally
    }

    /// The decision, as early as it is certain, both ways (R5).
    #[must_use]
    pub const fn verdict(self, quorum: Quorum) -> Verdict {
        if self.granted >= quorum.needed() {
            return Verdict::Won;
        }
        let pending = quorum.nodes().saturating_sub(self.granted + self.refused + self.faulty);
        if self.granted + pending < quorum.needed() {
            return Verdict::Lost(self.reason(quorum, self.faulty));
        }
        Verdict::Pending
    }

    /// Why a round with these votes, and none to come, is lost: who was silent until now counts as faulty.
    #[must_use]
    pub const fn loss(self, quorum: Quorum) -> RoundLoss {
        let silent = quorum.nodes().saturating_sub(self.granted + self.refused + self.faulty);
        self.reason(quorum, self.faulty + silent)
    }

    /// Nodes whose answer did not matter any more are neither refusals nor faults.
    const fn reason(self, quorum: Quorum, faulty: u8) -> RoundLoss {
        let blocking = quorum.blocking();
        match (self.refused >= blocking, faulty >= blocking) {
            (true, false) => RoundLoss::Contended,
            (false, true) => RoundLoss::NoQuorum,
            (true, true) | (false, false) => RoundLoss::Mixed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    #[test]
    fn r3_b08_quorum_is_a_majority_of_the_configured_nodes() {
        for (nodes, needed) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4), (7, 4), (8, 5), (9, 5)] {
            assert_eq!(Quorum::majority(nodes).needed(), needed, "N = {nodes}");
        }
    }

    /// Every order of every combination of votes for N ≤ 5: the verdict never changes once it is certain, comes at the
    /// first vote that makes it certain, and two claims never both win.
    #[test]
    fn r5_every_vote_order_up_to_five_nodes() {
        const VOTES: [Vote; 5] = [Vote::Granted, Vote::Refused, Vote::Failed, Vote::Unsent, Vote::Ambiguous];
        for nodes in 1..=5_u8 {
            let quorum = Quorum::majority(nodes);
            for code in 0..5_usize.pow(u32::from(nodes)) {
                let votes: Vec<Vote> =
                    (0..nodes).map(|n| VOTES[code / 5_usize.pow(u32::from(n)) % 5]).collect();
                let grants = votes.iter().filter(|vote| **vote == Vote::Granted).count();
                let mut decided = None;
                // All orders matter only through how many of each kind have been seen; the code runs over all
                // sequences, so every order is one of them.
                for seen in 0..=usize::from(nodes) {
                    let tally =
                        Tally::count(votes.iter().enumerate().map(|(i, vote)| (i < seen).then_some(*vote)));
                    let so_far = votes[..seen].iter().filter(|vote| **vote == Vote::Granted).count();
                    let left = usize::from(nodes) - seen;
                    let expected_won = so_far >= usize::from(quorum.needed());
                    let expected_lost = so_far + left < usize::from(quorum.needed());
                    let verdict = tally.verdict(quorum);
                    assert_eq!(verdict == Verdict::Won, expected_won, "{votes:?} after {seen}");
                    assert_eq!(matches!(verdict, Verdict::Lost(_)), expected_lost, "{votes:?} after {seen}");
                    if let Some(won) = decided {
                        assert_eq!(won, expected_won, "{votes:?} changed its mind after {seen}");
                    }
                    if verdict != Verdict::Pending {
                        decided = Some(expected_won);
                    }
                }
                assert_eq!(decided, Some(grants >= usize::from(quorum.needed())), "{votes:?} undecided");
            }
        }
    }

    #[test]
    fn r3_two_disjoint_sets_of_grants_are_never_both_a_quorum() {
        for nodes in 1..=9_u8 {
            let quorum = Quorum::majority(nodes);
            for mine in 0..=nodes {
                assert!(mine < quorum.needed() || nodes - mine < quorum.needed(), "N = {nodes}, {mine}");
            }
        }
    }

    #[test]
    fn b52_losses_are_told_apart() {
        let loss = |votes: Vec<Vote>| {
            let quorum = Quorum::majority(u8::try_from(votes.len()).unwrap());
            Tally::count(votes.into_iter().map(Some)).loss(quorum)
        };
        use Vote::{Ambiguous, Failed, Granted, Refused, Unsent};
        assert_eq!(loss(vec![Refused, Refused, Refused]), RoundLoss::Contended);
        assert_eq!(loss(vec![Granted, Refused, Refused]), RoundLoss::Contended);
        assert_eq!(loss(vec![Failed, Unsent, Ambiguous]), RoundLoss::NoQuorum);
        assert_eq!(loss(vec![Granted, Refused, Unsent]), RoundLoss::Mixed);
        assert_eq!(loss(vec![Granted, Granted, Refused, Refused]), RoundLoss::Contended);
        assert_eq!(loss(vec![Granted, Granted, Failed, Failed]), RoundLoss::NoQuorum);
        assert_eq!(loss(vec![Granted, Granted, Refused, Failed]), RoundLoss::Mixed);
    }
}
