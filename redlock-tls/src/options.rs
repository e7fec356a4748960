//! What a client trusts, and what it shows.

use crate::error::TlsError;
use crate::nodes::{self, Place};
use crate::provider;
use crate::session::Session;
use crate::trust::{Certs, Trust, no_pem, read_certs};
use alloc::sync::Arc;
use core::fmt;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection};
use std::io;
use std::path::PathBuf;

/// How TLS is spoken. Cheap to clone. Its `Debug` shows no key.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    server_name: Option<ServerName<'static>>,
    /// How it is spoken to some nodes in place of that.
    nodes: Arc<[(Place, Self)]>,
}

impl Tls {
    /// To be configured.
    pub fn builder() -> TlsBuilder {
        TlsBuilder::default()
    }

    /// What the system trusts, and no client certificate.
    ///
    /// # Errors
    ///
    /// The system has no certificates, or there is no provider of cryptography.
    pub fn system() -> Result<Self, TlsError> {
        Self::builder().build()
    }

    /// A session with a server, to begin. Host and port are those in the node's address.
    ///
    /// # Errors
    ///
    /// `host` is no name that a certificate can be for.
    pub fn session(&self, host: &str, port: u16) -> io::Result<Session> {
        if let Some(tls) = nodes::find(&self.nodes, host, port) {
            return tls.session(host, port);
        }
        let name = match &self.server_name {
            Some(name) => name.clone(),
            None => server_name(host).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?,
        };
        let connection = ClientConnection::new(Arc::clone(&self.config), name)
            .map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Session::new(connection))
    }

    #[cfg(all(test, any(feature = "ring", feature = "aws-lc-rs")))]
    pub(crate) fn provider(&self) -> &CryptoProvider {
        self.config.crypto_provider()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<&Place> = self.nodes.iter().map(|(place, _)| place).collect();
        f.debug_struct("Tls")
            .field("server_name", &self.server_name)
            .field("nodes", &nodes)
            .finish_non_exhaustive()
    }
}

/// The name to be found in a certificate: that of DNS has no dot at its end there.
fn server_name(host: &str) -> Result<ServerName<'static>, TlsError> {
    let name = host.strip_suffix('.').unwrap_or(host);
    ServerName::try_from(name.to_owned()).map_err(|_| TlsError::ServerName(name.to_owned()))
}

/// Makes a [`Tls`]. Its `Debug` shows no key.
#[derive(Default)]
#[must_use = "nothing is made before `build`"]
pub struct TlsBuilder {
    trust: Trust,
    client: Option<Client>,
    server_name: Option<String>,
    nodes: Vec<(String, Own)>,
    provider: Option<Arc<CryptoProvider>>,
}

/// What one node has for itself.
enum Own {
    Name(String),
    Tls(Tls),
}

enum Client {
    Files { cert: PathBuf, key: PathBuf },
    Der { chain: Vec<Vec<u8>>, key: PrivateKeyDer<'static> },
}

impl TlsBuilder {
    /// Trusts the authorities of a PEM file, and no longer the system's. May be repeated.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.trust.add(Certs::File(path.into()));
        self
    }

    /// Trusts an authority, its certificate as DER, and no longer the system's. May be repeated.
    pub fn ca_der(mut self, certificate: impl Into<Vec<u8>>) -> Self {
        self.trust.add(Certs::Der(certificate.into()));
        self
    }

    /// Trusts the authorities that Mozilla's browser trusts, as they were when `webpki-roots` was built, and no longer the
    /// system's; beside those of [`ca_file`](Self::ca_file) and [`ca_der`](Self::ca_der), if any. For images that have no
    /// certificates of their own.
    #[cfg(feature = "webpki-roots")]
    pub fn webpki_roots(mut self) -> Self {
        self.trust.add(Certs::Mozilla);
        self
    }

    /// Shows a server that asks for it this certificate, followed by those between it and the authority, and proves it with
    /// this key; both PEM files.
    pub fn client_cert_files(mut self, cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.client = Some(Client::Files { cert: cert.into(), key: key.into() });
        self
    }

    /// The same, from memory: DER.
    pub fn client_cert_der(mut self, chain: Vec<Vec<u8>>, key: PrivateKeyDer<'static>) -> Self {
        self.client = Some(Client::Der { chain, key });
        self
    }

    /// The name that all servers' certificates are to be for (and that is sent as SNI), in place of the hosts in the nodes'
    /// addresses.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// The same for one node, before what all have: where each has a name of its own, but is reached by an IP address or
    /// through a tunnel. `node` is the host in its address, `10.0.0.1`, or host and port, `localhost:7001`, which counts
    /// more.
    ///
    /// ```
    /// # let _ =
    /// redlock_tls::Tls::builder()
    ///     .server_name_for("10.0.0.1", "redis-1.example.com")
    ///     .server_name_for("10.0.0.2", "redis-2.example.com")
    ///     .server_name_for("localhost:7003", "redis-3.example.com")
    /// # ;
    /// ```
    pub fn server_name_for(mut self, node: impl Into<String>, name: impl Into<String>) -> Self {
        self.nodes.push((node.into(), Own::Name(name.into())));
        self
    }

    /// Speaks to one node in another way altogether: with an authority, a client certificate and a name of its own. `node`
    /// is as in [`server_name_for`](Self::server_name_for).
    pub fn tls_for(mut self, node: impl Into<String>, tls: Tls) -> Self {
        self.nodes.push((node.into(), Own::Tls(tls)));
        self
    }

    /// Whose cryptography is used, in place of the one that is compiled in: with fewer algorithms, for instance, or of
    /// another crate.
    ///
    /// ```
    /// # #[cfg(feature = "ring")]
    /// # fn main() -> Result<(), redlock_tls::TlsError> {
    /// use redlock_tls::{Tls, rustls::crypto::{CryptoProvider, ring}};
    ///
    /// let tls13_only = ring::ALL_CIPHER_SUITES.iter().filter(|suite| suite.tls13().is_some()).copied();
    /// let provider = CryptoProvider { cipher_suites: tls13_only.collect(), ..ring::default_provider() };
    /// # if false {
    /// let tls = Tls::builder().provider(provider.into()).ca_file("/etc/redis/ca.pem").build()?;
    /// # let _ = tls;
    /// # }
    /// # Ok(()) }
    /// # #[cfg(not(feature = "ring"))]
    /// # fn main() {}
    /// ```
    pub fn provider(mut self, provider: Arc<CryptoProvider>) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Uses `aws-lc-rs`' cryptography, where `ring` is compiled in too.
    #[cfg(feature = "aws-lc-rs")]
    pub fn aws_lc_rs(self) -> Self {
        self.provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
    }

    /// Reads the files, and checks it all.
    ///
    /// # Errors
    ///
    /// What cannot be used, and why.
    pub fn build(self) -> Result<Tls, TlsError> {
        // With one in hand rustls does not look for one by itself, which ends in a panic where it finds two, or none.
        let provider = self.provider.map_or_else(provider::compiled_in, Ok)?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Provider(error.to_string()))?
            .with_root_certificates(self.trust.roots()?);
        let config = match self.client {
            None => config.with_no_client_auth(),
            Some(client) => {
                let (chain, key) = client.read()?;
                config
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| TlsError::ClientCert(own_fault(&error)))?
            }
        };
        let server_name = self.server_name.map(|name| server_name(&name)).transpose()?;
        let config = Arc::new(config);
        let mut nodes: Vec<(Place, Tls)> = Vec::new();
        for (node, own) in self.nodes {
            let place = Place::parse(&node)?;
            if nodes.iter().any(|(known, _)| *known == place) {
                return Err(TlsError::Node { node: place.to_string(), detail: "described twice".into() });
            }
            let tls = match own {
                Own::Tls(tls) => tls,
                Own::Name(name) => {
                    let server_name = Some(self::server_name(&name)?);
                    Tls { config: Arc::clone(&config), server_name, nodes: Arc::default() }
                }
            };
            nodes.push((place, tls));
        }
        Ok(Tls { config, server_name, nodes: nodes.into() })
    }
}

impl fmt::Debug for TlsBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsBuilder").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

impl Client {
    fn read(self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
        match self {
            Self::Der { chain, key } => Ok((chain.into_iter().map(CertificateDer::from).collect(), key)),
            Self::Files { cert, key } => {
                let chain = read_certs(&cert)?;
                let key_der =
                    PrivateKeyDer::from_pem_file(&key).map_err(|error| no_pem(&key, &error, "key"))?;
                Ok((chain, key_der))
            }
        }
    }
}

/// What is wrong with our own certificate, of which rustls speaks as of a peer's.
fn own_fault(error: &rustls::Error) -> String {
    let rustls::Error::InvalidCertificate(fault) = error else { return error.to_string() };
    let fault = fault.to_string();
    if fault.contains("UnsupportedCertVersion") {
        // OpenSSL makes it so where no extensions are asked for.
        return "the certificate is of X.509 version 1, and has to be of version 3 (`openssl x509 -req` makes one with `-extfile`)".to_owned();
    }
    fault
}

#[cfg(all(test, any(feature = "ring", feature = "aws-lc-rs")))]
mod tests {
    use super::*;

    /// As `openssl x509 -req` makes it, and its key.
    const VERSION_1: &[u8] = b"\
-----BEGIN CERTIFICATE-----
MIIBHTCBxQIUB/oZFJI3ZaTCSJJgzGu2uUMvN8MwCgYIKoZIzj0EAwIwETEPMA0G
A1UEAwwGY2xpZW50MCAXDTI2MTIwMTA1NDY0N1oYDzIxMjYxMTA3MDU0NjQ3WjAR
MQ8wDQYDVQQDDAZjbGllbnQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATtVUWW
fj/kikTJ+byV7nNjXkT/ApnfKX8cHzlz4cGJ6ipujGtEL63/p96RmDadoB4M4CMm
RRlSyt4ST5C0gplQMAoGCCqGSM49BAMCA0cAMEQCIFrrckZQt6biFl1pxlj6Hy6R
AF3pkkSkJ2ktkd32ZwZcAiBXPJNvnB9Z1bOGcheDrrO12wM1+UJA+Cbwxcojt1uC
hQ==
-----END CERTIFICATE-----";
    const KEY: &[u8] = b"\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgRy2+6mlFnx4JAAoq
QiYboYa4bYFvXpOOHQpN0t3PHG+hRANCAATtVUWWfj/kikTJ+byV7nNjXkT/Apnf
KX8cHzlz4cGJ6ipujGtEL63/p96RmDadoB4M4CMmRRlSyt4ST5C0gplQ
-----END PRIVATE KEY-----";

    #[test]
    fn a_certificate_of_version_1_is_told_as_such() {
        let certificate = CertificateDer::from_pem_slice(VERSION_1).unwrap().to_vec();
        let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
        // Any authority; it is not looked at.
        let tls = Tls::builder().ca_der(certificate.clone()).client_cert_der(vec![certificate], key);
        let TlsError::ClientCert(said) = tls.build().unwrap_err() else { panic!("another error") };
        assert!(said.contains("-extfile") && !said.contains("peer"), "{said}");
    }
}
