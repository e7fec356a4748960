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

/// Sets every key that is missing to `ARGV[1]` with expiry `ARGV[2]` (ms), if all are free or already ours: 1; else 0
/// and nothing is changed. Acquires and repairs several keys, all or none on a node.
pub(crate) const SET_ALL: &str = "for i=1,#KEYS do \
if redis.call('exists',KEYS[i])==1 then \
local v=redis.pcall('get',KEYS[i]) \
if type(v)=='table' and v.err and not string.find(v.err,'WRONGTYPE',1,true) then return v end \
if v~=ARGV[1] then return 0 end end end \
for i=1,#KEYS do redis.call('set',KEYS[i],ARGV[1],'NX','PX',ARGV[2]) end \
return 1";

/// Gives every key the expiry `ARGV[2]` (ms) if all values are `ARGV[1]`: 1; else 0 and nothing is changed.
pub(crate) const EXTEND_ALL: &str = "for i=1,#KEYS do \
local v=redis.pcall('get',KEYS[i]) \
if type(v)=='table' and v.err and not string.find(v.err,'WRONGTYPE',1,true) then return v end \
if v~=ARGV[1] then return 0 end end \
for i=1,#KEYS do redis.call('pexpire',KEYS[i],ARGV[2]) end \
return 1";

/// Deletes each key whose value is `ARGV[1]`; answers how many those were.
pub(crate) const RELEASE_ALL: &str = "local n=0 \
for i=1,#KEYS do \
local v=redis.pcall('get',KEYS[i]) \
if type(v)=='table' and v.err and not string.find(v.err,'WRONGTYPE',1,true) then return v end \
if v==ARGV[1] then n=n+redis.call('del',KEYS[i]) end end \
return n";
