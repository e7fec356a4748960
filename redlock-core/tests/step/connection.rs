//! Connections and their replies: R21 and R23.

use crate::bench::*;
use redlock_core::{
    AcquireErrorKind, AcquireRequest, DisconnectReason, ErrorCode, Event, NodeFault, NodeOutcome, NodeState,
    RoundLoss,
};

fn fault(bench: &Bench, index: u8) -> NodeFault {
    match bench.client.node(node(index)).unwrap().state {
        NodeState::Down { fault, .. } | NodeState::Unusable(fault) | NodeState::Connecting(Some(fault)) => {
            fault
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn r21_a_reconnect_is_a_new_generation_and_what_an_old_one_says_is_dropped() {
    let mut bench = Bench::new(1);
    bench.at(1_000);
    let old = bench.connection(0);
    bench.try_acquire("orders");
    bench.reconnect(0);
    let new = bench.connection(0);
    assert_ne!(old, new);
    bench.acquire_failed();
    bench.reply(0, ZERO); // the release of the first
    bench.try_acquire("orders");
    bench.client.handle_input(old, OK, bench.now);
    bench.client.handle_connected(old, bench.now);
    bench.client.handle_disconnected(old, DisconnectReason::Closed, bench.now);
    bench.drain();
    bench.nothing_told();
    assert_eq!(bench.connection(0), new);
    bench.reply(0, OK);
    bench.acquired();
}

#[test]
fn r21_bytes_before_the_connection_is_made_or_for_no_node_are_dropped() {
    let mut bench = Bench::cold(1);
    let mut unknown = redlock_core::ConnectionId { node: node(0), generation: 1 };
    bench.client.handle_input(unknown, OK, bench.now);
    unknown.node = node(200);
    bench.client.handle_input(unknown, OK, bench.now);
    bench.client.handle_connected(unknown, bench.now);
    bench.client.handle_disconnected(unknown, DisconnectReason::Closed, bench.now);
    bench.drain();
    bench.up(0);
}

#[test]
fn r21_b28_b32_replies_match_commands_by_their_order() {
    let mut bench = Bench::new(1);
    let operations: Vec<_> = (0..5).map(|index| bench.try_acquire(&format!("key{index}"))).collect();
    // The second is answered with an error: the other four get their own answers.
    bench.reply(0, b"+OK\r\n-OOM command not allowed\r\n_\r\n+OK\r\n_\r\n");
    let told = bench.told();
    let granted = told.iter().filter_map(|event| match event {
        Event::Acquired { operation, .. } => Some(*operation),
        _ => None,
    });
    assert_eq!(granted.collect::<Vec<_>>(), [operations[0], operations[3]]);
}

#[test]
fn r21_b31_every_answer_at_every_split_point_and_byte_by_byte() {
    let answers: [&[u8]; 6] = [
        b"+OK\r\n",
        b"_\r\n",
        b"-OOM x\r\n",
        b">2\r\n$10\r\ninvalidate\r\n_\r\n+OK\r\n",
        b"|1\r\n+a\r\n:1\r\n+OK\r\n",
        b"*0\r\n",
    ];
    for answer in answers {
        let whole = outcome_of(&[answer]);
        for split in 1..answer.len() {
            let (head, tail) = answer.split_at(split);
            assert_eq!(outcome_of(&[head, tail]), whole, "{answer:?} at {split}");
        }
        let bytes: Vec<&[u8]> = answer.chunks(1).collect();
        assert_eq!(outcome_of(&bytes), whole, "{answer:?}");
    }
}

fn outcome_of(parts: &[&[u8]]) -> String {
    let mut bench = Bench::new(1);
    bench.at(1_000);
    bench.try_acquire("orders");
    for part in parts {
        if bench.is_connected(0) {
            bench.reply(0, part);
        }
    }
    format!("{:?} {:?}", bench.told(), bench.is_connected(0))
}

#[test]
fn r21_b31_a_broken_frame_closes_the_connection_and_is_no_vote() {
    let long_line = [b"+".to_vec(), vec![b'x'; 200_000]].concat();
    let nested = b"*1\r\n".repeat(100_000);
    let hostile: Vec<&[u8]> = vec![
        b"*1000000000\r\n",
        b"$9223372036854775807\r\n",
        b"$-2\r\n",
        b"*-2\r\n",
        b":99999999999999999999\r\n",
        &nested,
        &long_line,
        b"$3\r\nabcde",
        b"+OK\n",
        b"hello\r\n",
        b"\0\0\0",
        b"-ERR bad\rtext\r\n",
        b"\x16\x03\x01\x02\x00",
    ];
    for bytes in hostile {
        let mut bench = Bench::new(3);
        bench.try_acquire("orders");
        bench.reply(1, bytes);
        assert!(!bench.is_connected(1), "{:?}", &bytes[..bytes.len().min(20)]);
        assert!(matches!(fault(&bench, 1), NodeFault::Protocol(_)));
        bench.reply(0, OK);
        bench.nothing_told();
        bench.reply(2, OK);
        bench.acquired();
    }
}

#[test]
fn r21_b31_line_breaks_in_an_error_never_shift_later_replies() {
    let mut bench = Bench::new(1);
    bench.try_acquire("a");
    bench.try_acquire("b");
    // "text" is no frame: it closes, and ":1" or "+OK" behind it is nobody's answer.
    bench.reply(0, b"-ERR bad\r\ntext\r\n+OK\r\n");
    assert!(!bench.is_connected(0));
    assert!(!bench.told().iter().any(|event| matches!(event, Event::Acquired { .. })));
}

#[test]
fn r21_b31_pushes_and_attributes_answer_nothing() {
    let push: &[u8] = b">2\r\n$10\r\ninvalidate\r\n*1\r\n$6\r\norders\r\n";
    let attribute: &[u8] = b"|1\r\n$3\r\nttl\r\n:9\r\n";
    let mut bench = Bench::new(1);
    bench.reply(0, push); // with nothing outstanding
    bench.try_acquire("orders");
    bench.reply(0, &[push, push].concat());
    bench.nothing_told();
    bench.reply(0, &[attribute, OK, push].concat());
    let (lock, _) = bench.acquired();
    bench.release(lock);
    bench.reply(0, &[push, ONE, push].concat());
    bench.released();
    assert!(bench.is_connected(0));
}

#[test]
fn r21_b31_a_push_where_resp3_was_never_agreed_on_closes() {
    let mut bench = Bench::of(1, Says::NoHello);
    bench.reply(0, b">1\r\n+x\r\n");
    assert!(!bench.is_connected(0));
}

#[test]
fn r21_unsolicited_errors_answer_nothing_and_are_the_reason_of_the_close() {
    let mut bench = Bench::new(1);
    bench.at(2_000);
    bench.reply(0, b"-ERR max number of clients reached\r\n");
    assert!(bench.is_connected(0));
    bench.cut(0);
    let NodeFault::Server(error) = bench
        .notices()
        .iter()
        .find_map(|event| match event {
            Event::NodeDown { fault, .. } => Some(fault.clone()),
            _ => None,
        })
        .unwrap()
    else {
        panic!()
    };
    assert_eq!(error.code(), ErrorCode::MaxClients);
}

#[test]
fn r21_anything_else_without_being_asked_closes() {
    for bytes in [OK, ZERO, NIL, b"$3\r\nabc\r\n"] {
        let mut bench = Bench::new(1);
        bench.reply(0, bytes);
        assert!(!bench.is_connected(0), "{bytes:?}");
    }
}

#[test]
fn r21_an_error_that_closes_the_connection_answers_no_request() {
    for text in [
        "ERR max number of clients reached",
        "ERR Protocol error: invalid bulk length",
        "DENIED Redis is running in protected mode",
    ] {
        let mut bench = Bench::new(3);
        bench.at(1_000);
        let request = bench.request("orders").ttl(ms(100)).try_once();
        bench.ask(request);
        bench.reply(2, format!("-{text}\r\n").as_bytes());
        assert!(!bench.is_connected(2), "{text}");
        bench.reply(0, NIL);
        for node in [0, 1] {
            if bench.sent(node).len() > 1 {
                bench.reply(node, ZERO);
            }
        }
        // Whether the SET ran is not known: its release is owed for as long as it takes.
        bench.at(30_000);
        bench.until_wanted(2);
        bench.up(2);
        assert_eq!(bench.sent(2), ["DELEX orders IFEQ T1"], "{text}");
    }
}

#[test]
fn r21_what_cannot_be_an_answer_to_the_question_what_stands_in_the_way_closes() {
    let mut bench = Bench::new(1);
    bench.try_acquire("orders");
    bench.reply(0, NIL);
    bench.reply(0, ZERO);
    bench.reply(0, OK); // to PTTL
    assert!(!bench.is_connected(0));
    bench.at(500);
    assert_eq!(bench.acquire_failed().kind, AcquireErrorKind::Contended);
}

#[test]
fn r21_the_holder_is_told_a_key_without_expiry_is_no_lock_of_ours() {
    for (pttl, text) in [
        (&b":4321\r\n"[..], "4.321s"),
        (b":-1\r\n", "no lock of ours"),
        (b":-2\r\n", "gone by now"),
        (b"-NOPERM x\r\n", "held by another"),
    ] {
        let mut bench = Bench::new(1);
        bench.try_acquire("orders");
        bench.reply(0, NIL);
        bench.reply(0, ZERO);
        bench.reply(0, pttl);
        let error = bench.acquire_failed();
        assert!(error.to_string().contains(text), "{error}");
    }
}

#[test]
fn r21_b55_a_key_of_another_type_or_with_an_empty_string_is_held_by_another() {
    let mut bench = Bench::new(1);
    let lock = bench.hold("orders");
    bench.release(lock);
    bench.reply(0, b"-ERR Key should be of string type if conditions are specified\r\n");
    assert_eq!(bench.released(), redlock_core::ReleaseOutcome::NotMine);
}

#[test]
fn r21_the_payload_of_a_drain_is_one_packet_and_the_commands_are_in_order() {
    let mut bench = Bench::new(1);
    bench.payloads(0);
    for resource in ["a", "b", "c"] {
        let request = bench.request(resource);
        bench.client.acquire(request, bench.now);
    }
    bench.drain();
    assert_eq!(bench.payloads(0).len(), 1);
    assert_eq!(bench.sent(0), ["SET a T1 NX PX 10000", "SET b T2 NX PX 10000", "SET c T3 NX PX 10000"]);
}

#[test]
fn r21_b31_keys_that_look_like_protocol_arrive_intact() {
    for key in [&b"*3\r\n$5\r\n"[..], b"\r\n", b"\0", b"$-1"] {
        let mut bench = Bench::new(1);
        bench.payloads(0);
        bench.ask(AcquireRequest::new(key.to_vec(), [1; 16]).try_once());
        let commands = decode(&bench.payloads(0).concat());
        assert_eq!((commands.len(), commands[0].len(), &commands[0][1][..]), (1, 6, key));
    }
}

/// What a server's state looks like in an error.
const STATES: [&str; 15] = [
    "LOADING Redis is loading the dataset in memory",
    "READONLY You can't write against a read only replica.",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    "MISCONF Errors writing to the AOF file: No space left on device",
    "OOM command not allowed when used memory > 'maxmemory'.",
    "NOPERM User u has no permissions to run the 'set' command",
    "NOAUTH Authentication required.",
    "MOVED 12182 127.0.0.1:7001",
    "ASK 7629 127.0.0.1:7001",
    "CLUSTERDOWN The cluster is down",
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    "NOREPLICAS Not enough good replicas to write.",
    "TRYAGAIN Multiple keys request during rehashing of slot",
    "LOCKED whatever that is",
    "ERR Error running script (call to f_abc): @user_script:1: -READONLY You can't write against a read only replica.",
];

#[test]
fn r23_b34_a_servers_state_is_a_node_failure_with_its_text_not_contention_never_a_vote() {
    for text in STATES {
        let line = format!("-{text}\r\n");
        let mut bench = Bench::new(3);
        bench.try_acquire("orders");
        bench.reply(0, line.as_bytes());
        bench.reply(1, line.as_bytes());
        let error = bench.acquire_failed();
        assert_eq!(error.kind, AcquireErrorKind::NoQuorum, "{text}");
        let NodeOutcome::Failed(NodeFault::Server(said)) = &error.nodes[0].outcome else {
            panic!("{text} {error:?}")
        };
        assert!(text.starts_with(said.text()) || said.text().starts_with(text), "{said:?}");

        let mut bench = Bench::new(3);
        bench.try_acquire("orders");
        bench.reply(0, line.as_bytes());
        bench.reply(1, OK);
        bench.reply(2, OK);
        let (lock, _) = bench.acquired();
        // The same to an extension and to a release.
        bench.extend(lock, 10_000);
        bench.reply(1, line.as_bytes());
        let told = bench.told();
        assert!(!told.iter().any(|event| matches!(event, Event::Extended { .. })), "{text} {told:?}");
    }
}

#[test]
fn r23_b34_to_a_release_it_is_not_released() {
    for text in STATES {
        let line = format!("-{text}\r\n");
        let mut bench = Bench::of(3, REDIS_7);
        let lock = bench.hold("orders");
        bench.release(lock);
        bench.reply_all(line.as_bytes());
        bench.at(500);
        let outcome = bench.released();
        assert!(matches!(outcome, redlock_core::ReleaseOutcome::Unknown { .. }), "{text} {outcome:?}");
    }
}

#[test]
fn r23_readonly_masterdown_or_loading_on_a_live_connection_close_it() {
    for text in STATES {
        let replaced = ["READONLY", "MASTERDOWN", "LOADING", "ERR Error running"]
            .iter()
            .any(|word| text.starts_with(word));
        let mut bench = Bench::new(3);
        bench.at(1_000);
        bench.try_acquire("orders");
        bench.reply(0, format!("-{text}\r\n").as_bytes());
        assert_eq!(!bench.is_connected(0), replaced, "{text}");
        assert_eq!(bench.is_wanted(0), replaced, "a new one is made: {text}");
    }
}

#[test]
fn r23_b34_the_text_says_what_to_do() {
    let mut bench = Bench::new(1);
    bench.try_acquire("orders");
    bench.reply(0, b"-READONLY You can't write against a read only replica.\r\n");
    let error = bench.acquire_failed();
    assert!(error.to_string().contains("replica"), "{error}");
    assert!(std::error::Error::source(&error).is_some(), "the cause");
}

#[test]
fn r23_b34_a_wait_that_ends_with_faults_says_no_quorum() {
    let mut bench = Bench::new(3);
    let request = bench.request("orders").wait(ms(100));
    bench.ask(request);
    for now in 0..200 {
        bench.at(now);
        for node in 0..3 {
            for _ in bench.sent(node) {
                bench.reply(node, b"-BUSY Redis is busy running a script\r\n");
            }
        }
    }
    assert_eq!(bench.acquire_failed().kind, AcquireErrorKind::WaitOver { last: RoundLoss::NoQuorum });
}

#[test]
fn r21_b32_noscript_to_everything_ends_with_an_error_that_names_it() {
    let mut bench = Bench::of(3, REDIS_7);
    let lock = bench.hold("orders");
    bench.forget();
    bench.extend(lock, 10_000);
    for _ in 0..5 {
        for node in 0..3 {
            for _ in bench.sent(node) {
                bench.reply(node, b"-NOSCRIPT No matching script. Please use EVAL.\r\n");
            }
        }
    }
    let error = bench.extend_failed();
    assert!(error.to_string().contains("NOSCRIPT"), "{error}");
    assert!(bench.is_held(lock));
}
