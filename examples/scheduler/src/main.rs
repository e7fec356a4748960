//! A cron of one's own: however many processes run it, each tick is run once.
//!
//! ```text
//! REDLOCK_NODES=redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3 scheduler runs.sqlite 60000
//! ```
//!
//! Start it on as many machines as you like, with a store that all of them share: one leads and runs the ticks. When it
//! resigns (SIGTERM, Ctrl-C) another takes over at once, when it dies another takes over after its ttl. What it does on each
//! tick is [`Store::claim`] and a line of output; put your job there.
//!
//! Leadership alone does not make a tick run once: a leader that is stopped for longer than its ttl believes, until it looks at
//! its clock again, in a term that is over. So each tick is claimed in the store first, with the term's epoch, and the store
//! refuses what comes from an older term, and a tick that was claimed. What is claimed by a process that dies before it has
//! done it is not done: at most once. Where a tick must not be left out, claim it in one transaction with what it does.
//!
//! Arguments: the store, the milliseconds from one tick to the next, the ttl in milliseconds. Without arguments three
//! candidates in this process show how it goes, on simulated nodes, for some seconds.

mod store;

use core::error::Error;
use core::time::Duration;
use redlock_core::sim::{Dialect, Server, TcpNode};
use redlock_tokio::{AcquireErrorKind, Fence, Redlock};
use std::io::{Write as _, stdout};
use std::{env, path::Path, path::PathBuf};
use store::{Claim, Store};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

type Failure = Box<dyn Error + Send + Sync>;

/// What one candidate is made of.
struct Settings {
    name: String,
    store: PathBuf,
    every: Duration,
    ttl: Duration,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = env::args().skip(1);
    let Some(store) = arguments.next() else { return show().await };
    let mut millis = |default: u64| -> Result<Duration, Failure> {
        Ok(Duration::from_millis(arguments.next().map_or(Ok(default), |text| text.parse())?))
    };
    let (every, ttl) = (millis(1_000)?, millis(10_000)?);
    let name = format!("process {}", std::process::id());
    let nodes = env::var("REDLOCK_NODES").unwrap_or_else(|_| "redis://localhost".into());
    let redlock = Redlock::builder().nodes(nodes.split(',')).client_name("scheduler").connect().await?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stop = async {
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
    };
    stand(&redlock, &Settings { name, store: store.into(), every, ttl }, stop).await?;
    redlock.close().await;
    Ok(())
}

// ---- what a scheduler does ----

/// Leads whenever it is elected, until `stop` is ready.
async fn stand(
    redlock: &Redlock,
    settings: &Settings,
    stop: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let name = &settings.name;
    let mut election = redlock.elect("example:scheduler").ttl(settings.ttl).fenced();
    let mut stop = core::pin::pin!(stop);
    say(&format!("{name} stands"));
    loop {
        let elected = tokio::select! {
            elected = election.campaign() => elected,
            () = &mut stop => break,
        };
        let term = match elected {
            Ok(term) => term,
            Err(error) if matches!(error.kind, AcquireErrorKind::Closed | AcquireErrorKind::Invalid(_)) => {
                return Err(error.into());
            }
            // Somebody has to mend that. The election pauses before it tries again.
            Err(error) => {
                say(&format!("{name} cannot stand: {error}"));
                continue;
            }
        };
        let epoch = term.fence().ok_or("asked for a fence and got none")?;
        say(&format!("{name} leads, epoch {epoch}"));
        tokio::select! {
            // Stopped at its next await when the term is lost.
            ended = term.until_lost(run(settings, epoch)) => match ended {
                Ok(failed) => failed?,
                Err(reason) => say(&format!("{name} leads no more: {reason}")),
            },
            () = &mut stop => {
                say(&format!("{name} resigns"));
                let released = term.release().await?;
                say(&format!("{name} resigned: {released}"));
                break;
            }
        }
    }
    Ok(())
}

/// Runs every tick from now on.
async fn run(settings: &Settings, epoch: Fence) -> Result<(), Failure> {
    let store = Store::open(&settings.store)?;
    loop {
        let tick = next_tick(settings.every).await;
        match store.claim(tick, epoch)? {
            Claim::Mine => say(&format!("{} ran tick {tick}, epoch {epoch}", settings.name)),
            Claim::Refused => say(&format!("{} was refused tick {tick}, epoch {epoch}", settings.name)),
        }
    }
}

/// Waits until the next tick begins; answers with its number, the same in all processes.
#[expect(
    clippy::disallowed_types,
    reason = "a schedule is kept by the wall clock; nothing about the lock is"
)]
async fn next_tick(every: Duration) -> u64 {
    let every = every.max(Duration::from_millis(1)).as_millis();
    let now = || std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis();
    let next = now() / every + 1;
    while now() < next * every {
        sleep(Duration::from_millis(u64::try_from(next * every - now()).unwrap_or(1))).await;
    }
    u64::try_from(next).unwrap_or(u64::MAX)
}

// ---- the show ----

/// Three candidates in one process, who come and go one after the other; whoever leads resigns when it goes.
async fn show() -> Result<(), Failure> {
    let nodes = (1..=3).map(|seed| TcpNode::start(Server::new(Dialect::Valkey9, seed)));
    let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
    let urls: Vec<String> = nodes.iter().map(|node| format!("redis://{}", node.addr())).collect();
    let folder = env::temp_dir().join(format!("scheduler-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("runs.sqlite");
    let candidate = async |name: &str, from: u64, until: u64| {
        sleep(Duration::from_millis(from)).await;
        // A client of its own, as another process has.
        let redlock = Redlock::connect(&urls).await?;
        let (every, ttl) = (Duration::from_millis(200), Duration::from_secs(1));
        let settings = Settings { name: name.into(), store: path.clone(), every, ttl };
        stand(&redlock, &settings, sleep(Duration::from_millis(until - from))).await?;
        redlock.close().await;
        Ok::<(), Failure>(())
    };
    let ended = tokio::try_join!(
        candidate("Ada", 0, 1_000),
        candidate("Bob", 300, 2_000),
        candidate("Cem", 600, 3_000)
    );
    let ran = count(&path);
    std::fs::remove_dir_all(&folder)?;
    ended?;
    say(&format!("{} ticks were run, each once", ran?));
    Ok(())
}

fn count(path: &Path) -> Result<usize, Failure> {
    Ok(Store::open(path)?.claimed()?.len())
}

fn say(line: &str) {
    // Whoever does not read any more is no reason to stop leading.
    drop(writeln!(stdout(), "{line}"));
}
