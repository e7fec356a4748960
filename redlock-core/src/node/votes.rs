//! What a node has answered to the commands that ask for its vote, counted for operators.

use crate::machine::{Answer, Verb};

/// How often a node granted, refused and failed the commands that ask for its vote (acquires, extensions, repairs), since the
/// client was made. Releases are no votes.
///
/// For graphs and alerts; the machines do not read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VoteCounts {
    /// It did what was asked.
    pub granted: u64,
    /// Somebody else's token was there, or ours was not.
    pub refused: u64,
    /// It answered with an error.
    pub failed: u64,
    /// Its connection was lost, or given up, before it answered.
    pub unanswered: u64,
}

impl VoteCounts {
    pub(crate) fn count(&mut self, verb: Verb, answer: Answer) {
        let counter = match answer {
            Answer::Yes | Answer::Counters { .. } => &mut self.granted,
            Answer::No => &mut self.refused,
            Answer::NotApplied | Answer::Ambiguous | Answer::Replaced => &mut self.failed,
            // It is asked again at once, in another form.
            Answer::FormRefused => return,
        };
        if is_vote(verb) {
            *counter = counter.saturating_add(1);
        }
    }

    /// What was counted since `earlier`.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            granted: self.granted.saturating_sub(earlier.granted),
            refused: self.refused.saturating_sub(earlier.refused),
            failed: self.failed.saturating_sub(earlier.failed),
            unanswered: self.unanswered.saturating_sub(earlier.unanswered),
        }
    }

    pub(crate) fn broken(&mut self, verb: Verb) {
        if is_vote(verb) {
            self.unanswered = self.unanswered.saturating_add(1);
        }
    }
}

const fn is_vote(verb: Verb) -> bool {
    match verb {
        Verb::Set | Verb::Extend { .. } | Verb::Repair { .. } => true,
        // The second half of an answer that was counted, and no vote.
        Verb::Raise { .. } | Verb::Release => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn votes_are_counted_and_releases_are_not() {
        let mut votes = VoteCounts::default();
        votes.count(Verb::Set, Answer::Yes);
        votes.count(Verb::Set, Answer::Counters { lowest: 1, highest: 1 });
        votes.count(Verb::Set, Answer::No);
        votes.count(Verb::Set, Answer::NotApplied);
        votes.count(Verb::Set, Answer::FormRefused);
        votes.count(Verb::Release, Answer::Yes);
        votes.broken(Verb::Set);
        votes.broken(Verb::Release);
        assert_eq!(votes, VoteCounts { granted: 2, refused: 1, failed: 1, unanswered: 1 });
    }
}
