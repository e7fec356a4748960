//! `redlock demo`: the tour.

mod arena;
mod checker;
mod contenders;
mod display;
mod script;

use alloc::sync::Arc;
use core::time::Duration;
use std::process::ExitCode;
use std::thread;

use redlock_core::Instant;
use redlock_core::sim::{Dialect, TcpNode};

use self::arena::{Arena, Tally};
use self::checker::Overlap;
use self::display::{Display, Progress};
use self::script::Phase;
use crate::args::DemoArgs;
use crate::exit;
use crate::{clock, nodes, out};

/// One of each, and one more.
const DIALECTS: [Dialect; 5] =
    [Dialect::Redis7, Dialect::Redis84, Dialect::Valkey81, Dialect::Valkey9, Dialect::Redis7];
/// Two were in the critical section at once.
const OVERLAP: u8 = 1;
/// How many overlaps are told in full.
const MOST_TOLD: usize = 3;

/// Runs the tour; succeeds if nobody ever shared the lock.
pub(crate) fn run(args: &DemoArgs) -> ExitCode {
    match tour(args) {
        Ok(report) => {
            out::print(&report.text());
            if report.overlaps.is_empty() { ExitCode::SUCCESS } else { OVERLAP.into() }
        }
        Err(message) => {
            out::say(message);
            exit::UNAVAILABLE.into()
        }
    }
}

/// What came of it.
#[derive(Debug)]
struct Report {
    start: Instant,
    total: Tally,
    phases: Vec<(Phase, Tally)>,
    contenders: Vec<(&'static str, Tally)>,
    overlaps: Vec<Overlap>,
}

fn tour(args: &DemoArgs) -> Result<Report, String> {
    let nodes: Vec<TcpNode> = DIALECTS
        .into_iter()
        .map(|dialect| nodes::start(0, dialect, None))
        .collect::<Result<_, _>>()
        .map_err(|error| format!("cannot serve on 127.0.0.1: {error}"))?;
    let arena = Arc::new(Arena::default());
    let start = clock::now();
    let threads = contenders::start(&nodes, args.unsafe_quorum, &arena)
        .map_err(|error| format!("cannot start a client: {error}"))?;
    let mut display = Display::new(args.plain);
    let total = Duration::from_secs(args.seconds.into());
    let mut phases = Vec::new();
    let mut end = start;
    for phase in Phase::ALL {
        phase.begin(&nodes).map_err(|error| format!("a node cannot come back: {error}"))?;
        let before = arena.total();
        end = end.saturating_add(phase.length(total)).max(clock::now());
        let progress = || Progress { phase, elapsed: clock::now().saturating_duration_since(start), total };
        display.begin(progress());
        while clock::now() < end {
            display.show(progress(), &arena);
            thread::sleep(display.interval().min(end.saturating_duration_since(clock::now())));
        }
        display.show(progress(), &arena);
        phases.push((phase, arena.total().since(before)));
    }
    arena.end();
    for thread in threads {
        thread.join().map_err(|_| "a contender panicked".to_owned())?;
    }
    Ok(Report {
        start,
        total: arena.total(),
        phases,
        contenders: arena.scores().map(|(name, score)| (name, score.tally())).collect(),
        overlaps: checker::overlaps(&arena.visits()),
    })
}

impl Report {
    fn text(&self) -> String {
        let Tally { grants, busy, refused } = self.total;
        let mut lines = vec![
            String::new(),
            format!(
                "{grants} grants, {} overlaps, {refused} refusals, {busy} times busy",
                self.overlaps.len()
            ),
        ];
        for (phase, tally) in &self.phases {
            lines.push(format!(
                "  {:5} grants, {:3} refusals while {}",
                tally.grants,
                tally.refused,
                phase.title()
            ));
        }
        let shares: Vec<String> =
            self.contenders.iter().map(|(name, tally)| format!("{name} {}", tally.grants)).collect();
        lines.push(format!("  turns: {}", shares.join(", ")));
        for overlap in self.overlaps.iter().take(MOST_TOLD) {
            lines.push(format!("  overlap: {}", self.told(overlap)));
        }
        lines.push(
            if self.overlaps.is_empty() {
                "never two holders at once"
            } else {
                "TWO HOLDERS AT ONCE: this is not a lock"
            }
            .to_owned(),
        );
        lines.push(String::new());
        lines.join("\n")
    }

    fn told(&self, overlap: &Overlap) -> String {
        let [first, second] = [overlap.first, overlap.second].map(|visit| {
            let at = |instant: Instant| instant.saturating_duration_since(self.start).as_secs_f64();
            let name = arena::NAMES.get(visit.contender).copied().unwrap_or_default();
            format!("{name} from {:.4} s to {:.4} s", at(visit.enter), at(visit.leave))
        });
        format!("{first}, {second}")
    }
}
