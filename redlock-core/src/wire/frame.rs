//! Where a frame ends: the scan that runs before the decoder (R21).
//!
//! `redis-protocol` recurses without a bound, believes any length, parses from the start again whenever a byte is
//! missing, and skips the two bytes after a string unseen. This scan has none of that: it walks each byte once, keeps
//! its place between calls, nests in a small array, and lets through only frames that are complete, small and spelled
//! as servers spell them.

use super::violation::{Excerpt, Violation};

/// The longest frame. What we ask for answers in a few bytes, `INFO` in a few kilobytes; an invalidation carries a key
/// of up to 64 KiB.
pub(crate) const MAX_FRAME: usize = 128 * 1024;

/// The deepest nesting of aggregates. `HELLO` needs three: map, modules, module.
pub(crate) const MAX_DEPTH: usize = 8;

/// The most elements of one frame, on all levels together. `HELLO` has some ten and eight for each module; each costs
/// some hundred bytes of memory when decoded.
pub(crate) const MAX_ELEMENTS: u32 = 1024;

/// The longest line that holds a number, its type byte included: 20 characters of an `i64`, some 25 of a double.
const MAX_NUMBER_LINE: usize = 40;

/// Which frames a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// `HELLO 3` was sent and not answered yet: success is a map, and all that follows RESP3; anything else means
    /// that the connection stays with RESP2.
    Negotiating,
    /// RESP2.
    Resp2,
    /// RESP3.
    Resp3,
}

/// The extent of one complete frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Its length in bytes.
    pub(crate) len: usize,
    /// Its type byte.
    pub(crate) kind: u8,
    /// The protocol by which it is to be decoded, never [`Protocol::Negotiating`].
    pub(crate) protocol: Protocol,
}

/// Finds the end of one frame in a buffer that grows.
#[derive(Clone, Debug)]
pub(crate) struct Scanner {
    /// The protocol by which the frame is read; resolved from its first byte while negotiating.
    protocol: Protocol,
    /// Where the element in hand begins.
    start: usize,
    /// Up to where its line was searched for an end.
    searched: usize,
    /// The end of the string whose line was read, before its CRLF.
    body_end: Option<usize>,
    levels: [Level; MAX_DEPTH],
    depth: usize,
    elements: u32,
}

/// An aggregate whose elements are being read.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    remaining: u32,
    /// An attribute is no element: it belongs to the one that follows it.
    attribute: bool,
}

/// What one line means for the scan.
enum Line {
    /// The element is complete.
    Scalar,
    /// A string of so many bytes follows.
    Body(usize),
    /// So many elements follow.
    Aggregate(u32),
}

impl Scanner {
    /// A scan from the beginning of a frame.
    pub(crate) const fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            start: 0,
            searched: 0,
            body_end: None,
            levels: [Level { remaining: 0, attribute: false }; MAX_DEPTH],
            depth: 0,
            elements: 0,
        }
    }

    /// The first frame of `buffer`, or `None` where its end has not arrived. The next call must be given the same
    /// bytes and more.
    pub(crate) fn scan(&mut self, buffer: &[u8]) -> Result<Option<Frame>, Violation> {
        // Beyond the cap nothing counts, so that a line without an end is found out there.
        let capped = buffer.get(..MAX_FRAME).unwrap_or(buffer);
        let Some(&kind) = capped.first() else {
            return Ok(None);
        };
        if self.protocol == Protocol::Negotiating {
            self.protocol =
                if matches!(kind, b'%' | b'|' | b'>') { Protocol::Resp3 } else { Protocol::Resp2 };
        }
        match self.walk(capped)? {
            Some(len) => Ok(Some(Frame { len, kind, protocol: self.protocol })),
            None if capped.len() >= MAX_FRAME => Err(Violation::TooLong),
            None => Ok(None),
        }
    }

    fn walk(&mut self, buffer: &[u8]) -> Result<Option<usize>, Violation> {
        loop {
            let end = if let Some(end) = self.body_end {
                match check_line_end(buffer, end)? {
                    Some(end) => end,
                    None => return Ok(None),
                }
            } else {
                let Some((line, end)) = self.line(buffer)? else {
                    return Ok(None);
                };
                match line {
                    Line::Scalar => end,
                    Line::Body(len) => {
                        let body_end = end.saturating_add(len);
                        if body_end.saturating_add(2) > MAX_FRAME {
                            return Err(Violation::TooLong);
                        }
                        self.body_end = Some(body_end);
                        continue;
                    }
                    Line::Aggregate(count) => {
                        let attribute = buffer.get(self.start) == Some(&b'|');
                        self.open(count, attribute)?;
                        end
                    }
                }
            };
            // Verbatim strings begin with three letters and a colon; the decoder skips the colon unseen.
            if self.body_end.is_some() {
                self.check_verbatim(buffer)?;
            }
            self.body_end = None;
            self.start = end;
            self.searched = end;
            if self.close() {
                return Ok(Some(end));
            }
        }
    }

    /// Begins an aggregate of `count` elements.
    fn open(&mut self, count: u32, attribute: bool) -> Result<(), Violation> {
        self.elements = self.elements.saturating_add(count);
        if self.elements > MAX_ELEMENTS {
            return Err(Violation::TooManyElements);
        }
        let Some(level) = self.levels.get_mut(self.depth) else {
            return Err(Violation::TooDeep);
        };
        // One more than its elements: the step that follows takes the line itself off.
        *level = Level { remaining: count.saturating_add(1), attribute };
        self.depth += 1;
        Ok(())
    }

    /// Counts one element that is complete, and with it every aggregate that it completes; true at the frame's end.
    fn close(&mut self) -> bool {
        while let Some(level) = self.depth.checked_sub(1).and_then(|top| self.levels.get_mut(top)) {
            level.remaining = level.remaining.saturating_sub(1);
            if level.remaining > 0 {
                return false;
            }
            self.depth -= 1;
            if level.attribute && self.depth > 0 {
                return false;
            }
        }
        true
    }

    /// The line of the element in hand and where it ends.
    fn line(&mut self, buffer: &[u8]) -> Result<Option<(Line, usize)>, Violation> {
        let rest = buffer.get(self.start..).unwrap_or_default();
        let Some(&kind) = rest.first() else {
            return Ok(None);
        };
        self.check_kind(kind, rest)?;
        let from = self.searched.max(self.start + 1);
        let unseen = buffer.get(from..).unwrap_or_default();
        let found = unseen.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        self.searched = found.map_or(buffer.len(), |at| from + at);
        if is_number(kind) && self.searched - self.start > MAX_NUMBER_LINE {
            return Err(Violation::BadNumber(Excerpt::of(rest)));
        }
        if found.is_none() {
            return Ok(None);
        }
        let Some(end) = check_line_end(buffer, self.searched)? else {
            return Ok(None);
        };
        let text = buffer.get(self.start + 1..self.searched).unwrap_or_default();
        let line = self.read(kind, text, rest)?;
        Ok(Some((line, end)))
    }

    /// Whether `kind` is a type of the protocol, at this place.
    fn check_kind(&self, kind: u8, rest: &[u8]) -> Result<(), Violation> {
        match kind {
            b'+' | b'-' | b':' | b'$' | b'*' => Ok(()),
            b'>' if self.protocol == Protocol::Resp3 && self.depth > 0 => Err(Violation::NestedPush),
            b'_' | b'#' | b',' | b'(' | b'!' | b'=' | b'%' | b'~' | b'|' | b'>'
                if self.protocol == Protocol::Resp3 =>
            {
                Ok(())
            }
            b';' | b'.' if self.protocol == Protocol::Resp3 => Err(Violation::Streamed),
            _ => Err(Violation::UnknownType(Excerpt::of(rest))),
        }
    }

    fn read(&self, kind: u8, text: &[u8], rest: &[u8]) -> Result<Line, Violation> {
        let excerpt = || Excerpt::of(rest);
        match kind {
            b'$' | b'*' if text == b"-1" && self.protocol == Protocol::Resp2 => Ok(Line::Scalar),
            b'$' | b'*' | b'%' | b'~' | b'>' | b'=' | b'!' if text == b"?" => Err(Violation::Streamed),
            b'$' | b'=' | b'!' => {
                let len = number(text).ok_or_else(|| Violation::BadNumber(excerpt()))?;
                // Any length that does not fit is as much too long as one that just does not.
                Ok(Line::Body(usize::try_from(len).unwrap_or(usize::MAX)))
            }
            b'*' | b'~' | b'>' | b'%' | b'|' => {
                let count = number(text).ok_or_else(|| Violation::BadNumber(excerpt()))?;
                let count = if matches!(kind, b'%' | b'|') { count.saturating_mul(2) } else { count };
                Ok(Line::Aggregate(u32::try_from(count).unwrap_or(u32::MAX)))
            }
            b':' if !is_integer(text) => Err(Violation::BadNumber(excerpt())),
            b'(' if !is_big_number(text) => Err(Violation::BadNumber(excerpt())),
            b',' if text.is_empty() => Err(Violation::BadNumber(excerpt())),
            b'_' if !text.is_empty() => Err(Violation::Malformed(excerpt())),
            b'#' if text != b"t" && text != b"f" => Err(Violation::Malformed(excerpt())),
            _ => Ok(Line::Scalar),
        }
    }

    fn check_verbatim(&self, buffer: &[u8]) -> Result<(), Violation> {
        let rest = buffer.get(self.start..).unwrap_or_default();
        if rest.first() != Some(&b'=') {
            return Ok(());
        }
        let body = self.searched.saturating_add(2);
        let end = self.body_end.unwrap_or(body);
        match buffer.get(body..end) {
            Some([_, _, _, b':', ..]) => Ok(()),
            _ => Err(Violation::Malformed(Excerpt::of(rest))),
        }
    }
}

/// Checks that CR LF is at `at`: the place behind it, or `None` where it has not arrived.
fn check_line_end(buffer: &[u8], at: usize) -> Result<Option<usize>, Violation> {
    match buffer.get(at..).unwrap_or_default() {
        [] | [b'\r'] => Ok(None),
        [b'\r', b'\n', ..] => Ok(Some(at + 2)),
        rest => Err(Violation::BadLineEnd(Excerpt::of(rest))),
    }
}

/// Types whose line is a number and therefore short.
const fn is_number(kind: u8) -> bool {
    !matches!(kind, b'+' | b'-' | b'(')
}

/// A length or count: digits alone, no needless zeros; `u64::MAX` stands for all that is larger.
fn number(text: &[u8]) -> Option<u64> {
    if !is_digits(text) {
        return None;
    }
    let value = text.iter().fold(0_u64, |value, digit| {
        value.saturating_mul(10).saturating_add(u64::from(digit.saturating_sub(b'0')))
    });
    Some(value)
}

/// An `i64` as servers print it: the decoder would also take `+1` and `007`.
fn is_integer(text: &[u8]) -> bool {
    let in_range = core::str::from_utf8(text).is_ok_and(|text| text.parse::<i64>().is_ok());
    in_range && is_big_number(text)
}

fn is_big_number(text: &[u8]) -> bool {
    match text.strip_prefix(b"-") {
        Some(digits) => is_digits(digits) && digits != b"0",
        None => is_digits(text),
    }
}

fn is_digits(text: &[u8]) -> bool {
    match text {
        [] => false,
        [b'0', _, ..] => false,
        digits => digits.iter().all(u8::is_ascii_digit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn scan(protocol: Protocol, bytes: &[u8]) -> Result<Option<usize>, Violation> {
        Scanner::new(protocol).scan(bytes).map(|frame| frame.map(|frame| frame.len))
    }

    fn whole(protocol: Protocol, bytes: &[u8]) {
        assert_eq!(scan(protocol, bytes), Ok(Some(bytes.len())), "{}", bytes.escape_ascii());
        let mut scanner = Scanner::new(protocol);
        for end in 0..bytes.len() {
            assert_eq!(scanner.scan(&bytes[..end]), Ok(None), "{} at {end}", bytes.escape_ascii());
        }
        assert_eq!(scanner.scan(bytes).unwrap().unwrap().len, bytes.len());
    }

    #[test]
    fn whole_frames_of_each_protocol() {
        for frame in [
            &b"+OK\r\n"[..],
            b"+\r\n",
            b"-ERR \0\xff bad\r\n",
            b":0\r\n",
            b":-9223372036854775808\r\n",
            b"$0\r\n\r\n",
            b"$5\r\na\r\nb\0\r\n",
            b"*0\r\n",
            b"*2\r\n*1\r\n:1\r\n$1\r\nx\r\n",
        ] {
            whole(Protocol::Resp2, frame);
            whole(Protocol::Resp3, frame);
        }
        whole(Protocol::Resp2, b"$-1\r\n");
        whole(Protocol::Resp2, b"*-1\r\n");
        for frame in [
            &b"_\r\n"[..],
            b"#t\r\n",
            b"#f\r\n",
            b",1.5e-7\r\n",
            b",inf\r\n",
            b"(-123456789012345678901234567890\r\n",
            b"!5\r\nERR x\r\n",
            b"=7\r\ntxt:a\r\n\r\n",
            b"%2\r\n+a\r\n:1\r\n+b\r\n*0\r\n",
            b"%0\r\n",
            b"~1\r\n:1\r\n",
            b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n",
            b"|1\r\n+a\r\n+b\r\n",
            b"|0\r\n",
            b"*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n|0\r\n:2\r\n",
        ] {
            whole(Protocol::Resp3, frame);
        }
    }

    #[test]
    fn the_first_frame_ends_where_the_next_begins() {
        assert_eq!(scan(Protocol::Resp2, b"+OK\r\n:1\r\n"), Ok(Some(5)));
        assert_eq!(scan(Protocol::Resp3, b"|1\r\n+a\r\n+b\r\n+OK\r\n"), Ok(Some(12)));
    }

    #[test]
    fn negotiating_takes_either_protocol_by_the_first_byte() {
        let frame = Scanner::new(Protocol::Negotiating).scan(b"%1\r\n+a\r\n_\r\n").unwrap().unwrap();
        assert_eq!(frame.protocol, Protocol::Resp3);
        let frame = Scanner::new(Protocol::Negotiating).scan(b"-NOPROTO x\r\n").unwrap().unwrap();
        assert_eq!(frame.protocol, Protocol::Resp2);
        assert_eq!(scan(Protocol::Negotiating, b"*1\r\n$-1\r\n"), Ok(Some(9)));
        assert!(matches!(scan(Protocol::Negotiating, b"_\r\n"), Err(Violation::UnknownType(_))));
    }

    #[test]
    fn numbers_are_as_servers_print_them() {
        for bad in [
            ":+1",
            ":-0",
            ":007",
            ":",
            ":1 ",
            ": 1",
            ":9223372036854775808",
            ":1e3",
            "$+1",
            "$01",
            "$",
            "*x",
            "$-2",
        ] {
            for protocol in [Protocol::Resp2, Protocol::Resp3] {
                let bytes = [bad.as_bytes(), b"\r\n"].concat();
                assert!(matches!(scan(protocol, &bytes), Err(Violation::BadNumber(_))), "{bad}");
            }
        }
        for bad in ["$-1", "*-1", "%-1", ",", "(1.5", "(", "(--1"] {
            let bytes = [bad.as_bytes(), b"\r\n"].concat();
            assert!(matches!(scan(Protocol::Resp3, &bytes), Err(Violation::BadNumber(_))), "{bad}");
        }
    }

    #[test]
    fn each_protocol_has_its_own_types_only() {
        for bytes in [
            &b"_\r\n"[..],
            b"#t\r\n",
            b",1\r\n",
            b"(1\r\n",
            b"!1\r\n",
            b"=1\r\n",
            b"%0\r\n",
            b"~0\r\n",
            b">0\r\n",
            b"|0\r\n",
        ] {
            assert!(matches!(scan(Protocol::Resp2, bytes), Err(Violation::UnknownType(_))));
        }
        for bytes in [&b"HELLO 3\r\n"[..], b"x", b"\r\n", b"\0", b"\x15\x03\x01"] {
            assert!(matches!(scan(Protocol::Resp2, bytes), Err(Violation::UnknownType(_))));
            assert!(matches!(scan(Protocol::Resp3, bytes), Err(Violation::UnknownType(_))));
        }
        for bytes in [&b"$?\r\n"[..], b"*?\r\n", b"%?\r\n", b"~?\r\n", b">?\r\n", b";4\r\n", b".\r\n"] {
            assert_eq!(scan(Protocol::Resp3, bytes), Err(Violation::Streamed));
        }
        assert_eq!(scan(Protocol::Resp3, b"*1\r\n>1\r\n:1\r\n"), Err(Violation::NestedPush));
    }

    #[test]
    fn line_ends_are_checked_everywhere() {
        for bytes in [
            &b"+a\nb\r\n"[..],
            b"+a\rb\r\n",
            b":1\n",
            b"$1\r\nabc\r\n",
            b"$1\r\na\rb",
            b"*1\n:1\r\n",
            b"$0\r\n\n",
        ] {
            assert!(
                matches!(scan(Protocol::Resp2, bytes), Err(Violation::BadLineEnd(_))),
                "{}",
                bytes.escape_ascii()
            );
        }
        for bytes in [&b"_x\r\n"[..], b"#x\r\n", b"#\r\n", b"=3\r\ntxt\r\n", b"=5\r\ntxt;a\r\n"] {
            assert!(
                matches!(scan(Protocol::Resp3, bytes), Err(Violation::Malformed(_))),
                "{}",
                bytes.escape_ascii()
            );
        }
    }

    #[test]
    fn limits_are_exact() {
        let nested = |depth: usize| [b"*1\r\n".repeat(depth), b":1\r\n".to_vec()].concat();
        whole(Protocol::Resp2, &nested(MAX_DEPTH));
        assert_eq!(scan(Protocol::Resp2, &nested(MAX_DEPTH + 1)), Err(Violation::TooDeep));

        let flat =
            |count: usize| [alloc::format!("*{count}\r\n").into_bytes(), b":1\r\n".repeat(count)].concat();
        whole(Protocol::Resp2, &flat(1024));
        assert_eq!(scan(Protocol::Resp2, &flat(1025)), Err(Violation::TooManyElements));
        let twice: Vec<u8> = [b"*2\r\n".to_vec(), flat(512), flat(511)].concat();
        assert_eq!(scan(Protocol::Resp2, &twice), Err(Violation::TooManyElements));
        assert_eq!(scan(Protocol::Resp3, b"%513\r\n"), Err(Violation::TooManyElements));

        let bulk = |len: usize| {
            [alloc::format!("${len}\r\n").into_bytes(), alloc::vec![b'x'; len], b"\r\n".to_vec()].concat()
        };
        let longest = MAX_FRAME - b"$131061\r\n\r\n".len();
        assert_eq!(scan(Protocol::Resp2, &bulk(longest)), Ok(Some(MAX_FRAME)));
        assert_eq!(scan(Protocol::Resp2, b"$131062\r\n"), Err(Violation::TooLong));
        let line = |len: usize| [alloc::vec![b'+'; len - 2], b"\r\n".to_vec()].concat();
        assert_eq!(scan(Protocol::Resp2, &line(MAX_FRAME)), Ok(Some(MAX_FRAME)));
        assert_eq!(scan(Protocol::Resp2, &line(MAX_FRAME + 1)), Err(Violation::TooLong));
        assert_eq!(
            scan(Protocol::Resp2, &[b':', b'1'].repeat(21)),
            Err(Violation::BadNumber(Excerpt::of(b":1:1:1:1")))
        );
    }
}
