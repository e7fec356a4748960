//! A simulated node: what a Redis or Valkey server does with the bytes of a lock client, without sockets and clocks.

mod acl;
mod clock;
mod command;
mod condition;
mod dialect;
mod exec;
mod faults;
mod inspect;
#[cfg(test)]
#[cfg(unix)]
mod live;
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

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

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
use self::store::{Store, Touch};
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

/// A simulated node: what a Redis or Valkey server does with the bytes of a lock client, without sockets and clocks.
///
/// A state machine like the engine: bytes and instants go in, bytes come out. What it answers is checked,
/// byte by byte, against what real servers of each [`Dialect`] were seen to answer. It knows the commands that lock
/// clients use, their scripts by their exact text, and nothing more.
///
/// ```
/// use redlock_core::Instant;
/// use redlock_core::sim::{Dialect, Server};
///
/// let mut server = Server::new(Dialect::Redis7, 1);
/// let now = Instant::ZERO;
/// let session = server.open(now);
/// server.receive(session, b"SET door key-of-ann NX PX 1000\r\n", now);
/// assert_eq!(server.output(session), b"+OK\r\n");
///
/// // Held for the whole of 1000 ms by the server's clock, and free one millisecond later.
/// assert_eq!(server.pttl(b"door", Instant::from_millis(1_000)), Some(0));
/// assert_eq!(server.value(b"door", Instant::from_millis(1_001)), None);
/// ```
///
/// Every call that takes `now` must be given one that is not earlier than that of the call before. Calls for a session
/// that is closed do nothing.
#[derive(Debug)]
pub struct Server {
    core: Core,
    /// Boxed: each is taken out while its commands run.
    sessions: BTreeMap<u64, Box<Session>>,
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
            log: Log::new(),
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
            self.sessions.insert(id.0, Box::new(Session::new(id.0, user)));
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
        self.sessions.get_mut(&session.0).map(|session| session.take_output()).unwrap_or_default()
    }

    /// The sessions for which [`output`](Self::output) has something or which the server wants to close.
    #[must_use]
    pub fn pending(&self) -> Vec<SessionId> {
        let sessions = self.sessions.values();
        sessions.filter(|session| session.closing || session.has_output()).map(|s| SessionId(s.id)).collect()
    }

    /// Whether there is any such session.
    pub(in crate::sim) fn is_pending(&self) -> bool {
        self.sessions.values().any(|session| session.closing || session.has_output())
    }

    /// Whether the server has closed its side: nothing more will come, and what is sent is lost.
    #[must_use]
    pub fn wants_close(&self, session: SessionId) -> bool {
        self.sessions.get(&session.0).is_none_or(|session| session.closing && !session.has_output())
    }

    /// The client has gone. Commands that were received before still run, also those that wait for the end of a pause.
    pub fn hang_up(&mut self, session: SessionId) {
        match &mut self.pause {
            Some(pause) if self.sessions.contains_key(&session.0) => {
                pause.waiting.push(Waiting::HangUp(session))
            }
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
        if !self.core.store.is_watched() {
            return None;
        }
        let tracked = self.core.store.first_expiry(self.core.tracked.keys());
        let broadcasts =
            || self.sessions.values().filter_map(|s| s.tracking.as_ref()).filter(|t| t.is_broadcast());
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
                keys_read: None,
            }
            .run()
        });
        if self.log.is_kept() {
            self.log.push(now, SessionId(session.id), database, args, reply_bytes(&reply, session));
        }
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
            match &session.tracking {
                Some(tracking) if tracking.broadcasts(key) => {
                    session.broadcast.insert(key.to_vec());
                }
                Some(tracking) if !tracking.is_broadcast() && waiting.contains(id) => {
                    session.push(Some(&[key.to_vec()]));
                }
                Some(_) | None => {}
            }
        }
        let Some(session) = running else { return };
        match &session.tracking {
            Some(tracking) if tracking.no_loop => {}
            Some(tracking) if tracking.broadcasts(key) => {
                session.broadcast.insert(key.to_vec());
            }
            Some(tracking) if !tracking.is_broadcast() && waiting.contains(&session.id) => {
                session.pending.push(Some(key.to_vec()));
            }
            Some(_) | None => {}
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

fn reply_bytes(reply: &Reply, session: &Session) -> Vec<u8> {
    let mut bytes = Vec::new();
    reply.encode(session.protocol, &mut bytes);
    bytes
}

fn run_id(random: &mut Random) -> String {
    let id: String = (0..3).map(|_| format!("{:016x}", random.next_u64())).collect();
    id.get(..40).unwrap_or(&id).into()
}
