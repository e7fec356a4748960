//! Nodes of which each has a name, an authority or a client certificate of its own.

use super::server::Server;
use super::{connect, eventually, locks};
use redlock_blocking::{NodeState, Redlock};
use redlock_tls::{Tls, TlsBuilder};

const NAMES: [&str; 3] = ["redis-1.example.com", "redis-2.example.com", "redis-3.example.com"];

fn servers() -> Option<[Server; 3]> {
    let [one, two, three] = NAMES.map(|name| Server::start(name, false));
    Some([one?, two?, three?])
}

fn place(host: &str, server: &Server) -> String {
    format!("{host}:{}", server.port)
}

fn trusting(servers: &[Server; 3]) -> TlsBuilder {
    servers.iter().fold(Tls::builder(), |tls, server| tls.ca_file(server.file("ca.pem")))
}

/// All of them, not only a majority.
fn all_are_ready(redlock: &Redlock) {
    eventually(redlock, "all nodes are ready", || {
        redlock.nodes().iter().all(|node| node.state == NodeState::Ready)
    });
}

#[test]
fn each_node_behind_a_tunnel_has_its_own_name() {
    let Some(servers) = servers() else { return };
    let urls = servers.each_ref().map(|server| server.url("127.0.0.1"));
    let tls = servers.iter().zip(NAMES).fold(trusting(&servers), |tls, (server, name)| {
        tls.server_name_for(place("127.0.0.1", server), name)
    });
    let redlock = Redlock::builder().nodes(urls).tls(tls.build().unwrap()).connect().unwrap();
    all_are_ready(&redlock);
    locks(redlock);
}

#[test]
fn another_nodes_certificate_is_refused() {
    let Some(servers) = servers() else { return };
    // What is said of the port counts, not what is said of the host or of all.
    let tls = trusting(&servers)
        .server_name_for(place("127.0.0.1", &servers[0]), NAMES[1])
        .server_name_for("127.0.0.1", NAMES[0])
        .server_name(NAMES[0]);
    let error = connect(&servers[0], "127.0.0.1", tls.build().unwrap()).unwrap_err().to_string();
    assert!(error.contains("not valid for name") && error.contains(NAMES[1]), "{error}");
}

#[test]
fn what_is_said_of_a_host_is_said_of_all_its_ports_and_of_no_other_host() {
    let Some(servers) = servers() else { return };
    let tls = trusting(&servers).server_name_for("127.0.0.1", NAMES[0]).server_name(NAMES[1]);
    let tls = tls.build().unwrap();
    locks(connect(&servers[0], "127.0.0.1", tls.clone()).unwrap());
    locks(connect(&servers[1], "localhost", tls.clone()).unwrap());
    let error = connect(&servers[1], "127.0.0.1", tls).unwrap_err().to_string();
    assert!(error.contains("not valid for name"), "{error}");
}

#[test]
fn each_node_has_its_own_authority_and_client_certificate() {
    let [Some(one), Some(two)] = [NAMES[0], NAMES[1]].map(|name| Server::start(name, true)) else { return };
    let own = |trusted: &Server, shown: &Server, name: &str| {
        let tls = Tls::builder().ca_file(trusted.file("ca.pem")).server_name(name);
        tls.client_cert_files(shown.file("client.pem"), shown.file("client.key")).build().unwrap()
    };
    let redlock = Redlock::builder().nodes([one.url("127.0.0.1"), two.url("127.0.0.1")]);
    let tls = own(&two, &two, NAMES[1]);
    let first = Tls::builder().ca_file(one.file("ca.pem"));
    let tls = first.tls_for(place("127.0.0.1", &one), own(&one, &one, NAMES[0])).tls_for("127.0.0.1", tls);
    let redlock = redlock.tls(tls.build().unwrap()).connect().unwrap();
    all_are_ready(&redlock);
    locks(redlock);
    // What is trusted for one is not trusted for the other, nor is its certificate shown.
    let mixed = Tls::builder().ca_file(one.file("ca.pem")).ca_file(two.file("ca.pem"));
    let mixed = mixed.tls_for(place("127.0.0.1", &one), own(&two, &one, NAMES[0])).build().unwrap();
    let error = connect(&one, "127.0.0.1", mixed).unwrap_err().to_string();
    assert!(error.contains("TLS: ") && error.contains("certificate"), "{error}");
    let mixed = Tls::builder().ca_file(one.file("ca.pem")).server_name(NAMES[0]);
    let mixed = mixed.client_cert_files(one.file("client.pem"), one.file("client.key"));
    let mixed = mixed.tls_for(place("127.0.0.1", &one), own(&one, &two, NAMES[0])).build().unwrap();
    let error = connect(&one, "127.0.0.1", mixed).unwrap_err().to_string();
    assert!(error.contains("TLS: received fatal alert"), "{error}");
}
