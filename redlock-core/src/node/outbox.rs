//! The commands of one connection, in order: those that were handed out and not answered, and behind them those that wait to be
//! handed out.

use super::Tag;
use crate::ids::LockId;
use crate::machine::Verb;
use crate::time::{Instant, nanos};
use alloc::collections::VecDeque;
use bytes::{Bytes, BytesMut};
use core::fmt;
use core::time::Duration;

/// With replies outstanding and not a byte for so long, at least, a connection is given up (R11).
const LEAST_SILENCE: Duration = Duration::from_secs(2);

/// How much room for bytes there is from the start: some forty commands. Once the payloads in it are written it is used again.
const ROOM: usize = 4096;

/// A command that waits to be handed out.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) tag: Tag,
    pub(crate) bytes: Bytes,
    /// The node timeout of whoever asked: how patient to be with the connection.
    pub(crate) patience: Duration,
}

/// What one command left behind when its bytes were put to the others.
#[derive(Debug)]
struct Place {
    tag: Tag,
    /// How many bytes it has.
    len: usize,
    /// How long the connection may be silent with it unanswered, in nanoseconds.
    silence: u64,
}

/// The pipeline of one connection. The bytes of all commands that wait are one piece, so that they are one payload.
pub(crate) struct Outbox {
    places: VecDeque<Place>,
    /// How many of the last of them wait.
    waiting: usize,
    bytes: BytesMut,
}

/// Counts only: commands hold passwords and tokens (R26).
impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { places, waiting, bytes: _ } = self;
        f.debug_struct("Outbox")
            .field("places", &places.len())
            .field("waiting", waiting)
            .finish_non_exhaustive()
    }
}

impl Outbox {
    pub(super) fn new() -> Self {
        Self { places: VecDeque::new(), waiting: 0, bytes: BytesMut::new() }
    }

    /// Whether nothing waits.
    pub(crate) const fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Whether everything that was handed out is answered.
    pub(super) fn is_answered(&self) -> bool {
        self.places.len() == self.waiting
    }

    /// Commands that wait or are unanswered.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn push_back(&mut self, outgoing: Outgoing) {
        self.push(outgoing.tag, &outgoing.bytes, outgoing.patience);
    }

    /// One more command waits.
    pub(crate) fn push(&mut self, tag: Tag, command: &[u8], patience: Duration) {
        if self.bytes.capacity() == 0 {
            self.bytes.reserve(ROOM);
        }
        let silence = nanos(patience).saturating_mul(3).max(nanos(LEAST_SILENCE));
        self.put(tag, command, silence);
    }

    /// One more command waits, for which the connection gets as much patience as for the one before it.
    pub(super) fn push_along(&mut self, tag: Tag, command: &[u8]) {
        let silence = self.places.back().map_or(nanos(LEAST_SILENCE), |last| last.silence);
        self.put(tag, command, silence);
    }

    fn put(&mut self, tag: Tag, command: &[u8], silence: u64) {
        self.bytes.extend_from_slice(command);
        self.places.push_back(Place { tag, len: command.len(), silence });
        self.waiting += 1;
    }

    /// Takes out what waits of the lock, its release excepted (R7, R8a).
    pub(super) fn withdraw(&mut self, lock: LockId) {
        let is_withdrawn = |place: &Place| match place.tag {
            Tag::Claim { lock: other, verb, .. } => other == lock && verb != Verb::Release,
            Tag::Holder { .. }
            | Tag::Clock
            | Tag::Handshake(_)
            | Tag::Tracking
            | Tag::Caching
            | Tag::Reading { .. } => false,
        };
        let mut all = self.bytes.split();
        for place in self.places.split_off(self.places.len().saturating_sub(self.waiting)) {
            let bytes = all.split_to(place.len.min(all.len()));
            if is_withdrawn(&place) {
                self.waiting -= 1;
            } else {
                self.bytes.extend_from_slice(&bytes);
                self.places.push_back(place);
            }
        }
    }

    /// All that waits, as one payload: its commands are unanswered from now on. Answers with the number of the first of them
    /// for [`tag`](Self::tag), too.
    pub(super) fn hand_out(&mut self) -> Option<(Bytes, usize)> {
        if self.waiting == 0 {
            return None;
        }
        let first = self.places.len().saturating_sub(self.waiting);
        self.waiting = 0;
        Some((self.bytes.split().freeze(), first))
    }

    /// The tag of a command, counted from the first that is unanswered.
    pub(crate) fn tag(&self, number: usize) -> Option<Tag> {
        self.places.get(number).map(|place| place.tag)
    }

    /// What was handed out and is not answered.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = Tag> {
        self.places.iter().take(self.places.len().saturating_sub(self.waiting)).map(|place| place.tag)
    }

    /// The command that is answered next.
    pub(crate) fn first_unanswered(&self) -> Option<Tag> {
        if self.is_answered() { None } else { self.tag(0) }
    }

    /// The first unanswered command is answered.
    pub(super) fn answered(&mut self) -> Option<Tag> {
        if self.is_answered() {
            return None;
        }
        self.places.pop_front().map(|place| place.tag)
    }

    /// Until when the connection may be silent, if it was heard last then.
    pub(super) fn silent_at(&self, heard: Instant) -> Option<Instant> {
        let first = self.places.front().filter(|_| !self.is_answered())?;
        Some(heard.saturating_add_nanos(first.silence))
    }

    /// The connection is gone, and all that was for it.
    pub(super) fn clear(&mut self) {
        self.places.clear();
        self.waiting = 0;
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(lock: u64, verb: Verb) -> Tag {
        Tag::Claim { lock: LockId(lock), verb, form: crate::node::Form::Set }
    }

    #[test]
    fn r8a_what_is_withdrawn_is_gone_with_its_bytes() {
        let mut outbox = Outbox::new();
        outbox.push(tag(1, Verb::Set), b"one", Duration::ZERO);
        assert_eq!(outbox.hand_out(), Some((Bytes::from_static(b"one"), 0)));
        outbox.push(tag(1, Verb::Repair { ttl: Duration::ZERO }), b"two", Duration::ZERO);
        outbox.push(tag(2, Verb::Set), b"three", Duration::ZERO);
        outbox.push(tag(1, Verb::Release), b"four", Duration::ZERO);
        outbox.push(tag(1, Verb::Set), b"five", Duration::ZERO);
        outbox.withdraw(LockId(1));
        assert_eq!(outbox.hand_out(), Some((Bytes::from_static(b"threefour"), 1)));
        assert_eq!(outbox.hand_out(), None);
        assert_eq!(outbox.tag(1), Some(tag(2, Verb::Set)));
        for answered in [Some(tag(1, Verb::Set)), Some(tag(2, Verb::Set)), Some(tag(1, Verb::Release)), None]
        {
            assert_eq!(outbox.answered(), answered);
        }
    }

    #[test]
    fn what_waits_is_not_answered() {
        let mut outbox = Outbox::new();
        outbox.push(tag(1, Verb::Set), b"one", Duration::from_secs(1));
        assert_eq!(outbox.answered(), None);
        assert_eq!(outbox.silent_at(Instant::ZERO), None);
        assert!(outbox.hand_out().is_some());
        assert_eq!(outbox.silent_at(Instant::ZERO), Some(Instant::from_secs(3)));
    }
}
