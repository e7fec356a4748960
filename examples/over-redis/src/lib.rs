//! The engine over connections that the `redis` crate makes: [`Locks`] is a whole driver for Tokio, in this file.
//!
//! A program that talks to its nodes by `redis` already has a [`redis::Client`] for each, with its TLS, its logins and its
//! settings. [`Locks::over`] takes these; the engine decides when one of them connects and what is sent, and reads the
//! replies. `redlock-core` knows nothing of `redis`, nor `redis` of it.
//!
//! # Connections of its own
//!
//! The engine's connections are opened by your clients and shared with nobody, though a `MultiplexedConnection` could be:
//!
//! - A `SELECT` in your own code would move the engine's locks to another database, where nobody else sees them: two
//!   holders. `RESET`, `HELLO`, `CLIENT REPLY` and `MULTI` by hand are no better.
//! - A lock's reply would wait behind your slowest command, and a `BLPOP` would look to the engine like a node that hangs.
//! - What the engine gives up it has to be able to close: a `SET` that is under way must not outlive its release by much.
//! - A `ConnectionManager` connects anew without a word. The engine has to know: it greets the server again, so that one
//!   that restarted without its memory is noticed (the restart guard), and owes it releases before anything else.
//!
//! # Bytes and values
//!
//! The engine gives bytes and takes bytes; `redis` gives commands and takes [`redis::Value`]s. [`commands`] takes the one apart, [`reply`]
//! puts the other together, both with `redis-protocol`. What the engine decides by survives exactly: `+OK` is no string,
//! nil is nil, and an error has the text that the server wrote. A value that no command of the engine is answered with ends
//! the connection.
//!
//! What is lost is what `redis` keeps to itself: a reply to nothing, which the engine would close the connection for. And
//! it speaks RESP3 only, so nodes are Redis 6 or newer, or Valkey.

use bytes::{Bytes, BytesMut};
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Cmd, ConnectionAddr, ProtocolVersion, PushInfo, PushKind, RedisResult,
    ServerError, Value, VerbatimFormat,
};
use redis_protocol::resp2::{decode::decode_bytes, types::BytesFrame as Command};
use redis_protocol::resp3::decode::complete::decode_range;
use redis_protocol::resp3::encode::complete::extend_encode;
use redis_protocol::resp3::types::{BytesFrame as Reply, VerbatimStringFormat};
use redlock_core::{
    AcquireError, AcquireRequest, Address, Client, ConfigBuilder, ConnectionId, DisconnectReason, Event,
    ExtendError, ExtendRefused, Instant, LockId, LostReason, Output, ReleaseOutcome, UnknownLock,
};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::error::Error;
use std::future::{Future, poll_fn, ready};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, unconstrained};

/// Tokio's timers stand still while the machine is suspended, locks do not: the clock is read this often.
const NAP: Duration = Duration::from_secs(1);

/// Time that goes on while the machine is suspended. Read after each wait, and before an operation starts.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[must_use]
pub fn now() -> Instant {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let part = |part| u64::try_from(part).unwrap_or(0);
    Instant::from_secs(part(time.tv_sec)).saturating_add(Duration::from_nanos(part(time.tv_nsec)))
}

/// Where there is no such clock a lock that ran out in a suspend is believed in for as long as the suspend was.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[must_use]
pub fn now() -> Instant {
    static ORIGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    #[expect(clippy::disallowed_methods, reason = "the only clock that there is")]
    let origin = ORIGIN.get_or_init(std::time::Instant::now);
    Instant::ZERO.saturating_add(origin.elapsed())
}

// ---- the loop ----

/// A Redlock client over clients of the `redis` crate.
///
/// There is no task that drives it: whoever awaits one of its methods does, and [`while_held`](Self::while_held) beside your
/// work. In between nothing is renewed, and slow nodes are not told of locks and releases; [`is_held`](Self::is_held) is right all
/// the same. (`redlock-tokio` has a task, and sockets of its own.) Any future of it may be dropped: a lock that nobody took is
/// released by the next one. Without [`close`](Self::close) locks that are held stay until their ttl has passed.
pub struct Locks {
    client: Client,
    nodes: Vec<redis::Client>,
    /// One per node at a time, by the node's index.
    connections: BTreeMap<usize, Connection>,
    inbox: UnboundedReceiver<(ConnectionId, Said)>,
    say: UnboundedSender<(ConnectionId, Said)>,
}

/// The engine's end of a connection; the other one is [`serve`], a task that dropping this ends, and the connection with it.
struct Connection {
    id: ConnectionId,
    payloads: UnboundedSender<Bytes>,
    task: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a connection has to say.
enum Said {
    Connected,
    Bytes(BytesMut),
    Gone(DisconnectReason),
}

impl Locks {
    /// A client of these nodes: independent servers, an odd number. `config` has everything but nodes.
    ///
    /// # Errors
    ///
    /// The configuration makes no sense, two clients are for one server, or an address cannot be shown as a URL.
    pub fn over(
        nodes: &[redis::Client],
        mut config: ConfigBuilder,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let mut clients = Vec::new();
        for node in nodes {
            let info = node.get_connection_info();
            // The engine says HELLO 3, whatever was agreed before: so `redis` has to know that it is RESP3.
            let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
            clients.push(redis::Client::open(info.clone().set_redis_settings(settings))?);
            // For reports, and to tell servers apart. No login: that is done by the time that the engine has the connection.
            let address = match info.addr() {
                ConnectionAddr::Tcp(host, port) => url("redis", host, *port),
                ConnectionAddr::TcpTls { host, port, .. } => url("rediss", host, *port),
                other => format!("unix://{other}"),
            };
            let database = u32::try_from(info.redis_settings().db())?;
            config = config.node(Address::parse(&address)?.with_database(database));
        }
        let mut seed = [0; 8];
        getrandom::fill(&mut seed)?;
        let client = Client::new(config.build()?, u64::from_ne_bytes(seed), now());
        let (say, inbox) = unbounded_channel();
        Ok(Self { client, nodes: clients, connections: BTreeMap::new(), inbox, say })
    }

    /// Takes a lock; `request` as by [`request`]. Look whether it is still held before each step that it protects.
    ///
    /// # Errors
    ///
    /// It was not got; says what each node said.
    pub async fn acquire(&mut self, request: AcquireRequest) -> Result<LockId, AcquireError> {
        let ours = self.client.acquire(request, now());
        self.until(|event| match event {
            Event::Acquired { operation, lock, .. } if *operation == ours => Some(Ok(*lock)),
            Event::AcquireFailed { operation, error } if *operation == ours => Some(Err(error.clone())),
            _ => None,
        })
        .await
    }

    /// Extends a lock to `ttl` from now.
    ///
    /// # Errors
    ///
    /// It was refused with nothing sent; or (inside) no quorum confirmed it, and the lock may be held for the rest of its time.
    pub async fn extend(
        &mut self,
        lock: LockId,
        ttl: Duration,
    ) -> Result<Result<(), ExtendError>, ExtendRefused> {
        let ours = self.client.extend(lock, ttl, now())?;
        let extended = self.until(|event| match event {
            Event::Extended { operation, .. } if *operation == ours => Some(Ok(())),
            Event::ExtendFailed { operation, error, .. } if *operation == ours => Some(Err(error.clone())),
            _ => None,
        });
        Ok(extended.await)
    }

    /// Releases a lock on all nodes; answers when a quorum has.
    ///
    /// # Errors
    ///
    /// There is no such lock.
    pub async fn release(&mut self, lock: LockId) -> Result<ReleaseOutcome, UnknownLock> {
        let ours = self.client.release(lock, now())?;
        let released = self.until(|event| match event {
            Event::Released { operation, outcome, .. } if *operation == ours => Some(*outcome),
            _ => None,
        });
        Ok(released.await)
    }

    /// Whether the lock is held: by the local clock alone, without asking anyone.
    #[must_use]
    pub fn is_held(&self, lock: LockId) -> bool {
        self.client.lock(lock).is_some_and(|view| view.is_held(now()))
    }

    /// Drives the engine while `work` goes on: renews the lock if that was asked for, and drops `work` at its next await if
    /// the lock is lost all the same.
    ///
    /// # Errors
    ///
    /// The lock is not held (any more).
    pub async fn while_held<T>(
        &mut self,
        lock: LockId,
        work: impl Future<Output = T>,
    ) -> Result<T, LostReason> {
        let mut work = pin!(work);
        loop {
            let mut lost = None;
            self.drain(|event| match event {
                Event::Lost { lock: other, reason } if *other == lock => lost = Some(*reason),
                _ => {}
            });
            if lost.is_some() || !self.is_held(lock) {
                return Err(lost.unwrap_or(LostReason::Expired));
            }
            tokio::select! {
                biased;
                () = self.turn() => {}
                done = &mut work => return Ok(done),
            }
        }
    }

    /// Releases what is held, then closes the connections.
    pub async fn close(mut self) {
        self.client.close(now());
        self.until(|event| matches!(event, Event::Closed).then_some(())).await;
    }

    /// The engine, to look at: nodes, votes, deadlines, fences.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Turns until the engine says what is waited for.
    async fn until<T>(&mut self, mut wanted: impl FnMut(&Event) -> Option<T>) -> T {
        loop {
            let (mut found, mut nobodys) = (None, Vec::new());
            self.drain(|event| match (wanted(event), event) {
                (Some(answer), _) => found = Some(answer),
                // Its future was dropped.
                (None, Event::Acquired { lock, .. }) => nobodys.push(*lock),
                (None, _) => {}
            });
            for lock in nobodys {
                let _known = self.client.release(lock, now());
            }
            match found {
                Some(answer) => {
                    self.drain(|_| {});
                    return answer;
                }
                None => self.turn().await,
            }
        }
    }

    /// Carries out everything that the engine wants, and hands on what it has to say.
    fn drain(&mut self, mut hear: impl FnMut(&Event)) {
        while let Some(output) = self.client.poll_output() {
            match output {
                Output::Connect { connection, .. } => self.connect(connection),
                Output::Transmit { connection, payload } => {
                    let open = self.connections.get(&connection.node.index());
                    if let Some(open) = open.filter(|open| open.id == connection) {
                        // If its task has ended, it has said so, and that is in the inbox.
                        let _ended = open.payloads.send(payload);
                    }
                }
                Output::Disconnect { connection } => self.forget(connection),
                Output::Event(event) => hear(&event),
            }
        }
    }

    fn connect(&mut self, id: ConnectionId) {
        let Some(node) = self.nodes.get(id.node.index()).cloned() else { return };
        let (payloads, to_send) = unbounded_channel();
        let (say, most) = (self.say.clone(), self.client.config().limits().in_flight_per_node);
        let served = async move {
            let Err(reason) = serve(node, most, to_send, |said| drop(say.send((id, said)))).await;
            drop(say.send((id, Said::Gone(reason))));
        };
        let task = tokio::spawn(served).abort_handle();
        self.connections.insert(id.node.index(), Connection { id, payloads, task });
    }

    fn forget(&mut self, id: ConnectionId) {
        if self.connections.get(&id.node.index()).is_some_and(|open| open.id == id) {
            self.connections.remove(&id.node.index());
        }
    }

    /// Waits until something happens, and tells the engine. Whenever it is dropped, nothing is lost.
    async fn turn(&mut self) {
        let due = self.client.poll_timeout().map_or(NAP, |due| due.at.saturating_duration_since(now()));
        tokio::select! {
            biased;
            Some((id, said)) = self.inbox.recv() => match said {
                Said::Connected => self.client.handle_connected(id, now()),
                Said::Bytes(bytes) => self.client.handle_input(id, &bytes, now()),
                Said::Gone(reason) => {
                    self.forget(id);
                    self.client.handle_disconnected(id, reason, now());
                }
            },
            () = tokio::time::sleep(due.min(NAP)) => self.client.handle_timeout(now()),
        }
    }
}

/// Asks for a resource, with 16 bytes of the operating system's generator for the token.
///
/// # Errors
///
/// The operating system has no entropy to give.
pub fn request(resource: impl Into<Bytes>) -> Result<AcquireRequest, getrandom::Error> {
    let mut entropy = [0; 16];
    getrandom::fill(&mut entropy)?;
    Ok(AcquireRequest::new(resource, entropy))
}

fn url(scheme: &str, host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("{scheme}://[{host}]:{port}")
    } else {
        format!("{scheme}://{host}:{port}")
    }
}

// ---- a connection ----

type Answer = Pin<Box<dyn Future<Output = RedisResult<Value>> + Send>>;

/// Makes a connection and carries bytes to and fro, until it breaks; says why it did.
///
/// `redis` must not have timeouts of its own here: a command whose reply it no longer waits for would still be carried out. The
/// engine has them, for a connection that is made and for one that is silent, and drops this future.
async fn serve(
    node: redis::Client,
    most: usize,
    mut payloads: UnboundedReceiver<Bytes>,
    say: impl Fn(Said),
) -> Result<Infallible, DisconnectReason> {
    let (pushed, mut pushes) = unbounded_channel();
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(most)
        .set_push_sender(pushed);
    let connection = match node.get_multiplexed_async_connection_with_config(&config).await {
        Ok(connection) => connection,
        Err(error) => {
            let gone = reason(&error);
            // What the server said to the login is for the engine to read: as the answer to the HELLO that it begins with.
            if let Ok(refusal) = ServerError::try_from(error) {
                say(Said::Connected);
                payloads.recv().await;
                say(Said::Bytes(reply(Value::ServerError(refusal)).map_err(DisconnectReason::Io)?));
            }
            return Err(gone);
        }
    };
    say(Said::Connected);
    let hand_in = |value| reply(value).map(|bytes| say(Said::Bytes(bytes))).map_err(DisconnectReason::Io);
    let mut unanswered = VecDeque::new();
    loop {
        tokio::select! {
            biased;
            answer = next(&mut unanswered) => hand_in(answer.map_err(|error| reason(&error))?)?,
            Some(PushInfo { kind, data }) = pushes.recv() => {
                // The push came by a way of its own; what was answered before it goes first.
                while let Some(answer) = now_or_never(next(&mut unanswered)).await {
                    hand_in(answer.map_err(|error| reason(&error))?)?;
                }
                if kind == PushKind::Disconnection {
                    return Err(DisconnectReason::Closed);
                }
                hand_in(Value::Push { kind, data })?;
            }
            payload = payloads.recv() => for command in commands(payload.unwrap_or_default()).map_err(DisconnectReason::Io)? {
                unanswered.push_back(send(connection.clone(), command).await);
            },
        }
    }
}

/// Sends a command behind all that was sent before: a release must not overtake the `SET` that it undoes.
///
/// `redis` queues a command when its future is polled first, if there is room, which there is for all that the engine may
/// have outstanding. Without a budget (`unconstrained`) Tokio lets that poll have it.
async fn send(mut connection: MultiplexedConnection, command: Cmd) -> Answer {
    let answer = async move { connection.send_packed_command(&command).await };
    let mut answer: Answer = Box::pin(unconstrained(answer));
    match now_or_never(answer.as_mut()).await {
        Some(done) => Box::pin(ready(done)),
        None => answer,
    }
}

/// The next answer, in the order of the commands; never, if there is none to come.
async fn next(unanswered: &mut VecDeque<Answer>) -> RedisResult<Value> {
    let first = poll_fn(|context| match unanswered.front_mut() {
        Some(first) => first.as_mut().poll(context),
        None => Poll::Pending,
    });
    let answer = first.await;
    unanswered.pop_front();
    answer
}

/// Polls once.
async fn now_or_never<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| {
        Poll::Ready(match future.as_mut().poll(context) {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        })
    })
    .await
}

fn reason(error: &redis::RedisError) -> DisconnectReason {
    if error.is_connection_refusal() {
        DisconnectReason::Refused(error.to_string())
    } else if error.is_connection_dropped() {
        DisconnectReason::Closed
    } else {
        DisconnectReason::Io(error.to_string())
    }
}

// ---- bytes and values ----

/// The commands of a payload.
///
/// # Errors
///
/// It is none, which the engine does not do.
pub fn commands(mut payload: Bytes) -> Result<Vec<Cmd>, String> {
    let mut commands = Vec::new();
    while !payload.is_empty() {
        let decoded = decode_bytes(&payload).map_err(|error| error.to_string())?;
        let Some((Command::Array(words), length)) = decoded else {
            return Err("a payload of no commands".into());
        };
        let mut command = Cmd::new();
        for word in words {
            let Command::BulkString(word) = word else { return Err("a word that is no bulk string".into()) };
            command.arg(&*word);
        }
        commands.push(command);
        payload = payload.slice(length..);
    }
    Ok(commands)
}

/// A reply as a server writes it in RESP3.
///
/// # Errors
///
/// It is of a kind that no command of the engine is answered with, or cannot be written as it was. The stream is not to be
/// trusted then.
pub fn reply(value: Value) -> Result<BytesMut, String> {
    let mut bytes = BytesMut::new();
    extend_encode(&mut bytes, &frame(value)?, false).map_err(|error| error.to_string())?;
    // The encoder gets the length of some numbers wrong.
    match decode_range(&bytes) {
        Ok(Some((_, length))) if length == bytes.len() => Ok(bytes),
        _ => Err("a reply that is not written as one".into()),
    }
}

fn frame(value: Value) -> Result<Reply, String> {
    let all = |values: Vec<Value>| values.into_iter().map(frame).collect::<Result<Vec<_>, _>>();
    let attributes = None;
    Ok(match value {
        Value::Nil => Reply::Null,
        Value::Okay => Reply::SimpleString { data: Bytes::from_static(b"OK"), attributes },
        Value::SimpleString(text) => Reply::SimpleString { data: text.into(), attributes },
        Value::Int(data) => Reply::Number { data, attributes },
        Value::BulkString(data) => Reply::BlobString { data: data.into(), attributes },
        Value::VerbatimString { format: VerbatimFormat::Text, text } => {
            let format = VerbatimStringFormat::Text;
            Reply::VerbatimString { data: text.into(), format, attributes }
        }
        Value::Array(values) => Reply::Array { data: all(values)?, attributes },
        Value::Map(pairs) => {
            let pairs = pairs.into_iter().map(|(key, value)| Ok((frame(key)?, frame(value)?)));
            Reply::Map { data: pairs.collect::<Result<_, String>>()?, attributes }
        }
        // `redis` takes the first word off.
        Value::ServerError(error) => {
            let text = match error.details() {
                Some(details) => format!("{} {details}", error.code()),
                None => error.code().to_owned(),
            };
            if text.contains(['\r', '\n']) {
                return Err("an error of several lines".into());
            }
            Reply::SimpleError { data: text.into(), attributes }
        }
        Value::Push { kind, data } => {
            let kind = Reply::BlobString { data: kind.to_string().into(), attributes: None };
            let data = std::iter::once(Ok(kind)).chain(data.into_iter().map(frame));
            Reply::Push { data: data.collect::<Result<_, _>>()?, attributes }
        }
        other => return Err(format!("an unexpected reply: {other:?}")),
    })
}
