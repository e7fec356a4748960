//! The network: what is handed out, answered, and broken.

use super::Step;
use super::counter::number;
use crate::model::actions::ends;
use crate::model::configs::HandOut;
use crate::model::faults::Fault;
use crate::model::properties::Met;
use crate::model::state::{Ask, Command, Input, Up, node_id, ttl};
use core::time::Duration;
use redlock_core::machine::{Answer, Verb};

impl Step<'_, '_> {
    /// Hands out what may go: everything, or what is not behind a repair that waits for an action of its own.
    pub(super) fn drain(&mut self) {
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

    pub(super) fn hand_out(&mut self, client: usize, node: usize, all: bool) {
        while self.hand_out_next(client, node, all) {}
    }

    pub(super) fn hand_out_next(&mut self, client: usize, node: usize, all: bool) -> bool {
        let waits = self.world.model.hand_out == HandOut::RepairsLater;
        let Some(command) = self.peek(client, node).outbox.first().copied() else { return false };
        if waits && !all && matches!(command.asks, Ask::To(Verb::Repair { .. })) {
            return false;
        }
        let link = self.link(client, node);
        link.outbox.remove(0);
        link.sent.push(command);
        if let Ask::To(verb) = command.asks
            && !(self.fault(Fault::ShorterFromAnswer) && matches!(verb, Verb::Extend { .. }))
        {
            self.input(client, command.attempt.into(), Input::HandedOut(node_id(node), verb));
        }
        true
    }

    pub(super) fn read(&mut self, client: usize, node: usize) {
        let ahead = self.look_ahead(client, node);
        let (Command { attempt, asks, .. }, mut answer) = self.link(client, node).answers.remove(0);
        let id = node_id(node);
        let mut attempt = usize::from(attempt);
        let verb = match asks {
            Ask::To(verb) => verb,
            Ask::Look => return self.looked(client, attempt, node, answer),
        };
        self.told_missing(client, attempt, node, verb, answer);
        match verb {
            Verb::Set if self.fault(Fault::LateReplyCredited) => {
                attempt = usize::from(self.state.done[client].attempts).saturating_sub(1);
            }
            Verb::Set if self.peek(client, node).up == Up::Quarantined && answer != Answer::No => {
                self.met(Met::Muted)
            }
            Verb::Set => {
                if let Answer::Counters { highest, .. } = answer {
                    answer = self.counted(client, attempt, highest);
                }
            }
            Verb::Raise { .. } => {
                self.raised = true;
                if answer == Answer::No {
                    self.met(Met::RaiseRefused);
                }
            }
            Verb::Extend { .. } if self.fault(Fault::ShorterFromAnswer) => {
                self.input(client, attempt, Input::HandedOut(id, verb));
            }
            Verb::Extend { .. } if answer == Answer::FormRefused => self.met(Met::Resent),
            Verb::Repair { .. } if answer == Answer::No => self.met(Met::RepairRefused),
            Verb::Extend { .. } | Verb::Repair { .. } | Verb::Release => {}
        }
        if let (Verb::Extend { hand_out, .. }, Answer::FormRefused) = (verb, answer) {
            self.refused = Some((id, hand_out));
        }
        self.input(client, attempt, Input::Answered(id, verb, answer));
        (self.refused, self.raised) = (None, false);
        if let (true, Verb::Repair { .. }, Answer::Yes) = (self.fault(Fault::RepairCounted), verb, answer) {
            let start = self.state.now();
            let ttl =
                self.world.model.clients[client].extends.first().map_or(Duration::ZERO, |ticks| ttl(*ticks));
            let counted = Verb::Extend { round: 0, hand_out: 1_000, start, ttl };
            self.input(client, attempt, Input::HandedOut(id, counted));
            self.input(client, attempt, Input::Answered(id, counted, Answer::Yes));
        }
        if ahead {
            self.link(client, node).answers.remove(0);
            self.state.slots[client][attempt].missing[node] = true;
        }
    }

    /// A granting node tells its counter.
    fn counted(&mut self, client: usize, attempt: usize, counter: u64) -> Answer {
        let Some(view) = self.world.view(&self.state.slots[client][attempt]).copied() else {
            return Answer::Counters { lowest: counter, highest: counter };
        };
        if let Some(fence) = view.fence.filter(|fence| view.attempting && counter > *fence) {
            self.met(Met::Beyond);
            if self.fault(Fault::BeyondCounted) {
                return Answer::Counters { lowest: fence, highest: fence };
            }
        }
        if self.fault(Fault::FenceMoves) && view.attempting {
            let highest = &mut self.state.slots[client][attempt].highest;
            *highest = number(counter).max(*highest);
        }
        Answer::Counters { lowest: counter, highest: counter }
    }

    /// The connection breaks: answers are lost, and what was not executed may be at any later time, if the server lives.
    pub(super) fn break_link(&mut self, client: usize, node: usize, to: Up, server_lives: bool) {
        let unanswered: Vec<Command> = {
            let link = self.link(client, node);
            link.answers.iter().map(|(command, _)| *command).chain(link.sent.iter().copied()).collect()
        };
        let id = node_id(node);
        for Command { attempt, asks, .. } in unanswered {
            let Ask::To(verb) = asks else { continue };
            match verb {
                Verb::Extend { .. } if self.fault(Fault::ShorterFromAnswer) => {
                    self.input(client, attempt.into(), Input::HandedOut(id, verb));
                }
                Verb::Extend { .. } if self.fault(Fault::StuckForgotten) => {
                    self.input(client, attempt.into(), Input::Answered(id, verb, Answer::Ambiguous));
                }
                Verb::Set
                | Verb::Extend { .. }
                | Verb::Repair { .. }
                | Verb::Raise { .. }
                | Verb::Release => {}
            }
        }
        let link = self.link(client, node);
        link.up = to;
        link.outbox.clear();
        link.answers.clear();
        let mut sent = core::mem::take(&mut link.sent);
        sent.retain(|command| command.asks != Ask::Look);
        if server_lives && !sent.is_empty() {
            link.late.push(sent);
        }
        self.all_of(client, Input::Broken(id, to.reach()));
    }

    /// What is owed goes first, before any new SET (R7).
    pub(super) fn reconnect(&mut self, client: usize, node: usize) {
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
}
