//! `redlock unlock`: the lock of a holder that is gone, removed by hand.

use core::time::Duration;

use redlock_blocking::{Address, Tls};
use redlock_core::Config;
use redlock_core::inspect::{Holding, NodeReport, Removal, Task};

use super::args::UnlockArgs;
use super::table::Table;
use super::{addresses, config, key, shown, sockets, status, tls};
use crate::exit::{self, Exit};
use crate::out;

/// Asks, and removes.
pub(crate) fn run(args: &UnlockArgs) -> Exit {
    match checked(args).and_then(|config| unlock(args, &config)) {
        Ok(()) => Exit(0),
        Err((code, message)) => {
            out::say(message);
            Exit(code)
        }
    }
}

fn checked(args: &UnlockArgs) -> Result<Config, (u8, String)> {
    let resource = shown(&args.resource);
    if !args.force {
        let message = format!(
            "{resource} is its holder's to release: removed, it can be had by somebody else while the holder still works. \
             Look with `redlock status` who that is; if it is gone, add --force"
        );
        return Err((exit::USAGE, message));
    }
    if !args.yes && !out::can_ask() {
        let message = format!("nobody is there to confirm that {resource} is removed; add --yes");
        return Err((exit::USAGE, message));
    }
    config(&args.node).map_err(|message| (exit::USAGE, message))
}

fn unlock(args: &UnlockArgs, config: &Config) -> Result<(), (u8, String)> {
    let key = key(config, &args.resource).map_err(|message| (exit::USAGE, message))?;
    let tls = tls(&args.node, config).map_err(|message| (exit::USAGE, message))?;
    let nodes = addresses(config);
    if !args.yes {
        confirm(args, &nodes, tls.as_ref(), &key)?;
    }
    let reports = sockets::ask_all(
        &nodes,
        tls.as_ref(),
        |_| Task::remove(key.clone()),
        args.node.timeout,
        Duration::ZERO,
    );
    out::print(&table(&reports));
    let cleared =
        reports.iter().filter(|report| report.removal.as_ref().is_some_and(Removal::is_clear)).count();
    let (count, resource) = (reports.len(), shown(&args.resource));
    if cleared < usize::from(config.quorum()) {
        let message = format!(
            "{resource} is gone from {cleared} of {count} nodes only, and {} are a quorum; what \
                 is left runs out by itself",
            config.quorum()
        );
        return Err((exit::UNAVAILABLE, message));
    }
    let removed = reports.iter().filter(|report| report.removal == Some(Removal::Removed)).count();
    out::say(format_args!(
        "{resource} was removed from {removed} of {count} nodes; nothing is left of it on {cleared}"
    ));
    Ok(())
}

/// Shows who would lose it, and asks.
fn confirm(args: &UnlockArgs, nodes: &[Address], tls: Option<&Tls>, key: &[u8]) -> Result<(), (u8, String)> {
    let reports =
        sockets::ask_all(nodes, tls, |_| Task::read(key.to_vec()), args.node.timeout, Duration::ZERO);
    out::say(status::headline(&args.resource, &Holding::of(&reports), &reports));
    let question = format!(
        "Its holder goes on until it notices. Remove it from all {} nodes, whoever holds it? Type yes:",
        nodes.len()
    );
    if out::ask(question).trim().eq_ignore_ascii_case("yes") {
        return Ok(());
    }
    Err((exit::NOT_CONFIRMED, "nothing was removed".to_owned()))
}

fn table(reports: &[NodeReport]) -> String {
    let mut table = Table::default();
    for report in reports {
        table.row([report.address.to_string(), outcome(report)]);
    }
    table.render()
}

fn outcome(report: &NodeReport) -> String {
    let not = |why: &dyn core::fmt::Display| format!("not removed: {why}");
    match (&report.removal, &report.fault) {
        (Some(Removal::Removed), _) => "removed".to_owned(),
        (Some(Removal::WasFree), _) => "was free".to_owned(),
        (Some(Removal::Refused(error)), _) => not(error),
        (Some(Removal::Odd(text)), _) => not(text),
        (_, Some(fault)) => not(fault),
        (_, None) => not(&"no answer"),
    }
}
