//! One connection, as the server sees it.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::mem;

use super::reply::{Protocol, Reply, encode_invalidation};
use super::request::RequestParser;
use super::tracking::Tracking;

/// `client-output-buffer-limit`: a client that reads this much too slowly is cut off without a word.
const OUTPUT_LIMIT: usize = 64 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: u64,
    pub(super) parser: RequestParser,
    out: Vec<u8>,
    /// The server hangs up once `out` has been taken.
    pub(super) closing: bool,
    pub(super) protocol: Protocol,
    pub(super) database: usize,
    pub(super) name: Vec<u8>,
    /// `None` until authenticated.
    pub(super) user: Option<String>,
    pub(super) tracking: Option<Tracking>,
    /// What `CLIENT CACHING` said about the next command.
    pub(super) caching: Option<bool>,
    /// Invalidations to be sent behind the reply to the command that runs; `None` stands for every key.
    pub(super) pending: Vec<Option<Vec<u8>>>,
    /// Changes to be told at the end of this round, all in one push.
    pub(super) broadcast: BTreeSet<Vec<u8>>,
}

impl Session {
    pub(super) const fn new(id: u64, user: Option<String>) -> Self {
        Self {
            id,
            parser: RequestParser::new(),
            out: Vec::new(),
            closing: false,
            protocol: Protocol::Resp2,
            database: 0,
            name: Vec::new(),
            user,
            tracking: None,
            caching: None,
            pending: Vec::new(),
            broadcast: BTreeSet::new(),
        }
    }

    pub(super) fn say(&mut self, reply: &Reply) {
        reply.encode(self.protocol, &mut self.out);
        if self.out.len() > OUTPUT_LIMIT {
            self.out = Vec::new();
            self.closing = true;
        }
    }

    /// Tells of a change, in RESP3 only: RESP2 without `REDIRECT` accepts tracking and then delivers nothing.
    pub(super) fn push(&mut self, keys: Option<&[Vec<u8>]>) {
        if self.protocol == Protocol::Resp3 && self.tracking.is_some() {
            encode_invalidation(keys, &mut self.out);
        }
    }

    pub(super) fn flush_pending(&mut self) {
        for key in mem::take(&mut self.pending) {
            self.push(key.map(|key| [key]).as_ref().map(|keys| keys.as_slice()));
        }
    }

    pub(super) fn flush_broadcast(&mut self) {
        if !self.broadcast.is_empty() {
            let keys: Vec<Vec<u8>> = mem::take(&mut self.broadcast).into_iter().collect();
            self.push(Some(&keys));
        }
    }

    pub(super) fn take_output(&mut self) -> Vec<u8> {
        mem::take(&mut self.out)
    }

    pub(super) const fn has_output(&self) -> bool {
        !self.out.is_empty()
    }
}
