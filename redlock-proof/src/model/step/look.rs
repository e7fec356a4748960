//! The holder's watch: it looks at its keys, and tells the claim where the token is not there (R14).

use super::Step;
use crate::model::actions::small;
use crate::model::faults::Fault;
use crate::model::properties::Met;
use crate::model::state::{Ask, Command, Input, node_id};
use redlock_core::machine::{Answer, Verb};

impl Step<'_, '_> {
    pub(super) fn ask_to_look(&mut self, client: usize, node: usize) {
        self.state.done[client].looks += 1;
        if let Some(attempt) = self.live(client) {
            let look = Command { attempt: small(attempt), asks: Ask::Look, fence: 0 };
            self.link(client, node).outbox.push(look);
        }
    }

    /// What the look has found is read: only that the token is not there is told to the claim.
    pub(super) fn looked(&mut self, client: usize, attempt: usize, node: usize, answer: Answer) {
        let id = node_id(node);
        let held = self.world.view(&self.state.slots[client][attempt]).is_some_and(|view| view.held);
        if answer == Answer::No && held {
            self.met(Met::LookedGone);
            self.state.slots[client][attempt].missing[node] = true;
            if !self.fault(Fault::LookDropped) {
                self.input(client, attempt, Input::ReadWithoutToken(id));
            }
        } else if held {
            self.met(Met::LookedThere);
            if self.fault(Fault::LookProlongs) {
                let (start, ttl) = (self.state.now(), self.world.model.set_ttl());
                let counted = Verb::Extend { round: 0, hand_out: 1_000, start, ttl };
                self.input(client, attempt, Input::HandedOut(id, counted));
                self.input(client, attempt, Input::Answered(id, counted, Answer::Yes));
            }
        }
    }

    /// The fault by which what a look has found is told before the answer to what was sent before it. Answers whether it was.
    pub(super) fn look_ahead(&mut self, client: usize, node: usize) -> bool {
        let link = self.peek(client, node);
        let next = link.answers.get(1).filter(|(command, answer)| {
            command.asks == Ask::Look && *answer == Answer::No && link.answers[0].0.attempt == command.attempt
        });
        let Some((Command { attempt, .. }, _)) = next.copied().filter(|_| self.fault(Fault::LookAhead))
        else {
            return false;
        };
        self.input(client, attempt.into(), Input::ReadWithoutToken(node_id(node)));
        true
    }

    /// What the node says of the token in answer to something else.
    pub(super) fn told_missing(
        &mut self,
        client: usize,
        attempt: usize,
        node: usize,
        verb: Verb,
        answer: Answer,
    ) {
        if self.world.model.looks()
            && matches!(verb, Verb::Extend { .. })
            && matches!(answer, Answer::Yes | Answer::No)
        {
            self.state.slots[client][attempt].missing[node] = answer == Answer::No;
        }
    }

    /// What an ended lock's key is like is of no interest any more.
    pub(super) fn stop_looking(&mut self, client: usize, node: usize) -> bool {
        let idle = |command: &Command| command.asks == Ask::Look && self.has_ended(client, command);
        let link = self.peek(client, node);
        let answered = link.answers.iter().map(|(command, _)| command);
        if !link.outbox.iter().chain(&link.sent).chain(answered).any(idle) {
            return false;
        }
        let mut link = link.clone();
        link.outbox.retain(|command| !idle(command));
        link.sent.retain(|command| !idle(command));
        link.answers.retain(|(command, _)| !idle(command));
        self.links[client][node] = Some(link);
        true
    }
}
