//! What a client needs, of smol's parts.

use crate::socket::Sockets;
use crate::system::{SystemClock, SystemEntropy};
use alloc::sync::Arc;
use async_io::Timer;
use core::time::Duration;
#[cfg(feature = "tls-no-provider")]
use redlock_core::handoff::task::Secure;
use redlock_core::handoff::task::{BoxFuture, Runtime, Transport};
use redlock_core::handoff::{Clock, Entropy};
use std::thread;

/// `async-io`: the runtime of the types of this crate. Its reactor serves every executor.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AsyncIo;

impl Runtime for AsyncIo {
    fn spawn(driver: BoxFuture<()>) -> Result<(), String> {
        let run = move || async_io::block_on(driver);
        match thread::Builder::new().name("redlock".into()).spawn(run) {
            Ok(_thread) => Ok(()),
            Err(error) => Err(format!("the system refuses a thread for the client's driver: {error}")),
        }
    }

    fn sleep(span: Duration) -> BoxFuture<()> {
        Box::pin(async move {
            Timer::after(span).await;
        })
    }

    fn clock() -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    fn entropy() -> Box<dyn Entropy> {
        Box::new(SystemEntropy)
    }

    fn transport() -> Arc<dyn Transport> {
        Arc::new(Sockets)
    }

    #[cfg(feature = "tls-no-provider")]
    fn secure() -> Result<Option<Arc<dyn Secure>>, String> {
        let tls = redlock_tls::Tls::system().map_err(|error| error.to_string())?;
        Ok(Some(Arc::new(tls)))
    }
}
