//! What the world promises, with real engines in it.

use alloc::string::String;

use super::*;
use crate::sim::{Direction, Flow, Link, Memory};
use crate::{NodeId, ReleaseOutcome};

const SECOND: Duration = Duration::from_secs(1);

/// A world of three nodes and so many clients.
fn world(seed: u64, clients: usize) -> World {
    let mut world = World::new(seed);
    for dialect in [Dialect::Redis7, Dialect::Valkey81, Dialect::Valkey9] {
        world.add_server(dialect);
    }
    for _ in 0..clients {
        world.add_client(config());
    }
    world
}

fn config() -> Config {
    Config::builder().nodes(["a", "b", "c"]).build().unwrap()
}

fn acquire(world: &mut World, client: usize, ttl: Duration, wait: Duration) -> Option<LockId> {
    let request = world.request("door").ttl(ttl).wait(wait);
    world.acquire(client, request).unwrap();
    let answers = |event: &Event| matches!(event, Event::Acquired { .. } | Event::AcquireFailed { .. });
    match world.wait_for(client, wait + SECOND * 2, answers) {
        Some((_, Event::Acquired { lock, .. })) => Some(lock),
        _ => None,
    }
}

fn release(world: &mut World, client: usize, lock: LockId) -> Option<ReleaseOutcome> {
    world.release(client, lock).unwrap();
    match world.wait_for(client, SECOND * 2, |event| matches!(event, Event::Released { .. })) {
        Some((_, Event::Released { outcome, .. })) => Some(outcome),
        _ => None,
    }
}

#[test]
fn a_lock_is_granted_held_and_released() {
    let mut world = world(1, 2);
    let lock = acquire(&mut world, 0, SECOND * 10, SECOND).unwrap();
    assert_eq!(world.holders(b"door"), [Belief { client: 0, lock }]);
    assert_eq!(acquire(&mut world, 1, SECOND * 10, Duration::ZERO), None);
    assert_eq!(release(&mut world, 0, lock), Some(ReleaseOutcome::Released));
    assert_eq!(world.holders(b"door"), []);
    world.run_for(SECOND);
    assert!(world.servers().iter().all(|server| server.keys(world.now()).is_empty()));
    assert!(acquire(&mut world, 1, SECOND * 10, SECOND).is_some());
}

#[test]
fn time_moves_to_what_is_due_and_not_further() {
    let mut world = world(1, 1);
    // Connect, greet, be ready: round trips of exactly 1 ms each.
    let first = world.next_due().unwrap();
    assert_eq!(first, Instant::from_micros(500));
    let mut instants = Vec::new();
    while world.next_due().is_some_and(|due| due < Instant::from_millis(10)) {
        world.step();
        instants.push(world.now());
    }
    assert!(instants.windows(2).all(|pair| pair[0] <= pair[1]));
    assert!(instants.iter().all(|at| at.as_nanos() % 500_000 == 0), "{instants:?}");
    world.run_until(Instant::from_secs(3));
    assert_eq!(world.now(), Instant::from_secs(3));
}

#[test]
fn a_client_counts_by_its_own_clock() {
    let mut world = world(1, 0);
    let ahead = Duration::from_secs(1_000);
    // Ten times as fast as the world: its ten seconds are over after one.
    let hasty = world.add_client_with_clock(config(), ahead, 9_000_000);
    assert_eq!(world.local_now(hasty), Instant::from_secs(1_000));
    let lock = acquire(&mut world, hasty, SECOND * 10, SECOND * 10).unwrap();
    let granted = world.now();
    let lost = world.wait_for(hasty, SECOND * 10, |event| matches!(event, Event::Lost { .. })).unwrap().0;
    let believed = lost.saturating_duration_since(granted);
    assert!((Duration::from_millis(900)..Duration::from_millis(1_000)).contains(&believed), "{believed:?}");
    assert!(world.client(hasty).unwrap().lock(lock).is_none_or(|view| !view.is_held(world.local_now(hasty))));
}

#[test]
fn r13_a_paused_client_no_longer_believes_when_it_wakes_up_too_late() {
    let mut world = world(1, 2);
    acquire(&mut world, 0, SECOND * 2, SECOND).unwrap();
    world.pause_client(0);
    world.run_for(SECOND * 3);
    assert_eq!(world.holders(b"door"), [], "its clock went on");
    let second = acquire(&mut world, 1, SECOND * 10, SECOND).unwrap();
    world.resume_client(0);
    world.run_for(SECOND);
    assert_eq!(world.holders(b"door"), [Belief { client: 1, lock: second }]);
    assert!(world.take_events(0).iter().any(|(_, event)| matches!(event, Event::Lost { .. })));
}

#[test]
fn a_crashed_clients_lock_ends_with_its_ttl() {
    let mut world = world(1, 2);
    acquire(&mut world, 0, SECOND * 2, SECOND).unwrap();
    world.crash_client(0);
    assert!(world.client(0).is_none() && world.holders(b"door").is_empty());
    assert_eq!(acquire(&mut world, 1, SECOND, Duration::ZERO), None);
    assert!(acquire(&mut world, 1, SECOND, SECOND * 3).is_some());
    assert!(world.now() >= Instant::from_secs(2));
}

#[test]
fn a_minority_that_is_down_costs_nothing_and_a_majority_everything() {
    let mut world = world(1, 1);
    world.run_for(SECOND);
    world.with_server(0, |server, _| server.stop());
    let lock = acquire(&mut world, 0, SECOND * 10, SECOND).unwrap();
    assert_eq!(release(&mut world, 0, lock), Some(ReleaseOutcome::Released));
    world.with_server(1, |server, _| server.stop());
    assert_eq!(acquire(&mut world, 0, SECOND * 10, SECOND), None);
    world.with_server(0, Server::start);
    assert!(acquire(&mut world, 0, SECOND * 10, SECOND * 10).is_some());
}

#[test]
fn the_same_seed_gives_the_same_world_and_another_one_another() {
    let run = |seed| {
        let mut world = world(seed, 3);
        let link = Link { jitter: Duration::from_millis(2), fragments: true, ..Link::default() };
        world.with_network(|network, now| network.set_default_link(link, now));
        for client in 0..3 {
            let request = world.request("door").ttl(SECOND).wait(SECOND * 5);
            world.acquire(client, request);
        }
        world.run_for(SECOND * 6);
        (0..3).map(|client| alloc::format!("{:?}", world.take_events(client))).collect::<Vec<String>>()
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

/// Contenders under every kind of fault: the world's own test that its faults and its oracle work together. More runs
/// are asked for by `REDLOCK_SIM_RUNS`, a certain one by `REDLOCK_SIM_SEED`.
#[test]
fn at_most_one_client_believes_whatever_the_network_and_the_nodes_processes_do() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = number("REDLOCK_SIM_SEED") {
        contend(seed);
        return;
    }
    let runs = number("REDLOCK_SIM_RUNS").unwrap_or(30);
    let grants: usize = (0..runs).map(contend).sum();
    assert!(grants > 100, "only {grants} grants: too many faults to see anything");
}

/// One run of ten seconds; how many grants there were. Panics, and names the seed, if two believe at once.
fn contend(seed: u64) -> usize {
    let mut random = Random::new(seed);
    let mut world = world(seed, 3);
    // Within the drift: 0.8 percent between the slowest and the fastest.
    let mut rate = || i64::try_from(random.below(8_001)).unwrap() - 4_000;
    for number in 0..3 {
        let (server_rate, client_rate) = (rate(), rate());
        world.with_server(number, |server, now| server.set_clock(0, server_rate, now));
        world.set_client_rate(number, client_rate);
    }
    let nodes: Vec<NodeId> = (0..3).map(NodeId::new).collect();
    let mut said = Vec::new();
    while world.now() < Instant::from_secs(10) {
        let client = usize::try_from(random.below(3)).unwrap();
        let node = nodes[usize::try_from(random.below(3)).unwrap()];
        match random.below(24) {
            0..8 => {
                let ttl = Duration::from_millis(200 + random.below(800));
                let request = world.request("door").ttl(ttl).wait(Duration::from_millis(random.below(600)));
                world.acquire(client, request);
            }
            8..12 => {
                let held = world.holders(b"door").into_iter().find(|belief| belief.client == client);
                if let Some(Belief { lock, .. }) = held {
                    world.release(client, lock);
                }
            }
            12 => world.with_network(|network, now| network.reset(client, node, now)),
            13 => world.with_network(|network, now| network.strand(client, node, now)),
            14 => world.with_network(|network, _| network.half_open(client, node)),
            15 => {
                let (direction, bytes) = match random.below(60) {
                    bytes @ 0..30 => (Direction::ToServer, bytes),
                    bytes => (Direction::ToClient, bytes - 30),
                };
                let bytes = usize::try_from(bytes).unwrap();
                world.with_network(|network, _| network.cut_after(client, node, direction, bytes));
            }
            16..18 => {
                let flow = |number| if number == 0 { Flow::Held } else { Flow::Open };
                let link = Link {
                    jitter: Duration::from_millis(random.below(20)),
                    late: Duration::from_millis(random.below(300)),
                    fragments: random.below(2) == 0,
                    to_server: flow(random.below(4)),
                    to_client: flow(random.below(4)),
                    ..Link::default()
                };
                world.with_network(|network, now| network.set_link(client, node, link, now));
            }
            18 => {
                let span = Duration::from_millis(random.below(400));
                world.with_server(node.index(), |server, now| server.pause_for(span, now));
            }
            // With their memory: a majority that forgets is beyond what Redlock promises.
            19 => {
                world.with_server(node.index(), |server, now| server.restart(Memory::Keep, now));
            }
            20 => {
                world.pause_client(client);
                world.run_for(Duration::from_millis(random.below(300)));
                world.resume_client(client);
            }
            _ => {}
        }
        let end = world.now().saturating_add(Duration::from_millis(random.below(60)));
        while world.next_due().is_some_and(|due| due <= end) {
            world.step();
            let holders = world.holders(b"door");
            assert!(holders.len() <= 1, "seed {seed}: {holders:?} at {:?}", world.now());
        }
        world.run_until(end);
        for client in 0..3 {
            said.extend(world.take_events(client));
        }
    }
    // When the faults are over, everything settles.
    world.with_network(|network, now| {
        for client in 0..3 {
            for node in &nodes {
                network.set_link(client, *node, Link::default(), now);
            }
        }
    });
    for client in 0..3 {
        world.with_client(client, Client::close);
    }
    world.run_for(SECOND * 60);
    for (number, server) in world.servers().iter().enumerate() {
        let left = server.keys(world.now()).len();
        assert_eq!(left, 0, "seed {seed}: server {number}");
    }
    for client in 0..3 {
        assert!(world.client(client).is_some_and(Client::is_closed), "seed {seed}: client {client}");
    }
    said.iter().filter(|(_, event)| matches!(event, Event::Acquired { .. })).count()
}

/// The oracle must be able to see a violation: nodes whose clocks run twice as fast are beyond what drift allows for.
#[test]
fn the_oracle_sees_what_clocks_beyond_the_drift_do() {
    let mut world = world(1, 2);
    for server in 0..3 {
        world.with_server(server, |server, now| server.set_clock(0, 1_000_000, now));
    }
    acquire(&mut world, 0, SECOND * 4, SECOND).unwrap();
    world.run_for(Duration::from_millis(2_100));
    acquire(&mut world, 1, SECOND * 4, SECOND).unwrap();
    assert_eq!(world.holders(b"door").len(), 2);
}
