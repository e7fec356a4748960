//! `rediss://`, with real servers: Debian's redis-server is built with TLS.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::std_instead_of_core,
    missing_docs,
    reason = "a test may fail by panicking"
)]

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use redlock_tls::{Tls, TlsError};
use redlock_tokio::{BuildError, Redlock};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

type Issuer = CertifiedIssuer<'static, KeyPair>;

/// An authority of its own.
fn authority() -> Issuer {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A server with a certificate for `name`, in a folder of its own, which also has a client's certificate.
struct Server {
    child: Child,
    dir: PathBuf,
    port: u16,
}

impl Server {
    /// None where there is no server with TLS, and none is required.
    fn start(name: &str, asks_for_certs: bool) -> Option<Self> {
        let ca = authority();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let dir = std::env::temp_dir().join(format!("redlock-tls-{}-{port}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("ca.pem"), ca.pem()).unwrap();
        for (file, name) in [("server", name), ("client", "client")] {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::new([name.to_owned()]).unwrap();
            // Not the authority's own name: OpenSSL takes that for a certificate that signs itself.
            params.distinguished_name.push(DnType::CommonName, name);
            let cert = params.signed_by(&key, &ca).unwrap();
            fs::write(dir.join(format!("{file}.pem")), cert.pem()).unwrap();
            fs::write(dir.join(format!("{file}.key")), key.serialize_pem()).unwrap();
        }
        let child = Command::new("redis-server")
            .current_dir(&dir)
            .args(["--port", "0", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .args(["--tls-port", &port.to_string(), "--requirepass", "pw", "--tls-ca-cert-file", "ca.pem"])
            .args(["--tls-cert-file", "server.pem", "--tls-key-file", "server.key"])
            .args(["--tls-auth-clients", if asks_for_certs { "yes" } else { "no" }])
            .stdout(Stdio::null())
            .spawn();
        let required = std::env::var_os("REDLOCK_REQUIRE_SERVERS").is_some_and(|value| value == "1");
        let child = match child {
            Ok(child) => child,
            Err(error) if required => panic!("redis-server: {error}"),
            Err(error) => {
                eprintln!("skipped, no redis-server: {error}");
                return None;
            }
        };
        let server = Self { child, dir, port };
        let listens = (0..1_000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        assert!(listens, "redis-server does not listen");
        Some(server)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn url(&self, host: &str) -> String {
        format!("rediss://:pw@{host}:{}", self.port)
    }

    async fn connect(&self, host: &str, tls: Tls) -> Result<Redlock, BuildError> {
        let builder = Redlock::builder().nodes([self.url(host)]).tls(tls);
        builder.connect_timeout(Duration::from_secs(2)).connect().await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
        let _removed = fs::remove_dir_all(&self.dir);
    }
}

async fn locks(redlock: Redlock) {
    let guard = redlock.acquire("door").await.unwrap();
    assert!(guard.is_held());
    drop(guard);
    // Released: another gets it.
    assert!(redlock.acquire("door").await.unwrap().is_held());
    redlock.close().await;
}

#[tokio::test]
async fn a_server_of_an_own_authority_is_trusted() {
    let Some(server) = Server::start("localhost", false) else { return };
    let tls = Tls::builder().ca_file(server.file("ca.pem")).build().unwrap();
    locks(server.connect("localhost", tls).await.unwrap()).await;
}

#[tokio::test]
async fn a_server_of_another_authority_is_refused_with_the_reason() {
    let Some(server) = Server::start("localhost", false) else { return };
    let tls = Tls::builder().ca_der(authority().der().to_vec()).build().unwrap();
    let error = server.connect("localhost", tls).await.unwrap_err().to_string();
    assert!(error.contains("TLS: ") && error.contains("certificate"), "{error}");
    assert!(!error.contains("pw@"), "{error}");
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused_unless_that_name_is_given() {
    let Some(server) = Server::start("redis.example.com", false) else { return };
    let builder = || Tls::builder().ca_file(server.file("ca.pem"));
    let error = server.connect("127.0.0.1", builder().build().unwrap()).await.unwrap_err().to_string();
    assert!(error.contains("not valid for name"), "{error}");
    let named = builder().server_name("redis.example.com").build().unwrap();
    locks(server.connect("127.0.0.1", named).await.unwrap()).await;
}

#[tokio::test]
async fn a_client_certificate_is_shown_and_its_absence_is_told() {
    let Some(server) = Server::start("localhost", true) else { return };
    let builder = || Tls::builder().ca_file(server.file("ca.pem"));
    let shown =
        builder().client_cert_files(server.file("client.pem"), server.file("client.key")).build().unwrap();
    locks(server.connect("localhost", shown).await.unwrap()).await;
    let error = server.connect("localhost", builder().build().unwrap()).await.unwrap_err().to_string();
    assert!(error.to_lowercase().contains("certificate"), "{error}");
}

#[tokio::test]
async fn without_tls_the_address_is_refused_when_the_client_is_built() {
    let built = Redlock::builder().nodes(["rediss://localhost:1"]).connect_lazy();
    if cfg!(feature = "tls") {
        assert!(!matches!(built, Err(BuildError::TlsUnsupported { .. })));
    } else {
        assert!(matches!(built, Err(BuildError::TlsUnsupported { .. })));
    }
}

#[test]
fn r26_nothing_shows_a_key() {
    let dir = std::env::temp_dir().join(format!("redlock-tls-key-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let (key, file) = (KeyPair::generate().unwrap().serialize_pem(), dir.join("both.pem"));
    fs::write(&file, &key).unwrap();
    let error = Tls::builder().ca_file(&file).build().unwrap_err();
    assert!(matches!(error, TlsError::File { .. }), "{error}");
    let builder = Tls::builder().ca_der(authority().der().to_vec()).client_cert_files(&file, &file);
    let shown = format!("{builder:?}");
    let texts = format!("{error} {error:?} {shown} {:?}", builder.build());
    for line in key.lines().filter(|line| !line.starts_with('-')) {
        assert!(!texts.contains(line), "{texts}");
    }
    fs::remove_dir_all(&dir).unwrap();
}
