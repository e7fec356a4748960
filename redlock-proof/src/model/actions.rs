//! What can happen next, and what it leads to.

use super::configs::HandOut;
use super::faults::Fault;
use super::properties::{Met, Property, Violation, violated};
use super::state::{
    CLIENTS, Command, Forgot, Input, Key, Link, NODES, Slot, State, Up, World, is_of, node_id, token, ttl,
};
use core::time::Duration;
use redlock_core::NodeId;
use redlock_core::machine::{Answer, Cause, Effect, EndReason, ReleaseVerdict, Verb};

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// One tick of time passes; every claim gets its timeout.
    Tick,
    Start {
        client: u8,
    },
    Extend {
        client: u8,
        choice: u8,
    },
    Release {
        client: u8,
    },
    Abandon {
        client: u8,
    },
    /// The client finds out that the second node of the alias is the first's second name (R24).
    Void {
        client: u8,
    },
    /// What is queued for the node is handed out.
    HandOut {
        client: u8,
        node: u8,
    },
    /// The server executes the next command of the connection.
    Execute {
        client: u8,
        node: u8,
    },
    /// It answers that command with an error instead, the model's `choice`th.
    Fail {
        client: u8,
        node: u8,
        choice: u8,
    },
    /// The client reads the next answer.
    Read {
        client: u8,
        node: u8,
    },
    Break {
        client: u8,
        node: u8,
        choice: u8,
    },
    /// An attempt to connect fails.
    GiveUp {
        client: u8,
        node: u8,
    },
    Reconnect {
        client: u8,
        node: u8,
    },
    /// The server executes the next command of a dead connection.
    RunLate {
        client: u8,
        node: u8,
        dead: u8,
    },
    /// The server loses its keys, and no connection.
    Forget {
        server: u8,
    },
    /// The server loses its keys and all its connections.
    Restart {
        server: u8,
    },
}

const fn small(index: usize) -> u8 {
    // All indices are below the fixed sizes of the arrays.
    index.to_le_bytes()[0]
}

/// Everything that can happen in a state.
pub(super) fn enabled(world: &World<'_>, state: &State, actions: &mut Vec<Action>) {
    actions.clear();
    let model = world.model;
    for client in 0..CLIENTS {
        user_actions(world, state, client, actions);
    }
    for (client, node) in ends() {
        link_actions(world, state, client, node, actions);
    }
    for server in 0..NODES {
        let remembers = state.servers[server].key.is_some();
        if remembers && model.forget_at[server] && state.forgets < model.forgets {
            actions.push(Action::Forget { server: small(server) });
        }
        if remembers && model.restart_at[server] && state.restarts < model.restarts {
            actions.push(Action::Restart { server: small(server) });
        }
    }
    if state.time < model.horizon {
        actions.push(Action::Tick);
    }
}

fn ends() -> impl Iterator<Item = (usize, usize)> {
    (0..CLIENTS).flat_map(|client| (0..NODES).map(move |node| (client, node)))
}

fn user_actions(world: &World<'_>, state: &State, client: usize, actions: &mut Vec<Action>) {
    let model = world.model;
    let plan = &model.clients[client];
    let done = state.done[client];
    let now = state.now();
    let name = small(client);
    let live = state.slots[client].iter().filter_map(|slot| world.view(slot)).find(|view| !view.ended);
    let in_time = plan.start_from <= state.time && state.time <= plan.start_until;
    match live {
        None if done.attempts < plan.attempts && in_time => actions.push(Action::Start { client: name }),
        Some(view) if view.attempting && plan.abandons => actions.push(Action::Abandon { client: name }),
        Some(view) if view.believes(now) => {
            if done.extends < plan.extends_at_most && state.time <= plan.extend_until {
                let choices = match plan.extends_in_order {
                    true => done.extends..done.extends + 1,
                    false => 0..small(plan.extends.len()),
                };
                actions.extend(choices.map(|choice| Action::Extend { client: name, choice }));
            }
            if plan.releases {
                actions.push(Action::Release { client: name });
            }
        }
        Some(_) | None => {}
    }
    if model.alias.is_some() && model.voids && !state.voided && live.is_some() {
        actions.push(Action::Void { client: name });
    }
}

fn link_actions(world: &World<'_>, state: &State, client: usize, node: usize, actions: &mut Vec<Action>) {
    let model = world.model;
    let link = world.link(state, client, node);
    let (end, at) = (small(client), small(node));
    if !link.outbox.is_empty() && link.up.is_ready() {
        actions.push(Action::HandOut { client: end, node: at });
    }
    if let Some(command) = link.sent.first() {
        actions.push(Action::Execute { client: end, node: at });
        if command.verb != Verb::Release && state.errors < model.errors_at_most {
            for (choice, answer) in model.errors.iter().enumerate() {
                let extends = matches!(command.verb, Verb::Extend { .. });
                if extends || matches!(answer, Answer::NotApplied) {
                    actions.push(Action::Fail { client: end, node: at, choice: small(choice) });
                }
            }
        }
    }
    if !link.answers.is_empty() {
        actions.push(Action::Read { client: end, node: at });
    }
    match link.up {
        Up::Ready | Up::Quarantined => {
            let worth = !link.sent.is_empty()
                || !link.answers.is_empty()
                || !link.outbox.is_empty()
                || model.idle_breaks;
            if worth && state.done[client].breaks < model.breaks[client] && model.break_at[node] {
                let choices = 0..small(model.break_to.len());
                actions.extend(choices.map(|choice| Action::Break { client: end, node: at, choice }));
            }
        }
        Up::Connecting => {
            if model.gives_up {
                actions.push(Action::GiveUp { client: end, node: at });
            }
            actions.push(Action::Reconnect { client: end, node: at });
        }
        Up::Down => actions.push(Action::Reconnect { client: end, node: at }),
    }
    let dead = 0..small(link.late.len());
    actions.extend(dead.map(|dead| Action::RunLate { client: end, node: at, dead }));
}

/// Where an action leads to.
#[derive(Debug)]
pub(super) enum After {
    State(State),
    /// Nowhere that is worth a look: the assumption of the algorithm is broken.
    Broken,
}

/// Carries out an action; adds to `met` what has happened.
pub(super) fn apply(
    world: &mut World<'_>,
    state: &State,
    action: Action,
    met: &mut u32,
) -> Result<After, Violation> {
    let settles = world.model.ended_at_once;
    let mut step = Step {
        world,
        state: *state,
        links: Default::default(),
        broken: false,
        reconnecting: false,
        refused: None,
        met: 0,
        wrong: None,
    };
    step.take(action);
    step.drain();
    while settles && step.settle() {
        step.drain();
    }
    step.tidy();
    let Step { world, mut state, links, broken, met: new, wrong, .. } = step;
    *met |= new;
    for (client, node) in ends() {
        if let Some(link) = &links[client][node] {
            state.links[client][node] = world.links.number(link.clone()).0;
        }
    }
    match wrong {
        Some(violation) => Err(violation),
        None if broken => Ok(After::Broken),
        None => Ok(After::State(state)),
    }
}

/// An action that is being carried out.
struct Step<'w, 'm> {
    world: &'w mut World<'m>,
    state: State,
    /// Those that were changed.
    links: [[Option<Link>; NODES]; CLIENTS],
    broken: bool,
    reconnecting: bool,
    /// The extension that is being refused in its form.
    refused: Option<(NodeId, u32)>,
    met: u32,
    wrong: Option<Violation>,
}

impl Step<'_, '_> {
    fn fault(&self, fault: Fault) -> bool {
        self.world.model.fault == Some(fault)
    }

    const fn met(&mut self, what: Met) {
        self.met |= what.bit();
    }

    fn wrong(&mut self, property: Property, what: &str) {
        self.wrong.get_or_insert_with(|| violated(property, what));
    }

    fn link(&mut self, client: usize, node: usize) -> &mut Link {
        let number = self.state.links[client][node];
        let links = &self.world.links;
        self.links[client][node].get_or_insert_with(|| links.get(number).clone())
    }

    fn peek(&self, client: usize, node: usize) -> &Link {
        self.links[client][node]
            .as_ref()
            .unwrap_or_else(|| self.world.links.get(self.state.links[client][node]))
    }

    fn take(&mut self, action: Action) {
        match action {
            Action::Tick => self.tick(),
            Action::Start { client } => self.start(client.into()),
            Action::Extend { client, choice } => self.extend(client.into(), choice.into()),
            Action::Release { client } => {
                let time = self.state.time;
                if let Some(attempt) = self.live(client.into()) {
                    let slot = &mut self.state.slots[usize::from(client)][attempt];
                    (slot.releasing, slot.release_at) = (true, time);
                    self.input(client.into(), attempt, Input::Release);
                }
            }
            Action::Abandon { client } => {
                if let Some(attempt) = self.live(client.into()) {
                    self.input(client.into(), attempt, Input::Abandon);
                }
            }
            Action::Void { client } => {
                self.state.voided = true;
                if let Some((_, second)) = self.world.model.alias {
                    self.all_of(client.into(), Input::Void(node_id(second)));
                }
            }
            Action::HandOut { client, node } => self.hand_out(client.into(), node.into(), true),
            Action::Execute { client, node } => {
                let (client, node) = (usize::from(client), usize::from(node));
                let command = self.link(client, node).sent.remove(0);
                let answer = self.run(client, node, command, false);
                self.link(client, node).answers.push((command, answer));
            }
            Action::Fail { client, node, choice } => {
                self.state.errors += 1;
                let (client, node) = (usize::from(client), usize::from(node));
                let answer = self.world.model.errors[usize::from(choice)];
                let command = self.link(client, node).sent.remove(0);
                if answer == Answer::Ambiguous {
                    self.run(client, node, command, false);
                }
                self.link(client, node).answers.push((command, answer));
            }
            Action::Read { client, node } => self.read(client.into(), node.into()),
            Action::Break { client, node, choice } => {
                self.state.done[usize::from(client)].breaks += 1;
                let to = self.world.model.break_to[usize::from(choice)];
                self.break_link(client.into(), node.into(), to, true);
            }
            Action::GiveUp { client, node } => {
                self.link(client.into(), node.into()).up = Up::Down;
                self.all_of(client.into(), Input::ReachChanged(node_id(node.into()), Up::Down.reach()));
            }
            Action::Reconnect { client, node } => self.reconnect(client.into(), node.into()),
            Action::RunLate { client, node, dead } => {
                let (client, node, dead) = (usize::from(client), usize::from(node), usize::from(dead));
                let command = self.link(client, node).late[dead].remove(0);
                self.run(client, node, command, true);
            }
            Action::Forget { server } => {
                self.state.forgets += 1;
                self.forget(server.into());
            }
            Action::Restart { server } => {
                self.state.restarts += 1;
                self.restart(server.into());
            }
        }
    }

    // ---- the client ----

    fn live(&self, client: usize) -> Option<usize> {
        let ended = |slot: &Slot| self.world.view(slot).is_none_or(|view| view.ended);
        self.state.slots[client].iter().position(|slot| !ended(slot))
    }

    fn tick(&mut self) {
        self.state.time += 1;
        let (time, now) = (self.state.time, self.state.now());
        let now_ms = self.state.now_ms();
        for server in &mut self.state.servers {
            server.key = server.key.filter(|key| now_ms <= key.until.into());
            server.forgot = server.forgot.filter(|forgot| now_ms <= forgot.until.into());
        }
        for client in 0..CLIENTS {
            self.all_of(client, Input::Timeout);
        }
        for slot in self.state.slots.iter().flatten() {
            let busy =
                self.world.view(slot).is_some_and(|view| view.next_timeout.is_some_and(|at| at <= now));
            if busy {
                self.wrong.get_or_insert_with(|| {
                    violated(Property::Timer, "a timeout that was fired is still due")
                });
            }
        }
        for server in 0..NODES {
            if self.state.servers[server].quarantined_until == time {
                self.state.servers[server].quarantined_until = 0;
                self.end_quarantine(server);
            }
        }
    }

    fn end_quarantine(&mut self, server: usize) {
        for (client, node) in
            ends().filter(|(_, node)| self.world.model.server_of(*node) == server).collect::<Vec<_>>()
        {
            if self.peek(client, node).up == Up::Quarantined {
                self.met(Met::QuarantineOver);
                self.link(client, node).up = Up::Ready;
                self.all_of(client, Input::ReachChanged(node_id(node), Up::Ready.reach()));
            }
        }
    }

    fn start(&mut self, client: usize) {
        let attempt = usize::from(self.state.done[client].attempts);
        self.state.done[client].attempts += 1;
        let reach = core::array::from_fn(|node| self.reach(self.peek(client, node).up));
        let reaction = self.world.start(client, reach, self.state.now());
        self.state.slots[client][attempt] = Slot { claim: reaction.claim, ..Slot::default() };
        for effect in reaction.effects.iter() {
            self.effect(client, attempt, *effect);
        }
    }

    /// What the claims are told of a connection.
    fn reach(&self, up: Up) -> redlock_core::machine::Reach {
        if self.fault(Fault::QuarantineIgnored) && up == Up::Quarantined {
            Up::Ready.reach()
        } else {
            up.reach()
        }
    }

    fn extend(&mut self, client: usize, choice: usize) {
        self.state.done[client].extends += 1;
        let ticks = self.world.model.clients[client].extends[choice];
        if let Some(attempt) = self.live(client) {
            self.input(client, attempt, Input::Extend(ttl(ticks)));
        }
    }

    /// An input for every claim of the client.
    fn all_of(&mut self, client: usize, input: Input) {
        for attempt in 0..self.state.slots[client].len() {
            self.input(client, attempt, input);
        }
    }

    fn input(&mut self, client: usize, attempt: usize, input: Input) {
        let claim = self.state.slots[client][attempt].claim;
        if claim == 0 {
            return;
        }
        let reaction = self.world.react(claim, self.state.now(), input);
        let before = self.world.view(&self.state.slots[client][attempt]).copied();
        self.state.slots[client][attempt].claim = reaction.claim;
        let after = self.world.view(&self.state.slots[client][attempt]).copied();
        if let (Some(before), Some(after)) = (before, after) {
            if before.ended && !after.ended {
                self.wrong(Property::LostOnce, "what had ended goes on");
            }
            if before.held && after.held && after.deadline < before.deadline {
                self.met(Met::Lowered);
            }
        }
        // A round is open as soon as it was asked for: its end may come with the same effects.
        if let Some(round) = reaction.round {
            let time = self.state.time;
            let slot = &mut self.state.slots[client][attempt];
            slot.rounds |= round_bit(round);
            slot.round_at = time;
        }
        for effect in reaction.effects.iter() {
            self.effect(client, attempt, *effect);
        }
    }

    fn effect(&mut self, client: usize, attempt: usize, effect: Effect) {
        match effect {
            Effect::Send(node, verb) => self.send(client, attempt, node, verb),
            Effect::Withdraw(node) => {
                let keeps = self.fault(Fault::RepairAfterRelease);
                let keep = |command: &Command| {
                    let repair = matches!(command.verb, Verb::Repair { .. });
                    usize::from(command.attempt) != attempt
                        || command.verb == Verb::Release
                        || (keeps && repair)
                };
                self.link(client, node.index()).outbox.retain(keep);
            }
            Effect::Granted { .. } => {
                self.decide(client, attempt);
                self.met(if attempt == 0 { Met::Granted } else { Met::GrantedAgain });
                if self.state.slots[1 - client]
                    .iter()
                    .any(|slot| self.world.view(slot).is_some_and(|view| view.won && view.ended))
                {
                    self.met(Met::HandedOver);
                }
            }
            Effect::AttemptLost(_) => {
                self.decide(client, attempt);
                self.met(Met::AttemptLost);
            }
            Effect::DeadlineMoved { .. } => {}
            Effect::RoundDone { round, cause, result } => {
                let slot = &mut self.state.slots[client][attempt];
                let open = slot.rounds & round_bit(round) != 0;
                slot.rounds &= !round_bit(round);
                // A renewal that no node can be sent is opened and decided at once.
                if !open && cause == Cause::Manual {
                    self.wrong(Property::Rounds, "a round that is not open was decided");
                }
                self.met(match (cause, result.is_ok()) {
                    (Cause::Manual, true) => Met::Extended,
                    (Cause::Renewal, true) => Met::Renewed,
                    (Cause::Manual | Cause::Renewal, false) => Met::ExtendFailed,
                });
            }
            Effect::Expiring { .. } => self.met(Met::Expiring),
            Effect::Lost(reason) => {
                let slot = &mut self.state.slots[client][attempt];
                if core::mem::replace(&mut slot.lost, true) || !slot.decided {
                    self.wrong(Property::LostOnce, "a loss was said twice, or of what was never held");
                }
                match reason {
                    EndReason::Expired => self.met(Met::Expired),
                    EndReason::TokenGone => self.met(Met::TokenGone),
                    EndReason::Duplicate => self.met(Met::Duplicate),
                    EndReason::NotAcquired | EndReason::Released => {
                        self.wrong(Property::LostOnce, "a loss that is none was said");
                    }
                }
            }
            Effect::ReleaseDone(verdict) => {
                let asked = core::mem::replace(&mut self.state.slots[client][attempt].releasing, false);
                if !asked {
                    self.wrong(Property::Released, "a release was answered that nobody waits for");
                }
                match verdict {
                    ReleaseVerdict::Released => self.met(Met::Released),
                    ReleaseVerdict::Unknown { .. } => self.met(Met::ReleaseUnknown),
                    ReleaseVerdict::Expired | ReleaseVerdict::NotMine => {}
                }
            }
            Effect::Alias(_) => self.met(Met::Alias),
            Effect::Repaired(_) => self.met(Met::Repaired),
        }
    }

    fn decide(&mut self, client: usize, attempt: usize) {
        if core::mem::replace(&mut self.state.slots[client][attempt].decided, true) {
            self.wrong(Property::Decision, "an attempt was decided twice");
        }
    }

    fn send(&mut self, client: usize, attempt: usize, node: NodeId, mut verb: Verb) {
        if let Verb::Extend { round, hand_out, start, .. } = &mut verb {
            let (round, start) = (*round, *start);
            *hand_out =
                hand_out_number(round, self.refused.filter(|(at, _)| *at == node).map(|(_, number)| number));
            // A renewal starts by itself.
            let now = self.state.now();
            let time = self.state.time;
            let slot = &mut self.state.slots[client][attempt];
            if start == now
                && slot.rounds & round_bit(round) == 0
                && self.world.model.clients[client].max_hold.is_some()
            {
                slot.rounds |= round_bit(round);
                slot.round_at = time;
            }
        }
        if verb == Verb::Release {
            let view = self.world.view(&self.state.slots[client][attempt]);
            let unknown = view.is_some_and(|view| view.unknown[node.index()]);
            let skipped = (self.fault(Fault::AmbiguousNotReleased) && unknown)
                || (self.fault(Fault::OwedForgotten) && self.reconnecting);
            if skipped {
                self.input(client, attempt, Input::HandedOut(node, verb));
                return self.input(client, attempt, Input::Answered(node, verb, Answer::No));
            }
        }
        if self.reconnecting {
            match verb {
                Verb::Release => self.met(Met::OwedSent),
                Verb::Set => self.met(Met::LateSet),
                Verb::Extend { .. } | Verb::Repair { .. } => {}
            }
        }
        let command = Command { attempt: small(attempt), verb };
        let early = self.fault(Fault::RepairAfterRelease) && verb == Verb::Release;
        let outbox = &mut self.link(client, node.index()).outbox;
        let at = if early {
            outbox.iter().position(|other| matches!(other.verb, Verb::Repair { .. }))
        } else {
            None
        };
        outbox.insert(at.unwrap_or(outbox.len()), command);
    }

    // ---- the network ----

    /// Hands out what may go: everything, or what is not behind a repair that waits for an action of its own.
    fn drain(&mut self) {
        if self.world.model.hand_out == HandOut::Later {
            return;
        }
        let mut again = true;
        while core::mem::take(&mut again) {
            for (client, node) in ends() {
                if self.links[client][node]
                    .as_ref()
                    .is_some_and(|link| !link.outbox.is_empty() && link.up.is_ready())
                {
                    again |= self.hand_out_next(client, node, false);
                }
            }
        }
    }

    fn hand_out(&mut self, client: usize, node: usize, all: bool) {
        while self.hand_out_next(client, node, all) {}
    }

    fn hand_out_next(&mut self, client: usize, node: usize, all: bool) -> bool {
        let waits = self.world.model.hand_out == HandOut::RepairsLater;
        let Some(command) = self.peek(client, node).outbox.first().copied() else { return false };
        if waits && !all && matches!(command.verb, Verb::Repair { .. }) {
            return false;
        }
        let link = self.link(client, node);
        link.outbox.remove(0);
        link.sent.push(command);
        if !(self.fault(Fault::ShorterFromAnswer) && matches!(command.verb, Verb::Extend { .. })) {
            self.input(client, command.attempt.into(), Input::HandedOut(node_id(node), command.verb));
        }
        true
    }

    fn read(&mut self, client: usize, node: usize) {
        let (Command { attempt, verb }, answer) = self.link(client, node).answers.remove(0);
        let id = node_id(node);
        let mut attempt = usize::from(attempt);
        match verb {
            Verb::Set if self.fault(Fault::LateReplyCredited) => {
                attempt = usize::from(self.state.done[client].attempts).saturating_sub(1);
            }
            Verb::Set if answer == Answer::Yes && self.peek(client, node).up == Up::Quarantined => {
                self.met(Met::Muted)
            }
            Verb::Extend { .. } if self.fault(Fault::ShorterFromAnswer) => {
                self.input(client, attempt, Input::HandedOut(id, verb));
            }
            Verb::Extend { .. } if answer == Answer::FormRefused => self.met(Met::Resent),
            Verb::Repair { .. } if answer == Answer::No => self.met(Met::RepairRefused),
            Verb::Set | Verb::Extend { .. } | Verb::Repair { .. } | Verb::Release => {}
        }
        if let (Verb::Extend { hand_out, .. }, Answer::FormRefused) = (verb, answer) {
            self.refused = Some((id, hand_out));
        }
        self.input(client, attempt, Input::Answered(id, verb, answer));
        self.refused = None;
        if let (true, Verb::Repair { .. }, Answer::Yes) = (self.fault(Fault::RepairCounted), verb, answer) {
            let start = self.state.now();
            let ttl =
                self.world.model.clients[client].extends.first().map_or(Duration::ZERO, |ticks| ttl(*ticks));
            let counted = Verb::Extend { round: 0, hand_out: 1_000, start, ttl };
            self.input(client, attempt, Input::HandedOut(id, counted));
            self.input(client, attempt, Input::Answered(id, counted, Answer::Yes));
        }
    }

    /// The connection breaks: answers are lost, and what was not executed may be at any later time, if the server lives.
    fn break_link(&mut self, client: usize, node: usize, to: Up, server_lives: bool) {
        let unanswered: Vec<Command> = {
            let link = self.link(client, node);
            link.answers.iter().map(|(command, _)| *command).chain(link.sent.iter().copied()).collect()
        };
        let id = node_id(node);
        for Command { attempt, verb } in unanswered {
            match verb {
                Verb::Extend { .. } if self.fault(Fault::ShorterFromAnswer) => {
                    self.input(client, attempt.into(), Input::HandedOut(id, verb));
                }
                Verb::Extend { .. } if self.fault(Fault::StuckForgotten) => {
                    self.input(client, attempt.into(), Input::Answered(id, verb, Answer::Ambiguous));
                }
                Verb::Set | Verb::Extend { .. } | Verb::Repair { .. } | Verb::Release => {}
            }
        }
        let link = self.link(client, node);
        link.up = to;
        link.outbox.clear();
        link.answers.clear();
        let sent = core::mem::take(&mut link.sent);
        if server_lives && !sent.is_empty() {
            link.late.push(sent);
        }
        self.all_of(client, Input::Broken(id, to.reach()));
    }

    /// What is owed goes first, before any new SET (R7).
    fn reconnect(&mut self, client: usize, node: usize) {
        let server = self.state.servers[self.world.model.server_of(node)];
        let up = if server.quarantined_until > self.state.time { Up::Quarantined } else { Up::Ready };
        self.link(client, node).up = up;
        self.reconnecting = true;
        let owes = |step: &Self, attempt: usize| {
            step.world.view(&step.state.slots[client][attempt]).is_some_and(|view| view.owes[node])
        };
        let (first, then): (Vec<usize>, Vec<usize>) =
            (0..self.state.slots[client].len()).partition(|attempt| owes(self, *attempt));
        for attempt in first.into_iter().chain(then) {
            self.input(client, attempt, Input::Ready(node_id(node), self.reach(up)));
        }
    }

    // ---- the server ----

    fn token_of(&self, client: usize, attempt: u8) -> u8 {
        token(client, if self.fault(Fault::OneToken) { 0 } else { attempt })
    }

    fn run(&mut self, client: usize, node: usize, command: Command, late: bool) -> Answer {
        let server = self.world.model.server_of(node);
        let token = self.token_of(client, command.attempt);
        let key = self.state.servers[server].key;
        let mine = key.is_some_and(|key| key.token == token);
        let changed = match command.verb {
            Verb::Set => {
                key.is_none() && self.set(client, node, command.attempt, self.world.model.set_ttl(), late)
            }
            Verb::Repair { ttl } => key.is_none() && self.set(client, node, command.attempt, ttl, late),
            Verb::Extend { ttl, .. } => {
                let until = self.until(ttl);
                if let (true, Some(key)) = (mine, &mut self.state.servers[server].key) {
                    key.until = until;
                }
                mine
            }
            Verb::Release => {
                if mine {
                    self.state.servers[server].key = None;
                }
                mine
            }
        };
        if changed && late {
            self.met(Met::LateRan);
        }
        if changed { Answer::Yes } else { Answer::No }
    }

    fn until(&self, ttl: Duration) -> u16 {
        let until = u128::from(self.state.now_ms()) + ttl.as_millis();
        u16::try_from(until).unwrap_or(u16::MAX)
    }

    fn set(&mut self, client: usize, node: usize, attempt: u8, ttl: Duration, late: bool) -> bool {
        let server = self.world.model.server_of(node);
        let token = self.token_of(client, attempt);
        let view = self.world.view(&self.state.slots[client][usize::from(attempt)]);
        let cleaned = view.is_none_or(|view| view.ended && !view.owes[node]);
        let release = Command { attempt, verb: Verb::Release };
        let link = self.peek(client, node);
        let orphan = late && cleaned && !link.outbox.contains(&release) && !link.sent.contains(&release);
        if orphan {
            self.met(Met::Orphan);
        }
        if let Some(forgot) = self.state.servers[server].forgot {
            let owner = &self.state.slots[usize::from(forgot.client)][usize::from(forgot.attempt)];
            let lives = self.world.view(owner).is_some_and(|view| !view.ended);
            if usize::from(forgot.client) == client && forgot.attempt == attempt {
                self.state.servers[server].forgot = None;
            } else if lives && !is_of(token, forgot.client.into()) && !self.world.model.quarantine {
                self.broken = true;
                self.met(Met::AssumptionBroken);
            }
        }
        self.state.servers[server].key = Some(Key { token, until: self.until(ttl), orphan });
        true
    }

    fn forget(&mut self, server: usize) {
        let Some(key) = self.state.servers[server].key.take() else { return };
        let client = usize::from(!is_of(key.token, 0));
        let attempt = key.token - token(client, 0);
        self.state.servers[server].forgot = Some(Forgot { client: small(client), attempt, until: key.until });
    }

    fn restart(&mut self, server: usize) {
        self.forget(server);
        let model = self.world.model;
        if model.quarantine {
            self.state.servers[server].quarantined_until = self.state.time + model.longest();
        }
        let to = model.break_to.first().copied().unwrap_or(Up::Down);
        for (client, node) in ends().filter(|(_, node)| model.server_of(*node) == server) {
            self.break_link(client, node, to, false);
            // Nor does it execute what older connections left.
            self.link(client, node).late.clear();
        }
    }

    // ---- the end of a step ----

    /// What a claim that has ended is answered is read at once, and a release that can never do anything is executed at
    /// once. Answers whether there was any.
    fn settle(&mut self) -> bool {
        for (client, node) in ends() {
            let link = self.peek(client, node);
            if let Some((command, _)) = link.answers.first() {
                let slot = &self.state.slots[client][usize::from(command.attempt)];
                if self.world.view(slot).is_none_or(|view| view.ended) {
                    self.read(client, node);
                    return true;
                }
            } else if let Some(command) = link.sent.first().copied()
                && command.verb == Verb::Release
                && self.does_nothing(client, node, &command)
            {
                let link = self.link(client, node);
                link.sent.remove(0);
                link.answers.push((command, Answer::No));
                return true;
            }
        }
        false
    }

    /// Whether an extension or a release does nothing, now or later: the server does not have the token, and no command is
    /// left that could set it there.
    fn does_nothing(&self, client: usize, node: usize, command: &Command) -> bool {
        let model = self.world.model;
        let server = model.server_of(node);
        let sets = |other: &Command| {
            let sets = matches!(other.verb, Verb::Set | Verb::Repair { .. });
            sets && self.token_of(client, other.attempt) == self.token_of(client, command.attempt)
        };
        let key = self.state.servers[server].key;
        let there = key.is_some_and(|key| key.token == self.token_of(client, command.attempt));
        let nodes = (0..NODES).filter(|other| model.server_of(*other) == server);
        let ended = self
            .world
            .view(&self.state.slots[client][usize::from(command.attempt)])
            .is_none_or(|view| view.ended);
        ended
            && !there
            && !sets(command)
            && !nodes.into_iter().any(|other| self.peek(client, other).to_run().any(sets))
    }

    /// Forgets what cannot matter any more, so that states which differ by it alone are one.
    fn tidy(&mut self) {
        for client in 0..CLIENTS {
            for attempt in 0..self.state.slots[client].len() {
                if self.world.view(&self.state.slots[client][attempt]).is_some_and(|view| view.finished) {
                    if self.state.slots[client][attempt].releasing {
                        self.wrong(Property::Released, "finished with the release unanswered");
                    }
                    self.state.slots[client][attempt] = Slot::default();
                }
            }
        }
        for (client, node) in ends() {
            let link = self.peek(client, node);
            let finished =
                |command: &Command| self.state.slots[client][usize::from(command.attempt)].claim == 0;
            // The engine drops answers to what is finished.
            let stale = link.answers.iter().any(|(command, _)| finished(command));
            let dead = !link.late.is_empty();
            if stale {
                let slots = self.state.slots[client];
                self.link(client, node)
                    .answers
                    .retain(|(command, _)| slots[usize::from(command.attempt)].claim != 0);
            }
            if dead {
                self.tidy_late(client, node);
            }
        }
        for server in &mut self.state.servers {
            server.forgot = server.forgot.filter(|forgot| {
                self.world
                    .view(&self.state.slots[usize::from(forgot.client)][usize::from(forgot.attempt)])
                    .is_some_and(|view| !view.ended)
            });
        }
    }

    /// A late command that can never do anything is the same as one that never runs.
    fn tidy_late(&mut self, client: usize, node: usize) {
        let late: Vec<Vec<Command>> = self
            .peek(client, node)
            .late
            .iter()
            .map(|dead| dead.iter().filter(|command| !self.does_nothing(client, node, command)))
            .map(|left| left.copied().map(Command::late).collect())
            .filter(|dead: &Vec<Command>| !dead.is_empty())
            .collect();
        self.link(client, node).late = late;
    }
}

/// The number of a hand-out. A claim numbers its hand-outs to all nodes in one row, and compares only those to one node:
/// numbers that grow at each node do as well, and do not depend on the order of the nodes.
const fn hand_out_number(round: u32, refused: Option<u32>) -> u32 {
    match refused {
        Some(number) if number / 4 == round => number + 1,
        Some(_) | None => round * 4,
    }
}

const fn round_bit(round: u32) -> u16 {
    1 << (round % 16)
}
