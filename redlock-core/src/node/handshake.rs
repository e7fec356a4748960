//! From a new connection to a node that can be asked (R22).
//!
//! ```text
//! HELLO 3 ──map──▶ [SELECT] INFO PING ──────────────────────────────┐
//!    └──error: no RESP3──▶ [AUTH] [CLIENT SETNAME] [SELECT] INFO PING ┴──all answered──▶ ready
//! ```
//!
//! Two flights: what the second one has to contain depends on the answer to the first. `HELLO`, `AUTH` and `INFO` are
//! answered while a server loads its data; only `PING` proves that it is ready.

use crate::address::Address;
use crate::error::NodeFault;
use crate::wire::command;
use crate::wire::error::{ErrorCode, ServerError};
use crate::wire::handshake::{Dialect, Hello, Info, Mode, Role};
use crate::wire::reply::Reply;
use alloc::string::ToString;
use alloc::vec::Vec;
use bytes::Bytes;

/// A command of the handshake, as its place in the pipeline remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Hello,
    Auth,
    SetName,
    Select,
    Info,
    Ping,
}

/// Who answered, once a handshake is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(crate) hello: Option<Hello>,
    pub(crate) info: Option<Info>,
    pub(crate) dialect: Dialect,
}

/// What a reply of the handshake leads to.
#[derive(Debug)]
pub(crate) enum Progress {
    /// Replies are outstanding.
    Wait,
    /// Send these.
    Send(Vec<(Step, Bytes)>),
    /// Ready for commands.
    Done(Greeting),
    /// It cannot be used.
    Failed(NodeFault),
}

/// One handshake under way.
#[derive(Debug, Default)]
pub(crate) struct Handshake {
    hello: Option<Hello>,
    info: Option<Info>,
}

impl Handshake {
    /// The first flight.
    pub(crate) fn start(address: &Address, name: Option<&str>) -> (Step, Bytes) {
        let auth = has_login(address).then(|| {
            let user = address.username().unwrap_or("default");
            (user.as_bytes(), address.password().unwrap_or_default().as_bytes())
        });
        (Step::Hello, command::hello3(auth, name.map(str::as_bytes)))
    }

    /// The answer to `step` is there.
    pub(crate) fn on_reply(
        &mut self,
        step: Step,
        reply: Reply,
        address: &Address,
        name: Option<&str>,
    ) -> Progress {
        match (step, reply) {
            (Step::Hello, Reply::Error(error)) => Self::on_hello_refused(error, address, name),
            (Step::Hello, reply) => match Hello::parse(&reply) {
                Some(hello) => {
                    self.hello = Some(hello);
                    Progress::Send(second_flight(address))
                }
                None => Progress::Failed(NodeFault::NotRedis(answered("HELLO", &reply))),
            },
            (Step::Auth, Reply::Error(error)) => Progress::Failed(NodeFault::Login(error)),
            (Step::Select, Reply::Error(error)) => Progress::Failed(if error.code() == ErrorCode::Noauth {
                NodeFault::Login(error)
            } else if code_is_state(error.code()) {
                NodeFault::Server(error)
            } else {
                NodeFault::Database(error)
            }),
            (Step::Auth | Step::Select, Reply::Ok) => Progress::Wait,
            // A name is a courtesy to operators; whatever the server says to it is fine.
            (Step::SetName, _) => Progress::Wait,
            (Step::Info, reply) => self.on_info(&reply),
            // Not allowed to ask, but asked and answered: a server that loads would have said so first.
            (Step::Ping, Reply::Error(error)) if error.code() == ErrorCode::Noperm => self.done(),
            (Step::Ping, Reply::Error(error)) if error.code() == ErrorCode::Noauth => {
                Progress::Failed(NodeFault::Login(error))
            }
            (Step::Ping, Reply::Error(error)) => Progress::Failed(NodeFault::Server(error)),
            (Step::Ping, reply) if reply.as_bytes() == Some(b"PONG") => self.done(),
            (Step::Auth | Step::Select | Step::Ping, reply) => {
                Progress::Failed(NodeFault::Protocol(answered(name_of(step), &reply)))
            }
        }
    }

    /// Servers before 6.0, and proxies, do not know `HELLO`: RESP2 then, and the login by `AUTH` first.
    fn on_hello_refused(error: ServerError, address: &Address, name: Option<&str>) -> Progress {
        if matches!(error.code(), ErrorCode::Noauth | ErrorCode::Wrongpass) {
            return Progress::Failed(NodeFault::Login(error));
        }
        let unknown = matches!(
            error.code(),
            ErrorCode::UnknownCommand
                | ErrorCode::Noproto
                | ErrorCode::Syntax
                | ErrorCode::WrongArity
                | ErrorCode::Noperm
        );
        if !unknown {
            return Progress::Failed(NodeFault::Server(error));
        }
        let mut flight = Vec::new();
        if has_login(address) {
            let user = address.username().map(str::as_bytes);
            let password = address.password().unwrap_or_default();
            flight.push((Step::Auth, command::auth(user, password.as_bytes())));
        }
        if let Some(name) = name {
            flight.push((Step::SetName, command::set_name(name.as_bytes())));
        }
        flight.extend(second_flight(address));
        Progress::Send(flight)
    }

    /// `INFO` refused is no fault: the node is used, its identity stays unknown.
    fn on_info(&mut self, reply: &Reply) -> Progress {
        if let Reply::Error(error) = reply
            && error.code() == ErrorCode::Noauth
        {
            return Progress::Failed(NodeFault::Login(error.clone()));
        }
        self.info = Info::parse(reply);
        Progress::Wait
    }

    fn done(&mut self) -> Progress {
        let (hello, info) = (self.hello.take(), self.info.take());
        let roles = [hello.as_ref().and_then(|hello| hello.role), info.as_ref().and_then(|info| info.role)];
        if roles.contains(&Some(Role::Replica)) {
            return Progress::Failed(NodeFault::Replica);
        }
        let modes = [hello.as_ref().and_then(|hello| hello.mode), info.as_ref().and_then(|info| info.mode)];
        for (mode, name) in [(Mode::Cluster, "cluster"), (Mode::Sentinel, "sentinel")] {
            if modes.contains(&Some(mode)) {
                return Progress::Failed(NodeFault::NotStandalone(name.to_string()));
            }
        }
        let dialect = Dialect::choose(hello.as_ref(), info.as_ref());
        Progress::Done(Greeting { hello, info, dialect })
    }
}

fn has_login(address: &Address) -> bool {
    address.password().is_some() || address.username().is_some()
}

fn second_flight(address: &Address) -> Vec<(Step, Bytes)> {
    let mut flight = Vec::new();
    if address.database() != 0 {
        flight.push((Step::Select, command::select(address.database())));
    }
    flight.push((Step::Info, command::info()));
    flight.push((Step::Ping, command::ping()));
    flight
}

/// Errors that speak of the server's state, not of what was asked.
const fn code_is_state(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::Loading
            | ErrorCode::Busy
            | ErrorCode::Masterdown
            | ErrorCode::MaxClients
            | ErrorCode::Denied
    )
}

const fn name_of(step: Step) -> &'static str {
    match step {
        Step::Hello => "HELLO",
        Step::Auth => "AUTH",
        Step::SetName => "CLIENT SETNAME",
        Step::Select => "SELECT",
        Step::Info => "INFO",
        Step::Ping => "PING",
    }
}

fn answered(asked: &str, reply: &Reply) -> alloc::string::String {
    alloc::format!("answered {asked} with {reply}")
}
