//! Sockets under `async-io`'s reactor.

use async_io::Async;
use core::net::SocketAddr;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use futures_lite::{AsyncRead, AsyncWrite};
use redlock_core::handoff::task::{BoxFuture, Socket, Transport};
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::{TcpStream, ToSocketAddrs};

/// A connection on which nothing was said for so long is asked whether it still stands, so that one that was cut silently
/// is found before a lock is.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Connects with the system's sockets, and looks names up on `blocking`'s threads.
#[derive(Debug)]
pub(crate) struct Sockets;

impl Transport for Sockets {
    fn resolve(&self, host: String, port: u16) -> BoxFuture<io::Result<Vec<SocketAddr>>> {
        Box::pin(blocking::unblock(move || Ok((host, port).to_socket_addrs()?.collect())))
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<io::Result<Box<dyn Socket>>> {
        Box::pin(async move {
            let stream = Async::<TcpStream>::connect(address).await?;
            // Small packets go out at once, and a silent peer is asked whether it is there. Neither is worth failing for.
            let _no_delay = stream.get_ref().set_nodelay(true);
            let keepalive = TcpKeepalive::new().with_time(KEEPALIVE);
            let _keepalive = SockRef::from(stream.get_ref()).set_tcp_keepalive(&keepalive);
            Ok(boxed(stream))
        })
    }

    #[cfg(unix)]
    fn connect_unix(&self, path: String) -> BoxFuture<io::Result<Box<dyn Socket>>> {
        Box::pin(async move { Ok(boxed(Async::<std::os::unix::net::UnixStream>::connect(path).await?)) })
    }

    #[cfg(not(unix))]
    fn connect_unix(&self, _path: String) -> BoxFuture<io::Result<Box<dyn Socket>>> {
        let error = "there are no Unix sockets on this system";
        Box::pin(async move { Err(io::Error::new(io::ErrorKind::Unsupported, error)) })
    }
}

struct Stream<S> {
    socket: Async<S>,
    /// The last read did not fill its buffer: the next one waits until there is more, instead of asking the system in vain.
    is_drained: bool,
}

fn boxed<S>(socket: Async<S>) -> Box<dyn Socket>
where
    Async<S>: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: 'static,
{
    Box::new(Stream { socket, is_drained: false })
}

impl<S> Socket for Stream<S>
where
    Async<S>: AsyncRead + AsyncWrite + Unpin + Send,
{
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        if self.is_drained {
            ready!(self.socket.poll_readable(cx))?;
        }
        let length = ready!(Pin::new(&mut self.socket).poll_read(cx, buffer))?;
        self.is_drained = length < buffer.len();
        Poll::Ready(Ok(length))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }
}
