//! The request side of the protocol: multibulk and inline requests, with servers' limits and errors.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::mem;

use super::reply::parse_integer;

/// The longest inline request, and the longest header of a multibulk one.
const MAX_LINE: usize = 64 * 1024;
/// `proto-max-bulk-len`.
const MAX_BULK: i64 = 512 * 1024 * 1024;
/// The most arguments, and the longest one, before authentication.
const MAX_UNAUTHENTICATED_ARGS: i64 = 10;
const MAX_UNAUTHENTICATED_BULK: i64 = 16 * 1024;

/// Cuts what a client sends into requests, however the bytes were split on the way.
#[derive(Debug)]
pub(super) struct RequestParser {
    buffer: Vec<u8>,
    /// How much of the buffer is used up.
    at: usize,
    /// Arguments of the request that is being read which are still to come; 0 between requests.
    missing: u64,
    /// The length of the argument that is being read.
    bulk: Option<usize>,
    args: Vec<Vec<u8>>,
}

/// What the bytes so far hold.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    Request(Vec<Vec<u8>>),
    Incomplete,
    /// The connection is beyond repair: this error, then close.
    Broken(String),
    /// The cross-protocol guard: close without a word.
    Hostile,
}

/// What the parser has to know about its session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strictness {
    pub(super) authenticated: bool,
    /// Whether the two bytes after an argument are looked at.
    pub(super) checks_line_ends: bool,
}

impl RequestParser {
    pub(super) const fn new() -> Self {
        Self { buffer: Vec::new(), at: 0, missing: 0, bulk: None, args: Vec::new() }
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    pub(super) fn next(&mut self, strictness: Strictness) -> Parsed {
        let parsed = self.parse(strictness);
        if parsed == Parsed::Incomplete {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        parsed
    }

    fn parse(&mut self, strictness: Strictness) -> Parsed {
        loop {
            if self.missing == 0 {
                let Some(first) = self.rest().first() else { return Parsed::Incomplete };
                let step = if *first == b'*' { self.multibulk_header(strictness) } else { self.inline() };
                match step {
                    Step::Done(parsed) => return parsed,
                    Step::Again => continue,
                }
            }
            match self.argument(strictness) {
                Step::Done(parsed) => return parsed,
                Step::Again => {
                    if self.missing == 0 {
                        return Parsed::Request(mem::take(&mut self.args));
                    }
                }
            }
        }
    }

    fn rest(&self) -> &[u8] {
        self.buffer.get(self.at..).unwrap_or_default()
    }

    /// The number on the line up to the next `\r`, which is taken together with the byte behind it: `None` if it has not
    /// come, `Some(None)` if it is no number.
    fn header(&mut self) -> Option<Option<i64>> {
        let rest = self.rest();
        let length = rest.iter().position(|byte| *byte == b'\r')?;
        if rest.len() < length.saturating_add(2) {
            return None;
        }
        let number = parse_integer(rest.get(1..length).unwrap_or_default());
        self.at = self.at.saturating_add(length).saturating_add(2);
        Some(number)
    }

    fn multibulk_header(&mut self, strictness: Strictness) -> Step {
        let waiting = self.rest().len();
        let Some(number) = self.header() else {
            return if waiting > MAX_LINE {
                broken("too big mbulk count string")
            } else {
                Step::Done(Parsed::Incomplete)
            };
        };
        match number {
            Some(count) if count <= i64::from(i32::MAX) => {
                if count > MAX_UNAUTHENTICATED_ARGS && !strictness.authenticated {
                    return broken("unauthenticated multibulk length");
                }
                self.missing = u64::try_from(count).unwrap_or(0);
                Step::Again
            }
            Some(_) | None => broken("invalid multibulk length"),
        }
    }

    fn argument(&mut self, strictness: Strictness) -> Step {
        let length = match self.bulk {
            Some(length) => length,
            None => match self.bulk_header(strictness) {
                Ok(Some(length)) => length,
                Ok(None) => return Step::Done(Parsed::Incomplete),
                Err(text) => return broken(&text),
            },
        };
        self.bulk = Some(length);
        let rest = self.rest();
        let Some(line_end) = rest.get(length..length.saturating_add(2)) else {
            return Step::Done(Parsed::Incomplete);
        };
        if strictness.checks_line_ends && line_end != b"\r\n" {
            return broken("invalid CRLF in request");
        }
        let argument = rest.get(..length).unwrap_or_default().to_vec();
        self.args.push(argument);
        self.at = self.at.saturating_add(length).saturating_add(2);
        self.bulk = None;
        self.missing = self.missing.saturating_sub(1);
        Step::Again
    }

    fn bulk_header(&mut self, strictness: Strictness) -> Result<Option<usize>, String> {
        let Some(first) = self.rest().first().copied() else { return Ok(None) };
        let waiting = self.rest().len();
        if !self.rest().contains(&b'\r') {
            return if waiting > MAX_LINE { Err("too big bulk count string".into()) } else { Ok(None) };
        }
        if first != b'$' {
            return Err(format!("expected '$', got '{}'", char::from(first)));
        }
        let Some(number) = self.header() else { return Ok(None) };
        match number {
            Some(length) if (0..=MAX_BULK).contains(&length) => {
                if length > MAX_UNAUTHENTICATED_BULK && !strictness.authenticated {
                    return Err("unauthenticated bulk length".into());
                }
                Ok(usize::try_from(length).ok())
            }
            Some(_) | None => Err("invalid bulk length".into()),
        }
    }

    fn inline(&mut self) -> Step {
        let rest = self.rest();
        let Some(length) = rest.iter().position(|byte| *byte == b'\n') else {
            return if rest.len() > MAX_LINE {
                broken("too big inline request")
            } else {
                Step::Done(Parsed::Incomplete)
            };
        };
        let line = rest.get(..length).unwrap_or_default();
        let words = split_words(line.strip_suffix(b"\r").unwrap_or(line));
        self.at = self.at.saturating_add(length).saturating_add(1);
        let Some(words) = words else { return broken("unbalanced quotes in request") };
        let Some(first) = words.first() else { return Step::Again };
        if first.eq_ignore_ascii_case(b"POST") || first.eq_ignore_ascii_case(b"Host:") {
            return Step::Done(Parsed::Hostile);
        }
        Step::Done(Parsed::Request(words))
    }
}

enum Step {
    Done(Parsed),
    Again,
}

fn broken(text: &str) -> Step {
    Step::Done(Parsed::Broken(format!("ERR Protocol error: {text}")))
}

/// The words of an inline request; `None` where a quote is left open or something sticks to a closing one.
fn split_words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut bytes = line.iter().copied().peekable();
    loop {
        while bytes.next_if(u8::is_ascii_whitespace).is_some() {}
        if bytes.peek().is_none() {
            return Some(words);
        }
        let mut word = Vec::new();
        while let Some(byte) = bytes.next_if(|byte| !byte.is_ascii_whitespace()) {
            if !matches!(byte, b'"' | b'\'') {
                word.push(byte);
                continue;
            }
            loop {
                match bytes.next()? {
                    end if end == byte => break,
                    b'\\' if byte == b'"' => word.push(match bytes.next()? {
                        b'n' => b'\n',
                        b'r' => b'\r',
                        b't' => b'\t',
                        b'x' => {
                            let digits = [bytes.next()?, bytes.next()?];
                            u8::from_str_radix(core::str::from_utf8(&digits).ok()?, 16).ok()?
                        }
                        other => other,
                    }),
                    other => word.push(other),
                }
            }
            if bytes.peek().is_some_and(|next| !next.is_ascii_whitespace()) {
                return None;
            }
        }
        words.push(word);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    const LAX: Strictness = Strictness { authenticated: true, checks_line_ends: false };

    #[test]
    fn any_split_of_the_bytes_gives_the_same_requests() {
        let bytes = b"*2\r\n$3\r\nGET\r\n$5\r\na\r\nb\0\r\nPING\r\n\r\n*0\r\n*-1\r\n*1\r\n$0\r\n\r\n";
        let whole = requests([bytes.as_slice()]);
        assert_eq!(
            whole,
            [vec![b"GET".to_vec(), b"a\r\nb\0".to_vec()], vec![b"PING".to_vec()], vec![Vec::new()]]
        );
        for cut in 0..bytes.len() {
            let (left, right) = bytes.split_at(cut);
            assert_eq!(requests([left, right]), whole, "cut at {cut}");
        }
        assert_eq!(requests(bytes.chunks(1)), whole);
    }

    fn requests<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Vec<Vec<u8>>> {
        let mut parser = RequestParser::new();
        let mut requests = Vec::new();
        for piece in pieces {
            parser.feed(piece);
            loop {
                match parser.next(LAX) {
                    Parsed::Request(request) => requests.push(request),
                    Parsed::Incomplete => break,
                    other @ (Parsed::Broken(_) | Parsed::Hostile) => panic!("{other:?}"),
                }
            }
        }
        requests
    }
}
