//! Sockets under `async-io`'s reactor.

use async_io::Async;
use core::net::SocketAddr;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use futures_lite::{AsyncRead, AsyncWrite};
use redlock_core::handoff::task::{BoxFuture, Socket, Transport};
use std::io;
use std::net::{TcpStream, ToSocketAddrs};

redlock_core::__tune!();

/// Connects with the system's sockets, and looks names up on `blocking`'s threads.
#[derive(Debug)]
pub(crate) struct Sockets;

impl Transport for Sockets {
    fn resolve(&self, host: String, port: u16) -> BoxFuture<io::Result<Vec<SocketAddr>>> {
        Box::pin(blocking::unblock(move || Ok((host, port).to_socket_addrs()?.collect())))
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<io::Result<Box<dyn Socket>>> {
        Box::pin(async move { Ok(boxed(connect(address).await?)) })
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

async fn connect(address: SocketAddr) -> io::Result<Async<TcpStream>> {
    let stream = Async::<TcpStream>::connect(address).await?;
    tune(stream.get_ref());
    Ok(stream)
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn b38_connections_are_tuned() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert_tuned(async_io::block_on(connect(listener.local_addr().unwrap())).unwrap());
    }
}
