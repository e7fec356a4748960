//! `redlock nodes`.

use core::time::Duration;

use redlock_blocking::Redlock;
use rustix::process::Signal;

use crate::support::{Running, outcome, redlock};

/// Starts nodes and gives their addresses, as the line to paste says them.
fn serve(options: &str) -> (Running, Vec<String>) {
    let mut running = Running::start(redlock(&format!("nodes --port 0 {options}")));
    let line = running.line();
    let list = line.strip_prefix("export REDLOCK_NODES=").unwrap_or_else(|| panic!("{line}"));
    (running, list.split(',').map(str::to_owned).collect())
}

#[test]
fn locks_can_be_had_on_every_dialect() {
    for dialect in ["redis7", "redis84", "valkey81", "valkey9"] {
        let (running, urls) = serve(&format!("--count 3 --dialect {dialect}"));
        assert_eq!(urls.len(), 3);
        let redlock = Redlock::connect(&urls).unwrap();
        let guard = redlock.acquire("job").lock().unwrap();
        assert!(guard.is_held(), "{dialect}");
        guard.extend(Duration::from_secs(20)).unwrap();
        assert!(redlock.try_acquire("job").lock().is_err());
        assert!(guard.release().unwrap().is_clean());
        drop(redlock);
        running.signal(Signal::TERM);
        let outcome = running.finish();
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert!(outcome.stderr.starts_with("redlock: serving 3 simulated"), "{outcome:?}");
    }
}

#[test]
fn the_line_to_paste_works_with_a_password() {
    let mut command = redlock("nodes --port 0 --count 1 --password");
    command.arg("it's, a @ secret");
    let mut running = Running::start(command);
    let line = running.line();
    let mut command = std::process::Command::new("sh");
    let binary = env!("CARGO_BIN_EXE_redlock");
    command.args(["-c", &format!("{line}; {binary} run job -- true && {binary} run job -- sh -c 'exit 9'")]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let outcome = outcome(command);
    assert_eq!(outcome.code, Some(9), "{outcome:?}");
    running.signal(Signal::INT);
    assert_eq!(running.finish().code, Some(0));
}

#[test]
fn a_port_that_is_taken_is_said_so() {
    let (running, urls) = serve("--count 1");
    let port = urls[0].rsplit(':').next().unwrap();
    let outcome = outcome(redlock(&format!("nodes --count 1 --port {port}")));
    assert_eq!(outcome.code, Some(69), "{outcome:?}");
    assert!(outcome.stderr.contains(port), "{outcome:?}");
    drop(running);
}
