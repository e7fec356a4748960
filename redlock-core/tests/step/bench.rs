//! A client over N nodes that the test plays itself: it reads what each node was sent, and says what each answers, when.
//!
//! The bench is a driver that keeps the calling contract: it drains after every call, and asserts line 4 of it around every
//! drain. Commands are shown as text, with each token as `T1`, `T2`, … in the order in which they were first seen.

use std::collections::BTreeMap;
use std::time::Duration;

use redlock_core::{
    AcquireError, AcquireRequest, Client, Config, ConfigBuilder, ConnectionId, DisconnectReason, Event,
    ExtendError, Instant, LockId, NodeId, OperationId, Output, ReleaseOutcome,
};

pub(crate) const OK: &[u8] = b"+OK\r\n";
/// The null of RESP3.
pub(crate) const NIL: &[u8] = b"_\r\n";
/// The null of RESP2.
pub(crate) const NIL2: &[u8] = b"$-1\r\n";
pub(crate) const ONE: &[u8] = b":1\r\n";
pub(crate) const ZERO: &[u8] = b":0\r\n";
pub(crate) const OOM: &[u8] = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n";

pub(crate) const RELEASE_SCRIPT: &str =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";
pub(crate) const EXTEND_SCRIPT: &str = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) else return 0 end";

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Who a node says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    /// HELLO with this server and version.
    Hello(&'static str, &'static str),
    /// An error to HELLO: RESP2.
    NoHello,
}

pub(crate) const REDIS_7: Says = Says::Hello("redis", "7.0.15");
pub(crate) const REDIS_8_4: Says = Says::Hello("redis", "8.4.0");
pub(crate) const VALKEY_8_1: Says = Says::Hello("valkey", "8.1.1");
pub(crate) const VALKEY_9: Says = Says::Hello("valkey", "9.1.2");

pub(crate) fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// The answer to a fenced set: what the counters are.
pub(crate) fn counters(counters: &[u64]) -> Vec<u8> {
    let texts: String = counters.iter().map(|counter| bulk(&counter.to_string())).collect();
    format!("*{}\r\n{texts}", counters.len()).into_bytes()
}

/// The answer to HELLO 3.
pub(crate) fn hello(server: &str, version: &str) -> Vec<u8> {
    let (server, version) = (bulk(server), bulk(version));
    format!("%5\r\n$6\r\nserver\r\n{server}$7\r\nversion\r\n{version}$5\r\nproto\r\n:3\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n").into_bytes()
}

/// The text of INFO, as RESP2 sends it and RESP3 understands it.
pub(crate) fn info(run: u32, uptime: i64) -> Vec<u8> {
    bulk(&format!(
        "# Server\r\nrun_id:{run:040x}\r\nuptime_in_seconds:{uptime}\r\n# Replication\r\nrole:master\r\n"
    ))
    .into_bytes()
}

/// One end of a connection.
#[derive(Debug, Default)]
struct End {
    /// The connection that the engine has asked for, and that was not made yet.
    wanted: Option<ConnectionId>,
    connection: Option<ConnectionId>,
    /// What was written to the connection that stands and not looked at.
    sent: Vec<Vec<Vec<u8>>>,
    /// Bytes handed to it, connection by connection, undecoded.
    payloads: Vec<Vec<u8>>,
    connects: u32,
    disconnects: u32,
    run: u32,
    uptime: i64,
    /// Its user may not ask who it is.
    is_shy: bool,
}

pub(crate) struct Bench {
    pub(crate) client: Client,
    pub(crate) now: Instant,
    ends: Vec<End>,
    events: Vec<Event>,
    tokens: BTreeMap<Vec<u8>, usize>,
    entropy: u64,
    /// Everything that came out, for comparisons to the byte.
    pub(crate) log: Vec<Output>,
}

impl Bench {
    /// N nodes, none connected, at 0 ms.
    pub(crate) fn cold(nodes: u8) -> Self {
        Self::cold_with(nodes, |config| config)
    }

    pub(crate) fn cold_with(nodes: u8, configure: impl FnOnce(ConfigBuilder) -> ConfigBuilder) -> Self {
        // Commands are counted here.
        let builder = Config::builder()
            .nodes((0..nodes).map(|node| format!("node{node}")))
            .watch_clocks(false)
            .wake_ups(false);
        Self::over(configure(builder).build().unwrap())
    }

    pub(crate) fn over(config: Config) -> Self {
        let ends = (0..u32::try_from(config.nodes().len()).unwrap()).map(|run| End {
            run: 0xa0 + run,
            uptime: 90,
            ..End::default()
        });
        let ends = ends.collect();
        let client = Client::new(config, 7, Instant::ZERO);
        let mut bench = Self {
            client,
            now: Instant::ZERO,
            ends,
            events: Vec::new(),
            tokens: BTreeMap::new(),
            entropy: 0x1000,
            log: Vec::new(),
        };
        bench.drain();
        bench
    }

    /// N nodes that have the native forms (Redis 8.4), all ready, at 0 ms.
    pub(crate) fn new(nodes: u8) -> Self {
        Self::with(nodes, |config| config)
    }

    pub(crate) fn with(nodes: u8, configure: impl FnOnce(ConfigBuilder) -> ConfigBuilder) -> Self {
        let mut bench = Self::cold_with(nodes, configure);
        for node in 0..nodes {
            bench.up(node);
        }
        bench.forget();
        bench
    }

    /// All nodes are of this kind, and ready.
    pub(crate) fn of(nodes: u8, says: Says) -> Self {
        let mut bench = Self::cold(nodes);
        for node in 0..nodes {
            bench.up_as(node, says);
        }
        bench.forget();
        bench
    }

    fn end(&mut self, node: u8) -> &mut End {
        &mut self.ends[usize::from(node)]
    }

    // ---- time ----

    /// Waits until then as a driver does: every timer is fed at its instant.
    pub(crate) fn at(&mut self, millis: u64) {
        self.until(Instant::from_millis(millis));
    }

    pub(crate) fn until(&mut self, end: Instant) {
        while let Some(due) = self.client.poll_timeout().filter(|due| due.at <= end) {
            assert!(due.at > self.now, "a wake-up that is not later than now: {due:?}");
            self.now = due.at;
            self.client.handle_timeout(due.at);
            self.drain();
        }
        self.now = self.now.max(end);
        self.client.handle_timeout(self.now);
        self.drain();
    }

    /// The process is stopped until then: nothing is called.
    pub(crate) fn stopped_until(&mut self, millis: u64) {
        self.now = Instant::from_millis(millis);
    }

    // ---- the drain, with line 4 of the contract ----

    pub(crate) fn drain(&mut self) {
        loop {
            let before = self.client.poll_timeout();
            let Some(output) = self.client.poll_output() else { break };
            let before = before.expect("a wake-up while output is queued");
            assert_eq!(before.at, self.client.now(), "no sleeping on what is queued: {before:?} {output:?}");
            self.take(output);
        }
        if let Some(due) = self.client.poll_timeout() {
            assert!(due.at > self.client.now(), "busy loop: {due:?} at {:?}", self.client.now());
        }
    }

    fn take(&mut self, output: Output) {
        self.log.push(output.clone());
        match output {
            Output::Connect { connection, .. } => {
                let end = &mut self.ends[connection.node.index()];
                assert_eq!(end.connection, None, "a second connection to {:?}", connection.node);
                end.wanted = Some(connection);
                end.connects += 1;
            }
            Output::Transmit { connection, payload } => {
                let end = &mut self.ends[connection.node.index()];
                assert_eq!(end.connection, Some(connection), "bytes for a connection that does not stand");
                end.sent.extend(decode(&payload));
                end.payloads.push(payload.to_vec());
            }
            Output::Disconnect { connection } => {
                let end = &mut self.ends[connection.node.index()];
                assert!(
                    end.connection == Some(connection) || end.wanted == Some(connection),
                    "{connection:?} is not there"
                );
                end.connection = None;
                end.wanted = None;
                end.disconnects += 1;
                end.sent.clear();
            }
            Output::Event(event) => self.events.push(event),
        }
    }

    // ---- connections ----

    /// The connection that was asked for is made; nothing is answered.
    pub(crate) fn accept(&mut self, node: u8) {
        let connection = self.end(node).wanted.take().expect("a connection was asked for");
        self.end(node).connection = Some(connection);
        self.client.handle_connected(connection, self.now);
        self.drain();
    }

    pub(crate) fn up(&mut self, node: u8) {
        self.up_as(node, REDIS_8_4);
    }

    /// Makes the connection and answers the handshake; what comes right after it stays to be looked at.
    pub(crate) fn up_as(&mut self, node: u8, says: Says) {
        self.accept(node);
        self.greet(node, says);
    }

    pub(crate) fn greet(&mut self, node: u8, says: Says) {
        let (run, uptime, is_shy) = (self.end(node).run, self.end(node).uptime, self.end(node).is_shy);
        let asked = self.sent(node);
        assert!(asked.len() == 1 && asked[0].starts_with("HELLO 3"), "{asked:?}");
        match says {
            Says::Hello(server, version) => self.reply(node, &hello(server, version)),
            Says::NoHello => {
                self.reply(node, b"-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n")
            }
        }
        let asked = self.sent(node);
        for command in asked {
            let answer = match command.split(' ').next() {
                Some("INFO") if is_shy => {
                    b"-NOPERM this user has no permissions to run the 'info' command\r\n".to_vec()
                }
                Some("INFO") => info(run, uptime),
                Some("PING") => b"+PONG\r\n".to_vec(),
                Some("AUTH" | "SELECT" | "CLIENT") => OK.to_vec(),
                other => panic!("not of a handshake: {other:?}"),
            };
            self.reply(node, &answer);
        }
    }

    /// The node is a second name of another one's process.
    pub(crate) fn same_process(&mut self, node: u8, other: u8) {
        let run = self.end(other).run;
        self.end(node).run = run;
    }

    /// The node comes back as a new process.
    pub(crate) fn restarted(&mut self, node: u8) {
        self.end(node).run += 0x1000;
    }

    /// It says that it has been up for so long, from its next handshake on.
    pub(crate) fn up_for(&mut self, node: u8, secs: i64) {
        self.end(node).uptime = secs;
    }

    /// It does not say who it is, from its next handshake on.
    pub(crate) fn shy(&mut self, node: u8) {
        self.end(node).is_shy = true;
    }

    /// The node closes the connection.
    pub(crate) fn cut(&mut self, node: u8) {
        self.cut_for(node, DisconnectReason::Closed);
    }

    pub(crate) fn cut_for(&mut self, node: u8, reason: DisconnectReason) {
        let end = self.end(node);
        let connection = end.connection.take().or_else(|| end.wanted.take()).expect("a connection");
        end.sent.clear();
        self.client.handle_disconnected(connection, reason, self.now);
        self.drain();
    }

    /// Cuts the connection, which has to have stood for a second so that another one is asked for at once; makes it.
    pub(crate) fn reconnect(&mut self, node: u8) {
        self.cut(node);
        self.up(node);
    }

    pub(crate) fn connection(&mut self, node: u8) -> ConnectionId {
        self.end(node).connection.expect("a connection")
    }

    pub(crate) fn is_connected(&mut self, node: u8) -> bool {
        self.end(node).connection.is_some()
    }

    pub(crate) fn is_wanted(&mut self, node: u8) -> bool {
        self.end(node).wanted.is_some()
    }

    /// Waits until the engine asks for a connection to the node.
    pub(crate) fn until_wanted(&mut self, node: u8) {
        while !self.is_wanted(node) {
            let due = self.client.poll_timeout().expect("a timer");
            self.until(due.at);
        }
    }

    pub(crate) fn connects(&mut self, node: u8) -> u32 {
        self.end(node).connects
    }

    pub(crate) fn disconnects(&mut self, node: u8) -> u32 {
        self.end(node).disconnects
    }

    // ---- bytes ----

    /// The node says this, on the connection that stands.
    pub(crate) fn reply(&mut self, node: u8, bytes: &[u8]) {
        self.feed(node, bytes);
        self.drain();
    }

    /// The same, without a drain.
    pub(crate) fn feed(&mut self, node: u8, bytes: &[u8]) {
        let connection = self.connection(node);
        self.client.handle_input(connection, bytes, self.now);
    }

    pub(crate) fn reply_all(&mut self, bytes: &[u8]) {
        for node in 0..u8::try_from(self.ends.len()).unwrap() {
            self.reply(node, bytes);
        }
    }

    /// What was sent to the node since this was last asked.
    pub(crate) fn sent(&mut self, node: u8) -> Vec<String> {
        let sent = std::mem::take(&mut self.end(node).sent);
        sent.iter().map(|command| self.show(command)).collect()
    }

    /// The oldest of them alone.
    pub(crate) fn next_command(&mut self, node: u8) -> Option<String> {
        let sent = &mut self.end(node).sent;
        let command = (!sent.is_empty()).then(|| sent.remove(0))?;
        Some(self.show(&command))
    }

    /// The same for all nodes; they must have been sent the same.
    pub(crate) fn sent_to_all(&mut self) -> Vec<String> {
        let mut all: Vec<Vec<String>> = Vec::new();
        for node in 0..u8::try_from(self.ends.len()).unwrap() {
            all.push(self.sent(node));
        }
        for (node, sent) in all.iter().enumerate() {
            assert_eq!(sent, &all[0], "node {node}");
        }
        all.swap_remove(0)
    }

    /// The payloads that the node was handed since this was last asked.
    pub(crate) fn payloads(&mut self, node: u8) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.end(node).payloads)
    }

    /// Forgets what was sent and said so far.
    pub(crate) fn forget(&mut self) {
        for end in &mut self.ends {
            end.sent.clear();
            end.payloads.clear();
        }
        self.events.clear();
    }

    fn show(&mut self, command: &[Vec<u8>]) -> String {
        let shown: Vec<String> = command.iter().map(|part| self.show_part(part)).collect();
        shown.join(" ")
    }

    fn show_part(&mut self, part: &[u8]) -> String {
        if part == RELEASE_SCRIPT.as_bytes() {
            return "release".into();
        }
        if part == EXTEND_SCRIPT.as_bytes() {
            return "extend".into();
        }
        if part.starts_with(b"local n=#KEYS/2 ") {
            let text = String::from_utf8_lossy(part);
            let name = match (text.contains("'incr'"), text.contains("'NX'")) {
                (true, _) => "fenced-set",
                (false, true) => "fenced-repair",
                (false, false) => "raise",
            };
            return name.into();
        }
        let is_token = part.len() >= 40 && part[..40].iter().all(u8::is_ascii_hexdigit);
        if !is_token {
            return String::from_utf8_lossy(part).into_owned();
        }
        let next = self.tokens.len() + 1;
        let number = *self.tokens.entry(part[..40].to_vec()).or_insert(next);
        format!("T{number}{}", String::from_utf8_lossy(&part[40..]))
    }

    // ---- events ----

    /// What was said since this was last asked, notices about nodes left out.
    pub(crate) fn told(&mut self) -> Vec<Event> {
        let (notices, told) = std::mem::take(&mut self.events).into_iter().partition(is_notice);
        self.events = notices;
        told
    }

    /// The notices about nodes and lost rounds since this was last asked.
    pub(crate) fn notices(&mut self) -> Vec<Event> {
        let (notices, told) = std::mem::take(&mut self.events).into_iter().partition(is_notice);
        self.events = told;
        notices
    }

    /// The only event that was said.
    pub(crate) fn one(&mut self) -> Event {
        let mut told = self.told();
        assert_eq!(told.len(), 1, "{told:?}");
        told.remove(0)
    }

    pub(crate) fn nothing_told(&mut self) {
        let told = self.told();
        assert!(told.is_empty(), "{told:?}");
    }

    // ---- operations ----

    pub(crate) fn request(&mut self, resource: &str) -> AcquireRequest {
        self.entropy += 1;
        let mut entropy = [0; 16];
        entropy[8..].copy_from_slice(&self.entropy.to_be_bytes());
        AcquireRequest::new(resource.to_string(), entropy)
    }

    pub(crate) fn ask(&mut self, request: AcquireRequest) -> OperationId {
        let operation = self.client.acquire(request, self.now);
        self.drain();
        operation
    }

    /// One round, ttl 10 s: node timeout 500 ms, deadline 9 898 ms after the start.
    pub(crate) fn try_acquire(&mut self, resource: &str) -> OperationId {
        let request = self.request(resource).try_once();
        self.ask(request)
    }

    /// An acquire that all nodes grant at once.
    pub(crate) fn hold(&mut self, resource: &str) -> LockId {
        let request = self.request(resource);
        self.hold_by(request)
    }

    pub(crate) fn hold_by(&mut self, request: AcquireRequest) -> LockId {
        self.ask(request);
        let sent = self.sent_to_all();
        assert!(sent.len() == 1 && sent[0].starts_with("SET "), "{sent:?}");
        self.reply_all(OK);
        match self.one() {
            Event::Acquired { lock, .. } => lock,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn extend(&mut self, lock: LockId, millis: u64) -> OperationId {
        let operation = self.client.extend(lock, ms(millis), self.now).unwrap();
        self.drain();
        operation
    }

    pub(crate) fn release(&mut self, lock: LockId) -> OperationId {
        let operation = self.client.release(lock, self.now).unwrap();
        self.drain();
        operation
    }

    pub(crate) fn cancel(&mut self, operation: OperationId) {
        self.client.cancel(operation, self.now);
        self.drain();
    }

    pub(crate) fn is_held(&self, lock: LockId) -> bool {
        self.client.lock(lock).is_some_and(|view| view.is_held(self.now))
    }

    pub(crate) fn deadline(&self, lock: LockId) -> u64 {
        self.client.lock(lock).expect("a lock").deadline().as_millis()
    }

    // ---- what must have been said ----

    pub(crate) fn acquired(&mut self) -> (LockId, u64) {
        match self.one() {
            Event::Acquired { lock, deadline, .. } => (lock, deadline.as_millis()),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn acquire_failed(&mut self) -> AcquireError {
        match self.one() {
            Event::AcquireFailed { error, .. } => error,
            other => panic!("{other:?}"),
        }
    }

    /// The last event is that an extension was confirmed; a move of the deadline may come before it.
    pub(crate) fn extended(&mut self) -> u64 {
        let told = self.told();
        match told.as_slice() {
            [Event::Extended { deadline, .. }]
            | [Event::DeadlineMoved { .. }, Event::Extended { deadline, .. }] => deadline.as_millis(),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn extend_failed(&mut self) -> ExtendError {
        match self.one() {
            Event::ExtendFailed { error, .. } => error,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn released(&mut self) -> ReleaseOutcome {
        match self.one() {
            Event::Released { outcome, .. } => outcome,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn node(index: u8) -> NodeId {
    NodeId::new(index)
}

fn is_notice(event: &Event) -> bool {
    matches!(
        event,
        Event::AttemptLost { .. }
            | Event::NodeUp { .. }
            | Event::NodeDown { .. }
            | Event::NodeRestarted { .. }
            | Event::NodeQuarantined { .. }
            | Event::QuarantineOver { .. }
            | Event::ClockStepped { .. }
            | Event::IdentityUnknown { .. }
    )
}

/// The commands of a payload: arrays of bulk strings, nothing else.
pub(crate) fn decode(payload: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut rest = payload;
    let mut commands = Vec::new();
    while !rest.is_empty() {
        let parts = header(&mut rest, b'*');
        let command = (0..parts).map(|_| {
            let len = header(&mut rest, b'$');
            let (part, after) = rest.split_at(len);
            rest = after.strip_prefix(b"\r\n").expect("CRLF after a string");
            part.to_vec()
        });
        commands.push(command.collect());
    }
    commands
}

fn header(rest: &mut &[u8], kind: u8) -> usize {
    assert_eq!(rest.first(), Some(&kind), "{:?}", String::from_utf8_lossy(rest));
    let end = rest.windows(2).position(|pair| pair == b"\r\n").expect("a line end");
    let number = std::str::from_utf8(&rest[1..end]).unwrap().parse().unwrap();
    *rest = &rest[end + 2..];
    number
}

impl Bench {
    /// A lost attempt's failure, after the node that refused it answered its release with 0 and what stands in the way.
    pub(crate) fn acquire_failed_after_asking(&mut self, node: u8, pttl: &[u8]) -> AcquireError {
        self.nothing_told();
        self.reply(node, ZERO);
        self.nothing_told();
        self.reply(node, pttl);
        self.acquire_failed()
    }
}
