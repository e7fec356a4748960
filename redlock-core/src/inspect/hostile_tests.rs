//! Whatever a node says, in whatever pieces: a probe ends, in time, and shows no secret.

use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use proptest::prelude::*;

use super::{Expectations, Holding, Probe, Task, assess};
use crate::{Address, DisconnectReason, Instant};

const FRAMES: [&str; 22] = [
    "+OK\r\n",
    "+PONG\r\n",
    ":0\r\n",
    ":1\r\n",
    ":-1\r\n",
    ":9223372036854775807\r\n",
    "$-1\r\n",
    "_\r\n",
    "%0\r\n",
    "%2\r\n+role\r\n+replica\r\n+version\r\n+9.9.9.9\r\n",
    "*2\r\n$10\r\n1800000000\r\n$6\r\n999999\r\n",
    "*2\r\n$19\r\n9223372036854775807\r\n$1\r\n9\r\n",
    "*2\r\n$9\r\nmaxmemory\r\n$1\r\n1\r\n",
    "$0\r\n\r\n",
    "$40\r\n3031323334353637383961626364656600000001\r\n",
    "$31\r\nrun_id:x\r\nuptime_in_seconds:-9\r\n\r\n",
    "-ERR sesame\r\n",
    "-NOPERM this user has no permissions to run the 'set' command\r\n",
    "-LOADING x\r\n",
    "-NOAUTH x\r\n",
    ">2\r\n+invalidate\r\n*0\r\n",
    "oops\r\n",
];

#[derive(Clone, Debug)]
enum Move {
    Say(Vec<usize>),
    Bytes(Vec<u8>),
    Wait(u64),
    Close,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        12 => prop::collection::vec(0..FRAMES.len(), 1..8).prop_map(Move::Say),
        1 => prop::collection::vec(any::<u8>(), 1..20).prop_map(Move::Bytes),
        2 => (0..3_000_u64).prop_map(Move::Wait),
        1 => Just(Move::Close),
    ];
    prop::collection::vec(one, 0..60)
}

fn task(which: u8) -> Task {
    match which {
        0 => Task::check("scratch", Duration::from_millis(100)),
        1 => Task::read("job"),
        _ => Task::remove("job"),
    }
}

proptest! {
    #[test]
    fn r21_no_node_can_hold_up_a_probe_or_make_it_panic(which in 0_u8..3, moves in moves()) {
        let mut now = Instant::from_secs(1);
        let address = Address::parse("redis://ann:sesame@10.0.0.1/3").unwrap();
        let mut probe = Probe::new(address, task(which), Duration::from_secs(1), now);
        probe.handle_connected(now);
        for step in moves {
            while probe.poll_transmit(now).is_some() {}
            match step {
                Move::Say(frames) => {
                    let said: Vec<&str> = frames.into_iter().map(|index| FRAMES[index]).collect();
                    probe.handle_input(said.concat().as_bytes(), now);
                }
                Move::Bytes(bytes) => probe.handle_input(&bytes, now),
                Move::Wait(millis) => {
                    now = now.saturating_add(Duration::from_millis(millis));
                    probe.handle_timeout(now);
                }
                Move::Close => probe.handle_disconnected(DisconnectReason::Closed, now),
            }
        }
        // Silence from here on ends it by its own deadlines.
        for _ in 0..4 {
            while probe.poll_transmit(now).is_some() {}
            let Some(until) = probe.poll_timeout() else { break };
            now = until.max(now);
            probe.handle_timeout(now);
        }
        prop_assert!(probe.is_done());
        let report = probe.into_report();
        let assessment = assess(core::slice::from_ref(&report), &Expectations::default());
        let shown = format!("{report:?} {assessment:?} {:?}", Holding::of(core::slice::from_ref(&report)));
        prop_assert!(!shown.contains("sesame"));
        prop_assert!(!shown.contains("3031323334353637383961626364656600000001"));
    }
}
