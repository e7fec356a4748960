//! Faults that are planted, so that the check is seen to find them.
//!
//! They are planted in the harness: in what is told to the claims, and where commands and answers go. The shipped code is
//! the same in all models.

use super::configs::{ALL, HandOut, Model, Plan, Start};
use super::models::{FENCED, GRANT, GRANTS, HOLDER, RIVAL};
use super::properties::Property;

/// A fault; of some of them the code is innocent: what is assumed of nodes and clocks does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Every attempt of a client has the same token (against R8).
    OneToken,
    /// N/2 nodes are taken for a quorum (against R3).
    HalfQuorum,
    /// A late reply to one attempt's SET is credited to the next attempt (against R21).
    LateReplyCredited,
    /// Nodes of which the answer is not known get no release (against R7).
    AmbiguousNotReleased,
    /// What is owed to a node is not sent after the reconnect (against R7).
    OwedForgotten,
    /// A repair is taken for a confirmation of its own round (against R15).
    RepairCounted,
    /// A queued repair is sent after the release (against R15).
    RepairAfterRelease,
    /// A shorter extension is told to the claim with its answer, not from the hand-out on (against R14 a).
    ShorterFromAnswer,
    /// An extension that is stuck in a dead connection is taken for one that cannot run any more (against R14 b).
    StuckForgotten,
    /// A node in quarantine gives votes (against R25).
    QuarantineIgnored,
    /// A node that restarted gives votes at once (without R25's guard).
    Unguarded,
    /// A holder's look that finds the token counts as a confirmation (against R14).
    LookProlongs,
    /// A holder's look that does not find it changes nothing (against R14).
    LookDropped,
    /// What a look has found is told before the answers to what was sent before it (against R14).
    LookAhead,
    /// A term ends when the candidate is told of its loss, not at its deadline (against R13).
    TermOutlives,
    /// A fence that does not exceed that of the candidate's last term is taken.
    StaleEpochTaken,
    /// A candidate whose campaign has failed gives up.
    LoserGivesUp,
    /// A campaign that was called off goes on, for its candidate.
    CalledOffForgotten,
    /// The end of a term is not told.
    EndedForgotten,
    /// Who has led does not rest.
    NoRest,
    /// What a campaign's first round has to wait for is not waited for.
    DelayIgnored,
    /// Counters are raised without looking whose key it is (against §5, 4).
    RaisedBlindly,
    /// The largest counter is taken for the fence without a quorum that holds it (against §5, 4).
    FenceNotHeld,
    /// A counter that was forgotten starts again from zero (against §5, 1).
    CounterFromZero,
    /// A repair puts the fence where a counter was forgotten (against §5, 5).
    RepairPutsFence,
    /// A late grant moves the fence (against §5, 2).
    FenceMoves,
    /// A node that granted with a counter beyond the fence is taken for one that holds it (against §5, 3).
    BeyondCounted,
    /// A node lost its counter, and its clock is behind: the documented exception (§5).
    ClockBehind,
    /// The same, with a clock that has reached every fence that was granted, but not one that is about to be.
    ClockBehindNamed,
}

/// A fault, and the smallest model in which it is looked for.
#[derive(Clone, Debug)]
pub struct Planted {
    /// The fault.
    pub fault: Fault,
    /// What it violates.
    pub property: Property,
    /// A model with the fault in it.
    pub model: Model,
}

/// Every planted fault.
#[must_use]
pub fn planted() -> Vec<Planted> {
    let plant = |(fault, property, model): (Fault, Property, Model)| Planted {
        fault,
        property,
        model: model.with(fault),
    };
    models().into_iter().map(plant).collect()
}

/// For each fault the property that it violates, and the model in which it is looked for.
fn models() -> Vec<(Fault, Property, Model)> {
    let attempt = Plan { attempts: 1, abandons: true, ..Plan::NOTHING };
    let tries = Model {
        name: "fault",
        clients: [Plan { attempts: 2, ..attempt }, Plan { abandons: false, ..attempt }],
        horizon: 0,
        ..Model::NOTHING
    };
    let alone = Model { clients: [attempt, Plan::NOTHING], ..tries.clone() };
    let holds = Plan { attempts: 1, extends: &[3], extends_at_most: 1, ..Plan::NOTHING };
    let forgets = Model {
        clients: [holds, Plan::NOTHING],
        horizon: 1,
        forgets: 1,
        forget_at: ALL,
        hand_out: HandOut::RepairsLater,
        ..tries.clone()
    };
    let rival = Plan { start_from: 1, ..RIVAL };
    let shorter = Model {
        clients: [Plan { extends: &[1], ..holds }, rival],
        horizon: 1,
        checks_support: false,
        ..tries.clone()
    };
    let restarts =
        Model { clients: [attempt, attempt], restarts: 1, restart_at: ALL, excuses: false, ..tries.clone() };
    let looks = Model {
        clients: [Plan { looks_at_most: 1, ..holds }, Plan::NOTHING],
        horizon: 1,
        forgets: 1,
        forget_at: ALL,
        ..tries.clone()
    };
    let mut all = fence_faults();
    all.extend(election_faults());
    all.extend([
        (
            Fault::OneToken,
            Property::Exclusion,
            Model { breaks: [1, 0], checks_support: false, ..tries.clone() },
        ),
        (Fault::HalfQuorum, Property::Exclusion, tries.clone()),
        (
            Fault::LateReplyCredited,
            Property::Exclusion,
            Model { ended_at_once: false, checks_support: false, ..tries.clone() },
        ),
        (Fault::AmbiguousNotReleased, Property::CleanUp, alone.clone()),
        (Fault::OwedForgotten, Property::CleanUp, Model { breaks: [1, 0], ..alone }),
        (Fault::RepairCounted, Property::Support, forgets.clone()),
        (
            Fault::RepairAfterRelease,
            Property::CleanUp,
            Model { clients: [Plan { releases: true, ..holds }, Plan::NOTHING], ..forgets },
        ),
        (Fault::ShorterFromAnswer, Property::Exclusion, shorter.clone()),
        (
            Fault::StuckForgotten,
            Property::Exclusion,
            Model {
                clients: [
                    Plan {
                        extends: &[1, 3],
                        extends_at_most: 2,
                        extends_in_order: true,
                        extend_until: 0,
                        ..holds
                    },
                    rival,
                ],
                breaks: [1, 0],
                ..shorter
            },
        ),
        (Fault::QuarantineIgnored, Property::Exclusion, Model { quarantine: true, ..restarts.clone() }),
        (Fault::Unguarded, Property::Exclusion, restarts),
        (Fault::LookProlongs, Property::Support, looks.clone()),
        (Fault::LookDropped, Property::Support, looks.clone()),
        (Fault::LookAhead, Property::Support, looks),
    ]);
    all
}

fn fence_faults() -> Vec<(Fault, Property, Model)> {
    let two = Model { name: "fault", clients: [GRANT, GRANT], ..FENCED };
    let forgets = Model { starts: &[0], forgets: 1, forget_at: ALL, ..two.clone() };
    let behind = |starts_again| Model { starts_again, starts: &[0, 1], ..forgets.clone() };
    let repairs = Model { clients: [HOLDER, Plan { start_after_extend: true, ..GRANTS }], ..forgets.clone() };
    vec![
        (Fault::RaisedBlindly, Property::Fence, two.clone()),
        (Fault::FenceNotHeld, Property::Fence, two.clone()),
        (Fault::BeyondCounted, Property::Fence, two.clone()),
        (Fault::FenceMoves, Property::Fence, Model { starts: &[0, 1, 2], ..two }),
        (Fault::CounterFromZero, Property::Fence, forgets.clone()),
        (Fault::RepairPutsFence, Property::Fence, repairs),
        (Fault::ClockBehind, Property::Fence, behind(&[Start::Behind])),
        (Fault::ClockBehindNamed, Property::Fence, behind(&[Start::Granted])),
    ]
}

fn election_faults() -> Vec<(Fault, Property, Model)> {
    let stands = Plan { attempts: 1, campaigns: true, ..Plan::NOTHING };
    let two = Model {
        name: "fault",
        clients: [stands, stands],
        nodes: 1,
        ttl: 1,
        horizon: 1,
        rest: 1,
        ..Model::NOTHING
    };
    let alone = |plan| Model { clients: [plan, Plan::NOTHING], ..two.clone() };
    let resigns = Plan { attempts: 2, releases: true, ..stands };
    let epochs = Model {
        clients: [Plan { attempts: 2, ..stands }, Plan::NOTHING],
        nodes: 1,
        forgets: 1,
        starts: &[1],
        starts_again: &[Start::Behind],
        compares_fences: false,
        ..FENCED
    };
    vec![
        (Fault::TermOutlives, Property::Leaders, two.clone()),
        (Fault::StaleEpochTaken, Property::Epoch, Model { name: "fault", ..epochs }),
        (Fault::LoserGivesUp, Property::Progress, alone(Plan { fails_at_most: 1, attempts: 2, ..stands })),
        (Fault::CalledOffForgotten, Property::Progress, alone(Plan { abandons: true, ..stands })),
        (Fault::EndedForgotten, Property::Progress, alone(resigns)),
        (Fault::NoRest, Property::Rest, alone(resigns)),
        (Fault::DelayIgnored, Property::Rest, alone(resigns)),
    ]
}
