//! Running one command: what is checked before, in the servers' order, and what it runs on.

pub(super) mod admin;
pub(super) mod connection;
pub(super) mod strings;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Core;
use super::acl::Access;
use super::command::{Busy, Command, lookup};
use super::condition::Condition;
use super::dialect::Dialect;
use super::reply::Reply;
use super::session::Session;

/// One command on its way, with all that it may touch. Time stands still for its whole length.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) core: &'a mut Core,
    pub(super) session: &'a mut Session,
    /// All other sessions.
    pub(super) peers: &'a mut BTreeMap<u64, Box<Session>>,
    pub(super) args: &'a [Vec<u8>],
    pub(super) now_ms: i64,
    pub(super) now_us: i64,
    /// The keys that count as read where they are not the command's own. Redis 7.0 takes those of the whole script for
    /// each read inside it.
    pub(super) keys_read: Option<&'a [Vec<u8>]>,
}

impl<'a> Call<'a> {
    /// The argument at `index`, 0 being the command's name; empty where there is none.
    pub(super) fn arg(&self, index: usize) -> &'a [u8] {
        self.args.get(index).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn args_from(&self, index: usize) -> &'a [Vec<u8>] {
        self.args.get(index..).unwrap_or_default()
    }

    /// Checks and runs the command.
    pub(super) fn run(&mut self) -> Reply {
        match self.admit() {
            Ok(command) => self.run_admitted(command),
            Err(refusal) => refusal,
        }
    }

    /// Runs a command that was admitted, here or by a script.
    pub(super) fn run_admitted(&mut self, command: &'static Command) -> Reply {
        let reply = (command.run)(self);
        if command.reads && self.session.tracking.as_ref().is_some_and(|t| t.remembers(self.session.caching))
        {
            for key in self.keys_read.unwrap_or_else(|| command.keys_of(self.args)) {
                self.core.store.note_read(key);
            }
        }
        reply
    }

    fn admit(&self) -> Result<&'static Command, Reply> {
        let found = lookup(self.core.dialect, self.args);
        let authenticated = self.session.user.is_some();
        let no_auth = found.as_ref().is_ok_and(|command| command.no_auth);
        let no_auth_reply = || Reply::error("NOAUTH Authentication required.");
        if self.core.dialect == Dialect::Valkey9 && !authenticated && !no_auth {
            return Err(no_auth_reply());
        }
        let command = found?;
        if !command.arity_fits(self.args.len()) {
            return Err(Reply::wrong_arity(command.name));
        }
        if !authenticated && !no_auth {
            return Err(no_auth_reply());
        }
        if let Some(denial) = self.denial(command) {
            return Err(Reply::error(format!("NOPERM {}", denial.text(self.core.dialect))));
        }
        match self.core.condition.as_ref().and_then(|condition| self.hindrance(command, condition)) {
            Some(text) => Err(Reply::error(text)),
            None => Ok(command),
        }
    }

    /// The right that the session's user lacks.
    pub(super) fn denial(&self, command: &Command) -> Option<Denial> {
        let name = self.session.user.as_ref()?;
        let user = self.core.users.get(name)?;
        if !user.may_run(command.name) {
            return Some(Denial::Command { user: name.clone(), command: command.name });
        }
        let access: Access = command.access_of(self.args);
        let allowed = command.keys_of(self.args).iter().all(|key| user.may_touch(key, access));
        (!allowed).then_some(Denial::Key)
    }

    /// What the server answers instead, because of the condition it is in.
    fn hindrance(&self, command: &Command, condition: &Condition) -> Option<String> {
        let dialect = self.core.dialect;
        let hindered = match condition {
            Condition::Cluster { moved } => {
                return redirection(command.keys_of(self.args), moved.as_deref());
            }
            Condition::Oom => command.deny_oom,
            Condition::Misconf => command.writes || command.name == "ping",
            Condition::Noreplicas | Condition::Readonly => command.writes,
            Condition::Masterdown if command.writes => return Some(Condition::Readonly.text(dialect)),
            Condition::Masterdown => !command.while_stale,
            Condition::Loading => !command.while_loading,
            Condition::Busy => match command.while_busy {
                Busy::Refused => true,
                Busy::Runs => false,
                Busy::RunsOnValkey9 => dialect != Dialect::Valkey9,
            },
            // Met at the door.
            Condition::MaxClients | Condition::ProtectedMode => false,
        };
        hindered.then(|| condition.text(dialect))
    }
}

/// A cluster node's answer to keys that live elsewhere: all keys but those of one's own, here simply all.
fn redirection(keys: &[Vec<u8>], moved: Option<&str>) -> Option<String> {
    let mut slots = keys.iter().map(|key| redis_protocol::redis_keyslot(key));
    let first = slots.next()?;
    if slots.any(|slot| slot != first) {
        return Some("CROSSSLOT Keys in request don't hash to the same slot".into());
    }
    Some(match moved {
        Some(address) => format!("MOVED {first} {address}"),
        None => "CLUSTERDOWN Hash slot not served".into(),
    })
}

/// A right that is missing.
#[derive(Debug)]
pub(super) enum Denial {
    Command { user: String, command: &'static str },
    Key,
}

impl Denial {
    /// What a client is told.
    fn text(&self, dialect: Dialect) -> String {
        match (self, dialect) {
            (Self::Command { command, .. }, Dialect::Redis7) => {
                format!("this user has no permissions to run the '{command}' command")
            }
            (Self::Key, Dialect::Redis7) => {
                "this user has no permissions to access one of the keys used as arguments".into()
            }
            (Self::Command { user, command }, _) => {
                format!("User {user} has no permissions to run the '{command}' command")
            }
            (Self::Key, _) => "No permissions to access a key".into(),
        }
    }

    /// What a script is told, whose code is no longer NOPERM.
    pub(super) fn text_in_script(&self, dialect: Dialect) -> String {
        match (self, dialect) {
            (Self::Command { .. }, Dialect::Redis7) => {
                "ERR The user executing the script can't run this command or subcommand".into()
            }
            (Self::Key, Dialect::Redis7) => {
                "ERR The user executing the script can't access at least one of the keys \
                                             mentioned in the command arguments"
                    .into()
            }
            (Self::Command { .. } | Self::Key, _) => {
                format!("ERR ACL failure in script: {}", self.text(dialect))
            }
        }
    }
}
