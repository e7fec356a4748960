//! The kinds of clusters there are, and what only one of them can do.

use super::Make;
use super::cluster::{Real, RealServer, Said, Simulated, programs};
use super::{no_key, same_everywhere};
use redlock_blocking::Redlock;
use std::time::Duration;

/// With simulated nodes behind real sockets.
pub fn simulated_nodes(behaviour: &dyn Fn(&Make<'_>)) {
    behaviour(&Simulated::start);
}

/// With real servers: every one that is found ([`programs`] says where).
pub fn real_servers(behaviour: &dyn Fn(&Make<'_>)) {
    for program in programs() {
        behaviour(&|count| Real::start(program, count));
    }
}

/// Real servers behind Unix sockets.
pub fn unix_sockets() {
    for program in programs() {
        let (cluster, paths) = Real::sockets(program, 3);
        let urls = paths.iter().map(|path| format!("unix://{}", path.display()));
        let redlock = Redlock::connect(urls).unwrap();
        let guard = redlock.acquire("door").lock().unwrap();
        same_everywhere(&*cluster, "door");
        drop(guard);
        no_key(&*cluster, "door");
    }
}

/// Users and passwords that a URL has to escape, databases, and IPv6.
pub fn users_databases_and_ipv6() {
    for program in programs() {
        let server = RealServer::start(program, &["--bind", "127.0.0.1", "::1"]);
        let port = server.addr().port();
        let ok = |command: &[&str]| assert_eq!(server.ask(command), Said::Line("+OK".into()), "{command:?}");
        let rights = ["~*", "+@all"];
        ok(&[&["ACL", "SETUSER", "lock@er", "on", ">p:a@s/s%"][..], &rights].concat());
        ok(&[&["ACL", "SETUSER", "default", "on", "resetpass", ">only-a-password"][..], &rights, &["+acl"]]
            .concat());
        for url in [
            format!("redis://lock%40er:p%3Aa%40s%2Fs%25@127.0.0.1:{port}"),
            format!("redis://:only-a-password@127.0.0.1:{port}"),
            format!("redis://lock%40er:p%3Aa%40s%2Fs%25@[::1]:{port}"),
            format!("redis://:only-a-password@127.0.0.1:{port}/7"),
        ] {
            let redlock = Redlock::connect([&url]).unwrap_or_else(|error| panic!("{url}: {error}"));
            let guard = redlock.acquire("door").lock().unwrap();
            // The same lock for all of them, but for the one in another database.
            let other = Redlock::connect([format!("redis://:only-a-password@localhost:{port}")]).unwrap();
            let second = other.acquire("door").wait(Duration::ZERO).lock();
            assert_eq!(second.is_ok(), url.ends_with("/7"), "{url}");
            guard.release().unwrap();
        }
        let wrong = Redlock::connect([format!("redis://nobody:p@127.0.0.1:{port}")]).unwrap_err();
        assert!(wrong.to_string().contains("login refused"), "{wrong}");
    }
}

/// Servers that close connections on which nothing was said for a second.
pub fn idle_connections() {
    for program in programs() {
        let server = RealServer::start(program, &["--timeout", "1"]);
        let redlock = Redlock::connect([format!("redis://{}", server.addr())]).unwrap();
        for _ in 0..2 {
            let guard = redlock.acquire("door").wait(Duration::ZERO).lock().unwrap();
            guard.release().unwrap();
            // The server looks once a second.
            std::thread::sleep(Duration::from_millis(2_500));
        }
    }
}
