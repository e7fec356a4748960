//! How the adapters compare with a loop without any library (the floor) and with other clients, over five servers of its
//! own. Contestants take turns, each run in a process of its own; ratios within one table hold better than its figures.

mod floor;
mod locker;
mod measure;
mod partner;
mod peers;
mod report;
mod servers;
mod targets;
mod workloads;

use clap::{Parser, ValueEnum};
use core::sync::atomic::{AtomicBool, Ordering};
use floor::Floor;
use indicatif::{ProgressBar, ProgressStyle};
use locker::{Locker, Smol, Tasks, Threads, Tokio};
use measure::Figures;
use partner::Partner;
use report::Table;
use rustix::process::Signal;
use servers::Servers;
use std::error::Error;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;
use workloads::Plan;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Workload {
    /// One client, one lock after the other, each of another resource.
    W1,
    /// 200 tasks, each with its own resource.
    W2,
    /// 50 tasks and one resource, held for 1 ms each time.
    W3,
    /// As w1, with one node killed, one stopped, and both.
    W4,
    /// From one process' release to another's grant.
    W5,
    /// 1 000 locks held and renewed, ttl 3 s.
    W6,
    /// As w3, with a single waiter in another process.
    W7,
    /// 200 clients wait for a lock that each holds for 3 s.
    W8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Redis,
    Valkey,
}

/// Compares the adapters with a loop without any library and with other clients, over five servers of its own.
#[derive(Debug, Parser)]
struct Options {
    /// What to run; all of them where none is named.
    workloads: Vec<Workload>,
    /// Over which servers: `redis-server`, `valkey-server` from the search path.
    #[arg(long, value_delimiter = ',', default_value = "redis")]
    servers: Vec<Kind>,
    /// How often each contestant runs.
    #[arg(long, default_value_t = 5)]
    repeats: u32,
    /// How long a run may take.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// How many cycles a run of w1 and w4 has at most.
    #[arg(long, default_value_t = 5000)]
    cycles: u64,
    /// Only contestants whose name has this in it; the floors always run.
    #[arg(long)]
    only: Option<String>,
    /// Figures as JSON, in the place of tables.
    #[arg(long)]
    json: bool,
    /// Writes a chart of w1 and w2 to this file.
    #[arg(long)]
    svg: Option<PathBuf>,
}

/// Name, whether it is ours (and must leave nothing behind), and the workloads that it runs.
const CONTESTANTS: [(&str, bool, &str); 11] = [
    ("floor-q3", true, "w1 w2 w3 w4 w6"),
    ("floor-all5", true, "w1 w2 w3"),
    ("redlock-blocking", true, "w1 w2 w3 w4 w5 w6 w7"),
    ("redlock-tokio, current-thread", true, "w1 w2 w3 w4 w5 w6 w7 w8"),
    ("redlock-tokio, multi-thread", true, "w1 w2 w3 w4 w5 w6 w7"),
    ("redlock-async-std", true, "w1 w2 w3 w4 w5 w6 w7"),
    ("redlock-tokio, polling", true, "w8"),
    ("redis by hand, current-thread", false, "w1 w2 w3 w4 w5 w6"),
    ("rslock, current-thread", false, "w1 w2 w3 w4 w5 w6 w7 w8"),
    ("rslock, multi-thread", false, "w1 w2 w3 w4 w5 w6"),
    ("redis by hand, multi-thread", false, "w2"),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match words.split_first() {
        Some((first, rest)) if first == "serve" => Err(servers::become_server(rest).into()),
        Some((first, rest)) if first == "contestant" => contestant(rest),
        _ => compare(&Options::parse()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

// ---- one contestant, in its own process ----

fn contestant(words: &[String]) -> Result<(), Box<dyn Error>> {
    let [name, workload, native, seconds, cycles, ports @ ..] = words else {
        return Err("a contestant needs more words".into());
    };
    let plan = Plan { seconds: seconds.parse()?, cycles: cycles.parse()? };
    let ports: Vec<u16> = ports.iter().map(|port| port.parse()).collect::<Result<_, _>>()?;
    let urls: Vec<String> = ports.iter().map(|port| format!("redis://127.0.0.1:{port}")).collect();
    let current = || tokio::runtime::Builder::new_current_thread().enable_all().build();
    let multi = || tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let workload = workload.as_str();
    let part = Part { name, workload, plan, ports: &ports };
    match name.as_str() {
        "floor-q3" | "floor-all5" => {
            let need = if name == "floor-q3" { 3 } else { 5 };
            let mut floor = Floor::connect(&ports, need, native == "native")?;
            ready()?;
            let figures = match workload {
                "w2" => floor.many(plan)?,
                "w3" => floor.contended(plan)?,
                "w6" => floor.renewed(plan)?,
                _ => floor.alone(plan)?,
            };
            let is_over = done(&figures)?;
            while !is_over.load(Ordering::Relaxed) {
                floor.turn(Some(Duration::from_millis(20)))?;
            }
        }
        "redlock-blocking" => smol::block_on(run::<redlock_blocking::Redlock>(Threads, part, urls))?,
        "redlock-async-std" => smol::block_on(run::<redlock_async_std::Redlock>(Smol, part, urls))?,
        "redlock-tokio, current-thread" => {
            current()?.block_on(run::<redlock_tokio::Redlock>(Tokio, part, urls))?
        }
        "redlock-tokio, multi-thread" => {
            multi()?.block_on(run::<redlock_tokio::Redlock>(Tokio, part, urls))?
        }
        "redlock-tokio, polling" => current()?.block_on(run::<locker::Polling>(Tokio, part, urls))?,
        "redis by hand, current-thread" => current()?.block_on(run::<peers::ByHand>(Tokio, part, urls))?,
        "redis by hand, multi-thread" => multi()?.block_on(run::<peers::ByHand>(Tokio, part, urls))?,
        "rslock, current-thread" => current()?.block_on(run::<peers::Rslock>(Tokio, part, urls))?,
        "rslock, multi-thread" => multi()?.block_on(run::<peers::Rslock>(Tokio, part, urls))?,
        _ => return Err(format!("no contestant {name}").into()),
    }
    Ok(())
}

/// Says that it is connected, and waits until it may go on: faults come after that.
fn ready() -> std::io::Result<()> {
    println!("ready");
    std::io::stdout().flush()?;
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

/// Hands the figures over. The client lives on until the nodes are well again and were looked at: what it still owes them it
/// can only do so.
fn done(figures: &Figures) -> Result<Arc<AtomicBool>, Box<dyn Error>> {
    println!("{}", serde_json::to_string(figures)?);
    std::io::stdout().flush()?;
    let is_over = Arc::new(AtomicBool::new(false));
    let told = is_over.clone();
    std::thread::spawn(move || {
        let _ended = std::io::stdin().read_line(&mut String::new());
        told.store(true, Ordering::Relaxed);
    });
    Ok(is_over)
}

/// What a process is to do.
#[derive(Clone, Copy)]
struct Part<'a> {
    name: &'a str,
    workload: &'a str,
    plan: Plan,
    ports: &'a [u16],
}

/// Tells the first process what was done, and waits to be ended.
fn told(holds: &workloads::Holds) -> Result<(), Box<dyn Error>> {
    println!("{}", serde_json::to_string(holds)?);
    std::io::stdout().flush()?;
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

async fn run<L: Locker>(tasks: impl Tasks, part: Part<'_>, urls: Vec<String>) -> Result<(), Box<dyn Error>> {
    let Part { name, workload, plan, ports } = part;
    let locker = L::connect(&urls).await?;
    // Those that connect when they first need to do so now; and all are warm before a fault comes.
    let ask = locker::Ask { ttl: Duration::from_secs(10), wait: Duration::from_secs(5), renew: false };
    for warm in 0..200 {
        let resource = format!("warm:{}:{warm}", std::process::id());
        locker.release(locker.acquire(&resource, ask).await?).await?;
    }
    let mut partner = match workload {
        "w5" => Some(Partner::start(name, "w5-other", plan, ports)?),
        "w7" => Some(Partner::start(name, "w7-other", plan, ports)?),
        _ => None,
    };
    let mut crowd = Vec::new();
    if workload == "w8" {
        for _ in 0..200 {
            let client = L::connect(&urls).await?;
            let resource = format!("warm:{}", crowd.len());
            client.release(client.acquire(&resource, ask).await?).await?;
            crowd.push(client);
        }
    }
    ready()?;
    if let Some(partner) = &mut partner {
        partner.go()?;
    }
    let figures = match (workload, partner) {
        ("w2", _) => workloads::many(locker.clone(), tasks, plan).await,
        ("w3", _) => workloads::contended(locker.clone(), tasks, plan).await,
        ("w5", Some(partner)) => workloads::handed_over(locker.clone(), tasks, plan, partner).await?,
        ("w6", _) => workloads::renewed(locker.clone(), tasks, plan).await,
        ("w7", Some(partner)) => workloads::beside_many(locker.clone(), tasks, plan, partner).await?,
        ("w8", _) => workloads::crowd(crowd, tasks, plan).await,
        ("w5-other", _) => return told(&workloads::taken_over(locker, tasks, plan).await?),
        ("w7-other", _) => return told(&workloads::single(locker, tasks, plan).await?),
        // As what is asked for in a program is: by a task of the runtime.
        _ => tasks.spawn(workloads::alone(locker.clone(), plan)).await,
    };
    let is_over = done(&figures)?;
    while !is_over.load(Ordering::Relaxed) {
        tasks.sleep(Duration::from_millis(20)).await;
    }
    drop(locker);
    Ok(())
}

// ---- all of them ----

/// What is done to the nodes while a contestant runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fault {
    killed: bool,
    stopped: bool,
}

fn compare(options: &Options) -> Result<(), Box<dyn Error>> {
    let workloads =
        if options.workloads.is_empty() { Workload::value_variants() } else { options.workloads.as_slice() };
    let healthy = Fault { killed: false, stopped: false };
    let mut jobs = Vec::new();
    for kind in &options.servers {
        for workload in workloads {
            let faults = match workload {
                Workload::W4 => vec![
                    ("w4, healthy", healthy),
                    ("w4, one killed", Fault { killed: true, ..healthy }),
                    ("w4, one stopped", Fault { stopped: true, ..healthy }),
                    ("w4, one killed, one stopped", Fault { killed: true, stopped: true }),
                ],
                Workload::W1 => vec![("w1", healthy)],
                Workload::W2 => vec![("w2", healthy)],
                Workload::W3 => vec![("w3", healthy)],
                Workload::W5 => vec![("w5", healthy)],
                Workload::W6 => vec![("w6", healthy)],
                Workload::W7 => vec![("w7", healthy)],
                Workload::W8 => vec![("w8", healthy)],
            };
            jobs.extend(faults.into_iter().map(|(title, fault)| (*kind, title, fault)));
        }
    }
    let chosen = |name: &str| {
        name.starts_with("floor") || options.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    };
    let runs = |title: &str| {
        CONTESTANTS.iter().filter(|(name, _, of)| of.contains(&title[..2]) && chosen(name)).count()
    };
    let total: usize = jobs.iter().map(|(_, title, _)| runs(title)).sum::<usize>() * options.repeats as usize;
    // On a terminal only; else nothing is shown.
    let bar = ProgressBar::new(total as u64);
    bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}")?);
    let mut tables = Vec::new();
    let mut faults_found = Vec::new();
    for (kind, title, fault) in jobs {
        let program = match kind {
            Kind::Redis => "redis-server",
            Kind::Valkey => "valkey-server",
        };
        let mut servers = Servers::start(program)?;
        let mut table = Table::new(title, program);
        for _ in 0..options.repeats {
            for (name, ours, of) in CONTESTANTS {
                if !of.contains(&title[..2]) || !chosen(name) {
                    continue;
                }
                bar.set_message(format!("{title}, {program}: {name}"));
                match one_run(&mut servers, options, kind, title, name, fault) {
                    Ok((figures, left)) => {
                        let overlaps = figures.get("overlaps").unwrap_or(0.0);
                        if ours && (left > 0 || overlaps > 0.0) {
                            faults_found.push(format!(
                                "{title}, {program}: {name} left {left} keys, {overlaps} overlaps"
                            ));
                        }
                        table.add(name, figures, left);
                    }
                    Err(error) if ours => return Err(format!("{title}, {program}: {name}: {error}").into()),
                    Err(error) => eprintln!("{title}, {program}: {name} gave no figures: {error}"),
                }
                bar.inc(1);
            }
        }
        if !options.json {
            bar.suspend(|| println!("{}", table.markdown()));
        }
        tables.push(table);
    }
    bar.finish_and_clear();
    if !options.json {
        println!("{}", targets::markdown(&tables));
    }
    if options.json {
        println!("{}", report::json(&tables)?);
    }
    if let Some(path) = &options.svg {
        std::fs::write(path, report::chart(&tables))?;
    }
    if faults_found.is_empty() { Ok(()) } else { Err(faults_found.join("\n").into()) }
}

/// One run of one contestant: its figures, and how many keys it left.
fn one_run(
    servers: &mut Servers,
    options: &Options,
    kind: Kind,
    title: &str,
    name: &str,
    fault: Fault,
) -> Result<(Figures, u64), Box<dyn Error>> {
    servers.all("FLUSHALL")?;
    let native = if kind == Kind::Valkey { "native" } else { "scripts" };
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["contestant", name, &title[..2], native]);
    command.args([options.seconds.to_string(), options.cycles.to_string()]);
    command.args(servers.ports().iter().map(u16::to_string));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let connected = lines.next().transpose()?.is_some_and(|line| line == "ready");
    if !connected {
        let _ended = child.wait();
        return Err("did not connect".into());
    }
    servers.all("CONFIG RESETSTAT")?;
    if fault.killed {
        servers.0[4].kill();
    }
    if fault.stopped {
        servers.0[3].signal(Signal::STOP);
    }
    // Time to see that a connection has broken, as in life.
    std::thread::sleep(Duration::from_millis(100));
    let mut stdin = child.stdin.take().ok_or("no input")?;
    stdin.write_all(b"go\n")?;
    let mut first = 0.0;
    if title == "w8" {
        // By then they all wait: what it costs to come is told apart.
        std::thread::sleep(Duration::from_millis(2_500));
        first = servers.commands()?;
        servers.all("CONFIG RESETSTAT")?;
    }
    let said = lines.next().transpose();
    if fault.stopped {
        servers.0[3].signal(Signal::CONT);
    }
    if fault.killed {
        servers.0[4].revive()?;
    }
    let left = servers.keys_left(Duration::from_secs(2))?;
    drop(stdin);
    let ended = child.wait()?;
    let said = said?.ok_or_else(|| format!("ended without a word: {ended}"))?;
    let mut figures: Figures = serde_json::from_str(&said)?;
    match &title[..2] {
        "w8" => {
            // The first was granted before.
            let grants = (figures.get("grants").unwrap_or(0.0) - 1.0).max(1.0);
            figures.put("commands/grant", servers.commands()? / grants);
            figures.put("commands to come", first);
        }
        "w3" => {
            let grants = figures.get("grants").unwrap_or(0.0).max(1.0);
            figures.put("commands/grant", servers.commands()? / grants);
        }
        "w6" => {
            // Each node got a SET and a deletion of each of 1 000 locks, and the renewals.
            let counted = servers.commands()? / 5.0 - 2000.0;
            let renewals = figures.get("renewals").unwrap_or(counted);
            if figures.get("renewals").is_none() {
                figures.put("renewals", renewals);
            }
            let cpu = figures.get("client CPU ms").unwrap_or(f64::NAN);
            figures.put("client CPU µs/renewal", 1000.0 * cpu / renewals.max(1.0));
        }
        _ => {}
    }
    Ok((figures, left))
}
