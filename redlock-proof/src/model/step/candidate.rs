//! The candidates: what an adapter does around the shipped `Election`.

use super::Step;
use crate::model::candidate::{Ending, last, tick_of};
use crate::model::faults::Fault;
use crate::model::properties::{Met, Property};
use crate::model::state::{CLIENTS, Input, Slot};
use redlock_core::Fence;
use redlock_core::machine::{Election, Stage};

impl Step<'_, '_> {
    fn stage(&self, client: usize) -> Stage {
        self.world.election(&self.state, client).stage()
    }

    fn tell<T>(&mut self, client: usize, what: impl FnOnce(&mut Election) -> T) -> T {
        let mut election = self.world.election(&self.state, client).clone();
        let answer = what(&mut election);
        self.state.candidates[client].election = self.world.elections.number(election).0;
        answer
    }

    /// A campaign begins; the end of the candidate's last term is seen before. If it need not wait, its first round is sent.
    pub(super) fn campaign(&mut self, client: usize) {
        let now = self.state.now();
        if let Some(before) = self.live(client) {
            // Only where keys are gone at any time: the lock ends just before.
            self.input(client, before, Input::Abandon);
            self.state.slots[client][before] = Slot::default();
        }
        if self.stage(client) == Stage::Leading {
            match self.state.candidates[client].ended.take() {
                Some(Ending::Lost) => self.met(Met::CampaignedAfterLoss),
                Some(Ending::Resigned) => self.met(Met::CampaignedAfterResignation),
                None => {}
            }
            if self.fault(Fault::NoRest) {
                self.tell(client, Election::called_off);
            } else if !self.fault(Fault::EndedForgotten) {
                self.tell(client, |election| election.ended(now));
            }
        }
        let delay = self.tell(client, |election| election.campaign(now));
        let (Some(delay), Stage::Campaigning) = (delay, self.stage(client)) else {
            return self
                .wrong(Property::Progress, "a campaign is refused to one who neither leads nor campaigns");
        };
        let from = if self.fault(Fault::DelayIgnored) { now } else { now.saturating_add(delay) };
        let candidate = &mut self.state.candidates[client];
        (candidate.asks, candidate.from) = (true, tick_of(from));
        if candidate.from <= self.state.time {
            self.start(client);
        } else {
            self.met(Met::Rested);
        }
    }

    /// An attempt of a candidate starts.
    pub(super) fn check_rest(&mut self, client: usize) {
        let candidate = &mut self.state.candidates[client];
        candidate.from = 0;
        if core::mem::take(&mut candidate.rests_until) > self.state.time {
            self.wrong(Property::Rest, "who has led starts an attempt before its rest is over");
        }
    }

    /// It hears that its lock was granted.
    pub(super) fn elected(&mut self, client: usize) {
        let now = self.state.now();
        let Some(fence) = self.state.candidates[client].granted.take() else { return };
        self.state.candidates[client].asks = false;
        if !last(self.world, &self.state, client).is_some_and(|view| view.believes(now)) {
            // Too late (R6): the campaign goes on.
            self.met(Met::HeardTooLate);
            self.tell(client, |election| election.failed(now));
            if self.state.done[client].attempts < self.world.model.clients[client].attempts {
                self.campaign(client);
            }
            return;
        }
        let told = (fence > 0 && !self.fault(Fault::StaleEpochTaken)).then_some(Fence::new(fence.into()));
        if self.tell(client, |election| election.elected(told, now)).is_err() {
            self.met(Met::EpochRefused);
            if self.world.model.compares_fences {
                self.wrong(Property::Epoch, "an epoch is refused though no clock is behind");
            }
            let attempt = self.live(client);
            return attempt.into_iter().for_each(|attempt| self.input(client, attempt, Input::Abandon));
        }
        let (own, other) = (self.state.candidates[client], self.state.candidates[1 - client]);
        if own.terms > 0 {
            self.met(Met::ElectedAgain);
        }
        if other.terms > 0 {
            self.met(Met::Succeeded);
        }
        if fence > 0 && fence <= own.epoch {
            self.wrong(
                Property::Epoch,
                &format!("{fence} is an epoch of one who was elected with {}", own.epoch),
            );
        } else if fence > 0 && fence <= other.epoch && !self.world.model.expires {
            self.wrong(Property::Epoch, &format!("{fence} is an epoch after {}", other.epoch));
        }
        let candidate = &mut self.state.candidates[client];
        candidate.terms += 1;
        candidate.epoch = candidate.epoch.max(fence);
    }

    /// Nobody waits for the campaign any more.
    pub(super) fn call_off(&mut self, client: usize) {
        self.met(Met::CalledOff);
        if !self.fault(Fault::CalledOffForgotten) {
            self.tell(client, Election::called_off);
        }
        self.stop_asking(client);
        if let Some(attempt) = self.live(client) {
            self.input(client, attempt, Input::Abandon);
        }
    }

    /// The campaign's acquire fails for a reason that waiting does not mend.
    pub(super) fn campaign_fails(&mut self, client: usize) {
        self.met(Met::CampaignFailed);
        self.state.done[client].fails += 1;
        let now = self.state.now();
        if !self.fault(Fault::LoserGivesUp) {
            self.tell(client, |election| election.failed(now));
        }
        self.stop_asking(client);
    }

    fn stop_asking(&mut self, client: usize) {
        let candidate = &mut self.state.candidates[client];
        (candidate.asks, candidate.from, candidate.granted) = (false, 0, None);
    }

    /// A lock that was held has ended.
    pub(super) fn hold_ended(&mut self, client: usize, input: Input) {
        if self.world.model.clients[client].campaigns && self.stage(client) == Stage::Leading {
            let rest = self.world.model.rest;
            let candidate = &mut self.state.candidates[client];
            candidate.ended = Some(if input == Input::Release { Ending::Resigned } else { Ending::Lost });
            candidate.rests_until = self.state.time + rest;
        }
    }

    /// Those that hear at once that they are elected. Answers whether there was any.
    pub(super) fn hear(&mut self) -> bool {
        if self.world.model.hears_later {
            return false;
        }
        let heard = (0..CLIENTS).find(|client| self.state.candidates[*client].granted.is_some());
        heard.into_iter().for_each(|client| self.elected(client));
        heard.is_some()
    }

    /// Forgets what cannot matter any more.
    pub(super) fn tidy_candidates(&mut self) {
        for candidate in &mut self.state.candidates {
            if candidate.rests_until <= self.state.time {
                candidate.rests_until = 0;
            }
        }
    }
}
