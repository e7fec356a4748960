//! TLS over the sockets of the asynchronous client.

use crate::options::Tls;
use crate::session::Session;
use core::future::poll_fn;
use core::task::{Context, Poll, Waker};
use redlock_core::handoff::task::{BoxFuture, Secure, Socket};
use std::io::{self, ErrorKind, Read, Write};

impl Secure for Tls {
    fn secure(
        &self,
        host: String,
        port: u16,
        socket: Box<dyn Socket>,
    ) -> BoxFuture<io::Result<Box<dyn Socket>>> {
        let session = self.session(&host, port);
        Box::pin(async move {
            let mut secured = Secured { session: session?, socket };
            poll_fn(|cx| {
                let Secured { session, socket } = &mut secured;
                poll(session.handshake(&mut Polled { socket: &mut **socket, cx }))
            })
            .await?;
            let secured: Box<dyn Socket> = Box::new(secured);
            Ok(secured)
        })
    }
}

struct Secured {
    session: Session,
    socket: Box<dyn Socket>,
}

impl Socket for Secured {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        poll(self.session.read(&mut Polled { socket: &mut *self.socket, cx }, buffer))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        poll(self.session.write(&mut Polled { socket: &mut *self.socket, cx }, bytes))
    }
}

impl Drop for Secured {
    fn drop(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        self.session.close(&mut Polled { socket: &mut *self.socket, cx: &mut cx });
    }
}

/// A socket as [`Session`] wants it: pending is `WouldBlock`, with the waker to be woken.
struct Polled<'a, 'b> {
    socket: &'a mut dyn Socket,
    cx: &'a mut Context<'b>,
}

impl Read for Polled<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        unless_pending(self.socket.poll_read(self.cx, buffer))
    }
}

impl Write for Polled<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_pending(self.socket.poll_write(self.cx, bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn unless_pending<T>(result: Poll<io::Result<T>>) -> io::Result<T> {
    match result {
        Poll::Ready(result) => result,
        Poll::Pending => Err(ErrorKind::WouldBlock.into()),
    }
}

fn poll<T>(result: io::Result<T>) -> Poll<io::Result<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Poll::Pending,
        result => Poll::Ready(result),
    }
}
