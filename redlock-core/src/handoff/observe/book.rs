//! What an event alone does not say: since when, of which resource, at which address.

use crate::client::Client;
use crate::config::Config;
use crate::event::Event;
use crate::ids::{LockId, NodeId, OperationId};
use crate::node::VoteCounts;
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

/// What belongs to an event.
#[derive(Default)]
pub(in crate::handoff) struct Context {
    /// Of which resource; several are joined by `, `, and what is no UTF-8 is replaced.
    #[cfg_attr(not(feature = "tracing"), expect(dead_code, reason = "logged, not counted"))]
    pub(super) resource: Option<Arc<str>>,
    /// The address of the node, without the password.
    pub(super) node: Option<Arc<str>>,
    /// How long the acquire took, or the lock was held, that ended with this event.
    pub(super) span: Option<Duration>,
}

pub(super) struct Book {
    is_new: bool,
    acquires: BTreeMap<OperationId, (Arc<str>, Instant)>,
    locks: BTreeMap<LockId, Hold>,
    /// The addresses of the nodes, and the votes that were told.
    nodes: Vec<(Arc<str>, VoteCounts)>,
}

struct Hold {
    resource: Arc<str>,
    since: Instant,
    /// Its release is on the way since then.
    until: Option<Instant>,
}

impl Book {
    pub(super) fn new(config: &Config) -> Self {
        let label = |node: &crate::config::NodeConfig| Arc::from(node.address().to_string());
        let nodes = config.nodes().iter().map(|node| (label(node), VoteCounts::default())).collect();
        Self { is_new: true, acquires: BTreeMap::new(), locks: BTreeMap::new(), nodes }
    }

    /// Whether this is asked for the first time.
    pub(super) const fn is_new(&mut self) -> bool {
        core::mem::replace(&mut self.is_new, false)
    }

    pub(super) fn asked(&mut self, operation: OperationId, resources: &[Bytes], now: Instant) {
        self.acquires.insert(operation, (text(resources).into(), now));
    }

    pub(super) fn releasing(&mut self, lock: LockId, now: Instant) {
        if let Some(hold) = self.locks.get_mut(&lock) {
            hold.until.get_or_insert(now);
        }
    }

    /// What belongs to the event, which is entered.
    pub(super) fn context(&mut self, event: &Event, now: Instant) -> Context {
        match event {
            Event::Acquired { operation, lock, .. } => {
                let asked = self.acquires.remove(operation);
                let (resource, start) = asked.unwrap_or_else(|| (Arc::from(""), now));
                let hold = Hold { resource: Arc::clone(&resource), since: now, until: None };
                self.locks.insert(*lock, hold);
                let span = Some(now.saturating_duration_since(start));
                Context { resource: Some(resource), span, node: None }
            }
            Event::AcquireFailed { operation, error } => {
                let asked = self.acquires.remove(operation);
                let resource = asked
                    .as_ref()
                    .map_or_else(|| Arc::from(error.resource.as_str()), |(resource, _)| Arc::clone(resource));
                let span = asked.map(|(_, start)| now.saturating_duration_since(start));
                Context { resource: Some(resource), span, node: None }
            }
            Event::AttemptLost { operation, .. } => {
                let resource = self.acquires.get(operation).map(|(resource, _)| Arc::clone(resource));
                Context { resource, ..Context::default() }
            }
            Event::Lost { lock, .. } | Event::Released { lock, .. } => {
                let Some(hold) = self.locks.remove(lock) else { return Context::default() };
                let end = hold.until.unwrap_or(now);
                let span = Some(end.saturating_duration_since(hold.since));
                Context { resource: Some(hold.resource), span, node: None }
            }
            Event::Repaired { lock, node } | Event::AliasSuspected { lock, node } => {
                Context { resource: self.resource(*lock), node: self.node(*node), span: None }
            }
            Event::Extended { lock, .. }
            | Event::ExtendFailed { lock, .. }
            | Event::Renewed { lock, .. }
            | Event::RenewalFailed { lock, .. }
            | Event::DeadlineMoved { lock, .. }
            | Event::Expiring { lock, .. } => {
                Context { resource: self.resource(*lock), ..Context::default() }
            }
            Event::NodeUp { node }
            | Event::NodeDown { node, .. }
            | Event::IdentityUnknown { node }
            | Event::NodeRestarted { node }
            | Event::NodeQuarantined { node, .. }
            | Event::QuarantineOver { node }
            | Event::ClockStepped { node, .. } => Context { node: self.node(*node), ..Context::default() },
            Event::Connected { .. } | Event::ConnectFailed { .. } | Event::Closed => Context::default(),
        }
    }

    fn resource(&self, lock: LockId) -> Option<Arc<str>> {
        self.locks.get(&lock).map(|hold| Arc::clone(&hold.resource))
    }

    fn node(&self, node: NodeId) -> Option<Arc<str>> {
        self.nodes.get(node.index()).map(|(label, _)| Arc::clone(label))
    }

    /// The votes that were given since this was asked last.
    pub(super) fn new_votes(&mut self, client: &Client) -> Vec<(Arc<str>, VoteCounts)> {
        let mut news = Vec::new();
        for (node, (label, told)) in (0..=u8::MAX).map(NodeId::new).zip(&mut self.nodes) {
            let votes = client.votes(node).unwrap_or_default();
            if votes != *told {
                news.push((Arc::clone(label), votes.since(*told)));
                *told = votes;
            }
        }
        news
    }

    pub(super) fn nodes(&self) -> Vec<Arc<str>> {
        self.nodes.iter().map(|(label, _)| Arc::clone(label)).collect()
    }

    /// Nothing comes any more. How many acquires and locks had not ended, and the nodes.
    pub(super) fn close(&mut self) -> (usize, usize, Vec<Arc<str>>) {
        let (acquires, locks) = (core::mem::take(&mut self.acquires), core::mem::take(&mut self.locks));
        (acquires.len(), locks.len(), self.nodes())
    }
}

/// Resources as a field, without the quotes that they have in an error's sentence.
pub(super) fn text(resources: &[Bytes]) -> String {
    let texts: Vec<_> = resources.iter().map(|resource| String::from_utf8_lossy(resource)).collect();
    texts.join(", ")
}
