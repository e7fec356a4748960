//! The example is the test: it fails if the stale write goes through.
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::process::Command;

#[test]
fn a_stale_holder_is_refused_by_the_store() {
    let outcome =
        Command::new(env!("CARGO_BIN_EXE_fenced-store")).env_remove("REDLOCK_NODES").output().unwrap();
    let said = String::from_utf8_lossy(&outcome.stderr);
    assert!(outcome.status.success(), "{said}");
    assert!(said.contains("was refused") && said.contains("nothing was lost"), "{said}");
}
