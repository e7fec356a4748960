//! One socket, whatever its kind.

use core::net::SocketAddr;
use core::time::Duration;
use mio::event::Source;
use mio::net::TcpStream;
#[cfg(unix)]
use mio::net::UnixStream;
use mio::{Interest, Registry, Token};
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, ErrorKind, Read, Write};

/// A connection on which nothing was said for so long is asked whether it still stands, so that one that was cut silently
/// is found before a lock is.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// A non-blocking socket.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl Stream {
    /// Starts to connect.
    pub(super) fn tcp(address: SocketAddr, registry: &Registry, token: Token) -> io::Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        register(&mut stream, registry, token)?;
        Ok(Self::Tcp(stream))
    }

    /// Starts to connect.
    #[cfg(unix)]
    pub(super) fn unix(path: &str, registry: &Registry, token: Token) -> io::Result<Self> {
        let mut stream = UnixStream::connect(path)?;
        register(&mut stream, registry, token)?;
        Ok(Self::Unix(stream))
    }

    /// There are none on this system.
    #[cfg(not(unix))]
    pub(super) fn unix(_path: &str, _registry: &Registry, _token: Token) -> io::Result<Self> {
        Err(io::Error::new(ErrorKind::Unsupported, "there are no Unix sockets on this system"))
    }

    /// Whether the connection stands by now.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub(super) fn finish_connect(&self) -> io::Result<bool> {
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
                self.tune();
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Small packets go out at once, and a silent peer is asked whether it is there. Neither is worth failing for.
    fn tune(&self) {
        match self {
            Self::Tcp(stream) => {
                let _no_delay = stream.set_nodelay(true);
                let keepalive = TcpKeepalive::new().with_time(KEEPALIVE);
                let _keepalive = SockRef::from(stream).set_tcp_keepalive(&keepalive);
            }
            #[cfg(unix)]
            Self::Unix(_) => {}
        }
    }
}

fn register(source: &mut impl Source, registry: &Registry, token: Token) -> io::Result<()> {
    // Both, once for all: it is edge-triggered, so that readiness to write is told when it comes, not while it lasts.
    registry.register(source, token, Interest::READABLE | Interest::WRITABLE)
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            #[cfg(unix)]
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
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
