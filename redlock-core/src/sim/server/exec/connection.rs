//! Commands on the connection itself.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::Call;
use crate::sim::server::acl::DEFAULT_USER;
use crate::sim::server::dialect::Dialect;
use crate::sim::server::reply::{Protocol, Reply, parse_integer};
use crate::sim::server::session::Session;
use crate::sim::server::store::DATABASES;
use crate::sim::server::tracking::{Mode, Tracking};

pub(in super::super) fn ping(call: &mut Call<'_>) -> Reply {
    match call.args {
        [_] => Reply::Simple("PONG"),
        [_, text] => Reply::Bulk(text.clone()),
        _ => Reply::wrong_arity("ping"),
    }
}

pub(in super::super) fn echo(call: &mut Call<'_>) -> Reply {
    Reply::bulk(call.arg(1))
}

pub(in super::super) fn quit(call: &mut Call<'_>) -> Reply {
    call.session.closing = true;
    Reply::OK
}

pub(in super::super) fn reset(call: &mut Call<'_>) -> Reply {
    let session = &mut *call.session;
    stop_tracking(session);
    session.protocol = Protocol::Resp2;
    session.database = 0;
    session.name = Vec::new();
    session.user = call.core.users.default_is_open().then(|| DEFAULT_USER.into());
    Reply::Simple("RESET")
}

pub(in super::super) fn select(call: &mut Call<'_>) -> Reply {
    let Some(number) = parse_integer(call.arg(1)) else { return Reply::not_an_integer() };
    let database = usize::try_from(number).ok().filter(|database| *database < DATABASES);
    let in_cluster = call.core.condition.as_ref().is_some_and(|condition| condition.is_cluster());
    match database {
        Some(database) if database == 0 || !in_cluster => {
            call.session.database = database;
            Reply::OK
        }
        Some(_) if call.core.dialect != Dialect::Valkey9 => {
            Reply::error("ERR SELECT is not allowed in cluster mode")
        }
        Some(_) | None => Reply::error("ERR DB index is out of range"),
    }
}

pub(in super::super) fn auth(call: &mut Call<'_>) -> Reply {
    let (name, password) = match call.args {
        [_, _] if call.core.users.default_is_open() => {
            return Reply::error(
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                 configuration is correct?",
            );
        }
        [_, password] => (DEFAULT_USER.as_bytes(), password),
        [_, name, password] => (name.as_slice(), password),
        _ => return Reply::syntax_error(),
    };
    match call.core.users.authenticate(name, password) {
        Some(user) => {
            call.session.user = Some(user);
            Reply::OK
        }
        None => wrong_password(),
    }
}

fn wrong_password() -> Reply {
    Reply::error("WRONGPASS invalid username-password pair or user is disabled.")
}

pub(in super::super) fn hello(call: &mut Call<'_>) -> Reply {
    try_hello(call).unwrap_or_else(|error| error)
}

/// Changes the session only when everything asked for can be done.
fn try_hello(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let protocol = match call.args.get(1).map(|word| parse_integer(word)) {
        None => call.session.protocol,
        Some(Some(2)) => Protocol::Resp2,
        Some(Some(3)) => Protocol::Resp3,
        Some(Some(_)) => return Err(Reply::error("NOPROTO unsupported protocol version")),
        Some(None) => return Err(Reply::error("ERR Protocol version is not an integer or out of range")),
    };
    let mut user = call.session.user.clone();
    let mut credentials = None;
    let mut name = None;
    let mut words = call.args_from(2);
    while let [option, rest @ ..] = words {
        words = match rest {
            [user, password, rest @ ..] if option.eq_ignore_ascii_case(b"auth") => {
                credentials = Some((user, password));
                rest
            }
            [wanted, rest @ ..] if option.eq_ignore_ascii_case(b"setname") => {
                name = Some(wanted);
                rest
            }
            _ => {
                let mut text = b"ERR Syntax error in HELLO option '".to_vec();
                text.extend_from_slice(option);
                text.push(b'\'');
                return Err(Reply::Error(text));
            }
        };
    }
    if let Some((name, password)) = credentials {
        user = Some(call.core.users.authenticate(name, password).ok_or_else(wrong_password)?);
    }
    if user.is_none() {
        let usage = if call.core.dialect == Dialect::Redis7 { "" } else { "<proto> " };
        return Err(Reply::error(format!(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO {usage}AUTH \
             <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the \
             same time"
        )));
    }
    if let Some(name) = name {
        check_name(name, "Client names")?;
        call.session.name.clone_from(name);
    }
    call.session.user = user;
    call.session.protocol = protocol;
    Ok(greeting(call))
}

fn greeting(call: &Call<'_>) -> Reply {
    let dialect = call.core.dialect;
    let condition = call.core.condition.as_ref();
    let text = |text: &str| Reply::bulk(text);
    Reply::Map(vec![
        (text("server"), text(dialect.server_name())),
        (text("version"), text(dialect.version())),
        (text("proto"), Reply::Integer(if call.session.protocol == Protocol::Resp3 { 3 } else { 2 })),
        (text("id"), session_id(call)),
        (
            text("mode"),
            text(if condition.is_some_and(|c| c.is_cluster()) { "cluster" } else { "standalone" }),
        ),
        (text("role"), text(if condition.is_some_and(|c| c.is_replica()) { "replica" } else { "master" })),
        (text("modules"), Reply::Array(modules(dialect))),
    ])
}

/// The modules that are built in.
fn modules(dialect: Dialect) -> Vec<Reply> {
    let module = |name: &str, path: &str| {
        vec![Reply::Map(vec![
            (Reply::bulk("name"), Reply::bulk(name)),
            (Reply::bulk("ver"), Reply::ONE),
            (Reply::bulk("path"), Reply::bulk(path)),
            (Reply::bulk("args"), Reply::Array(Vec::new())),
        ])]
    };
    match dialect {
        Dialect::Redis84 => module("vectorset", ""),
        Dialect::Valkey9 => module("lua", "lua"),
        Dialect::Redis7 | Dialect::Valkey81 => Vec::new(),
    }
}

fn session_id(call: &Call<'_>) -> Reply {
    Reply::Integer(i64::try_from(call.session.id).unwrap_or(i64::MAX))
}

fn check_name(name: &[u8], what: &str) -> Result<(), Reply> {
    if name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Ok(());
    }
    Err(Reply::error(format!("ERR {what} cannot contain spaces, newlines or special characters.")))
}

pub(in super::super) fn client_setname(call: &mut Call<'_>) -> Reply {
    if let Err(error) = check_name(call.arg(2), "Client names") {
        return error;
    }
    call.session.name = call.arg(2).to_vec();
    Reply::OK
}

pub(in super::super) fn client_getname(call: &mut Call<'_>) -> Reply {
    if call.session.name.is_empty() { Reply::Null } else { Reply::bulk(call.session.name.as_slice()) }
}

pub(in super::super) fn client_id(call: &mut Call<'_>) -> Reply {
    session_id(call)
}

pub(in super::super) fn client_setinfo(call: &mut Call<'_>) -> Reply {
    let option = call.arg(2).to_ascii_uppercase();
    if !matches!(option.as_slice(), b"LIB-NAME" | b"LIB-VER") {
        return Reply::error(format!("ERR Unrecognized option '{}'", String::from_utf8_lossy(call.arg(2))));
    }
    match check_name(call.arg(3), &String::from_utf8_lossy(&option)) {
        Ok(()) => Reply::OK,
        Err(error) => error,
    }
}

/// `CLIENT NO-EVICT` and `CLIENT NO-TOUCH`, which change nothing here.
pub(in super::super) fn client_switch(call: &mut Call<'_>) -> Reply {
    if call.arg(2).eq_ignore_ascii_case(b"on") || call.arg(2).eq_ignore_ascii_case(b"off") {
        Reply::OK
    } else {
        Reply::syntax_error()
    }
}

pub(in super::super) fn client_tracking(call: &mut Call<'_>) -> Reply {
    let on = match call.arg(2).to_ascii_lowercase().as_slice() {
        b"on" => true,
        b"off" => false,
        _ => return Reply::syntax_error(),
    };
    let (mut opt_in, mut opt_out, mut broadcast, mut no_loop) = (false, false, false, false);
    let mut prefixes = Vec::new();
    let mut words = call.args_from(3).iter();
    while let Some(word) = words.next() {
        match (word.to_ascii_lowercase().as_slice(), words.len()) {
            (b"optin", _) => opt_in = true,
            (b"optout", _) => opt_out = true,
            (b"bcast", _) => broadcast = true,
            (b"noloop", _) => no_loop = true,
            (b"prefix", 1..) => prefixes.extend(words.next().cloned()),
            _ => return Reply::syntax_error(),
        }
    }
    if !on {
        stop_tracking(call.session);
        return Reply::OK;
    }
    if !broadcast && !prefixes.is_empty() {
        return Reply::error("ERR PREFIX option requires BCAST mode to be enabled");
    }
    let switches_mode = |tracking: &Tracking| tracking.is_broadcast() != broadcast;
    if call.session.tracking.as_ref().is_some_and(switches_mode) {
        return Reply::error(
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling \
             it with a different mode.",
        );
    }
    if broadcast && (opt_in || opt_out) {
        return Reply::error("ERR OPTIN and OPTOUT are not compatible with BCAST");
    }
    if opt_in && opt_out {
        return Reply::error("ERR You can't specify both OPTIN mode and OPTOUT mode");
    }
    let current = call.session.tracking.as_ref().map(|tracking| &tracking.mode);
    if (opt_in && current == Some(&Mode::OptOut)) || (opt_out && current == Some(&Mode::OptIn)) {
        return Reply::error(
            "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it \
             with a different mode.",
        );
    }
    let mode = match (broadcast, opt_in, opt_out) {
        (true, ..) => Mode::Broadcast(prefixes),
        (false, true, _) => Mode::OptIn,
        (false, false, true) => Mode::OptOut,
        (false, false, false) => Mode::All,
    };
    call.session.tracking = Some(Tracking { mode, no_loop });
    call.core.store.watch();
    Reply::OK
}

pub(in super::super) fn client_caching(call: &mut Call<'_>) -> Reply {
    let Some(mode) = call.session.tracking.as_ref().map(|tracking| &tracking.mode) else {
        return Reply::error(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode \
             enabled",
        );
    };
    match (call.arg(2).to_ascii_lowercase().as_slice(), mode) {
        (b"yes", Mode::OptIn) => call.session.caching = Some(true),
        (b"no", Mode::OptOut) => call.session.caching = Some(false),
        (b"yes", _) => {
            return Reply::error(
                "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
            );
        }
        (b"no", _) => {
            return Reply::error(
                "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
            );
        }
        _ => return Reply::syntax_error(),
    }
    Reply::OK
}

/// The form with filters, of which `ID`, `USER` and `SKIPME` are known.
pub(in super::super) fn client_kill(call: &mut Call<'_>) -> Reply {
    let (mut id, mut user, mut skip_me) = (None, None, true);
    if call.args.len() == 3 {
        return Reply::error("ERR No such client");
    }
    for filter in call.args_from(2).chunks(2) {
        let [name, value] = filter else { return Reply::syntax_error() };
        match name.to_ascii_lowercase().as_slice() {
            b"id" => match parse_integer(value).and_then(|id| u64::try_from(id).ok()).filter(|id| *id > 0) {
                Some(number) => id = Some(number),
                None => return Reply::error("ERR client-id should be greater than 0"),
            },
            b"user" => {
                let name = String::from_utf8_lossy(value).into_owned();
                if call.core.users.get(&name).is_none() {
                    return Reply::error(format!("ERR No such user '{name}'"));
                }
                user = Some(name);
            }
            b"skipme" if value.eq_ignore_ascii_case(b"yes") => skip_me = true,
            b"skipme" if value.eq_ignore_ascii_case(b"no") => skip_me = false,
            _ => return Reply::syntax_error(),
        }
    }
    let mut killed = 0;
    let own = (!skip_me).then_some(&mut *call.session);
    for session in call.peers.values_mut().map(|peer| &mut **peer).chain(own) {
        let fits = id.is_none_or(|id| id == session.id) && (user.is_none() || user == session.user);
        if fits && !session.closing {
            session.closing = true;
            killed += 1;
        }
    }
    Reply::Integer(killed)
}

/// What was registered stays in the server's table: it counts again if tracking is switched on again in time.
fn stop_tracking(session: &mut Session) {
    session.tracking = None;
    session.caching = None;
}
