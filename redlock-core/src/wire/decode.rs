//! Replies out of a stream of bytes.

use alloc::string::String;
use alloc::vec::Vec;

use redis_protocol::resp2::decode::decode_range as decode_resp2;
use redis_protocol::resp2::types::RangeFrame as Resp2;
use redis_protocol::resp3::decode::complete::decode_range as decode_resp3;
use redis_protocol::resp3::types::RangeFrame as Resp3;

use super::error::ServerError;
use super::frame::{Frame, MAX_FRAME, Protocol, Scanner};
use super::reply::{Blob, Reply, Usual, push_escaped};
use super::violation::Violation;

/// How much of the input is taken at once to complete a frame of which a part is kept: most frames need a few bytes.
const STEP: usize = 4096;

/// The range of a frame's bytes, as `redis-protocol` tells it.
type Range = (usize, usize);

/// Cuts one connection's input into replies.
///
/// Complete frames are read where they lie in the input. Only the part of a frame whose end has not arrived is kept,
/// so that a connection never holds more than [`MAX_FRAME`] bytes. The first [`Violation`] is the last answer.
#[derive(Debug)]
pub(crate) struct Decoder {
    protocol: Protocol,
    scanner: Scanner,
    /// The beginning of a frame. Its room is kept for the next one.
    partial: Vec<u8>,
    violation: Option<Violation>,
}

impl Decoder {
    /// A decoder for a new connection: RESP2.
    pub(crate) const fn new() -> Self {
        Self {
            protocol: Protocol::Resp2,
            scanner: Scanner::new(Protocol::Resp2),
            partial: Vec::new(),
            violation: None,
        }
    }

    /// The protocol of the next frame.
    #[cfg(test)]
    pub(crate) const fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Reads the frames from the next one on by `protocol`. [`Protocol::Negotiating`] is left by itself when the answer
    /// to `HELLO 3` is there: for RESP3 if it is a map, for RESP2 if it is anything else.
    pub(crate) const fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
        if self.partial.is_empty() {
            self.scanner = Scanner::new(protocol);
        }
    }

    /// How many bytes the decoder holds room for.
    #[cfg(test)]
    pub(crate) const fn room(&self) -> usize {
        self.partial.capacity()
    }

    /// The next reply, pushes included; `None` when all of `input` is used up.
    ///
    /// Takes from the front of `input` what it needs. Call it until it answers `None`, then again with the next bytes.
    pub(crate) fn next(&mut self, input: &mut &[u8]) -> Result<Option<Reply>, Violation> {
        if let Some(violation) = self.violation {
            return Err(violation);
        }
        let next = self.advance(input);
        if let Err(violation) = next {
            self.violation = Some(violation);
            self.partial = Vec::new();
        }
        next
    }

    /// The next reply, where it is one of the usual ones and lies whole at the front of `input`.
    #[inline]
    pub(crate) fn usual(&self, input: &mut &[u8]) -> Option<Usual> {
        if !self.partial.is_empty() || self.protocol == Protocol::Negotiating || self.violation.is_some() {
            return None;
        }
        let (reply, rest) = usual(input)?;
        *input = rest;
        Some(reply)
    }

    fn advance(&mut self, input: &mut &[u8]) -> Result<Option<Reply>, Violation> {
        if let Some(reply) = self.usual(input) {
            return Ok(Some(reply.into()));
        }
        loop {
            let found = if self.partial.is_empty() { self.in_place(input)? } else { self.completed(input)? };
            let Some((frame, reply)) = found else {
                return Ok(None);
            };
            if let Some(reply) = &reply {
                self.settle(frame, reply);
            }
            self.scanner = Scanner::new(self.protocol);
            // An attribute belongs to the frame that follows it, and answers nothing.
            if reply.is_some() {
                return Ok(reply);
            }
        }
    }

    /// Reads a frame at the front of `input`; keeps what is there of it if it is not complete.
    fn in_place(&mut self, input: &mut &[u8]) -> Result<Option<(Frame, Option<Reply>)>, Violation> {
        if let Some(frame) = self.scanner.scan(input)? {
            let (bytes, rest) = input.split_at_checked(frame.len).ok_or(Violation::Undecodable)?;
            let reply = decode(frame, bytes)?;
            *input = rest;
            return Ok(Some((frame, reply)));
        }
        // The scan refuses what is longer than a frame may be, so this is short.
        self.partial.extend_from_slice(input);
        *input = &[];
        Ok(None)
    }

    /// Completes the frame of which the beginning was kept.
    fn completed(&mut self, input: &mut &[u8]) -> Result<Option<(Frame, Option<Reply>)>, Violation> {
        while !input.is_empty() {
            let room = MAX_FRAME.saturating_sub(self.partial.len()).clamp(1, STEP);
            let (taken, rest) = input.split_at_checked(room).unwrap_or((input, &[]));
            let kept = self.partial.len();
            self.partial.extend_from_slice(taken);
            let Some(frame) = self.scanner.scan(&self.partial)? else {
                *input = rest;
                continue;
            };
            let bytes = self.partial.get(..frame.len).ok_or(Violation::Undecodable)?;
            let reply = decode(frame, bytes)?;
            // What was taken beyond the frame's end goes back.
            *input = input.get(frame.len.saturating_sub(kept)..).unwrap_or_default();
            self.partial.clear();
            return Ok(Some((frame, reply)));
        }
        Ok(None)
    }

    /// Ends the negotiation with the first frame that can be the answer to `HELLO`.
    fn settle(&mut self, frame: Frame, reply: &Reply) {
        if self.protocol == Protocol::Negotiating && !matches!(reply, Reply::Push(_)) {
            self.protocol = frame.protocol;
        }
    }
}

/// What nodes answer nearly always, if `input` begins with it: the same in both protocols, and no more than this, so that
/// it need neither be scanned nor taken apart.
const fn usual(input: &[u8]) -> Option<(Usual, &[u8])> {
    match input {
        [b'+', b'O', b'K', b'\r', b'\n', rest @ ..] => Some((Usual::Ok, rest)),
        [b':', b'1', b'\r', b'\n', rest @ ..] => Some((Usual::One, rest)),
        [b':', b'0', b'\r', b'\n', rest @ ..] => Some((Usual::Zero, rest)),
        _ => None,
    }
}

/// Reads one complete frame; `None` for an attribute.
fn decode(frame: Frame, bytes: &[u8]) -> Result<Option<Reply>, Violation> {
    if frame.kind == b'|' {
        return Ok(None);
    }
    let reply = if frame.protocol == Protocol::Resp3 {
        match decode_resp3(bytes) {
            Ok(Some((range, len))) if len == bytes.len() => from_resp3(bytes, range),
            Ok(_) | Err(_) => None,
        }
    } else {
        match decode_resp2(bytes) {
            Ok(Some((range, len))) if len == bytes.len() => from_resp2(bytes, range),
            Ok(_) | Err(_) => None,
        }
    };
    reply.map(Some).ok_or(Violation::Undecodable)
}

fn from_resp2(bytes: &[u8], frame: Resp2) -> Option<Reply> {
    Some(match frame {
        Resp2::SimpleString(range) => status(slice(bytes, range)?),
        Resp2::Error(range) => Reply::Error(ServerError::parse(slice(bytes, range)?)),
        Resp2::Integer(value) => Reply::Integer(value),
        Resp2::BulkString(range) => Reply::Bulk(Blob::copy_of(slice(bytes, range)?)),
        Resp2::Array(frames) => {
            Reply::Array(frames.into_iter().map(|f| from_resp2(bytes, f)).collect::<Option<_>>()?)
        }
        Resp2::Null => Reply::Null,
    })
}

fn from_resp3(bytes: &[u8], frame: Resp3) -> Option<Reply> {
    let all =
        |frames: Vec<Resp3>| frames.into_iter().map(|f| from_resp3(bytes, f)).collect::<Option<Vec<_>>>();
    Some(match frame {
        Resp3::SimpleString { data, .. } => status(slice(bytes, data)?),
        Resp3::SimpleError { data, .. } | Resp3::BlobError { data, .. } => {
            Reply::Error(ServerError::parse(slice(bytes, data)?))
        }
        Resp3::Number { data, .. } => Reply::Integer(data),
        Resp3::BlobString { data, .. } | Resp3::VerbatimString { data, .. } => {
            Reply::Bulk(Blob::copy_of(slice(bytes, data)?))
        }
        Resp3::Null => Reply::Null,
        Resp3::Array { data, .. } => Reply::Array(all(data)?),
        Resp3::Push { data, .. } => Reply::Push(all(data)?),
        Resp3::Map { data, .. } => {
            let mut pairs: Vec<(Resp3, Resp3)> = data.into_iter().collect();
            // The decoder's maps have an order of their own that differs from run to run.
            pairs.sort_by_key(|(key, _)| place(key));
            let pair = |(key, value)| Some((from_resp3(bytes, key)?, from_resp3(bytes, value)?));
            Reply::Map(pairs.into_iter().map(pair).collect::<Option<_>>()?)
        }
        Resp3::Boolean { .. } => Reply::Other("boolean"),
        Resp3::Double { .. } => Reply::Other("double"),
        Resp3::BigNumber { .. } => Reply::Other("big number"),
        Resp3::Set { .. } => Reply::Other("set"),
        Resp3::Hello { .. } | Resp3::ChunkedString(_) => return None,
    })
}

/// Where a map's key was in the frame. Keys without a place, which no server sends, come first, in an order of their
/// own.
fn place(key: &Resp3) -> (usize, i64) {
    match key {
        Resp3::BlobString { data, .. }
        | Resp3::BlobError { data, .. }
        | Resp3::SimpleString { data, .. }
        | Resp3::SimpleError { data, .. }
        | Resp3::BigNumber { data, .. }
        | Resp3::VerbatimString { data, .. }
        | Resp3::ChunkedString(data) => (data.0, 0),
        Resp3::Number { data, .. } => (0, *data),
        Resp3::Double { data, .. } => (1, i64::from_ne_bytes(data.to_ne_bytes())),
        Resp3::Boolean { data, .. } => (2, i64::from(*data)),
        Resp3::Null
        | Resp3::Array { .. }
        | Resp3::Map { .. }
        | Resp3::Set { .. }
        | Resp3::Push { .. }
        | Resp3::Hello { .. } => (3, 0),
    }
}

fn status(text: &[u8]) -> Reply {
    if text == b"OK" {
        return Reply::Ok;
    }
    let mut escaped = String::new();
    push_escaped(&mut escaped, text);
    Reply::Simple(escaped)
}

fn slice(bytes: &[u8], range: Range) -> Option<&[u8]> {
    bytes.get(range.0..range.1)
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
