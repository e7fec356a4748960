//! What an actor does as a task, in any runtime.

use super::Actor;
use super::client::{Settings, configured};
use super::plan::{Plan, Style, asked};
use super::section::Section;
use super::threads::{refused, released};
use crate::clock;
use core::time::Duration;
use futures_lite::future;
use redlock_blocking::HoldError;
use redlock_core::handoff::task::{Guard, Redlock, Runtime};
use std::thread;

/// Wants the lock until it is over.
pub(super) async fn act<R: Runtime>(mut actor: Actor) {
    while !actor.is_over() {
        let settings = Settings::choose(&mut actor.dice);
        let built = configured!(Redlock::<R>::builder(), actor.work.orders.nodes, settings).connect_lazy();
        match built {
            Ok(redlock) => serve(&mut actor, &redlock, &settings).await,
            Err(error) => actor.broken(format!("no client: {error}")),
        }
        // It is dropped, and closes in the background.
    }
    actor.done();
}

/// Uses one client until it wants another.
async fn serve<R: Runtime>(actor: &mut Actor, redlock: &Redlock<R>, settings: &Settings) {
    loop {
        let plan = Plan::next(&mut actor.dice);
        visit(actor, redlock, settings, &plan).await;
        R::sleep(plan.pause).await;
        if plan.changes_client || actor.is_over() {
            return;
        }
    }
}

async fn visit<R: Runtime>(actor: &mut Actor, redlock: &Redlock<R>, settings: &Settings, plan: &Plan) {
    let start = clock::now();
    let acquire = asked!(redlock, plan, actor.dice);
    if matches!(plan.style, Style::Hold | Style::HoldRenew) {
        let held = acquire.hold(async |guard: &Guard| {
            let mut section = Section::enter(actor, plan, guard);
            stay::<R>(&mut section, plan, plan.stay).await;
            section.leave();
        });
        if let Err(HoldError::NotAcquired(error)) = &held.await {
            refused(actor, error);
        }
        return;
    }
    let granted = if let Style::Cancel(after) = plan.style {
        let acquire = async { Some(acquire.await) };
        let gives_up = async {
            R::sleep(after).await;
            None
        };
        let Some(granted) = future::or(acquire, gives_up).await else { return };
        granted
    } else {
        acquire.await
    };
    actor.in_time("an acquire", start, plan.wait.saturating_add(settings.node_timeout));
    match granted {
        Ok(guard) => granted_to(actor, redlock, settings, plan, guard).await,
        Err(error) => refused(actor, &error),
    }
}

async fn granted_to<R: Runtime>(
    actor: &mut Actor,
    redlock: &Redlock<R>,
    settings: &Settings,
    plan: &Plan,
    guard: Guard,
) {
    let mut section = Section::enter(actor, plan, &guard);
    match plan.style {
        Style::Extend => {
            for _ in 0..actor.dice.between(1, 4) {
                stay::<R>(&mut section, plan, plan.stay).await;
                section.withdraw();
                let start = clock::now();
                let extend = guard.extend(plan.extension(&mut actor.dice));
                if actor.dice.chance(20) {
                    // Called off at any moment of it.
                    let gives_up = R::sleep(Duration::from_millis(actor.dice.below(10)));
                    future::or(async { drop(extend.await) }, gives_up).await;
                } else {
                    drop(extend.await);
                }
                actor.in_time("an extension", start, settings.node_timeout.max(plan.ttl));
            }
            if plan.watches {
                // Whatever came of the extensions: it is held to the last deadline.
                stay::<R>(&mut section, plan, Duration::MAX).await;
            }
        }
        Style::Close => {
            stay::<R>(&mut section, plan, plan.stay).await;
            section.withdraw();
            redlock.close().await;
            if section.look() {
                actor.broken("it is held though its client is closed".into());
            }
        }
        Style::Oversleep => {
            let beyond = guard.remaining().saturating_add(Duration::from_millis(1));
            if plan.blocks {
                thread::sleep(beyond);
            } else if plan.watches {
                let start = clock::now();
                let _reason = guard.lost().await;
                actor.in_time("the news of a loss", start, beyond);
            } else {
                R::sleep(beyond).await;
            }
            if section.look() {
                actor.broken("it is still held after its deadline was slept through".into());
            }
        }
        Style::Share => {
            let second = guard.share();
            stay::<R>(&mut section, plan, plan.stay).await;
            drop(second);
            stay::<R>(&mut section, plan, plan.stay).await;
        }
        Style::Cancel(_)
        | Style::Drop
        | Style::Hold
        | Style::HoldRenew
        | Style::Release
        | Style::Renew
        | Style::Try => stay::<R>(&mut section, plan, plan.stay).await,
    }
    section.leave();
    let start = clock::now();
    drop(section);
    if matches!(plan.style, Style::Close | Style::Drop) {
        drop(guard);
    } else {
        released(actor, guard.release().await);
    }
    actor.in_time("the end", start, settings.node_timeout.max(plan.ttl));
}

/// Stays so long, or until the lock is lost.
async fn stay<R: Runtime>(section: &mut Section<'_, Guard>, plan: &Plan, span: Duration) {
    let start = clock::now();
    while section.look() && clock::now().saturating_duration_since(start) < span {
        if plan.blocks {
            thread::sleep(plan.nap);
        } else {
            R::sleep(plan.nap).await;
        }
    }
}
