//! What the network promises.

use alloc::vec;

use super::*;
use crate::sim::{Dialect, Memory};

const NODE: NodeId = NodeId::new(0);

/// One client, one node, a network, and what the client heard.
struct Bench {
    servers: Vec<Server>,
    network: Network,
    now: Instant,
    heard: Vec<(Instant, Delivery)>,
}

impl Bench {
    fn new(seed: u64) -> Self {
        let servers = vec![Server::new(Dialect::Redis7, 1)];
        Self { servers, network: Network::new(seed), now: Instant::ZERO, heard: Vec::new() }
    }

    fn link(&mut self, link: Link) {
        self.network.set_default_link(link, self.now);
    }

    fn connect(&mut self, generation: u32) -> ConnectionId {
        let connection = ConnectionId { node: NODE, generation };
        self.network.connect(0, connection, self.now);
        connection
    }

    fn send(&mut self, connection: ConnectionId, bytes: &str) {
        self.network.send(0, connection, bytes.as_bytes(), self.now);
    }

    fn run_until(&mut self, micros: u64) {
        let end = Instant::from_micros(micros);
        while let Some(due) = self.network.next_due(&self.servers).filter(|due| *due <= end) {
            self.now = due;
            let arrivals = self.network.deliver(&mut self.servers, due);
            self.heard.extend(arrivals.into_iter().map(|arrival| (arrival.at, arrival.what)));
        }
        self.now = end;
    }

    fn heard(&mut self) -> Vec<(u64, Delivery)> {
        self.heard.drain(..).map(|(at, what)| (at.as_nanos() / 1_000, what)).collect()
    }

    /// All bytes that were heard, and what came last.
    fn bytes(&mut self) -> (Vec<u8>, Option<Delivery>) {
        let heard = self.heard();
        let bytes = heard.iter().filter_map(|(_, what)| match what {
            Delivery::Bytes(bytes) => Some(bytes.clone()),
            Delivery::Connected | Delivery::Refused | Delivery::Closed => None,
        });
        (bytes.flatten().collect(), heard.last().map(|(_, what)| what.clone()))
    }

    fn value(&self) -> Option<Vec<u8>> {
        self.servers[0].value(b"k", self.now)
    }
}

fn pong() -> Delivery {
    Delivery::Bytes(b"+PONG\r\n".to_vec())
}

#[test]
fn a_round_trip_takes_the_latency_twice() {
    let mut bench = Bench::new(1);
    let connection = bench.connect(1);
    bench.run_until(5_000);
    bench.send(connection, "PING\r\n");
    bench.run_until(9_000);
    assert_eq!(bench.heard(), [(1_000, Delivery::Connected), (6_000, pong())]);
}

#[test]
fn jitter_and_pieces_keep_the_order_and_every_byte() {
    for seed in 0..50 {
        let mut bench = Bench::new(seed);
        bench.link(Link { jitter: Duration::from_millis(3), fragments: true, ..Link::default() });
        let connection = bench.connect(1);
        for number in 0..20 {
            bench.send(connection, &alloc::format!("ECHO word-{number:02}\r\n"));
            bench.run_until(number * 700);
        }
        bench.run_until(1_000_000);
        let wanted: Vec<u8> =
            (0..20).flat_map(|n| alloc::format!("$7\r\nword-{n:02}\r\n").into_bytes()).collect();
        assert_eq!(bench.bytes().0, wanted, "seed {seed}");
    }
}

#[test]
fn the_same_seed_gives_the_same_schedule() {
    let run = |seed| {
        let mut bench = Bench::new(seed);
        bench.link(Link { jitter: Duration::from_millis(3), fragments: true, ..Link::default() });
        let connection = bench.connect(1);
        (0..20).for_each(|_| bench.send(connection, "ECHO one\r\nPING\r\n"));
        bench.run_until(1_000_000);
        bench.heard()
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[test]
fn refused_and_swallowed_connects() {
    let mut bench = Bench::new(1);
    bench.link(Link { connects: Connects::Refused, ..Link::default() });
    bench.connect(1);
    bench.run_until(2_000);
    assert_eq!(bench.heard(), [(1_000, Delivery::Refused)]);

    bench.link(Link { connects: Connects::Swallowed, ..Link::default() });
    let connection = bench.connect(2);
    bench.run_until(10_000_000);
    assert_eq!(bench.heard(), []);
    bench.network.disconnect(0, connection, bench.now);
    bench.run_until(10_002_000);
    assert!(bench.network.connections.is_empty(), "nothing is left of either");

    bench.link(Link::default());
    bench.servers[0].stop();
    bench.connect(3);
    bench.run_until(11_000_000);
    assert_eq!(bench.heard(), [(10_003_000, Delivery::Refused)]);
}

#[test]
fn one_lost_direction_is_half_open_for_good() {
    let mut bench = Bench::new(1);
    let connection = bench.connect(1);
    bench.run_until(2_000);
    bench.heard();
    bench.link(Link { to_client: Flow::Lost, ..Link::default() });
    bench.send(connection, "SET k v\r\n");
    bench.run_until(4_000);
    assert_eq!(
        (bench.value(), bench.heard()),
        (Some(b"v".to_vec()), vec![]),
        "it was done, and nobody knows"
    );
    bench.link(Link::default());
    bench.send(connection, "PING\r\n");
    bench.run_until(9_000);
    assert_eq!(bench.heard(), [], "a gap in a stream is never skipped");
    let fresh = bench.connect(2);
    bench.send(fresh, "PING\r\n");
    bench.run_until(19_000);
    assert_eq!(bench.heard(), [(10_000, Delivery::Connected), (10_000, pong())]);
}

#[test]
fn a_held_direction_delivers_in_order_when_it_opens() {
    let mut bench = Bench::new(1);
    let connection = bench.connect(1);
    bench.run_until(2_000);
    bench.link(Link { to_server: Flow::Held, ..Link::default() });
    bench.send(connection, "SET k first NX\r\n");
    bench.run_until(4_000);
    // On the way when the flow opens: it must stay behind what is held.
    bench.send(connection, "SET k second NX\r\n");
    bench.run_until(4_100);
    assert_eq!(bench.value(), None);
    bench.link(Link { latency: Duration::from_micros(900), ..Link::default() });
    bench.run_until(9_000);
    assert_eq!(bench.value(), Some(b"first".to_vec()));
    assert_eq!(bench.bytes().0, b"+OK\r\n$-1\r\n");
}

#[test]
fn r7_what_a_given_up_connection_holds_may_arrive_after_a_newer_ones_commands() {
    let mut overtaken = 0;
    for seed in 0..40 {
        let mut bench = Bench::new(seed);
        let late = Duration::from_millis(2);
        bench.link(Link { late, jitter: late, ..Link::default() });
        let old = bench.connect(1);
        bench.run_until(8_000);
        bench.send(old, "SET k old NX\r\n");
        bench.network.disconnect(0, old, bench.now);
        let new = bench.connect(2);
        bench.send(new, "SET k new NX\r\n");
        bench.run_until(100_000);
        overtaken += usize::from(bench.value() == Some(b"new".to_vec()));
        assert!(bench.value().is_some(), "seed {seed}: it arrives, sooner or later");
        assert!(bench.servers[0].log().iter().filter(|entry| entry.is("set k")).count() == 2, "seed {seed}");
        assert_eq!(bench.network.connections.len(), 1);
    }
    assert!((1..40).contains(&overtaken), "both orders are seen: {overtaken}");
}

#[test]
fn a_stranded_connection_is_gone_for_its_client_and_still_delivers() {
    let mut bench = Bench::new(1);
    let connection = bench.connect(1);
    bench.run_until(2_000);
    bench.send(connection, "SET k v\r\n");
    bench.network.strand(0, NODE, bench.now);
    bench.run_until(9_000);
    assert_eq!(bench.value(), Some(b"v".to_vec()));
    assert_eq!(bench.heard(), [(1_000, Delivery::Connected), (2_000, Delivery::Closed)]);
    assert_eq!(bench.network.newest(0, NODE), None);
}

#[test]
fn a_reset_loses_what_is_under_way() {
    let mut bench = Bench::new(1);
    let connection = bench.connect(1);
    bench.run_until(2_000);
    bench.send(connection, "SET k v\r\n");
    bench.network.reset(0, NODE, bench.now);
    bench.run_until(9_000);
    assert_eq!(bench.value(), None);
    assert_eq!(bench.bytes().1, Some(Delivery::Closed));
    assert!(bench.network.connections.is_empty());
}

#[test]
fn a_half_open_connection_tells_nobody() {
    let mut bench = Bench::new(1);
    let connection = bench.connect(1);
    bench.run_until(2_000);
    bench.heard();
    bench.network.half_open(0, NODE);
    bench.send(connection, "SET k v\r\n");
    bench.servers[0].restart(Memory::Keep, bench.now);
    bench.network.notice(&mut bench.servers, bench.now);
    bench.run_until(60_000_000);
    assert_eq!((bench.value(), bench.heard()), (None, vec![]));
}

#[test]
fn a_cut_comes_after_exactly_so_many_bytes() {
    let request = "SET k v\r\n";
    for sent in 0..=request.len() {
        let mut bench = Bench::new(1);
        let connection = bench.connect(1);
        bench.run_until(2_000);
        bench.network.cut_after(0, NODE, Direction::ToServer, sent);
        bench.send(connection, request);
        bench.run_until(9_000);
        assert_eq!(bench.value().is_some(), sent == request.len(), "cut after {sent}");
        assert_eq!(bench.bytes(), (vec![], Some(Delivery::Closed)), "cut after {sent}");
    }
    for heard in 0..=5 {
        let mut bench = Bench::new(1);
        let connection = bench.connect(1);
        bench.run_until(2_000);
        bench.network.cut_after(0, NODE, Direction::ToClient, heard);
        bench.send(connection, request);
        bench.run_until(9_000);
        assert!(bench.value().is_some());
        assert_eq!(
            bench.bytes(),
            (b"+OK\r\n"[..heard].to_vec(), Some(Delivery::Closed)),
            "cut after {heard}"
        );
    }
}

#[test]
fn what_is_done_to_a_server_shows_from_its_instant_on() {
    let mut bench = Bench::new(1);
    bench.connect(1);
    bench.run_until(2_000);
    bench.servers[0].restart(Memory::Keep, bench.now);
    bench.network.notice(&mut bench.servers, bench.now);
    bench.run_until(9_000);
    assert_eq!(bench.heard(), [(1_000, Delivery::Connected), (2_500, Delivery::Closed)]);
}

#[test]
fn two_nodes_of_a_client_can_be_one_server() {
    let mut bench = Bench::new(1);
    let second = ConnectionId { node: NodeId::new(1), generation: 1 };
    bench.network.set_route(0, second.node, 0);
    bench.network.connect(0, second, bench.now);
    bench.network.send(0, second, b"SET k v\r\n", bench.now);
    bench.run_until(9_000);
    assert_eq!(bench.value(), Some(b"v".to_vec()));
}

#[test]
fn pushes_and_expiry_need_no_client_to_do_anything() {
    let mut bench = Bench::new(1);
    let connection = bench.connect(1);
    bench.send(connection, "HELLO 3\r\nCLIENT TRACKING ON\r\nSET k v PX 50\r\nGET k\r\n");
    bench.run_until(3_000);
    bench.heard();
    // Set at 0.5 ms, so that it counts from the server's millisecond 0.
    bench.run_until(80_000);
    let push = b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n".to_vec();
    assert_eq!(bench.heard(), [(51_500, Delivery::Bytes(push))]);
}
