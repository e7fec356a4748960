//! What the command prints. Everything goes through here, so that nothing else in it touches the standard streams.
//!
//! A reader that is gone is no reason to stop: a lock is held, and its command runs on.

use core::fmt;
use std::io::{self, IsTerminal as _, Write as _};

/// One line about what the command itself does, on standard error: `redlock: …`.
pub(crate) fn say(message: impl fmt::Display) {
    // In one write, so that lines of several processes do not mix.
    let line = format!("redlock: {message}\n");
    drop(io::stderr().lock().write_all(line.as_bytes()));
}

/// Text as it is on standard output, flushed.
pub(crate) fn print(text: &str) {
    let mut stdout = io::stdout().lock();
    drop(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()));
}

/// Whether somebody looks at standard error.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// A question on standard error; what is typed after it.
pub(crate) fn ask(question: impl fmt::Display) -> String {
    drop(io::stderr().lock().write_all(format!("redlock: {question} ").as_bytes()));
    let mut answer = String::new();
    // Without an answer, or one that is no text, nothing was confirmed.
    let _length = io::stdin().read_line(&mut answer);
    answer
}

/// Whether somebody can be asked: there is a terminal to type on, and one to read the question from.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether standard output is a terminal, where lines can be drawn anew.
pub(crate) fn is_screen() -> bool {
    io::stdout().is_terminal()
}
