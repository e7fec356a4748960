//! What an actor does on a thread.

use super::Actor;
use super::client::{Settings, configured};
use super::plan::{Plan, Style, asked};
use super::section::Section;
use crate::clock;
use core::time::Duration;
use redlock_blocking::{
    AcquireError, AcquireErrorKind, Guard, HoldError, Redlock, ReleaseError, ReleaseOutcome, Released,
};
use std::thread;

/// Wants the lock until it is over.
pub(super) fn act(mut actor: Actor) {
    while !actor.is_over() {
        let settings = Settings::choose(&mut actor.dice);
        let built = configured!(Redlock::builder(), actor.work.orders.nodes, settings).connect_lazy();
        match built {
            Ok(redlock) => serve(&mut actor, &redlock, &settings),
            Err(error) => actor.broken(format!("no client: {error}")),
        }
        // It is dropped, and closes in the background.
    }
    actor.done();
}

/// Uses one client until it wants another.
fn serve(actor: &mut Actor, redlock: &Redlock, settings: &Settings) {
    loop {
        let plan = Plan::next(&mut actor.dice);
        visit(actor, redlock, settings, &plan);
        thread::sleep(plan.pause);
        if plan.changes_client || actor.is_over() {
            return;
        }
    }
}

fn visit(actor: &mut Actor, redlock: &Redlock, settings: &Settings, plan: &Plan) {
    let start = clock::now();
    let acquire = asked!(redlock, plan, actor.dice);
    if matches!(plan.style, Style::Hold | Style::HoldRenew) {
        let held = acquire.hold(|guard| {
            let mut section = Section::enter(actor, plan, guard);
            stay(&mut section, plan, plan.stay);
            section.leave();
        });
        if let Err(HoldError::NotAcquired(error)) = &held {
            refused(actor, error);
        }
        return;
    }
    let granted = acquire.lock();
    actor.in_time("an acquire", start, plan.wait.saturating_add(settings.node_timeout));
    match granted {
        Ok(guard) => granted_to(actor, redlock, settings, plan, guard),
        Err(error) => refused(actor, &error),
    }
}

fn granted_to(actor: &mut Actor, redlock: &Redlock, settings: &Settings, plan: &Plan, guard: Guard) {
    let mut section = Section::enter(actor, plan, &guard);
    match plan.style {
        Style::Extend => {
            for _ in 0..actor.dice.between(1, 4) {
                stay(&mut section, plan, plan.stay);
                section.withdraw();
                let start = clock::now();
                let _whatever = guard.extend(plan.extension(&mut actor.dice));
                actor.in_time("an extension", start, settings.node_timeout.max(plan.ttl));
            }
            if plan.watches {
                // Whatever came of the extensions: it is held to the last deadline.
                stay(&mut section, plan, Duration::MAX);
            }
        }
        Style::Close => {
            stay(&mut section, plan, plan.stay);
            section.withdraw();
            redlock.close();
            if section.look() {
                actor.broken("it is held though its client is closed".into());
            }
        }
        Style::Oversleep => {
            let beyond = guard.remaining().saturating_add(Duration::from_millis(1));
            if plan.watches {
                let start = clock::now();
                if guard.wait_lost(beyond.saturating_add(super::STUCK)).is_none() {
                    actor.broken("nobody is told of its loss".into());
                }
                actor.in_time("the news of a loss", start, beyond);
            } else {
                thread::sleep(beyond);
            }
            if section.look() {
                actor.broken("it is still held after its deadline was slept through".into());
            }
        }
        Style::Share => {
            let second = guard.share();
            stay(&mut section, plan, plan.stay);
            drop(second);
            stay(&mut section, plan, plan.stay);
        }
        Style::Cancel(_)
        | Style::Drop
        | Style::Hold
        | Style::HoldRenew
        | Style::Release
        | Style::Renew
        | Style::Try => stay(&mut section, plan, plan.stay),
    }
    section.leave();
    let start = clock::now();
    drop(section);
    if matches!(plan.style, Style::Close | Style::Drop) {
        drop(guard);
    } else {
        released(actor, guard.release());
    }
    actor.in_time("the end", start, settings.node_timeout.max(plan.ttl));
}

/// Stays so long, or until the lock is lost.
fn stay(section: &mut Section<'_, Guard>, plan: &Plan, span: Duration) {
    let start = clock::now();
    while section.look() && clock::now().saturating_duration_since(start) < span {
        thread::sleep(plan.nap);
    }
}

/// Looks whether it may be refused for this.
pub(super) fn refused(actor: &Actor, error: &AcquireError) {
    let is_expected = matches!(
        error.kind,
        AcquireErrorKind::Contended
            | AcquireErrorKind::NoQuorum
            | AcquireErrorKind::Mixed
            | AcquireErrorKind::TooSlow
            | AcquireErrorKind::WaitOver { .. }
    );
    if !is_expected {
        actor.broken(error.to_string());
    }
}

/// Looks whether this may come of a release.
pub(super) fn released(actor: &Actor, released: Result<Released, ReleaseError>) {
    match released {
        Ok(Released { outcome: ReleaseOutcome::NotMine, .. }) if !actor.work.orders.is_forgetful => {
            actor.broken("released, and it was gone from nodes before its time".into());
        }
        Ok(_) => {}
        Err(error) => actor.broken(error.to_string()),
    }
}
