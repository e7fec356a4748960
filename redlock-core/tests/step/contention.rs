//! Several clients over the same nodes, with delays, for real clients of the engine: B26.

use std::collections::BTreeMap;

use redlock_core::{AcquireRequest, Client, Config, ConnectionId, Event, Instant, Output};

use crate::bench::{decode, hello, info, ms};
use crate::world::Random;

const NODES: usize = 3;

enum Message {
    ToNode { client: usize, connection: ConnectionId, payload: Vec<u8> },
    ToClient { client: usize, connection: ConnectionId, bytes: Vec<u8> },
    Release { client: usize, lock: redlock_core::LockId },
}

/// One contender.
struct Contender {
    client: Client,
    /// The attempt that was sent last: the end of its token.
    attempt: u32,
    won_at: Option<Instant>,
}

struct Net {
    now: Instant,
    random: Random,
    contenders: Vec<Contender>,
    keys: Vec<Option<(Vec<u8>, Instant)>>,
    messages: BTreeMap<(Instant, u64), Message>,
    serial: u64,
    hold: Option<u64>,
    /// When each attempt's SET reached the first node, by attempt.
    attempts: Vec<(u32, Instant)>,
    /// Which client asked for which attempt already.
    seen: BTreeMap<(usize, u32), ()>,
}

impl Net {
    fn new(seed: u64, contenders: usize, hold: Option<u64>) -> Self {
        let config = Config::builder().nodes(["a", "b", "c"]).wake_ups(false).build().unwrap();
        let contender = |index: usize| Contender {
            client: Client::new(config.clone(), seed * 1_000 + index as u64, Instant::ZERO),
            attempt: 0,
            won_at: None,
        };
        Self {
            now: Instant::ZERO,
            random: Random(seed),
            contenders: (0..contenders).map(contender).collect(),
            keys: vec![None; NODES],
            messages: BTreeMap::new(),
            serial: 0,
            hold,
            attempts: Vec::new(),
            seen: BTreeMap::new(),
        }
    }

    fn post(&mut self, micros: u64, message: Message) {
        self.serial += 1;
        let at = self.now.saturating_add(std::time::Duration::from_micros(micros));
        self.messages.insert((at, self.serial), message);
    }

    /// Each client is nearest to a node of its own.
    fn delay(&mut self, client: usize, node: usize) -> u64 {
        let jitter = self.random.next() % 100;
        if client % NODES == node { 200 + jitter } else { 800 + jitter }
    }

    fn drain(&mut self, client: usize) {
        while let Some(output) = self.contenders[client].client.poll_output() {
            match output {
                Output::Connect { connection, .. } => {
                    self.contenders[client].client.handle_connected(connection, self.now);
                }
                Output::Transmit { connection, payload } => {
                    let delay = self.delay(client, connection.node.index());
                    self.post(delay, Message::ToNode { client, connection, payload: payload.to_vec() });
                }
                Output::Event(Event::Acquired { lock, .. }) => {
                    assert!(self.contenders[client].won_at.is_none());
                    self.contenders[client].won_at = Some(self.now);
                    if let Some(hold) = self.hold {
                        self.post(hold * 1_000, Message::Release { client, lock });
                    }
                }
                Output::Event(Event::AcquireFailed { error, .. }) => panic!("{error}"),
                Output::Event(_) => {}
                Output::Disconnect { connection } => panic!("{connection:?} is given up"),
            }
        }
    }

    /// Until all have won, or one of them if the winner keeps it.
    fn run(&mut self) {
        let wanted = if self.hold.is_some() { self.contenders.len() } else { 1 };
        for client in 0..self.contenders.len() {
            self.drain(client);
        }
        // All are connected before they start, in the same instant.
        while let Some(((at, _), message)) = self.messages.pop_first() {
            self.now = at;
            self.handle(message);
        }
        let start = self.now;
        for client in 0..self.contenders.len() {
            let mut entropy = [0; 16];
            entropy[..8].copy_from_slice(&(client as u64).to_be_bytes());
            let request = AcquireRequest::new("orders", entropy).wait(ms(60_000));
            self.contenders[client].client.acquire(request, start);
            self.drain(client);
        }
        while self.contenders.iter().filter(|contender| contender.won_at.is_some()).count() < wanted {
            self.next();
        }
    }

    fn next(&mut self) {
        let timers = self
            .contenders
            .iter()
            .enumerate()
            .filter_map(|(index, contender)| contender.client.poll_timeout().map(|due| (due.at, index)));
        let timer = timers.min();
        let message = self.messages.first_key_value().map(|((at, _), _)| *at);
        match (timer, message) {
            (Some((at, client)), message) if message.is_none_or(|message| at <= message) => {
                self.now = at;
                self.contenders[client].client.handle_timeout(at);
                self.drain(client);
            }
            (_, Some(at)) => {
                self.now = at;
                let (_, message) = self.messages.pop_first().unwrap();
                self.handle(message);
            }
            (_, None) => panic!("nothing will ever happen"),
        }
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::ToNode { client, connection, payload } => {
                let node = connection.node.index();
                let answers: Vec<u8> =
                    decode(&payload).iter().flat_map(|command| self.execute(client, node, command)).collect();
                let delay = self.delay(client, node);
                self.post(delay, Message::ToClient { client, connection, bytes: answers });
            }
            Message::ToClient { client, connection, bytes } => {
                self.contenders[client].client.handle_input(connection, &bytes, self.now);
                self.drain(client);
            }
            Message::Release { client, lock } => {
                self.contenders[client].client.release(lock, self.now).unwrap();
                self.drain(client);
            }
        }
    }

    fn execute(&mut self, client: usize, node: usize, command: &[Vec<u8>]) -> Vec<u8> {
        let now = self.now;
        let key = &mut self.keys[node];
        if key.as_ref().is_some_and(|(_, until)| *until < now) {
            *key = None;
        }
        match &command[0][..] {
            b"HELLO" => hello("redis", "8.4.0"),
            b"INFO" => info(u32::try_from(node).unwrap(), 90),
            b"PING" => b"+PONG\r\n".to_vec(),
            b"SET" => {
                let value = command[2].clone();
                let attempt = u32::from_str_radix(std::str::from_utf8(&value[32..40]).unwrap(), 16).unwrap();
                self.contenders[client].attempt = attempt;
                if self.seen.insert((client, attempt), ()).is_none() {
                    self.attempts.push((attempt, now));
                }
                if key.is_some() {
                    return b"_\r\n".to_vec();
                }
                let ttl = std::str::from_utf8(&command[5]).unwrap().parse().unwrap();
                *key = Some((value, now.saturating_add(ms(ttl))));
                b"+OK\r\n".to_vec()
            }
            b"DELEX" => {
                let ours = key.as_ref().is_some_and(|(value, _)| *value == command[3]);
                if ours {
                    *key = None;
                }
                format!(":{}\r\n", u8::from(ours)).into_bytes()
            }
            other => panic!("{:?}", String::from_utf8_lossy(other)),
        }
    }
}

#[test]
fn b26_three_clients_that_each_reach_another_node_first_do_not_collide_for_ever() {
    let mut late = Vec::new();
    for seed in 0..1_000 {
        let mut net = Net::new(seed, 3, None);
        net.run();
        let winner = net.contenders.iter().find(|contender| contender.won_at.is_some()).unwrap();
        if winner.attempt > 10 {
            late.push((seed, winner.attempt));
        }
    }
    assert!(late.len() <= 1, "seeds and rounds: {late:?}");
}

#[test]
fn b26_fifty_clients_do_not_retry_in_step_and_all_win() {
    for seed in 0..3 {
        let mut net = Net::new(seed, 50, Some(20));
        net.run();
        let last = net.contenders.iter().filter_map(|contender| contender.won_at).max().unwrap();
        assert!(last < Instant::from_secs(30), "seed {seed}: {last:?}");
        for round in 4..8 {
            let instants =
                net.attempts.iter().filter(|(attempt, _)| *attempt == round).map(|(_, at)| at.as_millis());
            let mut buckets = BTreeMap::new();
            instants.for_each(|millis| *buckets.entry(millis).or_insert(0) += 1);
            let most = buckets.values().max().copied().unwrap_or(0);
            assert!(most <= 5, "seed {seed}: {most} of 50 within one millisecond of round {round}");
        }
    }
}
