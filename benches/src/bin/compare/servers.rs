//! Five servers of our own on loopback, without persistence.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) struct Server {
    program: String,
    pub(crate) port: u16,
    child: Option<Child>,
}

/// What clients send for their locks; `GET`, `DEL` and `PEXPIRE` are called by scripts alone.
const SENT: [&str; 7] = ["set", "eval", "evalsha", "delifeq", "pttl", "client|tracking", "client|caching"];

pub(crate) struct Servers(pub(crate) Vec<Server>);

impl Servers {
    pub(crate) fn start(program: &str) -> io::Result<Self> {
        let mut servers = Vec::new();
        let mut port = 12_000 + u16::try_from(std::process::id() % 10_000).unwrap_or(0);
        while servers.len() < 5 {
            port += 1;
            // Below the ports of outgoing connections, so that none gets it while its server is dead.
            if TcpListener::bind(("127.0.0.1", port)).is_ok() {
                let mut server = Server { program: program.to_owned(), port, child: None };
                server.revive()?;
                servers.push(server);
            }
        }
        Ok(Self(servers))
    }

    pub(crate) fn ports(&self) -> Vec<u16> {
        self.0.iter().map(|server| server.port).collect()
    }

    pub(crate) fn all(&self, line: &str) -> io::Result<Vec<String>> {
        self.0.iter().map(|server| server.ask(line)).collect()
    }

    /// How many keys there are, once the last commands were executed.
    pub(crate) fn keys_left(&self, patience: Duration) -> io::Result<u64> {
        let until = Instant::now() + patience;
        loop {
            let sizes = self.all("DBSIZE")?;
            let left =
                sizes.iter().filter_map(|size| size.trim().strip_prefix(':')?.parse::<u64>().ok()).sum();
            if left == 0 || Instant::now() >= until {
                return Ok(left);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Commands of clients since the statistics were reset, all nodes together. What scripts call is not counted.
    pub(crate) fn commands(&self) -> io::Result<f64> {
        let mut sum = 0.0;
        for info in self.all("INFO commandstats")? {
            for line in info.lines() {
                let Some((name, rest)) = line.strip_prefix("cmdstat_").and_then(|line| line.split_once(':'))
                else {
                    continue;
                };
                let calls = rest.strip_prefix("calls=").and_then(|rest| rest.split(',').next());
                let calls: f64 = calls.and_then(|calls| calls.parse().ok()).unwrap_or(0.0);
                if SENT.contains(&name) {
                    sum += calls;
                }
            }
        }
        Ok(sum)
    }
}

impl Server {
    pub(crate) fn revive(&mut self) -> io::Result<()> {
        self.kill();
        // By way of this program, so that the server ends when we do, however we end.
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["serve", &self.program, "--port", &self.port.to_string(), "--bind", "127.0.0.1"]);
        command.args(["--save", "", "--appendonly", "no", "--daemonize", "no", "--loglevel", "warning"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let child = self.child.insert(command.spawn()?);
        let until = Instant::now() + Duration::from_secs(20);
        let ours = format!("process_id:{}\r\n", child.id());
        while !self.ask("INFO server").is_ok_and(|info| info.contains(&ours)) {
            if Instant::now() > until {
                return Err(io::Error::other(format!("{} does not start", self.program)));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _gone = (child.kill(), child.wait());
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = self.child.as_ref().and_then(|child| Pid::from_raw(i32::try_from(child.id()).ok()?));
        if let Some(pid) = pid {
            let _gone = kill_process(pid, signal);
        }
    }

    fn ask(&self, line: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(format!("{line}\r\nQUIT\r\n").as_bytes())?;
        let mut said = Vec::new();
        stream.read_to_end(&mut said)?;
        let said = String::from_utf8_lossy(&said).into_owned();
        Ok(said.strip_suffix("+OK\r\n").unwrap_or(&said).to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Becomes a server, which ends when its parent does.
pub(crate) fn become_server(words: &[String]) -> io::Error {
    let _unsupported = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    match words.split_first() {
        Some((program, words)) => Command::new(program).args(words).exec(),
        None => io::ErrorKind::InvalidInput.into(),
    }
}
