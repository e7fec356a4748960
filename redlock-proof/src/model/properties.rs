//! What has to hold in every state, and what has to happen in some.

use super::candidate;
use super::configs::Model;
use super::state::{CLIENTS, NODES, State, World, instant, token};
use core::fmt;

/// What has to hold always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// At no time do two claims believe that they hold the lock.
    Exclusion,
    /// A node that supports a lock until some time has the token until then, unless it forgot it; one that said last that
    /// the token is not there supports nothing (R14).
    Support,
    /// No server counts twice for one lock (R14a).
    TwoNames,
    /// An attempt ends in one decision, within the node timeout.
    Decision,
    /// A loss is said once, and what has ended is never held again (R17).
    LostOnce,
    /// A round of extension ends in one decision, within the node timeout.
    Rounds,
    /// A release is answered once, within the node timeout (R19).
    Released,
    /// Once nothing is under way and every connection stands, nothing is left to do, and no server has the token of a
    /// claim that has ended (R7).
    CleanUp,
    /// A claim treats all nodes alike.
    Symmetry,
    /// After a timeout the next one is later: no busy loop.
    Timer,
    /// A fence is larger than every one that was granted before the attempt started, and no two are the same; where
    /// no key is gone before its time, it is larger than every one that was granted before (§5).
    Fence,
    /// At no time do two candidates lead, by the word of their elections.
    Leaders,
    /// The fences of one candidate's terms rise, whatever is lost with whatever clocks; where no key and no counter is gone
    /// before its time, those of both do.
    Epoch,
    /// A candidate leads, or asks, or may ask again after a pause that has an end.
    Progress,
    /// Who has led does not ask before its rest is over.
    Rest,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What does not hold.
    pub property: Property,
    /// Of what, in words.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.property, self.what)
    }
}

pub(super) fn violated(property: Property, what: impl Into<String>) -> Violation {
    Violation { property, what: what.into() }
}

/// What has to happen somewhere in a model, or it proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Met {
    /// An attempt wins.
    Granted,
    /// A second attempt of one client wins.
    GrantedAgain,
    /// An attempt is lost.
    AttemptLost,
    /// Both clients hold the lock, one after the other.
    HandedOver,
    /// A manual extension succeeds.
    Extended,
    /// An extension fails.
    ExtendFailed,
    /// A renewal succeeds.
    Renewed,
    /// The deadline in force moves earlier.
    Lowered,
    /// `Expiring` is said.
    Expiring,
    /// A lock is lost at its deadline.
    Expired,
    /// A lock is lost since its token is gone.
    TokenGone,
    /// A lock is lost since two nodes are one.
    Duplicate,
    /// A release deletes a quorum.
    Released,
    /// A release is left unknown.
    ReleaseUnknown,
    /// An alias is told.
    Alias,
    /// A repair succeeds.
    Repaired,
    /// A repair is refused, since somebody else was faster.
    RepairRefused,
    /// A command of a dead connection changes a key.
    LateRan,
    /// A dead connection sets a key after the clean-up.
    Orphan,
    /// What is owed is sent after a reconnect.
    OwedSent,
    /// A SET is sent after a reconnect (R8a).
    LateSet,
    /// A node in quarantine grants a SET.
    Muted,
    /// A quarantine ends.
    QuarantineOver,
    /// An extension is handed out again in another form.
    Resent,
    /// Nothing is left: no claim, no key, nothing under way.
    AllGone,
    /// A node grants what it had granted to somebody else and forgot: the assumption of the algorithm is broken, and what
    /// comes after that is not looked at.
    AssumptionBroken,
    /// A fenced grant takes one round trip.
    Agreed,
    /// A fenced grant takes a raise.
    Raised,
    /// A raise is refused, since the key is not the attempt's any more.
    RaiseRefused,
    /// A node grants with a counter beyond the fence that is named already.
    Beyond,
    /// A fence is granted after a larger one, to an attempt that had started before.
    Overtaken,
    /// Both clients believe that they hold the lock, since keys were gone before their time.
    BothHold,
    /// A counter that was forgotten starts again.
    CounterRestarted,
    /// A repair is executed after a later fence was granted.
    LateRepair,
    /// A holder's look at its key finds it.
    LookedThere,
    /// A holder's look finds that the token is not there.
    LookedGone,
    /// A candidate is elected a second time.
    ElectedAgain,
    /// A candidate is elected after the other.
    Succeeded,
    /// A candidate campaigns again after it has lost the lock.
    CampaignedAfterLoss,
    /// A candidate campaigns again after it resigned.
    CampaignedAfterResignation,
    /// A campaign has to wait before its first round.
    Rested,
    /// A campaign is called off.
    CalledOff,
    /// A campaign fails.
    CampaignFailed,
    /// A candidate hears that it was granted the lock when it has lost it already.
    HeardTooLate,
    /// A term's fence does not exceed that of the candidate's last, and is refused.
    EpochRefused,
}

impl Met {
    pub(super) const fn bit(self) -> u64 {
        1 << self as u64
    }

    /// Those of `wanted` that are not in `met`.
    pub(super) fn missing(met: u64, wanted: &[Self]) -> Vec<Self> {
        wanted.iter().copied().filter(|one| met & one.bit() == 0).collect()
    }
}

/// Checks a state; adds to `met` what can be seen in it.
pub(super) fn check(world: &World<'_>, state: &State, met: &mut u64) -> Result<(), Violation> {
    let model = world.model;
    let now = state.now();
    let mut believers = 0;
    let mut live = false;
    for client in 0..CLIENTS {
        for (attempt, slot) in state.slots[client].iter().enumerate() {
            let Some(view) = world.view(slot) else { continue };
            live = true;
            let name = || format!("{} attempt {}", ["A", "B"][client], attempt + 1);
            if view.attempting && now >= view.start.saturating_add(model.node_timeout()) {
                return Err(violated(
                    Property::Decision,
                    format!("{} is undecided after the node timeout", name()),
                ));
            }
            if (view.ended && slot.rounds != 0) || late(state, slot.rounds != 0, slot.round_at, model) {
                return Err(violated(Property::Rounds, format!("a round of {} is undecided", name())));
            }
            if late(state, slot.releasing, slot.release_at, model) {
                return Err(violated(Property::Released, format!("the release of {} is unanswered", name())));
            }
            if view.held && now >= view.deadline {
                return Err(violated(Property::LostOnce, format!("{} is held past its deadline", name())));
            }
            if view.believes(now) {
                believers += 1;
                support(world, state, client, attempt, model)?;
            }
        }
    }
    if believers > 1 && model.expires {
        *met |= Met::BothHold.bit();
    } else if believers > 1 {
        return Err(violated(Property::Exclusion, "two believe that they hold the lock"));
    }
    candidate::check(world, state)?;
    if (0..CLIENTS).all(|client| (0..NODES).all(|node| world.link(state, client, node).is_quiet())) {
        if !model.expires {
            clean_up(world, state)?;
        }
        if !live && state.servers.iter().all(|server| server.key.is_none()) {
            *met |= Met::AllGone.bit();
        }
    }
    Ok(())
}

fn late(state: &State, open: bool, since: u8, model: &Model) -> bool {
    open && state.now() >= instant(since).saturating_add(model.node_timeout())
}

/// The support of a claim that believes.
fn support(
    world: &World<'_>,
    state: &State,
    client: usize,
    attempt: usize,
    model: &Model,
) -> Result<(), Violation> {
    let Some(view) = world.view(&state.slots[client][attempt]) else { return Ok(()) };
    let attempt = u8::try_from(attempt).unwrap_or(u8::MAX);
    let token = if model.is_one_token() { token(client, 0) } else { token(client, attempt) };
    let mut counted = [false; NODES];
    for (node, until) in view.support.iter().enumerate() {
        let Some(until) = until.filter(|until| *until > state.now()) else { continue };
        if state.slots[client][usize::from(attempt)].missing[node] {
            let what = format!("n{node} supports {} and said that the token is gone", ["A", "B"][client]);
            return Err(violated(Property::Support, what));
        }
        let server = &state.servers[model.server_of(node)];
        let forgot = server
            .forgot
            .is_some_and(|forgot| (usize::from(forgot.client), forgot.attempt) == (client, attempt));
        let there = server.key.filter(|key| key.token == token).map(|key| u64::from(key.until) + 1);
        // What is sent to a server under another name is not sent in one order with the rest.
        let one_name =
            (0..NODES).filter(|other| model.server_of(*other) == model.server_of(node)).count() == 1;
        if model.checks_support
            && one_name
            && !forgot
            && there.is_none_or(|gone| redlock_core::Instant::from_millis(gone) < until)
        {
            let what =
                format!("n{node} supports {} until {until:?}, its server does not", ["A", "B"][client]);
            return Err(violated(Property::Support, what));
        }
        if until >= view.deadline && core::mem::replace(&mut counted[model.server_of(node)], true) {
            return Err(violated(Property::TwoNames, format!("n{node} is counted under two names")));
        }
    }
    Ok(())
}

/// What must be done once nothing is under way on any connection that stands.
fn clean_up(world: &World<'_>, state: &State) -> Result<(), Violation> {
    let model = world.model;
    for client in 0..CLIENTS {
        for (attempt, slot) in state.slots[client].iter().enumerate() {
            let view = world.view(slot);
            let name = || format!("{} attempt {}", ["A", "B"][client], attempt + 1);
            if view.is_some_and(|view| view.attempting) {
                let what = format!("{} is undecided and nothing is under way", name());
                return Err(violated(Property::Decision, what));
            }
            if view.is_some_and(|view| view.ended && !view.finished) {
                let what = format!("{} has ended, nothing is under way, and it waits", name());
                return Err(violated(Property::CleanUp, what));
            }
            let made = attempt < usize::from(state.done[client].attempts);
            if !made || view.is_some() || model.is_one_token() {
                continue;
            }
            let token = token(client, u8::try_from(attempt).unwrap_or(u8::MAX));
            let left = state
                .servers
                .iter()
                .position(|server| server.key.is_some_and(|key| key.token == token && !key.orphan));
            if let Some(server) = left {
                let what = format!("{} is finished and its token is still on server {server}", name());
                return Err(violated(Property::CleanUp, what));
            }
        }
    }
    Ok(())
}
