//! What was transmitted and is not written.

use bytes::{Buf, BytesMut};

/// Room that a connection keeps when nothing is in it.
const KEPT: usize = 64 * 1024;

/// What a connection has not written yet, in one piece, however many payloads it came in: copying a few hundred bytes costs
/// less than handing each to the system by itself.
#[derive(Debug, Default)]
pub struct Unsent {
    bytes: BytesMut,
}

impl Unsent {
    /// Whether all is written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What is to be written next.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// More to be written.
    pub fn push(&mut self, payload: &[u8]) {
        self.bytes.extend_from_slice(payload);
    }

    /// So many bytes are written.
    pub fn advance(&mut self, written: usize) {
        self.bytes.advance(written.min(self.bytes.len()));
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT {
            self.bytes = BytesMut::new();
        }
    }

    /// Nothing of it will be written.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }
}
