//! Scripts: known by their exact text, and written here a second time, natively.
//!
//! A node that simulates Lua would be a Lua. This one knows the scripts that a lock client sends, and answers any other
//! with an error. Each runs through the same commands as a client's, so that rights, conditions and key types show
//! inside a script exactly as they do on a server.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::command::{Command, counted_keys, lookup};
use super::condition::Condition;
use super::dialect::Dialect;
use super::exec::Call;
use super::reply::{Reply, parse_integer};
use super::sha1::sha1_hex;
use crate::wire::script::{
    EXTEND, EXTEND_ALL, FENCED_RAISE, FENCED_REPAIR, FENCED_SET, RELEASE, RELEASE_ALL, SET_ALL,
};

/// `Err` is an error that the script raised, without the suffix that says where.
type Native = fn(&mut Run<'_, '_>) -> Result<Reply, Vec<u8>>;

/// Every script that a node knows.
static SCRIPTS: &[(&str, Native)] = &[
    (RELEASE, release),
    (EXTEND, extend),
    (SET_ALL, set_all),
    (EXTEND_ALL, extend_all),
    (RELEASE_ALL, release_all),
    (FENCED_SET, fenced_set),
    (FENCED_RAISE, fenced_raise),
    (FENCED_REPAIR, fenced_repair),
    (PLAIN_RELEASE, release),
    (PLAIN_EXTEND, extend),
];

/// Release and extend as many other lock clients write them, so that those can be run against a node, too.
const PLAIN_RELEASE: &str =
    "if redis.call(\"get\",KEYS[1]) == ARGV[1] then return redis.call(\"del\",KEYS[1]) else return 0 end";
const PLAIN_EXTEND: &str = "if redis.call(\"get\",KEYS[1]) == ARGV[1] then return redis.call(\"pexpire\",KEYS[1],ARGV[2]) else return 0 end";

pub(super) fn eval(call: &mut Call<'_>) -> Reply {
    let text = call.arg(1);
    if let Some(error) = count_error(call) {
        return error;
    }
    if !call.core.scripts.values().any(|known| known == text) {
        call.core.scripts.insert(sha1_hex(text), text.to_vec());
    }
    run(call, text)
}

pub(super) fn evalsha(call: &mut Call<'_>) -> Reply {
    if call.arg(1).len() != 40 {
        return no_script(call);
    }
    if let Some(error) = count_error(call) {
        return error;
    }
    let sha = String::from_utf8_lossy(call.arg(1)).to_ascii_lowercase();
    match call.core.scripts.get(&sha).cloned() {
        Some(text) => run(call, &text),
        None => no_script(call),
    }
}

fn no_script(call: &Call<'_>) -> Reply {
    let advice = if call.core.dialect.is_valkey() { "" } else { " Please use EVAL." };
    Reply::error(format!("NOSCRIPT No matching script.{advice}"))
}

pub(super) fn load(call: &mut Call<'_>) -> Reply {
    let text = call.arg(2).to_vec();
    let sha = sha1_hex(&text);
    call.core.scripts.insert(sha.clone(), text);
    Reply::bulk(sha)
}

pub(super) fn flush(call: &mut Call<'_>) -> Reply {
    let option = call.arg(2);
    let known = option.eq_ignore_ascii_case(b"sync") || option.eq_ignore_ascii_case(b"async");
    if call.args.len() > 3 || (call.args.len() == 3 && !known) {
        return Reply::error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
    }
    call.core.scripts.clear();
    Reply::OK
}

pub(super) fn exists(call: &mut Call<'_>) -> Reply {
    let known = call.args_from(2).iter().map(|sha| {
        let sha = String::from_utf8_lossy(sha).to_ascii_lowercase();
        Reply::Integer(i64::from(call.core.scripts.contains_key(&sha)))
    });
    Reply::Array(known.collect())
}

fn count_error(call: &Call<'_>) -> Option<Reply> {
    let Some(count) = parse_integer(call.arg(2)) else { return Some(Reply::not_an_integer()) };
    if count < 0 {
        return Some(Reply::error("ERR Number of keys can't be negative"));
    }
    let fits = counted_keys(call.args).is_some();
    (!fits).then(|| Reply::error("ERR Number of keys can't be greater than number of args"))
}

fn run(call: &mut Call<'_>, text: &[u8]) -> Reply {
    let native = SCRIPTS.iter().find(|(known, _)| known.as_bytes() == text).map(|(_, native)| native);
    let Some(native) = native else { return Reply::error("ERR simulated node: unknown script") };
    let keys = counted_keys(call.args).unwrap_or_default().to_vec();
    let args = call.args_from(keys.len().saturating_add(3)).to_vec();
    let dialect = call.core.dialect;
    native(&mut Run { call, keys, args, has_written: false }).unwrap_or_else(|mut error| {
        let place = match dialect {
            Dialect::Valkey9 => " script: on @user_script:1.".into(),
            Dialect::Redis7 | Dialect::Redis84 | Dialect::Valkey81 => {
                format!(" script: {}, on @user_script:1.", sha1_hex(text))
            }
        };
        error.extend_from_slice(place.as_bytes());
        Reply::Error(error)
    })
}

/// A script as it runs.
struct Run<'c, 'a> {
    call: &'c mut Call<'a>,
    keys: Vec<Vec<u8>>,
    args: Vec<Vec<u8>>,
    /// From the first write on a script may go over `maxmemory`: half of it has been done.
    has_written: bool,
}

impl Run<'_, '_> {
    /// `redis.call`, and with the `Err` looked at, `redis.pcall`.
    fn call(&mut self, args: &[&[u8]]) -> Result<Reply, Vec<u8>> {
        let args: Vec<Vec<u8>> = args.iter().map(|arg| arg.to_vec()).collect();
        let dialect = self.call.core.dialect;
        let command = lookup(dialect, &args).map_err(|_| {
            let what = if dialect.is_valkey() { "command" } else { "Redis command" };
            format!("ERR Unknown {what} called from script").into_bytes()
        })?;
        let call = &mut *self.call;
        let mut inner = Call {
            core: call.core,
            session: call.session,
            peers: call.peers,
            args: &args,
            now_ms: call.now_ms,
            now_us: call.now_us,
            keys_read: (dialect == Dialect::Redis7).then_some(&self.keys),
        };
        if let Some(denial) = inner.denial(command) {
            return Err(denial.text_in_script(dialect).into_bytes());
        }
        if let Some(condition) = inner.core.condition.as_ref().filter(|c| stops(c, command, self.has_written))
        {
            return Err(condition.text(dialect).into_bytes());
        }
        self.has_written |= command.writes;
        let reply = inner.run_admitted(command);
        if let Reply::Error(text) = reply { Err(text) } else { Ok(reply) }
    }

    fn key(&self, index: usize) -> Result<Vec<u8>, Vec<u8>> {
        word(&self.keys, index, self.call.core.dialect)
    }

    fn arg(&self, index: usize) -> Result<Vec<u8>, Vec<u8>> {
        word(&self.args, index, self.call.core.dialect)
    }

    /// Whether the text at `key` is `ARGV[1]`; anything that is not a text is not. The inner `Err` is an error that the
    /// script returns instead of raising it.
    fn is_ours(&mut self, key: &[u8]) -> Result<Result<bool, Reply>, Vec<u8>> {
        let token = self.args.first().cloned().unwrap_or_default();
        match self.call(&[b"get", key]) {
            Ok(reply) => Ok(Ok(reply == Reply::Bulk(token))),
            Err(error) if error.windows(9).any(|part| part == b"WRONGTYPE") => Ok(Ok(false)),
            Err(error) => Ok(Err(Reply::Error(error))),
        }
    }

    /// What the script ends with unless all of `keys` are ours, or free where that is as good.
    fn unless_ours(&mut self, keys: &[Vec<u8>], or_free: bool) -> Result<Option<Reply>, Vec<u8>> {
        for key in keys {
            if or_free && self.call(&[b"exists", key])? != Reply::ONE {
                continue;
            }
            match self.is_ours(key)? {
                Ok(true) => {}
                Ok(false) => return Ok(Some(Reply::ZERO)),
                Err(error) => return Ok(Some(error)),
            }
        }
        Ok(None)
    }
}

fn word(words: &[Vec<u8>], index: usize, dialect: Dialect) -> Result<Vec<u8>, Vec<u8>> {
    let missing = || match dialect {
        Dialect::Valkey9 => b"ERR Command arguments must be strings or integers".to_vec(),
        Dialect::Redis7 | Dialect::Redis84 | Dialect::Valkey81 => {
            b"ERR Lua redis lib command arguments must be strings or integers".to_vec()
        }
    };
    words.get(index).cloned().ok_or_else(missing)
}

/// Which conditions a command meets inside a script. Those that refuse the script as a whole are not among them.
const fn stops(condition: &Condition, command: &Command, has_written: bool) -> bool {
    match condition {
        Condition::Oom => command.deny_oom && !has_written,
        Condition::Misconf | Condition::Noreplicas | Condition::Readonly => command.writes,
        Condition::Loading
        | Condition::Busy
        | Condition::Masterdown
        | Condition::Cluster { .. }
        | Condition::MaxClients
        | Condition::ProtectedMode => false,
    }
}

fn release(run: &mut Run<'_, '_>) -> Result<Reply, Vec<u8>> {
    let key = run.key(0)?;
    if run.call(&[b"get", &key])? == Reply::Bulk(run.arg(0)?) {
        run.call(&[b"del", &key])
    } else {
        Ok(Reply::ZERO)
    }
}

fn extend(run: &mut Run<'_, '_>) -> Result<Reply, Vec<u8>> {
    let key = run.key(0)?;
    if run.call(&[b"get", &key])? == Reply::Bulk(run.arg(0)?) {
        let ttl = run.arg(1)?;
        run.call(&[b"pexpire", &key, &ttl])
    } else {
        Ok(Reply::ZERO)
    }
}

fn set_all(run: &mut Run<'_, '_>) -> Result<Reply, Vec<u8>> {
    if let Some(end) = run.unless_ours(&run.keys.clone(), true)? {
        return Ok(end);
    }
    for key in run.keys.clone() {
        let (token, ttl) = (run.arg(0)?, run.arg(1)?);
        run.call(&[b"set", &key, &token, b"NX", b"PX", &ttl])?;
    }
    Ok(Reply::ONE)
}

fn extend_all(run: &mut Run<'_, '_>) -> Result<Reply, Vec<u8>> {
    if let Some(end) = run.unless_ours(&run.keys.clone(), false)? {
        return Ok(end);
    }
    for key in run.keys.clone() {
        let ttl = run.arg(1)?;
        run.call(&[b"pexpire", &key, &ttl])?;
    }
    Ok(Reply::ONE)
}

fn release_all(run: &mut Run<'_, '_>) -> Result<Reply, Vec<u8>> {
    let mut deleted = 0;
    for key in run.keys.clone() {
        match run.is_ours(&key)? {
            Ok(true) => deleted += i64::from(run.call(&[b"del", &key])? == Reply::ONE),
            Ok(false) => {}
            Err(error) => return Ok(error),
        }
    }
    Ok(Reply::Integer(deleted))
}

/// The two halves of `KEYS` in a fenced script: keys and their counters.
fn halves(run: &Run<'_, '_>) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let (keys, counters) = run.keys.split_at(run.keys.len() / 2);
    (keys.to_vec(), counters.to_vec())
}

fn start_counters(run: &mut Run<'_, '_>, counters: &[Vec<u8>]) -> Result<(), Vec<u8>> {
    let retention = run.arg(2)?;
    for counter in counters {
        if run.call(&[b"exists", counter])? == Reply::ONE {
            continue;
        }
        let Reply::Array(time) = run.call(&[b"time"])? else { continue };
        let [Reply::Bulk(seconds), Reply::Bulk(micros)] = &time[..] else { continue };
        let mut start = seconds.clone();
        start.resize(start.len() + 6_usize.saturating_sub(micros.len()), b'0');
        start.extend_from_slice(micros);
        run.call(&[b"set", counter, &start])?;
        if retention != b"0" {
            run.call(&[b"pexpire", counter, &retention])?;
        }
    }
    Ok(())
}

fn raise_counters(run: &mut Run<'_, '_>, counters: &[Vec<u8>]) -> Result<(), Vec<u8>> {
    let fence = run.arg(3)?;
    for counter in counters {
        let Reply::Bulk(now) = run.call(&[b"get", counter])? else { continue };
        if (now.len(), &now) < (fence.len(), &fence) {
            run.call(&[b"set", counter, &fence, b"KEEPTTL"])?;
        }
    }
    Ok(())
}

fn fenced_set(run: &mut Run<'_, '_>) -> Result<Reply, Vec<u8>> {
    let (keys, counters) = halves(run);
    for key in &keys {
        if run.call(&[b"exists", key])? == Reply::ONE {
            return Ok(Reply::ZERO);
        }
    }
    start_counters(run, &counters)?;
    let (token, ttl, retention) = (run.arg(0)?, run.arg(1)?, run.arg(2)?);
    let mut now = Vec::new();
    for counter in &counters {
        run.call(&[b"incr", counter])?;
        if retention == b"0" {
            run.call(&[b"persist", counter])?;
        } else {
            run.call(&[b"pexpire", counter, &retention])?;
        }
        now.push(run.call(&[b"get", counter])?);
    }
    for key in &keys {
        run.call(&[b"set", key, &token, b"NX", b"PX", &ttl])?;
    }
    Ok(Reply::Array(now))
}

fn fenced_raise(run: &mut Run<'_, '_>) -> Result<Reply, Vec<u8>> {
    let (keys, counters) = halves(run);
    if let Some(end) = run.unless_ours(&keys, false)? {
        return Ok(end);
    }
    start_counters(run, &counters)?;
    raise_counters(run, &counters)?;
    Ok(Reply::ONE)
}

fn fenced_repair(run: &mut Run<'_, '_>) -> Result<Reply, Vec<u8>> {
    let (keys, counters) = halves(run);
    if let Some(end) = run.unless_ours(&keys, true)? {
        return Ok(end);
    }
    start_counters(run, &counters)?;
    raise_counters(run, &counters)?;
    let (token, ttl) = (run.arg(0)?, run.arg(1)?);
    for key in &keys {
        run.call(&[b"set", key, &token, b"NX", b"PX", &ttl])?;
    }
    Ok(Reply::ONE)
}
