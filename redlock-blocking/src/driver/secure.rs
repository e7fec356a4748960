//! TLS, or nothing that could be mistaken for it.

#[cfg(feature = "tls-no-provider")]
pub(crate) use redlock_tls::{Session, Tls};
#[cfg(not(feature = "tls-no-provider"))]
pub(crate) use without::{Session, Tls};

use redlock_core::Config;
use redlock_core::handoff::BuildError;

/// How TLS is spoken, where a node wants it: as it was given, or as the system trusts.
pub(crate) fn for_nodes(config: &Config, given: Option<Tls>) -> Result<Option<Tls>, BuildError> {
    let Some(node) = config.nodes().iter().find(|node| node.address().is_tls()) else { return Ok(given) };
    match given {
        Some(given) => Ok(Some(given)),
        None => of_system(node.address()).map(Some),
    }
}

#[cfg(feature = "tls-no-provider")]
fn of_system(_address: &redlock_core::Address) -> Result<Tls, BuildError> {
    Tls::system().map_err(|error| BuildError::System(error.to_string()))
}

#[cfg(not(feature = "tls-no-provider"))]
fn of_system(address: &redlock_core::Address) -> Result<Tls, BuildError> {
    Err(BuildError::TlsUnsupported { address: address.to_string() })
}

/// The same names without the feature: there is never one of either.
#[cfg(not(feature = "tls-no-provider"))]
#[expect(clippy::needless_pass_by_ref_mut, reason = "as the real ones are called")]
mod without {
    use std::io::{self, Read, Write};

    #[derive(Clone, Debug)]
    pub(crate) enum Tls {}

    #[derive(Debug)]
    pub(crate) enum Session {}

    impl Tls {
        pub(crate) fn session(&self, _host: &str, _port: u16) -> io::Result<Session> {
            match *self {}
        }
    }

    impl Session {
        pub(crate) fn handshake(&mut self, _io: &mut (impl Read + Write)) -> io::Result<()> {
            match *self {}
        }

        pub(crate) fn read(&mut self, _io: &mut (impl Read + Write), _to: &mut [u8]) -> io::Result<usize> {
            match *self {}
        }

        pub(crate) fn write(&mut self, _io: &mut (impl Read + Write), _bytes: &[u8]) -> io::Result<usize> {
            match *self {}
        }

        pub(crate) fn flush(&mut self, _io: &mut impl Write) -> bool {
            match *self {}
        }

        pub(crate) fn close(&mut self, _io: &mut (impl Read + Write)) {
            match *self {}
        }
    }
}
