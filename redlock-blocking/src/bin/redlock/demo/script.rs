//! What happens to the nodes, and when.

use core::time::Duration;
use std::io;

use redlock_core::sim::{Memory, TcpNode};

/// The ttl of every lock in the demo. Short, so that a node that must stay away for one does not take all day.
pub(crate) const TTL: Duration = Duration::from_secs(1);

/// A part of the tour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Healthy,
    MinorityDead,
    MajorityDead,
    Back,
    OneAway,
    BackEmpty,
}

/// What is known of a node, to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Up,
    Dead,
    /// Up, and without what it knew before.
    Emptied,
}

impl Phase {
    pub(crate) const ALL: [Self; 6] =
        [Self::Healthy, Self::MinorityDead, Self::MajorityDead, Self::Back, Self::OneAway, Self::BackEmpty];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Healthy => "all five nodes are up",
            Self::MinorityDead => "two of five are dead: it goes on",
            Self::MajorityDead => "three of five are dead: refused, since nobody can know",
            Self::Back => "they are back with their memory: it goes on",
            Self::OneAway => "one is dead, and stays away for one ttl",
            Self::BackEmpty => "it is back with its memory lost: no lock of then is left",
        }
    }

    /// How long it takes where the whole tour takes `total`.
    pub(crate) fn length(self, total: Duration) -> Duration {
        let per_mille = match self {
            Self::Healthy | Self::MinorityDead => 190,
            Self::MajorityDead => 150,
            // Longer than the one before: clients look for a dead node ever more rarely.
            Self::Back => 220,
            Self::OneAway | Self::BackEmpty => 125,
        };
        let length = total.saturating_mul(per_mille) / 1_000;
        // A node that comes back sooner would have forgotten a lock that is still held.
        if self == Self::OneAway { length.max(TTL.saturating_add(TTL / 10)) } else { length }
    }

    /// How the nodes are in it.
    pub(crate) const fn health(self) -> [Health; 5] {
        use Health::{Dead, Emptied, Up};
        match self {
            Self::Healthy | Self::Back => [Up; 5],
            Self::MinorityDead => [Up, Up, Up, Dead, Dead],
            Self::MajorityDead => [Up, Up, Dead, Dead, Dead],
            Self::OneAway => [Dead, Up, Up, Up, Up],
            Self::BackEmpty => [Emptied, Up, Up, Up, Up],
        }
    }

    /// Makes the nodes so, from how they were in the phase before.
    ///
    /// # Errors
    ///
    /// Those of binding the port of a node that comes back.
    pub(crate) fn begin(self, nodes: &[TcpNode]) -> io::Result<()> {
        for (node, health) in nodes.iter().zip(self.health()) {
            match health {
                Health::Dead => node.kill(),
                Health::Up => node.revive(Memory::Keep)?,
                Health::Emptied => node.revive(Memory::Lose)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_lost_its_memory_was_away_for_a_ttl_and_is_alone() {
        for (before, phase) in Phase::ALL.iter().zip(Phase::ALL.iter().skip(1)) {
            let emptied: Vec<usize> =
                (0..5).filter(|node| phase.health()[*node] == Health::Emptied).collect();
            assert!(emptied.len() <= 1, "less than a quorum may forget");
            for node in emptied {
                assert_eq!(before.health()[node], Health::Dead);
                for seconds in [1, 12, 25] {
                    assert!(before.length(Duration::from_secs(seconds)) > TTL);
                }
            }
        }
    }

    #[test]
    fn the_tour_takes_as_long_as_was_asked() {
        for seconds in [10, 12, 25] {
            let total = Duration::from_secs(seconds);
            assert_eq!(Phase::ALL.iter().map(|phase| phase.length(total)).sum::<Duration>(), total);
        }
    }
}
