//! The scripts, for servers without the native forms and for several keys at once.
//!
//! They are always sent in full (`EVAL`): nothing then depends on a server's script cache, which a restart or
//! `SCRIPT FLUSH` empties (R18). None has a shebang: with one the whole script is refused under OOM, READONLY,
//! MISCONF or NOREPLICAS before it runs, without one only the command inside that needs the memory is. Reads come before
//! the first write and answer instead of failing where a key is of another type, so that an error before a write
//! carries no doubt about what was applied.

/// Deletes `KEYS[1]` if its value is `ARGV[1]`: 1, else 0.
pub(crate) const RELEASE: &str =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

/// Gives `KEYS[1]` the expiry `ARGV[2]` (ms) if its value is `ARGV[1]`: 1, else 0.
pub(crate) const EXTEND: &str = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) else return 0 end";

/// The part that reads `KEYS[i]` into `v`: a key of another type has no text, any other error ends the script as its answer.
macro_rules! read_value {
    () => {
        "local v=redis.pcall('get',KEYS[i]) \
if type(v)=='table' and v.err and not string.find(v.err,'WRONGTYPE',1,true) then return v end "
    };
}

/// The part that answers 0 unless the value of `KEYS[i]` is `ARGV[1]`.
macro_rules! unless_ours {
    () => {
        concat!(read_value!(), "if v~=ARGV[1] then return 0 end ")
    };
}

/// Sets every key that is missing to `ARGV[1]` with expiry `ARGV[2]` (ms), if all are free or already ours: 1; else 0
/// and nothing is changed. Acquires and repairs several keys, all or none on a node.
pub(crate) const SET_ALL: &str = concat!(
    "for i=1,#KEYS do \
if redis.call('exists',KEYS[i])==1 then ",
    unless_ours!(),
    "end end \
for i=1,#KEYS do redis.call('set',KEYS[i],ARGV[1],'NX','PX',ARGV[2]) end \
return 1"
);

/// Gives every key the expiry `ARGV[2]` (ms) if all values are `ARGV[1]`: 1; else 0 and nothing is changed.
pub(crate) const EXTEND_ALL: &str = concat!(
    "for i=1,#KEYS do ",
    unless_ours!(),
    "end \
for i=1,#KEYS do redis.call('pexpire',KEYS[i],ARGV[2]) end \
return 1"
);

/// Deletes each key whose value is `ARGV[1]`; answers how many those were.
pub(crate) const RELEASE_ALL: &str = concat!(
    "local n=0 \
for i=1,#KEYS do ",
    read_value!(),
    "if v==ARGV[1] then n=n+redis.call('del',KEYS[i]) end end \
return n"
);

/// The part of a fenced script that makes the counters that are missing, each from its node's clock in microseconds since
/// 1970: one that was forgotten goes on above what it had, as long as the clock does. `ARGV[3]` is how long (ms) an idle
/// counter is kept, or 0 for ever. The counters are the second half of `KEYS`, `n` is how many keys there are.
macro_rules! start_counters {
    () => {
        "for i=n+1,2*n do \
if redis.call('exists',KEYS[i])==0 then \
local t=redis.call('time') \
redis.call('set',KEYS[i],string.format('%s%06d',t[1],t[2])) \
if ARGV[3]~='0' then redis.call('pexpire',KEYS[i],ARGV[3]) end end end "
    };
}

/// The part that raises every counter that is below `ARGV[4]`. Compared as texts: Lua's numbers lose integers above 2^53.
macro_rules! raise_counters {
    () => {
        "local f=ARGV[4] \
for i=n+1,2*n do \
local c=redis.call('get',KEYS[i]) \
if #c<#f or (#c==#f and c<f) then redis.call('set',KEYS[i],f,'KEEPTTL') end end "
    };
}

/// Sets every key to `ARGV[1]` with expiry `ARGV[2]` (ms), if all are free, and counts every counter up: the counters; else
/// 0 and nothing is changed. The keys come last, since a script does not roll back: a counter that went up for nothing
/// does no harm.
pub(crate) const FENCED_SET: &str = concat!(
    "local n=#KEYS/2 \
for i=1,n do if redis.call('exists',KEYS[i])==1 then return 0 end end ",
    start_counters!(),
    "local r={} \
for i=1,n do \
redis.call('incr',KEYS[n+i]) \
if ARGV[3]=='0' then redis.call('persist',KEYS[n+i]) else redis.call('pexpire',KEYS[n+i],ARGV[3]) end \
r[i]=redis.call('get',KEYS[n+i]) end \
for i=1,n do redis.call('set',KEYS[i],ARGV[1],'NX','PX',ARGV[2]) end \
return r"
);

/// Raises the counters to `ARGV[4]` where they are below, if all values are `ARGV[1]`: 1; else 0 and nothing is changed.
pub(crate) const FENCED_RAISE: &str = concat!(
    "local n=#KEYS/2 \
for i=1,n do ",
    unless_ours!(),
    "end ",
    start_counters!(),
    raise_counters!(),
    "return 1"
);

/// Sets every key that is missing to `ARGV[1]` with expiry `ARGV[2]` (ms), if all are free or already ours, with the
/// counters at `ARGV[4]` or above: 1; else 0 and nothing is changed. A missing counter starts from the clock first: to put
/// the fence there could hand the same number out again.
pub(crate) const FENCED_REPAIR: &str = concat!(
    "local n=#KEYS/2 \
for i=1,n do \
if redis.call('exists',KEYS[i])==1 then ",
    unless_ours!(),
    "end end ",
    start_counters!(),
    raise_counters!(),
    "for i=1,n do redis.call('set',KEYS[i],ARGV[1],'NX','PX',ARGV[2]) end \
return 1"
);
