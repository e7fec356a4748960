use super::*;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;

/// The command as its arguments, read back by the rules of the protocol and nothing else.
fn arguments(command: &Bytes) -> Vec<Vec<u8>> {
    fn line(rest: &mut &[u8], kind: u8) -> usize {
        assert_eq!(rest[0], kind);
        let end = rest.windows(2).position(|two| two == b"\r\n").unwrap();
        let number = core::str::from_utf8(&rest[1..end]).unwrap().parse().unwrap();
        *rest = &rest[end + 2..];
        number
    }
    let mut rest: &[u8] = command;
    let mut found = Vec::new();
    for _ in 0..line(&mut rest, b'*') {
        let len = line(&mut rest, b'$');
        found.push(rest[..len].to_vec());
        assert_eq!(&rest[len..len + 2], b"\r\n");
        rest = &rest[len + 2..];
    }
    assert!(rest.is_empty());
    found
}

fn words(command: &Bytes) -> String {
    let words: Vec<String> = arguments(command).iter().map(|word| word.escape_ascii().to_string()).collect();
    words.join(" ")
}

fn keys(names: &[&'static str]) -> Vec<Bytes> {
    names.iter().map(|name| Bytes::from_static(name.as_bytes())).collect()
}

const TTL: Duration = Duration::from_millis(10_000);

#[test]
fn handshake_commands() {
    assert_eq!(hello3(None, None), &b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"[..]);
    assert_eq!(
        hello3(Some((b"default", b"p w")), Some(b"billing")),
        &b"*7\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$3\r\np w\r\n$7\r\nSETNAME\r\n$7\r\nbilling\r\n"[..]
    );
    assert_eq!(words(&hello3(None, Some(b"x"))), "HELLO 3 SETNAME x");
    assert_eq!(words(&hello3(Some((b"u", b"p")), None)), "HELLO 3 AUTH u p");
    assert_eq!(auth(None, b"p"), &b"*2\r\n$4\r\nAUTH\r\n$1\r\np\r\n"[..]);
    assert_eq!(auth(Some(b"u"), b"p"), &b"*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$1\r\np\r\n"[..]);
    assert_eq!(select(0), &b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"[..]);
    assert_eq!(words(&select(u32::MAX)), "SELECT 4294967295");
    assert_eq!(set_name(b"x"), &b"*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$1\r\nx\r\n"[..]);
    assert_eq!(info(), &b"*3\r\n$4\r\nINFO\r\n$6\r\nserver\r\n$11\r\nreplication\r\n"[..]);
    assert_eq!(ping(), &b"*1\r\n$4\r\nPING\r\n"[..]);
}

#[test]
fn r2_set_for_one_key_and_for_several() {
    assert_eq!(
        set(&keys(&["k"]), b"v", TTL),
        &b"*6\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n10000\r\n"[..]
    );
    let several = set(&keys(&["a", "b"]), b"v", TTL);
    assert_eq!(
        several,
        format!(
            "*7\r\n$4\r\nEVAL\r\n${}\r\n{}\r\n$1\r\n2\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nv\r\n$5\r\n10000\r\n",
            script::SET_ALL.len(),
            script::SET_ALL
        )
    );
}

#[test]
fn r14_extend_in_each_form() {
    assert_eq!(
        extend(ExtendForm::Ifeq, &keys(&["k"]), b"v", TTL),
        &b"*7\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n$4\r\nIFEQ\r\n$1\r\nv\r\n$2\r\nPX\r\n$5\r\n10000\r\n"[..]
    );
    assert_eq!(
        extend(ExtendForm::Script, &keys(&["k"]), b"v", TTL),
        format!(
            "*6\r\n$4\r\nEVAL\r\n${}\r\n{}\r\n$1\r\n1\r\n$1\r\nk\r\n$1\r\nv\r\n$5\r\n10000\r\n",
            script::EXTEND.len(),
            script::EXTEND
        )
    );
    for form in [ExtendForm::Ifeq, ExtendForm::Script] {
        let words = arguments(&extend(form, &keys(&["a", "b", "c"]), b"v", TTL));
        assert_eq!(
            words,
            [&b"EVAL"[..], script::EXTEND_ALL.as_bytes(), b"3", b"a", b"b", b"c", b"v", b"10000"]
        );
    }
}

#[test]
fn r18_release_in_each_form() {
    assert_eq!(
        release(DeleteForm::Delex, &keys(&["k"]), b"v"),
        &b"*4\r\n$5\r\nDELEX\r\n$1\r\nk\r\n$4\r\nIFEQ\r\n$1\r\nv\r\n"[..]
    );
    assert_eq!(
        release(DeleteForm::Delifeq, &keys(&["k"]), b"v"),
        &b"*3\r\n$7\r\nDELIFEQ\r\n$1\r\nk\r\n$1\r\nv\r\n"[..]
    );
    assert_eq!(
        release(DeleteForm::Script, &keys(&["k"]), b"v"),
        format!(
            "*5\r\n$4\r\nEVAL\r\n${}\r\n{}\r\n$1\r\n1\r\n$1\r\nk\r\n$1\r\nv\r\n",
            script::RELEASE.len(),
            script::RELEASE
        )
    );
    for form in [DeleteForm::Delex, DeleteForm::Delifeq, DeleteForm::Script] {
        let words = arguments(&release(form, &keys(&["a", "b"]), b"v"));
        assert_eq!(words, [&b"EVAL"[..], script::RELEASE_ALL.as_bytes(), b"2", b"a", b"b", b"v"]);
    }
}

#[test]
fn reads() {
    assert_eq!(pttl(b"k"), &b"*2\r\n$4\r\nPTTL\r\n$1\r\nk\r\n"[..]);
    assert_eq!(get_range(b"k", 0, 255), &b"*4\r\n$8\r\nGETRANGE\r\n$1\r\nk\r\n$1\r\n0\r\n$3\r\n255\r\n"[..]);
}

#[test]
fn b31_keys_and_values_that_look_like_protocol_arrive_intact() {
    for bytes in [&b"*3"[..], b"$5", b"\r\n", b"\0", b"", b"a\r\n$1\r\nb", b"\xff\xfe", b":1\r\n", b"_\r\n"] {
        let key = Bytes::copy_from_slice(bytes);
        let one = core::slice::from_ref(&key);
        assert_eq!(arguments(&set(one, bytes, TTL))[1..3], [bytes, bytes]);
        assert_eq!(
            arguments(&extend(ExtendForm::Ifeq, one, bytes, TTL))[1..5],
            [bytes, bytes, b"IFEQ", bytes]
        );
        assert_eq!(arguments(&extend(ExtendForm::Script, one, bytes, TTL))[3..5], [bytes, bytes]);
        assert_eq!(arguments(&release(DeleteForm::Delex, one, bytes))[1..], [bytes, b"IFEQ", bytes]);
        assert_eq!(arguments(&release(DeleteForm::Delifeq, one, bytes))[1..], [bytes, bytes]);
        assert_eq!(arguments(&release(DeleteForm::Script, one, bytes))[3..], [bytes, bytes]);
        assert_eq!(arguments(&set(&[key.clone(), key.clone()], bytes, TTL))[3..6], [bytes, bytes, bytes]);
        assert_eq!(arguments(&hello3(Some((bytes, bytes)), Some(bytes)))[3..5], [bytes, bytes]);
    }
}

#[test]
fn ttls_are_whole_milliseconds() {
    for (ttl, shown) in [
        (Duration::from_millis(1), "1"),
        (Duration::from_micros(1_999), "1"),
        (Duration::from_millis(1_500), "1500"),
        (Duration::from_secs(365 * 86_400), "31536000000"),
        (Duration::from_millis(999_999_999_999_999), "999999999999999"),
        (Duration::MAX, "18446744073709551615"),
    ] {
        assert_eq!(words(&set(&keys(&["k"]), b"v", ttl)), format!("SET k v NX PX {shown}"));
    }
    for value in [0, 9, 10, 99, 100, 101, 999_999_999_999_999, u64::MAX - 1, u64::MAX] {
        assert_eq!(Decimal::new(value).as_bytes(), value.to_string().as_bytes());
    }
}

#[test]
fn the_encoder_sizes_every_length_correctly() {
    // Every length at which the count of digits changes, and all small ones.
    let lengths = (0..2_100)
        .chain([9_999, 10_000, 10_001, 65_535, 65_536, 99_999, 100_000, 100_001, 999_999, 1_000_000]);
    for len in lengths {
        let part = vec![b'x'; len];
        let expected = format!("*1\r\n${len}\r\n").len() + len + 2;
        assert_eq!(encode(&[&part]).len(), expected);
    }
    for count in [1, 9, 10, 11, 99, 100, 101, 999, 1_000, 1_001, 10_000] {
        let parts = vec![&b""[..]; count];
        assert!(encode(&parts).starts_with(format!("*{count}\r\n$0\r\n").as_bytes()));
    }
}
