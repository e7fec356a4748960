//! What is wrong with TLS options.

use core::fmt;
use std::path::PathBuf;

/// Options that cannot be used. Nothing in it is secret: files are named, not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsError {
    /// A file that cannot be read, or holds nothing of what it should.
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        detail: String,
    },
    /// No authority can be trusted: none was given or found, or one cannot be read.
    Roots(String),
    /// The client's certificate and key cannot be used.
    ClientCert(String),
    /// The server name is no name and no IP address.
    ServerName(String),
    /// Something is said of a node that cannot be.
    Node {
        /// Which.
        node: String,
        /// Why.
        detail: String,
    },
    /// No provider of cryptography was given, and none is compiled in.
    NoProvider,
    /// The provider of cryptography knows no version of TLS that is spoken here.
    Provider(String),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, detail } => write!(f, "TLS: {}: {detail}", path.display()),
            Self::Roots(detail) => write!(f, "TLS: no authority to trust: {detail}"),
            Self::ClientCert(detail) => write!(f, "TLS: the client's certificate or key: {detail}"),
            Self::ServerName(name) => write!(f, "TLS: {name:?} is no server name"),
            Self::Node { node, detail } => write!(f, "TLS: for the node {node:?}: {detail}"),
            Self::NoProvider => f.write_str(
                "TLS: no cryptography: give `TlsBuilder::provider` one, or build with redlock-tls' feature `ring` or \
                 `aws-lc-rs` (`tls` or `tls-aws-lc-rs` of an adapter)",
            ),
            Self::Provider(detail) => write!(f, "TLS: the provider of cryptography: {detail}"),
        }
    }
}

impl core::error::Error for TlsError {}
