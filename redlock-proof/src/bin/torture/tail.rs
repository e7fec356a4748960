//! Reads the record while it is written.

use crate::record::{Grant, Record, What};
use alloc::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// All that was read so far.
#[derive(Debug)]
pub(crate) struct Tail {
    file: File,
    /// The beginning of a line whose end is not there yet.
    rest: Vec<u8>,
    pub(crate) records: Vec<Record>,
    /// Lines that are none.
    pub(crate) unreadable: Vec<String>,
    open: BTreeSet<Grant>,
    pub(crate) grants: u64,
}

impl Tail {
    /// Reads this file from its beginning.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: File::open(path)?,
            rest: Vec::new(),
            records: Vec::new(),
            unreadable: Vec::new(),
            open: BTreeSet::new(),
            grants: 0,
        })
    }

    /// Reads what has come since.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub(crate) fn read(&mut self) -> io::Result<()> {
        self.file.read_to_end(&mut self.rest)?;
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |index| index + 1);
        let lines: Vec<u8> = self.rest.drain(..whole).collect();
        for line in String::from_utf8_lossy(&lines).lines() {
            match Record::parse(line) {
                Some(record) => self.take(record),
                None => self.unreadable.push(line.to_owned()),
            }
        }
        Ok(())
    }

    fn take(&mut self, record: Record) {
        match &record.what {
            What::Enter { grant, .. } => {
                self.grants += 1;
                self.open.insert(*grant);
            }
            What::Leave { grant } | What::Lost { grant, .. } => {
                self.open.remove(grant);
            }
            What::Dead { process } => self.open.retain(|grant| grant.process != *process),
            What::Broken { .. }
            | What::Chaos(_)
            | What::Done { .. }
            | What::Phase(_)
            | What::Until { .. } => {}
        }
        self.records.push(record);
    }

    /// Who holds a lock, as far as was read.
    pub(crate) fn holder(&self) -> Option<u32> {
        self.open.first().map(|grant| grant.process)
    }

    /// What a line is not finished of, at the end.
    pub(crate) fn is_cut(&self) -> bool {
        !self.rest.is_empty()
    }
}
