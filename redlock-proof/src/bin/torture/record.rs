//! The protected file: who held the lock, from when until when, and what was done to everyone meanwhile.
//!
//! One line for each thing that happened, appended with one write, so that a process that is killed leaves whole lines, and
//! those of several processes do not mix. Times are nanoseconds of `CLOCK_BOOTTIME`, which is one for all processes.

use core::fmt;
use redlock_blocking::Instant;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// A grant: the so-many-th of an actor in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Grant {
    /// Which process; a number is never given twice.
    pub(crate) process: u32,
    /// Which thread or task in it.
    pub(crate) actor: u32,
    /// Counted by the actor.
    pub(crate) number: u32,
}

/// What runs a worker's locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Flavour {
    AsyncStd,
    Blocking,
    TokioCurrent,
    TokioMulti,
}

/// What the machine is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Things are broken.
    Chaos,
    /// Everything is mended before the next quiet phase.
    Mending,
    /// Everything works.
    Quiet,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The lock was granted, and seen to be held after the instant of this record, unless `until` is before that.
    Enter {
        grant: Grant,
        flavour: Flavour,
        resources: Vec<String>,
        until: Instant,
        fence: Option<u64>,
        style: String,
    },
    /// It was seen to be held after the instant of this record, and is believed to be until then.
    Until { grant: Grant, until: Instant },
    /// It is about to be given back. The instant of this record is the last after which it was seen to be held.
    Leave { grant: Grant },
    /// It was lost; the last deadline was `until`. The instant is as in `Leave`.
    Lost { grant: Grant, until: Instant, reason: Loss },
    /// A worker saw a promise broken.
    Broken { process: u32, text: String },
    /// An actor has ended in an orderly way, and was granted so many.
    Done { process: u32, actor: u32, grants: u32 },
    /// The process was killed, and is gone.
    Dead { process: u32 },
    /// A phase begins.
    Phase(Phase),
    /// Something was done to somebody.
    Chaos(String),
}

/// Why a lock was lost, as far as the record needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Its own client was closed.
    Closed,
    /// Its deadline passed.
    Expired,
    /// Nodes no longer had it before its deadline, though nobody deletes another's lock here.
    Gone,
}

/// One line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) at: Instant,
    pub(crate) what: What,
}

/// Writes to the file.
#[derive(Debug)]
pub(crate) struct Recorder(File);

impl Recorder {
    /// Appends to this file.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        OpenOptions::new().append(true).create(true).open(path).map(Self)
    }

    /// Appends one record. What cannot be written must not be done: the process ends.
    pub(crate) fn write(&self, at: Instant, what: What) {
        let line = format!("{}\n", Record { at, what });
        match (&self.0).write(line.as_bytes()) {
            Ok(length) if length == line.len() => {}
            Ok(_) | Err(_) => std::process::exit(CANNOT_WRITE),
        }
    }
}

/// The exit code of a process that cannot write to the record.
const CANNOT_WRITE: i32 = 74;

impl Flavour {
    pub(crate) const ALL: [Self; 4] = [Self::TokioMulti, Self::Blocking, Self::AsyncStd, Self::TokioCurrent];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::AsyncStd => "async-std",
            Self::Blocking => "blocking",
            Self::TokioCurrent => "tokio-current",
            Self::TokioMulti => "tokio-multi",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|flavour| flavour.name() == name)
    }
}

impl Phase {
    const ALL: [Self; 3] = [Self::Chaos, Self::Mending, Self::Quiet];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Chaos => "chaos",
            Self::Mending => "mending",
            Self::Quiet => "quiet",
        }
    }
}

impl Loss {
    const ALL: [Self; 3] = [Self::Closed, Self::Expired, Self::Gone];

    const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Expired => "expired",
            Self::Gone => "gone",
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.process, self.actor, self.number)
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.at.as_nanos(), self.what)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enter { grant, flavour, resources, until, fence, style } => {
                let (flavour, resources, until) = (flavour.name(), resources.join(","), until.as_nanos());
                write!(f, "enter {grant} {flavour} {resources} {until} ")?;
                match fence {
                    Some(fence) => write!(f, "{fence} {style}"),
                    None => write!(f, "- {style}"),
                }
            }
            Self::Until { grant, until } => write!(f, "until {grant} {}", until.as_nanos()),
            Self::Leave { grant } => write!(f, "leave {grant}"),
            Self::Lost { grant, until, reason } => {
                write!(f, "lost {grant} {} {}", until.as_nanos(), reason.name())
            }
            // The text is the rest of the line.
            Self::Broken { process, text } => write!(f, "broken {process} {}", text.replace('\n', " ")),
            Self::Done { process, actor, grants } => write!(f, "done {process} {actor} {grants}"),
            Self::Dead { process } => write!(f, "dead {process}"),
            Self::Phase(phase) => write!(f, "phase {}", phase.name()),
            Self::Chaos(text) => write!(f, "chaos {}", text.replace('\n', " ")),
        }
    }
}

impl Record {
    /// Reads a line, without its end; `None` if it is not one.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (at, rest) = line.split_once(' ')?;
        let (verb, rest) = rest.split_once(' ')?;
        let at = Instant::from_nanos(at.parse().ok()?);
        let what = match verb {
            "broken" => {
                let (process, text) = rest.split_once(' ')?;
                What::Broken { process: process.parse().ok()?, text: text.to_owned() }
            }
            "chaos" => What::Chaos(rest.to_owned()),
            _ => Self::fields(verb, &mut rest.split(' '))?,
        };
        Some(Self { at, what })
    }

    fn fields<'l>(verb: &str, fields: &mut impl Iterator<Item = &'l str>) -> Option<What> {
        let what = match verb {
            "enter" => What::Enter {
                grant: Grant::parse(fields.next()?)?,
                flavour: Flavour::parse(fields.next()?)?,
                resources: fields.next()?.split(',').map(str::to_owned).collect(),
                until: Instant::from_nanos(number(fields)?),
                fence: match fields.next()? {
                    "-" => None,
                    fence => Some(fence.parse().ok()?),
                },
                style: fields.next()?.to_owned(),
            },
            "until" => {
                let grant = Grant::parse(fields.next()?)?;
                What::Until { grant, until: Instant::from_nanos(number(fields)?) }
            }
            "leave" => What::Leave { grant: Grant::parse(fields.next()?)? },
            "lost" => {
                let grant = Grant::parse(fields.next()?)?;
                let until = Instant::from_nanos(number(fields)?);
                let name = fields.next()?;
                What::Lost { grant, until, reason: Loss::ALL.into_iter().find(|loss| loss.name() == name)? }
            }
            "done" => {
                What::Done { process: number(fields)?, actor: number(fields)?, grants: number(fields)? }
            }
            "dead" => What::Dead { process: number(fields)? },
            "phase" => {
                let name = fields.next()?;
                What::Phase(Phase::ALL.into_iter().find(|phase| phase.name() == name)?)
            }
            _ => return None,
        };
        fields.next().is_none().then_some(what)
    }
}

fn number<'l, N: core::str::FromStr>(fields: &mut impl Iterator<Item = &'l str>) -> Option<N> {
    fields.next()?.parse().ok()
}

impl Grant {
    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split('.');
        let grant =
            Self { process: number(&mut fields)?, actor: number(&mut fields)?, number: number(&mut fields)? };
        fields.next().is_none().then_some(grant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let grant = Grant { process: 3, actor: 1, number: 17 };
        let until = Instant::from_nanos(9_876_543_210);
        let enter = |fence| What::Enter {
            grant,
            flavour: Flavour::TokioCurrent,
            resources: vec!["door".into(), "side".into()],
            until,
            fence,
            style: "renew".into(),
        };
        let mut all = vec![
            enter(None),
            enter(Some(u64::MAX)),
            What::Until { grant, until },
            What::Leave { grant },
            What::Broken { process: 3, text: "it took\n2 s".into() },
            What::Done { process: 3, actor: 1, grants: 17 },
            What::Dead { process: 3 },
            What::Chaos("stop server 2 for 300 ms".into()),
        ];
        all.extend(Loss::ALL.map(|reason| What::Lost { grant, until, reason }));
        all.extend(Phase::ALL.map(What::Phase));
        for what in all {
            let line = Record { at: Instant::from_nanos(1_234), what }.to_string();
            let read = Record::parse(&line).unwrap_or_else(|| panic!("{line} is not read"));
            assert_eq!(read.to_string(), line);
        }
    }

    #[test]
    fn what_is_cut_or_mixed_is_not_read() {
        let whole = "12 lost 3.1.17 99 expired";
        assert!(Record::parse(whole).is_some());
        for line in [
            "",
            "12",
            "12 leave",
            "12 leave 3.1",
            "x leave 3.1.17",
            "12 leave 3.1.17 9",
            "12 lost 3.1.17 99 exp",
        ] {
            assert_eq!(Record::parse(line), None, "{line}");
        }
    }
}
