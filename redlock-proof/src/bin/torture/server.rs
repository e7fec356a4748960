//! A server in a process of its own, which can be killed and started again with what it knew.

use crate::programs::Program;
use core::net::SocketAddr;
use core::time::Duration;
use redlock_proof::simulate::Dice;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// How long a server may take to answer what is asked of it here.
const PATIENCE: Duration = Duration::from_millis(300);

/// One server.
#[derive(Debug)]
pub(crate) struct Server {
    program: Program,
    folder: PathBuf,
    addr: SocketAddr,
    remembers: bool,
    child: Option<Child>,
    state: State,
}

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Dead,
    /// Its process runs, and has not answered yet.
    Starting,
    Stopped,
    Up,
}

impl Server {
    /// Starts one on a free port. It is not up yet.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn start(
        program: Program,
        folder: PathBuf,
        remembers: bool,
        dice: &mut Dice<'_>,
    ) -> io::Result<Self> {
        std::fs::create_dir_all(&folder)?;
        let addr = free_address(dice)?;
        let mut server = Self { program, folder, addr, remembers, child: None, state: State::Dead };
        server.revive()?;
        Ok(server)
    }

    pub(crate) const fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) const fn state(&self) -> State {
        self.state
    }

    /// Starts it again, on the same port, with the same files.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn revive(&mut self) -> io::Result<()> {
        let port = self.addr.port().to_string();
        let remembers = if self.remembers { "yes" } else { "no" };
        // By way of this program, so that the server ends when we do, however we end.
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("serve").arg(&self.program.path);
        // In a group of its own, so that the terminal's Ctrl-C comes to us alone.
        command.process_group(0);
        command.args([
            "--port",
            &port,
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--daemonize",
            "no",
            "--loglevel",
            "warning",
        ]);
        // What was answered is on disk, or at least out of the process: who is killed and comes back knows it.
        command.args(["--appendonly", remembers, "--appendfsync", "always"]);
        command.arg("--dir").arg(&self.folder);
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.folder.join("log"))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        self.child = Some(command.spawn()?);
        self.state = State::Starting;
        Ok(())
    }

    /// Looks whether it is up by now, where it was started. One whose process has ended, because its port was not free yet,
    /// is started again.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn tend(&mut self) -> io::Result<()> {
        if self.state != State::Starting {
            return Ok(());
        }
        let Some(child) = &mut self.child else { return Ok(()) };
        if child.try_wait()?.is_some() {
            return self.revive();
        }
        // Another process may have the port.
        let ours = format!("process_id:{}\r\n", child.id());
        if self.ask(b"INFO server\r\n", Duration::from_millis(50)).is_some_and(|info| info.contains(&ours)) {
            self.state = State::Up;
        }
        Ok(())
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _gone = (child.kill(), child.wait());
        }
        self.state = State::Dead;
    }

    pub(crate) fn stop(&mut self) {
        if self.state == State::Up {
            self.signal(Signal::STOP);
            self.state = State::Stopped;
        }
    }

    pub(crate) fn go_on(&mut self) {
        if self.state == State::Stopped {
            self.signal(Signal::CONT);
            self.state = State::Up;
        }
    }

    fn signal(&self, signal: Signal) {
        // It was not waited for, so this is still its number.
        if let Some(pid) =
            self.child.as_ref().and_then(|child| Pid::from_raw(i32::try_from(child.id()).ok()?))
        {
            let _gone = kill_process(pid, signal);
        }
    }

    /// Has it do something, as an operator would.
    pub(crate) fn command(&self, line: &str) {
        let _said = self.ask(format!("{line}\r\n").as_bytes(), PATIENCE);
    }

    /// Whether it answers so.
    pub(crate) fn says(&self, line: &str, answer: &str) -> bool {
        self.ask(format!("{line}\r\n").as_bytes(), PATIENCE).is_some_and(|said| said == answer)
    }

    /// What it says; not the whole of a long answer.
    fn ask(&self, line: &[u8], patience: Duration) -> Option<String> {
        let mut client = TcpStream::connect_timeout(&self.addr, patience).ok()?;
        client.set_read_timeout(Some(patience)).ok()?;
        client.write_all(line).ok()?;
        let mut said = vec![0; 8 * 1024];
        let length = client.read(&mut said).ok()?;
        said.truncate(length);
        String::from_utf8(said).ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An address that is free, and that no outgoing connection gets while its server is dead: below the range that systems
/// take those ports from. A client that connects again and again to a dead port within it ends up connected to itself.
fn free_address(dice: &mut Dice<'_>) -> io::Result<SocketAddr> {
    let mut result = Err(io::ErrorKind::AddrInUse.into());
    for _ in 0..200 {
        let port = u16::try_from(dice.between(12_000, 32_000)).unwrap_or(12_000);
        let addr = SocketAddr::from(([127, 0, 0, 1], port));
        result = TcpListener::bind(addr).map(|_listener| addr);
        if result.is_ok() {
            break;
        }
    }
    result
}

/// Becomes the server that these words call, which ends when its parent does.
pub(crate) fn become_server(mut words: impl Iterator<Item = String>) -> io::Error {
    end_with_parent();
    match words.next() {
        Some(program) => Command::new(Path::new(&program)).args(words).exec(),
        None => io::ErrorKind::InvalidInput.into(),
    }
}

/// This process is killed when the thread that started it ends.
pub(crate) fn end_with_parent() {
    #[cfg(target_os = "linux")]
    let _unsupported = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
}
