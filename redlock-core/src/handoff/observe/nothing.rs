//! Nobody looks on: without the features all of this is compiled away.

use crate::client::Client;
use crate::config::Config;
use crate::event::Event;
use crate::handoff::after::After;
use crate::ids::{LockId, OperationId};
use crate::time::Instant;
use bytes::Bytes;

pub(in crate::handoff) struct Observer;

/// There is none.
pub(in crate::handoff) enum News {}

impl Observer {
    pub(in crate::handoff) const fn new(_: &Config) -> Self {
        Self
    }

    #[expect(clippy::unused_self, clippy::needless_pass_by_ref_mut, reason = "as the one that looks on")]
    pub(in crate::handoff) const fn asked(&mut self, _: OperationId, _: &[Bytes], _: Instant, _: &mut After) {
    }

    #[expect(clippy::unused_self, clippy::needless_pass_by_ref_mut, reason = "as the one that looks on")]
    pub(in crate::handoff) const fn releasing(&mut self, _: LockId, _: Instant) {}

    #[expect(clippy::unused_self, clippy::needless_pass_by_ref_mut, reason = "as the one that looks on")]
    pub(in crate::handoff) const fn saw(&mut self, _: &Event, _: &Client, _: Instant, _: &mut After) {}
}

pub(in crate::handoff) const fn tell(news: &News) {
    match *news {}
}
