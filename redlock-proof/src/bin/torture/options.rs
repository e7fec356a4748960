//! What was asked for.

use core::time::Duration;
use std::path::PathBuf;

pub(crate) const USAGE: &str = "usage: torture [--seconds N] [--servers redis|valkey|both] [--nodes N] [--workers M] [--seed S]
               [--folder PATH] [--keep] [--plant half-quorum|forgetting]

  --seconds N   how long, quiet phases included; 60
  --servers     whose servers are the nodes, by turns with both, which is the default
  --nodes N     how many; 5
  --workers M   how many processes want the lock; 6
  --seed S      of what is done to whom; a new one, which is printed
  --folder PATH where servers keep their files; in memory if there is such a place, since a process that is killed loses
                nothing there either
  --keep        keep the record though nothing is wrong
  --plant       break something on purpose, to see that it is found: clients whose quorum is half of the nodes, or
                nodes that forget what they granted, now and then a majority at once";

/// Whose servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Servers {
    Both,
    Redis,
    Valkey,
}

/// What is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    /// Servers restart without what they knew, and now and then a majority forgets everything.
    Forgetting,
    /// Each worker knows so few nodes, and others than the next, that its majority is half of all.
    HalfQuorum,
}

/// All of it.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) total: Duration,
    pub(crate) servers: Servers,
    pub(crate) nodes: usize,
    pub(crate) workers: usize,
    pub(crate) seed: Option<u64>,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) keeps: bool,
    pub(crate) plant: Option<Plant>,
}

impl Options {
    /// Reads them.
    ///
    /// # Errors
    ///
    /// What is wrong, in words.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            total: Duration::from_secs(60),
            servers: Servers::Both,
            nodes: 5,
            workers: 6,
            seed: None,
            folder: None,
            keeps: false,
            plant: None,
        };
        while let Some(word) = words.next() {
            if word == "--keep" {
                options.keeps = true;
                continue;
            }
            let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
            let wrong = || format!("{word} {value} makes no sense");
            match word.as_str() {
                "--seconds" => {
                    let seconds = value.parse().ok().filter(|seconds| (3..=1_000_000).contains(seconds));
                    options.total =
                        Duration::from_secs(seconds.ok_or_else(|| format!("{}: at least 3", wrong()))?);
                }
                "--servers" => {
                    options.servers = match value.as_str() {
                        "both" => Servers::Both,
                        "redis" => Servers::Redis,
                        "valkey" => Servers::Valkey,
                        _ => return Err(wrong()),
                    };
                }
                "--nodes" => {
                    options.nodes =
                        value.parse().ok().filter(|nodes| (1..=15).contains(nodes)).ok_or_else(wrong)?
                }
                "--workers" => {
                    options.workers = value
                        .parse()
                        .ok()
                        .filter(|count| (4..=64).contains(count))
                        .ok_or_else(|| format!("{}: at least 4, one of each kind", wrong()))?;
                }
                "--seed" => options.seed = Some(value.parse().map_err(|_| wrong())?),
                "--folder" => options.folder = Some(value.into()),
                "--plant" => {
                    options.plant = match value.as_str() {
                        "forgetting" => Some(Plant::Forgetting),
                        "half-quorum" => Some(Plant::HalfQuorum),
                        _ => return Err(wrong()),
                    };
                }
                _ => return Err(format!("{word} is unknown")),
            }
        }
        Ok(options)
    }
}
