//! What a node's user may do: one command each, tried on a key of the probe's own.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::wire::error::{ErrorCode, ServerError};
use crate::wire::handshake::{DeleteForm, ExtendForm};

/// A right that something of ours needs, by the command that it allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Right {
    /// `INFO`: tells a restart, and one server under two names.
    Info,
    /// `PING`: tells that a server has read its data.
    Ping,
    /// `SET`: takes a lock; where it knows `IFEQ`, extends it.
    Set,
    /// `DELEX`: releases a lock.
    Delex,
    /// `DELIFEQ`: releases a lock.
    Delifeq,
    /// `EVAL`: whatever goes by script.
    Eval,
    /// `GET`, in scripts.
    Get,
    /// `DEL`, in scripts, and a removal by force.
    Del,
    /// `PEXPIRE`, in scripts.
    Pexpire,
    /// `EXISTS`, in scripts.
    Exists,
    /// `INCR`, in the scripts of fences.
    Incr,
    /// `PERSIST`, in the scripts of fences.
    Persist,
    /// `TIME`, in the scripts of fences; compares clocks.
    Time,
    /// `PTTL`: says how long another holder has left.
    Pttl,
    /// `GETRANGE`: says who holds a key.
    Getrange,
    /// `CONFIG GET`: tells persistence and eviction.
    ConfigGet,
    /// `CLIENT TRACKING`: lets waiters be told.
    ClientTracking,
    /// `CLIENT CACHING`: names the key that a waiter is told of.
    ClientCaching,
}

impl Right {
    /// What `acquire_all` needs beside a plain lock's rights, everywhere.
    pub const SEVERAL_KEYS: [Self; 6] =
        [Self::Eval, Self::Exists, Self::Get, Self::Set, Self::Pexpire, Self::Del];
    /// What waiters need to be told by a node when a lock gets free.
    pub const WAKE_UPS: [Self; 3] = [Self::ClientTracking, Self::ClientCaching, Self::Pttl];
    /// What fences need beside a plain lock's rights, everywhere.
    pub const FENCES: [Self; 8] = [
        Self::Eval,
        Self::Exists,
        Self::Get,
        Self::Incr,
        Self::Set,
        Self::Time,
        Self::Pexpire,
        Self::Persist,
    ];

    /// The least that plain locks (acquire, extend, release) need on a server with these forms.
    #[must_use]
    pub fn least(extend: ExtendForm, delete: DeleteForm) -> Vec<Self> {
        let mut rights = alloc::vec![Self::Info, Self::Ping, Self::Set];
        for right in extend_rights(extend).iter().chain(delete_rights(delete)) {
            if !rights.contains(right) {
                rights.push(*right);
            }
        }
        rights
    }

    /// As an ACL rule grants it.
    #[must_use]
    pub const fn rule(self) -> &'static str {
        match self {
            Self::Info => "+info",
            Self::Ping => "+ping",
            Self::Set => "+set",
            Self::Delex => "+delex",
            Self::Delifeq => "+delifeq",
            Self::Eval => "+eval",
            Self::Get => "+get",
            Self::Del => "+del",
            Self::Pexpire => "+pexpire",
            Self::Exists => "+exists",
            Self::Incr => "+incr",
            Self::Persist => "+persist",
            Self::Time => "+time",
            Self::Pttl => "+pttl",
            Self::Getrange => "+getrange",
            Self::ConfigGet => "+config|get",
            Self::ClientTracking => "+client|tracking",
            Self::ClientCaching => "+client|caching",
        }
    }
}

/// What an extension in this form runs.
pub(super) const fn extend_rights(form: ExtendForm) -> &'static [Right] {
    match form {
        ExtendForm::Ifeq => &[Right::Set],
        ExtendForm::Script => &[Right::Eval, Right::Get, Right::Pexpire],
    }
}

/// What a release in this form runs.
pub(super) const fn delete_rights(form: DeleteForm) -> &'static [Right] {
    match form {
        DeleteForm::Delex => &[Right::Delex],
        DeleteForm::Delifeq => &[Right::Delifeq],
        DeleteForm::Script => &[Right::Eval, Right::Get, Right::Del],
    }
}

/// Several rights as ACL rules, with blanks between them.
pub(super) fn rules(rights: &[Right]) -> String {
    rights.iter().map(|right| right.rule()).collect::<Vec<_>>().join(" ")
}

/// What a command's answer says about the right to it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// The user may run it.
    Granted,
    /// The user may not run it.
    Denied(ServerError),
    /// The user may not touch the key that it was tried on.
    KeyDenied(ServerError),
    /// The server does not know the command.
    Unknown,
    /// The server's state kept it from telling.
    Untold(ServerError),
}

/// What the user may do, as far as it was tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights(BTreeMap<Right, Access>);

impl Rights {
    /// What is known of one right.
    #[must_use]
    pub fn get(&self, right: Right) -> Option<&Access> {
        self.0.get(&right)
    }

    /// All that were tried.
    pub fn iter(&self) -> impl Iterator<Item = (Right, &Access)> {
        self.0.iter().map(|(right, access)| (*right, access))
    }

    /// Those that the server denied, in order.
    #[must_use]
    pub fn denied(&self) -> Vec<Right> {
        self.0.iter().filter(|(_, access)| matches!(access, Access::Denied(_))).map(|(r, _)| *r).collect()
    }

    /// Those of `wanted` that are known to be missing.
    #[must_use]
    pub fn missing(&self, wanted: &[Right]) -> Vec<Right> {
        let lacks = |right: &Right| matches!(self.0.get(right), Some(Access::Denied(_) | Access::Unknown));
        wanted.iter().copied().filter(lacks).collect()
    }

    /// The error with which the server refused the key, if it did.
    #[must_use]
    pub fn key_denied(&self) -> Option<&ServerError> {
        self.0
            .values()
            .find_map(|access| if let Access::KeyDenied(error) = access { Some(error) } else { None })
    }

    /// Notes what a command was answered: any answer but a refusal means that it may be run. The first answer counts.
    pub(super) fn note(&mut self, right: Right, error: Option<&ServerError>) {
        let access = match error {
            None => Access::Granted,
            Some(error) => access(error),
        };
        self.0.entry(right).or_insert(access);
    }
}

fn access(error: &ServerError) -> Access {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "every other error comes after the rights were looked at"
    )]
    match error.code() {
        ErrorCode::Noperm if error.names_command() => Access::Denied(error.clone()),
        ErrorCode::Noperm => Access::KeyDenied(error.clone()),
        ErrorCode::UnknownCommand | ErrorCode::UnknownSubcommand => Access::Unknown,
        // Said before rights are looked at.
        ErrorCode::Loading | ErrorCode::Busy | ErrorCode::Masterdown | ErrorCode::Noauth => {
            Access::Untold(error.clone())
        }
        _ => Access::Granted,
    }
}
