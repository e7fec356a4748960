//! Bytes to values and back: what the engine decides by is what the server wrote.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by panicking")]

use bytes::Bytes;
use over_redis::{commands, reply};
use redis::Value;

#[test]
fn replies_come_through_to_the_byte() {
    for wrote in [
        "+OK\r\n",
        "+PONG\r\n",
        "+\r\n",
        "$2\r\nOK\r\n",
        "$0\r\n\r\n",
        "$4\r\n\r\n\r\n\r\n",
        "_\r\n",
        ":0\r\n",
        ":1\r\n",
        ":-1\r\n",
        ":-2\r\n",
        ":31536000000\r\n",
        ":9223372036854775807\r\n",
        ":-9223372036854775808\r\n",
        "-ERR\r\n",
        "-ERR  two  blanks \r\n",
        "-NOPERM User u has no permissions to access one of the keys used as arguments\r\n",
        "-ERR Error running script (call to f_1): @user_script:1: x script: 1, on @user_script:1.\r\n",
        "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
        "-lower case, and no code\r\n",
        "*2\r\n$10\r\n1700000000\r\n$6\r\n123456\r\n",
        "*2\r\n$16\r\n9007199254740993\r\n$1\r\n9\r\n",
        "*0\r\n",
        "*1\r\n*1\r\n:7\r\n",
        "%1\r\n$5\r\nproto\r\n:3\r\n",
        "=14\r\ntxt:run_id:1\r\n\r\n",
        ">2\r\n$10\r\ninvalidate\r\n*1\r\n$4\r\ndoor\r\n",
        ">2\r\n$10\r\ninvalidate\r\n_\r\n",
    ] {
        let value = redis::parse_redis_value(wrote.as_bytes()).unwrap();
        let again = reply(value.clone()).unwrap_or_else(|error| panic!("{wrote:?}: {error}"));
        assert_eq!(String::from_utf8_lossy(&again), *wrote, "{value:?}");
    }
}

#[test]
fn what_cannot_come_through_ends_the_connection() {
    for wrote in [
        "#t\r\n",
        ",1.5\r\n",
        "~1\r\n:1\r\n",
        "(12345678901234567890\r\n",
        "!8\r\nERR a\r\nb\r\n",
        ":999999999999999\r\n",
    ] {
        let value = redis::parse_redis_value(wrote.as_bytes()).unwrap();
        let through = reply(value.clone());
        assert!(through.is_err(), "{value:?}: {through:?}");
    }
}

/// Each null in RESP2 is the one of RESP3, which is what was agreed.
#[test]
fn nil_is_nil() {
    for wrote in ["$-1\r\n", "*-1\r\n", "_\r\n"] {
        assert_eq!(redis::parse_redis_value(wrote.as_bytes()).unwrap(), Value::Nil);
    }
    assert_eq!(&*reply(Value::Nil).unwrap(), b"_\r\n");
}

#[test]
fn commands_go_through_to_the_byte() {
    let payload: &[u8] =
        b"*6\r\n$3\r\nSET\r\n$4\r\ndoor\r\n$3\r\n\x00\xff\r\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n10000\r\n\
        *1\r\n$4\r\nPING\r\n*3\r\n$6\r\nCLIENT\r\n$7\r\nCACHING\r\n$0\r\n\r\n";
    let commands = commands(Bytes::from_static(payload)).unwrap();
    assert_eq!(commands.len(), 3);
    let again: Vec<u8> = commands.iter().flat_map(redis::Cmd::get_packed_command).collect();
    assert_eq!(again, payload);
}

#[test]
fn a_payload_that_is_no_command_is_refused() {
    for payload in ["*1\r\n$4\r\nPI", "+OK\r\n", "*1\r\n:1\r\n", "nonsense"] {
        assert!(commands(Bytes::from_static(payload.as_bytes())).is_err(), "{payload:?}");
    }
}
