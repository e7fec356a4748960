//! What `--verbose` tells.

use std::thread;

use redlock_blocking::{Event, Guard, Instant, NodeVote, Redlock};

use crate::{clock, out};

/// That the lock is held.
pub(crate) fn told_grant(resource: &str, guard: &Guard, start: Instant) {
    let votes = guard.votes();
    let granted = votes.iter().filter(|vote| matches!(vote.vote, NodeVote::Confirmed { .. })).count();
    let took = clock::now().saturating_duration_since(start);
    let fence = guard.fence().map_or_else(String::new, |fence| format!(" with fence {fence}"));
    out::say(format_args!(
        "acquired {resource} on {granted} of {} nodes after {took:.1?}{fence}",
        votes.len()
    ));
}

/// What goes wrong with nodes and renewals from now on, until the client is closed.
pub(crate) fn report(redlock: &Redlock) {
    let events = redlock.events();
    let addresses: Vec<_> = redlock.nodes().into_iter().map(|node| (node.node, node.address)).collect();
    let address = move |node| {
        addresses
            .iter()
            .find(|(known, _)| *known == node)
            .map_or_else(String::new, |(_, address)| address.to_string())
    };
    let tell = move || {
        for event in events {
            if let Some(line) = line(&event, &address) {
                out::say(line);
            }
        }
    };
    if let Err(error) = thread::Builder::new().name("redlock-verbose".into()).spawn(tell) {
        out::say(format_args!("cannot report events: {error}"));
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "events are open, and most are no trouble")]
fn line(event: &Event, address: impl Fn(redlock_blocking::NodeId) -> String) -> Option<String> {
    match event {
        Event::RenewalFailed { error, .. } => Some(format!("trouble with the renewal: {error}")),
        Event::Repaired { node, .. } => Some(format!("put back on {}, which had lost it", address(*node))),
        Event::AliasSuspected { node, .. } => {
            Some(format!("{} is another node's second name", address(*node)))
        }
        Event::NodeDown { node, fault } => Some(format!("{}: {fault}", address(*node))),
        Event::NodeUp { node } => Some(format!("{} is ready", address(*node))),
        Event::NodeRestarted { node } => Some(format!("{} was restarted", address(*node))),
        Event::NodeQuarantined { node, left } => {
            Some(format!("{} was started recently and gives no vote for {left:.1?} yet", address(*node)))
        }
        Event::QuarantineOver { node } => Some(format!("{} votes again", address(*node))),
        Event::ClockStepped { node, by, is_forward } => {
            let way = if *is_forward { "forward" } else { "back" };
            Some(format!(
                "the clock of {} was set {way} by {by:.1?}: locks there end too early or late",
                address(*node)
            ))
        }
        _ => None,
    }
}
