#![allow(clippy::unwrap_used, reason = "tests")]

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use proptest::prelude::*;

use super::{Address, AddressErrorKind as Kind, AddressPart as Part, Endpoint, parse_list};

/// What an address says, in one line: `tls user/password at database`, with `-` for what is not there.
fn told(text: &str) -> String {
    let address = Address::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let tls = if address.is_tls() { "tls " } else { "" };
    let (user, password) = (address.username().unwrap_or("-"), address.password().unwrap_or("-"));
    let at = match address.endpoint() {
        Endpoint::Tcp { host, port } => format!("tcp {host} {port}"),
        Endpoint::Unix { path } => format!("unix {path}"),
    };
    format!("{tls}{user} {password} {at} {}", address.database())
}

fn kind(text: &str) -> Kind {
    Address::parse(text).map(|good| panic!("{good:?} from {text:?}")).unwrap_err().kind().clone()
}

#[test]
fn good_addresses_are_read() {
    for (text, want) in [
        ("redis://:p%40ss%23%2F%25@h:6379/2", "- p@ss#/% tcp h 6379 2"),
        ("redis://user:pw@h", "user pw tcp h 6379 0"),
        ("redis://us%20er:p:w@h/", "us er p:w tcp h 6379 0"),
        ("redis://user@h", "user - tcp h 6379 0"),
        ("redis://user:@h", "user - tcp h 6379 0"),
        ("redis://:@h", "- - tcp h 6379 0"),
        ("redis://@h", "- - tcp h 6379 0"),
        ("redis://h?db=3", "- - tcp h 6379 3"),
        ("redis://h/?db=3&", "- - tcp h 6379 3"),
        ("redis://h/2147483647", "- - tcp h 6379 2147483647"),
        ("redis://[::1]:6380", "- - tcp ::1 6380 0"),
        ("redis://[0:0::0:1]", "- - tcp ::1 6379 0"),
        ("redis://u:p@[fe80::1%25eth0]/1", "u p tcp fe80::1%eth0 6379 1"),
        ("redis://[fe80::1%eth0]:1", "- - tcp fe80::1%eth0 1 0"),
        ("redis://[fe80::1%25]", "- - tcp fe80::1%25 6379 0"),
        ("rediss://h", "tls - - tcp h 6379 0"),
        ("REDISS://Redis-1.Example.COM.:7000", "tls - - tcp redis-1.example.com. 7000 0"),
        ("valkey://h", "- - tcp h 6379 0"),
        ("valkeys://h", "tls - - tcp h 6379 0"),
        ("redis://10.0.0.1:65535", "- - tcp 10.0.0.1 65535 0"),
        ("redis+unix:///run/r.sock?db=1", "- - unix /run/r.sock 1"),
        ("unix:///run/r%20s.sock", "- - unix /run/r s.sock 0"),
        ("unix:///run/a@b,c;d.sock", "- - unix /run/a@b,c;d.sock 0"),
        ("unix://user:p%2Fw@/run/a%40b?db=7", "user p/w unix /run/a@b 7"),
        ("localhost", "- - tcp localhost 6379 0"),
        ("redis:6380", "- - tcp redis 6380 0"),
        ("my_redis.svc:6380/4", "- - tcp my_redis.svc 6380 4"),
        ("127.0.0.1", "- - tcp 127.0.0.1 6379 0"),
        ("[::1]:6380", "- - tcp ::1 6380 0"),
        (" redis://h\n", "- - tcp h 6379 0"),
    ] {
        assert_eq!(told(text), want, "{text}");
    }
}

#[test]
fn bad_addresses_say_what_is_wrong() {
    for (text, want) in [
        ("", Kind::Empty),
        (" \n", Kind::Empty),
        ("redis://h:99999", Kind::Port),
        ("redis://h:0", Kind::Port),
        ("redis://h:", Kind::Port),
        ("redis://h:+80", Kind::Port),
        ("redis://h:x", Kind::Port),
        ("redis:/h", Kind::Port),
        ("unix:/run/r.sock", Kind::Port),
        ("redis://h/x", Kind::Database),
        ("redis://h/-1", Kind::Database),
        ("redis://h/1/2", Kind::Database),
        ("redis://h/2147483648", Kind::Database),
        ("redis://h?db=", Kind::Database),
        ("http://h", Kind::Scheme),
        ("redis+socket://h", Kind::Scheme),
        ("://h", Kind::HostMissing),
        ("redis://", Kind::HostMissing),
        ("redis://u:p@", Kind::HostMissing),
        ("redis://:6379", Kind::HostMissing),
        (":6379", Kind::HostMissing),
        ("6379", Kind::HostIpv4),
        ("redis://10.1", Kind::HostIpv4),
        ("redis://256.0.0.1", Kind::HostIpv4),
        ("redis://010.0.0.1", Kind::HostIpv4),
        ("redis://0x7f000001", Kind::HostIpv4),
        ("redis://a..b", Kind::HostName),
        ("redis://.", Kind::HostName),
        ("redis://a b", Kind::HostCharacter { found: ' ' }),
        ("redis://a%20b", Kind::HostCharacter { found: '%' }),
        ("redis://bücher", Kind::HostCharacter { found: 'ü' }),
        ("redis://a,redis://b", Kind::HostCharacter { found: ',' }),
        ("a,b", Kind::HostCharacter { found: ',' }),
        ("redis://::1", Kind::HostBrackets),
        ("fe80::1:6379", Kind::HostBrackets),
        ("h:1:2", Kind::HostBrackets),
        ("redis://[::1", Kind::HostIpv6),
        ("redis://[::1]6379", Kind::HostIpv6),
        ("redis://[h]", Kind::HostIpv6),
        ("redis://[fe80::1%]", Kind::HostZone),
        ("redis://[fe80::1%25a%20b]", Kind::HostZone),
        ("redis://:pa#ss@h", Kind::CredentialsNotEncoded),
        ("redis://:pa/ss@h", Kind::CredentialsNotEncoded),
        ("redis://:pa?ss@h", Kind::CredentialsNotEncoded),
        ("redis://:pa@ss@h", Kind::CredentialsNotEncoded),
        ("unix://:@/pass@/run/r.sock", Kind::CredentialsNotEncoded),
        ("unix://:pa/ss@/run/r.sock", Kind::CredentialsNotEncoded),
        ("redis://:100%@h", Kind::Escape { part: Part::Password }),
        ("redis://a%4:b@h", Kind::Escape { part: Part::Username }),
        ("redis://:%+1@h", Kind::Escape { part: Part::Password }),
        ("redis://:%é@h", Kind::Escape { part: Part::Password }),
        ("unix:///a%zz", Kind::Escape { part: Part::Path }),
        ("redis://:%FF@h", Kind::NotUtf8 { part: Part::Password }),
        ("redis://h#x", Kind::Fragment),
        ("redis://h/1#", Kind::Fragment),
        ("redis://h?protocol=resp3", Kind::UnknownParameter { name: "protocol".into() }),
        ("redis://h?db=1&password=x", Kind::UnknownParameter { name: "password".into() }),
        ("redis://h?DB=1", Kind::UnknownParameter { name: "DB".into() }),
        ("redis://h?db=1&db=1", Kind::RepeatedParameter { name: "db".into() }),
        ("redis://h/1?db=1", Kind::RepeatedParameter { name: "db".into() }),
        ("unix://", Kind::Path),
        ("unix://run/r.sock", Kind::Path),
        ("unix:///", Kind::Path),
        ("unix:///run/", Kind::Path),
        ("unix:///run/r#1.sock", Kind::Path),
        ("unix:///run/%00", Kind::Path),
        ("/run/r.sock", Kind::SchemeMissing),
        ("user:pw@h", Kind::SchemeMissing),
        ("redis://h\n:1", Kind::ControlCharacter),
    ] {
        assert_eq!(kind(text), want, "{text}");
    }
    let long = "x".repeat(20_000);
    assert_eq!(kind(&format!("redis://:{long}@h")), Kind::TooLong { part: Part::Password, most: 16_384 });
    assert_eq!(kind(&format!("unix:///{long}")), Kind::TooLong { part: Part::Path, most: 4_096 });
    assert_eq!(kind(&format!("redis://{long}")), Kind::HostName);
    let good = Address::parse("h").unwrap();
    assert!(good.clone().with_credentials(&*long, "").check().is_err());
    assert!(good.clone().with_credentials("", &*long).check().is_err());
    assert!(good.clone().with_database(u32::MAX).check().is_err());
    assert!(good.with_credentials("a", "b").with_database(15).check().is_ok());
}

#[test]
fn errors_name_the_address_and_what_is_accepted() {
    for (text, want) in [
        ("redis://h:99999", "address `redis://h:***`: the port is not a number from 1 to 65535"),
        ("Redis://h/x", "address `redis://h/x`: the database is not a number from 0 to 2147483647"),
        (
            "http://u:p@h/x",
            "address `http://***@h/x`: the scheme is not known; use redis://, rediss:// (TLS) or unix:///path",
        ),
        (
            "redis://h:1?protocol=3&x",
            "address `redis://h:1?protocol=***&x`: the parameter `protocol` is not known; there is only db, and \
             credentials go before an `@`",
        ),
        (
            "redis://:100%@h",
            "address `redis://***@h`: a `%` in the password is not followed by two hex digits; write a plain `%` as %25",
        ),
    ] {
        assert_eq!(Address::parse(text).unwrap_err().to_string(), want);
    }
    let error = Address::parse("a\u{202e}\u{7}b").unwrap_err();
    assert_eq!(error.address(), "a\\u{202e}\\u{7}b");
    assert!(Address::parse(&"x".repeat(9_999)).unwrap_err().to_string().len() < 400);
}

#[test]
fn r26_no_text_shows_a_password() {
    for text in [
        "redis://user:hunter2@h:6379/2",
        "unix://user:hunter2@/run/r.sock?db=1",
        "redis://user:hunter2",
        "redis://:hunter2",
        "redis://user:hunter2:x@h",
        "redis://user:hunter2:x",
        "redis://user:#hunter2@h",
        "redis://user:/hunter2@h",
        "redis://user:@hunter2@h",
        "redis://user:@hunter2/@h",
        "redis://user:%hunter2@h",
        "redis://user:hunter2@h:x",
        "redis://user:hunter2@h/x",
        "redis://user:hunter2@[h]",
        "redis://h?password=hunter2",
        "redis://h#hunter2",
        "http://user:hunter2@h",
        "user:hunter2@h",
        "redis:/user:hunter2@h",
        "unix://user:hunter2@run/r.sock",
        "unix:///user:hunter2@/\n",
        "redis://user:hunter2\n@h",
        "redis://user:a,hunter2@h",
        "redis://user:1,hunter2@h",
        "redis://user:1/hunter2,@h",
        "redis://user:hunter2,@h",
    ] {
        let one = match Address::parse(text) {
            Ok(address) => format!("{address} {address:?}"),
            Err(error) => format!("{error} {error:?} {}", error.address()),
        };
        let list = match parse_list(text) {
            Ok(list) => format!("{list:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        assert!(!one.contains("hunter2") && !list.contains("hunter2"), "{text}: {one} / {list}");
    }
    let address = Address::parse("redis://user:hunter2@h").unwrap();
    assert_eq!(format!("{address:?}"), "redis://user:***@h:6379");
    let address = Address::parse("h").unwrap().with_credentials("", "hunter2");
    assert_eq!(format!("{address:?} {address}"), "redis://:***@h:6379 redis://h:6379");
}

#[test]
fn display_is_canonical() {
    for (text, want) in [
        ("H", "redis://h:6379"),
        ("rediss://us%C3%A9r:pw@H/02", "rediss://us%C3%A9r@h:6379/2"),
        ("redis://[FE80::1%25eth0]", "redis://[fe80::1%25eth0]:6379"),
        ("redis+unix://u:p@/a%20b%3F/%40?db=1", "unix://u@/a%20b%3F/%40?db=1"),
    ] {
        let address = Address::parse(text).unwrap();
        assert_eq!(address.to_string(), want);
        assert_eq!(want.parse::<Address>().unwrap().to_string(), want);
    }
    let at = |text: &str| Address::parse(text).unwrap().endpoint().to_string();
    assert_eq!(at("[fe80::1%25eth0]:7"), "[fe80::1%eth0]:7");
    assert_eq!(at("h"), "h:6379");
    assert_eq!(at("unix:///a%20b%0A"), "/a b\\n");
}

#[test]
fn r12_the_same_server_is_found_however_it_is_written() {
    let key = |text: &str| Address::parse(text).unwrap().server_key();
    let same = |one: &str, other: &str| key(one) == key(other);
    for (one, other) in [
        ("redis://h", "redis://h"),
        ("redis://Redis.Example", "redis://redis.example"),
        ("redis://redis.example.", "redis://redis.example"),
        ("redis://h", "redis://h:6379"),
        ("redis://h", "redis://h:06379"),
        ("redis://a:b@h", "redis://c:d@h"),
        ("redis://h/1", "redis://h/2"),
        ("rediss://h", "redis://h"),
        ("h", "valkey://h"),
        ("[::1]", "[0::1]"),
        ("[fe80::1%eth0]", "[FE80::1%25eth0]"),
        ("[::ffff:10.0.0.1]", "10.0.0.1"),
        ("unix:///run/r.sock", "redis+unix:///run//./r.sock?db=1"),
        ("unix:///run/r%2Esock", "unix:///run/r.sock"),
    ] {
        assert!(same(one, other), "{one} {other}");
    }
    for (one, other) in [
        ("h", "h:6380"),
        ("h", "h2"),
        ("h.a", "h"),
        ("unix:///run/r.sock", "unix:///run/R.sock"),
        ("unix:///h:6379", "h:6379"),
        ("[fe80::1%eth0]", "[fe80::1%eth1]"),
    ] {
        assert!(!same(one, other), "{one} {other}");
    }
}

#[test]
fn lists_name_the_wrong_entry() {
    let list = parse_list(" redis://a ,rediss://u:p%2Cw@b:1/2,\n c:3 ").unwrap();
    let shown: Vec<_> = list.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["redis://a:6379", "rediss://u@b:1/2", "redis://c:3"]);
    for (text, entry, kind) in [
        ("a,b:x,c", 1, Kind::Port),
        ("", 0, Kind::Empty),
        ("a,,c", 1, Kind::Empty),
        ("a,b, ", 2, Kind::Empty),
        ("redis://:pa,ss@h,c", 1, Kind::SchemeMissing),
        ("redis://:1/pa,s://s@h,c", 1, Kind::Scheme),
        ("redis://:pa@,s@h,c", 1, Kind::SchemeMissing),
    ] {
        let error = parse_list(text).unwrap_err();
        assert_eq!((error.entry(), error.kind()), (Some(entry), &kind), "{text}");
    }
    let error = parse_list("a,b:x").unwrap_err().to_string();
    assert_eq!(
        error,
        "address 2 `redis://b:***`: the port is not a number from 1 to 65535".replace("redis://", "")
    );
}

/// Pieces that an address is made of, so that random texts reach every branch.
fn noise() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(alloc::vec![
            "redis",
            "rediss",
            "unix",
            "redis+unix",
            "://",
            ":",
            "/",
            "@",
            "[",
            "]",
            "%",
            "%25",
            "%41",
            "%FF",
            "?",
            "#",
            "=",
            "db",
            "&",
            ",",
            ".",
            "::1",
            "10.0.0.1",
            "h",
            "6379",
            "0",
            " ",
            "\n",
            "é",
            "\u{0}",
            "x",
        ])
        .prop_map(String::from),
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn good_address() -> impl Strategy<Value = Address> {
    let place = prop_oneof![
        "[a-z0-9_-]{0,8}[a-z](\\.[a-z0-9-]{1,8}[a-z])?"
            .prop_filter("resolvers read it as a number", |name| {
                !name.rsplit('.').next().is_some_and(|label| label.starts_with("0x"))
            }),
        any::<core::net::Ipv4Addr>().prop_map(|ip| ip.to_string()),
        any::<core::net::Ipv6Addr>().prop_map(|ip| format!("[{ip}]")),
        (any::<core::net::Ipv6Addr>(), "[a-z0-9._~-]{1,9}").prop_map(|(ip, zone)| format!("[{ip}%25{zone}]")),
    ];
    let text = prop_oneof![
        (any::<bool>(), place, 1..=u16::MAX)
            .prop_map(|(tls, place, port)| format!("redis{}://{place}:{port}", if tls { "s" } else { "" })),
        prop::collection::vec(any::<u8>().prop_filter("NUL", |byte| *byte != 0), 1..20).prop_map(|bytes| {
            let path = String::from_utf8_lossy(&bytes).into_owned();
            format!("unix:///{}x", super::Encoded { text: &path, keep: "" })
        }),
    ];
    (text, any::<String>(), any::<String>(), 0..=super::MOST_DATABASE).prop_map(
        |(text, user, password, database)| {
            let address = Address::parse(&text).unwrap_or_else(|error| panic!("{error}"));
            address.with_credentials(user, password).with_database(database)
        },
    )
}

proptest! {
    #[test]
    fn no_text_panics(text in noise()) {
        if let Err(error) = Address::parse(&text) {
            let _ = format!("{error} {error:?}");
        }
        let _ = parse_list(&text);
    }

    #[test]
    fn display_parses_to_the_same_without_the_password(address in good_address()) {
        let user = address.username().unwrap_or_default().to_string();
        let again = Address::parse(&address.to_string()).unwrap();
        prop_assert_eq!(again.server_key(), address.server_key());
        prop_assert_eq!(again, address.with_credentials(user, ""));
    }

    #[test]
    fn what_parses_displays_to_what_parses(text in noise()) {
        if let Ok(address) = Address::parse(&text) {
            let again = Address::parse(&address.to_string()).unwrap();
            let user = address.username().unwrap_or_default().to_string();
            prop_assert_eq!(again, address.with_credentials(user, ""));
        }
    }

    #[test]
    fn r26_no_password_shows_whatever_is_wrong_around_it(
        before in "[a-z0-9:/?#@%,\\[\\] é]{0,6}", after in "[a-z0-9:/?#%,\\[\\] é]{0,6}",
        end in prop::sample::select(alloc::vec!["h", "h:6379/1", "[::1]", "h:x", "", "h/x?db=1", "/run/r.sock"]),
        scheme in prop::sample::select(alloc::vec!["redis://", "rediss://", "unix://", "http://", ""]),
    ) {
        let text = format!("{scheme}user:{before}hunter2{after}@{end}");
        let one = match Address::parse(&text) {
            Ok(address) => format!("{address} {address:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        prop_assert!(!one.contains("hunter2"), "{}: {}", text, one);
        let list = match parse_list(&text) {
            Ok(list) => format!("{list:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        prop_assert!(!list.contains("hunter2"), "{}: {}", text, list);
    }
}
