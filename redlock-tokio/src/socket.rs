//! Tokio's sockets.

use core::net::SocketAddr;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use redlock_core::handoff::task::{BoxFuture, Socket, Transport};
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, Read as _};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A connection on which nothing was said for so long is asked whether it still stands, so that one that was cut silently
/// is found before a lock is.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// How much is read from a socket before it is closed, in buffers.
const MOST_LAST_READS: usize = 16;

/// Connects with Tokio's sockets, and looks names up on its threads for what blocks.
#[derive(Debug)]
pub(crate) struct Sockets;

impl Transport for Sockets {
    fn resolve(&self, host: String, port: u16) -> BoxFuture<io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<io::Result<Box<dyn Socket>>> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            // Small packets go out at once, and a silent peer is asked whether it is there. Neither is worth failing for.
            let _no_delay = stream.set_nodelay(true);
            let keepalive = TcpKeepalive::new().with_time(KEEPALIVE);
            let _keepalive = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
            Ok(boxed(stream))
        })
    }

    #[cfg(unix)]
    fn connect_unix(&self, path: String) -> BoxFuture<io::Result<Box<dyn Socket>>> {
        Box::pin(async move { Ok(boxed(tokio::net::UnixStream::connect(path).await?)) })
    }

    #[cfg(not(unix))]
    fn connect_unix(&self, _path: String) -> BoxFuture<io::Result<Box<dyn Socket>>> {
        let error = "Tokio has no Unix sockets on this system";
        Box::pin(async move { Err(io::Error::new(io::ErrorKind::Unsupported, error)) })
    }
}

struct Stream<S>(S)
where
    for<'a> SockRef<'a>: From<&'a S>;

fn boxed<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: S) -> Box<dyn Socket>
where
    for<'a> SockRef<'a>: From<&'a S>,
{
    Box::new(Stream(stream))
}

impl<S> Drop for Stream<S>
where
    for<'a> SockRef<'a>: From<&'a S>,
{
    /// Reads what is there. A runtime that ends has told nobody of it, and a socket that is closed with something unread
    /// resets its connection: the node may then not read the last releases that were written to it.
    fn drop(&mut self) {
        let socket = SockRef::from(&self.0);
        let mut unread = [0; 4096];
        for _ in 0..MOST_LAST_READS {
            // It is non-blocking.
            if !matches!((&*socket).read(&mut unread), Ok(1..)) {
                return;
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Socket for Stream<S>
where
    for<'a> SockRef<'a>: From<&'a S>,
{
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        ready!(Pin::new(&mut self.0).poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }
}
