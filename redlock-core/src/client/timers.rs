//! What is due when: one timer per node, per lock and per operation.

use crate::time::{Deadline, Instant, TimeoutReason};
use alloc::vec::Vec;

/// Whose timer it is. The order decides among those due at one instant: locks first, since expiry wins a tie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    Claim(u64),
    Operation(u64),
    Node(u8),
    Closing,
}

/// When one timer is armed for, as its owner keeps it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// [`Instant::MAX`] where it is not armed.
    at: Instant,
    /// Where its place in the heap is written down.
    handle: u32,
}

impl Default for Slot {
    fn default() -> Self {
        Self { at: Instant::MAX, handle: 0 }
    }
}

/// All armed timers, soonest first.
#[derive(Debug, Default)]
pub(super) struct Timers {
    /// A heap with four branches at each place: it takes no memory of its own for a timer that comes and goes.
    heap: Vec<Armed>,
    /// Where each of them is, by its handle.
    places: Vec<u32>,
    /// Handles that are not in use.
    free: Vec<u32>,
    /// The nodes' by themselves: they are few, and move with every command and every reply.
    nodes: Vec<Instant>,
    /// None of them is due before this. Most are put off, which moves it only when it has passed.
    no_node_before: Instant,
    /// Whose timer is being fired, while those that are due are.
    firing: Option<Due>,
}

#[derive(Clone, Copy, Debug)]
struct Armed {
    at: Instant,
    due: Due,
    handle: u32,
}

impl Armed {
    fn is_before(&self, other: &Self) -> bool {
        self.at < other.at || (self.at == other.at && self.due < other.due)
    }
}

impl Timers {
    /// Moves the timer of `due` from where `slot` says it is to `at`.
    ///
    /// Never to `now` or before, since what is due now was dealt with and the driver must be able to wait; but while
    /// timers are fired, another one that is due stays due: whatever touches its owner meanwhile, its expiry comes before
    /// the call's input.
    pub(super) fn arm(&mut self, slot: &mut Slot, due: Due, at: Option<Instant>, now: Instant) {
        let at = self.allowed(due, at, now);
        if slot.at == at {
            return;
        }
        let before = core::mem::replace(&mut slot.at, at);
        if before == Instant::MAX {
            slot.handle = self.insert(at, due);
        } else if at == Instant::MAX {
            self.remove(slot.handle);
        } else {
            self.change(slot.handle, at);
        }
    }

    /// As [`arm`](Self::arm), the timer of a node.
    #[inline]
    pub(super) fn arm_node(&mut self, index: u8, at: Option<Instant>, now: Instant) {
        let at = self.allowed(Due::Node(index), at, now);
        self.put_node(index, at);
    }

    #[inline]
    fn allowed(&self, due: Due, at: Option<Instant>, now: Instant) -> Instant {
        match (at, self.firing) {
            (None, _) => Instant::MAX,
            (Some(at), Some(fired)) if fired != due => at,
            (Some(at), _) => at.max(now.saturating_add_nanos(1)),
        }
    }

    fn put_node(&mut self, index: u8, at: Instant) {
        let place = usize::from(index);
        if self.nodes.len() <= place {
            self.nodes.resize(place + 1, Instant::MAX);
        }
        if let Some(armed) = self.nodes.get_mut(place) {
            *armed = at;
        }
        self.no_node_before = self.no_node_before.min(at);
    }

    /// When the first node's timer is due; [`Instant::MAX`] where none is armed.
    fn first_node_at(&self) -> Instant {
        Instant::from_nanos(self.nodes.iter().fold(u64::MAX, |first, at| first.min(at.as_nanos())))
    }

    /// The first node's timer; where several are due at one instant, that of the first of them.
    fn first_node(&self) -> Option<(Instant, u8)> {
        let at = Some(self.first_node_at()).filter(|at| *at < Instant::MAX)?;
        let index = self.nodes.iter().position(|other| *other == at)?;
        Some((at, u8::try_from(index).unwrap_or(u8::MAX)))
    }

    // ---- the heap ----

    fn insert(&mut self, at: Instant, due: Due) -> u32 {
        let handle = self.free.pop().unwrap_or_else(|| {
            let handle = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
            self.places.push(0);
            handle
        });
        let armed = Armed { at, due, handle };
        let place = self.heap.len();
        self.heap.push(armed);
        self.rise(place, armed);
        handle
    }

    fn remove(&mut self, handle: u32) {
        let Some(place) = self.place_of(handle) else { return };
        self.free.push(handle);
        let Some(last) = self.heap.pop() else { return };
        if place < self.heap.len() {
            self.settle(place, last);
        }
    }

    fn change(&mut self, handle: u32, at: Instant) {
        let Some(place) = self.place_of(handle) else { return };
        let Some(armed) = self.heap.get(place) else { return };
        self.settle(place, Armed { at, ..*armed });
    }

    /// Puts the timer where it belongs, from this place on up or down.
    fn settle(&mut self, place: usize, armed: Armed) {
        let above = place.checked_sub(1).and_then(|below| self.heap.get(below / 4));
        if above.is_some_and(|above| armed.is_before(above)) {
            self.rise(place, armed);
        } else {
            self.sink(place, armed);
        }
    }

    fn rise(&mut self, mut place: usize, armed: Armed) {
        while let Some(below) = place.checked_sub(1) {
            let Some(above) = self.heap.get(below / 4).copied().filter(|above| armed.is_before(above)) else {
                break;
            };
            self.put(place, above);
            place = below / 4;
        }
        self.put(place, armed);
    }

    fn sink(&mut self, mut place: usize, armed: Armed) {
        loop {
            let first = place * 4 + 1;
            let branches = self.heap.get(first..self.heap.len().min(first + 4)).unwrap_or_default();
            let mut least = (place, armed);
            for (branch, below) in (first..).zip(branches) {
                if below.is_before(&least.1) {
                    least = (branch, *below);
                }
            }
            if least.0 == place {
                break;
            }
            self.put(place, least.1);
            place = least.0;
        }
        self.put(place, armed);
    }

    fn put(&mut self, place: usize, armed: Armed) {
        if let Some(slot) = self.heap.get_mut(place) {
            *slot = armed;
        }
        if let Some(slot) = self.places.get_mut(armed.handle as usize) {
            // There are fewer timers than locks, operations and nodes may be at once.
            *slot = u32::try_from(place).unwrap_or(u32::MAX);
        }
    }

    fn place_of(&self, handle: u32) -> Option<usize> {
        self.places.get(handle as usize).map(|place| *place as usize)
    }

    // ---- what is due ----

    fn first(&self) -> Option<(Instant, Due)> {
        match (self.heap.first(), self.first_node()) {
            (Some(armed), Some(node)) => Some((armed.at, armed.due).min((node.0, Due::Node(node.1)))),
            (Some(armed), None) => Some((armed.at, armed.due)),
            (None, Some(node)) => Some((node.0, Due::Node(node.1))),
            (None, None) => None,
        }
    }

    /// The next one due at or before `now`, disarmed; its owner has to forget that it was armed. To be called until it
    /// answers `None`.
    #[inline]
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Due> {
        self.firing = None;
        if self.no_node_before > now && self.heap.first().is_none_or(|armed| armed.at > now) {
            return None;
        }
        self.pop_first(now)
    }

    fn pop_first(&mut self, now: Instant) -> Option<Due> {
        self.no_node_before = self.first_node().map_or(Instant::MAX, |first| first.0);
        let (_, due) = self.first().filter(|first| first.0 <= now)?;
        if let Due::Node(index) = due {
            self.put_node(index, Instant::MAX);
        } else if let Some(first) = self.heap.first() {
            self.remove(first.handle);
        }
        self.firing = Some(due);
        Some(due)
    }

    pub(super) fn next(&self) -> Option<Deadline> {
        let other = self.heap.first().map_or((Instant::MAX, Due::Closing), |armed| (armed.at, armed.due));
        let reason = match other.1 {
            Due::Claim(_) | Due::Closing => TimeoutReason::Lock,
            Due::Operation(_) => TimeoutReason::Operation,
            Due::Node(_) => TimeoutReason::Node,
        };
        if other.0 < self.no_node_before {
            return Some(Deadline { at: other.0, reason });
        }
        // At one instant a node's comes before the end of the client, and after all others.
        let node = self.first_node_at();
        let is_node = node < other.0 || (node == other.0 && other.1 == Due::Closing);
        let (at, reason) = if is_node { (node, TimeoutReason::Node) } else { (other.0, reason) };
        (at < Instant::MAX).then_some(Deadline { at, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_due_timer_is_not_put_off_by_whatever_else_is_due() {
        let (mut timers, now) = (Timers::default(), Instant::from_secs(9));
        let mut claim = Slot::default();
        timers.arm_node(0, Some(Instant::from_secs(1)), Instant::ZERO);
        timers.arm(&mut claim, Due::Claim(7), Some(Instant::from_secs(2)), Instant::ZERO);
        assert_eq!(timers.pop_due(now), Some(Due::Node(0)));
        // The node's timer touches the claim, which says again when it is due.
        timers.arm(&mut claim, Due::Claim(7), Some(Instant::from_secs(2)), now);
        assert_eq!(timers.pop_due(now), Some(Due::Claim(7)));
        // One that was fired just now is due later at the earliest.
        claim = Slot::default();
        timers.arm(&mut claim, Due::Claim(7), Some(Instant::from_secs(2)), now);
        assert_eq!(timers.pop_due(now), None);
        assert!(timers.next().is_some_and(|deadline| deadline.at > now));
    }

    #[test]
    fn nodes_and_all_others_are_due_in_one_order() {
        let (mut timers, start) = (Timers::default(), Instant::ZERO);
        let mut claim = Slot::default();
        for (index, secs) in [(0, 5), (1, 3), (2, 4)] {
            let at = Some(Instant::from_secs(secs));
            timers.arm_node(index, at, start);
        }
        timers.arm(&mut claim, Due::Claim(1), Some(Instant::from_secs(4)), start);
        // The first one is put off, then the last one is brought forward, then disarmed.
        timers.arm_node(1, Some(Instant::from_secs(6)), start);
        timers.arm_node(0, Some(Instant::from_secs(1)), start);
        assert_eq!(timers.next().map(|deadline| deadline.at), Some(Instant::from_secs(1)));
        timers.arm_node(0, None, start);
        let now = Instant::MAX;
        assert_eq!(timers.pop_due(now), Some(Due::Claim(1)));
        assert_eq!(timers.pop_due(now), Some(Due::Node(2)));
        assert_eq!(timers.pop_due(now), Some(Due::Node(1)));
        assert_eq!(timers.pop_due(now), None);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn any_order_of_calls_is_as_by_a_sorted_set() {
        let mut rng = crate::rng::Rng::new(7);
        let (mut timers, mut sorted) = (Timers::default(), alloc::collections::BTreeSet::new());
        let mut slots = [Slot::default(); 100];
        let mut now = Instant::from_secs(1);
        for _ in 0..20_000 {
            let owner = rng.next_u32() % 100;
            let due = match owner {
                0..=6 => Due::Node(u8::try_from(owner).unwrap()),
                7..=50 => Due::Claim(u64::from(owner)),
                _ => Due::Operation(u64::from(owner)),
            };
            let slot = &mut slots[owner as usize];
            sorted.remove(&(slot.at, due));
            let after = u64::from(rng.next_u32() % 50);
            let at = (after > 9).then(|| now.saturating_add_nanos(after));
            if let Due::Node(index) = due {
                slot.at = at.unwrap_or(Instant::MAX);
                timers.arm_node(index, at, now);
            } else {
                timers.arm(slot, due, at, now);
            }
            sorted.extend(at.map(|at| (at, due)));
            assert_eq!(timers.first(), sorted.first().copied());
            if rng.next_u32().is_multiple_of(10) {
                now = now.saturating_add_nanos(u64::from(rng.next_u32() % 30));
                while let Some(due) = timers.pop_due(now) {
                    assert_eq!(sorted.pop_first().map(|first| first.1), Some(due));
                    let owner = match due {
                        Due::Node(owner) => u64::from(owner),
                        Due::Claim(owner) | Due::Operation(owner) => owner,
                        Due::Closing => panic!("nobody closes"),
                    };
                    slots[usize::try_from(owner).unwrap()] = Slot::default();
                }
                assert!(sorted.first().is_none_or(|first| first.0 > now));
            }
        }
        assert!(timers.places.len() <= 93, "places are used again");
    }
}
