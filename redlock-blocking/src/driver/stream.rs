//! One socket, whatever its kind.

use super::secure::Session;
use core::net::SocketAddr;
use mio::event::Source;
use mio::net::TcpStream;
#[cfg(unix)]
use mio::net::UnixStream;
use mio::{Interest, Registry, Token};
use std::io::{self, ErrorKind, Read, Write};

redlock_core::__tune!();

/// A non-blocking connection, with TLS over it or without.
#[derive(Debug)]
pub(super) struct Stream {
    socket: Socket,
    session: Option<Box<Session>>,
    /// The socket's connection stands, whatever TLS says.
    is_connected: bool,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl Stream {
    /// Starts to connect.
    pub(super) fn tcp(
        address: SocketAddr,
        session: Option<Session>,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        register(&mut stream, registry, token)?;
        Ok(Self { socket: Socket::Tcp(stream), session: session.map(Box::new), is_connected: false })
    }

    /// Starts to connect.
    #[cfg(unix)]
    pub(super) fn unix(path: &str, registry: &Registry, token: Token) -> io::Result<Self> {
        let mut stream = UnixStream::connect(path)?;
        register(&mut stream, registry, token)?;
        Ok(Self { socket: Socket::Unix(stream), session: None, is_connected: false })
    }

    /// There are none on this system.
    #[cfg(not(unix))]
    pub(super) fn unix(_path: &str, _registry: &Registry, _token: Token) -> io::Result<Self> {
        Err(io::Error::new(ErrorKind::Unsupported, "there are no Unix sockets on this system"))
    }

    /// Whether the connection stands by now, TLS's handshake included.
    ///
    /// # Errors
    ///
    /// It cannot be made; where [`is_connected`](Self::is_connected), by TLS.
    pub(super) fn finish_connect(&mut self) -> io::Result<bool> {
        self.is_connected = self.is_connected || self.socket.finish_connect()?;
        let Self { socket, session, is_connected } = self;
        match session {
            Some(session) if *is_connected => match session.handshake(socket) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
                result => result.map(|()| true),
            },
            _ => Ok(*is_connected),
        }
    }

    /// Whether the socket's connection stands, whatever TLS says.
    pub(super) const fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Whether TLS is between: a short read or write says nothing of the socket then.
    pub(super) const fn is_tls(&self) -> bool {
        self.session.is_some()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(session) = &mut self.session
            && self.is_connected
        {
            session.close(&mut self.socket);
        }
    }
}

impl Socket {
    fn finish_connect(&self) -> io::Result<bool> {
        let (error, peer) = match self {
            Self::Tcp(stream) => (stream.take_error()?, stream.peer_addr().map(|_| ())),
            #[cfg(unix)]
            Self::Unix(stream) => (stream.take_error()?, stream.peer_addr().map(|_| ())),
        };
        if let Some(error) = error {
            return Err(error);
        }
        match peer {
            Ok(()) => {
                match self {
                    Self::Tcp(stream) => tune(stream),
                    #[cfg(unix)]
                    Self::Unix(_) => {}
                }
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn register(source: &mut impl Source, registry: &Registry, token: Token) -> io::Result<()> {
    // Both, once for all: it is edge-triggered, so that readiness to write is told when it comes, not while it lasts.
    registry.register(source, token, Interest::READABLE | Interest::WRITABLE)
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            #[cfg(unix)]
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.session {
            Some(session) => session.read(&mut self.socket, buffer),
            None => self.socket.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.session {
            Some(session) => session.write(&mut self.socket, bytes),
            None => self.socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let is_sent = self.session.as_mut().is_none_or(|session| session.flush(&mut self.socket));
        if is_sent { Ok(()) } else { Err(ErrorKind::WouldBlock.into()) }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            #[cfg(unix)]
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use mio::{Events, Poll};

    #[test]
    fn b38_connections_are_tuned() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (mut poll, mut events) = (Poll::new().unwrap(), Events::with_capacity(1));
        let address = listener.local_addr().unwrap();
        let mut stream = Stream::tcp(address, None, poll.registry(), Token(0)).unwrap();
        while !stream.finish_connect().unwrap() {
            poll.poll(&mut events, None).unwrap();
        }
        let Socket::Tcp(socket) = &stream.socket else { panic!("another kind of socket") };
        assert_tuned(socket);
    }
}
