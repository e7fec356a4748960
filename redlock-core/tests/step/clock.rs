//! A node's wall clock that is set shows in its answers to TIME.

use crate::bench::*;
use redlock_core::Event;

fn time(millis: u64) -> Vec<u8> {
    let (secs, micros) = (bulk(&(millis / 1_000).to_string()), bulk(&(millis % 1_000 * 1_000).to_string()));
    format!("*2\r\n{secs}{micros}").into_bytes()
}

/// Asks all nodes something at `millis`, and has them answer: each one its time, or that it may not be asked. Answers with
/// what the first one was sent.
fn use_nodes(bench: &mut Bench, millis: u64, times: Option<[u64; 3]>) -> Vec<String> {
    bench.at(millis);
    bench.try_acquire("orders");
    let mut asked = Vec::new();
    while asked.last().is_none_or(|last: &Vec<String>| !last.is_empty()) {
        let mut round = Vec::new();
        for node in 0..3 {
            let Some(command) = bench.next_command(node) else { continue };
            match command.split(' ').next() {
                Some("SET") => bench.reply(node, NIL),
                Some("DELEX") => bench.reply(node, ZERO),
                Some("PTTL") => bench.reply(node, b":-2\r\n"),
                Some("TIME") => match times {
                    Some(times) => bench.reply(node, &time(times[usize::from(node)])),
                    None => bench
                        .reply(node, b"-NOPERM this user has no permissions to run the 'time' command\r\n"),
                },
                other => panic!("{other:?}"),
            }
            round.push(command);
        }
        asked.push(round);
    }
    assert!((0..3).all(|node| bench.is_connected(node)));
    asked.into_iter().filter_map(|round| round.into_iter().next()).collect()
}

fn watching() -> Bench {
    Bench::with(3, |config| config.watch_clocks(true))
}

#[test]
fn nodes_are_asked_for_their_time_along_with_something_else_every_ten_seconds() {
    let mut bench = watching();
    let usual = ["SET orders T1 NX PX 10000", "DELEX orders IFEQ T1", "PTTL orders"];
    assert_eq!(use_nodes(&mut bench, 9_999, None), usual);
    bench.payloads(0);
    bench.at(60_000);
    assert!(bench.sent_to_all().is_empty(), "an idle client is quiet");
    let asked = use_nodes(&mut bench, 60_000, Some([0; 3]));
    assert_eq!(asked[..2], ["SET orders T2 NX PX 10000", "TIME"]);
    let payloads = bench.payloads(0);
    assert_eq!(decode(&payloads[0]).len(), 2, "one payload");
    assert!(!use_nodes(&mut bench, 69_999, None).contains(&"TIME".to_string()));
    assert!(use_nodes(&mut bench, 70_000, Some([0; 3])).contains(&"TIME".to_string()));
}

#[test]
fn a_step_is_told_with_its_size_and_is_no_fault() {
    let mut bench = watching();
    use_nodes(&mut bench, 10_000, Some([500_000; 3]));
    bench.notices();
    use_nodes(&mut bench, 20_000, Some([510_000, 570_000, 507_000]));
    let notices = bench.notices();
    assert_eq!(notices.len(), 2, "{notices:?}");
    for (notice, of, towards, secs) in [(&notices[0], 1, true, 60), (&notices[1], 2, false, 3)] {
        let Event::ClockStepped { node: told, by, is_forward } = notice else { panic!("{notice:?}") };
        assert_eq!((*told, *is_forward), (node(of), towards));
        let by = by.as_millis();
        assert!(by <= secs * 1_000 && by >= secs * 1_000 - 100, "{by} ms");
    }
}

#[test]
fn a_node_that_does_not_let_us_ask_is_not_asked_again() {
    let mut bench = watching();
    assert!(use_nodes(&mut bench, 10_000, None).contains(&"TIME".to_string()));
    assert!(!use_nodes(&mut bench, 30_000, None).contains(&"TIME".to_string()));
}

#[test]
fn an_answer_that_is_no_time_closes_the_connection() {
    for nonsense in [&b"+OK\r\n"[..], b"*1\r\n$1\r\n1\r\n", b"*2\r\n$1\r\nx\r\n$1\r\n1\r\n", b"_\r\n"] {
        let mut bench = watching();
        bench.at(10_000);
        bench.try_acquire("orders");
        bench.reply(0, OK);
        bench.reply(0, nonsense);
        assert!(!bench.is_connected(0), "{}", nonsense.escape_ascii());
    }
}
