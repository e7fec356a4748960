//! `redlock status`.

use core::time::Duration;
use std::ffi::OsStr;

use redlock_core::inspect::{HeldKey, Holding, KeyState, NodeReport, Remaining, Task};

use super::args::StatusArgs;
use super::table::Table;
use super::{addresses, config, json, key, shown, sockets, span, tls};
use crate::exit::{self, Exit};
use crate::out;

/// Asks, and says what was found.
pub(crate) fn run(args: &StatusArgs) -> Exit {
    match status(args) {
        Ok(Holding::Untold) => Exit(exit::UNAVAILABLE),
        Ok(_) => Exit(0),
        Err(message) => {
            out::say(message);
            Exit(exit::USAGE)
        }
    }
}

fn status(args: &StatusArgs) -> Result<Holding, String> {
    let config = config(&args.node)?;
    let tls = tls(&args.node, &config)?;
    let key = key(&config, &args.resource)?;
    let reports = sockets::ask_all(
        &addresses(&config),
        tls.as_ref(),
        |_| Task::read(key.clone()),
        args.node.timeout,
        Duration::ZERO,
    );
    let holding = Holding::of(&reports);
    if args.json {
        let json = json::Status::new(args.resource.to_string_lossy().into_owned(), &reports, &holding);
        let text = serde_json::to_string_pretty(&json).map_err(|error| error.to_string())?;
        out::print(&format!("{text}\n"));
    } else {
        out::print(&format!(
            "{}\n\n{}",
            headline(&args.resource, &holding, &reports),
            table(&holding, &reports)
        ));
    }
    Ok(holding)
}

/// Who holds it, in a sentence.
pub(super) fn headline(resource: &OsStr, holding: &Holding, reports: &[NodeReport]) -> String {
    let (resource, count) = (shown(resource), reports.len());
    match holding {
        Holding::Held { by, on, remaining } => {
            let until = match remaining {
                Remaining::For(left) => format!("for another {} unless it is extended", span(*left)),
                Remaining::Forever => {
                    "for ever: it has no expiry, so that no lock of this library made it".to_owned()
                }
                Remaining::Untold => "for how long cannot be told".to_owned(),
            };
            format!("{resource} is held by {} on {on} of {count} nodes, {until}", owner(by))
        }
        Holding::Free { leftovers: 0 } => format!("{resource} is free"),
        Holding::Free { leftovers } => format!(
            "{resource} is free: what is on {leftovers} of {count} nodes is the rest of a lock \
                 that ended, or somebody trying"
        ),
        Holding::Split { free_in } => {
            let when = match free_in {
                Remaining::For(left) => format!("in {} at the latest", span(*left)),
                Remaining::Forever => "only when keys without an expiry are removed".to_owned(),
                Remaining::Untold => "nobody knows when".to_owned(),
            };
            format!(
                "nobody holds {resource}: no value is on a quorum of the {count} nodes, and too \
                     few are free; it can be had {when}"
            )
        }
        Holding::Untold => {
            let silent = reports.iter().filter(|report| error(report).is_some()).count();
            format!("who holds {resource} cannot be told: {silent} of {count} nodes did not say")
        }
    }
}

fn owner(by: &HeldKey) -> String {
    let masked = by.masked();
    match by.client_name() {
        Some(name) => format!("{name} (token {masked})"),
        None if by.is_ours() => format!("a client without a name (token {masked})"),
        None => format!("something that is no token of this library ({masked})"),
    }
}

fn table(holding: &Holding, reports: &[NodeReport]) -> String {
    let has_fence = reports.iter().any(|report| json::fence(report).is_some());
    let mut table = Table::default();
    let mut head = vec!["node", "state", "token", "client", "left"];
    if has_fence {
        head.push("fence");
    }
    table.row(head);
    for report in reports {
        let found = holding.node(report);
        let held = if let Some(KeyState::Held(held)) = found.key { Some(held) } else { None };
        let remaining = match found.key {
            Some(KeyState::NotAString(remaining)) => Some(*remaining),
            Some(_) | None => held.map(HeldKey::remaining),
        };
        let state = match (error(report), node_state(found.key)) {
            (Some(error), _) => format!("unknown: {error}"),
            (None, "held") if found.is_holder => "holder".to_owned(),
            (None, state) => state.to_owned(),
        };
        let mut row = vec![
            report.address.to_string(),
            state,
            held.map(HeldKey::masked).unwrap_or_default(),
            held.and_then(HeldKey::client_name).unwrap_or_default(),
            remaining.map(left).unwrap_or_default(),
        ];
        if has_fence {
            row.push(json::fence(report).unwrap_or_default());
        }
        table.row(row);
    }
    table.render()
}

fn left(remaining: Remaining) -> String {
    match remaining {
        Remaining::For(left) => span(left),
        Remaining::Forever => "no expiry".to_owned(),
        Remaining::Untold => "unknown".to_owned(),
    }
}

/// The state in one word.
pub(super) const fn state(holding: &Holding) -> &'static str {
    match holding {
        Holding::Held { .. } => "held",
        Holding::Free { .. } => "free",
        Holding::Split { .. } => "split",
        Holding::Untold => "unknown",
    }
}

/// A node's state in one word.
pub(super) fn node_state(key: Option<&KeyState>) -> &'static str {
    match key {
        Some(KeyState::Free) => "free",
        Some(KeyState::Held(held)) if held.is_ours() => "held",
        Some(KeyState::Held(_)) => "foreign",
        Some(KeyState::NotAString(_)) => "not-a-string",
        Some(_) | None => "unknown",
    }
}

/// Why a node did not say.
pub(super) fn error(report: &NodeReport) -> Option<String> {
    match (&report.key, &report.fault) {
        (Some(KeyState::Untold(error)), _) => Some(error.to_string()),
        (None, Some(fault)) => Some(fault.to_string()),
        (Some(_), _) => None,
        (None, None) => Some("no answer".to_owned()),
    }
}

/// The largest number of all nodes: the next fence is above it.
pub(super) fn largest_fence(reports: &[NodeReport]) -> Option<String> {
    // As numbers of any length are compared.
    reports.iter().filter_map(json::fence).max_by_key(|number| (number.len(), number.clone()))
}
