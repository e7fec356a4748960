//! `redlock check`, `status` and `unlock`: what looks at nodes one by one.

pub(crate) mod args;
pub(crate) mod check;
mod json;
mod sockets;
pub(crate) mod status;
mod table;
pub(crate) mod unlock;

use core::time::Duration;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use redlock_blocking::{Address, Tls};
use redlock_core::Config;

use self::args::NodeOptions;
use crate::run::{nodes_from, nodes_from_environment};

/// The configuration of what was named: checked as a client's is.
pub(crate) fn config(options: &NodeOptions) -> Result<Config, String> {
    let nodes =
        if options.nodes.is_empty() { nodes_from_environment()? } else { nodes_from(&options.nodes)? };
    if options.timeout.is_zero() {
        return Err("--timeout is 0; no node answers in no time".to_owned());
    }
    let mut builder = Config::builder().nodes(&nodes);
    if let Some(prefix) = &options.key_prefix {
        builder = builder.key_prefix(prefix.as_bytes().to_vec());
    }
    builder.build().map_err(|error| error.to_string())
}

pub(crate) fn addresses(config: &Config) -> Vec<Address> {
    config.nodes().iter().map(|node| node.address().as_ref().clone()).collect()
}

/// How TLS is spoken to them, where it is.
pub(crate) fn tls(options: &NodeOptions, config: &Config) -> Result<Option<Tls>, String> {
    options.tls.for_nodes(&addresses(config))
}

/// The key of what was named.
fn key(config: &Config, resource: &OsStr) -> Result<Vec<u8>, String> {
    if resource.is_empty() {
        return Err("RESOURCE is empty; name what is locked".to_owned());
    }
    Ok([config.key_prefix(), resource.as_bytes()].concat())
}

/// The resource, as it is shown.
fn shown(resource: &OsStr) -> String {
    format!("{:?}", resource.to_string_lossy())
}

/// A span as people read it.
fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    if days > 0 {
        format!("{days}d {hours}h")
    } else if hours > 0 {
        format!("{hours}h {minutes}m")
    } else if minutes > 0 {
        format!("{minutes}m {}s", seconds % 60)
    } else {
        format!("{:.1}s", span.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units_at_most() {
        for (millis, text) in
            [(0, "0.0s"), (1_240, "1.2s"), (61_000, "1m 1s"), (3_600_000, "1h 0m"), (90_000_000, "1d 1h")]
        {
            assert_eq!(span(Duration::from_millis(millis)), text);
        }
    }
}
