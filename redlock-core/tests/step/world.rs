//! Three keys, two clients, one clock: a small world around `machine::Claim` alone, for random search.
//!
//! Each node is one key with an owner and an expiry. Each client has one connection to each node: requests and replies are
//! queues of their own, so that any delay can happen on either way. A connection that breaks loses its replies, but what was
//! written to it may still be executed later, in its order, or never.

use std::collections::VecDeque;
use std::time::Duration;

use redlock_core::machine::{Answer, Claim, Effect, Quorum, Reach, Terms, Verb};
use redlock_core::{Drift, Instant, NodeId};

const NODES: u8 = 3;
pub(crate) const CLIENTS: usize = 2;

/// SplitMix64 (Steele, Lea, Flood 2014, "Fast Splittable Pseudorandom Number Generators").
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// What makes the world wrong, so that the search can be shown to find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planted {
    Nothing,
    /// A quorum of one of three.
    SmallQuorum,
    /// All attempts of a client have the same token.
    SameToken,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    claim: usize,
    token: u32,
    verb: Verb,
}

/// The key of one node.
#[derive(Clone, Copy, Debug, Default)]
struct Key {
    token: u32,
    /// The last millisecond at which it is there.
    until: u64,
}

#[derive(Debug, Default)]
struct Link {
    up: bool,
    /// Not handed out yet.
    outbox: VecDeque<Request>,
    /// Handed out, not executed.
    requests: VecDeque<Request>,
    /// Executed, not read.
    replies: VecDeque<(Request, Answer)>,
}

struct Client {
    links: Vec<Link>,
    /// All claims that are not finished, and whether each is live; the newest is the last.
    claims: Vec<(usize, u32, Claim)>,
    next_attempt: u64,
    /// The process is stopped until then: it reads nothing and fires no timer.
    stopped_until: u64,
}

pub(crate) struct World {
    planted: Planted,
    pub(crate) random: Random,
    pub(crate) now: u64,
    keys: Vec<Key>,
    clients: Vec<Client>,
    /// What was written to connections that broke.
    dead: Vec<(usize, VecDeque<Request>)>,
    next_claim: usize,
    pub(crate) grants: u32,
    pub(crate) extensions: u32,
    pub(crate) repairs: u32,
    pub(crate) trace: Vec<String>,
    pub(crate) keep_trace: bool,
}

impl World {
    pub(crate) fn new(seed: u64, planted: Planted) -> Self {
        let link = || Link { up: true, ..Link::default() };
        let client = || Client {
            links: (0..NODES).map(|_| link()).collect(),
            claims: Vec::new(),
            next_attempt: 0,
            stopped_until: 0,
        };
        Self {
            planted,
            random: Random(seed),
            now: 1_000,
            keys: vec![Key::default(); usize::from(NODES)],
            clients: (0..CLIENTS).map(|_| client()).collect(),
            dead: Vec::new(),
            next_claim: 0,
            grants: 0,
            extensions: 0,
            repairs: 0,
            trace: Vec::new(),
            keep_trace: false,
        }
    }

    fn note(&mut self, text: impl FnOnce() -> String) {
        if self.keep_trace {
            self.trace.push(format!("{} {}", self.now, text()));
        }
    }

    fn instant(&self) -> Instant {
        Instant::from_millis(self.now)
    }

    /// One random event. Answers with what is wrong, if something is.
    pub(crate) fn step(&mut self) -> Option<String> {
        let client = self.random.below(CLIENTS);
        let node = self.random.below(usize::from(NODES));
        match self.random.below(200) {
            0..19 => self.pass(),
            19 => self.stop(client),
            20..34 => self.start(client),
            34..44 => self.extend(client),
            44..46 => self.release(client),
            46..49 => self.break_link(client, node),
            49..56 => self.mend(client, node),
            56..90 => self.hand_out(client),
            90..140 => self.execute(),
            140..190 => self.read(),
            _ => self.execute_dead(),
        }
        self.wrong()
    }

    fn wrong(&self) -> Option<String> {
        let mut holders = Vec::new();
        for (name, client) in self.clients.iter().enumerate() {
            for (_, token, claim) in &client.claims {
                if !claim.is_held() || self.instant() >= claim.deadline() {
                    continue;
                }
                holders.push((name, *token));
                if self.planted != Planted::Nothing {
                    continue;
                }
                for (index, key) in self.keys.iter().enumerate() {
                    let support = claim.support(NodeId::new(u8::try_from(index).unwrap()));
                    let believed = support.is_some_and(|until| until > self.instant());
                    if believed && !(key.token == *token && self.now <= key.until) {
                        return Some(format!(
                            "n{index} is believed to support token {token} of client {name}: {key:?}"
                        ));
                    }
                }
            }
        }
        (holders.len() > 1).then(|| format!("two holders at {}: {holders:?}", self.now))
    }

    // ---- the clients ----

    /// Time passes; every timer is fed at its instant.
    fn pass(&mut self) {
        let end = self.now + self.random.pick(&[1, 1, 2, 3, 5, 8, 15]);
        while self.now < end {
            self.now += 1;
            for client in 0..CLIENTS {
                self.is_awake(client);
            }
        }
        self.note(|| "is now".into());
    }

    /// Whether the client's process runs. If so its timers are fired, as before every input.
    fn is_awake(&mut self, client: usize) -> bool {
        if self.now < self.clients[client].stopped_until {
            return false;
        }
        let now = self.instant();
        for index in 0..self.clients[client].claims.len() {
            if self.clients[client].claims[index].2.next_timeout().is_some_and(|due| due <= now) {
                self.drive(client, index, |claim, effects| claim.timeout(now, effects));
            }
        }
        true
    }

    fn stop(&mut self, client: usize) {
        let pause = self.random.pick(&[5, 30, 180]);
        self.clients[client].stopped_until = self.now + pause;
        self.note(|| format!("client {client} is stopped for {pause} ms"));
    }

    fn start(&mut self, client: usize) {
        if !self.is_awake(client) {
            return;
        }
        let live = self.clients[client].claims.iter().any(|(_, _, claim)| claim.ended().is_none());
        if live || self.now < self.clients[client].next_attempt || self.clients[client].claims.len() > 12 {
            return;
        }
        let quorum = match self.planted {
            Planted::SmallQuorum => Quorum::planted(NODES, 1),
            Planted::Nothing | Planted::SameToken => Quorum::majority(NODES),
        };
        let node_timeout = Duration::from_millis(self.random.pick(&[10, 20]));
        let ttl = Duration::from_millis(self.random.pick(&[12, 25, 60]));
        let max_hold = self.random.pick(&[None, None, Some(Duration::MAX), Some(Duration::from_millis(150))]);
        let terms = Terms {
            quorum,
            drift: Drift::from_parts_per_million(0),
            ttl,
            node_timeout,
            attempt_timeout: node_timeout,
            max_hold,
            expiring_lead: None,
            jitter: 0,
            fenced: false,
        };
        let id = self.next_claim;
        self.next_claim += 1;
        let token = match self.planted {
            Planted::SameToken => u32::try_from(client).unwrap() + 1,
            Planted::Nothing | Planted::SmallQuorum => u32::try_from(id).unwrap() + 1,
        };
        let mut effects = Vec::new();
        let reach: Vec<Reach> = self.clients[client]
            .links
            .iter()
            .map(|link| if link.up { Reach::Ready } else { Reach::Down })
            .collect();
        let claim = Claim::new(terms, reach, self.instant(), &mut effects);
        self.note(|| format!("client {client} starts token {token}, ttl {ttl:?}"));
        self.clients[client].claims.push((id, token, claim));
        self.carry_out(client, id, effects);
        self.clients[client].next_attempt = self.now + 3;
        self.forget_finished(client);
    }

    fn newest(&self, client: usize) -> Option<usize> {
        self.clients[client].claims.len().checked_sub(1)
    }

    fn extend(&mut self, client: usize) {
        let Some(index) = self.newest(client).filter(|_| self.is_awake(client)) else { return };
        let ttl = Duration::from_millis(self.random.pick(&[8, 12, 25, 60, 100]));
        let now = self.instant();
        self.note(|| format!("client {client} extends to {ttl:?}"));
        self.drive(client, index, |claim, effects| {
            let _refused = claim.extend(ttl, now, effects);
        });
    }

    fn release(&mut self, client: usize) {
        let Some(index) = self.newest(client).filter(|_| self.is_awake(client)) else { return };
        let now = self.instant();
        self.note(|| format!("client {client} releases or calls off"));
        if self.random.below(2) == 0 {
            self.drive(client, index, |claim, effects| claim.release(now, effects));
        } else {
            self.drive(client, index, |claim, effects| claim.abandon(now, effects));
        }
    }

    fn drive(&mut self, client: usize, index: usize, input: impl FnOnce(&mut Claim, &mut Vec<Effect>)) {
        let mut effects = Vec::new();
        let (id, _, claim) = &mut self.clients[client].claims[index];
        let id = *id;
        input(claim, &mut effects);
        self.carry_out(client, id, effects);
    }

    fn carry_out(&mut self, client: usize, id: usize, effects: Vec<Effect>) {
        let token = self.clients[client]
            .claims
            .iter()
            .find(|(of, ..)| *of == id)
            .map(|(_, token, _)| *token)
            .unwrap();
        for effect in effects {
            match effect {
                Effect::Send(node, verb) => {
                    self.repairs += u32::from(matches!(verb, Verb::Repair { .. }));
                    let request = Request { claim: id, token, verb };
                    self.clients[client].links[node.index()].outbox.push_back(request);
                }
                Effect::Withdraw(node) => {
                    let outbox = &mut self.clients[client].links[node.index()].outbox;
                    outbox.retain(|request| request.claim != id || request.verb == Verb::Release);
                }
                Effect::Granted { deadline, .. } => {
                    self.grants += 1;
                    self.note(|| format!("client {client} holds with token {token} until {deadline:?}"));
                }
                Effect::RoundDone { result, .. } => self.extensions += u32::from(result.is_ok()),
                Effect::Lost(reason) => {
                    self.note(|| format!("client {client} lost token {token}: {reason:?}"))
                }
                Effect::AttemptLost(_)
                | Effect::DeadlineMoved { .. }
                | Effect::Expiring { .. }
                | Effect::ReleaseDone(_)
                | Effect::Alias(_)
                | Effect::Repaired(_) => {}
            }
        }
    }

    fn forget_finished(&mut self, client: usize) {
        self.clients[client].claims.retain(|(_, _, claim)| !claim.is_finished());
    }

    // ---- the network ----

    /// A whole drain: every link's outbox, in one packet each.
    fn hand_out(&mut self, client: usize) {
        if !self.is_awake(client) {
            return;
        }
        for node in 0..usize::from(NODES) {
            if !self.clients[client].links[node].up {
                continue;
            }
            while let Some(request) = self.clients[client].links[node].outbox.pop_front() {
                let now = self.instant();
                self.note(|| format!("client {client} hands {request:?} to n{node}"));
                self.clients[client].links[node].requests.push_back(request);
                self.told(client, request.claim, |claim, effects| {
                    claim.handed_out(NodeId::new(u8::try_from(node).unwrap()), request.verb, now, effects);
                });
            }
        }
    }

    fn told(&mut self, client: usize, id: usize, input: impl FnOnce(&mut Claim, &mut Vec<Effect>)) {
        if let Some(index) = self.clients[client].claims.iter().position(|(of, ..)| *of == id) {
            self.drive(client, index, input);
        }
        self.forget_finished(client);
    }

    fn break_link(&mut self, client: usize, node: usize) {
        if !self.is_awake(client) {
            return;
        }
        let link = &mut self.clients[client].links[node];
        if !std::mem::take(&mut link.up) {
            return;
        }
        link.outbox.clear();
        link.replies.clear();
        let left = std::mem::take(&mut link.requests);
        if !left.is_empty() {
            self.dead.push((node, left));
        }
        self.note(|| format!("client {client} loses its connection to n{node}"));
        let reach = self.random.pick(&[Reach::Connecting, Reach::Down]);
        let (now, id) = (self.instant(), NodeId::new(u8::try_from(node).unwrap()));
        for index in 0..self.clients[client].claims.len() {
            self.drive(client, index, |claim, effects| claim.broken(id, reach, now, effects));
        }
        self.forget_finished(client);
    }

    /// A new connection, its handshake done: what is owed goes first.
    fn mend(&mut self, client: usize, node: usize) {
        if !self.is_awake(client) || std::mem::replace(&mut self.clients[client].links[node].up, true) {
            return;
        }
        self.note(|| format!("client {client} has a new connection to n{node}"));
        let (now, id) = (self.instant(), NodeId::new(u8::try_from(node).unwrap()));
        for owing in [true, false] {
            for index in 0..self.clients[client].claims.len() {
                let links = &self.clients[client].links[node];
                let (of, _, claim) = &self.clients[client].claims[index];
                let first =
                    links.outbox.iter().any(|request| request.claim == *of && request.verb == Verb::Release);
                if claim.owes(id) == owing && !first {
                    self.drive(client, index, |claim, effects| claim.ready(id, Reach::Ready, now, effects));
                }
            }
        }
        self.forget_finished(client);
    }

    /// One of the links for which `busy` holds.
    fn some_link(&mut self, busy: impl Fn(&Link) -> bool) -> Option<(usize, usize)> {
        let links = self.clients.iter().enumerate().flat_map(|(client, of)| {
            of.links.iter().enumerate().map(move |(node, link)| (client, node, link))
        });
        let busy: Vec<_> =
            links.filter(|(.., link)| busy(link)).map(|(client, node, _)| (client, node)).collect();
        (!busy.is_empty()).then(|| self.random.pick(&busy))
    }

    fn execute(&mut self) {
        let Some((client, node)) = self.some_link(|link| !link.requests.is_empty()) else { return };
        let Some(request) = self.clients[client].links[node].requests.pop_front() else { return };
        let answer = self.run(node, request);
        self.clients[client].links[node].replies.push_back((request, answer));
    }

    fn execute_dead(&mut self) {
        if self.dead.is_empty() {
            return;
        }
        let index = self.random.below(self.dead.len());
        let forget = self.random.below(10) == 0;
        let (node, left) = &mut self.dead[index];
        let node = *node;
        match left.pop_front() {
            Some(request) if !forget => {
                self.note(|| format!("n{node} executes what a dead connection held"));
                self.run(node, request);
            }
            _ => {
                self.dead.swap_remove(index);
            }
        }
    }

    fn read(&mut self) {
        let Some((client, node)) = self.some_link(|link| !link.replies.is_empty()) else { return };
        if !self.is_awake(client) {
            return;
        }
        let Some((request, answer)) = self.clients[client].links[node].replies.pop_front() else { return };
        let now = self.instant();
        self.note(|| format!("client {client} reads {answer:?} from n{node} to {request:?}"));
        self.told(client, request.claim, |claim, effects| {
            claim.answered(NodeId::new(u8::try_from(node).unwrap()), request.verb, answer, now, effects);
        });
    }

    // ---- the nodes ----

    fn run(&mut self, node: usize, request: Request) -> Answer {
        let now = self.now;
        let free = self.keys[node].until < now;
        let ours = !free && self.keys[node].token == request.token;
        let mood = self.random.below(40);
        let key = &mut self.keys[node];
        let millis = |ttl: Duration| u64::try_from(ttl.as_millis()).unwrap();
        let answer = match request.verb {
            _ if mood == 0 => Answer::NotApplied,
            Verb::Set | Verb::Repair { .. } if !free => Answer::No,
            Verb::Set => {
                let ttl = self
                    .clients
                    .iter()
                    .flat_map(|client| &client.claims)
                    .find(|(id, ..)| *id == request.claim);
                // A claim that was forgotten has nothing under way that matters; its ttl is at most this.
                let ttl = ttl.map_or(60, |(_, _, claim)| millis(claim.terms().ttl));
                *key = Key { token: request.token, until: now + ttl };
                Answer::Yes
            }
            Verb::Repair { ttl } => {
                *key = Key { token: request.token, until: now + millis(ttl) };
                Answer::Yes
            }
            Verb::Extend { .. } if mood == 1 => Answer::FormRefused,
            Verb::Extend { .. } if mood == 2 => Answer::Ambiguous,
            Verb::Extend { ttl, .. } if ours => {
                key.until = now + millis(ttl);
                if mood == 3 { Answer::Ambiguous } else { Answer::Yes }
            }
            Verb::Release if ours => {
                key.until = 0;
                Answer::Yes
            }
            Verb::Extend { .. } | Verb::Release => Answer::No,
            Verb::Raise { .. } => panic!("no claim here is fenced"),
        };
        let key = self.keys[node];
        self.note(|| format!("n{node} runs {request:?}: {answer:?}, {key:?}"));
        answer
    }
}
