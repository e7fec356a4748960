//! What `INFO` and `CONFIG GET` say of a node's setting, beyond what the handshake asks for.

use alloc::string::String;

use super::report::{Fsync, Settings};
use crate::wire::reply::{Reply, push_escaped};

/// The longest word of a configuration that is kept.
const MAX_WORD: usize = 64;

impl Settings {
    /// Takes from `INFO` what `CONFIG GET` has not said.
    pub(super) fn read_info(&mut self, text: &[u8]) {
        for line in text.split(|byte| *byte == b'\n') {
            let line = line.trim_ascii();
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            let (name, value) = line.split_at(colon);
            let value = value.get(1..).unwrap_or_default();
            match name {
                b"aof_enabled" => fill(&mut self.appendonly, number(value).map(|flag| flag != 0)),
                b"maxmemory" => fill(&mut self.maxmemory, number(value)),
                b"maxmemory_policy" => fill(&mut self.maxmemory_policy, word(value)),
                b"evicted_keys" => self.evicted_keys = number(value),
                _ => {}
            }
        }
    }

    /// Reads one answer to `CONFIG GET`, a map or the flat array that RESP2 has for it.
    pub(super) fn read_config(&mut self, reply: &Reply) {
        match reply {
            Reply::Map(pairs) => pairs.iter().for_each(|(name, value)| self.parameter(name, value)),
            Reply::Array(items) => items.chunks_exact(2).for_each(|pair| {
                if let [name, value] = pair {
                    self.parameter(name, value);
                }
            }),
            Reply::Error(error) => {
                self.config_refused.get_or_insert_with(|| error.clone());
            }
            Reply::Ok
            | Reply::Simple(_)
            | Reply::Integer(_)
            | Reply::Bulk(_)
            | Reply::Null
            | Reply::Push(_)
            | Reply::Other(_) => {}
        }
    }

    fn parameter(&mut self, name: &Reply, value: &Reply) {
        let value = value.as_bytes().unwrap_or_default();
        match name.as_bytes() {
            Some(b"appendonly") => self.appendonly = Some(value == b"yes"),
            Some(b"appendfsync") => self.appendfsync = fsync(value),
            Some(b"maxmemory") => self.maxmemory = number(value),
            Some(b"maxmemory-policy") => self.maxmemory_policy = word(value),
            Some(_) | None => {}
        }
    }
}

fn fill<T>(field: &mut Option<T>, value: Option<T>) {
    if field.is_none() {
        *field = value;
    }
}

fn number(value: &[u8]) -> Option<u64> {
    core::str::from_utf8(value).ok()?.parse().ok()
}

fn fsync(value: &[u8]) -> Option<Fsync> {
    match value {
        b"always" => Some(Fsync::Always),
        b"everysec" => Some(Fsync::Everysec),
        b"no" => Some(Fsync::No),
        _ => None,
    }
}

fn word(value: &[u8]) -> Option<String> {
    let mut text = String::new();
    push_escaped(&mut text, value.get(..MAX_WORD).unwrap_or(value));
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::reply::Blob;
    use alloc::vec;

    #[test]
    fn what_config_says_counts_before_info() {
        let mut settings = Settings::default();
        let bulk = |text: &str| Reply::Bulk(Blob::copy_of(text.as_bytes()));
        settings.read_config(&Reply::Array(vec![bulk("maxmemory"), bulk("100")]));
        settings.read_config(&Reply::Map(vec![(bulk("appendfsync"), bulk("always"))]));
        settings.read_info(
            b"# Memory\r\nmaxmemory:7\r\nmaxmemory_policy:allkeys-lru\r\naof_enabled:1\r\nevicted_keys:3",
        );
        assert_eq!(settings.maxmemory, Some(100));
        assert_eq!(settings.appendfsync, Some(Fsync::Always));
        assert_eq!(settings.maxmemory_policy.as_deref(), Some("allkeys-lru"));
        assert_eq!((settings.appendonly, settings.evicted_keys), (Some(true), Some(3)));
    }

    #[test]
    fn garbage_is_passed_over() {
        let mut settings = Settings::default();
        settings.read_info(b"maxmemory\nmaxmemory:x\n:\n\xff:1\nmaxmemory_policy:");
        settings.read_config(&Reply::Array(vec![Reply::Null]));
        settings.read_config(&Reply::Map(vec![(Reply::Null, Reply::Null)]));
        assert_eq!(settings, Settings::default());
    }
}
