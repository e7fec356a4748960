use super::*;

fn parse(line: &str) -> ServerError {
    ServerError::parse(line.as_bytes())
}

#[test]
fn codes_are_the_first_word() {
    for (line, code) in [
        ("NOAUTH Authentication required.", ErrorCode::Noauth),
        ("WRONGPASS invalid username-password pair or user is disabled.", ErrorCode::Wrongpass),
        ("NOPERM No permissions to access a key", ErrorCode::Noperm),
        ("READONLY You can't write against a read only replica.", ErrorCode::Readonly),
        ("MASTERDOWN Link with MASTER is down", ErrorCode::Masterdown),
        ("LOADING Redis is loading the dataset in memory", ErrorCode::Loading),
        ("BUSY Redis is busy running a script.", ErrorCode::Busy),
        ("OOM command not allowed when used memory > 'maxmemory'.", ErrorCode::Oom),
        ("MISCONF Errors writing to the AOF file: No space left on device", ErrorCode::Misconf),
        ("NOREPLICAS Not enough good replicas to write.", ErrorCode::Noreplicas),
        ("CLUSTERDOWN The cluster is down", ErrorCode::Clusterdown),
        ("MOVED 12182 127.0.0.1:7001", ErrorCode::Moved),
        ("ASK 7629 127.0.0.1:7001", ErrorCode::Ask),
        ("CROSSSLOT Keys in request don't hash to the same slot", ErrorCode::Crossslot),
        ("TRYAGAIN Multiple keys request during rehashing of slot", ErrorCode::Tryagain),
        ("NOSCRIPT No matching script.", ErrorCode::Noscript),
        ("NOPROTO unsupported protocol version", ErrorCode::Noproto),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", ErrorCode::Wrongtype),
        ("EXECABORT Transaction discarded because of previous errors.", ErrorCode::Execabort),
        ("DENIED Redis is running in protected mode because", ErrorCode::Denied),
        ("LOCKED by other", ErrorCode::Other),
        ("ERRNOSPACE", ErrorCode::Other),
        ("oops", ErrorCode::Other),
        ("", ErrorCode::Other),
    ] {
        assert_eq!(parse(line).code(), code, "{line}");
        assert!(parse(line).is_not_applied(), "{line}");
        assert_eq!(parse(line).text(), line);
    }
}

#[test]
fn codes_of_err_are_read_from_the_text() {
    for (line, code) in [
        ("ERR unknown command 'DELEX', with args beginning with: 'k' 'IFEQ' 'v' ", ErrorCode::UnknownCommand),
        ("ERR unknown command `DELEX`, with args beginning with: `k`, ", ErrorCode::UnknownCommand),
        ("ERR unknown command 'NOSUCH'", ErrorCode::UnknownCommand),
        ("ERR unknown subcommand 'SETINFO'. Try CLIENT HELP.", ErrorCode::UnknownSubcommand),
        ("ERR Unknown subcommand or wrong number of arguments for 'SETINFO'.", ErrorCode::UnknownSubcommand),
        ("ERR syntax error", ErrorCode::Syntax),
        ("ERR Syntax error in HELLO option 'FOO'", ErrorCode::Syntax),
        ("ERR wrong number of arguments for 'set' command", ErrorCode::WrongArity),
        ("ERR invalid expire time in 'set' command", ErrorCode::InvalidExpire),
        ("ERR invalid expire time in set", ErrorCode::InvalidExpire),
        ("ERR max number of clients reached", ErrorCode::MaxClients),
        ("ERR max number of clients + cluster connections reached", ErrorCode::MaxClients),
        ("ERR Protocol error: invalid bulk length", ErrorCode::Protocol),
        ("ERR invalid password", ErrorCode::Wrongpass),
        ("ERR Client sent AUTH, but no password is set", ErrorCode::Wrongpass),
        (
            "ERR AUTH <password> called without any password configured for the default user.",
            ErrorCode::Wrongpass,
        ),
        ("ERR Key should be of string type if conditions are specified", ErrorCode::Wrongtype),
        ("ERR value is not an integer or out of range", ErrorCode::Other),
        ("ERR", ErrorCode::Other),
    ] {
        assert_eq!(parse(line).code(), code, "{line}");
    }
}

#[test]
fn r4_an_error_inside_a_script_is_known_by_its_suffix() {
    let sha = "script: b70c2384248f88e6b75b9f89241a180f856ad852, on @user_script:1.";
    for (line, code) in [
        (format!("READONLY You can't write against a read only replica. {sha}"), ErrorCode::Readonly),
        (
            "OOM command not allowed when used memory > 'maxmemory'. script: on @user_script:1.".into(),
            ErrorCode::Oom,
        ),
        (
            format!("ERR ACL failure in script: User u has no permissions to run the 'del' command {sha}"),
            ErrorCode::ScriptAcl,
        ),
        (
            format!("ERR The user executing the script can't run this command or subcommand {sha}"),
            ErrorCode::ScriptAcl,
        ),
        (format!("ERR Unknown Redis command called from script {sha}"), ErrorCode::UnknownCommand),
        (format!("{} {sha}", "x".repeat(500)), ErrorCode::Other),
    ] {
        let error = parse(&line);
        assert_eq!(error.code(), code, "{line}");
        assert!(error.in_script() && !error.is_not_applied(), "{line}");
    }
    for line in [
        "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
        "ERR Error compiling script (new function): user_script:1: unexpected symbol near '<eof>'",
        "ERR unknown command 'X', with args beginning with: 'k script: on @user_script:1.' ",
        "ERR ACL failure in script: something else",
    ] {
        assert!(!parse(line).in_script(), "{line}");
    }
}

#[test]
fn b34_the_old_form_hides_the_code_in_the_text() {
    for (inner, code) in [
        ("@user_script:1: -READONLY You can't write against a read only slave.", ErrorCode::Readonly),
        (
            "@user_script:1: @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.",
            ErrorCode::Oom,
        ),
        ("@user_script:1: -NOPERM this user has no permissions to run the 'del' command", ErrorCode::Noperm),
        (
            "@user_script:1: @user_script: 1: The user executing the script can't run this command or subcommand",
            ErrorCode::ScriptAcl,
        ),
        (
            "@user_script:1: @user_script: 1: Unknown Redis command called from Lua script",
            ErrorCode::UnknownCommand,
        ),
        ("@user_script:1: user-thrown -1", ErrorCode::Other),
    ] {
        let line = format!(
            "ERR Error running script (call to f_b70c2384248f88e6b75b9f89241a180f856ad852): {inner} "
        );
        let error = parse(&line);
        assert_eq!(error.code(), code, "{line}");
        assert!(error.in_script(), "{line}");
    }
}

#[test]
fn r9_fatal_is_what_only_a_change_of_configuration_mends() {
    for line in
        ["NOAUTH x", "WRONGPASS x", "NOPERM x", "READONLY x", "MASTERDOWN x", "MOVED 1 a:1", "ASK 1 a:1"]
    {
        assert!(parse(line).is_fatal(), "{line}");
    }
    assert!(parse("ERR unknown command 'SET'").is_fatal());
    assert!(parse("ERR ACL failure in script: User u has no permissions").is_fatal());
    for line in [
        "LOADING x",
        "BUSY x",
        "OOM x",
        "MISCONF x",
        "NOREPLICAS x",
        "CLUSTERDOWN x",
        "TRYAGAIN x",
        "oops",
        "DENIED x",
    ] {
        assert!(!parse(line).is_fatal(), "{line}");
    }
    assert!(!parse("ERR max number of clients reached").is_fatal());
    assert!(!parse("NOPROTO x").is_fatal());
}

#[test]
fn r23_what_replaces_data_and_what_closes() {
    for (line, replaces, closes) in [
        ("READONLY x", true, false),
        ("MASTERDOWN x", true, false),
        ("LOADING x", true, false),
        ("ERR max number of clients reached", false, true),
        ("DENIED x", false, true),
        ("ERR Protocol error: x", false, true),
        ("OOM x", false, false),
    ] {
        let error = parse(line);
        assert_eq!((error.replaces_data(), error.closes_connection()), (replaces, closes), "{line}");
    }
}

#[test]
fn the_missing_right_is_named() {
    for (line, right) in [
        ("NOPERM User u has no permissions to run the 'delex' command", Some("`+delex`")),
        (
            "NOPERM this user has no permissions to run the 'client|setname' command",
            Some("`+client|setname`"),
        ),
        ("NOPERM No permissions to access a key", Some("access to the key (`~pattern`)")),
        ("NOPERM something new", None),
        (
            "ERR ACL failure in script: User u has no permissions to run the 'del' command script: on @user_script:1.",
            Some("`+del`"),
        ),
        (
            "ERR The user executing the script can't run this command or subcommand",
            Some("a command that the script runs (`+get`, `+set`, `+exists`, `+del`, `+pexpire`)"),
        ),
        ("ERR unknown command 'X'", None),
    ] {
        assert_eq!(parse(line).missing_right().as_deref(), right, "{line}");
    }
}

#[test]
fn the_display_says_what_it_means() {
    for (line, shown) in [
        (
            "NOPERM User u has no permissions to run the 'del' command",
            "NOPERM User u has no permissions to run the 'del' command (the ACL of this user lacks a right: `+del`)",
        ),
        ("NOPERM something new", "NOPERM something new (the ACL of this user lacks a right)"),
        (
            "READONLY You can't write against a read only replica.",
            "READONLY You can't write against a read only replica. (you are talking to a replica)",
        ),
        ("MASTERDOWN x", "MASTERDOWN x (you are talking to a replica)"),
        ("LOADING x", "LOADING x (the server is starting up)"),
        ("LOCKED by other", "LOCKED by other"),
    ] {
        assert_eq!(parse(line).to_string(), shown);
    }
}

#[test]
fn r26_arguments_and_secrets_are_not_repeated() {
    let error = parse("ERR unknown command 'DELEX', with args beginning with: 'k' 'IFEQ' '5ec4e75ec4e7' ");
    assert_eq!(error.text(), "ERR unknown command 'DELEX'");
    let error = parse("ERR unknown command `DELEX`, with args beginning with: `k`, `5ec4e75ec4e7`, ");
    assert_eq!(error.text(), "ERR unknown command `DELEX`");

    let mut error = parse("ERR no such thing: 5ec4e75ec4e7 and p\0ss and 5ec4e75ec4e7");
    error.redact(&[b"5ec4e75ec4e7", b"p\0ss", b""]);
    assert_eq!(error.text(), "ERR no such thing: [redacted] and [redacted] and [redacted]");

    // The shortening cuts the secret in two.
    let mut error = parse(&format!("{}0123456789abcdef", "x".repeat(MAX_TEXT - 9)));
    assert!(error.text().ends_with("x01234567…"), "{error}");
    error.redact(&[b"0123456789abcdef"]);
    assert!(error.text().ends_with("x[redacted]…"), "{error}");
}

#[test]
fn texts_are_escaped_and_shortened() {
    let error = ServerError::parse(b"ERR a\0b\xffc\x1b[2J d\xc3\xa9 ");
    assert_eq!(error.text(), "ERR a\\0b\\xffc\\u{1b}[2J d\u{e9}");
    let error = ServerError::parse(&alloc::vec![b'\0'; 100_000]);
    assert_eq!(error.text().chars().count(), MAX_TEXT);
    assert!(error.text().ends_with('…'));
    assert_eq!(parse(&"y".repeat(MAX_TEXT)).text().len(), MAX_TEXT);
}
