//! The simulated node against replies of real servers, byte by byte.
//!
//! `../data/sim_replies.tsv` has one line per situation and reply: who gave it, what was done before, and what was sent.

use std::collections::BTreeMap;

use redlock_core::Instant;
use redlock_core::sim::{Condition, Dialect, Server, SessionId};

pub(crate) const SERVERS: [(&str, Dialect); 4] = [
    ("R70", Dialect::Redis7),
    ("R86", Dialect::Redis84),
    ("V81", Dialect::Valkey81),
    ("V91", Dialect::Valkey9),
];

/// One line of the table.
pub(crate) struct Row<'a> {
    pub(crate) who: &'a str,
    pub(crate) group: &'a str,
    pub(crate) situation: &'a str,
    pub(crate) setup: &'a str,
    pub(crate) command: &'a str,
    pub(crate) reply: &'a str,
    pub(crate) closes: bool,
    pub(crate) probe: &'a str,
    pub(crate) probe_reply: &'a str,
}

pub(crate) fn rows() -> impl Iterator<Item = Row<'static>> {
    include_str!("../data/sim_replies.tsv").lines().filter(|line| !line.starts_with('#')).map(|line| {
        let columns: Vec<&str> = line.split('\t').collect();
        let [who, group, situation, setup, command, reply, closes, probe, probe_reply] = columns[..] else {
            panic!("not nine columns: {line}");
        };
        Row { who, group, situation, setup, command, reply, closes: closes == "1", probe, probe_reply }
    })
}

/// A node, the session that is looked at, and another client's.
pub(crate) struct Bench {
    pub(crate) server: Server,
    pub(crate) now: Instant,
    protocol: u8,
    pub(crate) session: SessionId,
    other: SessionId,
}

impl Bench {
    pub(crate) fn new(dialect: Dialect, protocol: u8) -> Self {
        let mut server = Server::new(dialect, 7);
        let now = Instant::from_secs(100);
        let other = server.open(now);
        let session = server.open(now);
        let mut bench = Self { server, now, protocol, session, other };
        bench.reconnect();
        bench
    }

    fn reconnect(&mut self) {
        self.session = self.server.open(self.now);
        if self.protocol == 3 {
            self.ask("HELLO 3");
        }
    }

    pub(crate) fn ask(&mut self, command: &str) -> Vec<u8> {
        if let Some(raw) = command.strip_prefix("raw:") {
            self.server.receive(self.session, &unescape(raw), self.now);
        } else if command != "(push)" && command != "(connect)" {
            for command in command.split(" | ") {
                self.server.receive(self.session, &multibulk(command), self.now);
            }
        }
        self.server.output(self.session)
    }

    pub(crate) fn prepare(&mut self, step: &str) {
        let (word, rest) = step.split_once(' ').unwrap_or((step, ""));
        match word {
            "@list" => self.server.put_list(b"k", &[b"a"], None, self.now),
            "@advance" => {
                let millis: u64 = rest.parse().unwrap();
                self.now = self.now.saturating_add(std::time::Duration::from_millis(millis));
            }
            "@tick" => self.server.tick(self.now),
            "@drain" => drop(self.server.output(self.session)),
            "@evict" => assert!(self.server.remove(rest.as_bytes(), self.now)),
            "@other" => {
                self.server.receive(self.other, &multibulk(rest), self.now);
                assert!(!self.server.output(self.other).starts_with(b"-"), "{step}");
            }
            "@password" | "@user" => {
                let mut words = rest.split(' ');
                let (name, dialect) = (words.next().unwrap(), self.server.dialect());
                let server = std::mem::replace(&mut self.server, Server::new(dialect, 0));
                self.server = if word == "@password" {
                    server.with_password(name)
                } else {
                    server.with_user(name, words.next().unwrap(), &words.collect::<Vec<_>>())
                };
                if word == "@password" {
                    self.reconnect();
                }
            }
            "@condition" => {
                let (name, moved) = rest.split_once(' ').unwrap_or((rest, ""));
                self.server.set_condition(Some(match name {
                    "loading" => Condition::Loading,
                    "busy" => Condition::Busy,
                    "oom" => Condition::Oom,
                    "misconf" => Condition::Misconf,
                    "noreplicas" => Condition::Noreplicas,
                    "readonly" => Condition::Readonly,
                    "masterdown" => Condition::Masterdown,
                    "max-clients" => Condition::MaxClients,
                    "protected-mode" => Condition::ProtectedMode,
                    "cluster" => Condition::Cluster { moved: (!moved.is_empty()).then(|| moved.to_string()) },
                    _ => panic!("{step}"),
                }));
                if matches!(name, "max-clients" | "protected-mode") {
                    self.session = self.server.open(self.now);
                }
            }
            _ => {
                let reply = self.ask(step);
                assert!(!reply.starts_with(b"-"), "{step}: {}", reply.escape_ascii());
            }
        }
    }
}

#[test]
fn every_recorded_reply_is_reproduced_to_the_byte() {
    let mut situations: BTreeMap<&str, usize> = BTreeMap::new();
    let mut differences = Vec::new();
    for row in rows() {
        for (name, dialect) in SERVERS {
            for protocol in [2, 3] {
                let tag = format!("{name}/{protocol}");
                if row.who != "all" && !row.who.split(' ').any(|who| who == tag) {
                    continue;
                }
                *situations.entry(name).or_default() += 1;
                if let Some(difference) = difference(&row, dialect, protocol) {
                    differences.push(format!(
                        "{tag} {}: {}: {}\n  {difference}",
                        row.group, row.situation, row.command
                    ));
                }
            }
        }
    }
    assert!(differences.is_empty(), "{} differ\n{}", differences.len(), differences.join("\n"));
    for (name, _) in SERVERS {
        assert!(situations[name] >= 500, "{name}: only {} situations", situations[name]);
    }
}

fn difference(row: &Row<'_>, dialect: Dialect, protocol: u8) -> Option<String> {
    let mut bench = Bench::new(dialect, protocol);
    for step in row.setup.split(" ; ").filter(|step| !step.is_empty()) {
        bench.prepare(step);
    }
    let id = format!("$2\\r\\nid\\r\\n:{}\\r\\n", bench.session.get());
    let wanted = unescape(&row.reply.replace("$2\\r\\nid\\r\\n:<id>\\r\\n", &id));
    let got = bench.ask(row.command);
    if got != wanted {
        return Some(format!("wanted {}\n  got    {}", wanted.escape_ascii(), got.escape_ascii()));
    }
    if bench.server.wants_close(bench.session) != row.closes {
        return Some(format!("wanted the connection {}", if row.closes { "closed" } else { "open" }));
    }
    if !row.probe.is_empty() {
        let got = bench.ask(row.probe);
        // Probes were made in the run's protocol, too.
        if got != unescape(row.probe_reply) {
            return Some(format!("{}: wanted {}, got {}", row.probe, row.probe_reply, got.escape_ascii()));
        }
    }
    None
}

/// The words of a command as the table writes it, as a client sends them.
pub(crate) fn multibulk(command: &str) -> Vec<u8> {
    let words = words(command);
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(&word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

pub(crate) fn words(command: &str) -> Vec<Vec<u8>> {
    let (mut words, mut word, mut quoted, mut any) = (Vec::new(), String::new(), false, false);
    let mut chars = command.chars();
    while let Some(char) = chars.next() {
        match char {
            '"' => {
                quoted = !quoted;
                any = true;
            }
            ' ' if !quoted => {
                if any {
                    words.push(unescape(&word));
                }
                (word, any) = (String::new(), false);
            }
            '\\' => {
                any = true;
                word.push(char);
                word.extend(chars.next());
            }
            _ => {
                any = true;
                word.push(char);
            }
        }
    }
    if any {
        words.push(unescape(&word));
    }
    words
}

pub(crate) fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes().iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next().unwrap() {
            b'r' => b'\r',
            b'n' => b'\n',
            b't' => b'\t',
            b'x' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            other => other,
        });
    }
    bytes
}
