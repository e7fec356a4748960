//! The models: what can happen in each, and how much of it.

mod election;
mod fences;
mod locks;

use super::configs::{Model, Plan};
use super::properties::Met;
use election::{election, election_epochs, election_votes, election_watch};
pub(super) use fences::{FENCED, GRANT, GRANTS, HOLDER};
use fences::{fence, fence_clocks, fence_forget, fence_late, fence_repair};
pub(super) use locks::RIVAL;
use locks::{
    alias, amnesia, attempts, connect, extend, one_node, outbox, renewal, repair, restart, rivals, shorter,
    watch, watch_repair,
};

/// The models with the bounds that are checked on every change, the longest first.
#[must_use]
pub fn models() -> Vec<Model> {
    vec![
        fence_repair(),
        election(),
        restart(),
        extend(),
        renewal(),
        one_node(),
        fence(),
        fence_late(),
        fence_forget(),
        rivals(),
        repair(),
        shorter(),
        alias(),
        amnesia(),
        outbox(),
        attempts(),
        fence_clocks(),
        connect(),
        watch(),
        watch_repair(),
        election_votes(),
        election_watch(),
        election_epochs(),
    ]
}

/// Larger bounds: minutes, and some gigabytes.
#[must_use]
pub fn deep_models() -> Vec<Model> {
    let mut longer = renewal();
    longer.clients[0].max_hold = Some(5);
    longer.horizon = 5;
    let mut any_order = shorter();
    any_order.clients[0].extends_in_order = false;
    let mut more_extends = one_node();
    more_extends.clients[0].extends_at_most = 3;
    let mut released = extend();
    released.clients[0].releases = true;
    let mut two_extends = alias();
    two_extends.clients[0].extends = &[1, 3];
    two_extends.clients[0].extends_at_most = 2;
    let mut later_repair = Model { horizon: 2, ..repair() };
    later_repair.clients[0].extends_at_most = 1;
    let mut any_time = outbox();
    any_time.clients[1].start_from = 0;
    let mut watch_rival = Model { breaks: [0, 0], ..watch() };
    watch_rival.clients[0] = Plan { extends: &[3], extends_at_most: 1, ..watch_rival.clients[0] };
    let four = Model { clients: [GRANTS, GRANTS], starts: &[0, 1], ..fence() };
    let broken_repair = Model {
        clients: [HOLDER, GRANT],
        breaks: [1, 0],
        sometimes: &[Met::Repaired, Met::LateRepair, Met::LateRan, Met::CounterRestarted],
        ..fence_repair()
    };
    let mut deep = vec![
        four,
        Model { starts: &[0, 1], ..fence_late() },
        broken_repair,
        Model { ended_at_once: false, ..connect() },
        Model { ended_at_once: false, ..attempts() },
        Model { horizon: 3, ..rivals() },
        longer,
        released,
        more_extends,
        any_order,
        later_repair,
        two_extends,
        Model { horizon: 3, ..restart() },
        Model { horizon: 2, ..amnesia() },
        any_time,
        watch_rival,
    ];
    deep.extend(election::deep());
    deep
}
