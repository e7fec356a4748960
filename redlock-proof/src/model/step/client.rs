//! The client: what its user does, and what its claims want done.

use super::Step;
use super::counter::number;
use crate::model::actions::{ends, small};
use crate::model::faults::Fault;
use crate::model::properties::{Met, Property, violated};
use crate::model::state::{ATTEMPTS, Ask, CLIENTS, Command, Input, NODES, Slot, Up, node_id, ttl};
use redlock_core::NodeId;
use redlock_core::machine::{Answer, Cause, Effect, EndReason, Reach, ReleaseVerdict, Verb};

impl Step<'_, '_> {
    pub(super) fn live(&self, client: usize) -> Option<usize> {
        let ended = |slot: &Slot| self.world.view(slot).is_none_or(|view| view.ended);
        self.state.slots[client].iter().position(|slot| !ended(slot))
    }

    pub(super) fn tick(&mut self) {
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

    pub(super) fn end_quarantine(&mut self, server: usize) {
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

    pub(super) fn start(&mut self, client: usize) {
        let attempt = usize::from(self.state.done[client].attempts);
        self.check_rest(client);
        if self.world.model.expires
            && let Some(before) = self.live(client)
        {
            // The end of a claim matters to nothing but the next: it may as well come just before.
            self.input(client, before, Input::Abandon);
            self.state.slots[client][before] = Slot::default();
        }
        self.state.done[client].attempts += 1;
        let reach = core::array::from_fn(|node| self.reach(self.peek(client, node).up));
        let reaction = self.world.start(client, reach, self.state.now());
        let floor = self.state.fences[0];
        self.state.slots[client][attempt] = Slot { claim: reaction.claim, floor, ..Slot::default() };
        for effect in reaction.effects.iter() {
            self.effect(client, attempt, *effect);
        }
    }

    /// What the claims are told of a connection.
    pub(super) fn reach(&self, up: Up) -> Reach {
        if self.fault(Fault::QuarantineIgnored) && up == Up::Quarantined {
            Up::Ready.reach()
        } else {
            up.reach()
        }
    }

    pub(super) fn extend(&mut self, client: usize, choice: usize) {
        self.state.done[client].extends += 1;
        let ticks = self.world.model.clients[client].extends[choice];
        if let Some(attempt) = self.live(client) {
            self.input(client, attempt, Input::Extend(ttl(ticks)));
        }
    }

    /// An input for every claim of the client.
    pub(super) fn all_of(&mut self, client: usize, input: Input) {
        for attempt in 0..self.state.slots[client].len() {
            self.input(client, attempt, input);
        }
    }

    pub(super) fn input(&mut self, client: usize, attempt: usize, input: Input) {
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
            if before.held && after.ended {
                self.hold_ended(client, input);
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

    pub(super) fn effect(&mut self, client: usize, attempt: usize, effect: Effect) {
        match effect {
            Effect::Send(node, verb) => self.send(client, attempt, node, verb),
            Effect::Withdraw(node) => {
                let keeps = self.fault(Fault::RepairAfterRelease);
                let keep = |command: &Command| {
                    let repair = matches!(command.asks, Ask::To(Verb::Repair { .. }));
                    usize::from(command.attempt) != attempt
                        || matches!(command.asks, Ask::To(Verb::Release) | Ask::Look)
                        || (keeps && repair)
                };
                self.link(client, node.index()).outbox.retain(keep);
            }
            Effect::Granted { deadline, fence } => {
                self.decide(client, attempt);
                self.fenced(client, attempt, fence);
                if self.world.model.clients[client].campaigns {
                    self.state.candidates[client].granted = Some(fence.map_or(0, number));
                }
                if deadline <= self.state.now() {
                    self.wrong(Property::Decision, "granted with no validity left");
                }
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
                self.state.slots[client][attempt].floor = 0;
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

    /// What has to hold of a fence that is granted.
    fn fenced(&mut self, client: usize, attempt: usize, fence: Option<u64>) {
        let floor = core::mem::take(&mut self.state.slots[client][attempt].floor);
        let model = self.world.model;
        if fence.is_some() != model.fenced {
            self.wrong(Property::Fence, "a fenced grant has a fence, another has none");
        }
        let Some(fence) = fence else { return };
        let highest = core::mem::take(&mut self.state.slots[client][attempt].highest);
        let fence = number(fence).max(highest);
        self.met(if self.raised { Met::Raised } else { Met::Agreed });
        let largest = self.state.fences[0];
        if !model.compares_fences {
        } else if fence <= floor {
            let what = format!("{fence} is granted to an attempt that started after {floor} was");
            self.wrong(Property::Fence, &what);
        } else if self.state.fences.contains(&fence) {
            self.wrong(Property::Fence, &format!("{fence} is granted twice"));
        } else if fence < largest {
            self.met(Met::Overtaken);
            if !model.expires && model.forgets == 0 {
                self.wrong(Property::Fence, &format!("{fence} is granted after {largest}"));
            }
        }
        let fences = &mut self.state.fences;
        // As many as there are attempts: the last is free.
        fences[CLIENTS * ATTEMPTS - 1] = fence;
        fences.sort_unstable_by(|one, other| other.cmp(one));
    }

    pub(super) fn decide(&mut self, client: usize, attempt: usize) {
        if core::mem::replace(&mut self.state.slots[client][attempt].decided, true) {
            self.wrong(Property::Decision, "an attempt was decided twice");
        }
    }

    pub(super) fn send(&mut self, client: usize, attempt: usize, node: NodeId, mut verb: Verb) {
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
        if verb == Verb::Release && self.world.model.expires {
            return;
        }
        if matches!(verb, Verb::Raise { .. }) && self.fault(Fault::FenceNotHeld) {
            self.input(client, attempt, Input::HandedOut(node, verb));
            return self.input(client, attempt, Input::Answered(node, verb, Answer::Yes));
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
                Verb::Extend { .. } | Verb::Repair { .. } | Verb::Raise { .. } => {}
            }
        }
        let view = self.world.view(&self.state.slots[client][attempt]);
        let fence = match verb {
            Verb::Repair { .. } => view.and_then(|view| view.fence).unwrap_or(0),
            Verb::Set | Verb::Extend { .. } | Verb::Raise { .. } | Verb::Release => 0,
        };
        let command = Command { attempt: small(attempt), asks: Ask::To(verb), fence };
        let early = self.fault(Fault::RepairAfterRelease) && verb == Verb::Release;
        let outbox = &mut self.link(client, node.index()).outbox;
        let at = if early {
            outbox.iter().position(|other| matches!(other.asks, Ask::To(Verb::Repair { .. })))
        } else {
            None
        };
        outbox.insert(at.unwrap_or(outbox.len()), command);
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
