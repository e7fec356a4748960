//! `rediss://`, as all adapters speak it, with real servers.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    missing_docs,
    reason = "a test may fail by panicking"
)]

mod broken;
mod front;
mod nodes;
pub mod server;

use rcgen::KeyPair;
use redlock_blocking::{BuildError, Redlock};
use redlock_tls::{Tls, TlsError};
use server::{Server, authority};
use std::fs;
use std::time::Duration;

fn connect(server: &Server, host: &str, tls: Tls) -> Result<Redlock, BuildError> {
    let builder = Redlock::builder().nodes([server.url(host)]).tls(tls);
    builder.connect_timeout(Duration::from_secs(2)).connect()
}

/// Polls until it is so; a test fails when it is not within so long that no busy machine explains it.
fn eventually(redlock: &Redlock, what: &str, is_so: impl Fn() -> bool) {
    let until = redlock.now().saturating_add(Duration::from_secs(10));
    while !is_so() {
        assert!(redlock.now() < until, "still not after 10 s: {what}: {:?}", redlock.nodes());
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn locks(redlock: Redlock) {
    let guard = redlock.acquire("door").lock().unwrap();
    assert!(guard.is_held());
    drop(guard);
    // Released: another gets it.
    assert!(redlock.acquire("door").lock().unwrap().is_held());
    redlock.close();
}

#[test]
fn a_server_of_an_own_authority_is_trusted() {
    let Some(server) = Server::start("localhost", false) else { return };
    let tls = Tls::builder().ca_file(server.file("ca.pem")).build().unwrap();
    locks(connect(&server, "localhost", tls).unwrap());
}

#[test]
fn a_server_of_another_authority_is_refused_with_the_reason() {
    let Some(server) = Server::start("localhost", false) else { return };
    let tls = Tls::builder().ca_der(authority().der().to_vec()).build().unwrap();
    let error = connect(&server, "localhost", tls).unwrap_err().to_string();
    assert!(error.contains("TLS: ") && error.contains("certificate"), "{error}");
    assert!(!error.contains("pw@"), "{error}");
}

#[test]
fn mozillas_authorities_are_no_others_unless_those_are_added() {
    let Some(server) = Server::start("localhost", false) else { return };
    let builder = || Tls::builder().webpki_roots();
    let error = connect(&server, "localhost", builder().build().unwrap()).unwrap_err().to_string();
    assert!(error.contains("TLS: ") && error.contains("UnknownIssuer"), "{error}");
    locks(connect(&server, "localhost", builder().ca_file(server.file("ca.pem")).build().unwrap()).unwrap());
}

#[test]
fn a_certificate_for_another_name_is_refused_unless_that_name_is_given() {
    let Some(server) = Server::start("redis.example.com", false) else { return };
    let builder = || Tls::builder().ca_file(server.file("ca.pem"));
    let error = connect(&server, "127.0.0.1", builder().build().unwrap()).unwrap_err().to_string();
    assert!(error.contains("not valid for name"), "{error}");
    let named = builder().server_name("redis.example.com").build().unwrap();
    locks(connect(&server, "127.0.0.1", named).unwrap());
}

#[test]
fn a_client_certificate_is_shown_and_its_absence_is_told() {
    let Some(server) = Server::start("localhost", true) else { return };
    let builder = || Tls::builder().ca_file(server.file("ca.pem"));
    let shown =
        builder().client_cert_files(server.file("client.pem"), server.file("client.key")).build().unwrap();
    locks(connect(&server, "localhost", shown).unwrap());
    let error = connect(&server, "localhost", builder().build().unwrap()).unwrap_err().to_string();
    assert!(error.to_lowercase().contains("certificate"), "{error}");
}

#[test]
fn it_never_falls_back_to_a_connection_in_the_clear() {
    let Some(server) = Server::start_plain() else { return };
    let tls = Tls::builder().ca_der(authority().der().to_vec()).build().unwrap();
    let error = connect(&server, "localhost", tls).unwrap_err().to_string();
    assert!(error.contains("TLS: "), "{error}");
}

#[test]
fn many_locks_at_once_and_long_names_go_through() {
    let Some(server) = Server::start("localhost", false) else { return };
    let tls = Tls::builder().ca_file(server.file("ca.pem")).build().unwrap();
    let builder = Redlock::builder().nodes([server.url("localhost")]).tls(tls);
    let redlock =
        builder.default_ttl(Duration::from_secs(60)).node_timeout(Duration::from_secs(5)).connect().unwrap();
    // More than a record of TLS holds, and more than a socket takes at once.
    let long = "x".repeat(65_000);
    std::thread::scope(|scope| {
        for thread in 0..32 {
            let (redlock, long) = (&redlock, &long);
            scope.spawn(move || {
                let guard = redlock.acquire(format!("{long}{thread}")).lock().unwrap();
                assert!(guard.is_held());
            });
        }
    });
    redlock.close();
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
