//! What one node's report means for locks.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::time::Duration;

use super::clock::ClockReading;
use super::fleet::Expectations;
use super::report::{Fsync, NodeReport, Tried};
use super::rights::{Right, delete_rights, extend_rights, rules};
use super::verdict::{Topic, Verdict};
use crate::error::NodeFault;
use crate::wire::error::{ErrorCode, ServerError};
use crate::wire::handshake::{DeleteForm, ExtendForm, Role};

/// From this difference on clocks are hardly kept by a time service.
const NOTED_OFFSET_MICROS: i64 = 100_000;
/// From this difference on a correction in one step would be felt by locks.
const BAD_OFFSET_MICROS: i64 = 1_000_000;
/// Time services slew clocks by so much at most.
const NOTED_DRIFT_PPM: i64 = 1_000;
/// The drift that is taken off every lock's validity (R6).
const ALLOWED_DRIFT_PPM: i64 = 10_000;

/// All verdicts on one node but those that compare it with others.
pub(super) fn judge(report: &NodeReport, expected: &Expectations) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = Vec::new();
    verdicts.push(report.fault.as_ref().map_or_else(
        || Verdict::ok(Topic::Reach, "It answers, and takes commands."),
        |fault| on_fault(fault, report),
    ));
    verdicts.extend(role(report));
    verdicts.extend(version(report));
    verdicts.extend(locking(report));
    verdicts.extend(rights(report));
    verdicts.extend(wake_ups(report));
    verdicts.extend(eviction(report));
    verdicts.extend(persistence(report, expected));
    verdicts.extend(restart_guard(report, expected));
    verdicts.extend(latency(report, expected));
    verdicts
}

fn on_fault(fault: &NodeFault, report: &NodeReport) -> Verdict {
    let said = sentence(&fault.to_string());
    match fault {
        NodeFault::Refused(_) => Verdict::problem(Topic::Reach, said).advice(
            "Start the server, or correct the address and the port; look at `bind` in its \
                 configuration.",
        ),
        NodeFault::Unresolvable(_) => {
            Verdict::problem(Topic::Reach, said).advice("Correct the name, or the resolver of this machine.")
        }
        NodeFault::HandshakeTimeout(_) | NodeFault::Silent(_) => Verdict::problem(Topic::Reach, said)
            .advice("Look whether the server hangs, and whether a firewall swallows packets to it."),
        NodeFault::Connecting
        | NodeFault::Io(_)
        | NodeFault::Closed
        | NodeFault::ClosedInHandshake
        | NodeFault::Tls(_) => Verdict::problem(Topic::Reach, said)
            .advice("Look at the server's log, and at the network between here and there."),
        NodeFault::Protocol(_) | NodeFault::NotRedis(_) => Verdict::problem(Topic::Reach, said).advice(
            "Look what listens at this address: it must be a Redis or Valkey server, with no \
                 proxy before it.",
        ),
        NodeFault::Login(_) => Verdict::problem(Topic::Login, said)
            .advice("Correct the user and the password in the address: redis://user:password@host."),
        NodeFault::Database(_) => Verdict::problem(Topic::Login, said).advice(
            "Correct the database number in the address, or grant +select; database 0 needs neither.",
        ),
        NodeFault::Replica => Verdict::problem(
            Topic::Role,
            "It is a replica: it refuses writes, and its data is another server's.",
        )
        .advice(
            "Name its primary instead, or make it a server of its own (REPLICAOF NO ONE). Locks \
                 need independent nodes.",
        ),
        NodeFault::NotStandalone(mode) if mode == "sentinel" => {
            Verdict::problem(Topic::Role, "It is a sentinel, which holds no data.")
                .advice("Correct the port: sentinels listen at 26379, servers at 6379.")
        }
        NodeFault::NotStandalone(mode) => {
            Verdict::problem(Topic::Role, format!("It is a member of a {mode}, and no independent server."))
                .advice(
                    "Use a server without `cluster-enabled` for locks: a cluster's failover forgets what \
                 was just granted.",
                )
        }
        NodeFault::Server(error) => refuses(error, report),
        NodeFault::MissingRight(_) => Verdict::problem(Topic::Rights, said).advice("Grant the right."),
        NodeFault::UnknownIdentity => Verdict::problem(Topic::Identity, said).advice("Grant +info."),
        NodeFault::Quarantined { .. } => Verdict::problem(Topic::Locking, said).advice("Wait."),
        NodeFault::Duplicate { .. } => {
            Verdict::problem(Topic::Identity, said).advice("Name each server once.")
        }
    }
}

/// A server whose state keeps it from granting locks.
fn refuses(error: &ServerError, report: &NodeReport) -> Verdict {
    let topic = if report.server.version.is_none() { Topic::Reach } else { Topic::Locking };
    let verdict = Verdict::problem(topic, sentence(&error.to_string()));
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the server's own words are all there is to say of the others"
    )]
    match error.code() {
        ErrorCode::Loading => {
            verdict.advice("Wait until it has read its data; no lock can be had from it meanwhile.")
        }
        ErrorCode::Misconf => {
            verdict.advice("Look why it cannot write to its disk: full, or without the right to.")
        }
        ErrorCode::Oom => verdict.advice("Raise `maxmemory`, or keep what is not locks on another server."),
        ErrorCode::Noreplicas => verdict
            .advice("Set `min-replicas-to-write 0`: the other nodes are what makes locks survive here."),
        ErrorCode::Busy => verdict.advice("Find out whose script blocks the server; SCRIPT KILL ends it."),
        ErrorCode::MaxClients => {
            verdict.advice("Raise `maxclients`, or find out who holds so many connections.")
        }
        ErrorCode::Denied => {
            verdict.advice("Set a password on the server, or turn its `protected-mode` off.")
        }
        ErrorCode::Readonly | ErrorCode::Masterdown => verdict.advice("Name its primary instead."),
        _ => verdict.advice("Look at the server's log."),
    }
}

fn role(report: &NodeReport) -> Option<Verdict> {
    let is_fit = report.fault.is_none() && report.server.role == Some(Role::Master);
    is_fit.then(|| Verdict::ok(Topic::Role, "It is a server by itself, and no replica."))
}

fn version(report: &NodeReport) -> Option<Verdict> {
    let (extend, delete) = (report.server.extend?, report.server.delete?);
    let name = name(report);
    Some(match (extend, delete) {
        (ExtendForm::Script, _) => Verdict::note(
            Topic::Version,
            format!(
                "{name} has neither SET IFEQ nor a conditional delete: locks are extended and \
                 released by scripts. That is as safe, and costs the server some four times as much."
            ),
        )
        .advice("Nothing has to be done; Redis from 8.4 on and Valkey from 9.0 on have commands for it."),
        (ExtendForm::Ifeq, DeleteForm::Script) => Verdict::note(
            Topic::Version,
            format!(
                "{name} has no conditional delete: locks are released by a script. That is as safe, \
                 and costs the server some five times as much."
            ),
        )
        .advice("Nothing has to be done; Redis from 8.4 on and Valkey from 9.0 on have a command for it."),
        (ExtendForm::Ifeq, DeleteForm::Delex | DeleteForm::Delifeq) => Verdict::ok(
            Topic::Version,
            format!(
                "{name} has commands for all that plain locks need: {} and {}.",
                extend.name(),
                delete.name()
            ),
        ),
    })
}

fn name(report: &NodeReport) -> String {
    match (report.server.product, report.server.version) {
        (Some(product), Some(version)) => format!("{} {version}", capitalized(product.name())),
        (Some(_) | None, _) => "The server, which does not tell its version,".to_string(),
    }
}

/// Whether a lock could be taken, extended and deleted: errors that are no lack of rights.
fn locking(report: &NodeReport) -> Option<Verdict> {
    if report.fault.is_some() {
        return None;
    }
    let trial = &report.trial;
    let steps = [
        ("taken", &trial.set),
        ("extended", if can_extend(report).is_some() { &Tried::Worked } else { &trial.extend }),
        ("released", if can_delete(report).is_some() { &Tried::Worked } else { &trial.delete }),
    ];
    for (what, tried) in steps {
        match tried {
            Tried::Worked => {}
            // Said by the verdict on rights.
            Tried::Refused(error) if is_lack_of_right(error) => return None,
            Tried::Refused(error) => return Some(refuses(error, report)),
            Tried::Odd(text) => {
                return Some(
                    Verdict::problem(Topic::Locking, format!("A lock could not be {what}: {text}.")).advice(
                        "Look what stands between here and the server: no Redis or Valkey answers so.",
                    ),
                );
            }
            Tried::Not => return None,
        }
    }
    Some(Verdict::ok(Topic::Locking, "A lock was taken, extended and released on a key of its own."))
}

const fn is_lack_of_right(error: &ServerError) -> bool {
    matches!(error.code(), ErrorCode::Noperm | ErrorCode::ScriptAcl)
}

/// How a lock is extended here, if it can be at all.
fn can_extend(report: &NodeReport) -> Option<ExtendForm> {
    let native = report.server.extend.filter(|_| report.trial.extend.worked());
    native.or_else(|| report.trial.extend_by_script.worked().then_some(ExtendForm::Script))
}

/// How a lock is deleted here, if it can be at all.
fn can_delete(report: &NodeReport) -> Option<DeleteForm> {
    let native = report.server.delete.filter(|_| report.trial.delete.worked());
    let script = delete_rights(DeleteForm::Script);
    let by_script = || {
        let missing = report.rights.missing(script).is_empty();
        let tried = script.iter().all(|right| report.rights.get(*right).is_some());
        (missing && tried && report.trial.set.worked()).then_some(DeleteForm::Script)
    };
    native.or_else(by_script)
}

fn rights(report: &NodeReport) -> Vec<Verdict> {
    if report.fault.is_some() {
        return Vec::new();
    }
    let mut verdicts: Vec<Verdict> = necessary_rights(report).into_iter().collect();
    let lacks = |wanted: &[Right]| report.rights.missing(wanted);
    if !lacks(&[Right::Info]).is_empty() {
        verdicts.push(
            Verdict::warning(
                Topic::Rights,
                "The user may not run INFO: neither a restart nor one server under two names can be noticed.",
            )
            .advice("Grant +info."),
        );
    }
    if !verdicts.iter().any(|verdict| verdict.severity == super::Severity::Problem) {
        verdicts.extend(slower_rights(report));
        let (several, fences) = (lacks(&Right::SEVERAL_KEYS), lacks(&Right::FENCES));
        if !several.is_empty() || !fences.is_empty() {
            let mut missing = several.clone();
            missing.extend(fences.iter().filter(|right| !several.contains(right)));
            missing.sort_unstable();
            let what = match (several.is_empty(), fences.is_empty()) {
                (false, false) => "locks over several keys and fences",
                (false, true) => "locks over several keys",
                (true, _) => "fences",
            };
            verdicts.push(
                Verdict::note(
                    Topic::Rights,
                    format!(
                        "The user lacks rights for {what}: {}. Plain locks need none of them.",
                        rules(&missing)
                    ),
                )
                .advice("Grant them only where those are used."),
            );
        }
    }
    let told = [Right::Ping, Right::Pttl, Right::Getrange, Right::ConfigGet];
    let untold = lacks(&told);
    if !untold.is_empty() {
        verdicts.push(
            Verdict::note(
                Topic::Rights,
                format!(
                    "The user lacks {}: locks do without, but less can be told (who holds a lock and for \
                 how long, how the server is set up).",
                    rules(&untold)
                ),
            )
            .advice("Grant them if that is missed."),
        );
    }
    if verdicts.is_empty() {
        verdicts
            .push(Verdict::ok(Topic::Rights, "The user may run all that locks, fences and this check need."));
    }
    verdicts
}

/// Whether waiters are told by this node. Locks do without; waiting costs more then.
fn wake_ups(report: &NodeReport) -> Option<Verdict> {
    const MEANS: &str = "where fewer nodes than a quorum tell, waiters try again after a random delay";
    if report.fault.is_some() || report.rights.get(Right::ClientTracking).is_none() {
        return None;
    }
    if report.server.protocol.is_some_and(|protocol| protocol < 3) {
        let finding =
            format!("It speaks RESP2 only, and does not tell waiters that a lock got free: {MEANS}.");
        return Some(Verdict::note(Topic::WakeUps, finding));
    }
    let missing = report.rights.missing(&Right::WAKE_UPS);
    if missing.is_empty() {
        return Some(Verdict::ok(
            Topic::WakeUps,
            "It tells waiters that a lock got free: they need not poll.",
        ));
    }
    let finding = format!("It does not tell waiters that a lock got free: {MEANS}.");
    Some(Verdict::note(Topic::WakeUps, finding).advice(format!("Grant {}.", rules(&missing))))
}

/// What keeps plain locks from being taken, extended or released at all.
fn necessary_rights(report: &NodeReport) -> Option<Verdict> {
    let user = report.address.username().unwrap_or("default");
    if let Some(error) = report.rights.key_denied() {
        return Some(
            Verdict::problem(
                Topic::Rights,
                sentence(&format!("the user {user} may not touch the key that was tried: {error}")),
            )
            .advice(
                "Grant the pattern of the locks' keys, and of their fence counters (KEY:fence), \
                     for reading and writing: ~PREFIX*. Where locks have a prefix, say it with \
                     --key-prefix.",
            ),
        );
    }
    let mut wanted: Vec<(&str, Vec<Right>, String)> = Vec::new();
    if report.trial.set.error().is_some_and(is_lack_of_right) {
        wanted.push(("taken", alloc::vec![Right::Set], rules(&[Right::Set])));
    }
    if report.trial.set.worked() {
        let (extend, delete) = (report.server.extend?, report.server.delete?);
        if can_extend(report).is_none() {
            let missing = report.rights.missing(extend_rights(ExtendForm::Script));
            wanted.push(("extended", missing.clone(), grant(extend_rights(extend), &missing, report)));
        }
        if can_delete(report).is_none() {
            let missing = report.rights.missing(delete_rights(delete));
            let by_script = report.rights.missing(delete_rights(DeleteForm::Script));
            wanted.push(("released", missing, grant(delete_rights(delete), &by_script, report)));
        }
    }
    if wanted.is_empty() {
        return None;
    }
    let what = wanted.iter().map(|(what, ..)| *what).collect::<Vec<_>>().join(", nor ");
    let mut missing: Vec<Right> = wanted.iter().flat_map(|(_, rights, _)| rights).copied().collect();
    missing.sort_unstable();
    missing.dedup();
    let grants = wanted.into_iter().map(|(.., grant)| grant).collect::<Vec<_>>().join(", and ");
    Some(
        Verdict::problem(
            Topic::Rights,
            format!("Locks cannot be {what}: the user {user} lacks {}.", rules(&missing)),
        )
        .advice(format!("Grant {grants} (ACL SETUSER {user} …).")),
    )
}

/// The cheapest way, and where the server has a command for it, the script's way as well.
fn grant(native: &[Right], by_script: &[Right], report: &NodeReport) -> String {
    let native = report.rights.missing(native);
    if native.is_empty() || native == by_script {
        return rules(by_script);
    }
    if by_script.is_empty() {
        rules(&native)
    } else {
        format!("{} (or {})", rules(&native), rules(by_script))
    }
}

/// Commands that the version has and the user may not run, where the script takes their place; and the other way round.
fn slower_rights(report: &NodeReport) -> Option<Verdict> {
    let (extend, delete) = (report.server.extend?, report.server.delete?);
    let native = delete != DeleteForm::Script && !report.trial.delete.worked();
    if native && can_delete(report).is_some() {
        let missing = rules(delete_rights(delete));
        return Some(
            Verdict::note(
                Topic::Rights,
                format!(
                    "The user lacks {missing}: locks are released by a script instead, which costs the \
                 server some five times as much."
                ),
            )
            .advice(format!("Grant {missing}.")),
        );
    }
    let missing = report.rights.missing(extend_rights(ExtendForm::Script));
    (extend == ExtendForm::Ifeq && !missing.is_empty()).then(|| {
        Verdict::note(
            Topic::Rights,
            format!(
                "The user lacks {}: a server that is out of memory refuses SET, and then locks cannot be \
             extended by a script either.",
                rules(&missing)
            ),
        )
        .advice(format!("Grant {} if the server has a `maxmemory`.", rules(&missing)))
    })
}

fn eviction(report: &NodeReport) -> Option<Verdict> {
    let Some(policy) = report.settings.maxmemory_policy.as_deref() else {
        let is_open = report.fault.is_none();
        return is_open.then(|| {
            Verdict::note(
                Topic::Eviction,
                "It cannot be told whether the server removes keys to save memory.",
            )
            .advice("Grant +config|get or +info, or see to it that `maxmemory-policy` is noeviction.")
        });
    };
    let what = if policy.starts_with("allkeys-") {
        "any key, locks and fence counters among them"
    } else if policy.starts_with("volatile-") {
        "keys that have an expiry, and so locks"
    } else if policy == "noeviction" {
        return Some(Verdict::ok(Topic::Eviction, "It removes no keys to save memory (noeviction)."));
    } else {
        "keys by a rule that is not known here"
    };
    let advice = "Set `maxmemory-policy noeviction`: a full server then refuses new locks instead of \
         forgetting held ones.";
    Some(
        match report.settings.maxmemory {
            Some(0) => Verdict::warning(
                Topic::Eviction,
                format!(
                    "The maxmemory-policy is {policy}, which removes {what}; only because there is no \
             `maxmemory` nothing is removed."
                ),
            ),
            Some(_) | None => Verdict::problem(
                Topic::Eviction,
                format!(
                    "The maxmemory-policy is {policy}: at its `maxmemory` the server removes {what}, and a \
             held lock is free then."
                ),
            ),
        }
        .advice(advice),
    )
}

fn persistence(report: &NodeReport, expected: &Expectations) -> Option<Verdict> {
    let appendonly = match report.settings.appendonly {
        Some(appendonly) => appendonly,
        None if report.fault.is_none() => {
            return Some(
                Verdict::note(
                    Topic::Persistence,
                    "It cannot be told what the server remembers when it restarts.",
                )
                .advice(
                    "Grant +config|get or +info; otherwise take it for one that forgets, and use \
                         the restart guard.",
                ),
            );
        }
        None => return None,
    };
    let fsync = report.settings.appendfsync;
    if appendonly && fsync == Some(Fsync::Always) {
        return Some(Verdict::ok(
            Topic::Persistence,
            "It remembers every lock when it restarts (appendonly, appendfsync always); the node \
                 may be declared durable.",
        ));
    }
    let finding = match (appendonly, fsync) {
        (false, _) => "It forgets all locks when it crashes (appendonly no): restarted, it grants them a \
             second time."
            .to_string(),
        (true, Some(fsync)) => format!(
            "It forgets the locks of about the last second when its machine crashes (appendonly, \
             appendfsync {}): restarted, it grants them a second time.",
            fsync.name()
        ),
        (true, None) => {
            "It has an append-only file, but how often that is written to the disk cannot be told; \
             if not always, it forgets the last locks when its machine crashes."
                .to_string()
        }
    };
    Some(match expected.restart_guard {
        Some(guard) => Verdict::ok(
            Topic::Persistence,
            format!("{finding} The restart guard of {guard:?} keeps it away until those have run out."),
        ),
        None => Verdict::warning(Topic::Persistence, finding).advice(
            "Use the restart guard with the longest ttl of all locks (a restarted node then gives no \
             vote for so long), or set `appendonly yes` and `appendfsync always` and declare the \
             node durable. Without either, do not restart a node sooner than one ttl after it went \
             down.",
        ),
    })
}

fn restart_guard(report: &NodeReport, expected: &Expectations) -> Option<Verdict> {
    let uptime = report.server.uptime_secs?;
    let Ok(uptime) = u64::try_from(uptime) else {
        return Some(
            Verdict::warning(
                Topic::Clock,
                format!("Its clock was set back since it started: it has been up for {uptime} s by it."),
            )
            .advice(
                "Let a time service slew the clock; locks that were held at that moment lasted \
                     longer than they should.",
            ),
        );
    };
    let guard = expected.restart_guard?;
    let until = Duration::from_secs(
        guard.as_secs().saturating_add(u64::from(guard.subsec_nanos() > 0)).saturating_add(1),
    );
    let left = until.saturating_sub(Duration::from_secs(uptime));
    Some(if left.is_zero() {
        Verdict::ok(
            Topic::RestartGuard,
            format!("It has been up for {uptime} s, longer than the restart guard asks."),
        )
    } else {
        Verdict::warning(
            Topic::RestartGuard,
            format!(
                "It has been up for {uptime} s only: under a restart guard of {guard:?} it gives no vote \
             for another {left:?}."
            ),
        )
        .advice("Wait.")
    })
}

fn latency(report: &NodeReport, expected: &Expectations) -> Option<Verdict> {
    let (least, median) = report.round_trips()?;
    let limit = expected.node_timeout;
    let said = format!("An answer takes {} at the least, {} in the middle", millis(least), millis(median));
    Some(if median >= limit {
        Verdict::problem(
            Topic::Latency,
            format!("{said}: more than the node timeout of {limit:?}, so that its vote comes too late."),
        )
        .advice(
            "Use nodes nearer by, or a longer --ttl or --node-timeout; a part of every ttl is \
                 lost to the answers.",
        )
    } else if median >= limit / 10 {
        Verdict::note(Topic::Latency, format!("{said}: a good part of the node timeout of {limit:?}."))
            .advice("Nothing has to be done; locks with a short ttl need quicker nodes.")
    } else {
        Verdict::ok(Topic::Latency, format!("{said}."))
    })
}

/// The node's clock against the middle one.
pub(super) fn clock(reading: &ClockReading) -> Vec<Verdict> {
    let (least, drift) = (reading.least_offset_micros(), reading.least_drift_ppm());
    let direction = if reading.offset_micros < 0 { "behind" } else { "ahead of" };
    let span = |micros: i64| millis(Duration::from_micros(micros.unsigned_abs()));
    let said = format!(
        "Its clock is {} {direction} the middle one of all nodes, ±{}",
        span(reading.offset_micros),
        span(reading.error_micros)
    );
    let advice = "Run a time service (chrony, ntpd) on all nodes, and let it slew: a clock that is set \
         forward in one step ends the locks there early, and fence counters restart from it.";
    let mut verdicts = alloc::vec![if least >= BAD_OFFSET_MICROS {
        Verdict::warning(Topic::Clock, format!("{said}.")).advice(advice)
    } else if least >= NOTED_OFFSET_MICROS {
        Verdict::note(Topic::Clock, format!("{said}: more than a time service leaves.")).advice(advice)
    } else {
        Verdict::ok(Topic::Clock, format!("{said}."))
    }];
    if drift >= NOTED_DRIFT_PPM {
        let rate = reading.drift_ppm.unwrap_or_default();
        let way = if rate < 0 { "loses" } else { "gains" };
        let said = format!(
            "Its clock {way} {} millionths on the others, ±{}",
            rate.unsigned_abs(),
            reading.drift_error_ppm.unwrap_or_default()
        );
        verdicts.push(if drift >= ALLOWED_DRIFT_PPM {
            Verdict::problem(
                Topic::Clock,
                format!(
                    "{said}, or was set while it was looked at: that is more than the 1 % that is taken \
                 off every lock."
                ),
            )
            .advice(advice)
        } else {
            Verdict::warning(Topic::Clock, format!("{said}: more than a time service makes it."))
                .advice(advice)
        });
    }
    verdicts
}

/// With a capital letter at its beginning and a full stop at its end.
fn sentence(text: &str) -> String {
    let text = capitalized(text.trim_end_matches('.'));
    format!("{text}.")
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

pub(super) fn millis(span: Duration) -> String {
    format!("{:.2} ms", span.as_secs_f64() * 1_000.0)
}
