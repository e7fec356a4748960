//! That the compiler warns about what is thrown away by mistake, and takes what is meant.
//!
//! An expectation that is not met is an error here: a function that expects a warning compiles only if it draws one. Hardly
//! anything of this runs. That a released guard cannot be used is an example in the crate's documentation.
#![deny(unfulfilled_lint_expectations)]
#![allow(dead_code, clippy::std_instead_of_core, reason = "a test of what compiles")]

use crate::redlock::{Acquire, AcquireError, Builder, ExtendError, Guard, LostReason, Redlock, ReleaseError};
use std::thread;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// The lock would be released at once.
#[expect(unused_must_use, reason = "what is tested")]
async fn b57_a_guard_warns(redlock: &Redlock) -> Result<(), AcquireError> {
    redlock.acquire("door").await?;
    Ok(())
}

#[expect(unused_must_use, reason = "what is tested")]
fn b57_a_handle_warns(guard: &Guard) {
    guard.share();
}

#[expect(unused_must_use, reason = "what is tested")]
async fn b57_a_failed_acquire_warns(redlock: &Redlock) {
    redlock.acquire("door").await;
}

/// Nothing would be acquired.
#[expect(unused_must_use, reason = "what is tested")]
fn b57_an_acquire_that_is_not_awaited_warns(redlock: &Redlock) {
    redlock.acquire("door").ttl(SECOND);
}

/// The lock would be released without anyone asking whether it was still ours.
#[expect(unused_must_use, reason = "what is tested")]
async fn b57_the_result_of_a_release_warns(guard: Guard) {
    guard.release().await;
}

/// It is released all the same, but nobody waits for it.
#[expect(unused_must_use, reason = "what is tested")]
fn b57_a_release_that_is_not_awaited_warns(guard: Guard) {
    guard.release();
}

#[expect(unused_must_use, reason = "what is tested")]
async fn b57_the_result_of_an_extend_warns(guard: &Guard) {
    guard.extend(SECOND).await;
}

#[expect(unused_must_use, reason = "what is tested")]
async fn b57_the_result_of_a_hold_warns(redlock: &Redlock) {
    redlock.acquire("door").hold(async |_| ()).await;
}

/// Nobody would hear of the loss.
#[expect(unused_must_use, reason = "what is tested")]
fn b57_a_loss_signal_warns(guard: &Guard) {
    guard.lost();
}

#[expect(unused_must_use, reason = "what is tested")]
fn b57_a_loss_warns(guard: &Guard) {
    guard.lost_reason();
}

#[expect(unused_must_use, reason = "what is tested")]
fn b57_the_answer_to_is_held_warns(guard: &Guard) {
    guard.is_held();
}

#[expect(unused_must_use, reason = "what is tested")]
async fn b57_a_client_that_is_not_made_warns(builder: Builder) {
    builder.node("redis://localhost").connect().await;
}

/// In place: the same guard goes on.
async fn b57_extend_needs_no_new_guard(guard: &Guard) -> Result<bool, ExtendError> {
    let until = guard.extend(SECOND).await?;
    Ok(guard.valid_until() == until)
}

/// A guard goes to another thread or task, and is released there; so do the futures.
#[test]
fn b57_a_guard_moves() {
    fn moves<T: Send + 'static>(_: impl Fn(Redlock, Guard) -> T) {}
    moves(|_, guard| guard);
    moves(|_, guard| async move { guard.extend(SECOND).await });
    moves(|_, guard| async move { guard.lost().await });
    moves(|_, guard| thread::spawn(move || guard.release()));
    moves(|_, guard| guard.release());
    moves(|redlock, _| async move { redlock.acquire("door").hold(async |_| ()).await });
}

/// The right way draws no warning.
#[deny(unused_must_use)]
async fn b57_nothing_is_thrown_away(redlock: &Redlock) -> Result<LostReason, Refused> {
    let door: Acquire<'_> = redlock.acquire("door");
    let guard = door.await?;
    let reason = guard.lost().await;
    guard.release().await?;
    redlock.close().await;
    Ok(reason)
}

enum Refused {
    Acquire,
    Release,
}

impl From<AcquireError> for Refused {
    fn from(_: AcquireError) -> Self {
        Self::Acquire
    }
}

impl From<ReleaseError> for Refused {
    fn from(_: ReleaseError) -> Self {
        Self::Release
    }
}
