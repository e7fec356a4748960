use super::*;
use crate::wire::reply::Blob;
use alloc::string::ToString as _;
use alloc::vec;
use alloc::vec::Vec;

fn bulk(text: &str) -> Reply {
    Reply::Bulk(Blob::copy_of(text.as_bytes()))
}

fn hello_fields(server: &str, version: &str) -> Vec<(Reply, Reply)> {
    let module = vec![(bulk("name"), bulk("vectorset")), (bulk("version"), Reply::Integer(1))];
    vec![
        (bulk("server"), bulk(server)),
        (bulk("version"), bulk(version)),
        (bulk("proto"), Reply::Integer(3)),
        (bulk("id"), Reply::Integer(7)),
        (bulk("mode"), bulk("standalone")),
        (bulk("role"), bulk("master")),
        (bulk("modules"), Reply::Array(vec![Reply::Map(module)])),
        (Reply::Null, bulk("x")),
        (bulk("availability_zone"), bulk("")),
    ]
}

fn hello(server: &str, version: &str) -> Hello {
    Hello::parse(&Reply::Map(hello_fields(server, version))).unwrap()
}

#[test]
fn hello_is_read_from_a_map_and_from_a_flat_array() {
    let expected = Hello {
        product: Some(Product::Redis),
        version: Some(Version::new(8, 6, 3)),
        protocol: Some(3),
        mode: Some(Mode::Standalone),
        role: Some(Role::Master),
    };
    assert_eq!(hello("redis", "8.6.3"), expected);
    let flat = hello_fields("redis", "8.6.3").into_iter().flat_map(|(key, value)| [key, value]).collect();
    assert_eq!(Hello::parse(&Reply::Array(flat)), Some(expected));
}

#[test]
fn hello_passes_over_what_it_does_not_know() {
    assert_eq!(Hello::parse(&Reply::Map(vec![])), Some(Hello::default()));
    assert_eq!(Hello::parse(&Reply::Array(vec![bulk("server")])), Some(Hello::default()));
    let odd = vec![
        (bulk("server"), Reply::Integer(1)),
        (bulk("version"), bulk("unstable")),
        (bulk("proto"), bulk("3")),
        (bulk("mode"), bulk("other")),
        (bulk("role"), Reply::Null),
    ];
    assert_eq!(Hello::parse(&Reply::Map(odd)), Some(Hello { mode: Some(Mode::Other), ..Hello::default() }));
    for reply in [Reply::Ok, Reply::Null, Reply::Integer(1), bulk("server"), Reply::Push(vec![])] {
        assert_eq!(Hello::parse(&reply), None);
    }
}

#[test]
fn info_is_read_line_by_line() {
    let text = "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\nserver_mode:standalone\r\n\
        run_id:80c6112cd0be415c75747bfcdb39bac2219952bc\r\nuptime_in_seconds:-3599\r\nexecutable:/a:b/redis\r\n\r\n\
        # Replication\r\nrole:slave\r\nloading:1\r\n";
    let info = Info::parse(&bulk(text)).unwrap();
    assert_eq!(
        info,
        Info {
            run_id: Some("80c6112cd0be415c75747bfcdb39bac2219952bc".to_string()),
            uptime_secs: Some(-3599),
            role: Some(Role::Replica),
            mode: Some(Mode::Standalone),
            redis_version: Some(Version::new(7, 2, 4)),
            valkey_version: Some(Version::new(9, 1, 2)),
            loading: Some(true),
        }
    );
    let cluster = Info::parse(&bulk("redis_mode:cluster\r\nrole:master\r\n")).unwrap();
    assert_eq!((cluster.mode, cluster.role), (Some(Mode::Cluster), Some(Role::Master)));
}

#[test]
fn info_passes_over_garbage() {
    assert_eq!(Info::parse(&bulk("")), Some(Info::default()));
    assert_eq!(
        Info::parse(&bulk(":\r\nrun_id:\r\nuptime_in_seconds:x\r\nredis_version:abc\r\n::::")),
        Some(Info::default())
    );
    assert_eq!(Info::parse(&Reply::Bulk(Blob::copy_of(b"\xff\0:\xfe\nloading:\xff"))), Some(Info::default()));
    assert_eq!(Info::parse(&Reply::Null), None);
    let long = Info::parse(&bulk(&["run_id:", &"a".repeat(1_000)].concat())).unwrap();
    assert_eq!(long.run_id.map(|id| id.len()), Some(MAX_WORD));
    let twice = Info::parse(&bulk("run_id:a\nrun_id:b\n")).unwrap();
    assert_eq!(twice.run_id.as_deref(), Some("a"));
}

#[test]
fn versions() {
    for (text, version) in [
        ("8.4.0", Some(Version::new(8, 4, 0))),
        ("9.1", Some(Version::new(9, 1, 0))),
        ("8.4-rc1.2", Some(Version::new(8, 4, 2))),
        ("255.255.255", Some(Version::new(255, 255, 255))),
        ("99999999999.1", None),
        ("v8.4", None),
        ("", None),
    ] {
        assert_eq!(Version::parse(text.as_bytes()), version, "{text}");
    }
    assert_eq!(Version::new(8, 4, 0).to_string(), "8.4.0");
}

#[test]
fn r22_the_dialect_follows_from_server_and_version() {
    let redis = Dialect { delete: DeleteForm::Delex, extend: ExtendForm::Ifeq };
    let valkey9 = Dialect { delete: DeleteForm::Delifeq, extend: ExtendForm::Ifeq };
    let valkey8 = Dialect { delete: DeleteForm::Script, extend: ExtendForm::Ifeq };
    for (server, version, dialect) in [
        ("redis", "7.0.15", Dialect::SCRIPTS),
        ("redis", "8.3.9", Dialect::SCRIPTS),
        ("redis", "8.4.0", redis),
        ("redis", "8.6.3", redis),
        ("redis", "10.0.0", redis),
        ("valkey", "8.0.9", Dialect::SCRIPTS),
        ("valkey", "8.1.1", valkey8),
        ("valkey", "8.4.0", valkey8),
        ("valkey", "9.0.0", valkey9),
        ("valkey", "9.1.2", valkey9),
        ("dragonfly", "99.0.0", Dialect::SCRIPTS),
        ("redis", "unstable", Dialect::SCRIPTS),
    ] {
        assert_eq!(Dialect::choose(Some(&hello(server, version)), None), dialect, "{server} {version}");
    }
    assert_eq!(Dialect::choose(None, None), Dialect::SCRIPTS);
    // Without HELLO (RESP2 only) INFO says it.
    let info = |text: &str| Info::parse(&bulk(text)).unwrap();
    assert_eq!(Dialect::choose(None, Some(&info("redis_version:8.4.1\r\n"))), redis);
    assert_eq!(Dialect::choose(None, Some(&info("redis_version:6.2.0\r\n"))), Dialect::SCRIPTS);
    assert_eq!(
        Dialect::choose(None, Some(&info("redis_version:7.2.4\r\nvalkey_version:9.0.0\r\n"))),
        valkey9
    );
}

#[test]
fn r22_a_valkey_that_poses_as_redis_is_known_by_info() {
    let posing = hello("redis", "7.2.4");
    let info = Info::parse(&bulk("redis_version:7.2.4\r\nvalkey_version:9.1.2\r\n")).unwrap();
    let dialect = Dialect::choose(Some(&posing), Some(&info));
    assert_eq!(dialect, Dialect { delete: DeleteForm::Delifeq, extend: ExtendForm::Ifeq });
    assert_eq!(Dialect::choose(Some(&posing), None), Dialect::SCRIPTS);
    assert_eq!(identity(Some(&posing), Some(&info)), Some((Product::Valkey, Version::new(9, 1, 2))));
}
