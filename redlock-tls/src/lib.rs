//! TLS for redlock's connections, with [rustls]: what a client trusts and shows ([`Tls`]), and TLS between it and a socket
//! ([`Session`]), which does no I/O of its own.
//!
//! An adapter's feature `tls` brings this crate in. `rediss://` then trusts what the system trusts; for anything else a
//! client is given a [`Tls`]:
//!
//! ```
//! # fn main() -> Result<(), redlock_tls::TlsError> {
//! # if false {
//! let tls = redlock_tls::Tls::builder()
//!     .ca_file("/etc/redis/ca.pem")
//!     .client_cert_files("/etc/redis/client.pem", "/etc/redis/client.key")
//!     .build()?;
//! // Redlock::builder().nodes(["rediss://redis-1.example.com"]).tls(tls)
//! # let _ = tls;
//! # }
//! # Ok(()) }
//! ```
//!
//! Where the system trusts nobody, as in most images of containers, Mozilla's authorities can be compiled in:
//! `TlsBuilder::webpki_roots`, with the feature `webpki-roots` (`tls-webpki-roots` of an adapter).
//!
//! # Cryptography
//!
//! It is that of [`TlsBuilder::provider`], where one is given; else that of `ring` (feature `ring`; `tls` of an adapter); else
//! that of `aws-lc-rs` (feature `aws-lc-rs`; `tls-aws-lc-rs` of an adapter). Where both are compiled in, `ring` is used, so
//! that no other crate of a program changes that by turning a feature on; `TlsBuilder::aws_lc_rs` chooses the other. Where
//! there is none, [`TlsBuilder::build`] says so. rustls' default of the process is neither read nor set.
#![forbid(unsafe_code)]

extern crate alloc;

mod error;
mod nodes;
mod options;
mod provider;
mod session;
#[cfg(feature = "task")]
mod socket;
mod trust;

pub use error::TlsError;
pub use options::{Tls, TlsBuilder};
pub use rustls;
pub use session::Session;
