//! Commands about the server.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use super::Call;
use crate::sim::server::condition::Condition;
use crate::sim::server::reply::Reply;

/// The sections of `INFO` that there are, in the order in which they come.
const SECTIONS: [&str; 5] = ["server", "memory", "persistence", "replication", "cluster"];

pub(in super::super) fn info(call: &mut Call<'_>) -> Reply {
    let asked: Vec<String> =
        call.args_from(1).iter().map(|word| String::from_utf8_lossy(word).to_ascii_lowercase()).collect();
    let all = asked.is_empty()
        || asked.iter().any(|name| matches!(name.as_str(), "all" | "default" | "everything"));
    let sections = SECTIONS.iter().filter(|name| all || asked.iter().any(|asked| asked == *name));
    let texts: Vec<String> = sections.map(|name| section(call, name)).collect();
    Reply::Verbatim(texts.join("\r\n").into_bytes())
}

fn section(call: &Call<'_>, name: &str) -> String {
    let core = &call.core;
    let condition = core.condition.as_ref();
    let is_replica = condition.is_some_and(Condition::is_replica);
    let is_cluster = condition.is_some_and(Condition::is_cluster);
    let mut text = format!("# {}\r\n", capitalized(name));
    // Writing to a String cannot fail.
    let mut line = |field: &str, value: &dyn fmt::Display| {
        let _infallible = write!(text, "{field}:{value}\r\n");
    };
    match name {
        "server" => {
            let mode = if is_cluster { "cluster" } else { "standalone" };
            let version = core.dialect.version();
            if core.dialect.is_valkey() {
                // What Valkey says for the sake of clients that know Redis only.
                line("redis_version", &"7.2.4");
                line("server_name", &"valkey");
                line("valkey_version", &version);
                line("valkey_release_stage", &"ga");
                line("server_mode", &mode);
            } else {
                line("redis_version", &version);
                line("redis_mode", &mode);
            }
            let uptime = call.now_ms.saturating_sub(core.started_ms).div_euclid(1_000);
            line("process_id", &"1");
            line("run_id", &core.run_id);
            line("tcp_port", &"6379");
            line("server_time_usec", &call.now_us);
            // By the wall clock, so that it is negative after a jump back.
            line("uptime_in_seconds", &uptime);
            line("uptime_in_days", &uptime.div_euclid(86_400));
            line("hz", &"10");
        }
        "memory" => {
            line("maxmemory", &core.config("maxmemory"));
            line("maxmemory_policy", &core.config("maxmemory-policy"));
        }
        "persistence" => {
            let flag = |set: bool| if set { "1" } else { "0" };
            line("loading", &flag(condition == Some(&Condition::Loading)));
            let failed = condition == Some(&Condition::Misconf);
            line("rdb_last_bgsave_status", &if failed { "err" } else { "ok" });
            line("aof_enabled", &flag(core.config("appendonly") == "yes"));
        }
        "replication" => {
            if is_replica {
                let up = condition == Some(&Condition::Readonly);
                line("role", &"slave");
                line("master_host", &"127.0.0.1");
                line("master_port", &"6379");
                line("master_link_status", &if up { "up" } else { "down" });
                line("slave_read_only", &"1");
            } else {
                line("role", &"master");
            }
            line("connected_slaves", &"0");
            line("master_failover_state", &"no-failover");
        }
        _ => line("cluster_enabled", if is_cluster { &"1" } else { &"0" }),
    }
    text
}

fn capitalized(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

pub(in super::super) fn role(call: &mut Call<'_>) -> Reply {
    match &call.core.condition {
        Some(condition) if condition.is_replica() => {
            let up = *condition == Condition::Readonly;
            Reply::Array(vec![
                Reply::bulk("slave"),
                Reply::bulk("127.0.0.1"),
                Reply::Integer(6379),
                Reply::bulk(if up { "connected" } else { "connect" }),
                Reply::Integer(if up { 0 } else { -1 }),
            ])
        }
        Some(_) | None => Reply::Array(vec![Reply::bulk("master"), Reply::ZERO, Reply::Array(Vec::new())]),
    }
}

pub(in super::super) fn time(call: &mut Call<'_>) -> Reply {
    let seconds = call.now_us.div_euclid(1_000_000);
    let micros = call.now_us.rem_euclid(1_000_000);
    Reply::Array(vec![Reply::bulk(seconds.to_string()), Reply::bulk(micros.to_string())])
}

pub(in super::super) fn config_get(call: &mut Call<'_>) -> Reply {
    let asked = call.args_from(2);
    let names = call.core.dialect.config_order().into_iter().filter(|name| {
        asked.iter().any(|asked| asked == b"*" || asked.eq_ignore_ascii_case(name.as_bytes()))
    });
    Reply::Map(names.map(|name| (Reply::bulk(name), Reply::bulk(call.core.config(name)))).collect())
}

/// Nothing is known about commands; clients that ask must cope with an empty list.
pub(in super::super) fn command(_call: &mut Call<'_>) -> Reply {
    Reply::Array(Vec::new())
}

pub(in super::super) fn dbsize(call: &mut Call<'_>) -> Reply {
    let keys = call.core.store.keys(call.session.database, call.now_ms).len();
    Reply::Integer(i64::try_from(keys).unwrap_or(i64::MAX))
}
