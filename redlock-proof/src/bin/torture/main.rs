//! `torture [--seconds N] [--servers redis|valkey|both] …`: real servers, real processes, real sockets, and everything that
//! can happen to them; ends with one line that a script can read.
//!
//! It starts servers of its own with an append-only file, so that one that is killed comes back with its locks; puts proxies
//! in front of them that delay, cut at any byte, fall silent, and deliver late what a dead connection held; and runs workers,
//! processes of all adapters, that want one lock in front of one file. Meanwhile it stops, kills, cuts and delays everyone.
//! What Redlock assumes is never broken: nodes remember what they granted, and clocks do not jump. So nobody may ever see two
//! holders at once, and that is judged from the file in the end.
#![forbid(unsafe_code)]

extern crate alloc;

mod chaos;
mod check;
mod clock;
mod options;
mod programs;
mod proxy;
mod record;
mod server;
mod story;
mod tail;
mod torture;
mod worker;
mod workers;

use options::{Options, USAGE};
use std::env;
use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = env::args().skip(1).peekable();
    match words.peek().map(String::as_str) {
        // What this program starts of itself.
        Some("serve") => complain(&server::become_server(words.skip(1)).to_string(), 69),
        Some("work") => worker::run(worker::Orders::parse(words.skip(1))),
        Some(_) | None => match Options::parse(words) {
            Ok(options) => torture::run(&options).unwrap_or_else(|error| complain(&error, 69)),
            Err(error) => complain(&format!("{error}\n{USAGE}"), 64),
        },
    }
}

fn complain(text: &str, code: u8) -> ExitCode {
    let _gone = writeln!(std::io::stderr(), "torture: {text}");
    ExitCode::from(code)
}
