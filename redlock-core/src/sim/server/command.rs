//! The table of commands: who may run one, when, and what it is run by.

use alloc::string::String;
use alloc::vec::Vec;

use super::acl::Access;
use super::dialect::Dialect;
use super::exec::{Call, admin, connection, strings};
use super::reply::{Reply, parse_integer};
use super::script;

pub(super) type Run = fn(&mut Call<'_>) -> Reply;

/// One command, or one subcommand of a container.
#[derive(Debug)]
pub(super) struct Command {
    /// As rights name it: `set`, `client|setname`.
    pub(super) name: &'static str,
    /// How many words; negative: at least so many.
    arity: i8,
    pub(super) run: Run,
    pub(super) keys: Keys,
    pub(super) access: Access,
    /// Changes data: refused on a replica, by MISCONF and by NOREPLICAS.
    pub(super) writes: bool,
    /// Needs memory: refused by OOM.
    pub(super) deny_oom: bool,
    /// Reads data: client tracking remembers its keys.
    pub(super) reads: bool,
    /// Runs before authentication.
    pub(super) no_auth: bool,
    /// Runs while the data set is loading.
    pub(super) while_loading: bool,
    /// Runs on a replica that has lost its master.
    pub(super) while_stale: bool,
    /// Runs while another client's script is over its time.
    pub(super) while_busy: Busy,
    exists: fn(Dialect) -> bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Busy {
    Refused,
    Runs,
    RunsOnValkey9,
}

/// Where a command's keys are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    None,
    First,
    All,
    /// As many as the word before them says.
    Counted,
}

impl Command {
    const fn new(name: &'static str, arity: i8, run: Run) -> Self {
        Self {
            name,
            arity,
            run,
            keys: Keys::None,
            access: Access::Read,
            writes: false,
            deny_oom: false,
            reads: false,
            no_auth: false,
            while_loading: false,
            while_stale: false,
            while_busy: Busy::Refused,
            exists: |_| true,
        }
    }

    const fn keys(mut self, keys: Keys, access: Access) -> Self {
        self.keys = keys;
        self.access = access;
        self
    }

    const fn read(mut self) -> Self {
        self.reads = true;
        self
    }

    const fn write(mut self) -> Self {
        self.writes = true;
        self
    }

    const fn write_deny_oom(mut self) -> Self {
        self.writes = true;
        self.deny_oom = true;
        self
    }

    const fn no_auth(mut self) -> Self {
        self.no_auth = true;
        self
    }

    const fn any_time(mut self, busy: Busy) -> Self {
        self.while_loading = true;
        self.while_stale = true;
        self.while_busy = busy;
        self
    }

    const fn only(mut self, exists: fn(Dialect) -> bool) -> Self {
        self.exists = exists;
        self
    }

    pub(super) fn arity_fits(&self, words: usize) -> bool {
        let wanted = usize::from(self.arity.unsigned_abs());
        if self.arity < 0 { words >= wanted } else { words == wanted }
    }

    pub(super) fn keys_of<'a>(&self, args: &'a [Vec<u8>]) -> &'a [Vec<u8>] {
        match self.keys {
            Keys::None => &[],
            Keys::First => args.get(1..2).unwrap_or_default(),
            Keys::All => args.get(1..).unwrap_or_default(),
            Keys::Counted => counted_keys(args).unwrap_or_default(),
        }
    }

    /// What the command does with its keys, which for `SET` depends on an option.
    pub(super) fn access_of(&self, args: &[Vec<u8>]) -> Access {
        let options = args.get(3..).unwrap_or_default();
        if self.name == "set" && options.iter().any(|option| option.eq_ignore_ascii_case(b"get")) {
            return Access::ReadWrite;
        }
        self.access
    }
}

/// The keys of `EVAL script count key… arg…`; `None` if the count does not fit.
pub(super) fn counted_keys(args: &[Vec<u8>]) -> Option<&[Vec<u8>]> {
    let count = usize::try_from(parse_integer(args.get(2)?)?).ok()?;
    args.get(3..count.checked_add(3)?)
}

/// Looks a command up. `Err` is what the server answers where there is none.
pub(super) fn lookup(dialect: Dialect, args: &[Vec<u8>]) -> Result<&'static Command, Reply> {
    let name = args.first().map(Vec::as_slice).unwrap_or_default();
    if CONTAINERS.iter().any(|container| container.as_bytes().eq_ignore_ascii_case(name)) {
        return subcommand(dialect, name, args);
    }
    find(dialect, name).ok_or_else(|| unknown_command(dialect, args))
}

fn subcommand(dialect: Dialect, name: &[u8], args: &[Vec<u8>]) -> Result<&'static Command, Reply> {
    let container = String::from_utf8_lossy(name);
    let Some(sub) = args.get(1) else { return Err(Reply::wrong_arity(&container.to_ascii_lowercase())) };
    let full = [name, b"|", sub.as_slice()].concat();
    find(dialect, &full).ok_or_else(|| {
        let mut text = b"ERR unknown subcommand '".to_vec();
        text.extend_from_slice(up_to_nul(sub, 128));
        text.extend_from_slice(b"'. Try ");
        text.extend_from_slice(container.to_ascii_uppercase().as_bytes());
        text.extend_from_slice(b" HELP.");
        Reply::Error(text)
    })
}

fn find(dialect: Dialect, name: &[u8]) -> Option<&'static Command> {
    COMMANDS
        .iter()
        .find(|command| command.name.as_bytes().eq_ignore_ascii_case(name) && (command.exists)(dialect))
}

/// The answer that echoes what it was sent: at most 128 bytes of it, each argument up to its first NUL.
fn unknown_command(dialect: Dialect, args: &[Vec<u8>]) -> Reply {
    let (name, rest) = args.split_first().map_or((&[][..], &[][..]), |(name, rest)| (name.as_slice(), rest));
    let mut text = b"ERR unknown command '".to_vec();
    text.extend_from_slice(up_to_nul(name, 128));
    text.push(b'\'');
    if rest.is_empty() && dialect == Dialect::Redis84 {
        return Reply::Error(text);
    }
    text.extend_from_slice(b", with args beginning with: ");
    let mut echoed = Vec::new();
    for arg in rest {
        let room = 128_usize.saturating_sub(echoed.len());
        if room == 0 {
            break;
        }
        echoed.push(b'\'');
        echoed.extend_from_slice(up_to_nul(arg, room));
        echoed.extend_from_slice(b"' ");
    }
    text.extend_from_slice(&echoed);
    Reply::Error(text)
}

fn up_to_nul(bytes: &[u8], limit: usize) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()).min(limit);
    bytes.get(..end).unwrap_or_default()
}

const CONTAINERS: [&str; 3] = ["client", "config", "script"];

const fn not_redis_7(dialect: Dialect) -> bool {
    !matches!(dialect, Dialect::Redis7)
}

static COMMANDS: &[Command] = &[
    // Keys
    Command::new("set", -3, strings::set).keys(Keys::First, Access::Write).write_deny_oom(),
    Command::new("get", 2, strings::get).keys(Keys::First, Access::Read).read(),
    Command::new("getrange", 4, strings::getrange).keys(Keys::First, Access::Read).read(),
    Command::new("del", -2, strings::del).keys(Keys::All, Access::Write).write(),
    Command::new("exists", -2, strings::exists).keys(Keys::All, Access::Read).read(),
    Command::new("type", 2, strings::type_of).keys(Keys::First, Access::Read).read(),
    Command::new("pttl", 2, strings::pttl).keys(Keys::First, Access::Read).read(),
    Command::new("pexpire", -3, strings::pexpire).keys(Keys::First, Access::Write).write(),
    Command::new("persist", 2, strings::persist).keys(Keys::First, Access::Write).write(),
    Command::new("incr", 2, strings::incr).keys(Keys::First, Access::ReadWrite).write_deny_oom(),
    Command::new("delex", -2, strings::delex)
        .keys(Keys::First, Access::Write)
        .write()
        .only(Dialect::has_delex),
    Command::new("delifeq", 3, strings::delifeq)
        .keys(Keys::First, Access::Write)
        .write()
        .only(Dialect::has_delifeq),
    Command::new("flushall", -1, strings::flushall).write(),
    // Scripts
    Command::new("eval", -3, script::eval).keys(Keys::Counted, Access::ReadWrite),
    Command::new("evalsha", -3, script::evalsha).keys(Keys::Counted, Access::ReadWrite),
    Command::new("script|load", 3, script::load),
    Command::new("script|flush", -2, script::flush),
    Command::new("script|exists", -3, script::exists),
    // Connection
    Command::new("hello", -1, connection::hello).no_auth().any_time(Busy::Runs),
    Command::new("auth", -2, connection::auth).no_auth().any_time(Busy::Runs),
    Command::new("quit", -1, connection::quit).no_auth().any_time(Busy::Runs),
    Command::new("reset", 1, connection::reset).no_auth().any_time(Busy::Runs),
    Command::new("select", 2, connection::select).any_time(Busy::RunsOnValkey9),
    Command::new("ping", -1, connection::ping),
    Command::new("echo", 2, connection::echo).any_time(Busy::Refused),
    Command::new("client|setname", 3, connection::client_setname).any_time(Busy::RunsOnValkey9),
    Command::new("client|getname", 2, connection::client_getname).any_time(Busy::RunsOnValkey9),
    Command::new("client|id", 2, connection::client_id).any_time(Busy::RunsOnValkey9),
    Command::new("client|setinfo", 4, connection::client_setinfo)
        .any_time(Busy::RunsOnValkey9)
        .only(not_redis_7),
    Command::new("client|no-evict", 3, connection::client_switch).any_time(Busy::RunsOnValkey9),
    Command::new("client|no-touch", 3, connection::client_switch)
        .any_time(Busy::RunsOnValkey9)
        .only(not_redis_7),
    Command::new("client|tracking", -3, connection::client_tracking).any_time(Busy::Refused),
    Command::new("client|caching", 3, connection::client_caching).any_time(Busy::RunsOnValkey9),
    Command::new("client|kill", -3, connection::client_kill).any_time(Busy::Refused),
    // Server
    Command::new("info", -1, admin::info).any_time(Busy::Refused),
    Command::new("role", 1, admin::role).any_time(Busy::Refused),
    Command::new("time", 1, admin::time).any_time(Busy::Refused),
    Command::new("config|get", -3, admin::config_get).any_time(Busy::Refused),
    Command::new("command", -1, admin::command).any_time(Busy::Refused),
    Command::new("dbsize", 1, admin::dbsize).read(),
];
