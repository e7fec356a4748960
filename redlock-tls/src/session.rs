//! TLS between a client and a byte stream that does not block.

use core::fmt;
use rustls::ClientConnection;
use std::io::{self, ErrorKind, Read, Write};

/// How much is taken from a socket at once.
const CHUNK: usize = 4096;

/// One TLS connection. It has no socket: each method is given what to read from and write to, and returns
/// [`ErrorKind::WouldBlock`] when that does.
///
/// What the socket did not take stays here, and goes out first in the next call of any method: call one when the socket is
/// ready to write.
///
/// A write that fails is no error here: what the server said before it went (an alert, for instance) may still be on its way
/// to the reader, and says more. Wait until the socket can be read from, as always: a broken one can.
pub struct Session {
    connection: ClientConnection,
    /// What came and was not understood yet: a part of it, from `start` to `end`.
    chunk: Box<[u8; CHUNK]>,
    start: usize,
    end: usize,
    /// Nothing can be written any more.
    is_broken: bool,
}

impl Session {
    pub(crate) fn new(connection: ClientConnection) -> Self {
        Self { connection, chunk: Box::new([0; CHUNK]), start: 0, end: 0, is_broken: false }
    }

    /// Goes on with the handshake; ready when it is done. A server may refuse a client's certificate only after that, in the
    /// first read (TLS 1.3).
    ///
    /// # Errors
    ///
    /// `WouldBlock`; the server is not trusted or refuses; the connection is broken.
    pub fn handshake(&mut self, io: &mut (impl Read + Write)) -> io::Result<()> {
        loop {
            let is_sent = self.flush(io);
            if !self.connection.is_handshaking() {
                return if is_sent { Ok(()) } else { Err(ErrorKind::WouldBlock.into()) };
            }
            if !self.receive(io)? {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads what the server said; 0 is the end.
    ///
    /// # Errors
    ///
    /// `WouldBlock`; `InvalidData`: the server refuses, or breaks the protocol; the connection is broken.
    pub fn read(&mut self, io: &mut (impl Read + Write), buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.flush(io);
            match self.connection.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // Cut off without a farewell, as servers do. What is cut off in the middle of a reply is seen above.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                other => return other,
            }
            if !self.receive(io)? {
                return Ok(0);
            }
        }
    }

    /// Takes what there is room for. What a broken connection takes is lost.
    ///
    /// # Errors
    ///
    /// `WouldBlock`, with nothing taken.
    pub fn write(&mut self, io: &mut (impl Read + Write), bytes: &[u8]) -> io::Result<usize> {
        if !self.flush(io) {
            return Err(ErrorKind::WouldBlock.into());
        }
        if self.is_broken {
            return Ok(bytes.len());
        }
        let taken = self.connection.writer().write(bytes)?;
        // What does not go out now is taken all the same, and goes out later.
        self.flush(io);
        Ok(taken)
    }

    /// Says farewell, as far as the socket takes it at once.
    pub fn close(&mut self, io: &mut (impl Read + Write)) {
        self.connection.send_close_notify();
        self.flush(io);
    }

    /// Sends what waits for the socket; whether nothing waits any more.
    pub fn flush(&mut self, io: &mut impl Write) -> bool {
        while !self.is_broken && self.connection.wants_write() {
            match self.connection.write_tls(io) {
                Ok(1..) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Ok(0) | Err(_) => self.is_broken = true,
            }
        }
        true
    }

    /// Takes more from the socket; false at its end.
    fn receive(&mut self, io: &mut (impl Read + Write)) -> io::Result<bool> {
        if self.start == self.end {
            let length = loop {
                match io.read(&mut self.chunk[..]) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    other => break other?,
                }
            };
            if length == 0 {
                return Ok(false);
            }
            (self.start, self.end) = (0, length);
        }
        // Not more than there is room for: what is left is taken once this was read.
        let mut rest = self.chunk.get(self.start..self.end).unwrap_or_default();
        self.start += self.connection.read_tls(&mut rest)?;
        if let Err(error) = self.connection.process_new_packets() {
            // The server is told why.
            self.flush(io);
            return Err(io::Error::new(ErrorKind::InvalidData, error.to_string()));
        }
        Ok(true)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}
