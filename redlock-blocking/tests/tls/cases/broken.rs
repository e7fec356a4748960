//! Servers that do not answer, and connections that end within what they say.

use super::eventually;
use super::front::{Behind, End, Front};
use redlock_blocking::{BuildError, ConnectError, NodeFault, NodeState, Redlock};
use redlock_core::sim::{Dialect, Server, TcpNode};
use std::time::Duration;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The connect timeout ends it; and before that the handshake timeout each connection, so that another is tried.
fn is_given_up_in_time(behind: Behind) {
    let front = Front::start(behind);
    let builder = || Redlock::builder().nodes([front.url()]).tls(front.tls());
    // A client without nodes that answer has a clock all the same.
    let clock = builder().handshake_timeout(ms(100)).connect_lazy().unwrap();
    let start = clock.now();
    let error = match builder().connect_timeout(ms(300)).connect().unwrap_err() {
        BuildError::Connect(error) => error,
        other => panic!("not about the nodes: {other}"),
    };
    let took = clock.now().saturating_duration_since(start);
    assert!(took >= ms(290) && took < Duration::from_secs(2), "{took:?}");
    let ConnectError { timed_out, ready, .. } = error;
    assert!(timed_out && ready == 0);
    eventually(&clock, "it is given up, and another connection is tried", || {
        let is_told = match &clock.nodes()[0].state {
            NodeState::Down { fault, .. } | NodeState::Connecting(Some(fault)) => match fault {
                NodeFault::HandshakeTimeout(_) => true,
                // Of the two addresses one has used its share of the time up.
                other => other.to_string().contains("timed out"),
            },
            _ => false,
        };
        is_told && front.accepted() >= 4
    });
}

#[test]
fn r27_a_server_that_never_answers_the_handshake_is_given_up_in_time() {
    is_given_up_in_time(Behind::Silence);
}

#[test]
fn r27_a_server_that_answers_nothing_after_the_handshake_is_given_up_in_time() {
    is_given_up_in_time(Behind::Nobody);
}

#[test]
fn b35_a_server_that_closes_within_the_handshake_is_told() {
    let front = Front::start(Behind::Farewell);
    let builder = Redlock::builder().nodes([front.url()]).tls(front.tls());
    let error = builder.connect_timeout(ms(300)).connect().unwrap_err().to_string();
    assert!(error.contains("TLS: ") && error.contains("127.0.0.1"), "{error}");
    assert!(front.accepted() >= 1);
}

/// A node behind TLS.
fn node() -> (TcpNode, Front) {
    let node = TcpNode::start(Server::new(Dialect::Valkey9, 1)).unwrap();
    let front = Front::start(Behind::Node(node.addr()));
    (node, front)
}

fn client(front: &Front) -> Redlock {
    let builder = Redlock::builder().nodes([front.url()]).tls(front.tls());
    builder.node_timeout(Duration::from_secs(2)).retry_delay(ms(5), ms(20)).connect().unwrap()
}

const LONG: Duration = Duration::from_secs(30);

/// Whatever a connection ends with, and wherever in the reply that would have granted the lock: nobody holds it, nothing is
/// left of it, and the next connection works.
#[test]
fn b51_a_grant_that_was_cut_short_is_no_vote() {
    let (node, front) = node();
    let value = || node.with(|server, now| server.value(b"door", now));
    for end in End::ALL {
        // All of `+OK` and its end is a grant, and nothing less.
        for bytes in 0..=5 {
            let (redlock, is_whole) = (client(&front), bytes == 5);
            let (accepted, cuts) = (front.accepted(), front.cuts());
            front.cut_after(bytes, end);
            let acquired = redlock.try_acquire("door").ttl(LONG).lock();
            assert_eq!(acquired.is_ok(), is_whole, "{end:?} after {bytes} bytes: {acquired:?}");
            assert_eq!(front.cuts() == cuts, is_whole, "{end:?} after {bytes} bytes");
            front.heal();
            drop(acquired);
            eventually(&redlock, "nothing is left", || value().is_none());
            let guard = redlock.acquire("door").wait(LONG).lock().unwrap();
            assert!(guard.is_held() && value().is_some());
            assert_eq!(front.accepted() == accepted, is_whole, "{end:?} after {bytes} bytes");
            drop(guard);
            eventually(&redlock, "it is released", || value().is_none());
        }
    }
}

/// The same for an extension: the deadline stays where it was.
#[test]
fn b51_an_extension_that_was_cut_short_moves_no_deadline() {
    let (node, front) = node();
    for end in End::ALL {
        for bytes in 0..=5 {
            let (redlock, is_whole) = (client(&front), bytes == 5);
            let guard = redlock.acquire("door").ttl(LONG).wait(LONG).lock().unwrap();
            let (deadline, cuts) = (guard.valid_until(), front.cuts());
            front.cut_after(bytes, end);
            let extended = guard.extend(2 * LONG);
            assert_eq!(extended.is_ok(), is_whole, "{end:?} after {bytes} bytes: {extended:?}");
            assert_eq!(front.cuts() == cuts, is_whole, "{end:?} after {bytes} bytes");
            assert_eq!(guard.valid_until() == deadline, !is_whole, "{end:?} after {bytes} bytes");
            assert!(guard.is_held());
            front.heal();
            drop(guard);
            let is_gone = || node.with(|server, now| server.value(b"door", now)).is_none();
            eventually(&redlock, "it is released", is_gone);
        }
    }
}
