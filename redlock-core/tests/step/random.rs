//! Any calls, any bytes, in any order: line 5 of the contract, and what must hold whatever happens.
//!
//! On a failure proptest prints the shortest series of steps that it found; `PROPTEST_CASES` and `PROPTEST_RNG_SEED` set the
//! number of cases and the seed.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::bench::{at, decode, hello, info, ms};
use proptest::prelude::*;
use redlock_core::{
    AcquireRequest, Client, Config, ConnectionId, DisconnectReason, Event, Instant, LockId, OperationId,
    Output,
};

const NODES: u8 = 3;

#[derive(Clone, Debug)]
enum Step {
    Acquire { key: u8, ttl: u64, wait: u64, renew: bool, two: bool },
    Extend { which: usize, ttl: u64 },
    Release { which: usize },
    Cancel { which: usize },
    Connect,
    Close,
    Accept { node: u8 },
    Answer { node: u8, how: u8 },
    Raw { node: u8, bytes: Vec<u8> },
    Stale { node: u8, generation: u32, bytes: Vec<u8> },
    Cut { node: u8, why: u8 },
    Pass { millis: u64 },
    Back { millis: u64 },
    WakeUps { count: u8 },
    Drain,
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let tokens = prop::sample::select(vec![
        &b"+OK\r\n"[..],
        b"_\r\n",
        b"$-1\r\n",
        b":1\r\n",
        b":0\r\n",
        b"-LOADING x\r\n",
        b"-NOPERM x\r\n",
        b"-ERR max number of clients reached\r\n",
        b">1\r\n+x\r\n",
        b"*2\r\n",
        b"%1\r\n",
        b"|1\r\n+a\r\n+b\r\n",
        b"$3\r\nabc\r\n",
        b"+PONG\r\n",
        b"\r\n",
        b"\r",
        b"*1000000000\r\n",
    ]);
    let token = tokens.prop_map(<[u8]>::to_vec);
    prop::collection::vec(prop_oneof![3 => token, 1 => prop::collection::vec(any::<u8>(), 0..6)], 0..4)
        .prop_map(|parts| parts.concat())
}

fn step() -> impl Strategy<Value = Step> {
    let ttls = || prop::sample::select(vec![0_u64, 3, 50, 1_000, 10_000, 40_000_000_000]);
    prop_oneof![
        6 => (0..4_u8, ttls(), prop::sample::select(vec![0_u64, 100, 3_000]), any::<bool>(), prop::bool::weighted(0.1))
            .prop_map(|(key, ttl, wait, renew, two)| Step::Acquire { key, ttl, wait, renew, two }),
        3 => (0..8_usize, ttls()).prop_map(|(which, ttl)| Step::Extend { which, ttl }),
        2 => (0..8_usize).prop_map(|which| Step::Release { which }),
        2 => (0..8_usize).prop_map(|which| Step::Cancel { which }),
        1 => Just(Step::Connect),
        1 => prop::bool::weighted(0.05).prop_map(|close| if close { Step::Close } else { Step::Connect }),
        8 => (0..NODES).prop_map(|node| Step::Accept { node }),
        30 => (0..NODES, any::<u8>()).prop_map(|(node, how)| Step::Answer { node, how }),
        2 => (0..NODES, bytes()).prop_map(|(node, bytes)| Step::Raw { node, bytes }),
        1 => (0..NODES + 1, 0..5_u32, bytes())
            .prop_map(|(node, generation, bytes)| Step::Stale { node, generation, bytes }),
        3 => (0..NODES, 0..5_u8).prop_map(|(node, why)| Step::Cut { node, why }),
        6 => prop::sample::select(vec![0_u64, 1, 7, 100, 900, 20_000]).prop_map(|millis| Step::Pass { millis }),
        1 => (0..1_000_u64).prop_map(|millis| Step::Back { millis }),
        4 => (1..5_u8).prop_map(|count| Step::WakeUps { count }),
        12 => Just(Step::Drain),
    ]
}

#[derive(Default)]
struct End {
    wanted: Option<ConnectionId>,
    connection: Option<ConnectionId>,
    unanswered: VecDeque<Vec<Vec<u8>>>,
}

struct Run {
    client: Client,
    now: Instant,
    ends: Vec<End>,
    asked: Vec<OperationId>,
    answers: BTreeMap<OperationId, u32>,
    locks: Vec<LockId>,
    lost: BTreeMap<LockId, u32>,
    closed: u32,
    entropy: u8,
}

impl Run {
    fn new(seed: u64) -> Self {
        let builder = Config::builder().nodes((0..NODES).map(|node| format!("redis://:pw@node{node}")));
        let client = Client::new(builder.build().unwrap(), seed, Instant::ZERO);
        Self {
            client,
            now: Instant::ZERO,
            ends: (0..NODES).map(|_| End::default()).collect(),
            asked: Vec::new(),
            answers: BTreeMap::new(),
            locks: Vec::new(),
            lost: BTreeMap::new(),
            closed: 0,
            entropy: 0,
        }
    }

    fn drain(&mut self) {
        while let Some(output) = {
            let before = self.client.poll_timeout();
            let output = self.client.poll_output();
            assert!(output.is_none() || before.is_some_and(|due| due.at == self.client.now()));
            output
        } {
            match output {
                Output::Connect { connection, .. } => {
                    let end = &mut self.ends[connection.node.index()];
                    assert!(end.wanted.is_none() && end.connection.is_none(), "a second connection");
                    end.wanted = Some(connection);
                }
                Output::Transmit { connection, payload } => {
                    let end = &mut self.ends[connection.node.index()];
                    assert_eq!(end.connection, Some(connection));
                    assert!(!payload.is_empty());
                    end.unanswered.extend(decode(&payload));
                }
                Output::Disconnect { connection } => {
                    let end = &mut self.ends[connection.node.index()];
                    assert!(end.wanted == Some(connection) || end.connection == Some(connection));
                    *end = End::default();
                }
                Output::Event(event) => self.note(event),
            }
        }
        if let Some(due) = self.client.poll_timeout() {
            assert!(due.at > self.client.now(), "busy loop");
        }
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::Acquired { operation, lock, deadline, .. } => {
                *self.answers.entry(operation).or_default() += 1;
                assert!(deadline > Instant::ZERO);
                self.locks.push(lock);
            }
            Event::AcquireFailed { operation, .. }
            | Event::Extended { operation, .. }
            | Event::ExtendFailed { operation, .. }
            | Event::Released { operation, .. }
            | Event::Connected { operation }
            | Event::ConnectFailed { operation, .. } => *self.answers.entry(operation).or_default() += 1,
            Event::Lost { lock, .. } => {
                *self.lost.entry(lock).or_default() += 1;
                assert!(self.locks.contains(&lock), "lost, but never acquired");
            }
            Event::Closed => self.closed += 1,
            _ => {}
        }
        assert_eq!(self.closed.max(1), 1, "closed twice");
    }

    /// A wake-up at the very instant that was asked for; it must make the next one later (line 4, B47).
    fn wake_up(&mut self) -> bool {
        self.drain();
        let Some(due) = self.client.poll_timeout() else { return false };
        self.now = self.now.max(due.at);
        self.client.handle_timeout(due.at);
        self.drain();
        assert!(self.client.poll_timeout().is_none_or(|next| next.at > due.at), "no progress at {due:?}");
        true
    }

    fn apply(&mut self, step: Step) {
        let now = self.now;
        match step {
            Step::Acquire { key, ttl, wait, renew, two } => {
                self.entropy = self.entropy.wrapping_add(1);
                let entropy = [self.entropy; 16];
                let name = format!("key{key}");
                let request = if two {
                    AcquireRequest::all([name, "other".into()], entropy)
                } else {
                    AcquireRequest::new(name, entropy)
                };
                let request = request.ttl(ms(ttl)).wait(ms(wait));
                let request = if renew { request.auto_renew(Duration::MAX) } else { request };
                self.asked.push(self.client.acquire(request, now));
            }
            Step::Extend { which, ttl } => {
                if let Some(lock) = self.locks.iter().rev().nth(which).copied()
                    && let Ok(operation) = self.client.extend(lock, ms(ttl), now)
                {
                    self.asked.push(operation);
                }
            }
            Step::Release { which } => {
                if let Some(lock) = self.locks.iter().rev().nth(which).copied() {
                    if let Ok(operation) = self.client.release(lock, now) {
                        self.asked.push(operation);
                    }
                    assert!(!self.client.lock(lock).is_some_and(|view| view.is_held(now)));
                }
            }
            Step::Cancel { which } => {
                if let Some(operation) = self.asked.iter().rev().nth(which).copied() {
                    self.client.cancel(operation, now);
                }
            }
            Step::Connect => self.asked.push(self.client.connect(ms(500), now)),
            Step::Close => self.client.close(now),
            Step::Accept { node } => {
                self.drain();
                let end = &mut self.ends[usize::from(node)];
                if let Some(connection) = end.wanted.take() {
                    end.connection = Some(connection);
                    self.client.handle_connected(connection, now);
                }
            }
            Step::Answer { node, how } => {
                self.drain();
                let end = &mut self.ends[usize::from(node)];
                if let (Some(connection), Some(command)) = (end.connection, end.unanswered.pop_front()) {
                    self.client.handle_input(connection, &answer(&command, node, how), now);
                }
            }
            Step::Raw { node, bytes } => {
                if let Some(connection) = self.ends[usize::from(node)].connection {
                    self.client.handle_input(connection, &bytes, now);
                }
            }
            Step::Stale { node, generation, bytes } => {
                let connection = ConnectionId { node: redlock_core::NodeId::new(node), generation };
                let current = self.ends.get(usize::from(node)).and_then(|end| end.connection.or(end.wanted));
                if current != Some(connection)
                    && current.is_some_and(|current| current.generation > generation)
                {
                    self.client.handle_input(connection, &bytes, now);
                    self.client.handle_connected(connection, now);
                    self.client.handle_disconnected(connection, DisconnectReason::Closed, now);
                }
            }
            Step::Cut { node, why } => {
                self.drain();
                let end = std::mem::take(&mut self.ends[usize::from(node)]);
                if let Some(connection) = end.connection.or(end.wanted) {
                    let reason = match why {
                        0 => DisconnectReason::Refused("refused".into()),
                        1 => DisconnectReason::Unresolvable("no such host".into()),
                        2 => DisconnectReason::Io("reset".into()),
                        3 => DisconnectReason::Tls("alert".into()),
                        _ => DisconnectReason::Closed,
                    };
                    self.client.handle_disconnected(connection, reason, now);
                }
            }
            Step::Pass { millis } => {
                self.now = now.saturating_add(ms(millis));
                self.client.handle_timeout(self.now);
            }
            Step::Back { millis } => self.client.handle_timeout(now.saturating_sub(ms(millis))),
            Step::WakeUps { count } => {
                for _ in 0..count {
                    self.wake_up();
                }
            }
            Step::Drain => self.drain(),
        }
        assert!(self.client.now() >= self.now || self.client.now() >= now);
    }

    /// No node answers any more: everything that was asked for is answered all the same, once, in time.
    fn finish(&mut self) {
        self.drain();
        let end = self.now.saturating_add(ms(3_000 + 1_000 + 1_500));
        while self.client.poll_timeout().is_some_and(|due| due.at <= end) {
            self.wake_up();
        }
        for operation in &self.asked {
            assert_eq!(self.answers.get(operation), Some(&1), "{operation:?} at {:?}", self.now);
        }
        assert!(self.lost.values().all(|times| *times == 1), "lost twice");
        let (now, lost) = (self.client.now(), self.lost.keys());
        assert!(lost.into_iter().all(|lock| !self.client.lock(*lock).is_some_and(|view| view.is_held(now))));
        self.client.close(self.now);
        for _ in 0..100 {
            if !self.wake_up() {
                break;
            }
        }
        assert!(self.client.is_closed() && self.closed == 1);
        assert!(self.client.is_idle());
    }
}

fn answer(command: &[Vec<u8>], node: u8, how: u8) -> Vec<u8> {
    let honest = how < 200;
    match (&command[0][..], honest, how) {
        (b"HELLO", true, 0..20) => b"-ERR unknown command 'HELLO'\r\n".to_vec(),
        (b"HELLO", true, 20..50) => hello("valkey", "9.1.0"),
        (b"HELLO", true, 50..80) => hello("redis", "7.0.0"),
        (b"HELLO", true, _) => hello("redis", "8.4.0"),
        (b"INFO", true, 0..20) => b"-NOPERM x\r\n".to_vec(),
        // Now and then two nodes say that they are one server (R24).
        (b"INFO", true, 20..30) => info(0, 90),
        (b"INFO", true, _) => info(u32::from(node) * 3 + u32::from(how % 3), 90),
        (b"PING", true, _) => b"+PONG\r\n".to_vec(),
        (b"AUTH" | b"SELECT" | b"CLIENT", true, _) => b"+OK\r\n".to_vec(),
        (b"PTTL", true, 0..40) => b":-2\r\n".to_vec(),
        (b"PTTL", true, 40..70) => {
            // Told right behind, and once more than was asked for.
            let key = String::from_utf8_lossy(&command[1]).into_owned();
            let push = format!(">2\r\n$10\r\ninvalidate\r\n*1\r\n${}\r\n{key}\r\n", key.len());
            format!(":77\r\n{push}{push}").into_bytes()
        }
        (b"PTTL", true, _) => b":77\r\n".to_vec(),
        (b"SET", true, 0..140) => b"+OK\r\n".to_vec(),
        (b"SET", true, _) => b"_\r\n".to_vec(),
        (_, true, 0..140) => b":1\r\n".to_vec(),
        (_, true, _) => b":0\r\n".to_vec(),
        (_, false, 200..210) => b"-OOM x\r\n".to_vec(),
        (_, false, 210..215) => b"-LOADING x\r\n".to_vec(),
        (_, false, 215..222) => b"-NOPERM User u has no permissions to run the 'x' command\r\n".to_vec(),
        (_, false, 222..226) => b"-ERR syntax error\r\n".to_vec(),
        (_, false, 226..232) => b"-ERR oops script: on @user_script:1.\r\n".to_vec(),
        (_, false, 232..236) => b"-ERR max number of clients reached\r\n".to_vec(),
        (_, false, 236..240) => b":7\r\n".to_vec(),
        (_, false, 240..244) => b">1\r\n+x\r\n".to_vec(),
        (_, false, _) => b"-ERR oops\r\n".to_vec(),
    }
}

fn run(seed: u64, steps: Vec<Step>) {
    let mut run = Run::new(seed);
    for step in steps {
        run.apply(step);
    }
    run.finish();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn c5_b47_any_calls_in_any_order(seed in any::<u64>(), steps in prop::collection::vec(step(), 0..250)) {
        run(seed, steps);
    }

    /// The same with three nodes that are up and mostly honest, so that locks are held when things go wrong.
    #[test]
    fn c5_r20_everything_asked_is_answered_once(seed in any::<u64>(), steps in prop::collection::vec(step(), 0..250)) {
        let mut up: Vec<Step> = (0..NODES).map(|node| Step::Accept { node }).collect();
        for node in 0..NODES {
            up.extend((0..3).map(|_| Step::Answer { node, how: 100 }));
        }
        let hold = Step::Acquire { key: 0, ttl: 10_000, wait: 0, renew: true, two: false };
        up.push(hold);
        up.extend((0..NODES).map(|node| Step::Answer { node, how: 100 }));
        up.extend(steps);
        run(seed, up);
    }
}

#[test]
fn c5_b47_without_input_for_ten_ttls_then_one_event() {
    let mut run = Run::new(7);
    for node in 0..NODES {
        run.apply(Step::Accept { node });
        (0..3).for_each(|_| run.apply(Step::Answer { node, how: 100 }));
    }
    run.apply(Step::Acquire { key: 0, ttl: 10_000, wait: 0, renew: false, two: false });
    (0..NODES).for_each(|node| run.apply(Step::Answer { node, how: 100 }));
    run.drain();
    let lock = run.locks[0];
    assert!(run.client.lock(lock).unwrap().is_held(run.now));
    run.now = at(100_000);
    let connection = run.ends[0].connection.unwrap();
    run.client.handle_input(connection, b"-ERR late\r\n", run.now);
    run.drain();
    assert_eq!(run.lost.get(&lock), Some(&1));
}
