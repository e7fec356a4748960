//! What an action leads to.

mod candidate;
mod client;
mod counter;
mod look;
mod network;
mod server;

use super::actions::{Action, Mishap, ends, small};
use super::faults::Fault;
use super::properties::{Met, Property, Violation, violated};
use super::state::{
    ATTEMPTS, Ask, CLIENTS, Command, FORGOTTEN, Input, Key, Link, NOBODY, NODES, Slot, State, Up, World,
    is_of, node_id, token,
};
use redlock_core::NodeId;
use redlock_core::machine::{Answer, Verb};

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
    met: &mut u64,
) -> Result<After, Violation> {
    let settles = world.model.ended_at_once;
    let mut step = Step {
        world,
        state: *state,
        links: Default::default(),
        broken: false,
        reconnecting: false,
        refused: None,
        raised: false,
        met: 0,
        wrong: None,
    };
    step.take(action);
    step.drain();
    while step.hear() || (settles && step.settle()) {
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
    /// An answer to a raise is being read.
    raised: bool,
    met: u64,
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
            Action::Campaign { client } => self.campaign(client.into()),
            Action::Elected { client } => self.elected(client.into()),
            Action::CallOff { client } => self.call_off(client.into()),
            Action::CampaignFails { client } => self.campaign_fails(client.into()),
            Action::Void { client } => {
                self.state.voided = true;
                if let Some((_, second)) = self.world.model.alias {
                    self.all_of(client.into(), Input::Void(node_id(second)));
                }
            }
            Action::Look { client, node } => self.ask_to_look(client.into(), node.into()),
            Action::HandOut { client, node } => self.hand_out(client.into(), node.into(), true),
            Action::Execute { client, node, after } => {
                let (client, node) = (usize::from(client), usize::from(node));
                let command = self.link(client, node).sent.remove(0);
                let answer = self.run(client, node, command, false, after);
                self.link(client, node).answers.push((command, answer));
            }
            Action::Fail { client, node, choice } => {
                self.state.errors += 1;
                let (client, node) = (usize::from(client), usize::from(node));
                let answer = self.world.model.errors[usize::from(choice)];
                let command = self.link(client, node).sent.remove(0);
                if answer == Answer::Ambiguous {
                    self.run(client, node, command, false, Mishap::default());
                }
                self.link(client, node).answers.push((command, answer));
            }
            Action::Read { client, node } => self.read(client.into(), node.into()),
            Action::Break { client, node, choice } => {
                self.state.done[usize::from(client)].breaks += 1;
                let to = self.world.model.break_to[usize::from(choice)];
                self.break_link(client.into(), node.into(), to, true);
                if self.world.model.expires {
                    // What is sent on the next connection may be executed at any later time: it may as well stand at once.
                    self.reconnect(client.into(), node.into());
                }
            }
            Action::GiveUp { client, node } => {
                self.link(client.into(), node.into()).up = Up::Down;
                self.all_of(client.into(), Input::ReachChanged(node_id(node.into()), Up::Down.reach()));
            }
            Action::Reconnect { client, node } => self.reconnect(client.into(), node.into()),
            Action::RunLate { client, node, dead, after } => {
                let (client, node, dead) = (usize::from(client), usize::from(node), usize::from(dead));
                let command = self.link(client, node).late[dead].remove(0);
                self.run(client, node, command, true, after);
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

    // ---- the end of a step ----

    /// What a claim that has ended is answered is read at once, and a release that can never do anything is executed at
    /// once. Answers whether there was any.
    fn settle(&mut self) -> bool {
        for (client, node) in ends() {
            if self.stop_looking(client, node) {
                return true;
            }
            let link = self.peek(client, node);
            if let Some((command, answer)) = link.answers.first() {
                // No order of the refusals of an attempt that is undecided leads to another grant: it is lost only when
                // it cannot be granted any more.
                let early = *answer == Answer::No && self.is_attempting(client, command);
                let ended = self.has_ended(client, command) || (self.world.model.expires && early);
                if ended && self.is_forgotten(client, command) {
                    self.link(client, node).answers.remove(0);
                    return true;
                }
                if ended {
                    self.read(client, node);
                    return true;
                }
            } else if let Some(command) = link.sent.first().copied()
                && command.asks == Ask::To(Verb::Release)
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
            let sets = matches!(other.asks, Ask::To(Verb::Set | Verb::Repair { .. }));
            sets && self.token_of(client, other.attempt) == self.token_of(client, command.attempt)
        };
        let key = self.state.servers[server].key;
        let there = key.is_some_and(|key| key.token == self.token_of(client, command.attempt));
        let nodes = (0..NODES).filter(|other| model.server_of(*other) == server);
        self.has_ended(client, command)
            && !there
            && !sets(command)
            && !nodes.into_iter().any(|other| self.peek(client, other).to_run().any(sets))
    }

    fn has_ended(&self, client: usize, command: &Command) -> bool {
        let slot = self.state.slots[client].get(usize::from(command.attempt));
        slot.and_then(|slot| self.world.view(slot)).is_none_or(|view| view.ended)
    }

    fn is_attempting(&self, client: usize, command: &Command) -> bool {
        let slot = self.state.slots[client].get(usize::from(command.attempt));
        slot.and_then(|slot| self.world.view(slot)).is_some_and(|view| view.attempting)
    }

    /// Whether the claim is finished and forgotten.
    fn is_forgotten(&self, client: usize, command: &Command) -> bool {
        self.state.slots[client].get(usize::from(command.attempt)).is_none_or(|slot| slot.claim == 0)
    }

    /// Forgets what cannot matter any more, so that states which differ by it alone are one.
    fn tidy(&mut self) {
        let expires = self.world.model.expires;
        for client in 0..CLIENTS {
            for attempt in 0..self.state.slots[client].len() {
                let view = self.world.view(&self.state.slots[client][attempt]);
                if view.is_some_and(|view| view.finished || (expires && view.ended)) {
                    if self.state.slots[client][attempt].releasing && !expires {
                        self.wrong(Property::Released, "finished with the release unanswered");
                    }
                    self.state.slots[client][attempt] = Slot::default();
                }
            }
        }
        for slot in self.state.slots.iter_mut().flatten() {
            if !self.world.view(slot).is_some_and(|view| view.held) {
                slot.missing = [false; NODES];
            }
        }
        for (client, node) in ends() {
            let link = self.peek(client, node);
            // The engine drops answers to what is finished.
            let stale = link.answers.iter().any(|(command, _)| self.is_forgotten(client, command));
            let dead = !link.late.is_empty();
            if stale {
                let mut answers = core::mem::take(&mut self.link(client, node).answers);
                answers.retain(|(command, _)| !self.is_forgotten(client, command));
                self.link(client, node).answers = answers;
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
        self.tidy_candidates();
        if expires {
            self.tidy_names();
        }
        self.tidy_fences();
    }

    /// Attempts that are finished are all the same, but where a command is left that asks for the token of one.
    fn tidy_names(&mut self) {
        for (client, node) in ends() {
            let names =
                |command: &Command| command.asks != Ask::To(Verb::Set) || !self.is_forgotten(client, command);
            let link = self.peek(client, node);
            let kept: Vec<u8> =
                link.to_run().filter(|command| names(command)).map(|command| command.attempt).collect();
            let nothing = |command: &Command| {
                self.is_forgotten(client, command) && self.does_nothing(client, node, command)
            };
            let renamed = |command: &Command| Command {
                attempt: if kept.contains(&command.attempt) { command.attempt } else { FORGOTTEN },
                ..*command
            };
            let tidied = |commands: &[Command]| -> Vec<Command> {
                commands.iter().filter(|command| !nothing(command)).map(renamed).collect()
            };
            let sent = tidied(&link.sent);
            let late = link.late.iter().map(|dead| tidied(dead)).collect::<Vec<_>>();
            if (&sent, &late) != (&link.sent, &link.late) {
                let link = self.link(client, node);
                (link.sent, link.late) = (sent, late);
            }
            let at = self.world.model.server_of(node);
            let Some(key) = self.state.servers[at].key.filter(|key| is_of(key.token, client)) else {
                continue;
            };
            let of = |command: &Command| token(client, command.attempt) == key.token;
            let lives = (0..ATTEMPTS).any(|attempt| {
                token(client, small(attempt)) == key.token && self.state.slots[client][attempt].claim != 0
            });
            if !lives && !self.peek(client, node).to_run().any(of) {
                self.state.servers[at].key = Some(Key { token: NOBODY, ..key });
            }
        }
    }

    /// A fence that was granted can only be granted again to an attempt that started before; to any other the largest
    /// matters alone.
    fn tidy_fences(&mut self) {
        let slots = self.state.slots.iter().flatten();
        let attempting = |slot: &&Slot| self.world.view(slot).is_some_and(|view| view.attempting);
        let least = slots.filter(attempting).map(|slot| slot.floor).min().unwrap_or(u8::MAX);
        for fence in &mut self.state.fences[1..] {
            if *fence <= least {
                *fence = 0;
            }
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
