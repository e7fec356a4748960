//! Tokio, as a client sees it.

use crate::socket::Sockets;
use crate::system::{SystemClock, SystemEntropy};
use alloc::sync::Arc;
use core::time::Duration;
#[cfg(feature = "tls-no-provider")]
use redlock_core::handoff::task::Secure;
use redlock_core::handoff::task::{BoxFuture, Runtime, Transport};
use redlock_core::handoff::{Clock, Entropy};
use tokio::runtime::Handle;

/// Tokio: the runtime of the types of this crate.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Tokio;

impl Runtime for Tokio {
    fn spawn(driver: BoxFuture<()>) -> Result<(), String> {
        let Ok(runtime) = Handle::try_current() else {
            return Err(
                "there is no Tokio runtime here: make the client within one, on a thread that has entered \
                        one, or say where its driver runs with `Builder::spawn_with`"
                    .into(),
            );
        };
        // Nobody waits for its end: a client that is closed needs it no more.
        drop(runtime.spawn(driver));
        Ok(())
    }

    fn sleep(span: Duration) -> BoxFuture<()> {
        Box::pin(tokio::time::sleep(span))
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
