//! What must hold at every step.

use super::coverage::Coverage;
use super::timeline::{Lane, Timeline};
use redlock_core::sim::World;
use redlock_core::{ConnectionId, Event, Fence, Instant, LockId, NodeId, OperationId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// A lock.
    Acquire,
    /// More time.
    Extend,
    /// The end.
    Release,
    /// A quorum of nodes.
    Connect,
}

/// A resource that is asked for.
#[derive(Debug)]
struct Wanted {
    resource: Vec<u8>,
    /// Its largest fence when it was asked for.
    before: Option<Fence>,
}

/// A lost attempt.
#[derive(Clone, Copy, Debug)]
struct Lost {
    /// When its release was handed out.
    at: Instant,
    /// Whether a node was asked to tell of changes since.
    is_told: bool,
}

/// The digits of a token that all attempts of an acquire have in common; those behind them are the attempt's number.
const OPERATION_DIGITS: usize = 32;

/// What the oracle knows of one client.
#[derive(Debug, Default)]
struct Known {
    /// Pending operations, and by when, on the client's clock, they have to be answered.
    pending: BTreeMap<OperationId, (Asked, Instant)>,
    held: BTreeSet<LockId>,
    /// Values of which a release was handed out: their attempt is lost, or their lock has ended.
    over: BTreeSet<Vec<u8>>,
    /// On which of a node's connections a value was set last, by its generation.
    set_on: BTreeMap<(NodeId, Vec<u8>), u32>,
    ended: BTreeSet<LockId>,
    /// Attempts that were lost, by their acquire's part of the token, until the next one.
    lost: BTreeMap<Vec<u8>, Lost>,
    /// When the first round of an acquire that was asked for with a delay may be sent, by its part of the token.
    delayed: BTreeMap<Vec<u8>, Instant>,
    /// What a pending acquire is for.
    wanted: BTreeMap<OperationId, Vec<Wanted>>,
    grants: u64,
    is_gone: bool,
}

/// Looks after every step, and remembers what it must.
#[derive(Debug)]
pub(super) struct Oracle {
    resources: Vec<Vec<u8>>,
    clients: Vec<Known>,
    /// Whether exclusion is to be expected.
    expects_exclusion: bool,
    /// The fences that were granted, by resource.
    fences: BTreeMap<Vec<u8>, BTreeSet<Fence>>,
    /// What the scripts that were seen are for: clients send the same few all the time.
    scripts: Vec<(Vec<u8>, Option<Verb>)>,
    /// What was wrong.
    pub(super) violations: Vec<String>,
    /// What was seen.
    pub(super) coverage: Coverage,
}

impl Oracle {
    /// An oracle for so many clients that contend for these resources.
    #[must_use]
    pub(super) fn new(clients: usize, resources: Vec<Vec<u8>>, expects_exclusion: bool) -> Self {
        let clients = (0..clients).map(|_| Known::default()).collect();
        Self {
            resources,
            clients,
            expects_exclusion,
            fences: BTreeMap::new(),
            scripts: Vec::new(),
            violations: Vec::new(),
            coverage: Coverage::default(),
        }
    }

    /// The client asked for something that has to be answered by then, on its own clock.
    pub(super) fn asked(&mut self, client: usize, operation: OperationId, asked: Asked, until: Instant) {
        if let Some(known) = self.clients.get_mut(client) {
            known.pending.insert(operation, (asked, until));
        }
    }

    /// The client asked for these resources; it has to be answered by then, on its own clock.
    pub(super) fn acquires(
        &mut self,
        client: usize,
        operation: OperationId,
        resources: Vec<Vec<u8>>,
        until: Instant,
    ) {
        self.asked(client, operation, Asked::Acquire, until);
        let largest =
            |resource: &Vec<u8>| self.fences.get(resource).and_then(|fences| fences.last().copied());
        let wanted = resources.into_iter().map(|resource| Wanted { before: largest(&resource), resource });
        let wanted = wanted.collect();
        if let Some(known) = self.clients.get_mut(client) {
            known.wanted.insert(operation, wanted);
        }
    }

    /// The client is about to ask for a lock whose first round is not to be sent before `first`, on its own clock.
    pub(super) fn delays(&mut self, client: usize, entropy: &[u8], first: Instant) {
        let digits: String = entropy.iter().map(|byte| format!("{byte:02x}")).collect();
        if let Some(known) = self.clients.get_mut(client) {
            known.delayed.insert(digits.into_bytes(), first);
        }
    }

    /// A grant came with a fence: no other grant had it, it is above those of all grants before, and where keys are deleted
    /// by hand, so that grants overlap, above those of all that were there when it was asked for.
    fn on_fence(&mut self, client: usize, operation: OperationId, fence: Fence) {
        self.coverage.hit("fence granted");
        let wanted = self.clients.get_mut(client).and_then(|known| known.wanted.remove(&operation));
        for Wanted { resource, before } in wanted.unwrap_or_default() {
            let fences = self.fences.entry(resource).or_default();
            let floor = if self.expects_exclusion { fences.last().copied() } else { before };
            if floor.is_some_and(|floor| floor >= fence) || !fences.insert(fence) {
                self.violations.push(format!("fence {fence} of client {client} after {floor:?}"));
            }
        }
    }

    /// The client's process has ended: nothing is answered any more.
    pub(super) fn crashed(&mut self, client: usize) {
        if let Some(known) = self.clients.get_mut(client) {
            known.is_gone = true;
            known.pending.clear();
            known.held.clear();
        }
    }

    /// A lock that the client holds, as far as its events say.
    #[must_use]
    pub(super) fn held(&self, client: usize) -> Option<LockId> {
        self.clients.get(client).and_then(|known| known.held.first().copied())
    }

    /// How many locks the client was granted so far.
    #[must_use]
    pub(super) fn grants(&self, client: usize) -> u64 {
        self.clients.get(client).map_or(0, |known| known.grants)
    }

    /// Something of the client that is pending, and can be cancelled.
    #[must_use]
    pub(super) fn pending(&self, client: usize) -> Option<OperationId> {
        let pending = self.clients.get(client)?.pending.iter();
        pending.filter(|(_, (asked, _))| *asked != Asked::Connect).map(|(operation, _)| *operation).next()
    }

    /// Whether the client waits for a lock.
    #[must_use]
    pub(super) fn is_acquiring(&self, client: usize) -> bool {
        let asked = |known: &Known| known.pending.values().any(|(asked, _)| *asked == Asked::Acquire);
        self.clients.get(client).is_some_and(asked)
    }

    /// The client releases the lock: not held from now on.
    pub(super) fn released(&mut self, client: usize, lock: LockId) {
        if let Some(known) = self.clients.get_mut(client) {
            known.held.remove(&lock);
            known.ended.insert(lock);
        }
    }

    /// Looks at the world after a step.
    pub(super) fn look(&mut self, world: &mut World, timeline: &mut Timeline) {
        for client in 0..self.clients.len() {
            for (at, event) in world.take_events(client) {
                timeline.note(at, Lane::Client(client), || format!("{event:?}"));
                self.coverage.note(&event);
                self.on_event(client, &event);
            }
        }
        for client in 0..self.clients.len() {
            let delay = world.client(client).map(|engine| engine.config().retry_delay().0);
            let (now, delay) = (world.local_now(client), delay.unwrap_or_default());
            for (connection, payload) in world.take_sent(client) {
                self.on_waiting(client, &payload, now, delay);
                self.on_sent(client, connection, &payload);
            }
        }
        self.check_exclusion(world);
        self.check_expiry(world);
        self.check_bounds(world);
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "looks at what it knows; a new event is no answer by itself"
    )]
    fn on_event(&mut self, client: usize, event: &Event) {
        let Some(known) = self.clients.get_mut(client) else { return };
        let mut granted = None;
        let answered = match event {
            Event::Acquired { operation, lock, fence, .. } => {
                known.held.insert(*lock);
                known.grants += 1;
                granted = fence.map(|fence| (*operation, fence));
                Some((*operation, Asked::Acquire))
            }
            Event::AcquireFailed { operation, .. } => Some((*operation, Asked::Acquire)),
            Event::Extended { operation, .. } | Event::ExtendFailed { operation, .. } => {
                Some((*operation, Asked::Extend))
            }
            Event::Released { operation, .. } => Some((*operation, Asked::Release)),
            Event::Connected { operation } | Event::ConnectFailed { operation, .. } => {
                Some((*operation, Asked::Connect))
            }
            Event::Lost { lock, .. } => {
                if !known.held.remove(lock) || !known.ended.insert(*lock) {
                    self.violations
                        .push(format!("R17: client {client} lost {lock:?} twice, or never had it"));
                }
                None
            }
            _ => None,
        };
        if let Some((operation, asked)) = answered
            && known.pending.remove(&operation).map(|(asked, _)| asked) != Some(asked)
        {
            self.violations
                .push(format!("client {client}: {operation:?} ended in a second event: {event:?}"));
        }
        if let Some((operation, fence)) = granted {
            self.on_fence(client, operation, fence);
        }
    }

    /// How waiters come to their next round: in the packet of a release, told by nodes, or by the retry delay.
    fn on_waiting(&mut self, client: usize, payload: &[u8], now: Instant, least_delay: Duration) {
        let Some(known) = self.clients.get_mut(client) else { return };
        let mut released = None;
        for command in commands(payload) {
            if let [b"CLIENT", b"CACHING", ..] = command[..] {
                known.lost.values_mut().for_each(|lost| lost.is_told = true);
            }
            if command.first() == Some(&b"GETRANGE".as_slice()) {
                self.coverage.hit("holder's watch");
            }
            let Some((verb, value)) = about(&command, &mut self.scripts) else { continue };
            let Some((operation, attempt)) = value.split_at_checked(OPERATION_DIGITS) else { continue };
            let key =
                if command.first() == Some(&b"EVAL".as_slice()) { command.get(3) } else { command.get(1) };
            match verb {
                Verb::Release => {
                    released = key.copied();
                    let lost = known.lost.entry(operation.to_vec());
                    lost.or_insert(Lost { at: now, is_told: false });
                }
                // A repair has no lost attempt before it; a first attempt neither.
                Verb::Set => {
                    if let Some(first) = known.delayed.remove(operation) {
                        self.coverage.hit("first round delayed");
                        // Rounded as in `check_bounds`.
                        if now.saturating_add(Duration::from_micros(1)) < first {
                            let text =
                                format!("client {client} sends a first round at {now:?}, before {first:?}");
                            self.violations.push(text);
                        }
                    }
                    if attempt.starts_with(b"00000001") && released.is_some() && released == key.copied() {
                        self.coverage.hit("queue hand-off");
                    }
                    let Some(lost) = known.lost.remove(operation) else { continue };
                    let took = now.saturating_duration_since(lost.at);
                    if took < least_delay {
                        // Nobody who was told nothing comes so soon.
                        self.coverage.hit("woken by a push");
                    } else if !lost.is_told {
                        self.coverage.hit("R9 delay");
                    }
                }
                Verb::Raise => {}
            }
        }
    }

    /// No SET, and no repair, is handed out for a token after a release of it was.
    fn on_sent(&mut self, client: usize, connection: ConnectionId, payload: &[u8]) {
        let Some(known) = self.clients.get_mut(client) else { return };
        for command in commands(payload) {
            match about(&command, &mut self.scripts) {
                Some((Verb::Set, value)) => {
                    if known.over.contains(value) {
                        self.violations.push(format!(
                            "R7: client {client} sets a token that is over, on {connection:?}"
                        ));
                    }
                    known.set_on.insert((connection.node, value.to_vec()), connection.generation);
                }
                Some((Verb::Raise, _)) => self.coverage.hit("fence raised"),
                Some((Verb::Release, value)) => {
                    let is_script = command.first() == Some(&b"EVAL".as_slice());
                    self.coverage.hit(if is_script {
                        "R18 deleted by script"
                    } else {
                        "R18 deleted natively"
                    });
                    let key = (connection.node, value.to_vec());
                    if known.set_on.get(&key).is_some_and(|generation| *generation < connection.generation) {
                        self.coverage.hit("R7 released on a later connection");
                    }
                    known.over.insert(key.1);
                }
                None => {}
            }
        }
    }

    /// At no instant do two clients believe in one lock.
    fn check_exclusion(&mut self, world: &World) {
        if !self.expects_exclusion {
            return;
        }
        for resource in &self.resources {
            let holders = world.holders(resource);
            if holders.len() > 1 {
                let name = String::from_utf8_lossy(resource);
                self.violations.push(format!("two holders of {name} at {:?}: {holders:?}", world.now()));
            }
        }
    }

    /// No lock key is without an expiry, ever.
    fn check_expiry(&mut self, world: &World) {
        for (node, server) in world.servers().iter().enumerate() {
            if server.has_key_without_expiry() {
                self.violations.push(format!("a key without expiry on node {node} at {:?}", world.now()));
            }
        }
    }

    /// Every operation is answered by its bound.
    fn check_bounds(&mut self, world: &World) {
        for (client, known) in self.clients.iter().enumerate() {
            if known.is_gone || known.pending.is_empty() || world.is_paused(client) {
                continue;
            }
            let now = world.local_now(client);
            for (operation, (asked, until)) in &known.pending {
                // The engine's timer is rounded to a nanosecond of its clock, the world's to one of its own.
                if now > until.saturating_add(Duration::from_micros(1)) {
                    let text = format!(
                        "client {client}: {operation:?} ({asked:?}) is not answered by {until:?}; it is {now:?}, {:?}",
                        world.now()
                    );
                    self.violations.push(text);
                }
            }
        }
    }

    /// After quiet: nothing is pending, and no node holds a key.
    pub(super) fn look_at_the_end(&mut self, world: &World) {
        for (client, known) in self.clients.iter().enumerate() {
            if !known.pending.is_empty() {
                self.violations.push(format!("client {client} still waits for {:?}", known.pending));
            }
        }
        for (node, server) in world.servers().iter().enumerate() {
            for resource in &self.resources {
                if let Some(left) = server.pttl(resource, world.now()) {
                    let name = String::from_utf8_lossy(resource);
                    self.violations.push(format!("node {node} still holds {name}, for {left} ms more"));
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Verb {
    Set,
    Raise,
    Release,
}

/// The commands of a payload: arrays of strings.
fn commands(mut payload: &[u8]) -> Vec<Vec<&[u8]>> {
    let mut commands = Vec::new();
    while let Some(count) = line(&mut payload, b'*') {
        let mut command = Vec::new();
        for _ in 0..count {
            let Some(length) = line(&mut payload, b'$') else { break };
            let (word, rest) = payload.split_at_checked(length).unwrap_or_default();
            payload = rest.get(2..).unwrap_or_default();
            command.push(word);
        }
        commands.push(command);
    }
    commands
}

/// The number of a line that starts with `kind`.
fn line(payload: &mut &[u8], kind: u8) -> Option<usize> {
    let end = payload.iter().position(|byte| *byte == b'\r')?;
    let number = payload.get(..end)?.strip_prefix(&[kind])?;
    *payload = payload.get(end + 2..)?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// What a command does to which value, if it takes or ends a lock.
fn about<'a>(command: &[&'a [u8]], scripts: &mut Vec<(Vec<u8>, Option<Verb>)>) -> Option<(Verb, &'a [u8])> {
    match command {
        [b"SET", _, value, b"NX", ..] => Some((Verb::Set, value)),
        [b"DELEX", _, b"IFEQ", value] | [b"DELIFEQ", _, value] => Some((Verb::Release, value)),
        [b"EVAL", script, keys, rest @ ..] => {
            let keys: usize = std::str::from_utf8(keys).ok()?.parse().ok()?;
            let value = rest.get(keys)?;
            let verb = match scripts.iter().find(|(known, _)| known == script) {
                Some((_, verb)) => *verb,
                None => {
                    let verb = about_script(script);
                    scripts.push((script.to_vec(), verb));
                    verb
                }
            };
            Some((verb?, value))
        }
        _ => None,
    }
}

fn about_script(script: &[u8]) -> Option<Verb> {
    let has = |word: &[u8]| script.windows(word.len()).any(|part| part == word);
    match (has(b"'NX'"), has(b"'del'"), has(b"KEEPTTL")) {
        (true, ..) => Some(Verb::Set),
        (_, true, _) => Some(Verb::Release),
        (.., true) => Some(Verb::Raise),
        (..) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_apart() {
        let payload = b"*6\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n$2\r\nNX\r\n$2\r\nPX\r\n$1\r\n9\r\n\
            *3\r\n$7\r\nDELIFEQ\r\n$1\r\nk\r\n$1\r\nv\r\n";
        let commands = commands(payload);
        assert_eq!(commands.len(), 2);
        assert!(matches!(about(&commands[0], &mut Vec::new()), Some((Verb::Set, b"v"))));
        assert!(matches!(about(&commands[1], &mut Vec::new()), Some((Verb::Release, b"v"))));
    }
}
