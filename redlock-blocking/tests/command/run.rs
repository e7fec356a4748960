//! `redlock run`, as long as nothing goes wrong with the lock: exit codes, environment, signals.

use core::time::Duration;
use std::process::Stdio;

use rustix::process::Signal;

use crate::support::{Fleet, Running, outcome, redlock, until};

#[test]
fn the_exit_code_is_that_of_the_command() {
    let fleet = Fleet::new();
    for code in [0, 1, 7, 64, 255] {
        let mut command = fleet.run("job -- sh -c");
        command.arg(format!("exit {code}"));
        let outcome = outcome(command);
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        assert_eq!(outcome.stderr, "", "nothing to say when all is well");
        until("the release", || fleet.is_free("job"));
    }
}

#[test]
fn death_by_a_signal_is_128_and_its_number() {
    let fleet = Fleet::new();
    for (name, number) in [("KILL", 9), ("TERM", 15), ("SEGV", 11)] {
        let mut command = fleet.run("job -- sh -c");
        command.arg(format!("ulimit -c 0; kill -{name} $$"));
        assert_eq!(outcome(command).code, Some(128 + number), "{name}");
    }
}

#[test]
fn what_makes_no_sense_is_64_before_anything_is_connected() {
    let dead = "--node redis://127.0.0.1:1";
    for line in [
        "",
        "run",
        "run job",
        "run job -- true",
        &format!("run {dead} job"),
        &format!("run {dead} --ttl 5x job -- true"),
        &format!("run {dead} --ttl 0 job -- true"),
        &format!("run {dead} --ttl 2ms job -- true"),
        &format!("run {dead} --ttl 9000h job -- true"),
        &format!("run {dead} --ttl 10s --max-hold 5s job -- true"),
        &format!("run {dead} --node-timeout 0 job -- true"),
        &format!("run {dead} --node REDIS://127.0.0.1:1/3 job -- true"),
        &format!("run {dead} --client-name \u{e4} job -- true"),
        "run --node http://127.0.0.1 job -- true",
        "run --node redis://127.0.0.1:99999 job -- true",
    ] {
        let outcome = outcome(redlock(line));
        assert_eq!(outcome.code, Some(64), "{line}: {outcome:?}");
        assert!(!outcome.stderr.is_empty(), "{line}");
        if !line.is_empty() {
            assert!(outcome.stderr.starts_with("redlock: "), "{line}: {outcome:?}");
            assert_eq!(outcome.stderr.lines().count(), 1, "{line}: {outcome:?}");
        }
    }
    let mut command = redlock("run");
    command.args([dead, "", "--", "true"]);
    assert_eq!(outcome(command).code, Some(64), "an empty resource");
    let mut command = redlock("run job -- true");
    command.env("REDLOCK_NODES", "redis://10.0.0.1,,redis://10.0.0.2");
    assert_eq!(outcome(command).code, Some(64), "an empty entry");
}

#[test]
fn help_and_version_are_no_failure() {
    for line in ["--help", "-h", "--version", "run --help", "nodes --help", "demo --help"] {
        let outcome = outcome(redlock(line));
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{line}");
        assert!(!outcome.stdout.is_empty(), "{line}");
    }
    let help = outcome(redlock("run --help")).stdout;
    for word in ["REDLOCK_NODES", "REDLOCK_RESOURCE", "64", "69", "70", "75", "126", "127", "Examples"] {
        assert!(help.contains(word), "{word} is not explained");
    }
}

#[test]
fn the_help_has_only_tls_below_its_heading() {
    for (command, options) in [
        ("run", ["--ttl", "--fenced"]),
        ("status", ["--timeout", "--json"]),
        ("check", ["--ttl", "--sampling"]),
        ("unlock", ["--force", "--yes"]),
        ("bench", ["--threads", "--ttl"]),
    ] {
        let help = outcome(redlock(&format!("{command} --help"))).stdout;
        let (above, below) = help.split_once("TLS, for rediss://").unwrap();
        for option in ["--cacert", "--cert", "--key", "--sni"] {
            assert!(below.contains(&format!("{option} <")), "{command} {option}: {help}");
        }
        for option in options {
            assert!(above.contains(option), "{command} {option}: {help}");
        }
        assert_eq!(help.contains("Arguments:"), !matches!(command, "check" | "bench"), "{help}");
    }
}

#[test]
fn a_secret_is_not_repeated() {
    let outcome = outcome(redlock("run --node redis://:hunter2@127.0.0.1:1/x job -- true"));
    assert_eq!(outcome.code, Some(64));
    assert!(!outcome.stderr.contains("hunter2"), "{outcome:?}");
}

#[test]
fn what_cannot_be_run_is_126_or_127_and_the_lock_is_given_back() {
    let fleet = Fleet::new();
    for (program, code) in [
        ("/no/such/program", 127),
        ("no-such-program-either", 127),
        ("/", 126),
        (concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), 126),
    ] {
        let outcome = outcome(fleet.run(&format!("job -- {program}")));
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        assert!(outcome.stderr.contains(program), "{outcome:?}");
        until("the release", || fleet.is_free("job"));
    }
}

#[test]
fn without_a_quorum_it_is_69_at_once() {
    let fleet = Fleet::new();
    for node in &fleet.nodes[..3] {
        node.kill();
    }
    let outcome = outcome(fleet.run("job -- true"));
    assert_eq!(outcome.code, Some(69), "{outcome:?}");
    assert!(outcome.took < Duration::from_secs(2), "{outcome:?}");
    for node in &fleet.nodes[..3] {
        assert!(outcome.stderr.contains(&node.addr().to_string()), "{outcome:?}");
    }
}

#[test]
fn with_a_minority_dead_it_works() {
    let fleet = Fleet::new();
    for node in &fleet.nodes[..2] {
        node.kill();
    }
    assert_eq!(outcome(fleet.run("job -- true")).code, Some(0));
}

#[test]
fn nodes_that_say_nothing_are_69_when_the_wait_is_over() {
    let fleet = Fleet::new();
    for node in &fleet.nodes[..3] {
        node.freeze();
    }
    let outcome = outcome(fleet.run("--wait 1s job -- true"));
    assert_eq!(outcome.code, Some(69), "{outcome:?}");
    assert!(outcome.took >= Duration::from_secs(1), "{outcome:?}");
}

#[test]
fn a_lock_that_is_held_is_75_when_the_wait_is_over() {
    let fleet = Fleet::new();
    fleet.occupy("job");
    for (wait, least) in [("0", 0), ("300ms", 300)] {
        let outcome = outcome(fleet.run(&format!("--wait {wait} job -- true")));
        assert_eq!(outcome.code, Some(75), "{outcome:?}");
        assert!(outcome.took >= Duration::from_millis(least), "{outcome:?}");
        assert!(outcome.stderr.contains("job"), "{outcome:?}");
    }
    assert!(fleet.values("job").iter().all(|value| value.as_deref() == Some(b"rival")), "and is left alone");
}

#[test]
fn who_waits_gets_it_when_it_is_free() {
    let fleet = Fleet::new();
    fleet.occupy("job");
    let running = Running::start(fleet.run("--wait forever job -- true"));
    // It has asked a quorum, and was refused: it does not wait for the others to be connected.
    let has_asked = |node: &redlock_core::sim::TcpNode| {
        node.with(|server, _| server.log().iter().any(|entry| entry.is("SET job")))
    };
    until("the first try", || fleet.nodes.iter().filter(|node| has_asked(node)).count() >= 3);
    fleet.delete("job", 5);
    assert_eq!(running.finish().code, Some(0));
}

#[test]
fn all_nodes_hold_one_token_meanwhile_and_none_after() {
    let fleet = Fleet::new();
    let mut command = fleet.run("--ttl 20s --client-name tester --key-prefix locks: job -- sh -c");
    command.arg("echo up; exec sleep 100");
    let mut running = Running::start(command);
    assert_eq!(running.line(), "up");
    until("all five", || fleet.values("locks:job").iter().all(Option::is_some));
    let values = fleet.values("locks:job");
    assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
    assert!(values[0].as_deref().unwrap().ends_with(b":tester"));
    assert!(fleet.left("locks:job").iter().all(|left| *left > Duration::from_secs(10)));
    running.signal(Signal::TERM);
    assert_eq!(running.finish().code, Some(128 + 15));
    until("the release", || fleet.is_free("locks:job"));
}

#[test]
fn it_is_renewed_for_longer_than_its_ttl() {
    let fleet = Fleet::new();
    let mut command = fleet.run("--ttl 600ms job -- sh -c");
    command.arg("sleep 1.5; exit 5");
    let outcome = outcome(command);
    assert_eq!(outcome.code, Some(5), "{outcome:?}");
}

#[test]
fn the_command_knows_the_resource() {
    let fleet = Fleet::new();
    let mut command = fleet.run("");
    command.args(["a name, with blanks", "--", "sh", "-c", "printf %s \"$REDLOCK_RESOURCE\""]);
    assert_eq!(outcome(command).stdout, "a name, with blanks");
}

#[test]
fn arguments_are_left_as_they_are() {
    let fleet = Fleet::new();
    let mut command = fleet.run("job -- printf");
    command.args(["[%s]", "--wait", "-x", "", "a b", "--"]);
    assert_eq!(outcome(command).stdout, "[--wait][-x][][a b][--]");
}

#[test]
fn signals_are_passed_on() {
    let fleet = Fleet::new();
    let mut command = fleet.run("job -- sh -c");
    command.arg(
        "for s in HUP INT QUIT USR1 USR2; do trap \"echo $s\" $s; done; trap 'echo TERM; exit 3' TERM; \
         echo ready; while :; do sleep 0.02; done",
    );
    let mut running = Running::start(command);
    assert_eq!(running.line(), "ready");
    for (signal, name) in [
        (Signal::HUP, "HUP"),
        (Signal::INT, "INT"),
        (Signal::QUIT, "QUIT"),
        (Signal::USR1, "USR1"),
        (Signal::USR2, "USR2"),
        (Signal::TERM, "TERM"),
    ] {
        running.signal(signal);
        assert_eq!(running.line(), name);
    }
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(3), "{outcome:?}");
    assert!(!outcome.stderr.contains("redlock"), "a signal is no loss of the lock: {outcome:?}");
    until("the release", || fleet.is_free("job"));
}

#[test]
fn a_release_that_nobody_answers_is_said_but_is_no_loss() {
    let fleet = Fleet::new();
    let mut command = fleet.run("job -- sh -c");
    command.arg("trap 'exit 6' USR1; echo up; while :; do sleep 0.02; done");
    let mut running = Running::start(command);
    assert_eq!(running.line(), "up");
    until("all five", || fleet.values("job").iter().all(Option::is_some));
    for node in &fleet.nodes[..3] {
        node.freeze();
    }
    running.signal(Signal::USR1);
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(6), "it ran under the lock: {outcome:?}");
    assert!(outcome.stderr.contains("unknown"), "{outcome:?}");
}

#[test]
fn verbose_tells_what_happens() {
    let fleet = Fleet::new();
    let outcome = outcome(fleet.run("--verbose job -- true"));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    assert!(lines.iter().all(|line| line.starts_with("redlock: ")), "{outcome:?}");
    assert!(lines.iter().any(|line| line.contains("acquired \"job\" on ")), "{outcome:?}");
    assert!(lines.iter().any(|line| line.contains("released \"job\"")), "{outcome:?}");
}

/// What is typed goes to the command, Ctrl-C as well, though it has a process group of its own.
#[test]
fn on_a_terminal_the_command_has_the_keyboard() {
    let fleet = Fleet::new();
    let inner =
        "trap 'echo interrupted; exit 5' INT; echo up; read x; echo got $x; while :; do sleep 0.02; done";
    // The usual tool that gives a command a terminal.
    let mut command = std::process::Command::new("script");
    let line = format!("{} run job -- sh -c \"$INNER\"", env!("CARGO_BIN_EXE_redlock"));
    command.args(["-qec", &line, "/dev/null"]).env("REDLOCK_NODES", fleet.urls()).env("INNER", inner);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if std::process::Command::new("script").arg("--version").output().is_err() {
        return;
    }
    let mut running = Running::start(command);
    // The terminal shows what is typed, too.
    let told = |what: &str, running: &mut Running| {
        let lines: Vec<String> =
            (0..3).map(|_| running.line()).take_while(|line| !line.ends_with(what)).collect();
        assert!(lines.len() < 3, "{what} is not told, but {lines:?}");
    };
    told("up", &mut running);
    running.type_in("hello\n");
    told("got hello", &mut running);
    running.type_in("\x03");
    told("interrupted", &mut running);
    assert_eq!(running.finish().code, Some(5));
}

#[test]
fn a_signal_during_the_wait_ends_it_and_leaves_nothing() {
    let fleet = Fleet::new();
    fleet.occupy("job");
    fleet.delete("job", 2);
    let running = Running::start(fleet.run("--wait forever job -- true"));
    let has_asked = |node: &redlock_core::sim::TcpNode| {
        node.with(|server, _| server.log().iter().any(|entry| entry.is("SET job")))
    };
    until("the first try", || fleet.nodes.iter().filter(|node| has_asked(node)).count() >= 3);
    running.signal(Signal::INT);
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(128 + 2), "{outcome:?}");
    until("the clean-up", || fleet.values("job")[..2].iter().all(Option::is_none));
}

#[test]
fn what_was_ignored_before_stays_ignored() {
    let fleet = Fleet::new();
    // `nohup` in the shell's own words.
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_redlock")]);
    command.args(["run", "job", "--", "sh", "-c", "echo up; kill -HUP $PPID $$; echo alive"]);
    command.env("REDLOCK_NODES", fleet.urls());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let outcome = outcome(command);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "up\nalive\n"), "{outcome:?}");
}

#[test]
fn the_fence_is_handed_to_the_command_and_grows() {
    let fleet = Fleet::new();
    let mut last = 0;
    for _ in 0..5 {
        let mut command = fleet.run("--fenced --verbose job -- sh -c");
        command.arg("echo $REDLOCK_FENCE");
        let outcome = outcome(command);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let fence: u64 = outcome.stdout.trim().parse().unwrap();
        assert!(fence > last, "{fence} after {last}");
        assert!(outcome.stderr.contains(&format!("with fence {fence}")), "{outcome:?}");
        last = fence;
    }
    let mut command = fleet.run("job -- sh -c");
    command.arg("echo ${REDLOCK_FENCE-none}").env_remove("REDLOCK_FENCE");
    assert_eq!(outcome(command).stdout, "none\n", "only where it was asked for");
}

#[test]
fn r25_the_restart_guard_keeps_fresh_nodes_out_and_says_so() {
    let fleet = Fleet::new();
    let refused = outcome(fleet.run("--restart-guard 3s --wait 0 job -- true"));
    assert_eq!(refused.code, Some(69), "{refused:?}");
    assert!(refused.stderr.contains("gives no vote"), "{refused:?}");
    let usage = outcome(fleet.run("--restart-guard 3s --ttl 4s job -- true"));
    assert_eq!(usage.code, Some(64), "{usage:?}");
    let waited = outcome(fleet.run("--restart-guard 500ms --wait 20s job -- true"));
    assert_eq!(waited.code, Some(0), "{waited:?}");
}

#[test]
fn completions_and_manual_pages_come_from_the_definition() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = outcome(redlock(&format!("completions {shell}")));
        assert_eq!((script.code, script.stderr.as_str()), (Some(0), ""), "{shell}");
        for word in ["unlock", "max-hold", "fenced"] {
            assert!(script.stdout.contains(word), "{shell}: {word}");
        }
    }
    let directory = std::env::temp_dir().join(format!("redlock-man-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let mut command = redlock("man");
    command.arg(&directory);
    assert_eq!(outcome(command).code, Some(0));
    let page = std::fs::read_to_string(directory.join("redlock-run.1")).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(page.contains(".TH") && page.contains("REDLOCK_FENCE"), "{page}");
    assert!(page.contains("\\fBredlock run\\fR [OPTIONS] <RESOURCE> \\-\\- <CMD>"), "{page}");
    let nowhere = outcome(redlock("man /nowhere/at/all"));
    assert_eq!(nowhere.code, Some(69), "{nowhere:?}");
    assert_eq!(outcome(redlock("completions tcsh")).code, Some(64));
}
