//! Why there is no read-write lock and no semaphore: what the guide of `redlock-core` says of them, by exhaustive search.

#![allow(
    clippy::indexing_slicing,
    reason = "a checker with arrays of fixed size and no input: a wrong index is a bug in it, and has to stop it"
)]

extern crate alloc;

use alloc::collections::BTreeSet;

const NODES: usize = 5;

/// All ways in which nodes of `permits` places each can be filled by `clients` of whom each asks every node: how many
/// clients get `needed` nodes, at least and at most.
fn holders(nodes: usize, clients: u32, permits: u32, needed: usize) -> (usize, usize) {
    // Full, as all ask: those that a node chose, as bits.
    let places = permits.min(clients);
    let choices: Vec<u32> = (0..1_u32 << clients).filter(|set| set.count_ones() == places).collect();
    let mut tallies: BTreeSet<Vec<usize>> = BTreeSet::from([vec![0; clients as usize]]);
    for _ in 0..nodes {
        tallies = tallies
            .iter()
            .flat_map(|tally| {
                choices.iter().map(|set| {
                    let chosen = |client: usize| (*set >> client) & 1 == 1;
                    tally.iter().enumerate().map(|(client, has)| has + usize::from(chosen(client))).collect()
                })
            })
            .collect();
    }
    let held = |tally: &Vec<usize>| tally.iter().filter(|has| **has >= needed).count();
    let held: Vec<usize> = tallies.iter().map(held).collect();
    (held.iter().copied().min().unwrap_or(0), held.iter().copied().max().unwrap_or(0))
}

#[test]
fn two_permits_by_majorities_are_three() {
    assert_eq!(holders(NODES, 3, 2, 3).1, 3);
    // So it is with one permit that a majority is enough.
    assert_eq!(holders(NODES, 3, 1, 3).1, 1);
}

#[test]
fn a_larger_quorum_is_safe_and_leaves_permits_unused() {
    assert_eq!(holders(NODES, 3, 2, 4), (1, 2), "of three who ask, one alone may get a permit");
    assert_eq!(holders(NODES, 4, 2, 4), (0, 2), "of four, none");
    assert_eq!(holders(3, 4, 2, 4).1, 0, "with two of five nodes down, nobody ever");
    // From four permits on it takes all of five nodes.
    assert_eq!(holders(NODES, 5, 4, 4).1, 5);
    assert_eq!(holders(NODES, 5, 4, 5).1, 4);
}

/// What a node keeps of its readers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeps {
    Count,
    Names,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    Not,
    Granted,
    Refused,
    Lost,
    Released,
}

/// Three nodes. The first reader gives up and releases everywhere, also where its request was lost, since it cannot know
/// (R7); the second one reads on; and a writer comes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Room {
    /// How many readers each node counts, and which ones.
    counts: [u8; 3],
    names: [[bool; 2]; 3],
    written: [bool; 3],
    asked: [[Asked; 3]; 3],
}

const WRITER: usize = 2;

impl Room {
    fn step(&self, keeps: Keeps, client: usize, node: usize) -> Vec<Self> {
        let mut next = Vec::new();
        match self.asked[client][node] {
            Asked::Not => {
                let mut room = self.clone();
                let is_read = match keeps {
                    Keeps::Count => room.counts[node] > 0,
                    Keeps::Names => room.names[node].contains(&true),
                };
                let is_granted = !room.written[node] && (client != WRITER || !is_read);
                if is_granted && client == WRITER {
                    room.written[node] = true;
                } else if is_granted {
                    room.counts[node] += 1;
                    room.names[node][client] = true;
                }
                room.asked[client][node] = if is_granted { Asked::Granted } else { Asked::Refused };
                next.push(room);
                let mut lost = self.clone();
                lost.asked[client][node] = Asked::Lost;
                next.push(lost);
            }
            Asked::Granted | Asked::Refused | Asked::Lost if client == 0 => {
                let mut room = self.clone();
                room.counts[node] = room.counts[node].saturating_sub(1);
                room.names[node][0] = false;
                room.asked[0][node] = Asked::Released;
                next.push(room);
            }
            Asked::Granted | Asked::Refused | Asked::Lost | Asked::Released => {}
        }
        next
    }

    fn holds(&self, client: usize) -> bool {
        self.asked[client].iter().filter(|asked| **asked == Asked::Granted).count() >= 2
    }
}

/// Whether a reader and a writer ever hold it at the same time.
fn is_shared_with_a_writer(keeps: Keeps) -> bool {
    let first =
        Room { counts: [0; 3], names: [[false; 2]; 3], written: [false; 3], asked: [[Asked::Not; 3]; 3] };
    let (mut seen, mut open) = (BTreeSet::from([first.clone()]), vec![first]);
    while let Some(room) = open.pop() {
        if room.holds(1) && room.holds(WRITER) {
            return true;
        }
        for client in 0..3 {
            for node in 0..3 {
                for next in room.step(keeps, client, node) {
                    if seen.insert(next.clone()) {
                        open.push(next);
                    }
                }
            }
        }
    }
    false
}

#[test]
fn counted_readers_let_a_writer_in_and_named_ones_do_not() {
    assert!(is_shared_with_a_writer(Keeps::Count));
    assert!(!is_shared_with_a_writer(Keeps::Names));
}
