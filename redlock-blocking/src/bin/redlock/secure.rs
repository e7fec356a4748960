//! What the command line says of TLS.

use std::path::PathBuf;

use clap::Args;
use redlock_blocking::{Address, Tls};

/// Above these options in the help. Named by each, or all that come after them would stand below it.
const HEADING: &str = "TLS, for rediss:// nodes";

/// How nodes with a rediss:// address are spoken to.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TlsOptions {
    /// Trust the authorities in this PEM file, not the system's
    #[arg(long, help_heading = HEADING, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// Show this certificate to nodes that ask for one (PEM)
    #[arg(long, help_heading = HEADING, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// The key of that certificate (PEM)
    #[arg(long, help_heading = HEADING, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// The name that the nodes' certificates are for, where it is not the host in their addresses
    #[arg(long, help_heading = HEADING, value_name = "NAME")]
    pub(crate) sni: Option<String>,
}

impl TlsOptions {
    /// TLS as it was asked for, if a node wants it.
    ///
    /// # Errors
    ///
    /// What of it cannot be used, or what is asked for though no node wants it.
    pub(crate) fn for_nodes(&self, nodes: &[Address]) -> Result<Option<Tls>, String> {
        if !nodes.iter().any(Address::is_tls) {
            let is_asked = self.cacert.is_some() || self.cert.is_some() || self.sni.is_some();
            return if is_asked {
                Err("TLS is described, but no node wants it; name nodes with rediss://".to_owned())
            } else {
                Ok(None)
            };
        }
        let mut tls = Tls::builder();
        if let Some(file) = &self.cacert {
            tls = tls.ca_file(file);
        }
        if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
            tls = tls.client_cert_files(cert, key);
        }
        if let Some(name) = &self.sni {
            tls = tls.server_name(name);
        }
        tls.build().map(Some).map_err(|error| error.to_string())
    }
}
