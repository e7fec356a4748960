//! Users, passwords and rights.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The user that a connection is until it says otherwise.
pub(super) const DEFAULT_USER: &str = "default";

/// What a command does with its keys, as far as rights are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
    ReadWrite,
}

impl Access {
    const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadWrite)
    }

    const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::ReadWrite)
    }
}

#[derive(Clone)]
pub(super) struct User {
    /// `None`: every password will do (`nopass`).
    password: Option<String>,
    /// `None`: all commands.
    commands: Option<Vec<String>>,
    /// `None`: all keys.
    patterns: Option<Vec<Pattern>>,
}

/// `~prefix*`, `%R~prefix*` or `%W~prefix*`; without the star the key itself.
#[derive(Clone, Debug)]
struct Pattern {
    access: Access,
    prefix: Vec<u8>,
    open_ended: bool,
}

impl User {
    /// Everything allowed.
    pub(super) const fn all_rights(password: Option<String>) -> Self {
        Self { password, commands: None, patterns: None }
    }

    /// Rights by rules in the manner of `ACL SETUSER`, of which a part is understood: `+command` (or just `command`),
    /// `+command|subcommand`, `+@all`, `~pattern`, `%R~pattern`, `%W~pattern`, `%RW~pattern`.
    pub(super) fn with_rules(password: &str, rules: &[&str]) -> Self {
        let mut user = Self { password: Some(password.into()), commands: Some(Vec::new()), patterns: None };
        for rule in rules {
            if let Some((access, pattern)) = rule.split_once('~') {
                user.patterns.get_or_insert_default().push(Pattern::new(access, pattern));
            } else if matches!(*rule, "+@all" | "allcommands") {
                user.commands = None;
            } else if let Some(commands) = &mut user.commands {
                commands.push(rule.trim_start_matches('+').to_ascii_lowercase());
            }
        }
        user
    }

    pub(super) fn accepts(&self, password: &[u8]) -> bool {
        self.password.as_ref().is_none_or(|wanted| wanted.as_bytes() == password)
    }

    pub(super) const fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// `command` is the full name, such as `client|setname`; the right to `client` covers it.
    pub(super) fn may_run(&self, command: &str) -> bool {
        // Servers let these through whatever the rules say.
        if matches!(command, "auth" | "hello" | "quit" | "reset") {
            return true;
        }
        let container = command.split('|').next().unwrap_or(command);
        self.commands
            .as_ref()
            .is_none_or(|commands| commands.iter().any(|allowed| allowed == command || allowed == container))
    }

    pub(super) fn may_touch(&self, key: &[u8], access: Access) -> bool {
        let Some(patterns) = &self.patterns else { return true };
        let fits = |wanted: fn(Access) -> bool| patterns.iter().any(|p| wanted(p.access) && p.matches(key));
        (!access.reads() || fits(Access::reads)) && (!access.writes() || fits(Access::writes))
    }
}

impl Pattern {
    fn new(access: &str, pattern: &str) -> Self {
        let access = match access {
            "%R" => Access::Read,
            "%W" => Access::Write,
            _ => Access::ReadWrite,
        };
        let prefix = pattern.strip_suffix('*');
        Self { access, prefix: prefix.unwrap_or(pattern).as_bytes().to_vec(), open_ended: prefix.is_some() }
    }

    fn matches(&self, key: &[u8]) -> bool {
        if self.open_ended { key.starts_with(&self.prefix) } else { key == self.prefix }
    }
}

/// Without the password.
impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User")
            .field("commands", &self.commands)
            .field("patterns", &self.patterns)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(super) struct Users(BTreeMap<String, User>);

impl Users {
    pub(super) fn new() -> Self {
        Self(BTreeMap::from([(DEFAULT_USER.into(), User::all_rights(None))]))
    }

    pub(super) fn insert(&mut self, name: &str, user: User) {
        self.0.insert(name.into(), user);
    }

    pub(super) fn get(&self, name: &str) -> Option<&User> {
        self.0.get(name)
    }

    /// The user's name, if there is one of that name and the password fits.
    pub(super) fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<String> {
        let name = core::str::from_utf8(name).ok()?;
        self.0.get(name)?.accepts(password).then(|| name.into())
    }

    /// Whether a new connection may go on without `AUTH`.
    pub(super) fn default_is_open(&self) -> bool {
        self.get(DEFAULT_USER).is_some_and(|user| !user.has_password())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_commands_and_keys() {
        let user = User::with_rules("p", &["+set", "GET", "+client|setname", "~lock:*", "%R~config"]);
        assert!(
            user.may_run("set")
                && user.may_run("get")
                && user.may_run("client|setname")
                && user.may_run("hello")
        );
        assert!(!user.may_run("del") && !user.may_run("client|kill"));
        assert!(user.may_touch(b"lock:a", Access::ReadWrite) && user.may_touch(b"config", Access::Read));
        assert!(!user.may_touch(b"config", Access::Write) && !user.may_touch(b"config2", Access::Read));
        assert!(User::with_rules("p", &["+client"]).may_run("client|kill"));
        assert!(User::with_rules("p", &["+@all"]).may_touch(b"any", Access::ReadWrite));
    }

    #[test]
    fn r26_debug_shows_no_password() {
        let shown = alloc::format!("{:?}", User::with_rules("sesame", &["+get"]));
        assert!(!shown.contains("sesame"), "{shown}");
    }
}
