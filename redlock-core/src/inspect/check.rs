//! The interview that tells whether a node is fit for locks.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::clock::Sample;
use super::key::fence_key;
use super::probe::{Ask, Next, TrialStep};
use super::report::{NodeReport, Tried};
use super::rights::{Access, Right};
use crate::time::Instant;
use crate::wire::answer::{Answer, Asked};
use crate::wire::command;
use crate::wire::handshake::{DeleteForm, ExtendForm, Info, identity};
use crate::wire::reply::Reply;

/// How long the lock of the trial lasts at most.
const TTL: Duration = Duration::from_secs(5);
/// How many round trips are looked at; the first ones of a connection are slower.
const SAMPLES: u32 = 12;
/// The value of the trial lock: formed like a token, so that whoever meets it takes it for one.
const VALUE: &[u8] = b"0000000000000000000000000000000000000000:redlock-check";

/// Where the interview is.
#[derive(Debug)]
enum Stage {
    Facts,
    Set,
    Rights,
    Sampling { begun: Instant, taken: u32 },
}

/// The interview.
///
/// Rights are tried rather than asked for: `ACL DRYRUN` and `ACL GETUSER` are rights of administrators, and what servers
/// answer to the command itself is what the engine will be answered. Nothing is left behind: what is tried on a key is
/// tried on one that was just set to run out, or on a key that is not there and does not come to be by it.
#[derive(Debug)]
pub(super) struct Check {
    keys: [Bytes; 1],
    sampling: Duration,
    stage: Stage,
}

impl Check {
    pub(super) const fn new(key: Bytes, sampling: Duration) -> Self {
        Self { keys: [key], sampling, stage: Stage::Facts }
    }

    pub(super) fn next(&mut self, report: &NodeReport, patience: Duration, now: Instant) -> Next {
        match &mut self.stage {
            Stage::Facts => {
                // Only a node that passed the handshake is written to.
                self.stage = if report.fault.is_none() {
                    Stage::Set
                } else {
                    Stage::Sampling { begun: now, taken: 0 }
                };
                Next::Ask(facts())
            }
            Stage::Set => {
                self.stage = Stage::Rights;
                Next::Ask(vec![(Ask::Try(TrialStep::Set), command::set(&self.keys, VALUE, TTL))])
            }
            Stage::Rights => {
                self.stage = Stage::Sampling { begun: now, taken: 0 };
                // Without the key, `INCR` would make one that stays.
                if report.trial.set.worked() {
                    Next::Ask(self.rights(report))
                } else {
                    Next::Ask(self.reads())
                }
            }
            Stage::Sampling { begun, taken } => {
                // A node that is slow every time must not hold up the whole check.
                let end = begun.saturating_add(self.sampling).saturating_add(patience);
                if *taken >= SAMPLES || now > end {
                    return Next::Done;
                }
                let due = begun.saturating_add(self.sampling / (SAMPLES - 1) * *taken);
                if due > now {
                    return Next::WaitUntil(due);
                }
                *taken += 1;
                let may_ask = matches!(report.rights.get(Right::Time), None | Some(Access::Granted));
                let ask = if may_ask { command::encode(&[b"TIME"]) } else { command::ping() };
                Next::Ask(vec![(Ask::Time, ask)])
            }
        }
    }

    /// Every right, on the key that is set; at the end the key is deleted, by the form of the server's version.
    fn rights(&self, report: &NodeReport) -> Vec<(Ask, Bytes)> {
        let [key] = &self.keys;
        let fence = fence_key(key);
        let (delete, extend) = forms(report);
        let mut asks = vec![
            // The value is no number: an error, and nothing changes.
            (Ask::Right(Right::Incr), command::encode(&[b"INCR", key])),
            (Ask::Try(TrialStep::Extend), command::extend(extend, &self.keys, VALUE, TTL)),
            (
                Ask::Try(TrialStep::ExtendByScript),
                command::extend(ExtendForm::Script, &self.keys, VALUE, TTL),
            ),
            (Ask::Right(Right::Get), command::encode(&[b"GET", key])),
            (Ask::Right(Right::Pexpire), command::encode(&[b"PEXPIRE", key, b"5000"])),
        ];
        asks.extend(self.reads());
        asks.extend([
            // On a key that is not there.
            (Ask::Right(Right::Persist), command::encode(&[b"PERSIST", &fence])),
            (Ask::Try(TrialStep::Delete), command::release(delete, &self.keys, VALUE)),
            (Ask::Right(Right::Del), command::encode(&[b"DEL", key])),
        ]);
        if delete != DeleteForm::Script {
            asks.push((Ask::Tidy, command::release(DeleteForm::Script, &self.keys, VALUE)));
        }
        asks
    }

    /// What may be tried without the key.
    fn reads(&self) -> Vec<(Ask, Bytes)> {
        let [key] = &self.keys;
        vec![
            (Ask::Right(Right::Exists), command::encode(&[b"EXISTS", key])),
            (Ask::Right(Right::Pttl), command::pttl(key)),
            (Ask::Right(Right::Getrange), command::get_range(key, 0, 0)),
            // What comes right behind `CACHING` reads no key: nothing gets registered.
            (Ask::Right(Right::ClientTracking), command::tracking()),
            (Ask::Right(Right::ClientCaching), command::caching()),
            (Ask::Tidy, command::encode(&[b"CLIENT", b"TRACKING", b"OFF"])),
        ]
    }

    pub(super) fn on_reply(
        ask: Ask,
        reply: Reply,
        (sent, received): (Instant, Instant),
        report: &mut NodeReport,
    ) {
        let error = if let Reply::Error(error) = &reply { Some(error) } else { None };
        match ask {
            Ask::Info => {
                report.rights.note(Right::Info, error);
                if let Reply::Bulk(text) = &reply {
                    report.settings.read_info(text);
                }
                // A server before version 7 does not take several sections, as the handshake asks for.
                if let Some(info) = Info::parse(&reply) {
                    if let Some((product, version)) = identity(None, Some(&info)) {
                        report.server.product.get_or_insert(product);
                        report.server.version.get_or_insert(version);
                    }
                    report.server.run_id = report.server.run_id.take().or(info.run_id);
                    report.server.uptime_secs = report.server.uptime_secs.or(info.uptime_secs);
                    report.server.role = report.server.role.or(info.role);
                    report.server.mode = report.server.mode.or(info.mode);
                }
            }
            Ask::Config => {
                report.rights.note(Right::ConfigGet, error);
                report.settings.read_config(&reply);
            }
            Ask::Right(right) => report.rights.note(right, error),
            Ask::Try(step) => try_step(step, reply, report),
            Ask::Time => {
                report.rights.note(Right::Time, error);
                report.samples.push(Sample { sent, received, server_micros: server_micros(&reply) });
            }
            Ask::Tidy | Ask::Handshake(_) | Ask::Value | Ask::Pttl | Ask::Fence | Ask::Remove => {}
        }
    }
}

fn facts() -> Vec<(Ask, Bytes)> {
    let mut asks = vec![(Ask::Info, command::encode(&[b"INFO"]))];
    // One at a time: servers before version 7 do not take several.
    for name in [&b"appendonly"[..], b"appendfsync", b"maxmemory", b"maxmemory-policy"] {
        asks.push((Ask::Config, command::encode(&[b"CONFIG", b"GET", name])));
    }
    asks
}

fn forms(report: &NodeReport) -> (DeleteForm, ExtendForm) {
    (report.server.delete.unwrap_or(DeleteForm::Script), report.server.extend.unwrap_or(ExtendForm::Script))
}

fn try_step(step: TrialStep, reply: Reply, report: &mut NodeReport) {
    let (delete, extend) = forms(report);
    let error = if let Reply::Error(error) = &reply { Some(error.clone()) } else { None };
    let asked = match step {
        TrialStep::Set => Asked::Set { keys: 1 },
        TrialStep::Extend => Asked::Extend { form: extend, keys: 1 },
        TrialStep::ExtendByScript => Asked::Extend { form: ExtendForm::Script, keys: 1 },
        TrialStep::Delete => Asked::Release { form: delete, keys: 1 },
    };
    let right = match step {
        TrialStep::Set => Some(Right::Set),
        TrialStep::Extend => (extend == ExtendForm::Script).then_some(Right::Eval),
        TrialStep::ExtendByScript => Some(Right::Eval),
        TrialStep::Delete => match delete {
            DeleteForm::Delex => Some(Right::Delex),
            DeleteForm::Delifeq => Some(Right::Delifeq),
            DeleteForm::Script => Some(Right::Eval),
        },
    };
    if let Some(right) = right {
        report.rights.note(right, error.as_ref());
    }
    let tried = match asked.interpret(reply) {
        Answer::Yes => Tried::Worked,
        Answer::No => Tried::Odd(refusal(step)),
        Answer::Error(error) => Tried::Refused(error),
        Answer::Unexpected(text) => Tried::Odd(text),
        Answer::Counters(..) => Tried::Odd("it answered with fence counters".into()),
    };
    match step {
        TrialStep::Set => report.trial.set = tried,
        TrialStep::Extend => report.trial.extend = tried,
        TrialStep::ExtendByScript => report.trial.extend_by_script = tried,
        TrialStep::Delete => report.trial.delete = tried,
    }
}

fn refusal(step: TrialStep) -> String {
    match step {
        TrialStep::Set => "the key made for the trial was taken".into(),
        TrialStep::Extend | TrialStep::ExtendByScript | TrialStep::Delete => {
            format!("the key made for the trial was gone within {TTL:?}")
        }
    }
}

/// What `TIME` says, as one number.
fn server_micros(reply: &Reply) -> Option<i64> {
    let (secs, micros) = reply.as_time()?;
    secs.checked_mul(1_000_000)?.checked_add(micros)
}
