//! A server that speaks TLS: Debian's redis-server is built with it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::std_instead_of_core,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "a test may fail by panicking, and needs only a part of it"
)]

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub type Issuer = CertifiedIssuer<'static, KeyPair>;

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// An authority of its own.
pub fn authority() -> Issuer {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A server with a certificate for `name`, in a folder of its own, which also has a client's certificate.
pub struct Server {
    child: Child,
    dir: PathBuf,
    pub port: u16,
}

impl Server {
    /// None where there is no server with TLS, and none is required.
    pub fn start(name: &str, asks_for_certs: bool) -> Option<Self> {
        let ca = authority();
        let port = free_port();
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
        let args = [
            ["--port", "0", "--tls-port", &port.to_string()].map(str::to_owned),
            ["--tls-ca-cert-file", "ca.pem", "--tls-cert-file", "server.pem"].map(str::to_owned),
            ["--tls-key-file", "server.key", "--tls-auth-clients", if asks_for_certs { "yes" } else { "no" }]
                .map(str::to_owned),
        ];
        Self::spawn(dir, port, args.concat())
    }

    /// One that speaks no TLS.
    pub fn start_plain() -> Option<Self> {
        let port = free_port();
        let dir = std::env::temp_dir().join(format!("redlock-plain-{}-{port}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Self::spawn(dir, port, vec!["--port".to_owned(), port.to_string()])
    }

    fn spawn(dir: PathBuf, port: u16, args: Vec<String>) -> Option<Self> {
        let child = Command::new("redis-server")
            .current_dir(&dir)
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--requirepass", "pw"])
            .args(args)
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

    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub fn url(&self, host: &str) -> String {
        format!("rediss://:pw@{host}:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
        let _removed = fs::remove_dir_all(&self.dir);
    }
}
