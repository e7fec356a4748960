//! The critical section, as it is written down: only what is certain.

use super::plan::Plan;
use super::{Actor, Work};
use crate::clock;
use crate::record::{Grant, Loss, What};
use alloc::sync::Arc;
use core::time::Duration;
use redlock_blocking::{Instant, LostReason};

/// A guard of any adapter, as far as the record needs it.
pub(super) trait Held {
    fn is_held(&self) -> bool;
    fn valid_until(&self) -> Instant;
    fn remaining(&self) -> Duration;
    fn lost_reason(&self) -> Option<LostReason>;
    /// Its fence, where it has one.
    fn fence(&self) -> Option<u64>;
}

macro_rules! held {
    ($guard:ty) => {
        impl Held for $guard {
            fn is_held(&self) -> bool {
                self.is_held()
            }

            fn valid_until(&self) -> Instant {
                self.valid_until()
            }

            fn remaining(&self) -> Duration {
                self.remaining()
            }

            fn lost_reason(&self) -> Option<LostReason> {
                self.lost_reason()
            }

            fn fence(&self) -> Option<u64> {
                None
            }
        }
    };
}

held!(redlock_blocking::Guard);
// The same type in all adapters of runtimes.
held!(redlock_tokio::Guard);

/// Where somebody is who holds the lock, and writes down for how long he knows that he does.
pub(super) struct Section<'g, G: Held> {
    work: Arc<Work>,
    grant: Grant,
    guard: &'g G,
    /// The last instant after which it was seen to be held.
    seen: Instant,
    /// What the record says it is held until.
    promised: Instant,
    is_over: bool,
}

impl<'g, G: Held> Section<'g, G> {
    /// Goes in, and writes so.
    pub(super) fn enter(actor: &mut Actor, plan: &Plan, guard: &'g G) -> Self {
        actor.grants += 1;
        let work = Arc::clone(&actor.work);
        let grant = Grant { process: work.orders.process, actor: actor.number, number: actor.grants };
        let at = clock::now();
        let is_held = guard.is_held();
        let until = guard.valid_until();
        let what = What::Enter {
            grant,
            flavour: work.orders.flavour,
            resources: plan.resources.iter().map(|resource| (*resource).to_owned()).collect(),
            // One that is lost by now is believed in by nobody: it has no interval.
            until: if is_held { until } else { until.min(at) },
            fence: guard.fence(),
            style: plan.style.name().to_owned(),
        };
        work.recorder.write(at, what);
        let mut section = Self { work, grant, guard, seen: at, promised: until, is_over: false };
        if !is_held {
            section.lose();
        }
        section
    }

    /// Looks whether the lock is still held.
    pub(super) fn look(&mut self) -> bool {
        if self.is_over {
            return false;
        }
        let before = self.guard.valid_until();
        let now = clock::now();
        let is_held = self.guard.is_held();
        let after = self.guard.valid_until();
        if !is_held {
            self.lose();
            return false;
        }
        if before == after && now >= before {
            self.broken("is_held() after its deadline");
        }
        self.seen = now;
        if after > self.promised {
            self.promise(after);
        }
        true
    }

    /// Nothing is promised beyond now, since the deadline is about to be moved down.
    pub(super) fn withdraw(&mut self) {
        if self.look() {
            self.promise(self.seen);
        }
    }

    fn promise(&mut self, until: Instant) {
        self.promised = until;
        self.work.recorder.write(self.seen, What::Until { grant: self.grant, until });
    }

    /// Goes out, before the lock is given back.
    pub(super) fn leave(&mut self) {
        if self.look() {
            self.is_over = true;
            self.work.recorder.write(self.seen, What::Leave { grant: self.grant });
        }
    }

    fn lose(&mut self) {
        self.is_over = true;
        let until = self.guard.valid_until();
        let reason = match self.guard.lost_reason() {
            Some(LostReason::Closed) => Loss::Closed,
            Some(LostReason::TokenGone) if self.work.orders.is_forgetful => Loss::Closed,
            Some(LostReason::TokenGone | LostReason::DuplicateNode) => Loss::Gone,
            Some(_) => Loss::Expired,
            None => {
                self.broken("not held, and not lost");
                Loss::Expired
            }
        };
        let until = if reason == Loss::Expired { until } else { self.seen };
        self.work.recorder.write(self.seen, What::Lost { grant: self.grant, until, reason });
        if reason == Loss::Expired && clock::now() < until {
            self.broken("expired before its deadline");
        }
        if self.guard.is_held() || !self.guard.remaining().is_zero() {
            self.broken("held again after it was lost");
        }
    }

    fn broken(&self, text: &str) {
        self.work.broken(format!("{}: {text}", self.grant));
    }
}

impl<G: Held> Drop for Section<'_, G> {
    /// A body that is dropped, because its lock is lost or because nobody waits for it any more.
    fn drop(&mut self) {
        self.leave();
    }
}
