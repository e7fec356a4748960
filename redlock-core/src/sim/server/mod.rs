//! A simulated node: what a Redis or Valkey server does with the bytes of a lock client, without sockets and clocks.
//!
//! [`Server`] is a state machine like the engine: bytes and instants go in, bytes come out. What it answers is checked,
//! byte by byte, against what real servers of each [`Dialect`] were seen to answer. It knows the commands that lock
//! clients use, their scripts by their exact text, and nothing more.
//!
//! ```
//! use redlock_core::Instant;
//! use redlock_core::sim::{Dialect, Server};
//!
//! let mut server = Server::new(Dialect::Redis7, 1);
//! let now = Instant::ZERO;
//! let session = server.open(now);
//! server.receive(session, b"SET door key-of-ann NX PX 1000\r\n", now);
//! assert_eq!(server.output(session), b"+OK\r\n");
//!
//! // Held for the whole of 1000 ms by the server's clock, and free one millisecond later.
//! assert_eq!(server.pttl(b"door", Instant::from_millis(1_000)), Some(0));
//! assert_eq!(server.value(b"door", Instant::from_millis(1_001)), None);
//! ```

mod acl;
mod clock;
mod command;
mod condition;
mod dialect;
mod exec;
mod log;
mod reply;
mod request;
mod script;
mod session;
mod sha1;
mod store;
#[cfg(test)]
mod tests;
mod tracking;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::time::Duration;

use self::acl::{DEFAULT_USER, User, Users};
use self::clock::WallClock;
pub use self::condition::Condition;
pub use self::dialect::Dialect;
use self::exec::Call;
use self::log::Log;
pub use self::log::LogEntry;
use self::reply::Reply;
use self::request::{Parsed, Strictness};
use self::session::Session;
use self::store::{Store, Touch, Value};
use self::tracking::Table;
use super::random::Random;
use crate::Instant;

/// One client's connection to one [`Server`]. Never reused, not even after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(u64);

impl SessionId {
    /// The number that `CLIENT ID` and `HELLO` say.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// What a node remembers of its data across a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    /// All of it, with the exact expiry of each key, as with an append-only file that was written in time.
    Keep,
    /// Nothing, as without persistence.
    Lose,
}

/// A simulated node. See the [module](self) for an example.
///
/// Every call that takes `now` must be given one that is not earlier than that of the call before. Calls for a session
/// that is closed do nothing.
#[derive(Debug)]
pub struct Server {
    core: Core,
    sessions: BTreeMap<u64, Session>,
    next_session: u64,
    clock: WallClock,
    random: Random,
    is_up: bool,
    pause: Option<Pause>,
    is_muted: bool,
    failures: Vec<Failure>,
    log: Log,
}

/// What commands work on.
#[derive(Debug)]
struct Core {
    dialect: Dialect,
    store: Store,
    users: Users,
    scripts: BTreeMap<String, Vec<u8>>,
    config: BTreeMap<&'static str, String>,
    tracked: Table,
    condition: Option<Condition>,
    run_id: String,
    /// What the server's wall clock said when it started.
    started_ms: i64,
}

impl Core {
    fn config(&self, name: &str) -> &str {
        self.config.get(name).map(String::as_str).unwrap_or_default()
    }
}

/// A stopped process: what arrives waits in the kernel.
#[derive(Debug)]
struct Pause {
    /// `None`: until resumed.
    until: Option<Instant>,
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
enum Waiting {
    Open(SessionId),
    Bytes(SessionId, Vec<u8>),
    HangUp(SessionId),
}

#[derive(Debug)]
struct Failure {
    command: String,
    error: String,
    once: bool,
}

/// # Setting up
impl Server {
    /// A node that is up, empty, open to everyone, and has all rights for all. The seed decides its run ids.
    #[must_use]
    pub fn new(dialect: Dialect, seed: u64) -> Self {
        let config = [
            ("appendonly", "no"),
            ("appendfsync", "everysec"),
            ("maxmemory", "0"),
            ("maxmemory-policy", "noeviction"),
            ("save", ""),
        ];
        let clock = WallClock::new();
        let mut random = Random::new(seed);
        Self {
            core: Core {
                dialect,
                store: Store::default(),
                users: Users::new(),
                scripts: BTreeMap::new(),
                config: config.into_iter().map(|(name, value)| (name, value.to_string())).collect(),
                tracked: Table::default(),
                condition: None,
                run_id: run_id(&mut random),
                started_ms: clock.millis(Instant::ZERO),
            },
            sessions: BTreeMap::new(),
            next_session: 1,
            clock,
            random,
            is_up: true,
            pause: None,
            is_muted: false,
            failures: Vec::new(),
            log: Log::default(),
        }
    }

    /// Asks everyone for `password` (`requirepass`).
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        self.core.users.insert(DEFAULT_USER, User::all_rights(Some(password.into())));
        self
    }

    /// Adds a user. The rules are those of `ACL SETUSER`, of which this is understood: `+command` or just `command`,
    /// `+command|subcommand`, `+@all`; and for the keys `~pattern`, `%R~pattern`, `%W~pattern`, where a pattern is a
    /// key or a prefix and `*`. Nothing is allowed without a rule, but all keys are where no rule names any.
    #[must_use]
    pub fn with_user(mut self, name: &str, password: &str, rules: &[&str]) -> Self {
        self.core.users.insert(name, User::with_rules(password, rules));
        self
    }

    /// Sets what `CONFIG GET` says of `appendonly`, `appendfsync`, `maxmemory`, `maxmemory-policy` or `save`; other
    /// names are ignored. It changes nothing in what the node does.
    #[must_use]
    pub fn with_config(mut self, name: &str, value: &str) -> Self {
        if let Some(current) = self.core.config.get_mut(name) {
            *current = value.into();
        }
        self
    }

    /// The dialect it was made with.
    #[must_use]
    pub const fn dialect(&self) -> Dialect {
        self.core.dialect
    }
}

/// # Connections
impl Server {
    /// A client connects. In some [conditions](Condition), it is told an error, unasked, and closed.
    ///
    /// The owner must not call this while the node is [down](Self::is_up): there, connections are refused.
    pub fn open(&mut self, now: Instant) -> SessionId {
        self.end_timed_pause(now);
        let id = SessionId(self.next_session);
        self.next_session = self.next_session.saturating_add(1);
        if self.is_up {
            let user = self.core.users.default_is_open().then(|| DEFAULT_USER.into());
            self.sessions.insert(id.0, Session::new(id.0, user));
            match &mut self.pause {
                Some(pause) => pause.waiting.push(Waiting::Open(id)),
                None => self.greet(id),
            }
        }
        id
    }

    /// Bytes from the client arrive. Complete commands run at once, in order.
    pub fn receive(&mut self, session: SessionId, bytes: &[u8], now: Instant) {
        self.end_timed_pause(now);
        match &mut self.pause {
            Some(pause) => pause.waiting.push(Waiting::Bytes(session, bytes.to_vec())),
            None => self.execute(session, bytes, now),
        }
    }

    /// Takes what the server has to say to this client; empty if there is nothing.
    #[must_use]
    pub fn output(&mut self, session: SessionId) -> Vec<u8> {
        self.sessions.get_mut(&session.0).map(Session::take_output).unwrap_or_default()
    }

    /// The sessions for which [`output`](Self::output) has something or which the server wants to close.
    #[must_use]
    pub fn pending(&self) -> Vec<SessionId> {
        let sessions = self.sessions.values();
        sessions.filter(|session| session.closing || session.has_output()).map(|s| SessionId(s.id)).collect()
    }

    /// Whether the server has closed its side: nothing more will come, and what is sent is lost.
    #[must_use]
    pub fn wants_close(&self, session: SessionId) -> bool {
        self.sessions.get(&session.0).is_none_or(|session| session.closing && !session.has_output())
    }

    /// The client has gone. Commands that were received before still run, also those that wait for the end of a pause.
    pub fn hang_up(&mut self, session: SessionId) {
        match &mut self.pause {
            Some(pause) if self.sessions.contains_key(&session.0) => pause.waiting.push(Waiting::HangUp(session)),
            Some(_) | None => self.remove_session(session),
        }
    }

    /// Lets time pass: keys that have run out are removed, with the pushes that this means, and a timed pause ends.
    pub fn tick(&mut self, now: Instant) {
        self.end_timed_pause(now);
        if self.is_up && self.pause.is_none() {
            self.core.store.expire_all(self.clock.millis(now));
            self.tell_touches(None);
            self.flush_broadcasts();
        }
    }

    /// When [`tick`](Self::tick) has something to do that a client would notice: a key runs out that a client wants to
    /// hear of, or a timed pause ends.
    #[must_use]
    pub fn next_event(&self) -> Option<Instant> {
        if let Some(pause) = &self.pause {
            return pause.until;
        }
        let tracked = self.core.store.first_expiry(self.core.tracked.keys());
        let broadcasts = || self.sessions.values().filter_map(|s| s.tracking.as_ref()).filter(|t| t.is_broadcast());
        let broadcast = if broadcasts().next().is_some() {
            self.core.store.first_expiry_where(|key| broadcasts().any(|tracking| tracking.broadcasts(key)))
        } else {
            None
        };
        self.clock.first_after(tracked.into_iter().chain(broadcast).min()?)
    }

    fn greet(&mut self, id: SessionId) {
        let refusal = self.core.condition.as_ref().filter(|condition| {
            let open_to_all = self.core.users.default_is_open();
            **condition == Condition::MaxClients || (**condition == Condition::ProtectedMode && open_to_all)
        });
        let text = refusal.map(|condition| condition.text(self.core.dialect));
        if let (Some(text), Some(session)) = (text, self.sessions.get_mut(&id.0)) {
            session.say(&Reply::error(text));
            session.closing = true;
            self.drop_output_if_muted();
        }
    }

    fn execute(&mut self, id: SessionId, bytes: &[u8], now: Instant) {
        // Taken out of the map while its commands run, so that they can reach the others.
        let Some(mut session) = self.sessions.remove(&id.0) else { return };
        session.parser.feed(bytes);
        while !session.closing {
            let parsed = session.parser.next(Strictness {
                authenticated: session.user.is_some(),
                checks_line_ends: self.core.dialect == Dialect::Valkey9,
            });
            match parsed {
                Parsed::Incomplete => break,
                Parsed::Request(args) => self.run(&mut session, &args, now),
                Parsed::Broken(text) => {
                    session.say(&Reply::error(text));
                    session.closing = true;
                }
                Parsed::Hostile => session.closing = true,
            }
        }
        self.sessions.insert(id.0, session);
        self.flush_broadcasts();
    }

    fn run(&mut self, session: &mut Session, args: &[Vec<u8>], now: Instant) {
        let database = session.database;
        let reply = self.scripted_failure(args).unwrap_or_else(|| {
            Call {
                core: &mut self.core,
                session,
                peers: &mut self.sessions,
                args,
                now_ms: self.clock.millis(now),
                now_us: self.clock.micros(now),
            }
            .run()
        });
        let said = reply_bytes(&reply, session);
        self.log.push(now, SessionId(session.id), database, args, said);
        session.say(&reply);
        // `CLIENT CACHING` speaks of the command behind it.
        if !args.first().is_some_and(|name| name.eq_ignore_ascii_case(b"client")) {
            session.caching = None;
        }
        self.tell_touches(Some(session));
        if session.closing {
            self.core.tracked.forget(session.id);
        }
    }

    fn scripted_failure(&mut self, args: &[Vec<u8>]) -> Option<Reply> {
        let name = args.first()?;
        let fits = |failure: &Failure| {
            let mut words = failure.command.split(['|', ' ']);
            words.next().is_some_and(|word| word.as_bytes().eq_ignore_ascii_case(name))
                && words.next().is_none_or(|word| {
                    args.get(1).is_some_and(|sub| word.as_bytes().eq_ignore_ascii_case(sub))
                })
        };
        let index = self.failures.iter().position(fits)?;
        let failure = self.failures.get(index)?;
        let reply = Reply::error(failure.error.clone());
        if failure.once {
            self.failures.remove(index);
        }
        Some(reply)
    }

    /// Tells other sessions of what has just changed at once, and `running` behind its reply, as servers do.
    fn tell_touches(&mut self, mut running: Option<&mut Session>) {
        for touch in self.core.store.take_touches() {
            match touch {
                Touch::Read(key) => {
                    if let Some(session) = &running {
                        self.core.tracked.register(key, session.id);
                    }
                }
                Touch::Changed(key) => self.tell_change(&key, running.as_deref_mut()),
                Touch::Flushed => {
                    self.core.tracked.clear();
                    if let Some(session) = running.as_deref_mut() {
                        session.pending.push(None);
                    }
                    for session in self.sessions.values_mut() {
                        session.push(None);
                    }
                }
            }
        }
        if let Some(session) = running {
            session.flush_pending();
        }
        self.drop_output_if_muted();
    }

    fn tell_change(&mut self, key: &[u8], running: Option<&mut Session>) {
        let waiting = self.core.tracked.take(key);
        for (id, session) in &mut self.sessions {
            if waiting.contains(id) {
                session.push(Some(&[key.to_vec()]));
            } else if session.tracking.as_ref().is_some_and(|tracking| tracking.broadcasts(key)) {
                session.broadcast.push(key.to_vec());
            }
        }
        let Some(session) = running else { return };
        let Some(tracking) = session.tracking.as_ref().filter(|tracking| !tracking.no_loop) else { return };
        if tracking.broadcasts(key) {
            session.broadcast.push(key.to_vec());
        } else if waiting.contains(&session.id) {
            session.pending.push(Some(key.to_vec()));
        }
    }

    fn flush_broadcasts(&mut self) {
        for session in self.sessions.values_mut() {
            session.flush_broadcast();
        }
        self.drop_output_if_muted();
    }

    fn drop_output_if_muted(&mut self) {
        if self.is_muted {
            for session in self.sessions.values_mut() {
                drop(session.take_output());
            }
        }
    }

    fn remove_session(&mut self, session: SessionId) {
        self.sessions.remove(&session.0);
        self.core.tracked.forget(session.0);
    }

    fn end_timed_pause(&mut self, now: Instant) {
        if let Some(until) = self.pause.as_ref().and_then(|pause| pause.until).filter(|until| *until <= now) {
            self.resume(until);
        }
    }
}

/// # Faults
impl Server {
    /// The process dies and comes up again at once: every session is closed without a word, commands that waited for
    /// the end of a pause are lost, the run id is new and the uptime 0. Also starts a node that was stopped.
    pub fn restart(&mut self, memory: Memory, now: Instant) {
        self.stop();
        if memory == Memory::Lose {
            self.core.store.clear();
            self.core.store.take_touches();
        }
        self.start(now);
    }

    /// The process ends. Its data stay, as on a disk, for [`start`](Self::start).
    pub fn stop(&mut self) {
        self.is_up = false;
        self.pause = None;
        self.sessions.clear();
        self.core.tracked.clear();
        self.core.scripts.clear();
    }

    /// The process starts, with the data that it had and a new run id. Does nothing if it is up.
    pub fn start(&mut self, now: Instant) {
        if !self.is_up {
            self.is_up = true;
            self.core.run_id = run_id(&mut self.random);
            self.core.started_ms = self.clock.millis(now);
        }
    }

    /// Whether it can be connected to.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.is_up
    }

    /// Stops the process where it is (`SIGSTOP`): connections are accepted by the kernel, bytes pile up, nothing runs.
    pub fn pause(&mut self) {
        self.set_pause(None);
    }

    /// As [`pause`](Self::pause), and [resumes](Self::resume) by itself, at the first call from `now + span` on.
    pub fn pause_for(&mut self, span: Duration, now: Instant) {
        self.set_pause(Some(now.saturating_add(span)));
    }

    /// Continues: what arrived meanwhile runs now, in the order in which it came, also for clients that have gone. The
    /// ttl of a key counts from now, not from the arrival of its `SET`.
    pub fn resume(&mut self, now: Instant) {
        let Some(pause) = self.pause.take() else { return };
        for waiting in pause.waiting {
            match waiting {
                Waiting::Open(session) => self.greet(session),
                Waiting::Bytes(session, bytes) => self.execute(session, &bytes, now),
                Waiting::HangUp(session) => self.remove_session(session),
            }
        }
    }

    /// Whether the process is stopped.
    #[must_use]
    pub const fn is_paused(&self) -> bool {
        self.pause.is_some()
    }

    /// Sets the server's wall clock, by which keys run out: `offset_ms` ahead of an undisturbed one at `now` (behind,
    /// if negative), and from then on faster by `rate_ppm` millionths.
    pub fn set_clock(&mut self, offset_ms: i64, rate_ppm: i64, now: Instant) {
        self.clock.set(offset_ms, rate_ppm, now);
    }

    /// Moves the server's wall clock by `ms`, forwards or, if negative, back.
    pub fn jump_clock(&mut self, ms: i64, now: Instant) {
        self.clock.jump(ms, now);
    }

    /// Brings the node into a condition, or with `None` out of it.
    pub fn set_condition(&mut self, condition: Option<Condition>) {
        self.core.condition = condition;
    }

    /// Answers the next `command` with this error line (without `-`), and does not run it. A subcommand is named as in
    /// `client|tracking`. Several failures of one command are used up in order.
    pub fn fail_next(&mut self, command: &str, error: &str) {
        self.failures.push(Failure { command: command.into(), error: error.into(), once: true });
    }

    /// As [`fail_next`](Self::fail_next), until [`clear_failures`](Self::clear_failures).
    pub fn fail_always(&mut self, command: &str, error: &str) {
        self.failures.push(Failure { command: command.into(), error: error.into(), once: false });
    }

    /// Ends what [`fail_next`](Self::fail_next) and [`fail_always`](Self::fail_always) asked for.
    pub fn clear_failures(&mut self) {
        self.failures.clear();
    }

    /// Half-open: the node still runs what it is sent, but nothing that it says gets out, until this is unset.
    pub fn mute(&mut self, is_muted: bool) {
        self.is_muted = is_muted;
    }

    /// Closes every session without a word, as `CLIENT KILL` of all does. Commands that wait for the end of a pause
    /// still run.
    pub fn kill_sessions(&mut self) {
        for session in self.sessions.values_mut() {
            session.closing = true;
        }
    }

    fn set_pause(&mut self, until: Option<Instant>) {
        if self.is_up {
            self.pause.get_or_insert(Pause { until: None, waiting: Vec::new() }).until = until;
        }
    }
}

/// # Inspection
///
/// All of this looks at database 0 and leaves no trace, except for what it is there to change.
impl Server {
    /// The text at `key`; `None` if the key is free or holds something else.
    #[must_use]
    pub fn value(&self, key: &[u8], now: Instant) -> Option<Vec<u8>> {
        let entry = self.core.store.peek(0, key, self.clock.millis(now))?;
        entry.value.text().map(<[u8]>::to_vec)
    }

    /// What is left of the key's ttl, in milliseconds by the server's clock; `None` if the key is free or does not run
    /// out. Zero still means held.
    #[must_use]
    pub fn pttl(&self, key: &[u8], now: Instant) -> Option<i64> {
        let now_ms = self.clock.millis(now);
        Some(self.core.store.peek(0, key, now_ms)?.expires_at?.saturating_sub(now_ms))
    }

    /// The keys that are held, in order.
    #[must_use]
    pub fn keys(&self, now: Instant) -> Vec<Vec<u8>> {
        self.core.store.keys(0, self.clock.millis(now))
    }

    /// Sets a key as another client would.
    pub fn put(&mut self, key: &[u8], value: &[u8], ttl: Option<Duration>, now: Instant) {
        self.put_value(key, Value::Text(value.to_vec()), ttl, now);
    }

    /// Puts a list where a lock client expects a text.
    pub fn put_list(&mut self, key: &[u8], items: &[&[u8]], ttl: Option<Duration>, now: Instant) {
        let items = items.iter().map(|item| item.to_vec()).collect();
        self.put_value(key, Value::List(items), ttl, now);
    }

    /// Removes a key, as another client or an eviction would; whether it was there.
    pub fn remove(&mut self, key: &[u8], now: Instant) -> bool {
        let held = self.core.store.get(0, key, self.clock.millis(now)).is_some();
        self.core.store.remove(0, key);
        self.tell_touches(None);
        self.flush_broadcasts();
        held
    }

    /// The run id that `INFO` says: 40 hex digits, new with every start.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.core.run_id
    }

    /// The requests that were executed or refused, oldest first, with what was answered. Of a long run only the newest
    /// are kept, at least [`LOG_LIMIT`](Self::LOG_LIMIT). Passwords are replaced.
    #[must_use]
    pub fn log(&self) -> &[LogEntry] {
        self.log.entries()
    }

    /// So many requests at least are in the [log](Self::log).
    pub const LOG_LIMIT: usize = log::LIMIT;

    fn put_value(&mut self, key: &[u8], value: Value, ttl: Option<Duration>, now: Instant) {
        let now_ms = self.clock.millis(now);
        let expires_at =
            ttl.map(|ttl| now_ms.saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)));
        self.core.store.set(0, key, value, expires_at);
        self.tell_touches(None);
        self.flush_broadcasts();
    }
}

fn reply_bytes(reply: &Reply, session: &Session) -> Vec<u8> {
    let mut bytes = Vec::new();
    reply.encode(session.protocol, &mut bytes);
    bytes
}

fn run_id(random: &mut Random) -> String {
    let id: String = (0..3).map(|_| format!("{:016x}", random.next_u64())).collect();
    id.get(..40).unwrap_or(&id).into()
}
