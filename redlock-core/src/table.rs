//! A slab whose keys are never reused.

use slab::Slab;

/// Bits of a key that say where the entry is; the others count the entries that ever were.
const SLOT_BITS: u32 = 20;

/// How many entries a table can hold.
pub(crate) const CAPACITY: usize = 1 << SLOT_BITS;

/// Entries by keys that grow and never come back: 2⁴⁴ of them, eleven years of 50 000 a second.
#[derive(Debug)]
pub(crate) struct Table<T> {
    entries: Slab<(u64, T)>,
    serial: u64,
}

impl<T> Table<T> {
    pub(crate) const fn new() -> Self {
        Self { entries: Slab::new(), serial: 0 }
    }

    /// Puts the entry in; answers with its key.
    pub(crate) fn insert(&mut self, entry: T) -> u64 {
        self.serial += 1;
        let vacant = self.entries.vacant_entry();
        let slot = vacant.key() as u64 & (CAPACITY as u64 - 1);
        let key = (self.serial << SLOT_BITS) | slot;
        vacant.insert((key, entry));
        key
    }

    pub(crate) fn get(&self, key: u64) -> Option<&T> {
        self.entries.get(slot(key)).filter(|entry| entry.0 == key).map(|entry| &entry.1)
    }

    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        self.entries.get_mut(slot(key)).filter(|entry| entry.0 == key).map(|entry| &mut entry.1)
    }

    pub(crate) fn remove(&mut self, key: u64) -> Option<T> {
        self.get(key)?;
        self.entries.try_remove(slot(key)).map(|entry| entry.1)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All entries, in the order of their slots: the same for the same calls.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.entries.iter().map(|(_, entry)| (entry.0, &entry.1))
    }
}

/// Which entry it was of all that ever were: short enough for a trace.
pub(crate) const fn serial(key: u64) -> u64 {
    key >> SLOT_BITS
}

#[expect(clippy::cast_possible_truncation, reason = "20 bits fit any usize this runs on")]
const fn slot(key: u64) -> usize {
    (key & (CAPACITY as u64 - 1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_never_reused() {
        let mut table = Table::new();
        let first = table.insert('a');
        assert_eq!(table.remove(first), Some('a'));
        let second = table.insert('b');
        assert_ne!(first, second);
        assert_eq!(table.get(first), None);
        assert_eq!(table.remove(first), None);
        assert_eq!(table.get(second), Some(&'b'));
    }
}
