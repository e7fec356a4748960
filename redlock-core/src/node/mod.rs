//! One node: its connection's life, its pipeline, and what is known of the server behind it.
//!
//! ```text
//!            due                 connected               all answered
//!   Down ───────────▶ Connecting ─────────▶ Handshaking ─────────────▶ Ready
//!    ▲  ▲                 │                      │                      │
//!    │  └───back-off──────┴──────────────────────┘                      │
//!    └───────────back-off, or at once if it had stood for a while───────┘
//! ```
//!
//! A node knows no locks: it carries [`Tag`]s through its pipeline and hands them back with the replies. Replies match
//! commands by their order alone (R21), which is why a connection of which a reply is in doubt is closed, and why every
//! connection has a generation.

pub(crate) mod backoff;
mod clock;
pub(crate) mod handshake;
mod outbox;
mod uptime;
mod votes;

use crate::address::Address;
use crate::error::NodeFault;
use crate::ids::{ConnectionId, LockId, NodeId, OperationId};
use crate::machine::{Reach, Verb};
use crate::time::Instant;
use crate::wire::command;
use crate::wire::decode::Decoder;
use crate::wire::error::ServerError;
use crate::wire::handshake::{DeleteForm, Dialect, ExtendForm};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use backoff::Backoff;
use bytes::Bytes;
use clock::ClockWatch;
pub(crate) use clock::Step as ClockStep;
use core::time::Duration;
use handshake::{Greeting, Handshake, Step};
pub(crate) use outbox::{Outbox, Outgoing};
pub(crate) use uptime::required as required_uptime;
use uptime::{Counted, Uptime};
pub use votes::VoteCounts;

/// A connection that stood for so long and breaks is made anew at once; one that breaks sooner waits as after a failure,
/// or a server that drops every client right after the handshake would be hammered.
const STOOD: Duration = Duration::from_secs(1);

/// A node that refused a compare is connected anew after so long, to see whether the right was given meanwhile.
const RECHECK: Duration = Duration::from_secs(10);

/// What a place in the pipeline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Handshake(Step),
    Claim {
        lock: LockId,
        verb: Verb,
        form: Form,
    },
    /// What stands in the way of a refused acquire: `PTTL` of its key.
    Holder {
        operation: OperationId,
    },
    /// What time it is there: `TIME`.
    Clock,
    /// `CLIENT TRACKING ON OPTIN`.
    Tracking,
    /// `CLIENT CACHING YES`: of the read behind it.
    Caching,
    /// How long a key is there that somebody waits for, and its next change is told.
    Reading {
        watch: u64,
    },
}

/// Whether the connection that stands tells of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tracking {
    /// It was not asked to: nobody has waited yet.
    Unasked,
    Asked,
    /// It does not, nor will it.
    Refused,
}

/// Which form of a command was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `SET … NX`, one key.
    Set,
    /// The script that sets several keys.
    SetAll,
    /// The script that sets so many keys and counts their counters up.
    FencedSet(u8),
    FencedRepair,
    Raise,
    Extend(ExtendForm),
    ExtendAll,
    Delete(DeleteForm),
    DeleteAll(u8),
}

#[derive(Debug)]
pub(crate) enum State {
    Down { retry_at: Instant },
    Connecting { until: Instant },
    Handshaking { until: Instant, handshake: Handshake },
    Ready { since: Instant },
    Closed,
}

/// One node of the configuration.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) address: Arc<Address>,
    /// The address as it is shown: without the password.
    pub(crate) label: Arc<str>,
    pub(crate) state: State,
    generation: u32,
    pub(crate) decoder: Decoder,
    /// Whether a frame was read from the connection that stands.
    pub(crate) spoke: bool,
    /// Of the connection that stands.
    pub(crate) tracking: Tracking,
    /// The pipeline: what waits to be handed out, and what is unanswered.
    pub(crate) outbox: Outbox,
    pub(crate) votes: VoteCounts,
    /// The last byte that came, or the first command that was handed out onto an idle connection, whichever is later.
    heard: Instant,
    backoff: Backoff,
    /// Who answered the last handshake.
    pub(crate) greeting: Option<Greeting>,
    /// The run id at the last handshake that told one.
    run_id: Option<String>,
    /// Native forms that this server refused, until its run id changes (R22).
    delete_by_script: bool,
    extend_by_script: bool,
    /// Out of memory a script can extend where `SET … IFEQ` cannot (R14); until the next handshake.
    extend_out_of_memory: bool,
    uptime: Uptime,
    /// How long it has to be up before its votes count (R25); `None` where the guard is off, or the node is durable.
    guard: Option<Duration>,
    /// Until when its votes do not count; `Instant::MAX` where it does not say who it is.
    quarantine: Option<Instant>,
    pub(crate) clock: ClockWatch,
    /// A compare was refused for lack of a right (R22).
    pub(crate) missing_right: Option<ServerError>,
    /// When such a node is connected anew.
    recheck_at: Option<Instant>,
    /// Why it is not ready; the last reason while it is being connected again.
    pub(crate) fault: Option<NodeFault>,
    /// What it said without being asked, before it closed the connection.
    pub(crate) last_words: Option<ServerError>,
}

impl Node {
    pub(crate) fn new(
        id: NodeId,
        address: Arc<Address>,
        guard: Option<Duration>,
        watch_clock: bool,
        now: Instant,
    ) -> Self {
        let label = Arc::from(address.to_string());
        Self {
            id,
            address,
            label,
            state: State::Down { retry_at: now },
            generation: 0,
            decoder: Decoder::new(),
            spoke: false,
            tracking: Tracking::Unasked,
            outbox: Outbox::new(),
            heard: now,
            backoff: Backoff::default(),
            greeting: None,
            run_id: None,
            delete_by_script: false,
            extend_by_script: false,
            extend_out_of_memory: false,
            uptime: Uptime::new(),
            guard,
            quarantine: None,
            clock: ClockWatch::new(watch_clock),
            votes: VoteCounts::default(),
            missing_right: None,
            recheck_at: None,
            fault: None,
            last_words: None,
        }
    }

    /// The name of the connection that stands, or is being made.
    pub(crate) const fn connection(&self) -> ConnectionId {
        ConnectionId { node: self.id, generation: self.generation }
    }

    pub(crate) const fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready { .. })
    }

    /// Whether a connection is there, or is being made.
    pub(crate) const fn has_connection(&self) -> bool {
        matches!(self.state, State::Connecting { .. } | State::Handshaking { .. } | State::Ready { .. })
    }

    /// How a claim sees this node. Connecting is not down (R8a), but a node whose last handshake failed is: it costs no time
    /// (R11), and gets what is not too late when a handshake ends after all.
    pub(crate) const fn reach(&self) -> Reach {
        match &self.state {
            State::Ready { .. } if self.missing_right.is_some() => Reach::ReleaseOnly,
            State::Ready { .. } if self.quarantine.is_some() => Reach::Quarantined,
            State::Ready { .. } => Reach::Ready,
            State::Connecting { .. } | State::Handshaking { .. } if self.backoff.is_fresh() => {
                Reach::Connecting
            }
            State::Connecting { .. } | State::Handshaking { .. } | State::Down { .. } | State::Closed => {
                Reach::Down
            }
        }
    }

    /// Why it cannot take part now.
    pub(crate) fn why_not(&self, now: Instant) -> NodeFault {
        if self.is_ready() {
            if let Some(error) = &self.missing_right {
                return NodeFault::MissingRight(error.clone());
            }
            if let Some(fault) = self.quarantined(now) {
                return fault;
            }
        }
        self.fault.clone().unwrap_or(NodeFault::Connecting)
    }

    // ---- the quarantine (R25) ----

    /// Why its votes do not count, if they do not.
    pub(crate) fn quarantined(&self, now: Instant) -> Option<NodeFault> {
        self.quarantine.map(|until| match until {
            Instant::MAX => NodeFault::UnknownIdentity,
            until => NodeFault::Quarantined { left: until.saturating_duration_since(now) },
        })
    }

    /// Ends the quarantine if it is over; answers whether it did.
    pub(crate) fn end_quarantine(&mut self, now: Instant) -> bool {
        let is_over = self.is_ready() && self.quarantine.is_some_and(|until| now >= until);
        if is_over {
            self.quarantine = None;
        }
        is_over
    }

    /// It said that it loads data, or copies another's: what it had may be gone (R23).
    pub(crate) const fn replaced(&mut self) {
        self.uptime.replaced();
    }

    // ---- the connection's life ----

    /// Starts to make a connection, under a name of its own.
    pub(crate) fn connect(&mut self, now: Instant, timeout: Duration) -> ConnectionId {
        self.generation = self.generation.saturating_add(1);
        self.state = State::Connecting { until: now.saturating_add(timeout) };
        self.decoder = Decoder::new();
        self.spoke = false;
        self.tracking = Tracking::Unasked;
        self.last_words = None;
        self.connection()
    }

    /// The connection is made; answers with the first command of the handshake.
    pub(crate) fn connected(&mut self, name: Option<&str>, now: Instant) -> Option<Outgoing> {
        let State::Connecting { until } = self.state else { return None };
        self.decoder.set_protocol(crate::wire::frame::Protocol::Negotiating);
        let (step, bytes) = Handshake::start(&self.address, name);
        self.state = State::Handshaking { until, handshake: Handshake::default() };
        self.heard = now;
        Some(Outgoing { tag: Tag::Handshake(step), bytes, patience: until.saturating_duration_since(now) })
    }

    /// The handshake is done. Answers whether another server process was here before.
    pub(crate) fn greeted(&mut self, greeting: Greeting, now: Instant) -> bool {
        self.state = State::Ready { since: now };
        self.fault = None;
        self.missing_right = None;
        self.recheck_at = None;
        self.extend_out_of_memory = false;
        let run_id = greeting.info.as_ref().and_then(|info| info.run_id.clone());
        self.greeting = Some(greeting);
        let is_same = self.run_id.is_some() && self.run_id == run_id;
        let restarted = self.run_id.is_some() && !is_same;
        let secs = self.greeting.as_ref().and_then(|greeting| greeting.info.as_ref()?.uptime_secs);
        self.uptime.greeted(is_same, run_id.is_some(), secs, now);
        self.quarantine = self.guard.and_then(|required| match self.uptime.counted(required) {
            Counted::From(until) => (until > now).then_some(until),
            Counted::Never => Some(Instant::MAX),
        });
        self.clock.greeted(is_same, now);
        if self.run_id.is_none() || restarted {
            self.delete_by_script = false;
            self.extend_by_script = false;
        }
        self.run_id = run_id;
        restarted
    }

    /// The connection is gone, or given up. Answers whether it was ready; the state is `Down`, due at once if it had stood
    /// for a while.
    pub(crate) fn broke(&mut self, fault: NodeFault, rng: &mut crate::rng::Rng, now: Instant) -> bool {
        let stood = match self.state {
            State::Ready { since } => now >= since.saturating_add(STOOD),
            State::Down { .. } | State::Connecting { .. } | State::Handshaking { .. } | State::Closed => {
                false
            }
        };
        let was_ready = self.is_ready();
        for tag in self.outbox.unanswered() {
            if let Tag::Claim { verb, .. } = tag {
                self.votes.broken(verb);
            }
        }
        self.outbox.clear();
        if stood {
            self.backoff.reset();
            self.state = State::Down { retry_at: now };
        } else {
            let delay = self.backoff.failed(rng);
            self.state = State::Down { retry_at: now.saturating_add(delay) };
        }
        self.fault = Some(fault);
        was_ready
    }

    /// When something is due here: a connection to be made, or to be given up.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.state {
            State::Down { retry_at } => Some(retry_at),
            State::Connecting { until } | State::Handshaking { until, .. } => Some(until),
            State::Ready { .. } => {
                let silent_at = self.silent_at().unwrap_or(Instant::MAX);
                let recheck_at = self.recheck_at.unwrap_or(Instant::MAX);
                let quarantine = self.quarantine.unwrap_or(Instant::MAX);
                Some(silent_at.min(recheck_at).min(quarantine)).filter(|at| *at < Instant::MAX)
            }
            State::Closed => None,
        }
    }

    /// When the connection is given up for its silence (R11).
    fn silent_at(&self) -> Option<Instant> {
        self.outbox.silent_at(self.heard)
    }

    /// How long it has been silent with replies outstanding, if that is too long.
    pub(crate) fn silent_for(&self, now: Instant) -> Option<Duration> {
        self.silent_at().filter(|at| now >= *at).map(|_| now.saturating_duration_since(self.heard))
    }

    /// A compare was refused for lack of a right: the node gives no vote until its next handshake (R22).
    pub(crate) fn lacks_right(&mut self, error: ServerError, now: Instant) {
        self.missing_right = Some(error);
        self.recheck_at = Some(now.saturating_add(RECHECK));
    }

    /// Whether it is time to see if the missing right was given. Not while replies are outstanding: those count more.
    pub(crate) fn is_recheck_due(&mut self, now: Instant) -> bool {
        let due = self.recheck_at.is_some_and(|at| now >= at);
        if due && self.pipeline() > 0 {
            self.recheck_at = Some(now.saturating_add(RECHECK));
            return false;
        }
        due
    }

    // ---- the pipeline ----

    /// Takes out of the outbox what of the lock was not handed out, its release excepted (R7, R8a).
    pub(crate) fn withdraw(&mut self, lock: LockId) {
        self.outbox.withdraw(lock);
    }

    /// Everything that waits as one payload, and the number of its first command among the unanswered ones.
    pub(crate) fn hand_out(&mut self, now: Instant) -> Option<(Bytes, usize)> {
        if self.outbox.is_empty() {
            return None;
        }
        if self.outbox.is_answered() {
            self.heard = now;
        }
        if self.is_ready() && self.clock.is_due(now) {
            self.clock.asked(now);
            self.outbox.push_along(Tag::Clock, &command::time());
        }
        self.outbox.hand_out()
    }

    /// Commands that are queued or unanswered.
    pub(crate) fn pipeline(&self) -> usize {
        self.outbox.len()
    }

    /// A byte came.
    pub(crate) fn heard(&mut self, now: Instant) {
        self.heard = now;
        if self.is_ready() {
            self.uptime.heard(now);
        }
    }

    /// Whose turn it is to be answered.
    pub(crate) fn answered(&mut self) -> Option<Tag> {
        self.outbox.answered()
    }

    // ---- forms ----

    fn dialect(&self) -> Dialect {
        self.greeting.as_ref().map_or(Dialect::SCRIPTS, |greeting| greeting.dialect)
    }

    pub(crate) fn extend_form(&self) -> ExtendForm {
        if self.extend_by_script || self.extend_out_of_memory {
            ExtendForm::Script
        } else {
            self.dialect().extend
        }
    }

    pub(crate) fn delete_form(&self) -> DeleteForm {
        if self.delete_by_script { DeleteForm::Script } else { self.dialect().delete }
    }

    /// The server refused a native form: scripts from now on (R22).
    pub(crate) fn refused_form(&mut self, form: Form) {
        match form {
            Form::Extend(_) => self.extend_by_script = true,
            Form::Delete(_) => self.delete_by_script = true,
            Form::Set
            | Form::SetAll
            | Form::FencedSet(_)
            | Form::FencedRepair
            | Form::Raise
            | Form::ExtendAll
            | Form::DeleteAll(_) => {}
        }
    }

    pub(crate) fn out_of_memory(&mut self) {
        self.extend_out_of_memory = true;
    }

    /// Whether it could tell of changes: only RESP3 has pushes.
    pub(crate) fn can_track(&self) -> bool {
        let hello = self.greeting.as_ref().and_then(|greeting| greeting.hello.as_ref());
        self.tracking != Tracking::Refused && hello.is_some_and(|hello| hello.protocol == Some(3))
    }

    pub(crate) fn run_id(&self) -> Option<&str> {
        self.run_id.as_deref()
    }
}
