//! Clients that are candidates of an election: `machine::Election` on top of whole engines.

use super::scenario::{PATIENCE, Run};
use super::timeline::Lane;
use redlock_core::machine::{Election, Stage};
use redlock_core::{AcquireRequest, Instant, LockId, OperationId};
use std::time::Duration;

/// A client's candidate.
pub(super) struct Candidate {
    machine: Election,
    /// The acquire of its campaign.
    campaign: Option<OperationId>,
    /// The lock of its term, until it was seen to have ended.
    term: Option<LockId>,
    resigned: bool,
}

impl Candidate {
    pub(super) const fn new(rest: Duration) -> Self {
        Self { machine: Election::new(rest), campaign: None, term: None, resigned: false }
    }
}

impl Run<'_> {
    /// A candidate does the next thing: it hears how its campaign went, campaigns, calls that off, or resigns.
    pub(super) fn stand(&mut self, client: usize) {
        match self.campaigns_or_leads(client) {
            Some(lock) if self.dice.chance(40) => {
                self.oracle.coverage.hit("a leader resigned");
                self.candidates[client].resigned = true;
                self.release(client, lock);
            }
            None if self.dice.chance(15) => self.call_off(client),
            Some(_) | None => {}
        }
        self.oracle.look(&mut self.world, &mut self.timeline);
        self.check_leaders();
    }

    /// A candidate hears how its campaign went, and campaigns unless it leads. Answers with the lock of its term.
    fn campaigns_or_leads(&mut self, client: usize) -> Option<LockId> {
        let now = self.world.local_now(client);
        let held = self.oracle.held(client);
        if !self.oracle.is_acquiring(client) && self.candidates[client].campaign.take().is_some() {
            self.hear(client, held, now);
        }
        let candidate = &mut self.candidates[client];
        if candidate.campaign.is_some() || (candidate.term.is_some() && candidate.term == held) {
            return candidate.term;
        }
        if candidate.term.take().is_some() {
            if !core::mem::take(&mut candidate.resigned) {
                self.oracle.coverage.hit("a leader lost the lock");
            }
            candidate.machine.ended(now);
        }
        self.campaign(client, now);
        None
    }

    fn hear(&mut self, client: usize, held: Option<LockId>, now: Instant) {
        let view = held.and_then(|lock| self.world.client(client)?.lock(lock));
        let granted = view.filter(|view| view.is_held(now)).map(|view| view.fence());
        let candidate = &mut self.candidates[client];
        let again = candidate.machine.epoch().is_some();
        match granted.map(|fence| candidate.machine.elected(fence, now)) {
            Some(Ok(())) => {
                candidate.term = held;
                self.oracle.coverage.hit(if again { "elected again" } else { "elected" });
            }
            Some(Err(stale)) => self.oracle.violations.push(format!("client {client} after {stale:?}")),
            None => {
                candidate.machine.failed(now);
                held.into_iter().for_each(|lock| self.release(client, lock));
            }
        }
    }

    fn campaign(&mut self, client: usize, now: Instant) {
        let Some(delay) = self.candidates[client].machine.campaign(now) else {
            return self.oracle.violations.push(format!("client {client} may not campaign"));
        };
        self.timeline.note(self.world.now(), Lane::Client(client), || format!("campaigns in {delay:?}"));
        let entropy = self.world.entropy();
        let wanted = self.plan.names();
        let mut request = AcquireRequest::all(wanted.clone(), entropy).ttl(self.plan.ttl).delay(delay);
        if self.plan.is_fenced {
            request = request.fenced();
        }
        let request = request.wait(Duration::MAX).auto_renew(Duration::MAX).watch_loss();
        self.oracle.delays(client, &entropy, now.saturating_add(delay));
        if let Some(operation) = self.world.acquire(client, request) {
            self.oracle.acquires(client, operation, wanted, Instant::MAX);
            self.candidates[client].campaign = Some(operation);
        }
    }

    fn call_off(&mut self, client: usize) {
        let candidate = &mut self.candidates[client];
        if let Some(operation) = candidate.campaign.take() {
            candidate.machine.called_off();
            self.oracle.coverage.hit("a campaign called off");
            self.world.with_client(client, |engine, now| engine.cancel(operation, now));
        }
    }

    /// Whether the candidate leads, by its election's word and its lock's.
    fn leads(&self, client: usize) -> bool {
        let candidate = &self.candidates[client];
        let view = candidate.term.and_then(|lock| self.world.client(client)?.lock(lock));
        candidate.machine.stage() == Stage::Leading
            && view.is_some_and(|view| view.is_held(self.world.local_now(client)))
    }

    /// At no instant do two candidates lead.
    pub(super) fn check_leaders(&mut self) {
        let leaders = (0..self.candidates.len()).filter(|client| self.leads(*client)).count();
        if leaders > 1 && !self.plan.is_deleting {
            self.oracle.violations.push(format!("{leaders} candidates lead at {:?}", self.world.now()));
        }
    }

    /// Most elections rest while all is healed: a leader that is renewed takes many steps.
    pub(super) fn rest_from_election(&mut self) {
        let rest =
            if !self.candidates.is_empty() && self.dice.chance(90) { self.candidates.len() } else { 0 };
        for client in 0..rest {
            self.call_off(client);
            if let Some(lock) = self.oracle.held(client) {
                self.release(client, lock);
            }
        }
    }

    /// Once all is healed somebody leads. Then the election is over.
    pub(super) fn somebody_leads(&mut self) {
        let end = self.world.now().saturating_add(PATIENCE + Election::LONGEST_PAUSE);
        let stand: Vec<usize> =
            (0..self.candidates.len()).filter(|client| self.world.client(*client).is_some()).collect();
        while !stand.is_empty()
            && self.oracle.violations.is_empty()
            && !stand.iter().any(|client| self.leads(*client))
        {
            for client in &stand {
                self.campaigns_or_leads(*client);
            }
            if self.world.now() >= end {
                self.oracle.violations.push("nobody leads".into());
            }
            self.pass(self.plan.node_timeout);
        }
        stand.into_iter().for_each(|client| self.call_off(client));
    }
}
