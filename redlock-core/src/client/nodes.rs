//! What happens on connections: made, greeted, answered, broken.

use super::Client;
use crate::error::NodeFault;
use crate::event::{DisconnectReason, Event, Output};
use crate::ids::{ConnectionId, LockId};
use crate::machine::{Answer, Verb};
use crate::node::handshake::{Greeting, Progress, Step};
use crate::node::{ClockStep, Form, Node, Outgoing, State, Tag};
use crate::wire::answer::{Answer as Said, Asked, Fallback};
use crate::wire::error::{ErrorCode, ServerError};
use crate::wire::handshake::{DeleteForm, ExtendForm};
use crate::wire::reply::{Reply, Usual};
use alloc::format;

impl Form {
    /// What was asked of the node in this form.
    const fn asked(self) -> Asked {
        match self {
            Self::Set => Asked::Set { keys: 1 },
            Self::SetAll => Asked::Set { keys: usize::MAX },
            Self::FencedSet(keys) => Asked::FencedSet { keys: keys as usize },
            Self::FencedRepair => Asked::FencedRepair,
            Self::Raise => Asked::Raise,
            Self::Extend(form) => Asked::Extend { form, keys: 1 },
            Self::ExtendAll => Asked::Extend { form: ExtendForm::Script, keys: usize::MAX },
            Self::Delete(form) => Asked::Release { form, keys: 1 },
            Self::DeleteAll(keys) => Asked::Release { form: DeleteForm::Script, keys: keys as usize },
        }
    }
}

impl Client {
    // ---- the connection's life ----

    /// Asks for a connection to the node, and starts the timeout that covers it and its handshake (R11).
    pub(super) fn connect_node(&mut self, index: usize) {
        if self.closing.is_some() {
            return;
        }
        let Some(node) = self.nodes.get_mut(index) else { return };
        let connection = node.connect(self.now, self.config.handshake_timeout());
        let address = node.address.clone();
        self.queue.push(Output::Connect { connection, address });
        self.arm_node(index);
    }

    pub(super) fn arm_node(&mut self, index: usize) {
        let Some(node) = self.nodes.get_mut(index) else { return };
        let due = node.due();
        self.timers.arm_node(node.id.0, due, self.now);
    }

    pub(super) fn on_node_due(&mut self, index: usize) {
        let Some(node) = self.nodes.get_mut(index) else { return };
        if node.end_quarantine(self.now) {
            self.queue.notice(Event::QuarantineOver { node: node.id });
            self.arm_node(index);
            return self.tell_reach(index);
        }
        match node.state {
            State::Down { .. } => {
                self.connect_node(index);
                self.tell_reach(index);
            }
            State::Connecting { .. } | State::Handshaking { .. } => {
                let fault = NodeFault::HandshakeTimeout(self.config.handshake_timeout());
                self.lose_connection(index, fault, true);
            }
            State::Ready { .. } => match node.silent_for(self.now) {
                Some(silence) => self.lose_connection(index, NodeFault::Silent(silence), true),
                None if node.is_recheck_due(self.now) => {
                    let fault = node.why_not(self.now);
                    self.lose_connection(index, fault, true);
                }
                None => self.arm_node(index),
            },
            State::Closed => {}
        }
    }

    pub(super) fn on_connected(&mut self, connection: ConnectionId) {
        let name = self.config.client_name();
        let now = self.now;
        let Some(node) = self.nodes.get_mut(connection.node.index()) else { return };
        if node.connection() != connection {
            return;
        }
        if let Some(hello) = node.connected(name, now) {
            self.push(connection.node.index(), hello);
        }
        self.arm_node(connection.node.index());
    }

    pub(super) fn on_disconnected(&mut self, connection: ConnectionId, reason: DisconnectReason) {
        let Some(node) = self.nodes.get_mut(connection.node.index()) else { return };
        if node.connection() != connection || !node.has_connection() {
            return;
        }
        let in_handshake = matches!(node.state, State::Handshaking { .. });
        let was_mute = in_handshake && !node.spoke;
        let fault = NodeFault::of_disconnect(reason, node.last_words.take(), was_mute);
        self.lose_connection(connection.node.index(), fault, false);
    }

    /// The node's connection is gone, or given up (`close`). What was unanswered on it may still run.
    pub(super) fn lose_connection(&mut self, index: usize, fault: NodeFault, close: bool) {
        // The reply that makes it unusable may have been the last that the client waited for before it closed.
        let Some(node) = self.nodes.get_mut(index).filter(|node| node.has_connection()) else { return };
        let (id, connection) = (node.id, node.connection());
        if matches!(&fault, NodeFault::Server(error) if error.replaces_data()) {
            node.replaced();
        }
        if close {
            self.queue.disconnect(connection);
        }
        let news = node.is_ready() || node.fault.as_ref() != Some(&fault);
        let was_ready = node.broke(fault.clone(), &mut self.rng, self.now);
        if news {
            self.queue.notice(Event::NodeDown { node: id, fault });
        }
        let again = matches!(node.state, State::Down { retry_at } if retry_at <= self.now);
        if again {
            self.connect_node(index);
        }
        self.arm_node(index);
        if was_ready {
            let (now, Some(reach)) = (self.now, self.nodes.get(index).map(Node::reach)) else {
                return;
            };
            for lock in self.all_claims() {
                self.drive(lock, |claim, effects| claim.broken(id, reach, now, effects));
            }
            self.watches_broken(id);
        } else {
            self.tell_reach(index);
        }
        self.evaluate_connects();
    }

    /// Tells every claim how the node can be reached now.
    fn tell_reach(&mut self, index: usize) {
        let Some((id, reach)) = self.nodes.get(index).map(|node| (node.id, node.reach())) else { return };
        let now = self.now;
        for lock in self.all_claims() {
            self.drive(lock, |claim, effects| claim.reach_changed(id, reach, now, effects));
        }
    }

    /// The handshake is done: what is owed goes first, before any new SET (R7).
    fn on_greeted(&mut self, index: usize, greeting: Greeting) {
        let now = self.now;
        if let Some(other) = self.same_server(index, &greeting) {
            // Of two names of one server the later in the configuration is refused, whichever was there first.
            self.refuse_duplicate(index.max(other), index.min(other));
            if index > other {
                return;
            }
        }
        let Some(node) = self.nodes.get_mut(index) else { return };
        let id = node.id;
        let unknown = greeting.info.as_ref().is_none_or(|info| info.run_id.is_none());
        let restarted = node.greeted(greeting, now);
        let reach = node.reach();
        self.queue.notice(Event::NodeUp { node: id });
        if restarted {
            self.queue.notice(Event::NodeRestarted { node: id });
        }
        if let Some(NodeFault::Quarantined { left }) =
            self.nodes.get(index).and_then(|node| node.quarantined(now))
        {
            self.queue.notice(Event::NodeQuarantined { node: id, left });
        }
        if unknown {
            self.queue.notice(Event::IdentityUnknown { node: id });
        }
        self.arm_node(index);
        let claims = self.all_claims();
        let owes =
            |client: &Self, lock: &u64| client.claims.get(*lock).is_some_and(|entry| entry.claim.owes(id));
        let (owing, others): (alloc::vec::Vec<u64>, alloc::vec::Vec<u64>) =
            claims.into_iter().partition(|lock| owes(self, lock));
        for lock in owing.into_iter().chain(others) {
            self.drive(lock, |claim, effects| claim.ready(id, reach, now, effects));
        }
        self.watches_ready(id);
        self.evaluate_connects();
    }

    /// Another node that is ready and says that it is the same server process (R24).
    fn same_server(&self, index: usize, greeting: &Greeting) -> Option<usize> {
        let run_id = greeting.info.as_ref()?.run_id.as_deref()?;
        let is_it = |(other, node): &(usize, &Node)| {
            *other != index && node.is_ready() && node.run_id() == Some(run_id)
        };
        self.nodes.iter().enumerate().find(is_it).map(|(other, _)| other)
    }

    /// The node turned out to be the second name of another: its vote leaves every attempt, its support every lock, at
    /// once, and its connection is closed (R24).
    fn refuse_duplicate(&mut self, index: usize, of: usize) {
        let now = self.now;
        let (Some(node), Some(of)) = (self.nodes.get(index), self.nodes.get(of)) else { return };
        let (id, fault) = (node.id, NodeFault::Duplicate { of: of.label.clone() });
        for lock in self.all_claims() {
            self.drive(lock, |claim, effects| claim.void(id, now, effects));
        }
        self.lose_connection(index, fault, true);
    }

    /// Puts a command of the node itself into its outbox.
    fn push(&mut self, index: usize, outgoing: Outgoing) {
        let Some(node) = self.nodes.get_mut(index) else { return };
        if node.outbox.is_empty() {
            self.queue.outbox(node.connection());
        }
        node.outbox.push_back(outgoing);
    }

    // ---- replies ----

    pub(super) fn on_input(&mut self, connection: ConnectionId, bytes: &[u8]) {
        let index = connection.node.index();
        let now = self.now;
        let mut rest = bytes;
        // An empty read means nothing; the end of a stream is told by `handle_disconnected`.
        while !rest.is_empty() {
            let Some(node) = self.nodes.get_mut(index) else { return };
            if node.connection() != connection
                || !matches!(node.state, State::Handshaking { .. } | State::Ready { .. })
            {
                return;
            }
            node.heard(now);
            if let Some(usual) = node.decoder.usual(&mut rest) {
                node.spoke = true;
                self.on_usual_reply(index, usual);
                continue;
            }
            match node.decoder.next(&mut rest) {
                Ok(None) => break,
                Ok(Some(Reply::Push(push))) => {
                    node.spoke = true;
                    self.on_push(index, &push);
                }
                Ok(Some(reply)) => {
                    node.spoke = true;
                    self.on_reply(index, reply);
                }
                Err(violation) => {
                    let first = !node.spoke && matches!(node.state, State::Handshaking { .. });
                    let detail = format!("{violation}");
                    let fault = if first { NodeFault::NotRedis(detail) } else { NodeFault::Protocol(detail) };
                    return self.lose_connection(index, fault, true);
                }
            }
        }
        self.arm_node(index);
    }

    /// A reply that is read at sight: to a command of a lock it is a plain yes or no, nearly always.
    fn on_usual_reply(&mut self, index: usize, usual: Usual) {
        let Some(node) = self.nodes.get_mut(index) else { return };
        if let Some(Tag::Claim { lock, verb, form }) = node.outbox.first_unanswered()
            && let Some(is_yes) = form.asked().usual(usual)
        {
            node.answered();
            let answer = if is_yes { Answer::Yes } else { Answer::No };
            return self.on_claim_answer(index, lock, verb, answer, None);
        }
        self.on_reply(index, usual.into());
    }

    fn on_reply(&mut self, index: usize, mut reply: Reply) {
        let Some(node) = self.nodes.get_mut(index) else { return };
        if let Reply::Error(error) = &mut reply
            && let Some(password) = node.address.password()
        {
            error.redact(&[password.as_bytes()]);
        }
        let Some(tag) = node.answered() else {
            if let Reply::Error(error) = reply {
                // It answers nothing (R21); why the connection will be closed, most likely.
                node.last_words = Some(error);
            } else {
                let fault = NodeFault::Protocol(format!("said {reply} without being asked"));
                self.lose_connection(index, fault, true);
            }
            return;
        };
        match tag {
            Tag::Handshake(step) => self.on_handshake_reply(index, step, reply),
            Tag::Claim { lock, verb, form } => self.on_claim_reply(index, lock, verb, form, reply),
            Tag::Clock => self.on_time(index, &reply),
            Tag::Tracking => self.on_tracking_reply(index, false, &reply),
            Tag::Caching => self.on_tracking_reply(index, true, &reply),
            Tag::Reading { .. } | Tag::Holder { .. }
                if !matches!(reply, Reply::Integer(_) | Reply::Error(_)) =>
            {
                let fault = NodeFault::Protocol(format!("answered PTTL with {reply}"));
                self.lose_connection(index, fault, true);
            }
            Tag::Reading { watch } => self.on_reading(index, watch, &reply),
            Tag::Holder { operation } => self.on_holder_reply(index, operation, &reply),
        }
    }

    fn on_handshake_reply(&mut self, index: usize, step: Step, reply: Reply) {
        let name = self.config.client_name();
        let Some(node) = self.nodes.get_mut(index) else { return };
        let State::Handshaking { until, handshake } = &mut node.state else { return };
        let until = *until;
        match handshake.on_reply(step, reply, &node.address, name) {
            Progress::Wait => {}
            Progress::Send(flight) => {
                let patience = until.saturating_duration_since(self.now);
                for (step, bytes) in flight {
                    self.push(index, Outgoing { tag: Tag::Handshake(step), bytes, patience });
                }
            }
            Progress::Done(greeting) => self.on_greeted(index, greeting),
            Progress::Failed(fault) => self.lose_connection(index, fault, true),
        }
    }

    /// What time it is on the node.
    fn on_time(&mut self, index: usize, reply: &Reply) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(index) else { return };
        let id = node.id;
        if matches!(reply, Reply::Error(_)) {
            return node.clock.refused();
        }
        match reply.as_time() {
            Some((secs, micros)) => {
                if let Some(ClockStep { by, is_forward }) = node.clock.said(secs, micros, now) {
                    self.queue.notice(Event::ClockStepped { node: id, by, is_forward });
                }
            }
            None => {
                let fault = NodeFault::Protocol(format!("answered TIME with {reply}"));
                self.lose_connection(index, fault, true);
            }
        }
    }

    fn on_claim_reply(&mut self, index: usize, lock: LockId, verb: Verb, form: Form, reply: Reply) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(index) else { return };
        let id = node.id;
        // An error and its text are kept for the report; the machine needs what it means.
        let (answer, fault, close) = match form.asked().interpret(reply) {
            Said::Yes => (Answer::Yes, None, false),
            Said::Counters(lowest, highest) => (Answer::Counters { lowest, highest }, None, false),
            Said::No => (Answer::No, None, false),
            Said::Unexpected(what) => {
                let fault = NodeFault::Protocol(what);
                if let Some(entry) = self.claims.get_mut(lock.0) {
                    entry.note(id, Some(fault.clone()), now);
                }
                // It is unanswered as far as the machine knows, and breaks with the connection: ambiguous.
                return self.lose_connection(index, fault, true);
            }
            Said::Error(mut error) => {
                if let Some(entry) = self.claims.get(lock.0) {
                    let value = entry.token.value(self.config.client_name());
                    error.redact(&[&value, value.get(..crate::token::TOKEN_DIGITS).unwrap_or_default()]);
                }
                if error.closes_connection() {
                    // It answers no request (R21): whether this one ran is not known.
                    let fault = NodeFault::Server(error);
                    if let Some(entry) = self.claims.get_mut(lock.0) {
                        entry.note(id, Some(fault.clone()), now);
                    }
                    return self.lose_connection(index, fault, true);
                }
                let answer = self.on_claim_error(index, form, &error);
                let close = error.replaces_data();
                (answer, Some(NodeFault::Server(error)), close)
            }
        };
        let closes_with = fault.clone().filter(|_| close);
        self.on_claim_answer(index, lock, verb, answer, fault);
        if let Some(fault) = closes_with {
            self.lose_connection(index, fault, true);
        }
    }

    fn on_claim_answer(
        &mut self,
        index: usize,
        lock: LockId,
        verb: Verb,
        answer: Answer,
        fault: Option<NodeFault>,
    ) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(index) else { return };
        let id = node.id;
        node.votes.count(verb, answer);
        let Some(entry) = self.claims.get_mut(lock.0) else { return };
        if entry.is_newest_round(verb) {
            entry.note(id, fault, now);
        }
        entry.claim.answered(id, verb, answer, now, &mut self.scratch);
        self.carry_out(lock.0);
    }

    /// What an error means for the command, and what it says of the node.
    fn on_claim_error(&mut self, index: usize, form: Form, error: &ServerError) -> Answer {
        let Some(node) = self.nodes.get_mut(index) else { return Answer::Ambiguous };
        if error.replaces_data() {
            return Answer::Replaced;
        }
        match form.asked().fallback(error) {
            Some(Fallback::Once) => {
                node.out_of_memory();
                return Answer::FormRefused;
            }
            Some(Fallback::UntilRestart) => {
                node.refused_form(form);
                return Answer::FormRefused;
            }
            None => {}
        }
        let compare = match form {
            Form::Set | Form::SetAll | Form::FencedSet(_) | Form::FencedRepair | Form::Raise => false,
            Form::Extend(_) | Form::ExtendAll | Form::Delete(_) | Form::DeleteAll(_) => true,
        };
        if compare
            && matches!(error.code(), ErrorCode::Noperm | ErrorCode::ScriptAcl)
            && node.missing_right.is_none()
        {
            node.lacks_right(error.clone(), self.now);
            let (id, fault) = (node.id, NodeFault::MissingRight(error.clone()));
            self.queue.notice(Event::NodeDown { node: id, fault });
            self.arm_node(index);
            self.tell_reach(index);
            self.evaluate_connects();
        }
        if error.is_not_applied() { Answer::NotApplied } else { Answer::Ambiguous }
    }
}
