//! The names of locks on the servers, in memory that is used again.

use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use core::ops::Deref;

/// The keys of one lock. Nearly always it is one, which needs no list.
#[derive(Clone, Debug)]
pub(super) enum Keys {
    One(Bytes),
    Several(Arc<[Bytes]>),
}

impl Keys {
    /// No key at all.
    pub(super) const NONE: Self = Self::One(Bytes::new());
}

impl Deref for Keys {
    type Target = [Bytes];

    fn deref(&self) -> &[Bytes] {
        match self {
            Self::One(key) => core::slice::from_ref(key),
            Self::Several(keys) => keys,
        }
    }
}

/// Pieces of memory that had keys in them whose locks are gone.
#[derive(Debug, Default)]
pub(super) struct KeyPool {
    spare: Vec<BytesMut>,
}

impl KeyPool {
    /// Longer keys are not kept: there are few of them.
    const LONGEST: usize = 256;
    /// Room for most keys.
    const ROOM: usize = 48;
    /// So many pieces are kept.
    const MOST: usize = 1024;

    /// The keys of these resources, in their order.
    pub(super) fn keys(&mut self, prefix: &[u8], resources: &[Bytes]) -> Keys {
        match resources {
            [resource] => Keys::One(self.key(prefix, resource)),
            several => Keys::Several(several.iter().map(|resource| self.key(prefix, resource)).collect()),
        }
    }

    /// Prefix and resource together, such that it costs nothing to clone.
    fn key(&mut self, prefix: &[u8], resource: &Bytes) -> Bytes {
        let len = prefix.len().saturating_add(resource.len());
        if prefix.is_empty() && len > Self::LONGEST {
            return resource.clone();
        }
        let mut room =
            self.spare.pop().unwrap_or_else(|| BytesMut::with_capacity(len.next_multiple_of(Self::ROOM)));
        room.extend_from_slice(prefix);
        room.extend_from_slice(resource);
        room.split().freeze()
    }

    /// A lock is gone: its key's memory is another one's, if nobody has it.
    pub(super) fn recycle(&mut self, keys: Keys) {
        if let Keys::One(key) = keys
            && key.len() <= Self::LONGEST
            && self.spare.len() < Self::MOST
            && let Ok(mut room) = key.try_into_mut()
        {
            room.clear();
            self.spare.push(room);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r8b_keys_are_the_resources_as_given_unless_a_prefix_is_asked_for() {
        let mut pool = KeyPool::default();
        let resources = [Bytes::from_static(b"b"), Bytes::from_static(b"a")];
        assert_eq!(&*pool.keys(b"p:", &resources), ["p:b", "p:a"]);
        assert_eq!(&*pool.keys(b"", &resources[..1]), ["b"]);
        let binary = [Bytes::from_static(b"\0\xff\r\n {tag}x")];
        assert_eq!(&*pool.keys(b"", &binary), &binary);
        assert_eq!(&pool.keys(b"lock:", &binary)[0][..], b"lock:\0\xff\r\n {tag}x");
        for resource in [&b"\0"[..], b"\xff\xfe", b"\r\n", b" ", b"{tag}x", "🔒".as_bytes()] {
            assert_eq!(&*pool.keys(b"", &[Bytes::from_static(resource)]), [resource]);
        }
        let long = Bytes::from(alloc::vec![b'k'; 60_000]);
        assert_eq!(pool.keys(b"", core::slice::from_ref(&long))[0].as_ptr(), long.as_ptr(), "not copied");
    }

    #[test]
    fn memory_is_used_again_once_nobody_has_it() {
        let mut pool = KeyPool::default();
        let key = pool.key(b"app:", &Bytes::from_static(b"orders/1"));
        assert_eq!(key, "app:orders/1");
        pool.recycle(Keys::One(key.clone()));
        assert!(pool.spare.is_empty(), "it is still in use");
        let address = key.as_ptr();
        pool.recycle(Keys::One(key));
        let next = pool.key(b"", &Bytes::from_static(b"orders/22"));
        assert_eq!((&next[..], next.as_ptr()), (&b"orders/22"[..], address));
        let grown = Bytes::from(alloc::vec![b'k'; 200]);
        pool.recycle(Keys::One(next));
        assert_eq!(pool.key(b"p:", &grown).len(), 202);
    }
}
