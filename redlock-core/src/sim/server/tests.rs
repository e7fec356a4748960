//! What a node promises beyond single replies, which `tests/sim_replies.rs` holds against real servers.

use alloc::vec::Vec;
use core::time::Duration;

use super::*;
use crate::wire::script::{EXTEND, EXTEND_ALL, RELEASE, RELEASE_ALL, SET_ALL};

const START: Instant = Instant::from_secs(50);

fn at(millis: u64) -> Instant {
    START.saturating_add(Duration::from_millis(millis))
}

fn server() -> Server {
    Server::new(Dialect::Redis7, 1)
}

/// A request of words that have no spaces in them.
fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn ask(server: &mut Server, session: SessionId, command: &str, now: Instant) -> String {
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    ask_words(server, session, &words, now)
}

fn ask_words(server: &mut Server, session: SessionId, words: &[&[u8]], now: Instant) -> String {
    server.receive(session, &request(words), now);
    String::from_utf8(server.output(session)).unwrap()
}

fn push(key: &str) -> String {
    format!(">2\r\n$10\r\ninvalidate\r\n*1\r\n${}\r\n{key}\r\n", key.len())
}

fn said(server: &mut Server, session: SessionId) -> String {
    String::from_utf8(server.output(session)).unwrap()
}

/// A session that speaks RESP3 and tracks what it asks for.
fn tracker(server: &mut Server) -> SessionId {
    let session = server.open(START);
    assert!(ask(server, session, "HELLO 3", START).starts_with("%7"));
    assert_eq!(ask(server, session, "CLIENT TRACKING ON OPTIN", START), "+OK\r\n");
    session
}

fn arm(server: &mut Server, session: SessionId, key: &str, now: Instant) -> String {
    assert_eq!(ask(server, session, "CLIENT CACHING YES", now), "+OK\r\n");
    ask(server, session, &format!("PTTL {key}"), now)
}

#[test]
fn a_key_is_held_for_its_whole_ttl_and_free_one_millisecond_later() {
    let mut server = server();
    let session = server.open(START);
    // Half a millisecond into the server's millisecond: the ttl counts from the millisecond's beginning.
    let set_at = START.saturating_add(Duration::from_micros(500));
    assert_eq!(ask(&mut server, session, "SET k v NX PX 50", set_at), "+OK\r\n");
    assert_eq!(ask(&mut server, session, "SET k w NX PX 50", at(50)), "$-1\r\n");
    assert_eq!(ask(&mut server, session, "PTTL k", at(50)), ":0\r\n");
    assert_eq!(server.value(b"k", at(50)), Some(b"v".to_vec()));
    assert_eq!(server.keys(at(51)), Vec::<Vec<u8>>::new());
    assert_eq!(ask(&mut server, session, "SET k w NX PX 50", at(51)), "+OK\r\n");
    assert_eq!(server.pttl(b"k", at(60)), Some(41));
}

#[test]
fn expiry_goes_by_the_servers_own_clock() {
    let mut server = server();
    server.put(b"k", b"v", Some(Duration::from_secs(60)), START);
    server.jump_clock(120_000, at(10));
    assert_eq!(server.value(b"k", at(10)), None, "a jump forward frees what was held");

    server.put(b"k", b"v", Some(Duration::from_millis(300)), at(20));
    server.jump_clock(-3_600_000, at(20));
    assert_eq!(server.pttl(b"k", at(20)), Some(3_600_300), "a jump back keeps it");

    server.set_clock(0, 1_000_000, at(30));
    server.put(b"k", b"v", Some(Duration::from_millis(300)), at(30));
    assert_eq!(server.pttl(b"k", at(130)), Some(100), "twice as fast");
}

#[test]
fn uptime_follows_the_wall_clock_and_run_ids_are_new_with_every_start() {
    let mut server = server();
    let first = server.run_id().to_string();
    assert_eq!((first.len(), first == Server::new(Dialect::Valkey9, 1).run_id()), (40, true));
    assert_ne!(first, Server::new(Dialect::Redis7, 2).run_id());
    server.restart(Memory::Keep, START);
    assert_ne!(first, server.run_id());

    let session = server.open(at(5_999));
    let info = ask(&mut server, session, "INFO server", at(5_999));
    assert!(info.contains("uptime_in_seconds:5\r\n") && info.contains(server.run_id()), "{info}");
    server.jump_clock(-3_600_000, at(6_000));
    let info = ask(&mut server, session, "INFO server", at(6_000));
    assert!(info.contains("uptime_in_seconds:-3594\r\n"), "{info}");
}

#[test]
fn a_restart_closes_everything_and_keeps_or_loses_the_data() {
    for (memory, kept) in [(Memory::Keep, Some(b"v".to_vec())), (Memory::Lose, None)] {
        let mut server = server();
        let session = server.open(START);
        ask(&mut server, session, "SET k v PX 5000", START);
        server.restart(memory, at(10));
        assert!(server.wants_close(session) && server.is_up());
        server.receive(session, b"SET k late\r\n", at(11));
        assert_eq!(server.value(b"k", at(11)), kept);
        assert_eq!(server.pttl(b"k", at(11)), kept.map(|_| 4_989), "the expiry is absolute");
    }
}

#[test]
fn a_stopped_node_is_down_until_it_is_started() {
    let mut server = server();
    server.put(b"k", b"v", None, START);
    let run_id = server.run_id().to_string();
    server.stop();
    assert!(!server.is_up());
    let refused = server.open(START);
    assert!(server.wants_close(refused));
    server.start(at(1));
    assert!(server.is_up() && server.run_id() != run_id);
    assert_eq!(server.value(b"k", at(1)), Some(b"v".to_vec()));
}

#[test]
fn r7_commands_of_a_gone_client_run_at_the_end_of_a_pause_with_their_full_ttl() {
    let mut server = server();
    let gone = server.open(START);
    server.pause();
    server.receive(gone, b"SET k gone NX PX 1000\r\n", at(10));
    server.receive(gone, b"SET half written", at(10));
    server.hang_up(gone);
    let next = server.open(at(20));
    server.receive(next, b"SET k next NX PX 1000\r\n", at(20));
    assert_eq!(server.output(next), b"");
    assert!(!server.wants_close(next) && server.is_paused());

    server.resume(at(700));
    assert_eq!(server.value(b"k", at(700)), Some(b"gone".to_vec()));
    assert_eq!(server.pttl(b"k", at(700)), Some(1_000));
    assert_eq!(server.output(next), b"$-1\r\n");
    assert!(server.wants_close(gone));
}

#[test]
fn a_timed_pause_ends_by_itself_at_its_instant() {
    let mut server = server();
    let session = server.open(START);
    server.pause_for(Duration::from_millis(100), START);
    server.receive(session, b"SET k v PX 1000\r\n", at(10));
    assert_eq!(server.next_event(), Some(at(100)));
    server.tick(at(99));
    assert_eq!(server.output(session), b"");
    server.tick(at(150));
    assert_eq!(server.output(session), b"+OK\r\n");
    assert_eq!(server.pttl(b"k", at(100)), Some(1_000));
}

#[test]
fn a_restart_loses_what_waited_for_the_end_of_a_pause() {
    let mut server = server();
    let session = server.open(START);
    server.pause();
    server.receive(session, b"SET k v\r\n", START);
    server.restart(Memory::Keep, at(1));
    assert!(!server.is_paused());
    assert_eq!(server.value(b"k", at(1)), None);
}

#[test]
fn a_muted_node_runs_commands_and_says_nothing() {
    let mut server = server();
    let session = server.open(START);
    server.mute(true);
    assert_eq!(ask(&mut server, session, "SET k v", START), "");
    assert_eq!(server.value(b"k", START), Some(b"v".to_vec()));
    server.mute(false);
    assert_eq!(ask(&mut server, session, "GET k", START), "$1\r\nv\r\n");
}

#[test]
fn scripted_failures_come_in_order_and_nothing_runs() {
    let mut server = server();
    let session = server.open(START);
    server.fail_next("set", "LOCKED by the moon");
    server.fail_next("SET", "ERR again");
    server.fail_always("client|tracking", "ERR no");
    assert_eq!(ask(&mut server, session, "SET k v", START), "-LOCKED by the moon\r\n");
    assert_eq!(ask(&mut server, session, "CLIENT ID", START), ":1\r\n");
    assert_eq!(ask(&mut server, session, "set k v", START), "-ERR again\r\n");
    assert_eq!(server.value(b"k", START), None);
    assert_eq!(ask(&mut server, session, "SET k v", START), "+OK\r\n");
    for _ in 0..2 {
        assert_eq!(ask(&mut server, session, "CLIENT TRACKING ON", START), "-ERR no\r\n");
    }
    server.clear_failures();
    assert_eq!(ask(&mut server, session, "CLIENT TRACKING ON", START), "+OK\r\n");
}

#[test]
fn a_push_comes_once_for_each_registration() {
    let mut server = server();
    let (waiter, other) = (tracker(&mut server), server.open(START));
    ask(&mut server, other, "SET k v PX 1000", START);
    assert_eq!(arm(&mut server, waiter, "k", START), ":1000\r\n");
    ask(&mut server, other, "SET k w NX PX 1000", START);
    assert_eq!(said(&mut server, waiter), "", "nothing was changed");
    ask(&mut server, other, "DEL k", START);
    assert_eq!(said(&mut server, waiter), push("k"));
    ask(&mut server, other, "SET k w NX PX 1000", START);
    assert_eq!(said(&mut server, waiter), "", "the registration has ended");

    // Armed only by a read right after `CACHING YES`; other commands use it up.
    ask(&mut server, waiter, "CLIENT CACHING YES", START);
    ask(&mut server, waiter, "PING", START);
    ask(&mut server, waiter, "PTTL k", START);
    ask(&mut server, other, "DEL k", START);
    assert_eq!(said(&mut server, waiter), "");
}

#[test]
fn a_push_comes_for_the_same_name_in_another_database() {
    let mut server = server();
    let (waiter, other) = (tracker(&mut server), server.open(START));
    arm(&mut server, waiter, "k", START);
    ask(&mut server, other, "SELECT 3", START);
    ask(&mut server, other, "SET k v", START);
    assert_eq!(said(&mut server, waiter), push("k"));
}

#[test]
fn own_writes_are_pushed_behind_their_reply() {
    let mut server = server();
    let waiter = tracker(&mut server);
    arm(&mut server, waiter, "k", START);
    assert_eq!(ask(&mut server, waiter, "SET k v PX 5000", START), format!("+OK\r\n{}", push("k")));
    arm(&mut server, waiter, "k", START);
    assert_eq!(ask(&mut server, waiter, "FLUSHALL", START), "+OK\r\n>2\r\n$10\r\ninvalidate\r\n_\r\n");
}

#[test]
fn expiry_is_an_event_only_where_someone_waits_for_it() {
    let mut server = server();
    let waiter = tracker(&mut server);
    server.put(b"k", b"v", Some(Duration::from_millis(80)), START);
    server.put(b"unwatched", b"v", Some(Duration::from_millis(10)), START);
    assert_eq!(server.next_event(), None);
    arm(&mut server, waiter, "k", START);
    assert_eq!(server.next_event(), Some(at(81)));
    server.tick(at(80));
    assert_eq!(said(&mut server, waiter), "");
    server.tick(at(81));
    assert_eq!(said(&mut server, waiter), push("k"));
    assert_eq!(server.next_event(), None);
}

#[test]
fn a_key_that_ran_out_unnoticed_is_pushed_when_it_is_touched() {
    let mut server = server();
    let (waiter, other) = (tracker(&mut server), server.open(START));
    server.put(b"k", b"v", Some(Duration::from_millis(80)), START);
    arm(&mut server, waiter, "k", START);
    assert_eq!(ask(&mut server, other, "SET k w NX PX 80", at(100)), "+OK\r\n");
    assert_eq!(said(&mut server, waiter), push("k"));
}

#[test]
fn broadcast_tells_of_all_changes_of_one_round_in_one_push() {
    let mut server = server();
    let (watcher, other) = (server.open(START), server.open(START));
    ask(&mut server, watcher, "HELLO 3", START);
    assert_eq!(ask(&mut server, watcher, "CLIENT TRACKING ON BCAST PREFIX lock:", START), "+OK\r\n");
    server.receive(other, b"SET lock:a 1\r\nSET b 1\r\nSET lock:c 1\r\n", START);
    assert_eq!(
        said(&mut server, watcher),
        ">2\r\n$10\r\ninvalidate\r\n*2\r\n$6\r\nlock:a\r\n$6\r\nlock:c\r\n"
    );
    assert_eq!(ask(&mut server, watcher, "SET lock:d 1", START), format!("+OK\r\n{}", push("lock:d")));
}

#[test]
fn a_gone_session_is_told_nothing() {
    let mut server = server();
    let waiter = tracker(&mut server);
    arm(&mut server, waiter, "k", START);
    server.hang_up(waiter);
    assert!(server.remove(b"k", START) || server.pending().is_empty());
    assert_eq!(server.next_event(), None);
}

#[test]
fn scripts_over_several_keys_are_all_or_none() {
    let mut server = server();
    let session = server.open(START);
    let run = |server: &mut Server, script: &str, words: &[&[u8]]| {
        let words = [&[b"EVAL", script.as_bytes(), b"2", b"a", b"b"], words].concat();
        ask_words(server, session, &words, START)
    };
    server.put(b"b", b"foreign", None, START);
    assert_eq!(run(&mut server, SET_ALL, &[b"t", b"1000"]), ":0\r\n");
    assert_eq!(server.keys(START), [b"b"]);
    server.put_list(b"b", &[b"x"], None, START);
    assert_eq!(run(&mut server, SET_ALL, &[b"t", b"1000"]), ":0\r\n", "a list is no lock of ours");
    assert_eq!(run(&mut server, RELEASE_ALL, &[b"t"]), ":0\r\n");

    server.remove(b"b", START);
    server.put(b"a", b"t", Some(Duration::from_millis(10)), START);
    assert_eq!(run(&mut server, EXTEND_ALL, &[b"t", b"900"]), ":0\r\n");
    assert_eq!(run(&mut server, SET_ALL, &[b"t", b"1000"]), ":1\r\n", "what is ours already stays as it is");
    assert_eq!((server.pttl(b"a", START), server.pttl(b"b", START)), (Some(10), Some(1_000)));
    assert_eq!(run(&mut server, EXTEND_ALL, &[b"t", b"900"]), ":1\r\n");
    assert_eq!((server.pttl(b"a", START), server.pttl(b"b", START)), (Some(900), Some(900)));
    server.put(b"a", b"foreign", None, START);
    assert_eq!(run(&mut server, RELEASE_ALL, &[b"t"]), ":1\r\n");
    assert_eq!(server.keys(START), [b"a"]);
}

#[test]
fn out_of_memory_stops_a_script_only_before_its_first_write() {
    let mut server = server();
    let session = server.open(START);
    server.set_condition(Some(Condition::Oom));
    let words: &[&[u8]] = &[b"EVAL", SET_ALL.as_bytes(), b"2", b"a", b"b", b"t", b"1000"];
    let reply = ask_words(&mut server, session, words, START);
    assert!(reply.starts_with("-OOM ") && reply.contains(" script: "), "{reply}");
    assert_eq!(server.keys(START), Vec::<Vec<u8>>::new());
    server.put(b"a", b"t", None, START);
    assert_eq!(
        ask_words(&mut server, session, &[b"EVAL", EXTEND.as_bytes(), b"1", b"a", b"t", b"9"], START),
        ":1\r\n"
    );
    assert_eq!(
        ask_words(&mut server, session, &[b"EVAL", RELEASE.as_bytes(), b"1", b"a", b"t"], START),
        ":1\r\n"
    );
}

#[test]
fn a_right_that_is_missing_inside_a_script_is_an_err_with_the_suffix_only_where_it_was_raised() {
    let mut server =
        Server::new(Dialect::Valkey9, 1).with_user("u", "p", &["+eval", "+exists", "+set", "+del"]);
    let session = server.open(START);
    assert_eq!(ask(&mut server, session, "AUTH u p", START), "+OK\r\n");
    server.put(b"a", b"t", None, START);
    let denied = "-ERR ACL failure in script: User u has no permissions to run the 'get' command";
    // `RELEASE` calls GET, `SET_ALL` returns what its protected call got.
    let release: &[&[u8]] = &[b"EVAL", RELEASE.as_bytes(), b"1", b"a", b"t"];
    assert_eq!(
        ask_words(&mut server, session, release, START),
        format!("{denied} script: on @user_script:1.\r\n")
    );
    let set_all: &[&[u8]] = &[b"EVAL", SET_ALL.as_bytes(), b"1", b"a", b"t", b"1000"];
    assert_eq!(ask_words(&mut server, session, set_all, START), format!("{denied}\r\n"));
}

#[test]
fn an_unknown_script_says_that_this_is_a_simulation() {
    let mut server = server();
    let session = server.open(START);
    assert_eq!(
        ask_words(&mut server, session, &[b"EVAL", b"return 1", b"0"], START),
        "-ERR simulated node: unknown script\r\n"
    );
}

#[test]
fn clients_can_be_killed() {
    let mut server = server();
    let (one, two) = (server.open(START), server.open(START));
    assert_eq!(ask(&mut server, one, "CLIENT KILL ID 2", START), ":1\r\n");
    assert!(server.wants_close(two) && !server.wants_close(one));
    assert_eq!(ask(&mut server, two, "SET k v", START), "", "what is sent to a closed connection is lost");
    assert_eq!(ask(&mut server, one, "CLIENT KILL ID 1", START), ":0\r\n", "SKIPME is the default");
    assert_eq!(ask(&mut server, one, "CLIENT KILL ID 1 SKIPME no", START), ":1\r\n");
    assert!(server.wants_close(one));
    let three = server.open(START);
    server.kill_sessions();
    assert!(server.wants_close(three));
    assert_eq!(server.value(b"k", START), None);
}

#[test]
fn r26_the_log_has_every_request_and_no_password() {
    let mut server = server().with_password("sesame");
    let session = server.open(START);
    ask(&mut server, session, "AUTH sesame", START);
    ask(&mut server, session, "HELLO 3 AUTH default sesame SETNAME ann", START);
    ask(&mut server, session, "SET k v", at(3));
    assert!(!format!("{server:?}").contains("sesame"));
    let log = server.log();
    assert!(log.iter().all(|entry| entry.args.iter().all(|arg| arg != b"sesame")));
    let [_, hello, set] = log else { panic!("{log:?}") };
    assert_eq!((hello.args.len(), hello.args[6].as_slice()), (7, b"ann".as_slice()));
    assert!(set.is("set k") && !set.is("set j") && set.at == at(3) && set.reply == b"+OK\r\n");
}

#[test]
fn the_log_is_capped() {
    let mut server = server();
    let session = server.open(START);
    for number in 0..Server::LOG_LIMIT * 3 {
        server.receive(session, format!("ECHO {number}\r\n").as_bytes(), START);
        drop(server.output(session));
    }
    let log = server.log();
    assert!((Server::LOG_LIMIT..=Server::LOG_LIMIT * 2).contains(&log.len()));
    let last = (Server::LOG_LIMIT * 3 - 1).to_string();
    assert_eq!(log.last().map(|entry| entry.args[1].clone()), Some(last.into_bytes()));
}

#[test]
fn a_client_that_does_not_read_is_cut_off_in_the_middle_of_its_pipeline() {
    let mut server = server();
    let session = server.open(START);
    server.put(b"big", &alloc::vec![b'x'; 1 << 20], None, START);
    server.receive(session, &b"GET big\r\n".repeat(100), START);
    server.receive(session, b"SET k v\r\n", START);
    assert!(server.wants_close(session));
    assert_eq!(server.value(b"k", START), None);
    assert!(server.log().len() < 100 && server.log().iter().all(|entry| entry.reply.len() <= 1_024));
}

#[test]
fn the_same_calls_give_the_same_bytes() {
    let run = || {
        let mut server = Server::new(Dialect::Valkey9, 11);
        let sessions: Vec<SessionId> = (0..3).map(|_| tracker(&mut server)).collect();
        let mut said = Vec::new();
        for round in 0..200_u64 {
            for session in &sessions {
                let key = round * 7 % 5;
                server.receive(
                    *session,
                    format!("CLIENT CACHING YES\r\nPTTL k{key}\r\n").as_bytes(),
                    at(round),
                );
                server.receive(
                    *session,
                    format!("SET k{key} v NX PX {}\r\nINFO\r\n", round % 9 + 1).as_bytes(),
                    at(round),
                );
                said.push(server.output(*session));
            }
            server.tick(at(round));
        }
        said
    };
    assert!(run() == run());
}

#[test]
fn a_key_without_an_expiry_is_told_from_no_key() {
    let mut server = server();
    let session = server.open(START);
    ask(&mut server, session, "SET a v PX 100", START);
    assert!(!server.has_key_without_expiry());
    ask(&mut server, session, "SET b v", START);
    assert!(server.has_key_without_expiry());
    assert_eq!(server.pttl(b"b", START), None);
}

#[test]
fn nothing_is_logged_while_no_log_is_kept() {
    let mut server = server();
    let session = server.open(START);
    server.keep_log(false);
    ask(&mut server, session, "PING", START);
    assert_eq!(server.log().len(), 0);
    server.keep_log(true);
    ask(&mut server, session, "PING", START);
    assert_eq!(server.log().len(), 1);
}
