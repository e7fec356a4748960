//! What a node behind a socket promises.

use alloc::format;
use alloc::string::{String, ToString as _};

use super::*;
use crate::sim::Dialect;

/// Long enough to tell silence from an answer, on a busy machine, too: only a test that expects silence waits for it.
const SILENCE: Duration = Duration::from_millis(60);

fn node() -> TcpNode {
    TcpNode::start(Server::new(Dialect::Redis7, 1)).unwrap()
}

fn connect(node: &TcpNode) -> TcpStream {
    let client = TcpStream::connect(node.addr()).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    client
}

fn ask(client: &mut TcpStream, request: &str, reply: &str) {
    client.write_all(format!("{request}\r\n").as_bytes()).unwrap();
    hear(client, reply);
}

fn hear(client: &mut TcpStream, reply: &str) {
    let mut bytes = vec![0; reply.len()];
    client.read_exact(&mut bytes).unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), reply);
}

fn is_closed(client: &mut TcpStream) -> bool {
    match client.read(&mut [0]) {
        Ok(length) => length == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

fn is_silent(client: &mut TcpStream) -> bool {
    client.set_read_timeout(Some(SILENCE)).unwrap();
    let read = client.read(&mut [0]);
    client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    read.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
}

#[test]
fn clients_share_one_keyspace() {
    let node = node();
    let (mut one, mut two) = (connect(&node), connect(&node));
    ask(&mut one, "SET k v NX PX 60000", "+OK\r\n");
    ask(&mut two, "SET k w NX PX 60000", "$-1\r\n");
    assert_eq!(node.with(|server, now| server.value(b"k", now)), Some(b"v".to_vec()));
}

#[test]
fn a_killed_node_refuses_connections_until_it_is_revived() {
    let node = node();
    let mut client = connect(&node);
    ask(&mut client, "SET k v", "+OK\r\n");
    node.kill();
    node.kill();
    assert!(is_closed(&mut client));
    assert_eq!(TcpStream::connect(node.addr()).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    node.revive(Memory::Keep).unwrap();
    node.revive(Memory::Lose).unwrap();
    ask(&mut connect(&node), "GET k", "$1\r\nv\r\n");
    node.kill();
    node.revive(Memory::Lose).unwrap();
    ask(&mut connect(&node), "GET k", "$-1\r\n");
}

#[test]
fn a_frozen_node_accepts_and_is_silent_and_runs_everything_later() {
    let node = node();
    let mut old = connect(&node);
    ask(&mut old, "PING", "+PONG\r\n");
    node.freeze();
    old.write_all(b"SET k old NX\r\n").unwrap();
    assert!(is_silent(&mut old));
    // The node must have read it before its client is seen to go.
    drop(old);
    let mut new = connect(&node);
    new.write_all(b"PING\r\n").unwrap();
    assert!(is_silent(&mut new));
    node.thaw();
    hear(&mut new, "+PONG\r\n");
    ask(&mut new, "GET k", "$3\r\nold\r\n");
}

#[test]
fn cut_connections_can_be_made_anew() {
    let node = node();
    let mut client = connect(&node);
    ask(&mut client, "SET k v", "+OK\r\n");
    node.cut_connections();
    assert!(is_closed(&mut client));
    ask(&mut connect(&node), "GET k", "$1\r\nv\r\n");
}

#[test]
fn a_delay_holds_answers_back_and_keeps_their_order() {
    let node = node();
    let mut client = connect(&node);
    ask(&mut client, "PING", "+PONG\r\n");
    node.set_delay(SILENCE * 3);
    client.write_all(b"ECHO one\r\n").unwrap();
    assert!(is_silent(&mut client));
    node.set_delay(Duration::ZERO);
    client.write_all(b"ECHO two\r\nQUIT\r\n").unwrap();
    hear(&mut client, "$3\r\none\r\n$3\r\ntwo\r\n+OK\r\n");
    assert!(is_closed(&mut client));
    ask(&mut connect(&node), "PING", "+PONG\r\n");
}

#[test]
fn a_key_that_runs_out_is_pushed_by_the_timer() {
    let node = node();
    let (mut waiter, mut other) = (connect(&node), connect(&node));
    waiter.write_all(b"HELLO 3\r\n").unwrap();
    assert!(waiter.read(&mut [0; 1024]).unwrap() > 0);
    ask(&mut waiter, "CLIENT TRACKING ON", "+OK\r\n");
    ask(&mut other, "SET k v PX 30", "+OK\r\n");
    ask(&mut waiter, "GET k", "$1\r\nv\r\n");
    hear(&mut waiter, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n");
    // By what others do, too.
    ask(&mut waiter, "GET k", "_\r\n");
    node.with(|server, now| server.put(b"k", b"w", None, now));
    hear(&mut waiter, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n");
}

#[test]
fn a_server_that_hangs_up_closes_the_socket() {
    let node = node();
    let mut client = connect(&node);
    ask(&mut client, "*x", "-ERR Protocol error: invalid multibulk length\r\n");
    assert!(is_closed(&mut client));
    let mut client = connect(&node);
    ask(&mut client, "PING", "+PONG\r\n");
    node.with(|server, now| server.restart(Memory::Keep, now));
    assert!(is_closed(&mut client));
}

#[test]
fn dropping_a_node_does_not_wait_for_its_clients() {
    let node = node();
    let clients: Vec<TcpStream> = (0..20).map(|_| connect(&node)).collect();
    let addr = node.addr().to_string();
    drop(node);
    assert!(TcpStream::connect(addr).is_err());
    drop(clients);
}

#[test]
fn a_client_that_never_reads_is_cut_off() {
    let node = node();
    node.with(|server, now| server.put(b"k", &vec![b'x'; 1 << 20], None, now));
    let mut deaf = connect(&node);
    deaf.write_all(&b"GET k\r\n".repeat(40)).unwrap();
    let mut other = connect(&node);
    let start = node.with(|_, now| now);
    // A node does one thing at a time: once it has run the last command, it has tried to answer it. Where the commands came
    // in pieces it may have given up before, and runs no more of them.
    let (mut run, mut waited) = (0, Duration::ZERO);
    while run < 40 && waited < Duration::from_secs(3) {
        ask(&mut other, "PING", "+PONG\r\n");
        (run, waited) = node.with(|server, now| {
            let gets = server.log().iter().filter(|entry| entry.is("get")).count();
            (gets, now.saturating_duration_since(start))
        });
    }
    assert!(waited < Duration::from_secs(10), "{waited:?}");
    let mut length = 0;
    let mut buffer = vec![0; 1 << 16];
    while let Ok(more @ 1..) = deaf.read(&mut buffer) {
        length += more;
    }
    assert!(length < 40 << 20, "it heard everything");
}
