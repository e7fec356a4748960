//! The behaviours, with real servers: every one that is found (`suite::cluster::programs` says where).

mod suite;

behaviours!(real_servers);

#[test]
fn b37_unix_sockets_connect() {
    suite::runs::unix_sockets();
}
