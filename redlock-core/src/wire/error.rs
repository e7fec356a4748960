//! What a server said when it refused: the error line, its code, and what follows from it.

use alloc::format;
use alloc::string::{String, ToString as _};
use core::fmt;

use super::reply::push_escaped;

/// The most characters of a server's text that are kept; the longest useful one (`DENIED`) says all in its first line.
const MAX_TEXT: usize = 256;

/// The most bytes of a server's text that are looked at for it: four for each character.
const MAX_RAW: usize = 4 * MAX_TEXT;

/// What replaces a secret.
const REDACTED: &str = "[redacted]";

/// An error reply of a server: its code and its text.
///
/// The text is the server's, escaped where it is not printable, shortened, and without the arguments that an
/// `unknown command` error repeats: one of them would be the lock's token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    code: ErrorCode,
    in_script: bool,
    text: String,
}

/// What kind of refusal a [`ServerError`] is, by its first word, or by its text where that is only `ERR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ErrorCode {
    /// `NOAUTH`: a password is needed.
    Noauth,
    /// `WRONGPASS`, and the `ERR` forms that refuse credentials: wrong, or the server has none set.
    Wrongpass,
    /// `NOPERM`: the user's ACL lacks a right.
    Noperm,
    /// The `ERR` forms of an ACL failure inside a script: the same as [`Noperm`](Self::Noperm).
    ScriptAcl,
    /// `READONLY`: a replica.
    Readonly,
    /// `MASTERDOWN`: a replica that lost its primary.
    Masterdown,
    /// `LOADING`: the server is starting up.
    Loading,
    /// `BUSY`: a script blocks the server.
    Busy,
    /// `OOM`: `maxmemory` is reached.
    Oom,
    /// `MISCONF`: the server cannot persist and refuses writes.
    Misconf,
    /// `NOREPLICAS`: too few replicas are connected, writes are refused.
    Noreplicas,
    /// `CLUSTERDOWN`: a cluster member whose cluster is not up.
    Clusterdown,
    /// `MOVED`: a cluster member, and not the one for this key.
    Moved,
    /// `ASK`: a cluster member that is giving this key's slot away.
    Ask,
    /// `CROSSSLOT`: a cluster member, and keys of different slots.
    Crossslot,
    /// `TRYAGAIN`: a cluster member in the middle of a slot's migration.
    Tryagain,
    /// `NOSCRIPT`: the script is not in the server's cache.
    Noscript,
    /// `NOPROTO`: the server does not speak the protocol version that was asked for.
    Noproto,
    /// `WRONGTYPE`, and its `ERR` form for `DELEX`: the key is not a string.
    Wrongtype,
    /// `EXECABORT`: a transaction was not run.
    Execabort,
    /// `DENIED`: protected mode; sent without being asked, and the connection is closed.
    Denied,
    /// `ERR max number of clients reached`: sent without being asked, and the connection is closed.
    MaxClients,
    /// `ERR Protocol error`: the server could not read what it was sent, and the connection is closed.
    Protocol,
    /// `ERR unknown command`.
    UnknownCommand,
    /// `ERR unknown subcommand`.
    UnknownSubcommand,
    /// `ERR syntax error`.
    Syntax,
    /// `ERR wrong number of arguments`.
    WrongArity,
    /// `ERR invalid expire time`.
    InvalidExpire,
    /// Any other.
    Other,
}

impl ServerError {
    /// Reads an error line, without its `-` and its CRLF.
    pub(crate) fn parse(line: &[u8]) -> Self {
        let shown = cut_arguments(line);
        let head = shown.get(..MAX_RAW).unwrap_or(shown);
        let mut text = String::new();
        push_escaped(&mut text, head.trim_ascii_end());
        let old = old_script_error(&text);
        let code = old.unwrap_or_else(|| classify(&text));
        let in_script = old.is_some() || has_script_suffix(shown);
        if head.len() < shown.len() || text.chars().count() > MAX_TEXT {
            text = text.chars().take(MAX_TEXT - 1).collect();
            text.push('…');
        }
        Self { code, in_script, text }
    }

    /// What kind of refusal it is.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        self.code
    }

    /// What the server said, its first word included.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the error arose inside a script. Scripts do not roll back, so that part of it may have been done.
    #[must_use]
    pub const fn in_script(&self) -> bool {
        self.in_script
    }

    /// Whether asking the same node again is of no use until someone changes its configuration (R9): a missing right
    /// or password, a replica, a cluster member, a server that does not know the command.
    ///
    /// `CLUSTERDOWN` and `TRYAGAIN` are not among them, since they name a state that passes, and neither is `NOPROTO`,
    /// after which RESP2 is spoken.
    #[must_use]
    pub const fn is_fatal(&self) -> bool {
        matches!(
            self.code,
            ErrorCode::Noauth
                | ErrorCode::Wrongpass
                | ErrorCode::Noperm
                | ErrorCode::ScriptAcl
                | ErrorCode::Readonly
                | ErrorCode::Masterdown
                | ErrorCode::Moved
                | ErrorCode::Ask
                | ErrorCode::Crossslot
                | ErrorCode::UnknownCommand
        )
    }

    /// Whether it is certain that nothing was done (R4): the error of a native command, or of a script as a whole.
    #[must_use]
    pub const fn is_not_applied(&self) -> bool {
        !self.in_script
    }

    /// Whether the node's data may have been replaced behind the connection, so that it has to be made anew (R23).
    #[must_use]
    pub const fn replaces_data(&self) -> bool {
        matches!(self.code, ErrorCode::Readonly | ErrorCode::Masterdown | ErrorCode::Loading)
    }

    /// Whether the server closes the connection after it. Such an error answers no request.
    #[must_use]
    pub const fn closes_connection(&self) -> bool {
        matches!(self.code, ErrorCode::MaxClients | ErrorCode::Denied | ErrorCode::Protocol)
    }

    /// The right that the node's user lacks, as an ACL rule where the server named the command (`` `+del` ``), else in
    /// words; `None` where no right is missing or the server does not say which.
    #[must_use]
    pub fn missing_right(&self) -> Option<String> {
        if !self.lacks_right() {
            return None;
        }
        if let Some(command) = self.command() {
            return Some(format!("`+{command}`"));
        }
        if self.text.contains(" key") {
            return Some("access to the key (`~pattern`)".to_string());
        }
        let script = "a command that the script runs (`+get`, `+set`, `+exists`, `+del`, `+pexpire`)";
        (self.code == ErrorCode::ScriptAcl).then(|| script.to_string())
    }

    /// Whether a refusal for lack of a right speaks of the command, and not of a key.
    pub(crate) fn names_command(&self) -> bool {
        self.command().is_some()
    }

    fn command(&self) -> Option<&str> {
        let (_, rest) = self.text.split_once("to run the '")?;
        Some(rest.split_once('\'')?.0)
    }

    const fn lacks_right(&self) -> bool {
        matches!(self.code, ErrorCode::Noperm | ErrorCode::ScriptAcl)
    }

    /// Blanks every one of `secrets` that the text repeats (R26).
    pub(crate) fn redact(&mut self, secrets: &[&[u8]]) {
        for secret in secrets {
            let mut shown = String::new();
            push_escaped(&mut shown, secret);
            if shown.is_empty() {
                continue;
            }
            if self.text.contains(&shown) {
                self.text = self.text.replace(&shown, REDACTED);
            }
            self.redact_cut(&shown);
        }
    }

    /// Blanks the beginning of a secret that the shortening cut in two.
    fn redact_cut(&mut self, shown: &str) {
        let Some(kept) = self.text.strip_suffix('…') else {
            return;
        };
        let cut = (4..shown.len()).rev().find_map(|end| kept.strip_suffix(shown.get(..end)?));
        if let Some(rest) = cut {
            self.text = format!("{rest}{REDACTED}…");
        }
    }
}

/// The server's text, and in brackets what it means.
impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        if let Some(right) = self.missing_right() {
            return write!(f, " (the ACL of this user lacks a right: {right})");
        }
        match hint(self.code) {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl core::error::Error for ServerError {}

const fn hint(code: ErrorCode) -> Option<&'static str> {
    match code {
        ErrorCode::Noauth => Some("a password is needed"),
        ErrorCode::Wrongpass => Some("the server refuses the user name or the password"),
        ErrorCode::Readonly | ErrorCode::Masterdown => Some("you are talking to a replica"),
        ErrorCode::Loading => Some("the server is starting up"),
        ErrorCode::Busy => Some("a script blocks the server"),
        ErrorCode::Oom => Some("the server is out of memory"),
        ErrorCode::Misconf => Some("the server cannot persist and refuses writes"),
        ErrorCode::Noreplicas => Some("the server refuses writes until more replicas are connected"),
        ErrorCode::Clusterdown
        | ErrorCode::Moved
        | ErrorCode::Ask
        | ErrorCode::Crossslot
        | ErrorCode::Tryagain => Some("a cluster member: locks need independent nodes"),
        ErrorCode::Denied => {
            Some("protected mode: the server takes no connections from here without a password")
        }
        ErrorCode::MaxClients => Some("the server has no connection left"),
        ErrorCode::Protocol => Some("the server could not read the request"),
        ErrorCode::UnknownCommand | ErrorCode::UnknownSubcommand => Some("the server does not know it"),
        ErrorCode::Noperm | ErrorCode::ScriptAcl => Some("the ACL of this user lacks a right"),
        ErrorCode::Noscript
        | ErrorCode::Noproto
        | ErrorCode::Wrongtype
        | ErrorCode::Execabort
        | ErrorCode::Syntax
        | ErrorCode::WrongArity
        | ErrorCode::InvalidExpire
        | ErrorCode::Other => None,
    }
}

fn classify(text: &str) -> ErrorCode {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    match word {
        "NOAUTH" => ErrorCode::Noauth,
        "WRONGPASS" => ErrorCode::Wrongpass,
        "NOPERM" => ErrorCode::Noperm,
        "READONLY" => ErrorCode::Readonly,
        "MASTERDOWN" => ErrorCode::Masterdown,
        "LOADING" => ErrorCode::Loading,
        "BUSY" => ErrorCode::Busy,
        "OOM" => ErrorCode::Oom,
        "MISCONF" => ErrorCode::Misconf,
        "NOREPLICAS" => ErrorCode::Noreplicas,
        "CLUSTERDOWN" => ErrorCode::Clusterdown,
        "MOVED" => ErrorCode::Moved,
        "ASK" => ErrorCode::Ask,
        "CROSSSLOT" => ErrorCode::Crossslot,
        "TRYAGAIN" => ErrorCode::Tryagain,
        "NOSCRIPT" => ErrorCode::Noscript,
        "NOPROTO" => ErrorCode::Noproto,
        "WRONGTYPE" => ErrorCode::Wrongtype,
        "EXECABORT" => ErrorCode::Execabort,
        "DENIED" => ErrorCode::Denied,
        "ERR" => classify_by_text(rest),
        _ => ErrorCode::Other,
    }
}

/// Servers say so much by text only; the list is that of the texts on which something depends.
fn classify_by_text(rest: &str) -> ErrorCode {
    const TEXTS: [(&str, ErrorCode); 14] = [
        ("unknown command", ErrorCode::UnknownCommand),
        ("unknown redis command called from", ErrorCode::UnknownCommand),
        ("unknown subcommand", ErrorCode::UnknownSubcommand),
        ("syntax error", ErrorCode::Syntax),
        ("wrong number of arg", ErrorCode::WrongArity),
        ("invalid expire", ErrorCode::InvalidExpire),
        ("acl failure in script", ErrorCode::ScriptAcl),
        ("the user executing the script can't", ErrorCode::ScriptAcl),
        ("max number of clients", ErrorCode::MaxClients),
        ("protocol error", ErrorCode::Protocol),
        ("key should be of string type", ErrorCode::Wrongtype),
        // Before version 6 credentials had no code of their own.
        ("invalid password", ErrorCode::Wrongpass),
        ("auth <password> called without any password", ErrorCode::Wrongpass),
        ("client sent auth, but no password is set", ErrorCode::Wrongpass),
    ];
    let starts =
        |prefix: &str| rest.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix));
    TEXTS.iter().find(|(prefix, _)| starts(prefix)).map_or(ErrorCode::Other, |(_, code)| *code)
}

/// Cuts off the arguments that `unknown command 'X', with args beginning with: …` repeats.
fn cut_arguments(line: &[u8]) -> &[u8] {
    const ECHO: &[u8] = b", with args";
    let echo = line.windows(ECHO.len()).take(MAX_RAW).position(|window| window == ECHO);
    echo.and_then(|at| line.get(..at)).unwrap_or(line)
}

/// Whether a line ends in what servers add to an error inside a script: ` script: <sha>, on @user_script:1.`, or
/// without the sha.
fn has_script_suffix(line: &[u8]) -> bool {
    const MARK: &[u8] = b" script: ";
    let tail = line.len().checked_sub(128).and_then(|from| line.get(from..)).unwrap_or(line);
    let Some(mark) = tail.windows(MARK.len()).rposition(|window| window == MARK) else {
        return false;
    };
    let place = tail.get(mark + MARK.len()..).unwrap_or_default();
    let place = match place.iter().position(|byte| !byte.is_ascii_hexdigit()) {
        Some(sha @ 1..) => place.get(sha..).and_then(|rest| rest.strip_prefix(b", ")).unwrap_or(place),
        Some(0) | None => place,
    };
    place.starts_with(b"on @")
}

/// Before version 7 an error inside a script was wrapped: `ERR Error running script (call to f_<sha>): @user_script:1:
/// -READONLY You can't …`, or without a code inside. Answers the code of the error inside.
fn old_script_error(text: &str) -> Option<ErrorCode> {
    const PLACE: &str = "@user_script";
    let rest = text.strip_prefix("ERR Error running script")?;
    let starts_code = |at: usize| rest.as_bytes().get(at + 2).is_some_and(u8::is_ascii_uppercase);
    if let Some((at, _)) = rest.match_indices(" -").find(|(at, _)| starts_code(*at)) {
        return Some(classify(rest.get(at + 2..).unwrap_or_default()));
    }
    // The place comes once or twice: `@user_script:1: @user_script: 1: `.
    let inner = rest.rfind(PLACE).and_then(|at| rest.get(at + PLACE.len()..)).unwrap_or(rest);
    Some(classify_by_text(inner.trim_start_matches(|c: char| c == ':' || c == ' ' || c.is_ascii_digit())))
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
