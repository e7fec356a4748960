//! What real servers answered, through the decoder and its interpretation.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use super::answer::{Answer, Asked};
use super::decode::Decoder;
use super::error::ErrorCode;
use super::frame::Protocol;
use super::handshake::{DeleteForm, Dialect, ExtendForm, Hello, Mode, Role, identity};
use super::reply::Reply;

struct Row {
    server: &'static str,
    version: &'static str,
    resp: &'static str,
    group: &'static str,
    situation: &'static str,
    command: &'static str,
    raw: Vec<u8>,
    error_code: &'static str,
    kind: &'static str,
}

impl Row {
    /// The protocol that is in force when the answer arrives.
    fn protocol(&self) -> Protocol {
        match (self.resp, self.kind) {
            ("2", "map") => Protocol::Negotiating,
            ("2", _) => Protocol::Resp2,
            ("3", _) => Protocol::Resp3,
            (other, _) => panic!("resp {other}"),
        }
    }

    fn decode<'a>(&self, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Reply> {
        let mut decoder = Decoder::new();
        decoder.set_protocol(self.protocol());
        let mut replies = Vec::new();
        for mut piece in pieces {
            while let Some(reply) = decoder.next(&mut piece).unwrap_or_else(|fault| panic!("{self}: {fault}"))
            {
                replies.push(reply);
            }
        }
        replies
    }

    fn replies(&self) -> Vec<Reply> {
        self.decode([&self.raw[..]])
    }
}

impl core::fmt::Display for Row {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { server, version, resp, group, situation, command, .. } = self;
        write!(
            f,
            "{server} {version} RESP{resp} {group}/{situation}: {command} -> {}",
            self.raw.escape_ascii()
        )
    }
}

fn rows() -> Vec<Row> {
    let text = include_str!("../../tests/data/replies.tsv");
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    let rows: Vec<Row> = lines.map(row).collect();
    assert!(rows.len() > 400, "{}", rows.len());
    rows
}

fn row(line: &'static str) -> Row {
    let fields: Vec<&str> = line.split('\t').collect();
    let &[server, version, resp, group, situation, command, raw, error_code, kind] = &fields[..] else {
        panic!("{line}");
    };
    let hex = |at| u8::from_str_radix(&raw[at..at + 2], 16).unwrap();
    let raw = (0..raw.len()).step_by(2).map(hex).collect();
    Row { server, version, resp, group, situation, command, raw, error_code, kind }
}

#[test]
fn b31_i_every_reply_is_the_same_at_every_split_and_byte_by_byte() {
    for row in rows() {
        let whole = row.replies();
        assert!(!whole.is_empty(), "{row}");
        for at in 0..=row.raw.len() {
            assert_eq!(row.decode([&row.raw[..at], &row.raw[at..]]), whole, "{row} split at {at}");
        }
        assert_eq!(row.decode(row.raw.chunks(1)), whole, "{row} byte by byte");
    }
}

#[test]
fn each_reply_is_of_the_kind_that_was_recorded() {
    for row in rows() {
        let replies = row.replies();
        let matches = match row.kind {
            "simple" => matches!(replies[0], Reply::Ok | Reply::Simple(_)),
            "error" => matches!(replies[0], Reply::Error(_)),
            "integer" => matches!(replies[0], Reply::Integer(_)),
            "bulk" | "verbatim" => matches!(replies[0], Reply::Bulk(_)),
            "array" => matches!(replies[0], Reply::Array(_) | Reply::Null),
            "map" => matches!(replies[0], Reply::Map(_)),
            "null" => replies[0] == Reply::Null,
            "push" => replies.iter().any(|reply| matches!(reply, Reply::Push(_))),
            other => panic!("{other}"),
        };
        assert!(matches, "{row}: {:?}", replies[0]);
    }
}

#[test]
fn error_codes_are_classified_as_recorded() {
    for row in rows().iter().filter(|row| row.kind == "error") {
        let Reply::Error(error) = &row.replies()[0] else { panic!("{row}") };
        let word = error.text().split(' ').next().unwrap().to_string();
        // Words in lower case are recorded as no code.
        if word.chars().all(|c| c.is_ascii_uppercase()) {
            assert_eq!(word, row.error_code, "{row}");
        }
        let expected = match row.error_code {
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
            "NOSCRIPT" => ErrorCode::Noscript,
            "NOPROTO" => ErrorCode::Noproto,
            "WRONGTYPE" => ErrorCode::Wrongtype,
            "EXECABORT" => ErrorCode::Execabort,
            "DENIED" => ErrorCode::Denied,
            "ERR" => by_text(error.text()),
            "LOCKED" | "oops" | "NOTBUSY" | "UNKILLABLE" | "ERRNOSPACE" | "" => ErrorCode::Other,
            other => panic!("{other}"),
        };
        assert_eq!(error.code(), expected, "{row}");
        assert_eq!(error.in_script(), row.raw.windows(5).any(|window| window == b"on @u"), "{row}");
        assert!(!error.text().contains("with args"), "{row}");
    }
}

/// What each `ERR` in the records is, by a word that only it contains.
fn by_text(text: &str) -> ErrorCode {
    let table = [
        ("nknown command", ErrorCode::UnknownCommand),
        ("nknown Redis command called", ErrorCode::UnknownCommand),
        ("unknown subcommand", ErrorCode::UnknownSubcommand),
        ("yntax error", ErrorCode::Syntax),
        ("rong number of arg", ErrorCode::WrongArity),
        ("invalid expire time", ErrorCode::InvalidExpire),
        ("ACL failure", ErrorCode::ScriptAcl),
        ("The user executing the script", ErrorCode::ScriptAcl),
        ("max number of clients", ErrorCode::MaxClients),
        ("Protocol error", ErrorCode::Protocol),
        ("without any password", ErrorCode::Wrongpass),
        ("of string type", ErrorCode::Wrongtype),
    ];
    table.iter().find(|(word, _)| text.contains(word)).map_or(ErrorCode::Other, |(_, code)| *code)
}

#[test]
fn every_lacking_right_has_a_name() {
    let mut named = 0;
    for row in rows() {
        if let Reply::Error(error) = &row.replies()[0]
            && matches!(error.code(), ErrorCode::Noperm | ErrorCode::ScriptAcl)
        {
            assert!(error.missing_right().is_some(), "{row}");
            assert!(error.is_fatal(), "{row}");
            named += 1;
        }
    }
    assert!(named > 20, "{named}");
}

/// What a recorded command asked, where it is one of ours.
fn asked(command: &str) -> Option<Asked> {
    let words: Vec<&str> = command.split(' ').collect();
    match words[..] {
        ["SET", _, _, "NX", "PX", _] => Some(Asked::Set { keys: 1 }),
        ["SET", _, _, "IFEQ", _, "PX", _] => Some(Asked::Extend { form: ExtendForm::Ifeq, keys: 1 }),
        ["DELEX", _, "IFEQ", _] => Some(Asked::Release { form: DeleteForm::Delex, keys: 1 }),
        ["DELIFEQ", _, _] => Some(Asked::Release { form: DeleteForm::Delifeq, keys: 1 }),
        _ => None,
    }
}

#[test]
fn the_recorded_answers_to_our_commands_are_expected_ones() {
    let mut seen = [0; 3];
    for row in rows() {
        let Some(asked) = asked(row.command) else { continue };
        let error_code = row.error_code;
        match (asked.interpret(row.replies().swap_remove(0)), row.kind) {
            (Answer::Yes, "simple") => seen[0] += 1,
            (Answer::Yes, "integer") => assert_eq!(row.raw, b":1\r\n", "{row}"),
            (Answer::No, "null") => seen[1] += 1,
            (Answer::No, "integer") => assert_eq!(row.raw, b":0\r\n", "{row}"),
            (Answer::No, "error") => assert!(
                row.raw.starts_with(b"-WRONGTYPE") || row.raw.starts_with(b"-ERR Key should"),
                "{row}"
            ),
            (Answer::Error(error), "error") => {
                assert_ne!(error.code(), ErrorCode::Wrongtype, "{row}");
                assert!(error.is_not_applied(), "{row}");
                let lacks = error_code == "ERR"
                    && (row.server, row.version) == ("redis", "7.0.15")
                    && row.command.starts_with("DEL");
                assert!(!lacks || asked.fallback(&error).is_some(), "{row}");
                seen[2] += 1;
            }
            (answer, kind) => panic!("{row}: {answer:?} {kind}"),
        }
    }
    assert!(seen.iter().all(|count| *count >= 3), "{seen:?}");
}

#[test]
fn r22_the_recorded_greetings_choose_the_dialect() {
    let mut chosen = Vec::new();
    for row in rows() {
        if !row.command.to_ascii_uppercase().starts_with("HELLO") || row.kind == "error" {
            continue;
        }
        let hello = Hello::parse(&row.replies()[0]).unwrap_or_else(|| panic!("{row}"));
        assert_eq!(
            hello.mode,
            Some(if row.group == "cluster" { Mode::Cluster } else { Mode::Standalone }),
            "{row}"
        );
        let replica = row.group == "masterdown" || row.situation.contains("replica");
        assert_eq!(hello.role, Some(if replica { Role::Replica } else { Role::Master }), "{row}");
        assert_eq!(hello.protocol, Some(if row.kind == "map" { 3 } else { 2 }), "{row}");
        let (_, version) = identity(Some(&hello), None).unwrap();
        let poses = row.group == "compat";
        assert_eq!(version.to_string(), if poses { "7.2.4" } else { row.version }, "{row}");
        let expected = match (row.server, row.version) {
            _ if poses => Dialect::SCRIPTS,
            ("redis", "8.6.3") => Dialect { delete: DeleteForm::Delex, extend: ExtendForm::Ifeq },
            ("valkey", "9.1.2") => Dialect { delete: DeleteForm::Delifeq, extend: ExtendForm::Ifeq },
            ("valkey", "8.1.1") => Dialect { delete: DeleteForm::Script, extend: ExtendForm::Ifeq },
            _ => Dialect::SCRIPTS,
        };
        assert_eq!(Dialect::choose(Some(&hello), None), expected, "{row}");
        chosen.push(String::from(row.version));
    }
    chosen.sort();
    chosen.dedup();
    assert_eq!(chosen.len(), 5, "{chosen:?}");
}
