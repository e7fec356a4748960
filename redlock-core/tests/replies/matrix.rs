//! Everything that the engine sends, in every situation, to the simulated node and to a real server at once.
//!
//! The commands are the engine's own: it is driven by hand, and what it wants to be sent is kept.

use std::collections::BTreeSet;
use std::path::Path;
use std::thread;
use std::time::Duration;

use redlock_core::sim::Dialect;
use redlock_core::{AcquireRequest, Client, Config, Event, Instant, Output};

use crate::live::without_id;
use crate::real::{Real, programs};
use crate::simulated::{Bench, multibulk};

/// How the keys stand before the command.
const KEYS: [&str; 6] = [
    "",
    "SET k TOKEN PX 100000 ; SET l TOKEN PX 100000",
    "SET k foreign PX 100000",
    "SET l foreign PX 100000",
    "@list k a",
    "SET k TOKEN PX 1 ; @advance 5",
];

/// What is the matter with the server, or with who asks.
const CONDITIONS: [&str; 15] = [
    "",
    "@condition oom",
    "@condition noreplicas",
    "@condition misconf",
    "@condition readonly",
    "@condition masterdown",
    "@condition busy",
    "@password sekret",
    "@user u p +@all ; AUTH u p",
    "@user u p +set +get ; AUTH u p",
    "@user u p +set +eval +delex +delifeq ; AUTH u p",
    "@user u p +eval +get +exists +del ; AUTH u p",
    "@user u p +eval +set +exists +pexpire ; AUTH u p",
    "@user u p +set +get +eval +del +exists +pexpire +delifeq ~other* ; AUTH u p",
    "@user u p +set +get +eval +del +exists +pexpire +delifeq %R~* ; AUTH u p",
];

/// Commands that the engine does not send yet, and that are spoken of in its design.
const MORE: [&str; 3] = ["CLIENT TRACKING ON OPTIN", "CLIENT CACHING YES", "GETRANGE k 0 255"];

#[test]
fn the_node_and_real_servers_say_the_same_to_what_the_engine_sends() {
    for program in programs() {
        let mut real = Real::start(program, &[]);
        let Some(dialect) = real.dialect() else {
            eprintln!("{}: no dialect stands for this version", program.display());
            continue;
        };
        compare(program, &mut real, dialect);
    }
}

fn compare(program: &Path, real: &mut Real, dialect: Dialect) {
    let commands = commands();
    let (mut compared, mut differences) = (0, Vec::new());
    for condition in CONDITIONS {
        // A right to what a server does not have is refused.
        let mut condition = condition.to_string();
        for (right, is_there) in [(" +delex", dialect.has_delex()), (" +delifeq", dialect.has_delifeq())] {
            if !is_there {
                condition = condition.replace(right, "");
            }
        }
        // Their keys decide nothing.
        let count =
            if condition == "@password sekret" || condition.ends_with("busy") { 1 } else { KEYS.len() };
        for keys in &KEYS[..count] {
            for command in &commands {
                for protocol in [2, 3] {
                    let setup = [*keys, &condition].map(|part| part.replace("TOKEN", &token())).join(" ; ");
                    compared += 1;
                    if let Some(difference) = difference(real, dialect, protocol, &setup, command) {
                        differences.push(format!(
                            "RESP{protocol} {setup}: {}\n  {difference}",
                            command.escape_ascii()
                        ));
                    }
                }
            }
        }
    }
    assert!(differences.is_empty(), "{} of {compared} differ\n{}", differences.len(), differences.join("\n"));
    eprintln!("{}: {} commands in {compared} situations compared", program.display(), commands.len());
}

fn difference(
    real: &mut Real,
    dialect: Dialect,
    protocol: u8,
    setup: &str,
    command: &[u8],
) -> Option<String> {
    let mut bench = Bench::new(dialect, protocol);
    real.reset();
    let mut talk = real.connect();
    if protocol == 3 {
        talk.ask(&multibulk("HELLO 3"));
    }
    for step in setup.split(" ; ").filter(|step| !step.is_empty()) {
        bench.prepare(step);
        let (word, rest) = step.split_once(' ').unwrap_or((step, ""));
        match word {
            "@list" => drop(real.tell("RPUSH k a")),
            "@advance" => thread::sleep(Duration::from_millis(rest.parse().unwrap())),
            "@password" => {
                real.set_password(rest);
                // A connection that is open stays logged in.
                talk = real.connect();
                if protocol == 3 {
                    talk.ask(&multibulk("HELLO 3"));
                }
            }
            "@user" => {
                let mut words = rest.splitn(3, ' ');
                let [name, password, rules] = [(); 3].map(|()| words.next().unwrap());
                real.set_user(name, password, rules);
            }
            "@condition" => assert!(real.set_condition(rest), "{step}"),
            _ => drop(talk.ask(&multibulk(step))),
        }
    }
    bench.server.receive(bench.session, command, bench.now);
    let simulated = bench.server.output(bench.session);
    let heard = talk.ask(command);
    let (node, server) = (class(&simulated), class(&heard));
    (node != server)
        .then(|| format!("node   {}\n  server {}", simulated.escape_ascii(), heard.escape_ascii()))
}

/// What has to be the same: everything but times, numbers of connections, and what `INFO` says beyond what is read.
fn class(reply: &[u8]) -> String {
    let text = String::from_utf8_lossy(&without_id(reply)).into_owned();
    if text.contains("run_id:") {
        let fields = ["run_id:", "uptime_in_seconds:", "role:", "redis_mode:"];
        let lines = text.lines().filter(|line| fields.iter().any(|field| line.starts_with(field)));
        let shown = lines.map(|line| match line.split_once(':') {
            Some((name @ ("role" | "redis_mode"), value)) => format!("{name} {value}"),
            Some((name, _)) => name.to_string(),
            None => String::new(),
        });
        return format!("{} {:?}", &text[..1], shown.collect::<Vec<_>>());
    }
    if text.starts_with('*') && text.contains(|letter: char| letter.is_ascii_digit()) {
        // Counters start from the clock.
        let line = |line: &str| match line.as_bytes() {
            [b'$', ..] => "$".to_string(),
            digits if digits.iter().all(u8::is_ascii_digit) => "N".to_string(),
            _ => line.to_string(),
        };
        return text.lines().map(line).collect::<Vec<_>>().join(" ");
    }
    match text.strip_prefix(':').and_then(|number| number.trim_end().parse::<i64>().ok()) {
        Some(number) if number > 1 => ":left".into(),
        _ => text,
    }
}

/// The value of the first attempt of the request below.
fn token() -> String {
    format!("{}00000001", "c1".repeat(16))
}

/// What the engine sends to a server of any dialect, each once.
fn commands() -> Vec<Vec<u8>> {
    let mut kept: BTreeSet<Vec<u8>> = MORE.iter().map(|command| multibulk(command)).collect();
    for hello in ["redis 7.0.15", "redis 8.4.0", "valkey 8.1.1", "valkey 9.1.2", "none"] {
        for url in ["redis://127.0.0.1", "redis://:wrong@127.0.0.1/3", "redis://u:p@127.0.0.1"] {
            for resources in [&["k"][..], &["k", "l"]] {
                keep(&mut kept, hello, url, resources);
            }
        }
    }
    kept.into_iter().collect()
}

fn keep(kept: &mut BTreeSet<Vec<u8>>, hello: &str, url: &str, resources: &[&str]) {
    let config = Config::builder().nodes([url]).client_name("name").build().unwrap();
    let named = Config::builder().nodes([url]).build().unwrap();
    let retaining =
        Config::builder().nodes([url]).fence_retention(Duration::from_secs(86_400)).build().unwrap();
    for (config, is_fenced) in [(config.clone(), false), (config, true), (named, false), (retaining, true)] {
        let mut client = Client::new(config, 7, Instant::ZERO);
        let resources: Vec<String> = resources.iter().map(|name| (*name).to_string()).collect();
        let request = || {
            let request = AcquireRequest::all(resources.clone(), [0xc1; 16]).try_once();
            if is_fenced { request.fenced() } else { request }
        };
        client.acquire(request(), Instant::ZERO);
        let mut is_first = true;
        while let Some(output) = client.poll_output() {
            match output {
                Output::Connect { connection, .. } => client.handle_connected(connection, Instant::ZERO),
                Output::Transmit { connection, payload } => {
                    for command in split(&payload) {
                        client.handle_input(connection, &answer(&command, hello), Instant::ZERO);
                        kept.insert(command);
                    }
                }
                Output::Event(Event::Acquired { lock, .. }) => {
                    client.extend(lock, Duration::from_secs(9), Instant::ZERO).unwrap();
                }
                Output::Event(Event::Extended { lock, .. }) => {
                    client.release(lock, Instant::ZERO).unwrap();
                }
                // Once more, where somebody else holds it: the holder is asked for.
                Output::Event(Event::Released { .. }) if is_first => {
                    is_first = false;
                    client.acquire(request(), Instant::ZERO);
                }
                Output::Event(_) | Output::Disconnect { .. } => {}
            }
        }
    }
}

fn answer(command: &[u8], hello: &str) -> Vec<u8> {
    let asks = |word: &str| command.windows(word.len()).any(|part| part == word.as_bytes());
    if asks("HELLO") {
        return match hello.split_once(' ') {
            Some((server, version)) => {
                format!("%2\r\n+server\r\n+{server}\r\n+version\r\n+{version}\r\n").into_bytes()
            }
            None => b"-ERR unknown command 'HELLO'\r\n".to_vec(),
        };
    }
    match () {
        () if asks("INFO") => b"$0\r\n\r\n".to_vec(),
        () if asks("PING") => b"+PONG\r\n".to_vec(),
        () if asks("PTTL") => b":5\r\n".to_vec(),
        // The second counter is ahead of the first, which has to be raised.
        () if asks("'incr'") && asks("l:fence") => b"*2\r\n$1\r\n5\r\n$1\r\n9\r\n".to_vec(),
        () if asks("'incr'") => b"*1\r\n$1\r\n5\r\n".to_vec(),
        () if asks("EVAL") || asks("DEL") => b":1\r\n".to_vec(),
        () => b"+OK\r\n".to_vec(),
    }
}

/// The single commands of a payload of arrays.
fn split(payload: &[u8]) -> Vec<Vec<u8>> {
    let mut commands = Vec::new();
    let mut rest = payload;
    while let Some(behind) = crate::real::frame(rest) {
        commands.push(rest[..rest.len() - behind.len()].to_vec());
        rest = behind;
    }
    commands
}
