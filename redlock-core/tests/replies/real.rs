//! Real servers, started for a test on a socket file or a free port, and ended with it.

#[path = "../programs/mod.rs"]
mod programs;

pub(crate) use programs::paths as programs;

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use redlock_core::sim::Dialect;

use crate::simulated::multibulk;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
const BUSY_SCRIPT: &str = "EVAL \"while true do end\" 0";

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A server of its own.
pub(crate) struct Real {
    program: PathBuf,
    process: Child,
    folder: PathBuf,
    /// To set it up; open before anything is forbidden.
    admin: Talk,
    /// Runs a script that never ends.
    busy: Option<Talk>,
}

impl Real {
    pub(crate) fn start(program: &Path, options: &[&str]) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("redlock-replies-{}-{number}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let process = spawn(program, &folder, options);
        let admin = Talk::open(&folder);
        Self { program: program.to_path_buf(), process, folder, admin, busy: None }
    }

    /// Whom the node has to be like; `None` if no dialect stands for this version.
    pub(crate) fn dialect(&mut self) -> Option<Dialect> {
        let hello = self.tell("HELLO");
        let minor = |version: &str| version.split('.').take(2).map(String::from).collect::<Vec<_>>();
        let field = |name: &str| {
            hello.split("\r\n").skip_while(|word| *word != name).nth(2).unwrap_or_default().to_string()
        };
        Dialect::ALL.into_iter().find(|dialect| {
            field("server") == dialect.server_name() && minor(&field("version")) == minor(dialect.version())
        })
    }

    pub(crate) fn connect(&self) -> Talk {
        Talk::open(&self.folder)
    }

    /// Does something as its operator, who may do everything; the answer as text.
    pub(crate) fn tell(&mut self, command: &str) -> String {
        self.admin.send(&multibulk(command));
        self.admin.send(b"*2\r\n$4\r\nECHO\r\n$4\r\nsync\r\n");
        let heard = self.admin.read_until(|heard| heard.ends_with(b"$4\r\nsync\r\n"));
        String::from_utf8_lossy(heard.strip_suffix(b"$4\r\nsync\r\n").unwrap()).into_owned()
    }

    fn order(&mut self, command: &str) {
        let reply = self.tell(command);
        assert!(!reply.starts_with('-'), "{command}: {reply}");
    }

    /// As it was when it had just started.
    pub(crate) fn reset(&mut self) {
        if let Some(mut busy) = self.busy.take() {
            // Under a script nothing but this is answered.
            self.admin.send(&multibulk("SCRIPT KILL"));
            self.admin.read_until(|heard| heard.ends_with(b"\r\n"));
            busy.read_until(|heard| heard.ends_with(b"\r\n"));
        }
        for command in [
            "REPLICAOF NO ONE",
            "CONFIG SET replica-serve-stale-data yes",
            "CONFIG SET min-replicas-to-write 0",
            "CONFIG SET maxmemory 0",
            "CONFIG SET maxclients 1000",
            "CONFIG SET requirepass \"\"",
            "CONFIG SET stop-writes-on-bgsave-error no",
            "CONFIG SET save \"\"",
            "FLUSHALL",
            "SCRIPT FLUSH",
        ] {
            self.order(command);
        }
        self.tell("ACL DELUSER u");
    }

    pub(crate) fn set_password(&mut self, password: &str) {
        self.order(&format!("CONFIG SET requirepass {password}"));
    }

    /// A user with these rights, and all keys where no rule names any.
    pub(crate) fn set_user(&mut self, name: &str, password: &str, rules: &str) {
        let keys = if rules.contains('~') { "" } else { " ~*" };
        let rules: Vec<String> =
            rules
                .split(' ')
                .map(|rule| {
                    if rule.contains('~') || rule.starts_with('+') { rule.into() } else { format!("+{rule}") }
                })
                .collect();
        self.order(&format!("ACL SETUSER {name} reset on >{password} {}{keys}", rules.join(" ")));
    }

    /// Brings about a condition; `false` where this server cannot be brought into it.
    pub(crate) fn set_condition(&mut self, name: &str) -> bool {
        match name {
            "oom" => self.order("CONFIG SET maxmemory 1"),
            "noreplicas" => self.order("CONFIG SET min-replicas-to-write 1"),
            // Nobody listens there.
            "readonly" => self.order("REPLICAOF 127.0.0.1 1"),
            "masterdown" => {
                self.order("REPLICAOF 127.0.0.1 1");
                self.order("CONFIG SET replica-serve-stale-data no");
            }
            "max-clients" => self.order("CONFIG SET maxclients 1"),
            "misconf" => {
                // A snapshot cannot be put where a folder is.
                fs::create_dir_all(self.folder.join("dump.rdb").join("full")).unwrap();
                self.order("CONFIG SET stop-writes-on-bgsave-error yes");
                self.order("CONFIG SET save \"3600 1\"");
                // Where one is under way it will do: it fails as well.
                self.tell("BGSAVE");
                self.wait_for("INFO persistence", "rdb_last_bgsave_status:err");
            }
            "busy" => {
                self.order("CONFIG SET lua-time-limit 1");
                let mut talk = self.connect();
                talk.send(&multibulk(BUSY_SCRIPT));
                self.busy = Some(talk);
                let start = Instant::now();
                loop {
                    self.admin.send(&multibulk("PING"));
                    if self.admin.read_until(|heard| heard.ends_with(b"\r\n")).starts_with(b"-BUSY") {
                        break;
                    }
                    assert!(start.elapsed() < PATIENCE, "the script does not run");
                }
            }
            "loading" => self.load_slowly(),
            _ => return false,
        }
        true
    }

    fn wait_for(&mut self, command: &str, text: &str) {
        let start = Instant::now();
        while !self.tell(command).contains(text) {
            assert!(start.elapsed() < PATIENCE, "{command} does not say {text}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Starts it again, with so many keys to load, so slowly, that it is not done before it ends.
    fn load_slowly(&mut self) {
        self.order("CONFIG SET rdbcompression no");
        self.order("EVAL \"for i=1,3000 do redis.call('set',i,string.rep('x',2000)) end\" 0");
        self.order("SAVE");
        self.end();
        let options = ["--key-load-delay", "20000", "--loading-process-events-interval-bytes", "1024"];
        self.process = spawn(&self.program, &self.folder, &options);
        let start = Instant::now();
        loop {
            self.admin = Talk::open(&self.folder);
            self.admin.send(&multibulk("PING"));
            if self.admin.read_until(|heard| heard.ends_with(b"\r\n")).starts_with(b"-LOADING") {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "it does not load");
        }
    }

    fn end(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
        drop(fs::remove_file(self.folder.join("s")));
    }
}

fn spawn(program: &Path, folder: &Path, options: &[&str]) -> Child {
    let usual =
        ["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket", "s", "--loglevel", "warning"];
    let mut command = Command::new(program);
    command.args(usual).args(options).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

impl Drop for Real {
    fn drop(&mut self) {
        self.end();
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// One client's connection.
pub(crate) struct Talk {
    stream: UnixStream,
    is_over: bool,
}

impl Talk {
    fn open(folder: &Path) -> Self {
        let start = Instant::now();
        loop {
            if let Ok(stream) = UnixStream::connect(folder.join("s")) {
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                return Self { stream, is_over: false };
            }
            assert!(start.elapsed() < PATIENCE, "the server does not listen");
            // It is starting.
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        // A server that has closed the connection has said why before.
        drop(self.stream.write_all(bytes));
    }

    /// What comes until it is enough, the connection ends, or nothing more comes.
    pub(crate) fn read_until(&mut self, is_enough: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        let mut heard = Vec::new();
        let mut byte = [0];
        while !is_enough(&heard) {
            match self.stream.read(&mut byte) {
                Ok(1) => heard.push(byte[0]),
                Ok(_) => self.is_over = true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
                Err(_) => self.is_over = true,
            }
            if self.is_over {
                break;
            }
        }
        heard
    }

    /// Sends a command and reads one reply.
    pub(crate) fn ask(&mut self, command: &[u8]) -> Vec<u8> {
        self.send(command);
        self.read_until(|heard| frame(heard).is_some())
    }

    /// Whether the server has closed the connection.
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// What was left to be said: every server answers `RESET`, in every condition, to everybody.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        const RESET: &[u8] = b"+RESET\r\n";
        self.send(b"RESET\r\n");
        let heard = self.read_until(|heard| heard.ends_with(RESET));
        heard.strip_suffix(RESET).map_or_else(|| heard.clone(), <[u8]>::to_vec)
    }
}

/// What is behind the first reply; `None` where it is not whole.
pub(crate) fn frame(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    let (line, rest) = (&bytes[..end], &bytes[end + 2..]);
    let count = || std::str::from_utf8(&line[1..]).ok()?.parse::<i64>().ok();
    let elements = match line[0] {
        b'$' | b'=' => {
            let length = usize::try_from(count()?).ok();
            return length.map_or(Some(rest), |length| rest.get(length + 2..));
        }
        b'*' | b'~' | b'>' => count()?,
        b'%' => count()? * 2,
        _ => 0,
    };
    (0..elements).try_fold(rest, |rest, _| frame(rest))
}
