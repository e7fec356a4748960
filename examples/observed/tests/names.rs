//! What is scraped, what is documented, and what the dashboard and the alerts ask for are the same names.

#![expect(clippy::std_instead_of_alloc, reason = "a test")]

use core::error::Error;
use core::time::Duration;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;

type Failure = Box<dyn Error>;

/// The program, with its log in hand; killed at the end.
struct Observed(Child);

impl Drop for Observed {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

fn scrape(address: &str) -> Result<String, Failure> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn read(path: &str) -> Result<String, Failure> {
    Ok(fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path))?)
}

/// The words in it that start with `redlock_` and are the name of a metric, without what a histogram's series end with.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let metric = |word: &str| {
        let series = word.strip_suffix("_bucket").or_else(|| word.strip_suffix("_count"));
        series.or_else(|| word.strip_suffix("_sum")).unwrap_or(word).to_owned()
    };
    words.filter(|word| word.starts_with("redlock_")).map(metric).collect()
}

/// The table of the documentation: name, kind and labels.
fn documented() -> Result<Vec<(String, String, BTreeSet<String>)>, Failure> {
    let text = read("../../redlock-core/OBSERVABILITY.md")?;
    let rows = text.lines().filter(|line| line.starts_with("| `redlock_"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, name, kind, labels, ..] = cells.as_slice() else { return Err(line.into()) };
        // A label stands before the colon that its values follow, or alone.
        let labels = labels.split(", `").flat_map(|cell| cell.split(':').next().map(str::to_owned));
        let known = ["outcome", "end", "reason", "node", "vote", "direction"];
        let labels = labels
            .map(|label| label.trim_matches('`').to_owned())
            .filter(|label| known.contains(&label.as_str()));
        Ok((name.trim_matches('`').to_owned(), (*kind).to_owned(), labels.collect()))
    };
    rows.map(row).collect()
}

#[test]
fn the_documented_names_are_those_that_are_scraped_and_asked_for() -> Result<(), Failure> {
    let child = Command::new(env!("CARGO_BIN_EXE_observed"))
        .arg("0")
        .env_remove("REDLOCK_NODES")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut observed = Observed(child);
    let mut line = String::new();
    BufReader::new(observed.0.stdout.take().ok_or("no pipe")?).read_line(&mut line)?;
    let address =
        line.trim().strip_prefix("metrics at http://").and_then(|rest| rest.strip_suffix("/metrics"));
    let address = address.ok_or_else(|| format!("no address in {line:?}"))?.to_owned();
    let mut log = observed.0.stderr.take().ok_or("no pipe")?;
    let log = std::thread::spawn(move || {
        let mut text = String::new();
        log.read_to_string(&mut text).map(|_| text)
    });

    // Until locks were taken and released, a node has died, and it was noticed that it came back another.
    let mut seen = String::new();
    let awaited = [
        "redlock_acquire_seconds_count{outcome=\"acquired\"",
        "redlock_hold_seconds_count",
        "redlock_attempts_lost_total",
        "redlock_node_restarts_total",
        "redlock_node_votes_total",
    ];
    let is_missing = |seen: &str, name: &&str| {
        let mut series = seen.lines().filter(|line| line.starts_with(*name));
        series.all(|line| line.ends_with(" 0"))
    };
    for _ in 0..150 {
        seen = scrape(&address)?;
        if !awaited.iter().any(|name| is_missing(&seen, name)) {
            break;
        }
        sleep(Duration::from_millis(200));
    }
    let missing: Vec<_> = awaited.iter().filter(|name| is_missing(&seen, name)).collect();
    assert!(missing.is_empty(), "{missing:?} in {seen}");
    drop(observed);

    let documented = documented()?;
    let table: BTreeSet<String> = documented.iter().map(|(name, ..)| name.clone()).collect();
    let samples: Vec<&str> = seen.lines().filter(|line| line.starts_with("redlock_")).collect();
    let scraped: BTreeSet<String> =
        samples.iter().flat_map(|line| names(line.split(['{', ' ']).next().unwrap_or(line))).collect();
    assert_eq!(scraped, table, "scraped, and documented");
    for (name, kind, labels) in &documented {
        assert!(seen.contains(&format!("# TYPE {name} {kind}\n")), "{name} is no {kind}");
        assert!(seen.contains(&format!("# HELP {name} ")), "{name} is not described");
        let of =
            samples.iter().filter(|line| names(line.split(['{', ' ']).next().unwrap_or(line)).contains(name));
        let used: BTreeSet<String> = of
            .filter_map(|line| line.split_once('{')?.1.split_once('}'))
            .flat_map(|(labels, _)| {
                labels
                    .split(',')
                    .filter_map(|label| Some(label.split_once('=')?.0.to_owned()))
                    .collect::<Vec<_>>()
            })
            .filter(|label| label != "le")
            .collect();
        assert_eq!(&used, labels, "labels of {name}");
    }

    // The dashboard shows all of them, and asks for nothing else; so do the alerts.
    let dashboard: Value = serde_json::from_str(&read("dashboard.json")?)?;
    let expressions: Vec<String> = dashboard["panels"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default())
        .filter_map(|target| Some(target["expr"].as_str()?.to_owned()))
        .collect();
    assert_eq!(names(&expressions.join(" ")), table, "shown, and documented");
    let alerts = read("alerts.yml")?;
    let expressions: Vec<&str> = alerts.lines().filter(|line| line.trim().starts_with("expr:")).collect();
    assert!(names(&expressions.join(" ")).is_subset(&table), "{expressions:?}");

    let log = log.join().map_err(|_| "the log's thread")??;
    for said in ["redlock: node up", "redlock: node down", "redlock: node has restarted"] {
        assert!(log.contains(said), "{said} is not in the log:\n{log}");
    }
    Ok(())
}
