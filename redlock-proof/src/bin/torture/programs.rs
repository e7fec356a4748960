//! Which server programs there are.

#[path = "../../../../redlock-core/tests/programs/mod.rs"]
mod shared;

use crate::options::Servers;

pub(crate) use shared::Program;

/// Those that were asked for; with `Both`, what there is of either.
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
    let is_asked_for =
        |program: &Program| names.iter().any(|name| program.version.to_lowercase().starts_with(name));
    let found: Vec<Program> = shared::found().into_iter().filter(is_asked_for).collect();
    if found.is_empty() {
        let names: Vec<String> = names.iter().map(|name| format!("{name}-server")).collect();
        return Err(format!(
            "no server found: install {}, or name its path in REDLOCK_TEST_SERVERS",
            names.join(" or ")
        ));
    }
    Ok(found)
}
