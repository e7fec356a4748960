//! The whole run: quiet phases, and chaos between them.

use crate::chaos::{self, World};
use crate::check::{self, Report};
use crate::options::{Options, Plant};
use crate::programs::{self, Program};
use crate::proxy::Proxy;
use crate::record::{Flavour, Phase, Recorder, What};
use crate::server::Server;
use crate::tail::Tail;
use crate::workers::{Map, School};
use crate::{clock, story};
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use redlock_blocking::Instant;
use redlock_proof::simulate::Dice;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, process, thread};

/// How long servers and workers may take to be there again, and for each adapter to have the lock once.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long workers may take to end.
const FAREWELL: Duration = Duration::from_secs(30);
/// After so much no lock is left, those that arrive late included.
const LONGEST_LOCK: Duration = Duration::from_secs(15);
/// A run of so much, in which something was never done or never happened, proves nothing about it.
const LONG: Duration = Duration::from_secs(60);
/// Each cycle of chaos and quiet takes about so long.
const CYCLE: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_millis(3);

/// A folder that is removed with its contents.
#[derive(Debug)]
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

/// Runs it; the exit code says whether everything went right.
///
/// # Errors
///
/// Nothing can be said, because the system or a server does not play along.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let programs = programs::find(options.servers)?;
    let seed = options.seed.unwrap_or_else(|| clock::now().as_nanos() ^ u64::from(process::id()));
    let versions: Vec<&str> = programs.iter().map(|program| program.version.as_str()).collect();
    say(&format!(
        "{} nodes of {}, {} workers, {:?}, --seed {seed}",
        options.nodes,
        versions.join(" and "),
        options.workers,
        options.total
    ));
    let folder = folder(options).map_err(|error| format!("no folder for the servers: {error}"))?;
    let record = env::temp_dir().join(format!("redlock-torture-{}.record", process::id()));
    let torture = Torture::start(options, &programs, &folder.0, &record, seed);
    let (report, tail, world) = torture
        .and_then(|mut torture| {
            torture.go_through()?;
            torture.judge()
        })
        .map_err(|error| format!("{error}; the record so far is {}", record.display()))?;
    say(&story::tell(&report, &tail.records, &world.done));
    if report.is_clean() && !options.keeps {
        let _gone = fs::remove_file(&record);
    } else {
        say(&format!("the record is {}; the seed was {seed}\n", record.display()));
    }
    let (overlaps, regressions) = (report.overlaps.len(), report.fence_regressions.len());
    say(&format!(
        "grants={} fenced={} faults={} overlaps={overlaps} fence_regressions={regressions}",
        report.grants,
        report.fenced,
        report.faults.len(),
    ));
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A folder of our own: where it was asked for, else in memory, since a process that is killed loses nothing there.
fn folder(options: &Options) -> io::Result<Folder> {
    let memory = Path::new("/dev/shm");
    let parent = match &options.folder {
        Some(folder) => folder.clone(),
        None if memory.is_dir() => memory.to_owned(),
        None => env::temp_dir(),
    };
    let folder = parent.join(format!("redlock-torture-{}", process::id()));
    fs::create_dir_all(&folder)?;
    Ok(Folder(folder))
}

struct Torture<'o> {
    options: &'o Options,
    world: World,
    tail: Tail,
    is_called_off: Arc<AtomicBool>,
    start: Instant,
    shown: Instant,
    phase: Phase,
}

impl<'o> Torture<'o> {
    fn start(
        options: &'o Options,
        programs: &[Program],
        folder: &Path,
        record: &Path,
        seed: u64,
    ) -> io::Result<Self> {
        let mut dice = Dice::seeded(seed);
        let recorder = Recorder::open(record)?;
        let tail = Tail::open(record)?;
        let is_called_off = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&is_called_off))?;
        }
        let remembers = options.plant != Some(Plant::Forgetting);
        let mut servers = Vec::new();
        for (node, program) in programs.iter().cycle().take(options.nodes).enumerate() {
            let folder = folder.join(format!("node-{node}"));
            servers.push(Server::start(program.clone(), folder, remembers, &mut dice)?);
        }
        let proxies: Vec<Proxy> = servers
            .iter()
            .map(|server| Proxy::start(server.addr(), dice.seed()))
            .collect::<io::Result<_>>()?;
        let map = Map {
            direct: servers.iter().map(Server::addr).collect(),
            proxied: proxies.iter().map(Proxy::addr).collect(),
        };
        let school = School::new(map, record.to_owned(), options.plant);
        let world = World::new(servers, proxies, school, recorder, dice);
        let start = clock::now();
        Ok(Self { options, world, tail, is_called_off, start, shown: start, phase: Phase::Mending })
    }

    /// All phases.
    fn go_through(&mut self) -> io::Result<()> {
        self.mend()?;
        for place in 0..self.options.workers {
            let worker = self.world.school.start(place, &mut self.world.dice)?;
            self.world.workers.push(Some(worker));
        }
        let total = self.options.total;
        let quiet = (total / 10).clamp(Duration::from_secs(1), Duration::from_secs(3));
        let cycles = u32::try_from(total.as_secs().div_ceil(CYCLE.as_secs())).unwrap_or(u32::MAX);
        let chaos = total.saturating_sub(quiet.saturating_mul(cycles + 1)) / cycles;
        self.quiet(quiet)?;
        for _ in 0..cycles {
            if self.is_called_off() {
                break;
            }
            self.chaos(chaos)?;
            self.mend()?;
            self.quiet(quiet)?;
        }
        self.world.dismiss(FAREWELL)?;
        self.world.look_for_locks(LONGEST_LOCK);
        self.tail.read()
    }

    fn is_called_off(&self) -> bool {
        self.is_called_off.load(Ordering::SeqCst)
    }

    fn begin(&mut self, phase: Phase) {
        self.phase = phase;
        self.world.recorder.write(clock::now(), What::Phase(phase));
    }

    /// A moment of any phase.
    fn tick(&mut self) -> io::Result<()> {
        thread::sleep(TICK);
        self.world.undo(clock::now())?;
        self.world.look_after()?;
        self.tail.read()?;
        self.show();
        Ok(())
    }

    /// Nothing is done to anybody; at the end of it each adapter had the lock.
    fn quiet(&mut self, span: Duration) -> io::Result<()> {
        self.begin(Phase::Quiet);
        let first = self.tail.records.len();
        let start = clock::now();
        loop {
            self.tick()?;
            let spent = clock::now().saturating_duration_since(start);
            let missing = self.waiting(first);
            if (spent >= span && missing.is_empty()) || self.is_called_off() {
                return Ok(());
            }
            if spent >= span.saturating_add(PATIENCE) {
                let names: Vec<&str> = missing.into_iter().map(Flavour::name).collect();
                let text = format!("no grant within {spent:?} of quiet by {}", names.join(", "));
                self.world.recorder.write(clock::now(), What::Broken { process: 0, text });
                return Ok(());
            }
        }
    }

    /// Who had no grant since.
    fn waiting(&self, first: usize) -> BTreeSet<Flavour> {
        let mut waiting = BTreeSet::from(Flavour::ALL);
        for record in self.tail.records.iter().skip(first) {
            if let What::Enter { flavour, .. } = &record.what {
                waiting.remove(flavour);
            }
        }
        waiting
    }

    fn chaos(&mut self, span: Duration) -> io::Result<()> {
        self.begin(Phase::Chaos);
        let until = clock::now().saturating_add(span);
        let mut next = clock::now();
        while clock::now() < until && !self.is_called_off() {
            self.tick()?;
            if clock::now() >= next {
                self.world.strike(self.tail.holder());
                next = clock::now().saturating_add(Duration::from_millis(self.world.dice.between(5, 90)));
            }
        }
        Ok(())
    }

    fn mend(&mut self) -> io::Result<()> {
        self.begin(Phase::Mending);
        self.world.mend()?;
        let until = clock::now().saturating_add(PATIENCE);
        while !self.world.is_mended() {
            self.tick()?;
            if clock::now() >= until {
                return Err(io::Error::other("servers or workers are not back in time"));
            }
        }
        Ok(())
    }

    /// What came of it. What was never done in a long run is as bad as what went wrong.
    fn judge(self) -> io::Result<(Report, Tail, World)> {
        let mut report = check::check(&self.tail.records);
        let now = clock::now();
        for line in &self.tail.unreadable {
            report.faults.push((now, format!("unreadable: {line}")));
        }
        if self.tail.is_cut() {
            report.faults.push((now, "the last line of the record is cut".into()));
        }
        if report.grants == 0 {
            report.faults.push((now, "nobody ever had the lock".into()));
        }
        if self.options.total >= LONG && !self.is_called_off() {
            let never = chaos::ALL.into_iter().filter(|name| !self.world.done.contains_key(name));
            let ends = [("expired", report.ends.expired), ("killed", report.ends.killed)];
            let ends = ends.into_iter().filter(|(_, count)| *count == 0).map(|(name, _)| name);
            let never: Vec<&str> = never.chain(ends).collect();
            if !never.is_empty() {
                report.faults.push((now, format!("it never came to this: {}", never.join(", "))));
            }
        }
        Ok((report, self.tail, self.world))
    }

    /// How far it is, where somebody looks.
    fn show(&mut self) {
        let now = clock::now();
        if !io::stderr().is_terminal()
            || now.saturating_duration_since(self.shown) < Duration::from_millis(200)
        {
            return;
        }
        self.shown = now;
        let spent = now.saturating_duration_since(self.start);
        let line = format!(
            "\r{:4} s of {} s, {:8} {} grants",
            spent.as_secs(),
            self.options.total.as_secs(),
            self.phase.name(),
            self.tail.grants
        );
        let mut stderr = io::stderr().lock();
        let _gone = stderr.write_all(line.as_bytes()).and_then(|()| stderr.write_all(b"\x1b[K\r"));
    }
}

/// Prints a line, or several.
fn say(text: &str) {
    let mut stdout = io::stdout().lock();
    let _gone = writeln!(stdout, "{}", text.trim_end_matches('\n')).and_then(|()| stdout.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quiet_phases_fit_into_any_length() {
        for seconds in [3, 4, 10, 60, 61, 600, 86_400] {
            let total = Duration::from_secs(seconds);
            let quiet = (total / 10).clamp(Duration::from_secs(1), Duration::from_secs(3));
            let cycles = u32::try_from(total.as_secs().div_ceil(CYCLE.as_secs())).unwrap();
            assert!(total > quiet.saturating_mul(cycles + 1), "{seconds}");
        }
    }
}
