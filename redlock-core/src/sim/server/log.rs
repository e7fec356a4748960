//! What a node was asked, for tests to look at.

use alloc::vec::Vec;

use super::SessionId;
use crate::Instant;

/// So many entries at least are kept.
pub(super) const LIMIT: usize = 10_000;

/// So much of a reply is kept.
const REPLY_LIMIT: usize = 1_024;

/// One request, and what was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// When it was executed.
    pub at: Instant,
    /// Whose it was.
    pub session: SessionId,
    /// The database that was selected.
    pub database: usize,
    /// The command and its arguments; passwords read `(redacted)`.
    pub args: Vec<Vec<u8>>,
    /// The reply as encoded, also where it was muted or its client had gone; its first 1024 bytes.
    pub reply: Vec<u8>,
}

impl LogEntry {
    /// Whether the request's first words are these, in any case: `entry.is("set")`, `entry.is("client tracking")`.
    #[must_use]
    pub fn is(&self, words: &str) -> bool {
        let mut args = self.args.iter();
        words.split(' ').all(|word| args.next().is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes())))
    }
}

#[derive(Debug)]
pub(super) struct Log {
    entries: Vec<LogEntry>,
    is_kept: bool,
}

impl Log {
    pub(super) const fn new() -> Self {
        Self { entries: Vec::new(), is_kept: true }
    }

    pub(super) const fn is_kept(&self) -> bool {
        self.is_kept
    }

    pub(super) const fn keep(&mut self, is_kept: bool) {
        self.is_kept = is_kept;
    }

    pub(super) fn push(
        &mut self,
        at: Instant,
        session: SessionId,
        database: usize,
        args: &[Vec<u8>],
        mut reply: Vec<u8>,
    ) {
        reply.truncate(REPLY_LIMIT);
        reply.shrink_to_fit();
        // Half at a time, so that dropping the oldest costs little per entry.
        if self.entries.len() >= LIMIT.saturating_mul(2) {
            self.entries.drain(..LIMIT);
        }
        self.entries.push(LogEntry { at, session, database, args: redacted(args), reply });
    }

    pub(super) fn entries(&self) -> &[LogEntry] {
        &self.entries
    }
}

fn redacted(args: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let is = |index: usize, word: &[u8]| args.get(index).is_some_and(|arg| arg.eq_ignore_ascii_case(word));
    let hidden = |index: usize| {
        (is(0, b"auth") && index > 0)
            || (is(0, b"hello")
                && (index > 0 && is(index - 1, b"auth") || index > 1 && is(index - 2, b"auth")))
    };
    let show =
        |(index, arg): (usize, &Vec<u8>)| if hidden(index) { b"(redacted)".to_vec() } else { arg.clone() };
    args.iter().enumerate().map(show).collect()
}
