//! The second process of a contestant.

use crate::workloads::Plan;
use serde::de::DeserializeOwned;
use std::error::Error;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

/// It is connected and waits to be started; killed if it is not done at the end.
pub(crate) struct Partner {
    child: Child,
    said: Lines<BufReader<ChildStdout>>,
}

impl Partner {
    /// The same contestant, for its part of a workload.
    pub(crate) fn start(name: &str, part: &str, plan: Plan, ports: &[u16]) -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["contestant", name, part, "-", &plan.seconds.to_string(), &plan.cycles.to_string()]);
        command.args(ports.iter().map(u16::to_string));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut said = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        let is_ready = said.next().transpose()?.is_some_and(|line| line == "ready");
        let partner = Self { child, said };
        if is_ready { Ok(partner) } else { Err("the second process did not connect".into()) }
    }

    pub(crate) fn go(&mut self) -> Result<(), Box<dyn Error>> {
        let stdin = self.child.stdin.as_mut().ok_or("no input")?;
        Ok(stdin.write_all(b"go\n")?)
    }

    /// What it has to say at its end, which is waited for.
    pub(crate) fn figures<T: DeserializeOwned>(mut self) -> Result<T, String> {
        let line = self.said.next().and_then(Result::ok).ok_or("the second process ended without a word")?;
        serde_json::from_str(&line).map_err(|error| error.to_string())
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        // Its last releases were answered before it spoke.
        let _gone = (self.child.kill(), self.child.wait());
    }
}
