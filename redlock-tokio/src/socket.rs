//! Tokio's sockets.

use core::net::SocketAddr;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use redlock_core::handoff::task::{BoxFuture, Socket, Transport};
use socket2::SockRef;
use std::io::{self, Read as _};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

redlock_core::__tune!();

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
        Box::pin(async move { Ok(boxed(connect(address).await?)) })
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

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    tune(&stream);
    Ok(stream)
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn b38_connections_are_tuned() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert_tuned(connect(listener.local_addr().unwrap()).await.unwrap());
    }
}
