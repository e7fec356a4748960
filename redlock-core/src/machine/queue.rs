//! Who waits for one resource inside a client, in which order: only the first contends on the wire.
//!
//! ```text
//!            join              turn                     granted
//!   nobody ────────▶ waiting ────────▶ front (contends) ────────▶ holder
//!                       ▲                  │                        │
//!                       └──── step_back ───┘     released · lost · deadline: the next one's turn
//! ```
//!
//! Waiters are known by numbers that grow in the order in which they came. No step costs more than the logarithm of how
//! many there are.

use crate::time::Instant;
use alloc::collections::BTreeSet;
use core::time::Duration;

/// The hand-offs and the time since the first of them that are had in a row, before others get a chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Row {
    hand_offs: u32,
    since: Instant,
}

/// The waiters for one resource in one client, the one of them that contends, and the lock that the client holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Queue {
    /// The lock that stands in the way of all of them: this client holds it.
    holder: Option<u64>,
    /// Who contends.
    front: Option<u64>,
    waiting: BTreeSet<u64>,
    row: Option<Row>,
    /// Before this nobody contends: a round was lost, or it is others' turn.
    not_before: Instant,
}

impl Queue {
    /// So often in a row a lock goes from one waiter to the next without a chance for other clients.
    pub const MOST_HAND_OFFS: u32 = 32;
    /// For so long.
    pub const LONGEST_ROW: Duration = Duration::from_millis(100);
    /// How long the next waiter stays back to give them one: twice the longest stagger of those who were told that it is
    /// free.
    pub const REST: Duration = Duration::from_millis(2);

    /// One more waits.
    pub fn join(&mut self, waiter: u64) {
        self.waiting.insert(waiter);
    }

    /// The first one comes where nobody waits and nothing is held: it contends at once.
    #[must_use]
    pub fn alone(waiter: u64) -> Self {
        Self { front: Some(waiter), ..Self::default() }
    }

    /// Whether somebody waits whose turn it may be next.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// A waiter leaves, whatever it was doing here. Answers whether it was the one that contended.
    pub fn leave(&mut self, waiter: u64) -> bool {
        if self.front == Some(waiter) {
            self.front = None;
            return true;
        }
        self.waiting.remove(&waiter);
        false
    }

    /// The one that contends goes back to its place: the client holds the lock, by another way than the queue.
    pub fn step_back(&mut self) {
        if let Some(front) = self.front.take() {
            self.waiting.insert(front);
        }
    }

    /// The one that contends has lost a round, and would make another one then, if it makes another one. To have lost to a
    /// lock of the client itself changes nothing.
    pub const fn lost(&mut self, retry_at: Option<Instant>) {
        if self.holder.is_none() {
            self.row = None;
            if let Some(retry_at) = retry_at {
                self.not_before = retry_at;
            }
        }
    }

    /// The one that contends, or whoever takes its place, has news of when the next round is worth it.
    pub const fn put_off(&mut self, until: Instant) {
        self.not_before = until;
    }

    /// The client holds the lock now, however it came to it.
    pub const fn granted(&mut self, lock: u64) {
        self.holder = Some(lock);
        self.not_before = Instant::ZERO;
    }

    /// A lock of the client has ended: released, lost, or past its deadline. Answers whether it was the one that stood in
    /// the way. What follows at once is a hand-off, unless it is others' turn.
    pub fn ended(&mut self, lock: u64, now: Instant) -> bool {
        if self.holder != Some(lock) {
            return false;
        }
        self.holder = None;
        if self.waiting.is_empty() || self.front.is_some() {
            self.row = None;
            return true;
        }
        let row = self.row.take().unwrap_or(Row { hand_offs: 0, since: now });
        let is_over = row.hand_offs >= Self::MOST_HAND_OFFS
            || now.saturating_duration_since(row.since) >= Self::LONGEST_ROW;
        if is_over {
            self.not_before = now.saturating_add(Self::REST);
        } else {
            self.row = Some(Row { hand_offs: row.hand_offs.saturating_add(1), ..row });
        }
        true
    }

    /// Who has to contend from now on, if it is somebody's turn, and not before when.
    pub fn turn(&mut self) -> Option<(u64, Instant)> {
        if self.holder.is_some() || self.front.is_some() {
            return None;
        }
        self.front = self.waiting.pop_first();
        self.front.map(|front| (front, self.not_before))
    }

    /// The one that contends.
    #[must_use]
    pub const fn front(&self) -> Option<u64> {
        self.front
    }

    /// The client's own lock that stands in the way.
    #[must_use]
    pub const fn holder(&self) -> Option<u64> {
        self.holder
    }

    /// Whether the lock was handed over from one waiter to the next, and by no chance for others since.
    #[must_use]
    pub const fn is_in_row(&self) -> bool {
        self.row.is_some()
    }

    /// Whether nobody waits, contends or holds.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.holder.is_none() && self.front.is_none() && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn first_come_first_served_whoever_leaves() {
        let mut queue = Queue::default();
        for waiter in 1..=5 {
            queue.join(waiter);
        }
        assert_eq!(queue.turn(), Some((1, Instant::ZERO)));
        assert_eq!(queue.turn(), None, "one at a time");
        assert!(!queue.leave(2));
        assert!(queue.leave(1));
        assert_eq!(queue.turn(), Some((3, Instant::ZERO)));
        queue.step_back();
        queue.granted(77);
        assert_eq!(queue.turn(), None, "it is held");
        assert!(!queue.ended(76, at(9)), "another one");
        assert!(queue.ended(77, at(9)));
        assert_eq!(queue.turn(), Some((3, Instant::ZERO)), "it kept its place");
        queue.leave(3);
        queue.leave(4);
        queue.leave(5);
        assert!(queue.is_idle());
    }

    /// What the waiters take over from each other until others get a chance, if each holds the lock for so long.
    fn hand_offs_in_a_row(hold: u64) -> u32 {
        let mut queue = Queue::default();
        (0..100).for_each(|waiter| queue.join(waiter));
        for lock in 0..100_u32 {
            let (waiter, not_before) = queue.turn().unwrap();
            if not_before > Instant::ZERO {
                assert_eq!(not_before, at(u64::from(lock) * hold).saturating_add(Queue::REST));
                return lock - 1;
            }
            queue.leave(waiter);
            queue.granted(u64::from(lock));
            queue.ended(u64::from(lock), at(u64::from(lock + 1) * hold));
        }
        panic!("others starve");
    }

    #[test]
    fn others_get_a_chance_after_so_many_hand_offs_or_so_long() {
        assert_eq!(hand_offs_in_a_row(0), 32);
        assert_eq!(hand_offs_in_a_row(1), 32);
        assert_eq!(hand_offs_in_a_row(10), 10);
        assert_eq!(hand_offs_in_a_row(1_000), 1);
    }

    #[test]
    fn a_lost_round_ends_the_row_and_its_delay_goes_over_to_the_next() {
        let mut queue = Queue::default();
        queue.join(1);
        queue.join(2);
        queue.granted(7);
        queue.ended(7, at(1));
        assert!(queue.is_in_row());
        assert_eq!(queue.turn(), Some((1, Instant::ZERO)));
        queue.lost(Some(at(90)));
        assert!(!queue.is_in_row());
        queue.leave(1);
        assert_eq!(queue.turn(), Some((2, at(90))));
    }
}
