//! Elections: two candidates, each driven by the shipped `Election`.

use super::fences::FENCED;
use crate::model::configs::{ALL, FIRST, Model, Plan, Start};
use crate::model::properties::Met;

/// A candidate with two attempts, which resigns.
const CANDIDATE: Plan = Plan { attempts: 2, campaigns: true, releases: true, ..Plan::NOTHING };

/// Campaigns that fail, are called off and won, and terms after one another, with fences and right clocks, on one node: what a
/// quorum is matters to nobody but the claims.
pub(in crate::model) fn election() -> Model {
    let plan = Plan { abandons: true, ..CANDIDATE };
    Model {
        name: "election",
        clients: [Plan { fails_at_most: 1, ..plan }, plan],
        nodes: 1,
        ttl: 2,
        horizon: 3,
        rest: 1,
        hears_later: true,
        fenced: true,
        breaks: [1, 0],
        break_at: FIRST,
        sometimes: &[
            Met::ElectedAgain,
            Met::Succeeded,
            Met::CampaignedAfterLoss,
            Met::CampaignedAfterResignation,
            Met::Rested,
            Met::CalledOff,
            Met::CampaignFailed,
            Met::HeardTooLate,
            Met::LateRan,
            Met::Expired,
        ],
        ..Model::NOTHING
    }
}

/// Terms after one another on three nodes, which give their votes to both.
pub(in crate::model) fn election_votes() -> Model {
    Model {
        name: "election-votes",
        clients: [CANDIDATE, Plan { attempts: 1, ..CANDIDATE }],
        ttl: 1,
        horizon: 2,
        rest: 1,
        sometimes: &[
            Met::ElectedAgain,
            Met::Succeeded,
            Met::CampaignedAfterLoss,
            Met::CampaignedAfterResignation,
            Met::Rested,
            Met::AttemptLost,
            Met::HandedOver,
        ],
        ..Model::NOTHING
    }
}

/// Leaders that are renewed, and told by the node that their key is gone.
pub(in crate::model) fn election_watch() -> Model {
    let plan = Plan { max_hold: Some(100), looks_at_most: 1, ..CANDIDATE };
    Model {
        name: "election-watch",
        clients: [plan, plan],
        nodes: 1,
        ttl: 3,
        horizon: 3,
        rest: 1,
        forgets: 1,
        sometimes: &[
            Met::ElectedAgain,
            Met::Succeeded,
            Met::CampaignedAfterLoss,
            Met::CampaignedAfterResignation,
            Met::Renewed,
            Met::LookedGone,
            Met::TokenGone,
        ],
        ..Model::NOTHING
    }
}

/// Terms with fences, where counters are lost and their nodes' clocks are behind.
pub(in crate::model) fn election_epochs() -> Model {
    Model {
        name: "election-epochs",
        clients: [CANDIDATE, Plan { attempts: 1, ..CANDIDATE }],
        forgets: 2,
        forget_at: ALL,
        starts: &[0],
        starts_again: &[Start::Behind],
        compares_fences: false,
        sometimes: &[Met::ElectedAgain, Met::Succeeded, Met::EpochRefused, Met::CounterRestarted],
        ..FENCED
    }
}

/// The same with larger bounds.
pub(super) fn deep() -> Vec<Model> {
    let with = |model: Model, change: fn(&mut Plan)| {
        let mut model = model;
        model.clients.iter_mut().for_each(change);
        model
    };
    let both = Model { clients: [Plan { releases: false, ..CANDIDATE }; 2], ..election_votes() };
    vec![
        Model { horizon: 4, ..election() },
        Model {
            sometimes: &[Met::ElectedAgain, Met::Succeeded, Met::CampaignedAfterLoss, Met::AttemptLost],
            ..both
        },
        Model {
            horizon: 1,
            rest: 0,
            breaks: [1, 0],
            break_at: FIRST,
            sometimes: &[Met::ElectedAgain, Met::Succeeded, Met::AttemptLost, Met::LateRan],
            ..election_votes()
        },
        Model { hears_later: true, ..with(election_watch(), |plan| plan.abandons = true) },
        Model { hears_later: true, ..with(election_epochs(), |plan| plan.abandons = true) },
    ]
}
