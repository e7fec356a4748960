//! What a bad or broken peer sends: never a panic, never much memory, never an answer to the wrong request.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use alloc::vec::Vec;
use alloc::{format, vec};

use proptest::prelude::*;

use super::decode::Decoder;
use super::frame::{MAX_FRAME, Protocol};
use super::handshake::{Hello, Info};
use super::reply::{Blob, Reply};
use super::violation::Violation;

const PROTOCOLS: [Protocol; 3] = [Protocol::Resp2, Protocol::Resp3, Protocol::Negotiating];

fn decoder(protocol: Protocol) -> Decoder {
    let mut decoder = Decoder::new();
    decoder.set_protocol(protocol);
    decoder
}

/// All replies of `pieces`, and the violation that ended them.
fn decode<'a>(
    protocol: Protocol,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Reply>, Option<Violation>) {
    let mut decoder = decoder(protocol);
    let mut replies = Vec::new();
    for mut piece in pieces {
        loop {
            match decoder.next(&mut piece) {
                Ok(Some(reply)) => replies.push(reply),
                Ok(None) => break,
                Err(violation) => return (replies, Some(violation)),
            }
        }
        assert!(piece.is_empty());
        assert!(decoder.room() <= 2 * MAX_FRAME);
    }
    (replies, None)
}

#[test]
fn b31_ii_absurd_lengths_and_numbers_are_refused_at_once() {
    let lines = [
        "*1000000000",
        "*2147483647",
        "$9223372036854775807",
        "$99999999999999999999999",
        "$-2",
        "*-2",
        "$536870912",
        ":99999999999999999999",
        ":-9223372036854775809",
        "$+5",
        "*03",
    ];
    for line in lines {
        for protocol in PROTOCOLS {
            let (replies, violation) = decode(protocol, [format!("{line}\r\n").as_bytes()]);
            assert!(replies.is_empty() && violation.is_some(), "{protocol:?} {line} {replies:?}");
        }
    }
}

#[test]
fn b31_ii_deep_nesting_is_refused_without_recursion() {
    for open in ["*1\r\n", "%1\r\n+k\r\n", "~1\r\n", ">1\r\n", "|1\r\n+k\r\n"] {
        let bytes = open.repeat(100_000);
        for protocol in PROTOCOLS {
            let (replies, violation) = decode(protocol, bytes.as_bytes().chunks(1448));
            assert!(replies.is_empty() && violation.is_some(), "{protocol:?} {open:?}");
        }
    }
}

#[test]
fn b31_ii_a_line_without_an_end_is_refused_at_the_cap() {
    for kind in [b'+', b'-', b':', b'$', b'*'] {
        let mut decoder = decoder(Protocol::Resp2);
        decoder.next(&mut &[kind][..]).unwrap();
        let piece = vec![b'1'; 64 * 1024];
        // A gibibyte, if it took them all.
        let taken = (0..16 * 1024).take_while(|_| decoder.next(&mut &piece[..]).is_ok()).count();
        assert!(taken * piece.len() <= MAX_FRAME, "{taken}");
        assert_eq!(decoder.room(), 0, "nothing is kept for a stream that is given up");
    }
    let (_, violation) = decode(Protocol::Resp2, [&vec![b'+'; 8 * MAX_FRAME][..]]);
    assert_eq!(violation, Some(Violation::TooLong));
}

#[test]
fn b31_ii_many_small_elements_are_refused() {
    let bytes = ["*1000\r\n", &"*500\r\n".repeat(10)].concat();
    assert_eq!(decode(Protocol::Resp2, [bytes.as_bytes()]).1, Some(Violation::TooManyElements));
}

#[test]
fn b31_ii_nul_and_broken_utf8_in_errors_are_kept_escaped() {
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let (replies, violation) = decode(protocol, [&b"-ERR a\0b \xff\xfe\r\n+\0\xff\r\n:1\r\n"[..]]);
        assert_eq!(violation, None);
        let Reply::Error(error) = &replies[0] else { panic!("{replies:?}") };
        assert_eq!(error.text(), "ERR a\\0b \\xff\\xfe");
        assert_eq!(replies[1..], [Reply::Simple("\\0\\xff".into()), Reply::Integer(1)]);
    }
}

#[test]
fn b31_iii_a_line_break_inside_an_error_never_shifts_replies() {
    for protocol in PROTOCOLS {
        let (replies, violation) = decode(protocol, [&b"-ERR bad\r\ntext\r\n:1\r\n"[..]]);
        assert!(matches!(replies[..], [Reply::Error(_)]));
        assert!(matches!(violation, Some(Violation::UnknownType(_))));
        for broken in [&b"-ERR bad\ntext\r\n:1\r\n"[..], b"-ERR bad\rtext\r\n:1\r\n"] {
            let (replies, violation) = decode(protocol, [broken]);
            assert!(replies.is_empty() && violation.is_some());
        }
    }
}

#[test]
fn b31_iv_pushes_and_attributes_are_no_answers() {
    let push = b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n".as_slice();
    let attribute = b"|1\r\n+ttl\r\n:3600\r\n".as_slice();
    let answers = [b"+OK\r\n".as_slice(), b":0\r\n", b"_\r\n"];
    // Every mixture of up to two of them before each answer and after the last.
    let extras =
        [vec![], vec![push], vec![attribute], vec![push, attribute], vec![attribute, push], vec![push, push]];
    for before in &extras {
        for between in &extras {
            for after in &extras {
                let mut bytes = before.concat();
                for answer in answers {
                    bytes.extend_from_slice(answer);
                    bytes.extend(between.concat());
                }
                bytes.extend(after.concat());
                let (replies, violation) = decode(Protocol::Resp3, bytes.chunks(7));
                assert_eq!(violation, None, "{}", bytes.escape_ascii());
                let answered: Vec<_> =
                    replies.into_iter().filter(|reply| !matches!(reply, Reply::Push(_))).collect();
                assert_eq!(answered, [Reply::Ok, Reply::Integer(0), Reply::Null], "{}", bytes.escape_ascii());
            }
        }
    }
    // An attribute inside a reply is no element.
    let (replies, _) = decode(Protocol::Resp3, [&b"*2\r\n|1\r\n+a\r\n:9\r\n:1\r\n:2\r\n"[..]]);
    assert_eq!(replies, [Reply::Array(vec![Reply::Integer(1), Reply::Integer(2)])]);
}

#[test]
fn b31_iv_without_resp3_they_end_the_connection() {
    for bytes in [&b">1\r\n+x\r\n+OK\r\n"[..], b"|1\r\n+a\r\n+b\r\n+OK\r\n"] {
        let (replies, violation) = decode(Protocol::Resp2, [bytes]);
        assert!(replies.is_empty() && matches!(violation, Some(Violation::UnknownType(_))));
    }
}

#[test]
fn b31_v_strings_that_look_like_protocol_arrive_intact() {
    for text in
        [&b"*3"[..], b"$5\r\n", b"\r\n", b"\0", b"", b"+OK\r\n:1\r\n", b"\xff\xfe", b"_\r\n", b"\r", b"\n"]
    {
        for protocol in PROTOCOLS {
            let bytes = [format!("${}\r\n", text.len()).as_bytes(), text, b"\r\n:7\r\n"].concat();
            for at in 0..=bytes.len() {
                let (replies, violation) = decode(protocol, [&bytes[..at], &bytes[at..]]);
                assert_eq!(violation, None);
                assert_eq!(replies, [Reply::Bulk(Blob::copy_of(text)), Reply::Integer(7)]);
            }
        }
    }
}

#[test]
fn other_protocols_are_told_at_once() {
    // A TLS record, an HTTP answer, an SSH greeting, a Memcached error, nothing but line ends.
    for bytes in [
        &b"\x15\x03\x01\x00\x02\x02\x16"[..],
        b"HTTP/1.1 400 Bad Request\r\n",
        b"SSH-2.0-x\r\n",
        b"ERROR\r\n",
        b"\r\n\r\n",
    ] {
        for protocol in PROTOCOLS {
            let (replies, violation) = decode(protocol, [bytes]);
            assert!(replies.is_empty() && matches!(violation, Some(Violation::UnknownType(_))));
        }
    }
}

#[test]
fn the_scan_is_linear_in_small_pieces() {
    // A scan from the start at every piece would look at some 10^10 bytes here.
    let body = vec![b'x'; MAX_FRAME - 64];
    let bytes = [b"-", &body[..], b"\r\n"].concat();
    for _ in 0..4 {
        let (replies, _) = decode(Protocol::Resp2, bytes.chunks(1));
        assert_eq!(replies.len(), 1);
    }
}

/// Bytes that get further than random ones: pieces of replies, whole, cut and mangled.
fn likely() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            &b"+OK\r\n"[..],
            b":1\r\n",
            b":0\r\n",
            b"$-1\r\n",
            b"*-1\r\n",
            b"_\r\n",
            b"-ERR x\r\n",
            b"$3\r\nabc\r\n",
            b"*2\r\n",
            b"*0\r\n",
            b"%1\r\n",
            b"~2\r\n",
            b">2\r\n",
            b"|1\r\n",
            b"#t\r\n",
            b",1.5\r\n",
            b",nan\r\n",
            b"(99\r\n",
            b"=5\r\ntxt:a\r\n",
            b"!3\r\nERR\r\n",
            b"$?\r\n",
            b";1\r\n",
            b".\r\n",
            b"\r\n",
            b"\r",
            b"\n",
            b"$",
            b"*",
            b"1",
            b"-",
            b"HELLO 3\r\n",
        ])
        .prop_map(<[u8]>::to_vec),
        prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_bytes_give_the_same_whole_and_in_pieces(
        bytes in prop_oneof![likely(), prop::collection::vec(any::<u8>(), 0..200)],
        step in 1_usize..20,
        protocol in prop::sample::select(PROTOCOLS.to_vec()),
    ) {
        let whole = decode(protocol, [&bytes[..]]);
        let pieces = decode(protocol, bytes.chunks(step));
        // A broken frame may be found out earlier, by less, in one piece than in several: what came before is the same.
        prop_assert_eq!(&whole.0, &pieces.0);
        prop_assert_eq!(whole.1.is_some(), pieces.1.is_some());
        for reply in &whole.0 {
            let _ = (Hello::parse(reply), Info::parse(reply), format!("{reply} {reply:?}"));
        }
    }

    #[test]
    fn long_hostile_streams_keep_memory_bounded(
        seed in likely(),
        repeat in 1_usize..2_000,
        step in 1_usize..100_000,
        protocol in prop::sample::select(PROTOCOLS.to_vec()),
    ) {
        let bytes = seed.repeat(repeat);
        // `decode` checks the room after each piece.
        let _ = decode(protocol, bytes.chunks(step));
    }
}
