//! The behaviours that all adapters have, with real servers: every one that is found (`suite::cluster::programs` says where).

mod adapter;
#[path = "../../redlock-blocking/tests/suite/mod.rs"]
mod suite;

// What the suite is written against.
extern crate self as redlock_blocking;
use adapter::*;

behaviours!(real_servers);

#[test]
fn b37_unix_sockets_connect() {
    suite::runs::unix_sockets();
}

#[test]
fn b37_users_passwords_databases_and_ipv6() {
    suite::runs::users_databases_and_ipv6();
}

#[test]
fn b38_servers_that_close_idle_connections() {
    suite::runs::idle_connections();
}
