//! `redlock run`: from the command line to the held lock, and the exit code.

use core::time::Duration;
use std::os::unix::ffi::OsStrExt as _;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;

use redlock_blocking::{
    AcquireError, AcquireErrorKind, Address, BuildError, ConfigError, Guard, Instant, Redlock, RoundLoss,
    Tls, parse_list,
};
use redlock_core::Config;
use signal_hook::consts::signal::SIGTSTP;

use crate::args::RunArgs;
use crate::exit::{self, Exit};
use crate::hold::Hold;
use crate::{clock, out, signals, terminal, verbose};

/// Where the nodes are named if not on the command line.
const NODES: &str = "REDLOCK_NODES";
/// How long a quorum of connections may take at most.
const MOST_CONNECT: Duration = Duration::from_secs(5);
/// How long it may take at least, however short the wait: `--wait 0` is one try, and a try needs connections.
const LEAST_CONNECT: Duration = Duration::from_secs(1);
/// After which time somebody who looks on is told what is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the main thread of `run` waits for.
#[derive(Debug)]
pub(crate) enum Note {
    /// A signal came.
    Signal(i32),
    /// A quorum of nodes is connected; from now on there is something to call off.
    Connected(Redlock),
    /// The lock is held.
    Acquired(Guard),
    /// It will not be.
    Failed(Failure),
    /// The lock was not renewed in time, and ends then.
    Expiring(Instant),
    /// The lock is lost.
    Lost,
}

/// Why there is no lock.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

/// What was asked for, checked.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) nodes: Vec<Address>,
    pub(crate) tls: Option<Tls>,
    pub(crate) ttl: Duration,
    pub(crate) args: RunArgs,
}

impl Plan {
    /// The resource, as it is shown.
    pub(crate) fn resource(&self) -> String {
        format!("{:?}", self.args.resource.to_string_lossy())
    }

    fn new(args: RunArgs) -> Result<Self, String> {
        let nodes = if args.nodes.is_empty() { nodes_from_environment()? } else { nodes_from(&args.nodes)? };
        let tls = args.tls.for_nodes(&nodes)?;
        let most = |limit: Option<Duration>| limit.unwrap_or(Duration::MAX);
        let usual = || Config::DEFAULT_TTL.min(most(args.max_hold)).min(most(args.restart_guard));
        let ttl = args.ttl.unwrap_or_else(usual);
        if let Some(max_hold) = args.max_hold.filter(|max_hold| *max_hold < ttl) {
            return Err(format!(
                "--max-hold {max_hold:?} is below the ttl of {ttl:?}; raise it, or lower --ttl"
            ));
        }
        if args.resource.is_empty() {
            return Err("RESOURCE is empty; name what is to be locked".to_owned());
        }
        Ok(Self { nodes, tls, ttl, args })
    }

    fn connect(&self) -> Result<Redlock, BuildError> {
        let wait = self.args.wait.clamp(LEAST_CONNECT, MOST_CONNECT);
        let mut builder = Redlock::builder().nodes(&self.nodes).default_ttl(self.ttl).connect_timeout(wait);
        if let Some(tls) = &self.tls {
            builder = builder.tls(tls.clone());
        }
        if let Some(name) = &self.args.client_name {
            builder = builder.client_name(name.clone());
        }
        if let Some(prefix) = &self.args.key_prefix {
            builder = builder.key_prefix(prefix.as_bytes());
        }
        if let Some(max_ttl) = self.args.restart_guard {
            builder = builder.restart_guard(max_ttl);
        }
        if let Some(timeout) = self.args.node_timeout {
            builder = builder.node_timeout(timeout);
        }
        builder.connect()
    }
}

/// Runs the command under the lock.
pub(crate) fn run(args: RunArgs) -> ExitCode {
    let exit = match Plan::new(args) {
        Ok(plan) => attempt(&plan),
        Err(message) => {
            out::say(message);
            Exit(exit::USAGE)
        }
    };
    exit.into()
}

fn attempt(plan: &Plan) -> Exit {
    let (sender, notes) = mpsc::channel();
    let start = clock::now();
    let started = signals::listen(sender.clone(), Note::Signal).and_then(|()| {
        let (plan, sender) = (plan.clone(), sender.clone());
        thread::Builder::new().name("redlock-acquire".into()).spawn(move || acquire(&plan, start, &sender))
    });
    if let Err(error) = started {
        out::say(format_args!("cannot start: {error}"));
        return Exit(exit::UNAVAILABLE);
    }
    match wait_for_lock(plan, &notes, start) {
        Ok(guard) => Hold::new(plan, guard, start).run(&sender, &notes),
        Err(exit) => exit,
    }
}

/// Connects and acquires, on a thread of its own, so that signals are answered meanwhile.
fn acquire(plan: &Plan, start: Instant, notes: &Sender<Note>) {
    let redlock = match plan.connect() {
        Ok(redlock) => redlock,
        Err(error) => return drop(notes.send(Note::Failed(error.into()))),
    };
    drop(notes.send(Note::Connected(redlock.clone())));
    let wait = match plan.args.wait {
        Duration::MAX => Duration::MAX,
        wait => wait.saturating_sub(clock::now().saturating_duration_since(start)),
    };
    let max_hold = plan.args.max_hold.unwrap_or(Duration::MAX);
    let acquire =
        redlock.acquire(plan.args.resource.as_bytes()).ttl(plan.ttl).wait(wait).auto_renew(max_hold);
    let acquire = if plan.args.fenced { acquire.fenced() } else { acquire };
    drop(notes.send(match acquire.lock() {
        Ok(guard) => Note::Acquired(guard),
        Err(error) => Note::Failed(error.into()),
    }));
}

fn wait_for_lock(plan: &Plan, notes: &Receiver<Note>, start: Instant) -> Result<Guard, Exit> {
    let mut connected: Option<Redlock> = None;
    let mut has_told = !out::is_watched();
    loop {
        let elapsed = clock::now().saturating_duration_since(start);
        let patience = if has_told { Duration::from_secs(60) } else { PATIENCE.saturating_sub(elapsed) };
        match notes.recv_timeout(patience) {
            Ok(Note::Acquired(guard)) => return Ok(guard),
            Ok(Note::Failed(failure)) => {
                out::say(failure.message);
                return Err(Exit(failure.code));
            }
            Ok(Note::Connected(redlock)) => {
                if plan.args.verbose {
                    verbose::report(&redlock);
                }
                connected = Some(redlock);
            }
            Ok(Note::Signal(signal)) if signals::is_end(signal) => {
                // Whatever was won by now is given back; without connections nothing was asked for.
                if let Some(redlock) = connected {
                    redlock.close();
                }
                return Err(Exit(exit::by_signal(signal)));
            }
            Ok(Note::Signal(SIGTSTP)) => terminal::stop_self(),
            Ok(Note::Signal(_) | Note::Expiring(_) | Note::Lost) => {}
            Err(RecvTimeoutError::Timeout) if !has_told => {
                has_told = true;
                tell_what_is_waited_for(plan, connected.is_some());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Exit(exit::UNAVAILABLE)),
        }
    }
}

fn tell_what_is_waited_for(plan: &Plan, is_connected: bool) {
    if !is_connected {
        return out::say(format_args!("waiting for a quorum of the {} nodes to answer", plan.nodes.len()));
    }
    let resource = plan.resource();
    match plan.args.wait {
        Duration::MAX => out::say(format_args!("waiting for {resource}, for as long as it takes")),
        wait => out::say(format_args!("waiting for {resource}, up to {wait:?}")),
    }
}

pub(crate) fn nodes_from(urls: &[String]) -> Result<Vec<Address>, String> {
    urls.iter().map(|url| Address::parse(url).map_err(|error| format!("--node: {error}"))).collect()
}

pub(crate) fn nodes_from_environment() -> Result<Vec<Address>, String> {
    let list = std::env::var(NODES)
        .ok()
        .filter(|list| !list.trim().is_empty())
        .ok_or_else(|| format!("no nodes; name each with --node redis://host:port, or all in {NODES}"))?;
    parse_list(&list).map_err(|error| format!("{NODES}: {error}"))
}

/// With the option that was given, where the error has the name of what it sets.
pub(crate) fn text(error: &BuildError) -> String {
    if let BuildError::Config(ConfigError::DefaultTtl(why)) = error {
        return format!("--ttl: {why}");
    }
    error.to_string()
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        let is_usage = matches!(error, BuildError::Config(_) | BuildError::TlsUnsupported { .. });
        Self { code: if is_usage { exit::USAGE } else { exit::UNAVAILABLE }, message: text(&error) }
    }
}

impl From<AcquireError> for Failure {
    fn from(error: AcquireError) -> Self {
        // Where refusals and faults came together somebody holds it, at least where the nodes are well.
        let is_mixed = matches!(
            error.kind,
            AcquireErrorKind::Mixed | AcquireErrorKind::WaitOver { last: RoundLoss::Mixed }
        );
        let code = if matches!(error.kind, AcquireErrorKind::Invalid(_)) {
            exit::USAGE
        } else if is_mixed || error.kind.is_contended() {
            exit::BUSY
        } else {
            exit::UNAVAILABLE
        };
        Self { code, message: error.to_string() }
    }
}
