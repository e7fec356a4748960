//! The kinds of clusters there are, and what only one of them can do.

use super::Make;
use super::cluster::{Real, Simulated, programs};
use super::{no_key, same_everywhere};
use redlock_blocking::Redlock;

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
