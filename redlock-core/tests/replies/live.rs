//! The recorded situations, put to the servers that are installed here.

use std::path::Path;
use std::thread;
use std::time::Duration;

use redlock_core::sim::Dialect;

use crate::real::{Real, Talk, programs};
use crate::simulated::{Row, SERVERS, multibulk, rows, unescape};

#[test]
fn real_servers_say_what_was_recorded() {
    for program in programs() {
        let mut real = Real::start(program, &[]);
        let Some(dialect) = real.dialect() else {
            eprintln!("{}: no dialect stands for this version", program.display());
            continue;
        };
        compare(program, real, dialect);
    }
}

fn compare(program: &Path, mut real: Real, dialect: Dialect) {
    let (name, _) = SERVERS.into_iter().find(|(_, known)| *known == dialect).unwrap();
    let (mut compared, mut not_made, mut differences) = (0, 0, Vec::new());
    let mut cluster = None;
    // A server that loads is not good for anything else afterwards.
    let mut loading: Option<Real> = None;
    for row in rows() {
        for protocol in [2, 3] {
            let tag = format!("{name}/{protocol}");
            if row.who != "all" && !row.who.split(' ').any(|who| who == tag) {
                continue;
            }
            let answer = match condition(&row) {
                Some("cluster") => {
                    let cluster = cluster.get_or_insert_with(|| clustered(program));
                    cluster.tell("FLUSHALL");
                    ask(cluster, &row, protocol)
                }
                Some("loading") => {
                    let loading = loading.get_or_insert_with(|| {
                        let mut real = Real::start(program, &[]);
                        real.set_condition("loading");
                        real
                    });
                    ask(loading, &row, protocol)
                }
                _ => {
                    real.reset();
                    ask(&mut real, &row, protocol)
                }
            };
            match answer {
                None => not_made += 1,
                Some(Ok(())) => compared += 1,
                Some(Err(difference)) => differences.push(format!(
                    "{tag} {}: {}: {}: {}\n  {difference}",
                    row.group, row.situation, row.setup, row.command
                )),
            }
        }
    }
    assert!(differences.is_empty(), "{} differ\n{}", differences.len(), differences.join("\n"));
    eprintln!(
        "{}: {compared} recorded situations compared, {not_made} cannot be brought about",
        program.display()
    );
    assert!(compared >= 500, "only {compared} situations");
}

fn condition<'a>(row: &Row<'a>) -> Option<&'a str> {
    let step = row.setup.split(" ; ").find_map(|step| step.strip_prefix("@condition "))?;
    step.split(' ').next()
}

/// A member of a cluster that has no slots.
fn clustered(program: &Path) -> Real {
    // A port that is free now is taken by nobody else that fast; of two servers that want it one ends.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let bus = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    Real::start(
        program,
        &["--cluster-enabled", "yes", "--port", &port, "--cluster-port", &bus, "--bind", "127.0.0.1"],
    )
}

/// Puts the row to the server; `None` where it cannot be brought about.
fn ask(real: &mut Real, row: &Row<'_>, protocol: u8) -> Option<Result<(), String>> {
    // No answer is no sign of anything: the server waits for the rest.
    let is_unfinished = row.reply.is_empty() && !row.closes && row.command.starts_with("raw:");
    let is_moved = row.setup.contains("@condition cluster ");
    // Several come in the order of a hash table with a seed of its own in every process.
    let is_unordered = row.command.starts_with("CONFIG GET") && row.command.split(' ').count() > 3;
    if is_unfinished || is_moved || is_unordered || row.setup.contains("protected-mode") {
        return None;
    }
    let mut talk = greet(real, protocol);
    let mut other = real.connect();
    for step in row.setup.split(" ; ").filter(|step| !step.is_empty()) {
        let (word, rest) = step.split_once(' ').unwrap_or((step, ""));
        match word {
            "@list" => drop(real.tell("RPUSH k a")),
            // The server's clock is the wall's: it is over when it is over.
            "@advance" => thread::sleep(Duration::from_millis(rest.parse::<u64>().unwrap() + 5)),
            "@tick" => {}
            // Nothing of it is left unread: each step's answer was awaited, and no push comes later than that.
            "@drain" => {}
            "@evict" => drop(real.tell(&format!("DEL {rest}"))),
            "@other" => {
                other.ask(&multibulk(rest));
            }
            "@password" => {
                real.set_password(rest);
                talk = greet(real, protocol);
            }
            "@user" => {
                let mut words = rest.splitn(3, ' ');
                let [name, password, rules] = [(); 3].map(|()| words.next().unwrap_or_default());
                real.set_user(name, password, rules);
            }
            "@condition" => match rest {
                // Made when the server was started.
                "loading" | "cluster" => {}
                _ => {
                    assert!(real.set_condition(rest), "{step}");
                    if rest == "max-clients" {
                        talk = real.connect();
                    }
                }
            },
            _ => {
                talk.ask(&multibulk(step));
            }
        }
    }
    Some(exchange(&mut talk, row))
}

fn greet(real: &Real, protocol: u8) -> Talk {
    let mut talk = real.connect();
    if protocol == 3 {
        talk.ask(&multibulk("HELLO 3"));
    }
    talk
}

fn exchange(talk: &mut Talk, row: &Row<'_>) -> Result<(), String> {
    let parts = [(row.command, row.reply), (row.probe, row.probe_reply)];
    for (command, reply) in parts.into_iter().filter(|(command, _)| !command.is_empty()) {
        if let Some(raw) = command.strip_prefix("raw:") {
            talk.send(&unescape(raw));
        } else if command != "(push)" && command != "(connect)" {
            for command in command.split(" | ") {
                talk.send(&multibulk(command));
            }
        }
        let wanted = unescape(reply);
        let heard = if is_span(command, &wanted) {
            talk.read_until(|heard| heard.ends_with(b"\r\n"))
        } else {
            talk.read_until(|heard| without_id(heard).len() >= wanted.len())
        };
        if !is_same(command, &without_id(&heard), &wanted) {
            return Err(format!("recorded {}\n  real     {}", wanted.escape_ascii(), heard.escape_ascii()));
        }
    }
    if row.closes {
        let more = talk.read_until(|_| false);
        if !talk.is_over() || !more.is_empty() {
            return Err(format!("the connection is open, and says {}", more.escape_ascii()));
        }
        return Ok(());
    }
    let more = talk.rest();
    if more.is_empty() { Ok(()) } else { Err(format!("more: {}", more.escape_ascii())) }
}

/// Whether it is a time that is left.
fn is_span(command: &str, wanted: &[u8]) -> bool {
    command.starts_with("PTTL") && wanted.starts_with(b":") && !wanted.starts_with(b":-")
}

fn is_same(command: &str, heard: &[u8], wanted: &[u8]) -> bool {
    let number = |bytes: &[u8]| -> Option<i64> {
        std::str::from_utf8(bytes).ok()?.strip_prefix(':')?.trim_end().parse().ok()
    };
    match (number(heard), number(wanted)) {
        // Time passes.
        (Some(heard), Some(wanted)) if command.starts_with("PTTL") && wanted > 0 => {
            heard <= wanted && wanted.saturating_sub(heard) < 3_000
        }
        _ => heard == wanted,
    }
}

/// The number of the connection is another one each time.
pub(crate) fn without_id(heard: &[u8]) -> Vec<u8> {
    const ID: &[u8] = b"$2\r\nid\r\n:";
    let Some(at) = heard.windows(ID.len()).position(|part| part == ID) else { return heard.to_vec() };
    let (before, behind) = heard.split_at(at + ID.len());
    let Some(end) = behind.iter().position(|byte| *byte == b'\r') else { return heard.to_vec() };
    [before, b"<id>", &without_id(&behind[end..])].concat()
}
