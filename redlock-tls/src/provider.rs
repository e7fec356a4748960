//! Whose cryptography is used where a user does not say.

use crate::error::TlsError;
use alloc::sync::Arc;
use rustls::crypto::CryptoProvider;

/// Those that are compiled in, the preferred one first: `ring`, so that nothing changes for a program when some crate of its
/// tree turns the feature `aws-lc-rs` on.
const COMPILED_IN: &[fn() -> CryptoProvider] = &[
    #[cfg(feature = "ring")]
    rustls::crypto::ring::default_provider,
    #[cfg(feature = "aws-lc-rs")]
    rustls::crypto::aws_lc_rs::default_provider,
];

pub(crate) fn compiled_in() -> Result<Arc<CryptoProvider>, TlsError> {
    COMPILED_IN.first().map(|provider| Arc::new(provider())).ok_or(TlsError::NoProvider)
}

/// No test can choose its features: `.ci/run` runs these with each set of providers.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Tls, TlsBuilder};
    use rustls::crypto::{GetRandomFailed, KeyProvider, SecureRandom};
    use rustls::pki_types::PrivateKeyDer;
    use rustls::sign::SigningKey;

    fn builder() -> TlsBuilder {
        let mut params = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        Tls::builder().ca_der(authority.der().to_vec())
    }

    #[cfg(any(feature = "ring", feature = "aws-lc-rs"))]
    fn name(tls: TlsBuilder) -> String {
        let tls = tls.build().unwrap();
        tls.session("redis.example.com", 6379).unwrap();
        assert!(CryptoProvider::get_default().is_none(), "the process has got a default");
        format!("{:?}", tls.provider().secure_random)
    }

    #[test]
    #[cfg(feature = "ring")]
    fn ring_is_used_where_it_is_there() {
        assert_eq!(name(builder()), "Ring");
    }

    #[test]
    #[cfg(feature = "aws-lc-rs")]
    fn aws_lc_rs_is_used_where_it_is_alone_or_wanted() {
        assert_eq!(name(builder().aws_lc_rs()), "AwsLcRs");
        assert_eq!(name(builder()), if cfg!(feature = "ring") { "Ring" } else { "AwsLcRs" });
    }

    #[test]
    #[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
    fn where_there_is_none_it_says_what_to_do() {
        for tls in [builder().build(), Tls::system()] {
            let error = tls.unwrap_err();
            assert_eq!(error, TlsError::NoProvider);
            let text = error.to_string();
            for cure in ["`TlsBuilder::provider`", "`ring`", "`aws-lc-rs`", "`tls`", "`tls-aws-lc-rs`"] {
                assert!(text.contains(cure), "{text}");
            }
        }
    }

    #[derive(Debug)]
    struct Nothing;

    impl SecureRandom for Nothing {
        fn fill(&self, _: &mut [u8]) -> Result<(), GetRandomFailed> {
            Err(GetRandomFailed)
        }
    }

    impl KeyProvider for Nothing {
        fn load_private_key(&self, _: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, rustls::Error> {
            Err(rustls::Error::General("no keys".into()))
        }
    }

    #[test]
    fn one_that_is_given_is_used_and_one_that_can_nothing_is_refused() {
        let nothing = CryptoProvider {
            cipher_suites: Vec::new(),
            kx_groups: Vec::new(),
            signature_verification_algorithms: rustls::crypto::WebPkiSupportedAlgorithms {
                all: &[],
                mapping: &[],
            },
            secure_random: &Nothing,
            key_provider: &Nothing,
        };
        let error = builder().provider(nothing.into()).build().unwrap_err();
        assert!(matches!(error, TlsError::Provider(_)), "{error}");
    }
}
