//! Whose certificates are believed.

use crate::error::TlsError;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject as _};
use std::path::{Path, PathBuf};

/// The authorities that are trusted: these, or the system's where there are none.
#[derive(Default)]
pub(crate) struct Trust(Vec<Certs>);

pub(crate) enum Certs {
    File(PathBuf),
    Der(Vec<u8>),
    #[cfg(feature = "webpki-roots")]
    Mozilla,
}

impl Trust {
    pub(crate) fn add(&mut self, certs: Certs) {
        self.0.push(certs);
    }

    pub(crate) fn roots(self) -> Result<RootCertStore, TlsError> {
        if self.0.is_empty() {
            return system_roots();
        }
        let mut roots = RootCertStore::empty();
        for certs in self.0 {
            let certs = match certs {
                Certs::File(path) => read_certs(&path)?,
                Certs::Der(der) => vec![CertificateDer::from(der)],
                #[cfg(feature = "webpki-roots")]
                Certs::Mozilla => {
                    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
                    continue;
                }
            };
            for cert in certs {
                roots.add(cert).map_err(|error| TlsError::Roots(error.to_string()))?;
            }
        }
        Ok(roots)
    }
}

/// Some systems have certificates that nobody can read: those are left out, as long as there are others.
fn system_roots() -> Result<RootCertStore, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map_or_else(|| "the system has none".to_owned(), ToString::to_string);
        return Err(TlsError::Roots(why));
    }
    Ok(roots)
}

pub(crate) fn read_certs(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let fail = |error| no_pem(path, &error, "certificate");
    let certs: Vec<_> =
        CertificateDer::pem_file_iter(path).map_err(fail)?.collect::<Result<_, _>>().map_err(fail)?;
    if certs.is_empty() { Err(fail(pem::Error::NoItemsFound)) } else { Ok(certs) }
}

/// In words that show nothing of the file: a section's title, or what else the parser shows, may be a part of a key.
pub(crate) fn no_pem(path: &Path, error: &pem::Error, what: &str) -> TlsError {
    let detail = if let pem::Error::Io(error) = error {
        error.to_string()
    } else if matches!(error, pem::Error::NoItemsFound) {
        format!("no {what} in it")
    } else {
        "not valid PEM".to_owned()
    };
    TlsError::File { path: path.to_owned(), detail }
}

#[cfg(all(test, feature = "webpki-roots"))]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

    #[test]
    fn mozillas_roots_come_in_place_of_the_systems_and_beside_ones_own() {
        let mozillas = webpki_roots::TLS_SERVER_ROOTS.len();
        assert!(mozillas > 100, "{mozillas}");
        let trust = || {
            let mut trust = Trust::default();
            trust.add(Certs::Mozilla);
            trust
        };
        assert_eq!(trust().roots().unwrap().len(), mozillas);
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let own = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let mut both = trust();
        both.add(Certs::Der(own.der().to_vec()));
        assert_eq!(both.roots().unwrap().len(), mozillas + 1);
    }
}
