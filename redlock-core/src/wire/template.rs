//! Commands over one key that were encoded before: the same bytes, but for the key and the value.
//!
//! To encode a command costs some twenty times what it costs to copy it. What differs from one lock to the next are the key and
//! the token, and usually no lengths. So one encoded command is kept for each form, ttl, and pair of lengths; where in it
//! its words are says `redis-protocol`, too, which encoded it.

use super::command;
use super::handshake::{DeleteForm, ExtendForm};
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use core::ops::Range;
use core::time::Duration;
use redis_protocol::resp2::decode::decode_range;
use redis_protocol::resp2::types::RangeFrame;

/// A command over one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Single {
    /// [`command::set`].
    Set,
    /// [`command::extend`].
    Extend(ExtendForm),
    /// [`command::release`].
    Release(DeleteForm),
}

impl Single {
    fn encode(self, key: &Bytes, value: &[u8], ttl: Duration) -> Bytes {
        let keys = core::slice::from_ref(key);
        match self {
            Self::Set => command::set(keys, value, ttl),
            Self::Extend(form) => command::extend(form, keys, value, ttl),
            Self::Release(form) => command::release(form, keys, value),
        }
    }

    /// Which of its words are the key, and which the value.
    const fn words(self) -> (usize, &'static [usize]) {
        match self {
            Self::Set | Self::Release(DeleteForm::Delifeq) => (1, &[2]),
            Self::Extend(ExtendForm::Ifeq) => (1, &[2, 4]),
            Self::Release(DeleteForm::Delex) => (1, &[3]),
            // `EVAL`, the script, the number of keys.
            Self::Extend(ExtendForm::Script) | Self::Release(DeleteForm::Script) => (3, &[4]),
        }
    }

    const fn number(self) -> usize {
        match self {
            Self::Set => 0,
            Self::Extend(ExtendForm::Ifeq) => 1,
            Self::Extend(ExtendForm::Script) => 2,
            Self::Release(DeleteForm::Delex) => 3,
            Self::Release(DeleteForm::Delifeq) => 4,
            Self::Release(DeleteForm::Script) => 5,
        }
    }
}

/// One encoded command.
struct Template {
    single: Single,
    ttl: Duration,
    bytes: Vec<u8>,
    key: Range<usize>,
    value: Range<usize>,
    /// Where the value is a second time; empty where it is not.
    value_again: Range<usize>,
}

impl Template {
    fn new(single: Single, ttl: Duration, command: &[u8]) -> Option<Self> {
        let Ok(Some((RangeFrame::Array(words), _))) = decode_range(command) else { return None };
        let word = |index: usize| match words.get(index)? {
            RangeFrame::BulkString((from, to)) => Some(*from..*to),
            RangeFrame::SimpleString(_)
            | RangeFrame::Error(_)
            | RangeFrame::Integer(_)
            | RangeFrame::Array(_)
            | RangeFrame::Null => None,
        };
        let (key, values) = single.words();
        let (key, value) = (word(key)?, word(*values.first()?)?);
        let value_again = match values.get(1) {
            Some(index) => word(*index)?,
            None => 0..0,
        };
        Some(Self { single, ttl, bytes: command.to_vec(), key, value, value_again })
    }

    fn fits(&self, single: Single, key: &[u8], value: &[u8], ttl: Duration) -> bool {
        self.single == single
            && self.key.len() == key.len()
            && self.value.len() == value.len()
            && self.ttl == ttl
    }

    /// Writes the command with this key and this value.
    fn fill(&self, key: &[u8], value: &[u8], into: &mut Vec<u8>) {
        into.extend_from_slice(&self.bytes);
        let again = Some(&self.value_again).filter(|range| !range.is_empty()).map(|range| (range, value));
        for (range, word) in [(&self.key, key), (&self.value, value)].into_iter().chain(again) {
            // They fit: the lengths are compared before.
            if let Some(room) = into.get_mut(range.clone()).filter(|room| room.len() == word.len()) {
                room.copy_from_slice(word);
            }
        }
    }
}

/// The command that was encoded last, and those that others are made from.
pub(crate) struct Encoder {
    newest: Vec<u8>,
    /// Each in the place that its form, its ttl and its lengths come to.
    templates: Vec<Option<Template>>,
}

/// Without the bytes, which have tokens in them (R26).
impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").field("templates", &self.templates.len()).finish_non_exhaustive()
    }
}

impl Encoder {
    /// So many templates there are at most: for five forms and ttls, and some dozen lengths of keys.
    const PLACES: usize = 64;
    /// Longer commands are not kept: keys of that size have all kinds of lengths.
    const LONGEST: usize = 1024;

    pub(crate) const fn new() -> Self {
        Self { newest: Vec::new(), templates: Vec::new() }
    }

    /// The command that was encoded last.
    pub(crate) fn newest(&self) -> &[u8] {
        &self.newest
    }

    /// Keeps a command that has no template.
    pub(crate) fn keep(&mut self, command: &[u8]) {
        self.newest.clear();
        self.newest.extend_from_slice(command);
    }

    /// Encodes the command.
    pub(crate) fn encode(&mut self, single: Single, key: &Bytes, value: &[u8], ttl: Duration) {
        self.newest.clear();
        let millis = usize::try_from(ttl.as_secs()).unwrap_or_default() ^ (ttl.subsec_millis() as usize);
        let place = (single.number() + 7 * key.len() + 11 * value.len() + 13 * millis) % Self::PLACES;
        let template = self.templates.get(place).and_then(Option::as_ref);
        if let Some(template) = template.filter(|template| template.fits(single, key, value, ttl)) {
            return template.fill(key, value, &mut self.newest);
        }
        let command = single.encode(key, value, ttl);
        self.newest.extend_from_slice(&command);
        if command.len() <= Self::LONGEST {
            self.templates.resize_with(Self::PLACES, || None);
            if let Some(kept) = self.templates.get_mut(place) {
                *kept = Template::new(single, ttl, &command);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const ALL: [Single; 6] = [
        Single::Set,
        Single::Extend(ExtendForm::Ifeq),
        Single::Extend(ExtendForm::Script),
        Single::Release(DeleteForm::Delex),
        Single::Release(DeleteForm::Delifeq),
        Single::Release(DeleteForm::Script),
    ];

    /// Whatever was encoded before, it is what the encoder makes of it.
    #[test]
    fn a_command_from_a_template_is_the_same_to_the_byte() {
        let mut encoder = Encoder::new();
        for round in 0..3_u8 {
            for len in [1, 2, 9, 10, 11, 99, 100, 101, 900, 2_000] {
                for ttl in [Duration::from_secs(10), Duration::from_millis(9_999), Duration::from_millis(1)] {
                    for (index, single) in ALL.into_iter().enumerate() {
                        let letter = b'a' + round + u8::try_from(index).unwrap();
                        // Keys that look like other words of the command.
                        let key = if len == 1 { Bytes::from_static(b"1") } else { vec![letter; len].into() };
                        let value = vec![b'0' + round; 40 + usize::from(round) % 2];
                        encoder.encode(single, &key, &value, ttl);
                        assert_eq!(encoder.newest(), single.encode(&key, &value, ttl), "{single:?} {len}");
                        encoder.encode(single, &key, &value, ttl);
                        assert_eq!(encoder.newest(), single.encode(&key, &value, ttl), "{single:?} {len}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_form_has_a_template() {
        for single in ALL {
            let command = single.encode(&Bytes::from_static(b"SET"), b"value", Duration::from_secs(1));
            let template = Template::new(single, Duration::from_secs(1), &command).unwrap();
            assert_eq!(&command[template.key], b"SET");
            assert_eq!(&command[template.value], b"value");
        }
    }

    #[test]
    fn templates_are_few() {
        let mut encoder = Encoder::new();
        for len in 1..2_000 {
            encoder.encode(Single::Set, &vec![b'k'; len].into(), b"value", Duration::from_secs(10));
        }
        assert_eq!(encoder.templates.len(), Encoder::PLACES);
    }
}
