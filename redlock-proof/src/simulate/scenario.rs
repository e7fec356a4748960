//! One run: a world out of a seed, faults, then quiet.

use super::coverage::Coverage;
use super::dice::Dice;
use super::election::Candidate;
use super::oracle::{Asked, Oracle};
use super::plan::{Breakage, Plan, Size, plan};
use super::timeline::{Lane, Timeline};
use redlock_core::sim::{Condition, Connects, Dialect, Direction, Flow, Link, Memory, World};
use redlock_core::{Config, Instant, NodeId};
use std::time::Duration;

/// How a run went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was wrong; empty if nothing was.
    pub violations: Vec<String>,
    /// What was seen.
    pub coverage: Coverage,
    /// What happened, if it was to be kept.
    pub timeline: Timeline,
    /// Locks that were granted.
    pub grants: u64,
}

/// Within this a free lock has to be had once all is healed.
pub(super) const PATIENCE: Duration = Duration::from_secs(6);
/// The longest ttl of any run.
const MOST_TTL: Duration = Duration::from_millis(800);
/// How far a node's clock is ahead of the world's where it has to have been up for long.
const UP_FOR: i64 = 3_600_000;

pub(super) struct Run<'a> {
    pub(super) dice: Dice<'a>,
    pub(super) world: World,
    pub(super) oracle: Oracle,
    pub(super) timeline: Timeline,
    pub(super) plan: Plan,
    longest_ttl: Duration,
    pub(super) candidates: Vec<Candidate>,
}

/// Plays the scenario that the dice decide, its size included.
#[must_use]
pub fn run(dice: Dice<'_>, breakage: Option<Breakage>, keep_timeline: bool) -> Outcome {
    run_sized(dice, None, breakage, keep_timeline)
}

/// Plays the scenario that the dice decide, at this size if one is given.
#[must_use]
pub fn run_sized(
    mut dice: Dice<'_>,
    size: Option<Size>,
    breakage: Option<Breakage>,
    keep_timeline: bool,
) -> Outcome {
    let plan = plan(&mut dice, size, breakage);
    let world = World::new(dice.seed());
    let names = plan.names();
    let oracle = Oracle::new(plan.clients, names, !plan.is_deleting);
    let longest_ttl = plan.ttl;
    let timeline = Timeline::new(keep_timeline);
    let mut run = Run { dice, world, oracle, timeline, plan, longest_ttl, candidates: Vec::new() };
    run.build();
    run.faults();
    run.rest_from_election();
    run.heal();
    run.somebody_leads();
    run.everybody_gets_it();
    run.quiet();
    let grants = run.oracle.coverage.count("R5 attempt won");
    let Run { oracle, timeline, .. } = run;
    Outcome { violations: oracle.violations, coverage: oracle.coverage, timeline, grants }
}

impl Run<'_> {
    fn build(&mut self) {
        const DIALECTS: [Dialect; 4] =
            [Dialect::Redis7, Dialect::Redis84, Dialect::Valkey81, Dialect::Valkey9];
        for node in 0..self.plan.nodes {
            self.world.add_server(DIALECTS[self.dice.index(DIALECTS.len())]);
            // Within the drift: a node's clock and a client's together differ by less than one percent.
            let allowed = i64::try_from(self.dice.below(8_000)).unwrap_or(0) - 4_000;
            let rate = if self.plan.breakage == Some(Breakage::FastClocks) { 400_000 } else { allowed };
            let anywhere = i64::try_from(self.dice.below(7_200_000)).unwrap_or(0) - 3_600_000;
            // Counters that are lost start again from their node's clock: fences grow where clocks agree.
            let (offset, rate) = if self.plan.is_guarded { (UP_FOR, 0) } else { (anywhere, rate) };
            self.world.with_server(node, |server, now| {
                server.keep_log(false);
                server.set_clock(offset, rate, now);
            });
        }
        let link = Link {
            latency: self.plan.latency,
            jitter: Duration::from_micros(self.dice.below(2_000)),
            fragments: self.dice.chance(30),
            late: self.plan.late,
            ..Link::default()
        };
        self.world.with_network(|network, now| network.set_default_link(link, now));
        for _ in 0..self.plan.clients {
            let nodes = (0..self.plan.nodes).map(|node| format!("n{node}"));
            // Hundreds of retries belong into large runs only.
            let (least, most) = match self.plan.size {
                Size::Small => (self.dice.between(5, 40), 120),
                Size::Medium => (self.dice.between(1, 10), 50),
                Size::Large => (1, 50),
            };
            let most = self.dice.between(least + 1, most);
            let mut config = Config::builder()
                .nodes(nodes)
                .node_timeout(self.plan.node_timeout)
                .default_ttl(self.plan.ttl)
                .retry_delay(Duration::from_millis(least), Duration::from_millis(most));
            if self.plan.breakage == Some(Breakage::HalfQuorum) {
                config = config.unsafe_quorum(2);
            }
            if self.plan.is_guarded {
                config = config.restart_guard(MOST_TTL);
            }
            let Ok(config) = config.build() else { return };
            let ahead = Duration::from_millis(self.dice.below(3_600_000));
            let rate = i64::try_from(self.dice.below(8_000)).unwrap_or(0) - 4_000;
            let client = self.world.add_client_with_clock(config, ahead, rate);
            self.world.keep_sent(client);
            if self.plan.is_election {
                self.candidates.push(Candidate::new(Duration::from_millis(most)));
            }
            if self.dice.chance(20) {
                self.connect(client);
            }
        }
        if self.plan.is_aliased {
            let last = NodeId::new(u8::try_from(self.plan.nodes - 1).unwrap_or(0));
            self.world.with_network(|network, _| network.set_route(0, last, 0));
        }
    }

    fn connect(&mut self, client: usize) {
        let timeout = Duration::from_millis(self.dice.between(1, 20));
        let until = self.world.local_now(client).saturating_add(timeout);
        self.timeline.note(self.world.now(), Lane::Client(client), || format!("connect within {timeout:?}"));
        let asked = self.world.with_client(client, |engine, now| engine.connect(timeout, now));
        if let Some(operation) = asked {
            self.oracle.asked(client, operation, Asked::Connect, until);
        }
    }

    // ---- the safety phase ----

    fn faults(&mut self) {
        let (ttls, mut left) = match self.plan.size {
            Size::Small if self.plan.is_election => (6, self.dice.between(10, 30)),
            Size::Small => (3, self.dice.between(3, 12)),
            Size::Medium => (4, u64::MAX),
            Size::Large => (6, u64::MAX),
        };
        let end = self.world.now().saturating_add(self.plan.ttl * ttls);
        while self.world.now() < end && left > 0 && !self.dice.is_empty() {
            left -= 1;
            let pause = self.plan.ttl.mul_f64(self.dice.below(40) as f64 / 100.0);
            self.pass(pause);
            match self.dice.below(100) {
                0..=59 => self.somebody_does_something(),
                60..=79 if self.plan.is_deleting => self.delete(),
                60..=79 => self.network_fault(),
                80..=91 => self.node_fault(),
                _ => self.client_fault(),
            }
        }
    }

    /// Lets a span of time pass, and looks after every step.
    pub(super) fn pass(&mut self, span: Duration) {
        let end = self.world.now().saturating_add(span);
        self.pass_until(end);
    }

    fn pass_until(&mut self, end: Instant) {
        while self.world.step_until(end) {
            self.oracle.look(&mut self.world, &mut self.timeline);
            self.check_leaders();
            if !self.oracle.violations.is_empty() {
                return;
            }
        }
        self.world.run_until(end);
    }

    fn somebody_does_something(&mut self) {
        let client = self.dice.index(self.plan.clients);
        if self.world.is_paused(client) || self.world.client(client).is_none() {
            return;
        }
        if self.plan.is_election {
            return self.stand(client);
        }
        match (self.oracle.held(client), self.dice.below(10)) {
            (Some(lock), 0..=3) => self.extend(client, lock),
            (Some(lock), 4..=6) => self.release(client, lock),
            (None, 0..=6) if !self.oracle.is_acquiring(client) => self.acquire(client, true),
            (_, 7) => self.cancel(client),
            (Some(lock), 8) => self.release_at_the_last_moment(client, lock),
            // It waits for its own client's lock.
            (Some(_), 9) if !self.oracle.is_acquiring(client) => self.acquire(client, true),
            (_, _) => {}
        }
        self.oracle.look(&mut self.world, &mut self.timeline);
    }

    fn acquire(&mut self, client: usize, with_options: bool) {
        let mut ttl = self.plan.ttl;
        // A half-open connection is given up after 2 s of silence (R11): before that a node may be missing.
        let mut wait = PATIENCE;
        let entropy = self.world.entropy();
        let mut wanted = self.plan.names();
        if wanted.len() > 1 && self.dice.chance(50) {
            let index = self.dice.index(wanted.len());
            wanted = vec![wanted.swap_remove(index)];
        }
        let mut request = redlock_core::AcquireRequest::all(wanted.clone(), entropy);
        if self.plan.is_fenced && self.dice.chance(85) {
            request = request.fenced();
        }
        if self.dice.chance(30) {
            request = request.watch_loss();
        }
        let mut delay = Duration::ZERO;
        if with_options {
            ttl = Duration::from_millis(self.dice.between(30, 600));
            wait = ttl.mul_f64(self.dice.below(300) as f64 / 100.0);
            if self.dice.chance(40) {
                let most = if self.plan.size == Size::Small { 200 } else { 500 };
                request = request.auto_renew(ttl.mul_f64(1.0 + self.dice.below(most) as f64 / 100.0));
            }
            if self.dice.chance(2) {
                ttl = Duration::from_millis(2);
            }
            if self.dice.chance(10) {
                request = request.attempts(u32::try_from(self.dice.between(1, 4)).unwrap_or(1));
            }
            if self.dice.chance(15) {
                // Longer than the wait, too: the first round is sent when that is over.
                delay = wait.mul_f64(self.dice.below(130) as f64 / 100.0);
                let first = self.world.local_now(client).saturating_add(delay.min(wait));
                self.oracle.delays(client, &entropy, first);
            }
        }
        self.longest_ttl = self.longest_ttl.max(ttl);
        let until = self.world.local_now(client).saturating_add(wait).saturating_add(self.plan.node_timeout);
        self.timeline.note(self.world.now(), Lane::Client(client), || {
            format!("acquire ttl {ttl:?} wait {wait:?} delay {delay:?}")
        });
        if let Some(operation) = self.world.acquire(client, request.ttl(ttl).wait(wait).delay(delay)) {
            self.oracle.acquires(client, operation, wanted, until);
        }
    }

    fn extend(&mut self, client: usize, lock: redlock_core::LockId) {
        let ttl = Duration::from_millis(if self.dice.chance(2) { 1 } else { self.dice.between(20, 800) });
        let until = self.world.local_now(client).saturating_add(self.plan.node_timeout);
        self.timeline.note(self.world.now(), Lane::Client(client), || format!("extend {lock:?} to {ttl:?}"));
        match self.world.with_client(client, |engine, now| engine.extend(lock, ttl, now)) {
            Some(Ok(operation)) => {
                self.longest_ttl = self.longest_ttl.max(ttl);
                self.oracle.asked(client, operation, Asked::Extend, until);
            }
            Some(Err(redlock_core::ExtendRefused::Because(redlock_core::ExtendErrorKind::BeyondMaxHold))) => {
                self.oracle.coverage.hit("R16 beyond max_hold");
            }
            Some(Err(redlock_core::ExtendRefused::Because(redlock_core::ExtendErrorKind::Invalid(_)))) => {
                self.oracle.coverage.hit("R12 invalid");
            }
            Some(Err(_)) | None => {}
        }
    }

    pub(super) fn release(&mut self, client: usize, lock: redlock_core::LockId) {
        self.timeline.note(self.world.now(), Lane::Client(client), || format!("release {lock:?}"));
        let until = self.world.local_now(client).saturating_add(self.plan.node_timeout);
        // The loss may be noticed by the very call: its event comes first.
        let operation = self.world.release(client, lock);
        if let Some(operation) = operation {
            self.oracle.asked(client, operation, Asked::Release, until);
        }
        self.oracle.look(&mut self.world, &mut self.timeline);
        if operation.is_some() {
            self.oracle.released(client, lock);
        }
    }

    fn release_at_the_last_moment(&mut self, client: usize, lock: redlock_core::LockId) {
        let Some(view) = self.world.client(client).and_then(|engine| engine.lock(lock)) else { return };
        let left = view.deadline().saturating_duration_since(self.world.local_now(client));
        let early = Duration::from_micros(self.dice.below(3_000));
        self.pass(left.saturating_sub(early));
        if self.oracle.held(client) == Some(lock) {
            self.release(client, lock);
        }
    }

    fn cancel(&mut self, client: usize) {
        if let Some(operation) = self.oracle.pending(client) {
            self.timeline.note(self.world.now(), Lane::Client(client), || format!("cancel {operation:?}"));
            self.world.with_client(client, |engine, now| engine.cancel(operation, now));
        }
    }

    fn network_fault(&mut self) {
        let client = self.dice.index(self.plan.clients);
        let index = self.dice.index(self.plan.nodes);
        let node = NodeId::new(u8::try_from(index).unwrap_or(0));
        let mut link = self.world.with_network(|network, _| network.link(client, node).clone());
        let what = self.dice.below(11);
        if what >= 9 {
            return self.slow_network(client);
        }
        let bytes = self.dice.index(200);
        self.timeline.note(self.world.now(), Lane::Node(index), || {
            format!("network fault {what} with client {client}")
        });
        self.world.with_network(|network, now| match what {
            0 => network.reset(client, node, now),
            1 => network.strand(client, node, now),
            2 => network.half_open(client, node),
            3 => network.cut_after(client, node, Direction::ToServer, bytes),
            4 => network.cut_after(client, node, Direction::ToClient, bytes),
            _ => {
                match what {
                    5 => link.to_server = Flow::Held,
                    6 => link.to_client = Flow::Held,
                    7 => {
                        link.connects =
                            if bytes.is_multiple_of(2) { Connects::Refused } else { Connects::Swallowed }
                    }
                    _ => {
                        (link.to_server, link.to_client, link.connects) =
                            (Flow::Open, Flow::Open, Connects::Normal)
                    }
                }
                network.set_link(client, node, link, now);
            }
        });
    }

    /// All packets of a client take so long that an attempt may run out of validity.
    fn slow_network(&mut self, client: usize) {
        let latency = self.plan.ttl.mul_f64(self.dice.between(5, 70) as f64 / 100.0);
        self.timeline
            .note(self.world.now(), Lane::Client(client), || format!("packets take {latency:?} each way"));
        self.change_links(client, |link| link.latency = latency);
    }

    fn change_links(&mut self, client: usize, change: impl Fn(&mut Link)) {
        for node in 0..self.plan.nodes {
            let node = NodeId::new(u8::try_from(node).unwrap_or(0));
            self.world.with_network(|network, now| {
                let mut link = network.link(client, node).clone();
                change(&mut link);
                network.set_link(client, node, link, now);
            });
        }
    }

    fn node_fault(&mut self) {
        let index = self.dice.index(self.plan.nodes);
        let span = self.plan.ttl.mul_f64(self.dice.below(200) as f64 / 100.0);
        let what = self.dice.below(10);
        self.timeline.note(self.world.now(), Lane::Node(index), || format!("node fault {what}, {span:?}"));
        let (breakage, is_guarded) = (self.plan.breakage, self.plan.is_guarded);
        if breakage == Some(Breakage::CountersBehind) && what < 8 {
            return self.forget_all_and_set_clocks_back();
        }
        let condition = match self.dice.below(10) {
            0 => Some(Condition::Oom),
            1 => Some(Condition::Loading),
            2 => Some(Condition::Misconf),
            3 => Some(Condition::Noreplicas),
            4 => Some(Condition::Busy),
            5..=7 => Some(Condition::Readonly),
            8 => Some(Condition::MaxClients),
            _ => None,
        };
        self.world.with_server(index, |server, now| match (breakage, what) {
            (Some(Breakage::Forgetting), 0..=7) => server.restart(Memory::Lose, now),
            (Some(Breakage::ClockJumps), 0..=7) => server.jump_clock(600, now),
            (_, 0 | 5) if is_guarded => server.restart(Memory::Lose, now),
            (_, 0) => server.restart(Memory::Keep, now),
            (_, 1) => server.stop(),
            (_, 2) => server.start(now),
            (_, 3) => server.pause_for(span, now),
            (_, 4) => server.kill_sessions(),
            // A clock that goes back keeps keys for longer: a nuisance, no danger.
            (_, 5) => server.jump_clock(-50, now),
            (_, 6..=8) => server.set_condition(condition),
            _ => server.fail_next("SET", "ERR planted"),
        });
    }

    /// The exception to the rule that fences grow.
    fn forget_all_and_set_clocks_back(&mut self) {
        for node in 0..self.plan.nodes {
            self.world.with_server(node, |server, now| {
                server.jump_clock(-UP_FOR / 2, now);
                server.restart(Memory::Lose, now);
            });
        }
    }

    /// Somebody deletes keys by hand, on one node or everywhere; perhaps just before the owner gives them up.
    fn delete(&mut self) {
        let nodes = if self.dice.chance(60) {
            0..self.plan.nodes
        } else {
            let node = self.dice.index(self.plan.nodes);
            node..node + 1
        };
        self.timeline
            .note(self.world.now(), Lane::World, || format!("all keys of nodes {nodes:?} are deleted"));
        for node in nodes {
            for resource in &self.plan.resources {
                self.world.with_server(node, |server, now| server.remove(resource.as_bytes(), now));
            }
        }
        let client = self.dice.index(self.plan.clients);
        if self.dice.chance(50)
            && !self.world.is_paused(client)
            && let Some(lock) = self.oracle.held(client)
        {
            self.release(client, lock);
        }
    }

    fn client_fault(&mut self) {
        let client = self.dice.index(self.plan.clients);
        self.timeline.note(self.world.now(), Lane::Client(client), || "fault".into());
        if self.world.is_paused(client) {
            self.world.resume_client(client);
        } else {
            match self.dice.below(10) {
                0 => {
                    self.world.crash_client(client);
                    self.oracle.crashed(client);
                }
                1 => {
                    self.world.jump_client_clock(client, self.plan.ttl);
                    // As a machine that was suspended: its timer fires first.
                    self.world.with_client(client, redlock_core::Client::handle_timeout);
                }
                _ => self.world.pause_client(client),
            }
        }
        self.oracle.look(&mut self.world, &mut self.timeline);
    }

    // ---- the liveness phase ----

    fn heal(&mut self) {
        self.timeline.note(self.world.now(), Lane::World, || "everything is healed".into());
        for node in 0..self.plan.nodes {
            self.world.with_server(node, |server, now| {
                server.set_condition(None);
                server.clear_failures();
                server.resume(now);
                server.start(now);
            });
        }
        for client in 0..self.plan.clients {
            let latency = self.plan.latency;
            self.change_links(client, |link| {
                (link.to_server, link.to_client, link.connects) = (Flow::Open, Flow::Open, Connects::Normal);
                link.latency = latency;
            });
            if self.world.is_paused(client) {
                self.world.resume_client(client);
            }
        }
        self.oracle.look(&mut self.world, &mut self.timeline);
        // Back-off at most 2 s, a handshake timeout at most 2 s, silence noticed after 2 s, and the longest wait.
        self.pass(Duration::from_secs(7).max(self.plan.ttl * 10));
    }

    /// Once a majority is healthy every client gets every lock, one after the other.
    fn everybody_gets_it(&mut self) {
        for client in 0..self.plan.clients {
            if self.world.client(client).is_none() || !self.oracle.violations.is_empty() {
                continue;
            }
            while let Some(lock) = self.oracle.held(client) {
                self.release(client, lock);
            }
        }
        self.pass(self.longest_ttl + self.plan.late);
        for client in 0..self.plan.clients {
            if self.world.client(client).is_none() || !self.oracle.violations.is_empty() {
                continue;
            }
            let before = self.oracle.grants(client);
            self.acquire(client, false);
            let end = self.world.now().saturating_add(PATIENCE + self.plan.node_timeout);
            while self.oracle.grants(client) == before && self.world.now() < end {
                self.pass(self.plan.node_timeout);
            }
            if self.oracle.grants(client) == before && self.oracle.violations.is_empty() {
                self.oracle.violations.push(format!("client {client} did not get a free lock"));
            }
            if let Some(lock) = self.oracle.held(client) {
                self.release(client, lock);
            }
        }
    }

    fn quiet(&mut self) {
        if !self.oracle.violations.is_empty() {
            return;
        }
        self.pass(
            self.plan.node_timeout + self.longest_ttl * 2 + self.plan.late + Duration::from_millis(100),
        );
        self.oracle.look_at_the_end(&self.world);
    }
}
