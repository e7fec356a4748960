//! The floor: what the protocol costs without any library. Non-blocking sockets, one thread, bytes that need no encoder;
//! an operation is written to all five nodes at once and is done at the third yes (`floor-q3`; what comes later is read in
//! passing), or at the fifth (`floor-all5`).

use crate::measure::{Cpu, Figures};
use crate::workloads::{Plan, alone_figures, contended_figures, many_figures};
use core::time::Duration;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::time::Instant;

const DELETE: &str =
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0";
const EXTEND: &str =
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('PEXPIRE',KEYS[1],ARGV[2]) end return 0";

struct Node {
    stream: TcpStream,
    alive: bool,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Whose answer comes next: the slot, and which of its operations it was.
    asked: VecDeque<(usize, u32)>,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    operation: u32,
    yes: usize,
    no: usize,
    busy: bool,
}

pub(crate) struct Floor {
    poll: Poll,
    events: Events,
    nodes: Vec<Node>,
    slots: Vec<Slot>,
    done: Vec<(usize, bool)>,
    need: usize,
    /// Digests of the scripts; `None` where the server has `DELIFEQ` and `SET … IFEQ`.
    scripts: Option<(String, String)>,
}

fn command(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

impl Floor {
    pub(crate) fn connect(ports: &[u16], need: usize, native: bool) -> io::Result<Self> {
        let poll = Poll::new()?;
        let (mut nodes, mut scripts) = (Vec::new(), None);
        for (index, port) in ports.iter().enumerate() {
            let mut stream = std::net::TcpStream::connect(("127.0.0.1", *port))?;
            stream.set_nodelay(true)?;
            if !native {
                let mut load = |script| -> io::Result<String> {
                    stream.write_all(&command(&["SCRIPT", "LOAD", script]))?;
                    let mut said = [0; 47];
                    stream.read_exact(&mut said)?;
                    Ok(String::from_utf8_lossy(&said[5..45]).into_owned())
                };
                scripts = Some((load(DELETE)?, load(EXTEND)?));
            }
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            poll.registry().register(&mut stream, Token(index), Interest::READABLE)?;
            nodes.push(Node {
                stream,
                alive: true,
                input: Vec::new(),
                output: Vec::new(),
                asked: VecDeque::new(),
            });
        }
        let events = Events::with_capacity(16);
        Ok(Self { poll, events, nodes, slots: vec![Slot::default(); 1000], done: Vec::new(), need, scripts })
    }

    fn set(resource: &str, token: &str, ttl: &str) -> Vec<u8> {
        command(&["SET", resource, token, "NX", "PX", ttl])
    }

    fn delete(&self, resource: &str, token: &str) -> Vec<u8> {
        match &self.scripts {
            Some((delete, _)) => command(&["EVALSHA", delete, "1", resource, token]),
            None => command(&["DELIFEQ", resource, token]),
        }
    }

    fn extend(&self, resource: &str, token: &str, ttl: &str) -> Vec<u8> {
        match &self.scripts {
            Some((_, extend)) => command(&["EVALSHA", extend, "1", resource, token, ttl]),
            None => command(&["SET", resource, token, "IFEQ", token, "PX", ttl]),
        }
    }

    /// Starts an operation of the slot: these bytes, to all nodes.
    fn start(&mut self, slot: usize, bytes: &[u8]) {
        let state = &mut self.slots[slot];
        *state = Slot { operation: state.operation.wrapping_add(1), yes: 0, no: 0, busy: true };
        for node in self.nodes.iter_mut().filter(|node| node.alive) {
            node.output.extend_from_slice(bytes);
            node.asked.push_back((slot, state.operation));
        }
    }

    /// Writes what is there to be written, waits for answers and reads them. What is decided is in `done`.
    pub(crate) fn turn(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        for node in self.nodes.iter_mut().filter(|node| node.alive && !node.output.is_empty()) {
            match node.stream.write(&node.output) {
                Ok(count) => {
                    node.output.drain(..count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => node.alive = false,
            }
        }
        self.poll.poll(&mut self.events, timeout)?;
        let spare = self.nodes.len() - self.need;
        for event in &self.events {
            let node = &mut self.nodes[event.token().0];
            let mut room = [0; 16 * 1024];
            loop {
                match node.stream.read(&mut room) {
                    Ok(0) => node.alive = false,
                    Ok(count) => {
                        node.input.extend_from_slice(&room[..count]);
                        if count == room.len() {
                            continue;
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => node.alive = false,
                }
                break;
            }
            let mut from = 0;
            // Every answer is a line: `+OK`, `:1`, `$-1`, `_`.
            while let Some(len) = node.input[from..].iter().position(|byte| *byte == b'\n') {
                let is_yes = matches!(&node.input[from..from + 2], b"+O" | b":1");
                from += len + 1;
                let Some((slot, operation)) = node.asked.pop_front() else { continue };
                let state = &mut self.slots[slot];
                if state.operation != operation || !state.busy {
                    continue;
                }
                if is_yes {
                    state.yes += 1;
                } else {
                    state.no += 1;
                }
                if state.yes == self.need || state.no > spare {
                    state.busy = false;
                    self.done.push((slot, state.yes == self.need));
                }
            }
            node.input.drain(..from);
        }
        Ok(())
    }

    /// One operation by itself.
    fn run(&mut self, bytes: &[u8]) -> io::Result<bool> {
        self.start(0, bytes);
        loop {
            self.turn(Some(Duration::from_secs(5)))?;
            if let Some((_, yes)) = self.done.pop() {
                return Ok(yes);
            }
        }
    }

    /// Reads the answers that nobody waits for.
    fn settle(&mut self) -> io::Result<()> {
        let until = Instant::now() + Duration::from_millis(200);
        while Instant::now() < until
            && self.nodes.iter().any(|node| node.alive && !(node.asked.is_empty() && node.output.is_empty()))
        {
            self.turn(Some(Duration::from_millis(20)))?;
        }
        self.done.clear();
        Ok(())
    }

    pub(crate) fn alone(&mut self, plan: Plan) -> io::Result<Figures> {
        for warm in 0..200 {
            let resource = format!("warm:{warm:08}");
            self.run(&Self::set(&resource, "0123456789012345678901234567890123456789", "10000"))?;
            let delete = self.delete(&resource, "0123456789012345678901234567890123456789");
            self.run(&delete)?;
        }
        let (mut acquires, mut releases, mut pairs, mut failed) = (vec![], vec![], vec![], 0);
        let (cpu, until) = (Cpu::start(), Instant::now() + Duration::from_secs_f64(plan.seconds));
        for cycle in 0..plan.cycles {
            let (resource, token) = (format!("alone:{cycle:08}"), format!("{cycle:040}"));
            let (set, delete) = (Self::set(&resource, &token, "10000"), self.delete(&resource, &token));
            let start = Instant::now();
            if start >= until {
                break;
            }
            let is_held = self.run(&set)?;
            let granted = Instant::now();
            let is_gone = self.run(&delete)?;
            let end = Instant::now();
            failed += u64::from(!is_held || !is_gone);
            acquires.push(granted - start);
            releases.push(end - granted);
            pairs.push(end - start);
        }
        let spent = cpu.micros();
        self.settle()?;
        Ok(alone_figures(acquires, releases, pairs, failed, spent))
    }

    pub(crate) fn many(&mut self, plan: Plan) -> io::Result<Figures> {
        const SLOTS: usize = 200;
        let commands: Vec<(Vec<u8>, Vec<u8>)> = (0..SLOTS)
            .map(|slot| {
                let (resource, token) = (format!("many:{slot}"), format!("{slot:040}"));
                (Self::set(&resource, &token, "10000"), self.delete(&resource, &token))
            })
            .collect();
        let mut holding = [false; SLOTS];
        let (cpu, start) = (Cpu::start(), Instant::now());
        let until = start + Duration::from_secs_f64(plan.seconds);
        for (slot, (set, _)) in commands.iter().enumerate() {
            self.start(slot, set);
        }
        let (mut open, mut cycles, mut failed) = (SLOTS, 0, 0);
        let mut done = Vec::new();
        while open > 0 {
            self.turn(Some(Duration::from_secs(5)))?;
            let is_over = Instant::now() >= until;
            core::mem::swap(&mut done, &mut self.done);
            for (slot, yes) in done.drain(..) {
                failed += u64::from(!yes);
                if holding[slot] {
                    cycles += u64::from(yes);
                    holding[slot] = false;
                    if is_over {
                        open -= 1;
                    } else {
                        self.start(slot, &commands[slot].0);
                    }
                } else {
                    holding[slot] = true;
                    self.start(slot, &commands[slot].1);
                }
            }
        }
        let (took, spent) = (start.elapsed(), cpu.micros());
        self.settle()?;
        Ok(many_figures(cycles, failed, took, spent))
    }

    /// First come, first served: 50 who wait, each of whom asks again as soon as it was served.
    pub(crate) fn contended(&mut self, plan: Plan) -> io::Result<Figures> {
        let start = Instant::now();
        let until = start + Duration::from_secs_f64(plan.seconds);
        let mut queue: VecDeque<(usize, Instant)> = (0..50).map(|waiter| (waiter, start)).collect();
        let mut waits = vec![Vec::new(); 50];
        let mut serial = 0;
        while Instant::now() < until
            && let Some((waiter, asked)) = queue.pop_front()
        {
            serial += 1;
            let token = format!("{serial:040}");
            if self.run(&Self::set("contended", &token, "10000"))? {
                waits[waiter].push(asked.elapsed());
                std::thread::sleep(Duration::from_millis(1));
            }
            let delete = self.delete("contended", &token);
            self.run(&delete)?;
            queue.push_back((waiter, Instant::now()));
        }
        self.settle()?;
        Ok(contended_figures(waits, 0, start, plan.seconds))
    }

    /// A renewal for every millisecond that has passed, so that each of 1 000 locks gets one a second; ten at a time.
    pub(crate) fn renewed(&mut self, plan: Plan) -> io::Result<Figures> {
        let names: Vec<(String, String)> =
            (0..1000).map(|lock| (format!("renewed:{lock}"), format!("{lock:040}"))).collect();
        let mut lost = 0;
        for (resource, token) in &names {
            lost += u64::from(!self.run(&Self::set(resource, token, "3000"))?);
        }
        let extends: Vec<_> =
            names.iter().map(|(resource, token)| self.extend(resource, token, "3000")).collect();
        let (cpu, start) = (Cpu::start(), Instant::now());
        let mut sent = 0;
        while start.elapsed().as_secs_f64() < plan.seconds {
            let due = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX) / 10 * 10;
            while sent < due {
                let lock = usize::try_from(sent % 1000).unwrap_or(0);
                self.start(lock, &extends[lock]);
                sent += 1;
            }
            self.turn(Some(Duration::from_millis(10)))?;
            lost += u64::try_from(self.done.drain(..).filter(|(_, yes)| !yes).count()).unwrap_or(0);
        }
        let spent = cpu.micros();
        self.settle()?;
        for (resource, token) in &names {
            let delete = self.delete(resource, token);
            self.run(&delete)?;
        }
        self.settle()?;
        let mut figures = Figures::default();
        figures.put("client CPU ms", spent / 1000.0);
        figures.put("locks lost", lost as f64);
        Ok(figures)
    }
}
