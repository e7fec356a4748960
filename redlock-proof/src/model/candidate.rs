//! The candidates of an election: what a state has of them, and what has to hold of them.
//!
//! A candidate is the shipped [`Election`], which says when its next attempt may start. The harness plays the adapter around it:
//! a campaign is an acquire that waits without end, a term is its lock.

use super::properties::{Property, Violation, violated};
use super::state::{CLIENTS, Slot, State, TICK_MS, View, World, span};
use crate::model::faults::Fault;
use core::time::Duration;
use redlock_core::Instant;
use redlock_core::machine::{Election, Stage};

/// How a term has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ending {
    Lost,
    Resigned,
}

/// One candidate, with what the properties have to remember of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Candidate {
    /// Its election's number in the pool.
    pub(super) election: u32,
    /// The acquire of its campaign is under way, or granted and not heard of.
    pub(super) asks: bool,
    /// The tick before which that acquire sends nothing.
    pub(super) from: u8,
    /// Its lock was granted, with this fence (0 for none), and it has not heard of it.
    pub(super) granted: Option<u8>,
    /// Its term has ended, and it was not told.
    pub(super) ended: Option<Ending>,
    /// The tick before which it has to rest; 0 if none is left.
    pub(super) rests_until: u8,
    /// How often it was elected.
    pub(super) terms: u8,
    /// The largest fence of its terms.
    pub(super) epoch: u8,
}

impl World<'_> {
    pub(super) fn election(&self, state: &State, client: usize) -> &Election {
        self.elections.get(state.candidates[client].election)
    }

    /// Whether the client is led by an election, and leads by its word.
    pub(super) fn leads(&self, state: &State, client: usize) -> bool {
        let believes = last(self, state, client).is_some_and(|view| view.believes(state.now()));
        self.model.clients[client].campaigns
            && self.election(state, client).stage() == Stage::Leading
            && (believes || self.model.fault == Some(Fault::TermOutlives))
    }
}

/// The first tick that is not before the instant.
pub(super) fn tick_of(instant: Instant) -> u8 {
    let tick = Duration::from_millis(TICK_MS).as_nanos();
    u8::try_from(u128::from(instant.as_nanos()).div_ceil(tick)).unwrap_or(u8::MAX)
}

/// The slot of the client's latest attempt.
pub(super) fn last_slot(state: &State, client: usize) -> Option<&Slot> {
    let attempts = usize::from(state.done[client].attempts);
    state.slots[client].get(attempts.wrapping_sub(1))
}

/// The claim of the client's latest attempt, if it is not forgotten.
pub(super) fn last<'w>(world: &'w World<'_>, state: &State, client: usize) -> Option<&'w View> {
    last_slot(state, client).and_then(|slot| world.view(slot))
}

/// What has to hold of the candidates.
pub(super) fn check(world: &World<'_>, state: &State) -> Result<(), Violation> {
    let leaders = (0..CLIENTS).filter(|client| world.leads(state, *client)).count();
    if leaders > 1 && !world.model.expires {
        return Err(violated(Property::Leaders, "two candidates lead"));
    }
    for client in (0..CLIENTS).filter(|client| world.model.clients[*client].campaigns) {
        if let Some(what) = stands_still(world, state, client) {
            let what = format!("{} {what}", ["A", "B"][client]);
            return Err(violated(Property::Progress, what));
        }
    }
    Ok(())
}

/// In what way the candidate leads no longer, and will not ask again though it has attempts left.
fn stands_still(world: &World<'_>, state: &State, client: usize) -> Option<&'static str> {
    let candidate = &state.candidates[client];
    let mut election = world.election(state, client).clone();
    let now = state.now();
    let longest = Election::LONGEST_PAUSE.max(span(world.model.rest));
    let view = last(world, state, client);
    let stage = election.stage();
    if candidate.asks != (stage == Stage::Campaigning) {
        return Some("campaigns and asks for nothing, or asks and does not campaign");
    }
    match stage {
        Stage::Campaigning => {
            let answered = candidate.granted.is_some() || view.is_some_and(|view| view.attempting);
            let asked = answered || state.done[client].attempts == world.model.clients[client].attempts;
            let latest = tick_of(now.saturating_add(longest));
            (!asked && candidate.from > latest).then_some("waits too long")
        }
        Stage::Leading if world.leads(state, client) => None,
        Stage::Leading | Stage::Resting => {
            if stage == Stage::Leading {
                election.ended(now);
            }
            match election.campaign(now) {
                Some(delay) if delay <= longest => None,
                Some(_) => Some("rests too long"),
                None => Some("may never campaign again"),
            }
        }
    }
}
