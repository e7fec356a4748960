use super::*;
use alloc::vec;

fn all(decoder: &mut Decoder, mut input: &[u8]) -> Result<Vec<Reply>, Violation> {
    let mut replies = Vec::new();
    while let Some(reply) = decoder.next(&mut input)? {
        replies.push(reply);
    }
    assert!(input.is_empty());
    Ok(replies)
}

fn decoder(protocol: Protocol) -> Decoder {
    let mut decoder = Decoder::new();
    decoder.set_protocol(protocol);
    decoder
}

fn bulk(bytes: &[u8]) -> Reply {
    Reply::Bulk(Blob::copy_of(bytes))
}

#[test]
fn both_protocols_give_the_same_replies() {
    let resp2 = all(
        &mut decoder(Protocol::Resp2),
        b"+OK\r\n+PONG\r\n:-7\r\n$2\r\n\r\n\r\n$-1\r\n*-1\r\n*2\r\n:1\r\n*0\r\n-OOM x\r\n",
    );
    let resp3 = all(
        &mut decoder(Protocol::Resp3),
        b"+OK\r\n+PONG\r\n:-7\r\n$2\r\n\r\n\r\n_\r\n_\r\n*2\r\n:1\r\n*0\r\n!5\r\nOOM x\r\n",
    );
    assert_eq!(resp2, resp3);
    let expected = vec![
        Reply::Ok,
        Reply::Simple("PONG".into()),
        Reply::Integer(-7),
        bulk(b"\r\n"),
        Reply::Null,
        Reply::Null,
        Reply::Array(vec![Reply::Integer(1), Reply::Array(vec![])]),
        Reply::Error(ServerError::parse(b"OOM x")),
    ];
    assert_eq!(resp2, Ok(expected));
}

#[test]
fn resp3_types() {
    let replies = all(
        &mut decoder(Protocol::Resp3),
        b"=8\r\ntxt:a\r\nb\r\n#t\r\n,1.5\r\n(12\r\n~1\r\n:1\r\n>1\r\n+x\r\n",
    );
    let expected = vec![
        bulk(b"a\r\nb"),
        Reply::Other("boolean"),
        Reply::Other("double"),
        Reply::Other("big number"),
        Reply::Other("set"),
        Reply::Push(vec![Reply::Simple("x".into())]),
    ];
    assert_eq!(replies, Ok(expected));
}

#[test]
fn maps_keep_the_order_in_which_they_were_sent() {
    let mut bytes = b"%40\r\n".to_vec();
    for n in 0..40 {
        bytes.extend_from_slice(alloc::format!("+key{n}\r\n:{n}\r\n").as_bytes());
    }
    let pairs = (0..40).map(|n| (Reply::Simple(alloc::format!("key{n}")), Reply::Integer(n))).collect();
    assert_eq!(all(&mut decoder(Protocol::Resp3), &bytes), Ok(vec![Reply::Map(pairs)]));
    let numbers = all(&mut decoder(Protocol::Resp3), b"%3\r\n:3\r\n:1\r\n:1\r\n:2\r\n:2\r\n:3\r\n").unwrap();
    let expected = [(1, 2), (2, 3), (3, 1)].map(|(k, v)| (Reply::Integer(k), Reply::Integer(v)));
    assert_eq!(numbers, [Reply::Map(expected.to_vec())]);
}

#[test]
fn the_answer_to_hello_settles_the_protocol() {
    let mut decoder = decoder(Protocol::Negotiating);
    // A push or an attribute that comes first settles nothing.
    let replies = all(&mut decoder, b"|1\r\n+a\r\n:1\r\n>1\r\n+x\r\n").unwrap();
    assert_eq!((replies.len(), decoder.protocol()), (1, Protocol::Negotiating));
    let replies = all(&mut decoder, b"%1\r\n+proto\r\n:3\r\n_\r\n").unwrap();
    assert_eq!(replies, [Reply::Map(vec![(Reply::Simple("proto".into()), Reply::Integer(3))]), Reply::Null]);
    assert_eq!(decoder.protocol(), Protocol::Resp3);

    let mut decoder = self::decoder(Protocol::Negotiating);
    let replies = all(&mut decoder, b"-NOPROTO unsupported protocol version\r\n$-1\r\n").unwrap();
    assert_eq!(replies.last(), Some(&Reply::Null));
    assert_eq!(decoder.protocol(), Protocol::Resp2);
}

#[test]
fn a_change_of_protocol_waits_for_the_frame_in_hand() {
    let mut decoder = decoder(Protocol::Resp3);
    assert_eq!(all(&mut decoder, b"_\r"), Ok(vec![]));
    decoder.set_protocol(Protocol::Resp2);
    assert_eq!(all(&mut decoder, b"\n$-1\r\n"), Ok(vec![Reply::Null, Reply::Null]));
    assert_eq!(
        all(&mut decoder, b"_\r\n"),
        Err(Violation::UnknownType(super::super::violation::Excerpt::of(b"_\r\n")))
    );
}

#[test]
fn a_violation_is_the_last_answer() {
    let mut decoder = decoder(Protocol::Resp2);
    let mut input: &[u8] = b":1\r\n?\r\n:2\r\n";
    assert_eq!(decoder.next(&mut input), Ok(Some(Reply::Integer(1))));
    let violation = decoder.next(&mut input).unwrap_err();
    assert_eq!(decoder.next(&mut &b":3\r\n"[..]), Err(violation));
    assert_eq!(decoder.next(&mut &b""[..]), Err(violation));
}

#[test]
fn what_the_decoder_refuses_is_a_violation() {
    for bytes in
        [&b",abc\r\n"[..], b"=5\r\nxyz:a\r\n", b"%1\r\n*0\r\n:1\r\n", b"~1\r\n*0\r\n", b"*1\r\n|0\r\n_\r\n"]
    {
        assert_eq!(
            all(&mut decoder(Protocol::Resp3), bytes),
            Err(Violation::Undecodable),
            "{}",
            bytes.escape_ascii()
        );
    }
}

#[test]
fn the_room_for_a_partial_frame_is_kept() {
    let mut decoder = decoder(Protocol::Resp2);
    all(&mut decoder, b"$100\r\n").unwrap();
    all(&mut decoder, &[b'x'; 100]).unwrap();
    all(&mut decoder, b"\r\n").unwrap();
    let (room, at) = (decoder.partial.capacity(), decoder.partial.as_ptr());
    for _ in 0..1_000 {
        assert_eq!(all(&mut decoder, b":1\r\n+O"), Ok(vec![Reply::Integer(1)]));
        assert_eq!(all(&mut decoder, b"K\r\n:2\r\n"), Ok(vec![Reply::Ok, Reply::Integer(2)]));
        assert_eq!((decoder.partial.capacity(), decoder.partial.as_ptr()), (room, at));
    }
    // Whole frames are not copied at all.
    let mut decoder = Decoder::new();
    all(&mut decoder, b"+OK\r\n:1\r\n$-1\r\n").unwrap();
    assert_eq!(decoder.partial.capacity(), 0);
}

#[test]
fn memory_stays_below_one_mebibyte_by_construction() {
    // A growing vector doubles; while a frame is decoded its elements exist as the decoder's, in vectors that double
    // and in maps with room to spare, and as ours.
    let buffer = 2 * MAX_FRAME;
    let element = 4 * size_of::<Resp3>() + 2 * size_of::<Reply>();
    let elements = usize::try_from(super::super::frame::MAX_ELEMENTS).unwrap() * element;
    let strings = MAX_FRAME;
    assert!(buffer + elements + strings < 1024 * 1024, "{buffer} + {elements} + {strings}");
}
