//! The processes of the workers, as their parent sees them.

use crate::options::Plant;
use crate::record::Flavour;
use crate::worker::Orders;
use core::net::SocketAddr;
use redlock_proof::simulate::Dice;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

/// Where the nodes are: directly, and by way of their proxies.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    pub(crate) direct: Vec<SocketAddr>,
    pub(crate) proxied: Vec<SocketAddr>,
}

/// A worker that runs.
#[derive(Debug)]
pub(crate) struct Worker {
    /// Its number, which no other ever has.
    pub(crate) process: u32,
    pub(crate) is_stopped: bool,
    child: Child,
    /// It works until this is closed.
    orders: Option<ChildStdin>,
}

/// What is common to all of them.
#[derive(Debug)]
pub(crate) struct School {
    pub(crate) map: Map,
    pub(crate) record: PathBuf,
    pub(crate) plant: Option<Plant>,
    /// How many were started so far.
    started: u32,
}

impl School {
    pub(crate) const fn new(map: Map, record: PathBuf, plant: Option<Plant>) -> Self {
        Self { map, record, plant, started: 0 }
    }

    /// Starts the worker of this place, with a way to each node that is chosen anew.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn start(&mut self, place: usize, dice: &mut Dice<'_>) -> io::Result<Worker> {
        self.started += 1;
        let nodes = self.map.direct.len();
        // So many that their majority is half of all nodes, and for each worker others.
        let known = match self.plant {
            Some(Plant::HalfQuorum) => (nodes / 2 * 2).saturating_sub(1).max(1),
            Some(Plant::Forgetting) | None => nodes,
        };
        let ways = self.map.direct.iter().zip(&self.map.proxied);
        // Some meet every fault of the network, some none, most those of some nodes.
        let through = dice.below(3) * 50;
        let ways = ways.map(|(direct, proxied)| if dice.chance(through) { proxied } else { direct });
        let urls: Vec<String> = ways.map(|addr| format!("redis://{addr}")).collect();
        let orders = Orders {
            process: self.started,
            flavour: flavour(place),
            record: self.record.clone(),
            seed: dice.seed(),
            is_forgetful: self.plant == Some(Plant::Forgetting),
            nodes: urls.iter().cycle().skip(place * known.div_ceil(2)).take(known).cloned().collect(),
        };
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("work").args(orders.words()).stdin(Stdio::piped()).stdout(Stdio::null());
        // In a group of its own, so that the terminal's Ctrl-C comes to us alone.
        command.process_group(0);
        let mut child = command.spawn()?;
        let stdin = child.stdin.take();
        Ok(Worker { process: self.started, is_stopped: false, child, orders: stdin })
    }
}

/// What runs the locks of the worker of this place: each kind once, and again.
fn flavour(place: usize) -> Flavour {
    Flavour::ALL.into_iter().cycle().nth(place % Flavour::ALL.len()).unwrap_or(Flavour::Blocking)
}

impl Worker {
    pub(crate) fn stop(&mut self) {
        self.signal(Signal::STOP);
        self.is_stopped = true;
    }

    pub(crate) fn go_on(&mut self) {
        if self.is_stopped {
            self.signal(Signal::CONT);
            self.is_stopped = false;
        }
    }

    /// Kills it, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        let _gone = (self.child.kill(), self.child.wait());
    }

    /// It is to come to an end.
    pub(crate) fn dismiss(&mut self) {
        self.orders = None;
    }

    /// How it has ended, if it has.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    fn signal(&self, signal: Signal) {
        // It was not waited for, so this is still its number.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _gone = kill_process(pid, signal);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}
