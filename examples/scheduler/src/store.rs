//! What the leader writes to, and what refuses one that leads no more.

use crate::Failure;
use redlock_tokio::Fence;
use rusqlite::{Connection, params};
use std::path::Path;

/// Who has run which tick.
pub(crate) struct Store {
    connection: Connection,
}

/// Whether a tick is to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    Mine,
    /// It, or a later one, was claimed by somebody; or there was a later term.
    Refused,
}

impl Store {
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(core::time::Duration::from_secs(5))?;
        let table = "CREATE TABLE IF NOT EXISTS runs (tick INTEGER PRIMARY KEY, epoch INTEGER NOT NULL)";
        connection.execute_batch(table)?;
        Ok(Self { connection })
    }

    /// Claims a tick for a term: one statement, so that nothing can come in between.
    pub(crate) fn claim(&self, tick: u64, epoch: Fence) -> Result<Claim, Failure> {
        let (tick, epoch) = (i64::try_from(tick)?, i64::try_from(epoch.get())?);
        let claimed = self.connection.execute(
            "INSERT INTO runs SELECT ?1, ?2
             WHERE NOT EXISTS (SELECT 1 FROM runs WHERE tick >= ?1 OR epoch > ?2)",
            params![tick, epoch],
        )?;
        Ok(if claimed == 1 { Claim::Mine } else { Claim::Refused })
    }

    /// Every tick that was claimed, with the epoch, in order.
    pub(crate) fn claimed(&self) -> Result<Vec<(i64, i64)>, Failure> {
        let mut rows = self.connection.prepare("SELECT tick, epoch FROM runs ORDER BY tick")?;
        let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}
