//! The handshake and the dialect: R22.

use crate::bench::*;
use redlock_core::{ErrorCode, Event, NodeFault, NodeOutcome, NodeState};

fn bench_at(address: &str) -> Bench {
    let config = redlock_core::Config::builder().nodes([address]).client_name("billing").build().unwrap();
    Bench::over(config)
}

fn state(bench: &Bench) -> NodeState {
    bench.client.node(node(0)).unwrap().state
}

#[test]
fn r22_hello_with_login_and_name_then_info_and_ping_in_one_packet() {
    let mut bench = bench_at("redis://ada:secret@h/3");
    bench.accept(0);
    assert_eq!(bench.sent(0), ["HELLO 3 AUTH ada secret SETNAME billing"]);
    bench.payloads(0);
    bench.reply(0, &hello("redis", "8.4.0"));
    assert_eq!(bench.sent(0), ["SELECT 3", "INFO server replication", "PING"]);
    assert_eq!(bench.payloads(0).len(), 1, "pipelined");
    bench.reply(0, OK);
    bench.reply(0, &info(1, 90));
    assert!(!bench.notices().contains(&Event::NodeUp { node: node(0) }), "only PING proves readiness");
    bench.reply(0, b"+PONG\r\n");
    assert!(bench.notices().contains(&Event::NodeUp { node: node(0) }));
    assert_eq!(state(&bench), NodeState::Ready);
}

#[test]
fn r22_a_password_alone_is_the_default_users() {
    let mut bench = bench_at("redis://:secret@h");
    bench.accept(0);
    assert_eq!(bench.sent(0), ["HELLO 3 AUTH default secret SETNAME billing"]);
}

#[test]
fn r22_b35_without_hello_it_goes_on_in_resp2_the_login_first() {
    for refusal in [
        "ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, ",
        "ERR unknown command 'HELLO'",
        "NOPROTO unsupported protocol version",
        "NOPERM this user has no permissions to run the 'hello' command",
        "ERR syntax error",
    ] {
        let mut bench = bench_at("redis://:secret@h/3");
        bench.accept(0);
        bench.forget();
        bench.reply(0, format!("-{refusal}\r\n").as_bytes());
        let expected =
            ["AUTH secret", "CLIENT SETNAME billing", "SELECT 3", "INFO server replication", "PING"];
        assert_eq!(bench.sent(0), expected, "{refusal}");
        // The name is a courtesy.
        bench.reply(0, b"+OK\r\n-ERR unknown subcommand 'SETNAME'\r\n+OK\r\n");
        bench.reply(0, &info(1, 90));
        bench.reply(0, b"+PONG\r\n");
        assert_eq!(state(&bench), NodeState::Ready);
        bench.try_acquire("orders");
        bench.reply(0, NIL2);
        assert!(bench.is_connected(0), "RESP2's null");
    }
}

#[test]
fn r22_the_user_of_resp2_is_named() {
    let mut bench = bench_at("redis://ada:secret@h");
    bench.accept(0);
    bench.forget();
    bench.reply(0, b"-NOPROTO unsupported protocol version\r\n");
    assert_eq!(bench.sent(0)[0], "AUTH ada secret");
}

#[test]
fn r22_b35_a_wrong_password_is_told_at_once_as_that() {
    let refusals: [(&[&[u8]], ErrorCode); 3] = [
        (&[b"-WRONGPASS invalid username-password pair or user is disabled.\r\n"], ErrorCode::Wrongpass),
        (&[b"-NOAUTH HELLO must be called with the client already authenticated\r\n"], ErrorCode::Noauth),
        (&[b"-NOPROTO x\r\n", b"-WRONGPASS invalid username-password pair\r\n"], ErrorCode::Wrongpass),
    ];
    for (replies, code) in refusals {
        let mut bench = bench_at("redis://:secret@h");
        bench.accept(0);
        for reply in replies {
            bench.reply(0, reply);
        }
        assert!(!bench.is_connected(0));
        let NodeState::Down { fault, .. } = state(&bench) else { panic!() };
        assert!(matches!(&fault, NodeFault::Login(error) if error.code() == code), "{fault:?}");
        assert!(fault.is_fatal());
    }
}

#[test]
fn r22_b35_a_server_that_loads_is_tried_again_not_taken_for_a_wrong_password() {
    let mut bench = bench_at("redis://:secret@h");
    bench.accept(0);
    bench.reply(0, &hello("redis", "8.4.0"));
    bench.reply(0, &info(1, 90));
    bench.reply(0, b"-LOADING Redis is loading the dataset in memory\r\n");
    let NodeState::Down { fault, .. } = state(&bench) else { panic!() };
    assert!(matches!(&fault, NodeFault::Server(error) if error.code() == ErrorCode::Loading), "{fault:?}");
    assert!(!fault.is_fatal());
    bench.until_wanted(0);
    bench.up(0);
    assert_eq!(state(&bench), NodeState::Ready);
}

#[test]
fn r22_info_refused_the_node_is_used_and_its_identity_unknown() {
    let mut bench = Bench::cold(1);
    bench.accept(0);
    bench.reply(0, &hello("redis", "8.4.0"));
    bench.reply(0, b"-NOPERM User u has no permissions to run the 'info' command\r\n");
    bench.reply(0, b"+PONG\r\n");
    assert!(bench.notices().contains(&Event::IdentityUnknown { node: node(0) }));
    let status = bench.client.node(node(0)).unwrap();
    assert_eq!(
        (status.state, status.run_id, status.server.as_deref()),
        (NodeState::Ready, None, Some("redis 8.4.0"))
    );
    bench.forget();
    bench.hold("orders");
}

#[test]
fn r22_the_dialect_comes_from_server_and_version_and_info_has_the_last_word() {
    let table = [
        ("redis", "8.3.9", "EVAL release", "EVAL extend"),
        ("redis", "8.4.0", "DELEX", "SET"),
        ("redis", "9.0", "DELEX", "SET"),
        ("valkey", "8.0.9", "EVAL release", "EVAL extend"),
        ("valkey", "8.1.0", "EVAL release", "SET"),
        ("valkey", "9.0.0", "DELIFEQ", "SET"),
        ("valkey", "10.0.0", "DELIFEQ", "SET"),
        ("garnet", "9.9.9", "EVAL release", "EVAL extend"),
        ("redis", "garbage", "EVAL release", "EVAL extend"),
    ];
    for (server, version, release, extend) in table {
        let mut bench = Bench::of(1, Says::Hello(server, version));
        let lock = bench.hold("orders");
        bench.extend(lock, 10_000);
        assert!(bench.sent(0)[0].starts_with(extend), "{server} {version}");
        bench.release(lock);
        assert!(bench.sent(0)[0].starts_with(release), "{server} {version}");
    }
    // A Valkey that says in HELLO that it is a Redis.
    let mut bench = Bench::cold(1);
    bench.accept(0);
    bench.reply(0, &hello("redis", "7.2.4"));
    let text = bulk("run_id:00ff\r\nredis_version:7.2.4\r\nvalkey_version:9.1.2\r\nrole:master\r\n");
    bench.reply(0, text.as_bytes());
    bench.reply(0, b"+PONG\r\n");
    bench.forget();
    let lock = bench.hold("orders");
    bench.release(lock);
    assert_eq!(bench.sent(0), ["DELIFEQ orders T1"]);
}

#[test]
fn r22_a_native_form_that_is_refused_stays_refused_until_the_run_id_changes() {
    let mut bench = Bench::new(1);
    bench.at(1_000);
    let lock = bench.hold("orders");
    bench.forget();
    bench.extend(lock, 10_000);
    bench.reply(0, b"-ERR syntax error\r\n");
    assert_eq!(bench.sent(0), ["SET orders T1 IFEQ T1 PX 10000", "EVAL extend 1 orders T1 10000"]);
    bench.reply(0, ONE);
    bench.extended();
    bench.extend(lock, 10_000);
    assert_eq!(bench.sent(0), ["EVAL extend 1 orders T1 10000"], "remembered");
    bench.reply(0, ONE);
    bench.told();
    bench.at(2_500);
    bench.reconnect(0);
    bench.extend(lock, 10_000);
    assert_eq!(bench.sent(0), ["EVAL extend 1 orders T1 10000"], "over a reconnect too");
    bench.reply(0, ONE);
    bench.told();
    bench.at(4_000);
    bench.restarted(0);
    bench.reconnect(0);
    assert!(bench.notices().contains(&Event::NodeRestarted { node: node(0) }));
    bench.extend(lock, 10_000);
    assert_eq!(bench.sent(0), ["SET orders T1 IFEQ T1 PX 10000"]);
    assert_eq!(bench.told(), [], "the other form was not touched");
    bench.reply(0, OK);
    bench.release(lock);
    assert_eq!(bench.sent(0), ["DELEX orders IFEQ T1"]);
}

/// n0 refuses the compare by both forms.
fn without_a_right() -> (Bench, redlock_core::LockId) {
    let mut bench = Bench::new(3);
    bench.at(1_000);
    let lock = bench.hold("orders");
    bench.extend(lock, 10_000);
    bench.forget();
    bench.reply(0, b"-NOPERM User u has no permissions to run the 'set' command\r\n");
    assert_eq!(bench.sent(0), ["EVAL extend 1 orders T1 10000"]);
    bench.reply(0, b"-ERR ACL failure in script: User u has no permissions to run the 'pexpire' command script: on @user_script:1.\r\n");
    bench.reply(1, OK);
    bench.reply(2, OK);
    bench.extended();
    (bench, lock)
}

#[test]
fn r22_a_node_whose_compare_lacks_a_right_gives_no_vote_until_its_next_handshake() {
    let (mut bench, _) = without_a_right();
    let NodeState::Unusable(fault) = state(&bench) else { panic!("{:?}", state(&bench)) };
    assert!(fault.to_string().contains("+pexpire"), "the missing right is named: {fault}");
    bench.try_acquire("invoices");
    if !bench.sent(0).is_empty() {
        bench.reply(0, OK);
    }
    bench.reply(1, OK);
    bench.nothing_told();
    bench.reply(2, NIL);
    bench.reply(2, ZERO);
    bench.reply(2, b":100\r\n");
    let error = bench.acquire_failed();
    assert!(matches!(&error.nodes[0].outcome, NodeOutcome::Unsent(NodeFault::MissingRight(_))), "{error:?}");
    assert!(error.to_string().contains("+pexpire"), "{error}");
    // The next handshake ends it.
    bench.at(2_500);
    bench.reconnect(0);
    assert_eq!(state(&bench), NodeState::Ready);
}

#[test]
fn r22_r7_what_was_set_on_it_is_released_on_the_connection_that_stands() {
    let (mut bench, lock) = without_a_right();
    bench.forget();
    bench.release(lock);
    assert_eq!(bench.sent(0), ["DELEX orders IFEQ T1"], "it may lack `pexpire` and have `del`");
}

#[test]
fn r22_a_node_without_a_right_is_connected_anew_now_and_then() {
    let (mut bench, lock) = without_a_right();
    bench.release(lock);
    for node in 0..3 {
        for _ in bench.sent(node) {
            bench.reply(node, ONE);
        }
    }
    bench.at(60_000);
    assert!(bench.disconnects(0) > 0);
}

#[test]
fn r22_r23_a_replica_a_cluster_member_and_a_sentinel_are_no_nodes() {
    let table: [(&str, &str, &str); 4] = [
        ("standalone", "replica", "replica"),
        ("cluster", "master", "cluster"),
        ("sentinel", "master", "sentinel"),
        ("standalone", "slave", "replica"),
    ];
    for (mode, role, text) in table {
        let mut bench = Bench::cold(1);
        bench.accept(0);
        let (mode, role) = (bulk(mode), bulk(role));
        let said = format!("%2\r\n$4\r\nmode\r\n{mode}$4\r\nrole\r\n{role}");
        bench.reply(0, said.as_bytes());
        bench.reply(0, b"-NOPERM x\r\n");
        bench.reply(0, b"+PONG\r\n");
        let NodeState::Down { fault, .. } = state(&bench) else { panic!() };
        assert!(fault.to_string().contains(text) && fault.is_fatal(), "{fault}");
    }
    let mut bench = Bench::cold(1);
    bench.accept(0);
    bench.reply(0, b"-ERR unknown command\r\n");
    bench.reply(0, bulk("run_id:1\r\nrole:slave\r\n").as_bytes());
    bench.reply(0, b"+PONG\r\n");
    assert!(matches!(state(&bench), NodeState::Down { fault: NodeFault::Replica, .. }));
}

#[test]
fn r22_what_is_no_redis_is_said_so() {
    for greeting in [
        &b"HTTP/1.1 400 Bad Request\r\n"[..],
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"+hello\r\n",
        b"\x15\x03\x03\x00\x02",
    ] {
        let mut bench = Bench::cold(1);
        bench.accept(0);
        bench.reply(0, greeting);
        let NodeState::Down { fault, .. } = state(&bench) else { panic!() };
        assert!(matches!(fault, NodeFault::NotRedis(_)), "{fault:?}");
        assert!(fault.is_fatal());
    }
}

#[test]
fn r22_max_clients_and_protected_mode_at_connect_are_told_with_their_text() {
    for (text, code) in [
        ("ERR max number of clients reached", ErrorCode::MaxClients),
        ("DENIED Redis is running in protected mode because ...", ErrorCode::Denied),
    ] {
        for close_first in [true, false] {
            let mut bench = Bench::cold(1);
            bench.accept(0);
            bench.reply(0, format!("-{text}\r\n").as_bytes());
            if close_first && bench.is_connected(0) {
                bench.cut(0);
            }
            let NodeState::Down { fault, .. } = state(&bench) else { panic!() };
            assert!(matches!(&fault, NodeFault::Server(error) if error.code() == code), "{fault:?}");
        }
    }
}

#[test]
fn r22_a_handshake_that_ends_with_the_connection_is_told_by_how_far_it_got() {
    let mut bench = Bench::cold(1);
    bench.accept(0);
    bench.cut(0);
    assert!(matches!(state(&bench), NodeState::Down { fault: NodeFault::ClosedInHandshake, .. }));
    bench.until_wanted(0);
    bench.accept(0);
    bench.reply(0, &hello("redis", "8.4.0"));
    bench.cut(0);
    assert!(matches!(state(&bench), NodeState::Down { fault: NodeFault::Closed, .. }));
}
