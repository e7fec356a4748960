//! What is done to servers, workers and the network between them, and undone again.

use crate::clock;
use crate::options::Plant;
use crate::proxy::{Cut, Proxy, Way};
use crate::record::{Recorder, What};
use crate::server::{Server, State};
use crate::workers::{School, Worker};
use alloc::collections::BTreeMap;
use core::time::Duration;
use redlock_blocking::Instant;
use redlock_proof::simulate::Dice;
use std::io;

/// Everything that things can be done to.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) servers: Vec<Server>,
    pub(crate) proxies: Vec<Proxy>,
    pub(crate) school: School,
    /// By place; `None` where one was killed and nobody has come yet.
    pub(crate) workers: Vec<Option<Worker>>,
    pub(crate) recorder: Recorder,
    pub(crate) dice: Dice<'static>,
    /// What is to be undone, and when.
    agenda: Vec<(Instant, Undo)>,
    /// How often each thing was done.
    pub(crate) done: BTreeMap<&'static str, u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Undo {
    GoOnServer(usize),
    GoOnWorker(usize, u32),
    Hire(usize),
    Quicken(usize),
    Revive(usize),
    Room(usize),
    Speak(usize, Way),
}

/// When to try again what could not be undone.
const SOON: Duration = Duration::from_millis(50);

/// Everything that is done, by name: a run of some length has to have done each.
pub(crate) const ALL: [&str; 13] = [
    "clients killed",
    "connection cut",
    "connection cut, bytes late",
    "majority gone",
    "majority silent",
    "network delays",
    "network silent",
    "scripts flushed",
    "server killed",
    "server out of memory",
    "server stopped",
    "worker killed",
    "worker stopped",
];

impl World {
    pub(crate) fn new(
        servers: Vec<Server>,
        proxies: Vec<Proxy>,
        school: School,
        recorder: Recorder,
        dice: Dice<'static>,
    ) -> Self {
        let (workers, agenda, done) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self { servers, proxies, school, workers, recorder, dice, agenda, done }
    }

    fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.dice.between(least, most))
    }

    /// Mostly short, sometimes longer than any lock lives.
    fn a_while(&mut self) -> Duration {
        match self.dice.below(10) {
            0..5 => self.millis(5, 150),
            5..9 => self.millis(100, 700),
            _ => self.millis(700, 2_500),
        }
    }

    fn later(&mut self, after: Duration, undo: Undo) {
        self.agenda.push((clock::now().saturating_add(after), undo));
    }

    fn note(&mut self, name: &'static str, text: String) {
        *self.done.entry(name).or_default() += 1;
        self.recorder.write(clock::now(), What::Chaos(text));
    }

    /// Undoes what is due.
    ///
    /// # Errors
    ///
    /// Those of the system, which cannot start a process.
    pub(crate) fn undo(&mut self, until: Instant) -> io::Result<()> {
        let (due, later) = core::mem::take(&mut self.agenda).into_iter().partition(|(at, _)| *at <= until);
        self.agenda = later;
        let due: Vec<(Instant, Undo)> = due;
        for (_, undo) in due {
            let mut told = None;
            match undo {
                Undo::GoOnServer(node) => {
                    if let Some(server) = self.servers.get_mut(node) {
                        server.go_on();
                        told = Some(format!("server {node} goes on"));
                    }
                }
                Undo::Revive(node) => {
                    if let Some(server) =
                        self.servers.get_mut(node).filter(|server| server.state() == State::Dead)
                    {
                        server.revive()?;
                        told = Some(format!("server {node} is started again"));
                    }
                }
                Undo::GoOnWorker(place, process) => {
                    if let Some(Some(worker)) = self.workers.get_mut(place)
                        && worker.process == process
                    {
                        worker.go_on();
                        told = Some(format!("process {process} goes on"));
                    }
                }
                Undo::Hire(place) => {
                    let worker = self.school.start(place, &mut self.dice)?;
                    told = Some(format!("process {} is started", worker.process));
                    if let Some(slot) = self.workers.get_mut(place) {
                        *slot = Some(worker);
                    }
                }
                Undo::Quicken(node) => {
                    if let Some(proxy) = self.proxies.get(node) {
                        proxy.delay(Duration::ZERO);
                    }
                }
                Undo::Room(node) => {
                    if let Some(server) = self.servers.get(node) {
                        match server.state() {
                            State::Up => server.command("CONFIG SET maxmemory 0"),
                            // It starts anew, without the limit.
                            State::Dead => {}
                            State::Starting | State::Stopped => self.later(SOON, undo),
                        }
                    }
                }
                Undo::Speak(node, way) => {
                    if let Some(proxy) = self.proxies.get(node) {
                        proxy.speak(way);
                        told = Some(format!("network of {node} speaks again {way:?}"));
                    }
                }
            }
            if let Some(text) = told {
                self.recorder.write(clock::now(), What::Chaos(text));
            }
        }
        for server in &mut self.servers {
            server.tend()?;
        }
        Ok(())
    }

    /// Undoes everything at once.
    ///
    /// # Errors
    ///
    /// As [`undo`](Self::undo).
    pub(crate) fn mend(&mut self) -> io::Result<()> {
        // What cannot be undone of a server that is stopped, can once it goes on.
        self.undo(Instant::MAX)?;
        self.undo(Instant::MAX)?;
        for proxy in &self.proxies {
            proxy.mend();
        }
        Ok(())
    }

    pub(crate) fn is_mended(&self) -> bool {
        self.agenda.is_empty()
            && self.servers.iter().all(|server| server.state() == State::Up)
            && self.workers.iter().all(Option::is_some)
    }

    /// How many servers are not as they should be.
    fn faulty(&self) -> usize {
        self.servers.iter().filter(|server| server.state() != State::Up).count()
    }

    /// Does something to somebody; preferably to `holder`, where it is a worker.
    pub(crate) fn strike(&mut self, holder: Option<u32>) {
        if self.school.plant == Some(Plant::Forgetting) && self.dice.chance(30) {
            return self.make_forget();
        }
        let nodes = self.servers.len();
        let minority = nodes.saturating_sub(1) / 2;
        let node = self.dice.index(nodes);
        let for_a_while = self.a_while();
        match self.dice.below(100) {
            0..16 if self.faulty() < minority => self.stop_server(node, for_a_while),
            16..32 if self.faulty() < minority => self.kill_server(node, for_a_while),
            32..38 => self.kill_clients(node),
            38..41 => self.flush_scripts(node),
            41..52 => self.stop_worker(holder, for_a_while),
            52..56 => self.kill_worker(holder),
            56..60 => self.fill_memory(node, for_a_while),
            60..68 => self.delay(node, for_a_while),
            68..76 => self.silence(node, for_a_while),
            76..95 => self.cut(node),
            95..98 => self.silence_majority(for_a_while),
            98.. => self.take_majority(),
            _ => {}
        }
    }

    fn stop_server(&mut self, node: usize, span: Duration) {
        let Some(server) = self.servers.get_mut(node).filter(|server| server.state() == State::Up) else {
            return;
        };
        server.stop();
        self.later(span, Undo::GoOnServer(node));
        self.note("server stopped", format!("server {node} is stopped for {span:?}"));
    }

    fn kill_server(&mut self, node: usize, span: Duration) {
        let Some(server) = self.servers.get_mut(node).filter(|server| server.state() == State::Up) else {
            return;
        };
        server.kill();
        self.later(span, Undo::Revive(node));
        self.note("server killed", format!("server {node} is killed for {span:?}"));
    }

    fn kill_clients(&mut self, node: usize) {
        let Some(server) = self.servers.get(node).filter(|server| server.state() == State::Up) else {
            return;
        };
        server.command("CLIENT KILL SKIPME yes TYPE normal");
        self.note("clients killed", format!("server {node} closes all connections"));
    }

    /// It takes nothing new, and forgets nothing either.
    fn fill_memory(&mut self, node: usize, span: Duration) {
        let Some(server) = self.servers.get(node).filter(|server| server.state() == State::Up) else {
            return;
        };
        server.command("CONFIG SET maxmemory 1");
        self.later(span, Undo::Room(node));
        self.note("server out of memory", format!("server {node} is out of memory for {span:?}"));
    }

    fn flush_scripts(&mut self, node: usize) {
        let Some(server) = self.servers.get(node).filter(|server| server.state() == State::Up) else {
            return;
        };
        server.command("SCRIPT FLUSH");
        self.note("scripts flushed", format!("server {node} forgets all scripts"));
    }

    /// Any worker, or, half of the time, the one who holds the lock.
    fn victim(&mut self, holder: Option<u32>) -> Option<usize> {
        let holder = holder.filter(|_| self.dice.chance(50));
        let is_it = |worker: &Option<Worker>| {
            worker.as_ref().is_some_and(|worker| holder.is_none_or(|process| worker.process == process))
        };
        let candidates: Vec<usize> = self
            .workers
            .iter()
            .enumerate()
            .filter(|(_, worker)| is_it(worker))
            .map(|(place, _)| place)
            .collect();
        candidates.get(self.dice.index(candidates.len())).copied()
    }

    fn stop_worker(&mut self, holder: Option<u32>, span: Duration) {
        let Some(place) = self.victim(holder) else { return };
        let Some(Some(worker)) = self.workers.get_mut(place) else { return };
        if worker.is_stopped {
            return;
        }
        worker.stop();
        let process = worker.process;
        self.later(span, Undo::GoOnWorker(place, process));
        self.note("worker stopped", format!("process {process} is stopped for {span:?}"));
    }

    fn kill_worker(&mut self, holder: Option<u32>) {
        let Some(place) = self.victim(holder) else { return };
        let Some(mut worker) = self.workers.get_mut(place).and_then(Option::take) else { return };
        worker.kill();
        self.recorder.write(clock::now(), What::Dead { process: worker.process });
        let span = self.millis(1, 400);
        self.later(span, Undo::Hire(place));
        self.note("worker killed", format!("process {} is killed", worker.process));
    }

    fn delay(&mut self, node: usize, span: Duration) {
        let most = self.millis(1, 80);
        let Some(proxy) = self.proxies.get(node) else { return };
        proxy.delay(most);
        self.later(span, Undo::Quicken(node));
        self.note("network delays", format!("network of {node} delays by up to {most:?} for {span:?}"));
    }

    fn silence(&mut self, node: usize, span: Duration) {
        let way = self.way();
        let Some(proxy) = self.proxies.get(node) else { return };
        proxy.silence(way);
        self.later(span, Undo::Speak(node, way));
        self.note("network silent", format!("network of {node} is silent {way:?} for {span:?}"));
    }

    /// What a majority is told or says is under way for so long: it may act, and nobody hears of it.
    fn silence_majority(&mut self, span: Duration) {
        let nodes = self.servers.len();
        let (way, first) = (self.way(), self.dice.index(nodes));
        for offset in 0..=nodes / 2 {
            let node = (first + offset) % nodes;
            if let Some(proxy) = self.proxies.get(node) {
                proxy.silence(way);
                self.later(span, Undo::Speak(node, way));
            }
        }
        self.note("majority silent", format!("network of a majority is silent {way:?} for {span:?}"));
    }

    fn way(&mut self) -> Way {
        if self.dice.chance(50) { Way::Up } else { Way::Down }
    }

    fn cut(&mut self, node: usize) {
        let (way, after) = (self.way(), self.dice.index(400));
        let late = if way == Way::Up && self.dice.chance(60) { Some(self.millis(1, 3_000)) } else { None };
        let Some(proxy) = self.proxies.get(node) else { return };
        proxy.cut(Cut { way, after, late });
        let name = if late.is_some() { "connection cut, bytes late" } else { "connection cut" };
        self.note(
            name,
            format!("network of {node} cuts {way:?} after {after} bytes, the rest later: {late:?}"),
        );
    }

    /// So many at once that nobody can get in.
    fn take_majority(&mut self) {
        let nodes = self.servers.len();
        let span = self.millis(50, 1_200);
        let first = self.dice.index(nodes);
        for offset in 0..=nodes / 2 {
            let node = (first + offset) % nodes;
            if self.dice.chance(50) {
                self.stop_server(node, span);
            } else {
                self.kill_server(node, span);
            }
        }
        self.note("majority gone", format!("a majority is gone for {span:?}"));
    }

    /// What may never happen: a majority forgets what it granted.
    fn make_forget(&mut self) {
        let majority = self.servers.len() / 2 + 1;
        let up = self.servers.iter().filter(|server| server.state() == State::Up);
        for server in up.take(majority) {
            server.command("FLUSHALL");
        }
        self.note("majority forgets", "a majority forgets all".into());
    }

    /// Sends everyone home; whether all have gone in an orderly way by then.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn dismiss(&mut self, patience: Duration) -> io::Result<()> {
        let until = clock::now().saturating_add(patience);
        for worker in self.workers.iter_mut().flatten() {
            worker.dismiss();
        }
        loop {
            self.look_after()?;
            if self.workers.iter().all(Option::is_none) {
                return Ok(());
            }
            if clock::now() >= until {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        for worker in self.workers.iter_mut().flatten() {
            let text = format!("it has not come to an end within {patience:?}");
            self.recorder.write(clock::now(), What::Broken { process: worker.process, text });
            worker.kill();
            self.recorder.write(clock::now(), What::Dead { process: worker.process });
        }
        self.workers.clear();
        Ok(())
    }

    /// Looks, after everyone has gone, whether locks are left on nodes beyond the time of any ttl.
    pub(crate) fn look_for_locks(&self, patience: Duration) {
        let until = clock::now().saturating_add(patience);
        for (node, server) in self.servers.iter().enumerate() {
            let is_there = || !server.says("EXISTS door side gate", ":0\r\n");
            while is_there() {
                if clock::now() >= until {
                    let text = format!("server {node} still has a lock, long after everyone has gone");
                    self.recorder.write(clock::now(), What::Broken { process: 0, text });
                    break;
                }
                std::thread::sleep(SOON);
            }
        }
    }

    /// Takes away workers that have ended by themselves, and tells of those that failed.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn look_after(&mut self) -> io::Result<()> {
        for slot in &mut self.workers {
            let Some(worker) = slot else { continue };
            if let Some(status) = worker.ended()? {
                if !status.success() {
                    let text = format!("it has ended by itself, with {status}");
                    self.recorder.write(clock::now(), What::Broken { process: worker.process, text });
                }
                *slot = None;
            }
        }
        Ok(())
    }
}
