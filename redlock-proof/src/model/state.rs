//! What a state is: a few numbers, with the claims and the links between a client and a server in pools.

use super::candidate::Candidate;
use super::configs::Model;
use super::table::{Pool, Print, Table};
use alloc::rc::Rc;
use core::time::Duration;
use redlock_core::machine::{Answer, Claim, Effect, Election, Reach, Verb, Vote};
use redlock_core::{Instant, NodeId};

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

/// What a server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ask {
    /// What the claim wants.
    To(Verb),
    /// Whether the key has the claim's token: the holder's watch.
    Look,
}

/// A command of a client's attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Command {
    /// Which of the client's attempts it belongs to.
    pub(super) attempt: u8,
    pub(super) asks: Ask,
    /// The fence that a fenced repair brings along.
    pub(super) fence: u64,
}

impl Command {
    /// What matters of it on a dead connection, where its answer is lost: neither its number nor its start.
    pub(super) const fn late(mut self) -> Self {
        if let Ask::To(Verb::Extend { ttl, .. }) = self.asks {
            self.asks = Ask::To(Verb::Extend { round: 0, hand_out: 0, start: Instant::ZERO, ttl });
        }
        self
    }

    pub(super) fn is_look_of(&self, attempt: usize) -> bool {
        self.asks == Ask::Look && usize::from(self.attempt) == attempt
    }
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

    /// Whether the attempt's key is being looked at on the connection that stands.
    pub(super) fn is_looking(&self, attempt: usize) -> bool {
        let answered = self.answers.iter().map(|(command, _)| command);
        self.outbox.iter().chain(&self.sent).chain(answered).any(|command| command.is_look_of(attempt))
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
    /// The largest fence that was granted before the attempt started, while it is undecided.
    pub(super) floor: u8,
    /// The largest counter that it was told of, where a fault needs it.
    pub(super) highest: u8,
    /// The nodes that said last that the token is not there, while it is held and looked for.
    pub(super) missing: [bool; NODES],
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

/// Whether a key is free, or has the token.
pub(super) fn is_free_for(key: Option<Key>, token: u8) -> bool {
    key.is_none_or(|key| key.token == token)
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
    /// The key's counter, if it has one.
    pub(super) counter: Option<u8>,
}

/// What one client has done of what it may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Done {
    pub(super) attempts: u8,
    pub(super) extends: u8,
    pub(super) breaks: u8,
    pub(super) looks: u8,
    pub(super) fails: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) time: u8,
    pub(super) slots: [[Slot; ATTEMPTS]; CLIENTS],
    pub(super) links: [[u32; NODES]; CLIENTS],
    pub(super) servers: [Server; NODES],
    pub(super) done: [Done; CLIENTS],
    pub(super) candidates: [Candidate; CLIENTS],
    pub(super) errors: u8,
    pub(super) forgets: u8,
    pub(super) restarts: u8,
    pub(super) voided: bool,
    /// The fences that were granted, in order of size, those that cannot matter any more left out; zeros last.
    pub(super) fences: [u8; CLIENTS * ATTEMPTS],
}

impl State {
    pub(super) fn initial(world: &mut World<'_>) -> Self {
        let link = world.links.number(Link::new()).0;
        let election = world.elections.number(Election::new(span(world.model.rest))).0;
        let candidates = [Candidate { election, ..Candidate::default() }; CLIENTS];
        Self { links: [[link; NODES]; CLIENTS], candidates, ..Self::default() }
    }

    pub(super) const fn now(&self) -> Instant {
        instant(self.time)
    }

    pub(super) const fn now_ms(&self) -> u64 {
        self.time as u64 * TICK_MS
    }

    /// The fingerprint.
    ///
    /// States that differ by the names of alike clients or nodes alone have one. Nothing in a claim, on a link or in a
    /// property depends on a client's name. That claims treat all nodes alike is checked as they are renamed.
    pub(super) fn print(&self, world: &mut World<'_>) -> u128 {
        let model = world.model;
        let print = self.print_of_nodes(world);
        if model.clients_are_alike() { print.min(self.swapped().print_of_nodes(world)) } else { print }
    }

    /// The least fingerprint of those that have the nodes in the order of what is at them.
    fn print_of_nodes(&self, world: &mut World<'_>) -> u128 {
        if !world.model.nodes_are_alike() {
            return Print::of(self);
        }
        let at: [u128; NODES] = core::array::from_fn(|node| {
            Print::of(&(self.servers[node], self.links[0][node], self.links[1][node]))
        });
        let mut sorted = at;
        sorted.sort_unstable();
        let in_order = |order: &[usize; NODES]| (0..NODES).all(|node| sorted[order[node]] == at[node]);
        let mut least = u128::MAX;
        for (number, _) in ORDERS.iter().enumerate().filter(|(_, order)| in_order(order)) {
            least = least.min(Print::of(&self.renamed(number, world)));
        }
        least
    }

    fn renamed(&self, order: usize, world: &mut World<'_>) -> Self {
        let mut renamed = *self;
        for (node, place) in ORDERS[order].iter().enumerate() {
            renamed.servers[*place] = self.servers[node];
            for (links, before) in renamed.links.iter_mut().zip(&self.links) {
                links[*place] = before[node];
            }
        }
        for slot in renamed.slots.iter_mut().flatten().filter(|slot| slot.claim != 0) {
            slot.claim = world.renamed(slot.claim, order);
            let missing = slot.missing;
            for (node, place) in ORDERS[order].iter().enumerate() {
                slot.missing[*place] = missing[node];
            }
        }
        renamed
    }

    fn swapped(mut self) -> Self {
        self.slots.swap(0, 1);
        self.links.swap(0, 1);
        self.done.swap(0, 1);
        self.candidates.swap(0, 1);
        for server in &mut self.servers {
            if let Some(key) = server.key.as_mut().filter(|key| key.token != NOBODY) {
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

/// The orders of the nodes: where each goes. The first leaves them.
const ORDERS: [[usize; NODES]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// The second client's tokens start here.
const OTHER: u8 = 8;

/// The token of a client's attempt.
pub(super) const fn token(client: usize, attempt: u8) -> u8 {
    if attempt == FORGOTTEN { NOBODY } else { attempt + if client == 0 { 0 } else { OTHER } }
}

/// Stands for every attempt that is finished, where nothing asks for its token any more.
pub(super) const FORGOTTEN: u8 = u8::MAX;

/// The token of all of them.
pub(super) const NOBODY: u8 = u8::MAX;

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
    ReadWithoutToken(NodeId),
    Extend(Duration),
    Release,
    Abandon,
    Timeout,
}

impl Input {
    fn renamed(self, order: usize) -> Self {
        let to = |node: NodeId| node_id(ORDERS[order][node.index()]);
        match self {
            Self::HandedOut(node, verb) => Self::HandedOut(to(node), verb),
            Self::Answered(node, verb, answer) => Self::Answered(to(node), verb, answer),
            Self::Broken(node, reach) => Self::Broken(to(node), reach),
            Self::Ready(node, reach) => Self::Ready(to(node), reach),
            Self::ReachChanged(node, reach) => Self::ReachChanged(to(node), reach),
            Self::Void(node) => Self::Void(to(node)),
            Self::ReadWithoutToken(node) => Self::ReadWithoutToken(to(node)),
            other @ (Self::Extend(_) | Self::Release | Self::Abandon | Self::Timeout) => other,
        }
    }
}

/// The effect with the nodes renamed, and without the number of the hand-out, which is given anew.
fn renamed_effect(effect: Effect, order: usize) -> Effect {
    let to = |node: NodeId| node_id(ORDERS[order][node.index()]);
    match effect {
        Effect::Send(node, Verb::Extend { round, start, ttl, .. }) => {
            Effect::Send(to(node), Verb::Extend { round, hand_out: 0, start, ttl })
        }
        Effect::Send(node, verb) => Effect::Send(to(node), verb),
        Effect::Withdraw(node) => Effect::Withdraw(to(node)),
        Effect::Alias(node) => Effect::Alias(to(node)),
        Effect::Repaired(node) => Effect::Repaired(to(node)),
        other @ (Effect::Granted { .. }
        | Effect::AttemptLost(_)
        | Effect::DeadlineMoved { .. }
        | Effect::RoundDone { .. }
        | Effect::Expiring { .. }
        | Effect::Lost(_)
        | Effect::ReleaseDone(_)) => other,
    }
}

/// Whether two lists have the same effects, in any order: each node's are in the order of the node in both.
fn same_effects(one: &[Effect], other: &[Effect], order: usize) -> bool {
    let mut left: Vec<Effect> = other.iter().map(|effect| renamed_effect(*effect, 0)).collect();
    let found = |effect: &Effect| {
        let wanted = renamed_effect(*effect, order);
        left.iter().position(|other| *other == wanted).map(|at| left.swap_remove(at)).is_some()
    };
    one.len() == other.len() && one.iter().all(found)
}

/// Where a claim comes from.
#[derive(Clone, Copy, Debug)]
enum Origin {
    Start { client: usize, reach: [Reach; NODES], now: Instant },
    Input { before: u32, now: Instant, input: Input },
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
    pub(super) fence: Option<u64>,
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
            fence: claim.fence(),
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
    /// The round of the extension that was asked for.
    pub(super) round: Option<u32>,
}

/// What all states of a search share.
#[derive(Debug)]
pub(super) struct World<'m> {
    pub(super) model: &'m Model,
    pub(super) links: Pool<Link>,
    pub(super) elections: Pool<Election>,
    claims: Pool<Claim>,
    views: Vec<View>,
    origins: Vec<Origin>,
    /// The same claims with the nodes in each order, where that was asked for; 0 if not.
    renamed: Vec<[u32; ORDERS.len()]>,
    /// An input to which a claim reacts in another way if the nodes have other names.
    pub(super) asymmetry: Option<String>,
    /// A claim is a function of its inputs: each is tried once.
    reactions: Table<(u32, Instant, Input), Reaction>,
    scratch: Vec<Effect>,
}

impl<'m> World<'m> {
    pub(super) fn new(model: &'m Model) -> Self {
        Self {
            model,
            links: Pool::new(),
            elections: Pool::new(),
            claims: Pool::new(),
            views: Vec::new(),
            origins: Vec::new(),
            renamed: Vec::new(),
            asymmetry: None,
            reactions: Table::default(),
            scratch: Vec::new(),
        }
    }

    /// The claim that a slot refers to, if it has one.
    pub(super) fn view(&self, slot: &Slot) -> Option<&View> {
        self.views.get((slot.claim as usize).wrapping_sub(1))
    }

    pub(super) fn token_of(&self, client: usize, attempt: u8) -> u8 {
        token(client, if self.model.is_one_token() { 0 } else { attempt })
    }

    pub(super) fn link(&self, state: &State, client: usize, node: usize) -> &Link {
        self.links.get(state.links[client][node])
    }

    pub(super) fn start(&mut self, client: usize, reach: [Reach; NODES], now: Instant) -> Reaction {
        let mut effects = core::mem::take(&mut self.scratch);
        let claim = Claim::new(
            self.model.terms(client),
            reach.into_iter().take(self.model.nodes.into()),
            now,
            &mut effects,
        );
        self.keep(claim, effects, None, Origin::Start { client, reach, now })
    }

    pub(super) fn react(&mut self, claim: u32, now: Instant, input: Input) -> Reaction {
        if let Some(reaction) = self.reactions.get(&(claim, now, input)) {
            return reaction.clone();
        }
        let mut effects = core::mem::take(&mut self.scratch);
        let mut after = self.claims.get(claim - 1).clone();
        let mut round = None;
        match input {
            Input::HandedOut(node, verb) => after.handed_out(node, verb, now, &mut effects),
            Input::Answered(node, verb, answer) => after.answered(node, verb, answer, now, &mut effects),
            Input::Broken(node, reach) => after.broken(node, reach, now, &mut effects),
            Input::Ready(node, reach) => after.ready(node, reach, now, &mut effects),
            Input::ReachChanged(node, reach) => after.reach_changed(node, reach, now, &mut effects),
            Input::Void(node) => after.void(node, now, &mut effects),
            Input::ReadWithoutToken(node) => after.read_without_token(node, now, &mut effects),
            Input::Extend(ttl) => round = after.extend(ttl, now, &mut effects).ok(),
            Input::Release => after.release(now, &mut effects),
            Input::Abandon => after.abandon(now, &mut effects),
            Input::Timeout => after.timeout(now, &mut effects),
        }
        let reaction = self.keep(after, effects, round, Origin::Input { before: claim, now, input });
        self.reactions.insert((claim, now, input), reaction.clone());
        reaction
    }

    fn keep(
        &mut self,
        claim: Claim,
        mut effects: Vec<Effect>,
        round: Option<u32>,
        origin: Origin,
    ) -> Reaction {
        let view = View::of(&claim);
        let (number, new) = self.claims.number(claim);
        if new {
            self.views.push(view);
            self.origins.push(origin);
            self.renamed.push([0; ORDERS.len()]);
        }
        let reaction = Reaction { claim: number + 1, effects: Rc::from(effects.as_slice()), round };
        effects.clear();
        self.scratch = effects;
        reaction
    }

    /// The claim with the nodes in another order: what it had become if everything that happened to it had happened with
    /// them in that order.
    fn renamed(&mut self, claim: u32, order: usize) -> u32 {
        let index = (claim as usize).wrapping_sub(1);
        if order == 0 {
            return claim;
        }
        if self.renamed[index][order] != 0 {
            return self.renamed[index][order];
        }
        let (reaction, other) = match self.origins[index] {
            Origin::Start { client, reach, now } => {
                let mut moved = reach;
                for node in 0..NODES {
                    moved[ORDERS[order][node]] = reach[node];
                }
                (self.start(client, reach, now), self.start(client, moved, now))
            }
            Origin::Input { before, now, input } => {
                let moved = self.renamed(before, order);
                (self.react(before, now, input), self.react(moved, now, input.renamed(order)))
            }
        };
        if !same_effects(&reaction.effects, &other.effects, order) {
            let what = format!("{:?}: {:?}, else {:?}", self.origins[index], reaction.effects, other.effects);
            self.asymmetry.get_or_insert(what);
        }
        self.renamed[index][order] = other.claim;
        other.claim
    }
}
