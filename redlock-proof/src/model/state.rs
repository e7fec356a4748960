//! What a state is: a few numbers, with the claims and the links between a client and a server in pools.

use super::configs::{Model, Shown};
use super::table::{Pool, Print, Table};
use core::time::Duration;
use redlock_core::machine::{Answer, Claim, Effect, Reach, Verb, Vote};
use redlock_core::{Instant, NodeId};
use std::rc::Rc;

pub(super) const CLIENTS: usize = 2;
pub(super) const NODES: usize = 3;
/// Attempts that one client can make.
pub(super) const ATTEMPTS: usize = 2;

/// One tick of time.
pub(super) const TICK_MS: u64 = 10;

pub(super) const fn instant(tick: u8) -> Instant {
    Instant::from_millis(tick as u64 * TICK_MS)
}

/// A ttl of so many ticks, less one millisecond. Servers keep a key up to and including the millisecond in which it
/// expires: so it is gone on the tick, and the belief in it (2 ms of drift, and a little) ends between the last tick and
/// that one. Any belief that is one tick too long meets a server on which the key is free.
pub(super) const fn ttl(ticks: u8) -> Duration {
    Duration::from_millis(ticks as u64 * TICK_MS - 1)
}

pub(super) const fn span(ticks: u8) -> Duration {
    Duration::from_millis(ticks as u64 * TICK_MS)
}

pub(super) fn node_id(node: usize) -> NodeId {
    NodeId::new(u8::try_from(node).unwrap_or(u8::MAX))
}

/// A command of a client's attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Command {
    /// Which of the client's attempts it belongs to.
    pub(super) attempt: u8,
    pub(super) verb: Verb,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Up {
    Ready,
    /// Ready, and the client knows that the server restarted a short time ago (R25).
    Quarantined,
    Connecting,
    Down,
}

impl Up {
    pub(super) const fn is_ready(self) -> bool {
        matches!(self, Self::Ready | Self::Quarantined)
    }

    pub(super) const fn reach(self) -> Reach {
        match self {
            Self::Ready => Reach::Ready,
            Self::Quarantined => Reach::Quarantined,
            Self::Connecting => Reach::Connecting,
            Self::Down => Reach::Down,
        }
    }
}

/// Everything between one client and one node of its configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Link {
    pub(super) up: Up,
    /// Queued by the engine, not handed out yet.
    pub(super) outbox: Vec<Command>,
    /// Handed out, not executed.
    pub(super) sent: Vec<Command>,
    /// Executed, the answer not read yet.
    pub(super) answers: Vec<(Command, Answer)>,
    /// What dead connections still hold: the server may execute it, in the order of each, at any time or never.
    pub(super) late: Vec<Vec<Command>>,
}

impl Link {
    pub(super) const fn new() -> Self {
        Self { up: Up::Ready, outbox: Vec::new(), sent: Vec::new(), answers: Vec::new(), late: Vec::new() }
    }

    /// Whether nothing is under way on the connection that stands.
    pub(super) fn is_quiet(&self) -> bool {
        self.up.is_ready() && self.outbox.is_empty() && self.sent.is_empty() && self.answers.is_empty()
    }

    /// Every command that the server may still execute, those of dead connections included.
    pub(super) fn to_run(&self) -> impl Iterator<Item = &Command> {
        self.outbox.iter().chain(&self.sent).chain(self.late.iter().flatten())
    }
}

/// One claim of a client, with what the properties have to remember of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Slot {
    /// Its number in the pool + 1; 0 if the attempt was not made, or is finished and forgotten.
    pub(super) claim: u32,
    pub(super) decided: bool,
    pub(super) lost: bool,
    pub(super) releasing: bool,
    /// Rounds of extension that are undecided.
    pub(super) rounds: u16,
    /// The tick of the newest of them.
    pub(super) round_at: u8,
    /// The tick of the release.
    pub(super) release_at: u8,
}

/// The key on one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) token: u8,
    /// The last millisecond in which it is there.
    pub(super) until: u16,
    /// Set by a dead connection after the clean-up had been there: nobody can know of it, and it ends with its ttl.
    pub(super) orphan: bool,
}

/// What a server that forgot its key still owed to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Forgot {
    pub(super) client: u8,
    pub(super) attempt: u8,
    pub(super) until: u16,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Server {
    pub(super) key: Option<Key>,
    pub(super) forgot: Option<Forgot>,
    /// Restarted, and given no vote until this tick where the model has a quarantine (R25).
    pub(super) quarantined_until: u8,
}

/// What one client has done of what it may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Done {
    pub(super) attempts: u8,
    pub(super) extends: u8,
    pub(super) breaks: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) time: u8,
    pub(super) slots: [[Slot; ATTEMPTS]; CLIENTS],
    pub(super) links: [[u32; NODES]; CLIENTS],
    pub(super) servers: [Server; NODES],
    pub(super) done: [Done; CLIENTS],
    pub(super) errors: u8,
    pub(super) forgets: u8,
    pub(super) restarts: u8,
    pub(super) voided: bool,
}

impl State {
    pub(super) fn initial(world: &mut World<'_>) -> Self {
        let link = world.links.number(Link::new()).0;
        Self { links: [[link; NODES]; CLIENTS], ..Self::default() }
    }

    pub(super) const fn now(&self) -> Instant {
        instant(self.time)
    }

    pub(super) const fn now_ms(&self) -> u64 {
        self.time as u64 * TICK_MS
    }

    /// The fingerprint. Where both clients may do the same, states that differ by their names alone are one: nothing in
    /// a claim, on a link or in a property depends on the client's name.
    pub(super) fn print(&self, model: &Model) -> u128 {
        if model.clients_are_alike() {
            Print::of(self).min(Print::of(&self.swapped()))
        } else {
            Print::of(self)
        }
    }

    fn swapped(mut self) -> Self {
        self.slots.swap(0, 1);
        self.links.swap(0, 1);
        self.done.swap(0, 1);
        for server in &mut self.servers {
            if let Some(key) = &mut server.key {
                key.token =
                    key.token.wrapping_add(if key.token < OTHER { OTHER } else { OTHER.wrapping_neg() });
            }
            if let Some(forgot) = &mut server.forgot {
                forgot.client = 1 - forgot.client;
            }
        }
        self
    }
}

/// The second client's tokens start here.
const OTHER: u8 = 8;

/// The token of a client's attempt.
pub(super) const fn token(client: usize, attempt: u8) -> u8 {
    attempt + if client == 0 { 0 } else { OTHER }
}

/// Whether a token is of the client.
pub(super) const fn is_of(token: u8, client: usize) -> bool {
    (token < OTHER) == (client == 0)
}

/// An input of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Input {
    HandedOut(NodeId, Verb),
    Answered(NodeId, Verb, Answer),
    Broken(NodeId, Reach),
    Ready(NodeId, Reach),
    ReachChanged(NodeId, Reach),
    Void(NodeId),
    Extend(Duration),
    Release,
    Abandon,
    Timeout,
}

/// What the getters of a claim say: asked once for each claim.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub(super) held: bool,
    /// It was held at some time.
    pub(super) won: bool,
    pub(super) attempting: bool,
    pub(super) ended: bool,
    pub(super) finished: bool,
    pub(super) start: Instant,
    pub(super) deadline: Instant,
    pub(super) next_timeout: Option<Instant>,
    pub(super) support: [Option<Instant>; NODES],
    pub(super) owes: [bool; NODES],
    /// The node's vote on the attempt is open, or will never be known.
    pub(super) unknown: [bool; NODES],
}

impl View {
    fn of(claim: &Claim) -> Self {
        let nodes = core::array::from_fn::<_, NODES, _>(node_id);
        Self {
            held: claim.is_held(),
            won: claim.deadline() != Instant::ZERO,
            attempting: claim.is_attempting(),
            ended: claim.ended().is_some(),
            finished: claim.is_finished(),
            start: claim.start(),
            deadline: claim.deadline(),
            next_timeout: claim.next_timeout(),
            support: nodes.map(|node| claim.support(node)),
            owes: nodes.map(|node| claim.owes(node)),
            unknown: nodes.map(|node| matches!(claim.vote(node), None | Some(Vote::Ambiguous))),
        }
    }

    pub(super) fn believes(&self, now: Instant) -> bool {
        self.held && now < self.deadline
    }
}

/// A claim's reaction to an input.
#[derive(Clone, Debug)]
pub(super) struct Reaction {
    pub(super) claim: u32,
    pub(super) effects: Rc<[Effect]>,
    /// Whether an extension was refused with nothing sent.
    pub(super) barred: bool,
}

/// What all states of a search share.
#[derive(Debug)]
pub(super) struct World<'m> {
    pub(super) model: &'m Model,
    pub(super) links: Pool<Link>,
    claims: Pool<Claim>,
    views: Vec<View>,
    /// A claim is a function of its inputs: each is tried once.
    reactions: Table<(u32, Instant, Input), Reaction>,
    scratch: Vec<Effect>,
}

impl<'m> World<'m> {
    pub(super) fn new(model: &'m Model) -> Self {
        Self {
            model,
            links: Pool::new(),
            claims: Pool::new(),
            views: Vec::new(),
            reactions: Table::default(),
            scratch: Vec::new(),
        }
    }

    /// The claim that a slot refers to, if it has one.
    pub(super) fn view(&self, slot: &Slot) -> Option<&View> {
        self.views.get((slot.claim as usize).wrapping_sub(1))
    }

    pub(super) fn link(&self, state: &State, client: usize, node: usize) -> &Link {
        self.links.get(state.links[client][node])
    }

    pub(super) fn start(&mut self, client: usize, reach: [Reach; NODES], now: Instant) -> Reaction {
        let mut effects = core::mem::take(&mut self.scratch);
        let claim = Claim::new(self.model.terms(client), reach, now, &mut effects);
        self.keep(claim, effects, false)
    }

    pub(super) fn react(&mut self, claim: u32, now: Instant, input: Input) -> Reaction {
        if let Some(reaction) = self.reactions.get(&(claim, now, input)) {
            return reaction.clone();
        }
        let mut effects = core::mem::take(&mut self.scratch);
        let mut after = self.claims.get(claim - 1).clone();
        let mut barred = false;
        match input {
            Input::HandedOut(node, verb) => after.handed_out(node, verb, now, &mut effects),
            Input::Answered(node, verb, answer) => after.answered(node, verb, answer, now, &mut effects),
            Input::Broken(node, reach) => after.broken(node, reach, now, &mut effects),
            Input::Ready(node, reach) => after.ready(node, reach, now, &mut effects),
            Input::ReachChanged(node, reach) => after.reach_changed(node, reach, now, &mut effects),
            Input::Void(node) => after.void(node, now, &mut effects),
            Input::Extend(ttl) => barred = after.extend(ttl, now, &mut effects).is_err(),
            Input::Release => after.release(now, &mut effects),
            Input::Abandon => after.abandon(now, &mut effects),
            Input::Timeout => after.timeout(now, &mut effects),
        }
        let reaction = self.keep(after, effects, barred);
        self.reactions.insert((claim, now, input), reaction.clone());
        reaction
    }

    fn keep(&mut self, claim: Claim, mut effects: Vec<Effect>, barred: bool) -> Reaction {
        let view = View::of(&claim);
        let (number, new) = self.claims.number(claim);
        if new {
            self.views.push(view);
        }
        let reaction = Reaction { claim: number + 1, effects: Rc::from(effects.as_slice()), barred };
        effects.clear();
        self.scratch = effects;
        reaction
    }

    /// How many different claims and links there were.
    pub(super) fn shown(&self) -> Shown {
        Shown { claims: self.claims.len(), links: self.links.len() }
    }
}
