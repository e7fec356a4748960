use super::*;
use alloc::collections::VecDeque;
use alloc::vec;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

const DELAY: (Duration, Duration) = (ms(50), ms(250));
const NODES: u8 = 3;
const HALF: u32 = u32::MAX / 2 + 1;

const fn node(index: u8) -> NodeId {
    NodeId::new(index)
}

/// One that has lost a round at 0 ms and is told by so many nodes that the key is held for 1 s.
fn armed(nodes: u8) -> Watch {
    let mut watch = Watch::new(Quorum::majority(NODES), DELAY);
    watch.lost(at(100));
    for index in 0..nodes {
        watch.asked(node(index), HALF, at(0));
        watch.read(node(index), Reading::Held(Some(ms(1_000))), HALF, at(0));
    }
    watch
}

#[test]
fn a_quorum_of_pushes_makes_a_round_at_once() {
    let mut watch = armed(3);
    assert_eq!(watch.due(), Some(at(1_001)), "the fallback: the second smallest ttl and a millisecond");
    watch.pushed(node(0), HALF, at(10));
    assert_eq!(watch.due(), Some(at(11)), "one is no quorum: it is read again");
    watch.pushed(node(1), HALF, at(10));
    assert_eq!(watch.due(), Some(at(10)));
    assert_eq!(watch.timeout(HALF, at(10)), Look::Attempt);
}

/// It was told by all, made a round, and lost it: others wait, too. Then it is told that somebody holds it, and by two nodes
/// that this is over.
fn collided() -> Watch {
    let mut watch = armed(3);
    (0..2).for_each(|index| watch.pushed(node(index), HALF, at(10)));
    assert_eq!(watch.timeout(HALF, at(10)), Look::Attempt);
    watch.lost(at(100));
    for index in 0..3 {
        watch.asked(node(index), HALF, at(11));
        watch.read(node(index), Reading::Held(Some(ms(1_000))), HALF, at(11));
    }
    (0..2).for_each(|index| watch.pushed(node(index), HALF, at(20)));
    watch
}

#[test]
fn after_a_collision_it_stays_back_and_looks_again_before_its_round() {
    let mut watch = collided();
    let due = Instant::from_micros(20_500);
    assert_eq!(watch.due(), Some(due), "half of a millisecond");
    assert_eq!(watch.timeout(HALF, due), Look::Read(vec![node(0), node(1)]));
    for index in 0..2 {
        watch.asked(node(index), HALF, due);
    }
    watch.read(node(0), Reading::Gone, HALF, at(21));
    assert_ne!(watch.timeout(HALF, at(21)), Look::Attempt);
    watch.read(node(1), Reading::Gone, HALF, at(21));
    assert_eq!(watch.timeout(HALF, at(21)), Look::Attempt, "and no other delay");
}

#[test]
fn after_a_collision_a_quorum_is_read_and_the_others_when_that_is_in_doubt() {
    let mut watch = collided();
    watch.pushed(node(2), HALF, at(20));
    let Look::Read(nodes) = watch.timeout(1, at(21)) else { panic!("it looks again") };
    assert_eq!(nodes, [node(1), node(2)]);
    for id in &nodes {
        watch.asked(*id, HALF, at(21));
        watch.read(*id, Reading::Held(Some(ms(500))), HALF, at(21));
    }
    assert_eq!(watch.timeout(HALF, at(100)), Look::Wait, "node 0 is left alone");
    // Of the two that tell, one is never deleted.
    watch.pushed(node(1), HALF, at(100));
    assert_eq!(watch.timeout(HALF, at(102)), Look::Read(vec![node(0), node(1)]));
    for index in 0..2 {
        watch.asked(node(index), HALF, at(102));
        watch.read(node(index), Reading::Gone, HALF, at(102));
    }
    let due = watch.due().unwrap();
    assert_eq!(watch.timeout(HALF, due), Look::Attempt);
}

#[test]
fn who_was_slower_makes_no_round() {
    let mut watch = collided();
    assert_eq!(watch.timeout(HALF, at(21)), Look::Read(vec![node(0), node(1)]));
    for index in 0..2 {
        watch.asked(node(index), HALF, at(21));
        watch.read(node(index), Reading::Held(Some(ms(500))), HALF, at(21));
    }
    assert_eq!(watch.timeout(HALF, at(400)), Look::Wait);
    assert_eq!(watch.due(), Some(at(522)), "told again, and until the ends of those ttls");
}

#[test]
fn one_push_is_read_again_and_no_round() {
    let mut watch = armed(3);
    watch.pushed(node(0), HALF, at(10));
    assert_eq!(watch.timeout(HALF, at(11)), Look::Read(vec![node(0)]));
    watch.asked(node(0), HALF, at(11));
    watch.read(node(0), Reading::Gone, HALF, at(11));
    assert_eq!(watch.timeout(HALF, at(12)), Look::Wait);
    watch.pushed(node(2), HALF, at(13));
    assert_eq!(watch.timeout(HALF, at(14)), Look::Attempt);
}

#[test]
fn a_push_for_what_was_not_there_says_that_it_is() {
    let mut watch = armed(1);
    watch.asked(node(1), HALF, at(0));
    watch.read(node(1), Reading::Gone, HALF, at(0));
    watch.pushed(node(1), HALF, at(5));
    watch.pushed(node(0), HALF, at(5));
    let due = Instant::from_micros(6_500);
    assert_eq!(watch.due(), Some(due), "spread: somebody else was after it");
    assert_eq!(watch.timeout(HALF, due), Look::Read(vec![node(0), node(1)]));
}

#[test]
fn r9_with_fewer_than_a_quorum_told_the_retry_delay_runs() {
    let mut watch = armed(1);
    assert!(!watch.is_told());
    assert_eq!(watch.due(), Some(at(100)));
    assert_eq!(watch.timeout(0, at(100)), Look::Attempt);

    let mut watch = armed(2);
    assert!(watch.is_told());
    watch.broken(node(1), 0, at(300));
    assert_eq!(watch.due(), Some(at(350)), "from the moment on from which too few tell");
    watch.asked(node(1), 0, at(310));
    watch.read(node(1), Reading::Held(Some(ms(500))), 0, at(311));
    assert_eq!(watch.due(), Some(at(1_001)), "the smaller one is not enough");
    watch.asked(node(2), 0, at(311));
    watch.read(node(2), Reading::Refused, 0, at(311));
    assert!(watch.is_told());
}

#[test]
fn a_key_without_an_end_has_no_bound() {
    let mut watch = armed(0);
    for index in 0..3 {
        watch.asked(node(index), 0, at(0));
        watch.read(node(index), Reading::Held(None), 0, at(0));
    }
    assert_eq!(watch.due(), None);
}

#[test]
fn the_end_of_the_ttls_is_as_good_as_a_push() {
    let mut watch = armed(3);
    assert_eq!(watch.timeout(HALF, at(1_000)), Look::Wait);
    assert_eq!(watch.timeout(HALF, at(1_001)), Look::Wait);
    assert_eq!(watch.due(), Some(at(1_001)));
    assert_eq!(watch.timeout(HALF, at(1_001)), Look::Attempt);
}

#[test]
fn the_stagger_doubles_with_every_round_that_was_lost_though_a_quorum_was_believed_free() {
    let mut watch = Watch::new(Quorum::majority(NODES), DELAY);
    let mut now = at(0);
    let mut stays = |watch: &mut Watch, is_lost: bool| {
        if is_lost {
            watch.lost(now.saturating_add(ms(100)));
        }
        for index in 0..2 {
            watch.asked(node(index), u32::MAX, now);
            watch.read(node(index), Reading::Gone, u32::MAX, now);
        }
        let due = watch.due().unwrap();
        let stayed = due.saturating_duration_since(now);
        now = due;
        assert_eq!(watch.timeout(0, now), Look::Attempt);
        // Less than a nanosecond of it is lost to the largest random number.
        stayed.as_micros().div_ceil(10) * 10
    };
    let staggers: Vec<_> = (0..9).map(|_| stays(&mut watch, true)).collect();
    assert_eq!(
        staggers,
        [0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 50_000, 50_000],
        "microseconds, up to the shortest delay"
    );
    // Each owner that is seen without a collision takes a quarter of it; the one that was collided with does not.
    for _ in 0..2 {
        for (index, reading) in [(0, Reading::Gone), (1, Reading::Held(None)), (0, Reading::Held(None))] {
            watch.asked(node(index), 0, at(0));
            watch.read(node(index), reading, 0, at(0));
        }
    }
    assert_eq!(stays(&mut watch, false), 37_500);
    let mut watch = collided();
    for _ in 0..3 {
        for index in 0..3 {
            watch.asked(node(index), 0, at(30));
            watch.read(node(index), Reading::Gone, 0, at(30));
        }
        for index in 0..3 {
            watch.asked(node(index), 0, at(30));
            watch.read(node(index), Reading::Held(None), 0, at(30));
        }
    }
    (0..2).for_each(|index| watch.pushed(node(index), HALF, at(40)));
    assert_eq!(watch.due(), Some(at(40)), "and below half a millisecond it is none");
}

/// The same numbers for the same seed.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn random(&mut self) -> u32 {
        u32::try_from(self.next() >> 32).unwrap()
    }
}

/// A server with one key, one connection, and what is under way on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Server {
    /// Whether the key is there, and until when.
    key: Option<Option<Instant>>,
    is_registered: bool,
    asked: VecDeque<()>,
    said: VecDeque<Option<Reading>>,
}

impl Server {
    /// The key changes: who registered is told, once.
    fn change(&mut self, key: Option<Option<Instant>>) {
        self.key = key;
        if core::mem::take(&mut self.is_registered) {
            self.said.push_back(None);
        }
    }

    fn expire(&mut self, now: Instant) {
        if matches!(self.key, Some(Some(until)) if now >= until) {
            self.change(None);
        }
    }

    fn serve(&mut self, now: Instant) {
        self.expire(now);
        if self.asked.pop_front().is_some() {
            let left = |until: Option<Instant>| until.map(|until| until.saturating_duration_since(now));
            self.said.push_back(Some(self.key.map_or(Reading::Gone, |until| Reading::Held(left(until)))));
            self.is_registered = true;
        }
    }
}

/// Servers and one waiter, which is told by pushes alone: its retry delay is longer than any trace.
struct Trace {
    servers: Vec<Server>,
    watch: Watch,
    now: Instant,
    dice: Dice,
    steps: Vec<alloc::string::String>,
}

impl Trace {
    fn ask(&mut self, index: usize) {
        self.servers[index].asked.push_back(());
        let random = self.dice.random();
        self.watch.asked(node(u8::try_from(index).unwrap()), random, self.now);
    }

    /// Delivers the oldest thing that a server has said.
    fn deliver(&mut self, index: usize) {
        let id = node(u8::try_from(index).unwrap());
        let random = self.dice.random();
        match self.servers[index].said.pop_front() {
            Some(Some(reading)) => self.watch.read(id, reading, random, self.now),
            Some(None) => self.watch.pushed(id, random, self.now),
            None => {}
        }
    }

    fn is_free(&self) -> bool {
        self.servers.iter().filter(|server| server.key.is_none()).count() >= 2
    }

    /// Fires what is due by then. Answers whether a round is made.
    fn pass(&mut self, until: Instant) -> bool {
        while let Some(due) = self.watch.due().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            for server in &mut self.servers {
                server.expire(self.now);
            }
            let random = self.dice.random();
            match self.watch.timeout(random, self.now) {
                Look::Attempt => return true,
                Look::Read(nodes) => nodes.iter().for_each(|node| self.ask(node.index())),
                Look::Wait => {}
            }
        }
        self.now = self.now.max(until);
        false
    }

    fn step(&mut self) -> bool {
        let index = usize::try_from(self.dice.below(3)).unwrap();
        let what = self.dice.below(10);
        self.steps.push(alloc::format!("{:?} node {index} step {what}", self.now));
        match what {
            0 | 1 => self.servers[index].change(None),
            2 if self.servers[index].key.is_none() => {
                let until = self.now.saturating_add(ms(self.dice.below(20) + 1));
                self.servers[index].change(Some(Some(until)));
            }
            // An extension.
            2 => {
                let until = self.now.saturating_add(ms(self.dice.below(40) + 1));
                self.servers[index].change(Some(Some(until)));
            }
            3..=5 => self.servers[index].serve(self.now),
            6..=8 => self.deliver(index),
            _ => {
                let until = self.now.saturating_add(Duration::from_micros(self.dice.below(3_000)));
                if self.pass(until) {
                    return true;
                }
                let now = self.now;
                self.servers.iter_mut().for_each(|server| server.expire(now));
            }
        }
        false
    }
}

/// All orders of deletion, expiry, extension, push and read that the seeds come to: once nothing happens any more and a quorum
/// is free, the waiter makes a round, within its staggers, and not by the retry delay.
#[test]
fn no_wake_up_is_lost() {
    for seed in 0..20_000 {
        let mut watch =
            Watch::new(Quorum::majority(NODES), (Duration::from_secs(3_600), Duration::from_secs(3_600)));
        watch.lost(Instant::from_secs(3_600));
        // Half of them have met others before.
        watch.stagger = ms(seed % 2 * 4);
        let servers = (0..3).map(|_| Server { key: Some(None), ..Server::default() }).collect();
        let mut trace = Trace { servers, watch, now: at(0), dice: Dice(seed), steps: Vec::new() };
        for index in 0..3 {
            trace.ask(index);
        }
        let made = (0..trace.dice.below(60)).any(|_| trace.step());
        if made {
            continue;
        }
        // Everything is answered and told, and what is left expires.
        let quiet = trace.now.saturating_add(ms(200));
        let mut made = false;
        while !made && trace.now < quiet {
            for index in 0..3 {
                trace.servers[index].serve(trace.now);
                while !trace.servers[index].said.is_empty() {
                    trace.deliver(index);
                }
            }
            let until = trace.now.saturating_add(Duration::from_micros(500));
            made = trace.pass(until);
        }
        assert!(made || !trace.is_free(), "seed {seed}: {:?}\n{:#?}", trace.watch, trace.steps);
    }
}

/// Servers and a waiter, and how many changes are still to come: a state of the search below.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    servers: Vec<Server>,
    watch: Watch,
    now: Instant,
    changes: u8,
}

impl State {
    fn ask(&mut self, index: usize) {
        self.servers[index].asked.push_back(());
        self.watch.asked(node(u8::try_from(index).unwrap()), HALF, self.now);
    }

    /// `tells` is false for a node that refuses to register.
    fn deliver(&mut self, index: usize, tells: bool) {
        let id = node(u8::try_from(index).unwrap());
        match self.servers[index].said.pop_front() {
            Some(Some(reading)) => {
                let reading = if tells { reading } else { Reading::Refused };
                self.watch.read(id, reading, HALF, self.now);
            }
            Some(None) if tells => self.watch.pushed(id, HALF, self.now),
            Some(None) | None => {}
        }
    }

    /// The connection breaks, and what is under way on it is lost, pushes too; then there is a new one. A node that
    /// restarts has also forgotten the key.
    fn reconnect(&mut self, index: usize, restarts: bool) {
        let key = if restarts { None } else { self.servers[index].key };
        self.servers[index] = Server { key, ..Server::default() };
        self.watch.broken(node(u8::try_from(index).unwrap()), HALF, self.now);
        self.ask(index);
    }

    /// What is due next. Answers whether a round is made.
    fn fire(&mut self) -> bool {
        let Some(due) = self.watch.due() else { return false };
        self.now = self.now.max(due);
        match self.watch.timeout(HALF, self.now) {
            Look::Attempt => return true,
            Look::Read(nodes) => nodes.iter().for_each(|node| self.ask(node.index())),
            Look::Wait => {}
        }
        false
    }

    /// All states that one step leads to; none after a round.
    fn next(&self, refuses: Option<usize>) -> Vec<Self> {
        let mut next = Vec::new();
        let mut step = |change: u8, step: &dyn Fn(&mut Self) -> bool| {
            if change > self.changes {
                return;
            }
            let mut state = self.clone();
            state.changes -= change;
            if !step(&mut state) && state != *self {
                next.push(state);
            }
        };
        let mut each = |index: usize| {
            let tells = refuses != Some(index);
            step(0, &|state| {
                state.servers[index].serve(state.now);
                false
            });
            step(0, &|state| {
                state.deliver(index, tells);
                false
            });
            let is_held = self.servers[index].key.is_some();
            step(1, &|state| {
                state.servers[index].change(if is_held { None } else { Some(None) });
                false
            });
            // An extension, or another holder in its place.
            if is_held {
                step(1, &|state| {
                    state.servers[index].change(Some(None));
                    false
                });
            }
            for restarts in [false, true] {
                step(1, &|state| {
                    state.reconnect(index, restarts);
                    false
                });
            }
        };
        (0..3).for_each(&mut each);
        // The retry delay is no step of it: nothing may depend on it.
        if self.watch.due().is_some_and(|due| due < FAR) {
            step(0, &Self::fire);
        }
        next
    }

    /// Everything that is under way arrives, and nothing else happens. Answers whether a round is made before the delay.
    fn settles(mut self, refuses: Option<usize>) -> bool {
        for _ in 0..50 {
            for index in 0..3 {
                self.servers[index].serve(self.now);
                while !self.servers[index].said.is_empty() {
                    self.deliver(index, refuses != Some(index));
                }
            }
            if self.watch.due().is_some_and(|due| due < FAR) && self.fire() {
                return true;
            }
        }
        false
    }
}

/// When the retry delay would come.
const FAR: Instant = Instant::from_secs(3_600);

/// *All* orders in which the reads of three nodes are executed and answered, and keys are deleted, set, extended, and nodes
/// cut off and restarted, so many times in all. Wherever that leads, once nothing happens any more: where those nodes that tell
/// are free in a quorum, the waiter makes a round, and not by the retry delay.
fn no_wake_up_is_lost_in_any_order(changes: u8, refuses: Option<usize>, stagger: Duration) -> usize {
    let mut watch =
        Watch::new(Quorum::majority(NODES), (Duration::from_secs(3_600), Duration::from_secs(3_600)));
    watch.lost(FAR);
    watch.stagger = stagger;
    let servers = (0..3).map(|_| Server { key: Some(None), ..Server::default() }).collect();
    let mut first = State { servers, watch, now: at(0), changes };
    (0..3).for_each(|index| first.ask(index));
    let mut seen = alloc::collections::BTreeSet::new();
    let mut open = vec![first];
    let hash = |state: &State| {
        use core::hash::BuildHasher as _;
        hasher().hash_one(state)
    };
    while let Some(state) = open.pop() {
        if !seen.insert(hash(&state)) {
            continue;
        }
        let is_free = |index: &usize| refuses != Some(*index) && state.servers[*index].key.is_none();
        if (0..3).filter(is_free).count() >= 2 {
            assert!(state.clone().settles(refuses), "no round: {state:#?}");
        }
        open.extend(state.next(refuses));
    }
    seen.len()
}

/// One that gives the same numbers each time.
fn hasher() -> impl core::hash::BuildHasher {
    core::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default()
}

#[test]
fn no_wake_up_is_lost_in_any_order_of_three_changes() {
    for stagger in [ms(0), ms(4)] {
        let states = no_wake_up_is_lost_in_any_order(3, None, stagger);
        assert!(states > 10_000, "only {states} states");
    }
}

#[test]
fn no_wake_up_is_lost_where_a_node_cannot_tell() {
    for refuses in 0..3 {
        for stagger in [ms(0), ms(4)] {
            let states = no_wake_up_is_lost_in_any_order(3, Some(refuses), stagger);
            assert!(states > 1_000, "only {states} states");
        }
    }
}
