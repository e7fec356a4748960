//! What one sees of the demo: a table that is drawn anew in place on a terminal, plain lines elsewhere.

use core::fmt::Write as _;
use core::time::Duration;

use super::arena::{Arena, Doing, Tally};
use super::script::{Health, Phase};
use crate::out;

/// Where and how to show.
#[derive(Debug)]
pub(crate) struct Display {
    is_live: bool,
    is_coloured: bool,
    /// How many lines the table on the screen has.
    drawn: usize,
    /// What was said last, in plain lines.
    told: Tally,
    told_second: u64,
}

/// How far the tour is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) phase: Phase,
    pub(crate) elapsed: Duration,
    pub(crate) total: Duration,
}

impl Display {
    pub(crate) fn new(is_plain: bool) -> Self {
        let is_live = !is_plain && out::is_screen();
        let is_coloured = is_live && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { is_live, is_coloured, drawn: 0, told: Tally::default(), told_second: 0 }
    }

    /// How often to call [`show`](Self::show).
    pub(crate) const fn interval(&self) -> Duration {
        Duration::from_millis(if self.is_live { 100 } else { 50 })
    }

    pub(crate) fn begin(&self, progress: Progress) {
        if !self.is_live {
            out::print(&format!("{:5.1} s  {}\n", progress.elapsed.as_secs_f64(), progress.phase.title()));
        }
    }

    pub(crate) fn show(&mut self, progress: Progress, arena: &Arena) {
        if self.is_live {
            self.draw(progress, arena);
        } else if progress.elapsed.as_secs() > self.told_second {
            self.told_second = progress.elapsed.as_secs();
            let total = arena.total();
            let new = total.since(self.told);
            self.told = total;
            out::print(&format!(
                "{:5.1} s    grants {} (+{}), busy {} (+{}), refused {} (+{})\n",
                progress.elapsed.as_secs_f64(),
                total.grants,
                new.grants,
                total.busy,
                new.busy,
                total.refused,
                new.refused
            ));
        }
    }

    fn draw(&mut self, progress: Progress, arena: &Arena) {
        let mut lines = vec![
            format!(
                "{}  {:.1} s of {} s",
                self.paint("redlock demo", "1"),
                progress.elapsed.as_secs_f64(),
                progress.total.as_secs()
            ),
            self.paint(progress.phase.title(), "1"),
            self.nodes(progress.phase),
            String::new(),
            format!("  {:<10}{:>8}{:>8}{:>9}   {}", "contender", "grants", "busy", "refused", "now"),
        ];
        for (name, score) in arena.scores() {
            let now = match score.doing() {
                Doing::Waiting => "waiting".to_owned(),
                Doing::Inside => self.paint("HOLDS THE LOCK", "32"),
                Doing::Refused => self.paint("refused", "31"),
            };
            lines.push(format!("  {name:<10}{}   {now}", numbers(score.tally())));
        }
        lines.push(format!("  {:<10}{}", "all", numbers(arena.total())));
        let mut text = String::new();
        if self.drawn > 0 {
            push(&mut text, format_args!("\x1b[{}A", self.drawn));
        }
        for line in &lines {
            push(&mut text, format_args!("\r\x1b[2K{line}\n"));
        }
        self.drawn = lines.len();
        out::print(&text);
    }

    fn nodes(&self, phase: Phase) -> String {
        let mut line = format!("  {:<10}", "nodes");
        for (number, health) in (1..).zip(phase.health()) {
            let state = match health {
                Health::Up => self.paint("up     ", "32"),
                Health::Dead => self.paint("dead   ", "31"),
                Health::Emptied => self.paint("emptied", "33"),
            };
            push(&mut line, format_args!("{number} {state}  "));
        }
        line
    }

    fn paint(&self, text: &str, style: &str) -> String {
        if self.is_coloured { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn numbers(tally: Tally) -> String {
    format!("{:>8}{:>8}{:>9}", tally.grants, tally.busy, tally.refused)
}

fn push(text: &mut String, piece: core::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _written = text.write_fmt(piece);
}
