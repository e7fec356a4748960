//! One conversation with one node.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::{Bytes, BytesMut};

use super::check::Check;
use super::key::{Reading, Removing};
use super::report::NodeReport;
use super::rights::Right;
use crate::address::Address;
use crate::error::NodeFault;
use crate::event::DisconnectReason;
use crate::node::handshake::{Handshake, Progress, Step};
use crate::time::Instant;
use crate::wire::decode::Decoder;
use crate::wire::error::ServerError;
use crate::wire::frame::Protocol;
use crate::wire::handshake::{Hello, Info, identity};
use crate::wire::reply::Reply;

/// What operators see of a probe's connection.
const NAME: &str = "redlock-inspect";

/// What a probe is to find out, or to do.
#[derive(Clone, Debug)]
pub struct Task(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Check { scratch: Bytes, sampling: Duration },
    Read(Bytes),
    Remove(Bytes),
}

impl Task {
    /// Whether the node is fit for locks.
    ///
    /// A lock is taken, extended and deleted on the key `scratch`, which must be nobody's and another one for each node,
    /// since two of them may be one server: make a part of it random. It runs out by itself within 5 s where it cannot be
    /// deleted. Nothing is written to a replica or a cluster's member. `sampling` is how long the node's clock is looked
    /// at.
    pub fn check(scratch: impl Into<Bytes>, sampling: Duration) -> Self {
        Self(Kind::Check { scratch: scratch.into(), sampling })
    }

    /// Who holds `key`, and its fence counter's number.
    pub fn read(key: impl Into<Bytes>) -> Self {
        Self(Kind::Read(key.into()))
    }

    /// Deletes `key`, whoever holds it; not its fence counter, which has to grow for ever.
    pub fn remove(key: impl Into<Bytes>) -> Self {
        Self(Kind::Remove(key.into()))
    }
}

/// One conversation with one node, without a socket or a clock.
///
/// Whoever drives it connects and then, until [`is_done`](Self::is_done): sends all of
/// [`poll_transmit`](Self::poll_transmit), waits for bytes until [`poll_timeout`](Self::poll_timeout) and hands them to
/// [`handle_input`](Self::handle_input), or calls [`handle_timeout`](Self::handle_timeout). Every call that takes `now`
/// takes it last, and never earlier than before. The clock should be read right before bytes are sent and right after
/// some came: round trips are counted by it.
#[derive(Debug)]
pub struct Probe {
    report: NodeReport,
    interview: Interview,
    state: State,
    decoder: Decoder,
    greeting: Greeting,
    outbox: VecDeque<Bytes>,
    pipeline: VecDeque<Pending>,
    /// An error that answered nothing: why the connection will be closed, most likely.
    last_words: Option<ServerError>,
    patience: Duration,
    /// When the node is given up, or, with nothing outstanding, when the next question is due.
    wake_at: Instant,
}

#[derive(Debug)]
enum State {
    Connecting,
    Greeting(Handshake),
    Talking,
    Done,
}

/// What is kept of the handshake, in case that it fails later.
#[derive(Debug, Default)]
struct Greeting {
    hello: Option<Hello>,
    info: Option<Info>,
}

#[derive(Debug)]
struct Pending {
    ask: Ask,
    /// `None` until it is handed out.
    sent: Option<Instant>,
}

/// What a place in the pipeline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    Handshake(Step),
    /// All of `INFO`.
    Info,
    /// One parameter.
    Config,
    /// Only whether it may be asked.
    Right(Right),
    /// A step of the trial lock.
    Try(TrialStep),
    /// A round trip.
    Time,
    /// Tidying up: whatever is answered.
    Tidy,
    Value,
    Pttl,
    Fence,
    Remove,
}

/// A step of the trial lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrialStep {
    Set,
    Extend,
    ExtendByScript,
    Delete,
}

/// What an interview wants next, when all was answered.
#[derive(Debug)]
pub(super) enum Next {
    Ask(Vec<(Ask, Bytes)>),
    WaitUntil(Instant),
    Done,
}

#[derive(Debug)]
enum Interview {
    Check(Check),
    Read(Reading),
    Remove(Removing),
}

impl Probe {
    /// A conversation with the node at `address`, which is being connected from now on. `patience` is how long it may take
    /// to connect and to log in, and then how long any answer may take.
    #[must_use]
    pub fn new(address: Address, task: Task, patience: Duration, now: Instant) -> Self {
        let interview = match task.0 {
            Kind::Check { scratch, sampling } => Interview::Check(Check::new(scratch, sampling)),
            Kind::Read(key) => Interview::Read(Reading::new(key)),
            Kind::Remove(key) => Interview::Remove(Removing::new(key)),
        };
        Self {
            report: NodeReport::new(address),
            interview,
            state: State::Connecting,
            decoder: Decoder::new(),
            greeting: Greeting::default(),
            outbox: VecDeque::new(),
            pipeline: VecDeque::new(),
            last_words: None,
            patience,
            wake_at: now.saturating_add(patience),
        }
    }

    /// The connection is made.
    pub fn handle_connected(&mut self, _now: Instant) {
        if !matches!(self.state, State::Connecting) {
            return;
        }
        self.decoder.set_protocol(Protocol::Negotiating);
        let (step, bytes) = Handshake::start(&self.report.address, Some(NAME));
        self.state = State::Greeting(Handshake::default());
        self.push(Ask::Handshake(step), bytes);
    }

    /// Bytes came.
    pub fn handle_input(&mut self, bytes: &[u8], now: Instant) {
        let mut rest = bytes;
        while !rest.is_empty() && !matches!(self.state, State::Connecting | State::Done) {
            match self.decoder.next(&mut rest) {
                Ok(None) => break,
                Ok(Some(Reply::Push(_))) => self.report.is_reached = true,
                Ok(Some(reply)) => self.on_reply(reply, now),
                Err(violation) => {
                    let detail = format!("{violation}");
                    let spoke = self.report.is_reached;
                    self.fail(if spoke { NodeFault::Protocol(detail) } else { NodeFault::NotRedis(detail) });
                }
            }
        }
        self.go_on(now);
    }

    /// The connection cannot be made, or was closed.
    pub fn handle_disconnected(&mut self, reason: DisconnectReason, _now: Instant) {
        if self.is_done() {
            return;
        }
        let in_handshake = matches!(self.state, State::Greeting(_));
        let was_mute = in_handshake && !self.report.is_reached;
        let words = self.last_words.take();
        self.fail(NodeFault::of_disconnect(reason, words, was_mute));
    }

    /// Time has passed, [`poll_timeout`](Self::poll_timeout) or less.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.is_done() || now < self.wake_at {
            return;
        }
        match self.state {
            State::Talking if self.pipeline.is_empty() => self.go_on(now),
            State::Talking => self.fail(NodeFault::Silent(self.patience)),
            State::Connecting | State::Greeting(_) => self.fail(NodeFault::HandshakeTimeout(self.patience)),
            State::Done => {}
        }
    }

    /// What is to be sent; `None` when that is all.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Bytes> {
        let first = self.outbox.pop_front()?;
        for pending in self.pipeline.iter_mut().filter(|pending| pending.sent.is_none()) {
            pending.sent = Some(now);
        }
        if matches!(self.state, State::Talking) {
            self.wake_at = now.saturating_add(self.patience);
        }
        if self.outbox.is_empty() {
            return Some(first);
        }
        let mut all = BytesMut::from(&first[..]);
        all.extend(self.outbox.drain(..).flatten());
        Some(all.freeze())
    }

    /// When to call [`handle_timeout`](Self::handle_timeout); `None` when it is over.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        (!self.is_done()).then_some(self.wake_at)
    }

    /// Whether it is over.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// What was found out, also before the end.
    #[must_use]
    pub fn into_report(mut self) -> NodeReport {
        self.describe();
        self.report
    }

    fn push(&mut self, ask: Ask, bytes: Bytes) {
        self.pipeline.push_back(Pending { ask, sent: None });
        self.outbox.push_back(bytes);
    }

    fn fail(&mut self, fault: NodeFault) {
        self.report.fault.get_or_insert(fault);
        self.state = State::Done;
        self.outbox.clear();
    }

    fn on_reply(&mut self, mut reply: Reply, now: Instant) {
        self.report.is_reached = true;
        if let Reply::Error(error) = &mut reply {
            if let Some(password) = self.report.address.password() {
                error.redact(&[password.as_bytes()]);
            }
            if error.closes_connection() {
                self.last_words = Some(error.clone());
                return self.fail(NodeFault::Server(error.clone()));
            }
        }
        let Some(pending) = self.pipeline.pop_front() else {
            return self.fail(NodeFault::Protocol(format!("said {reply} without being asked")));
        };
        let sent = pending.sent.unwrap_or(now);
        match pending.ask {
            Ask::Handshake(step) => self.on_handshake_reply(step, reply),
            Ask::Remove => Removing::on_reply(reply, &mut self.report),
            ask @ (Ask::Info
            | Ask::Config
            | Ask::Right(_)
            | Ask::Try(_)
            | Ask::Time
            | Ask::Tidy
            | Ask::Value
            | Ask::Pttl
            | Ask::Fence) => match &mut self.interview {
                Interview::Check(_) => Check::on_reply(ask, reply, (sent, now), &mut self.report),
                Interview::Read(reading) => reading.on_reply(ask, reply, &mut self.report),
                Interview::Remove(_) => {}
            },
        }
    }

    fn on_handshake_reply(&mut self, step: Step, reply: Reply) {
        match step {
            Step::Hello => self.greeting.hello = Hello::parse(&reply),
            Step::Info => self.greeting.info = Info::parse(&reply),
            Step::Auth | Step::SetName | Step::Select | Step::Ping => {}
        }
        let error = if let Reply::Error(error) = &reply { Some(error.clone()) } else { None };
        match step {
            Step::Info => self.report.rights.note(Right::Info, error.as_ref()),
            Step::Ping => self.report.rights.note(Right::Ping, error.as_ref()),
            Step::Hello | Step::Auth | Step::SetName | Step::Select => {}
        }
        let State::Greeting(handshake) = &mut self.state else { return };
        match handshake.on_reply(step, reply, &self.report.address, Some(NAME)) {
            Progress::Wait => {}
            Progress::Send(flight) => {
                for (step, bytes) in flight {
                    self.push(Ask::Handshake(step), bytes);
                }
            }
            Progress::Done(greeting) => {
                self.report.server.delete = Some(greeting.dialect.delete);
                self.report.server.extend = Some(greeting.dialect.extend);
                self.describe();
                self.state = State::Talking;
            }
            Progress::Failed(fault) => {
                self.describe();
                // What cannot be a node is looked at all the same, but not written to, where it lets us in.
                let goes_on = matches!(self.interview, Interview::Check(_))
                    && matches!(
                        fault,
                        NodeFault::Replica | NodeFault::NotStandalone(_) | NodeFault::Server(_)
                    );
                self.report.fault = Some(fault);
                self.state = if goes_on { State::Talking } else { State::Done };
            }
        }
    }

    /// Notes who answered.
    fn describe(&mut self) {
        let (hello, info) = (self.greeting.hello.as_ref(), self.greeting.info.as_ref());
        let server = &mut self.report.server;
        if let Some((product, version)) = identity(hello, info) {
            (server.product, server.version) = (Some(product), Some(version));
        }
        if self.report.is_reached {
            let spoken =
                hello.and_then(|hello| hello.protocol).and_then(|version| u8::try_from(version).ok());
            server.protocol = Some(spoken.unwrap_or(2));
        }
        server.role = info.and_then(|info| info.role).or_else(|| hello?.role).or(server.role);
        server.mode = info.and_then(|info| info.mode).or_else(|| hello?.mode).or(server.mode);
        if let Some(info) = info {
            server.run_id.clone_from(&info.run_id);
            server.uptime_secs = info.uptime_secs;
        }
    }

    /// Asks the next questions when all were answered.
    fn go_on(&mut self, now: Instant) {
        while matches!(self.state, State::Talking) && self.pipeline.is_empty() {
            let next = match &mut self.interview {
                Interview::Check(check) => check.next(&self.report, self.patience, now),
                Interview::Read(reading) => reading.next(&self.report),
                Interview::Remove(removing) => removing.next(&self.report),
            };
            match next {
                Next::Ask(asks) => {
                    for (ask, bytes) in asks {
                        self.push(ask, bytes);
                    }
                }
                Next::WaitUntil(at) => {
                    self.wake_at = at;
                    return;
                }
                Next::Done => self.state = State::Done,
            }
        }
    }
}
