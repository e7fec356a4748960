//! A node against real servers, command by command at random. They are started for this, listen on a socket file only, and
//! save nothing.

#![expect(clippy::print_stdout, reason = "a test that compares nothing has to say so")]

#[path = "../../../tests/programs/mod.rs"]
mod programs;

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs, println, process, thread};

use super::{Dialect, Random, Server};
use crate::Instant;
use crate::wire::script::{EXTEND, EXTEND_ALL, RELEASE, RELEASE_ALL, SET_ALL};

static NUMBER: AtomicU32 = AtomicU32::new(0);

const ROUNDS: u64 = 40;
const COMMANDS: usize = 120;
/// The release of other clients, and its name.
const PLAIN_RELEASE: &str =
    "if redis.call(\"get\",KEYS[1]) == ARGV[1] then return redis.call(\"del\",KEYS[1]) else return 0 end";
const PLAIN_RELEASE_SHA: &str = "b70c2384248f88e6b75b9f89241a180f856ad852";

/// A real server that ends with the test.
struct Real {
    process: Child,
    directory: PathBuf,
}

impl Real {
    fn start(program: &Path) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = env::temp_dir().join(format!("redlock-live-{}-{number}", process::id()));
        fs::create_dir_all(&directory).unwrap();
        let args =
            ["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket", "s", "--loglevel", "warning"];
        let mut server = Command::new(program);
        server.args(args).current_dir(&directory).stdout(Stdio::null()).stderr(Stdio::null());
        Self { process: server.spawn().unwrap(), directory }
    }

    fn connect(&self) -> UnixStream {
        for _ in 0..500 {
            if let Ok(stream) = UnixStream::connect(self.directory.join("s")) {
                stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
                return stream;
            }
            // It is starting.
            thread::sleep(Duration::from_millis(10));
        }
        panic!("the server does not listen");
    }

    /// Whom the node has to be like; `None` if no dialect stands for this server.
    fn dialect(&self) -> Option<Dialect> {
        let mut stream = self.connect();
        stream.write_all(b"HELLO\r\nECHO sync\r\n").unwrap();
        let hello = read_to_sync(&mut stream);
        Dialect::ALL.into_iter().find(|dialect| {
            let minor = |version: &str| version.split('.').take(2).map(String::from).collect::<Vec<_>>();
            let field = |name: &str| {
                hello.split("\r\n").skip_while(|word| *word != name).nth(2).unwrap_or_default().to_string()
            };
            field("server") == dialect.server_name() && minor(&field("version")) == minor(dialect.version())
        })
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
        drop(fs::remove_dir_all(&self.directory));
    }
}

fn read_to_sync(stream: &mut UnixStream) -> String {
    let mut heard = String::new();
    let mut buffer = [0; 4096];
    while !heard.ends_with("$4\r\nsync\r\n") {
        let length = stream.read(&mut buffer).unwrap();
        heard.push_str(core::str::from_utf8(&buffer[..length]).unwrap());
    }
    heard
}

#[test]
fn a_real_server_says_the_same_to_random_commands() {
    for program in programs::for_tests() {
        let real = Real::start(&program.path);
        let Some(dialect) = real.dialect() else {
            println!("no dialect stands for {}", program.version);
            continue;
        };
        for seed in 0..ROUNDS {
            compare(&real, dialect, seed);
        }
    }
}

fn compare(real: &Real, dialect: Dialect, seed: u64) {
    let mut random = Random::new(seed);
    let mut server = Server::new(dialect, 1);
    let now = Instant::from_secs(1);
    let mut sessions = Vec::new();
    for number in 0..3 {
        let mut stream = real.connect();
        let session = server.open(now);
        // One of the three speaks RESP2.
        if number > 0 {
            stream.write_all(b"HELLO 3\r\nECHO sync\r\n").unwrap();
            read_to_sync(&mut stream);
            server.receive(session, b"HELLO 3\r\n", now);
            drop(server.output(session));
        }
        sessions.push((session, stream));
    }
    let (session, stream) = &mut sessions[0];
    stream.write_all(b"FLUSHALL\r\nSCRIPT FLUSH\r\nECHO sync\r\n").unwrap();
    read_to_sync(stream);
    server.receive(*session, b"FLUSHALL\r\n", now);
    drop(server.output(*session));

    let mut history = Vec::new();
    for number in 0..COMMANDS + sessions.len() {
        // In the end each is asked something, so that nothing is left unheard.
        let at = if number < COMMANDS { pick(&mut random, &[0, 1, 2]) } else { number - COMMANDS };
        let words =
            if number < COMMANDS { command(&mut random) } else { vec![b"ECHO".to_vec(), b"end".to_vec()] };
        let shown: Vec<String> = words.iter().map(|word| word.escape_ascii().to_string()).collect();
        history.push(format!("{at}: {}", shown.join(" ")));
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in &words {
            bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            bytes.extend_from_slice(word);
            bytes.extend_from_slice(b"\r\n");
        }
        server.receive(sessions[at].0, &bytes, now);
        sessions[at].1.write_all(&bytes).unwrap();
        for other in [at, (at + 1) % 3, (at + 2) % 3] {
            let (session, stream) = &mut sessions[other];
            let simulated = server.output(*session);
            let mut heard = vec![0; simulated.len()];
            let mut length = 0;
            while length < heard.len() {
                match stream.read(&mut heard[length..]) {
                    Ok(more) if more > 0 => length += more,
                    Ok(_) | Err(_) => break,
                }
            }
            heard.truncate(length);
            // Real time passes between two commands.
            let same = heard == simulated || (words[0] == b"PTTL" && heard.starts_with(b":") && length > 6);
            assert!(
                same,
                "seed {seed}, session {other}\nreal      {}\nsimulated {}\n{}",
                heard.escape_ascii(),
                simulated.escape_ascii(),
                history.join("\n")
            );
        }
    }
}

fn pick<T: Copy>(random: &mut Random, from: &[T]) -> T {
    from[usize::try_from(random.below(u64::try_from(from.len()).unwrap())).unwrap()]
}

/// A command that has something to do with locks, right or wrong, and whose answer does not depend on the millisecond.
fn command(random: &mut Random) -> Vec<Vec<u8>> {
    let any = &mut *random;
    let mut words: Vec<&str> = Vec::new();
    match any.below(22) {
        0..5 => {
            words.extend(["SET", key(any), value(any)]);
            for _ in 0..any.below(4) {
                match any.below(9) {
                    0 => words.push("NX"),
                    1 => words.push("xx"),
                    2 => words.push("GET"),
                    3 | 4 => words.extend(["PX", ttl(any)]),
                    5 => words.extend(["EX", ttl(any)]),
                    6 => words.push("KEEPTTL"),
                    7 => words.extend(["PXAT", pick(any, &["0", "4102444800000", "x"])]),
                    _ => words.extend(["IFEQ", value(any)]),
                }
            }
        }
        5 => words.extend(["GET", key(any)]),
        6 => words.extend(["DEL", key(any), key(any)]),
        7 => words.extend(["EXISTS", key(any), key(any)]),
        8 => words.extend([pick(any, &["TYPE", "PERSIST", "INCR", "PTTL"]), key(any)]),
        9 => {
            words.extend(["PEXPIRE", key(any), ttl(any)]);
            words.extend((0..any.below(3)).map(|_| pick(any, &["NX", "XX", "FOO"])));
        }
        10 => {
            let at: [&str; 7] = ["0", "-1", "-3", "5", "x", "1", "-100"];
            words.extend(["GETRANGE", key(any), pick(any, &at), pick(any, &at)]);
        }
        11 | 12 => {
            let scripts = [RELEASE, EXTEND, SET_ALL, EXTEND_ALL, RELEASE_ALL, PLAIN_RELEASE];
            words.extend(["EVAL", pick(any, &scripts)]);
            if any.below(2) == 0 {
                words.extend(["1", key(any)]);
            } else {
                words.extend(["2", key(any), key(any)]);
            }
            words.extend([value(any), ttl(any)]);
        }
        13 => {
            let count = pick(any, &["1", "1", "0", "9", "-1", "x"]);
            let sha = pick(any, &[PLAIN_RELEASE_SHA, "abc"]);
            words.extend(["EVALSHA", sha, count, key(any), value(any)]);
        }
        14 => {
            let mode = pick(any, &["OPTIN", "OPTIN", "OPTOUT", "NOLOOP", "BCAST", "FOO"]);
            words.extend(["CLIENT", "TRACKING", pick(any, &["ON", "ON", "OFF"]), mode]);
        }
        15 | 16 => words.extend(["CLIENT", "CACHING", pick(any, &["YES", "YES", "NO"])]),
        17 => words.extend(["SELECT", pick(any, &["0", "0", "0", "1", "16", "x"])]),
        18 => {
            let sub = pick(any, &["GETNAME", "SETNAME", "NOSUCH", "SETINFO"]);
            words.extend(["CLIENT", sub, value(any)]);
        }
        19 => {
            let name = pick(any, &["NOSUCH", "PING", "ECHO", "ROLE", "DELEX", "DELIFEQ"]);
            words.push(name);
            words.extend(
                [key(any), "IFEQ", value(any)].into_iter().take(usize::try_from(any.below(4)).unwrap()),
            );
        }
        20 => {
            let name = pick(any, &["maxmemory", "appendonly", "nosuch", "maxmemory-policy"]);
            words.extend(["CONFIG", "GET", name]);
        }
        _ => words.push(pick(any, &["FLUSHALL", "PING", "PING", "PING"])),
    }
    words.into_iter().map(|word| word.as_bytes().to_vec()).collect()
}

fn key(random: &mut Random) -> &'static str {
    pick(random, &["a", "", "long:key", "\0\r\n\u{fe}"])
}

fn value(random: &mut Random) -> &'static str {
    pick(random, &["x", "y", "", "123", "9223372036854775807"])
}

fn ttl(random: &mut Random) -> &'static str {
    let rare: [&str; 9] =
        ["0", "-1", "abc", "9223372036854775807", "", "+5", "1.5", "-9223372036854775808", "007"];
    if random.below(3) > 0 { pick(random, &["150000", "250000"]) } else { pick(random, &rare) }
}
