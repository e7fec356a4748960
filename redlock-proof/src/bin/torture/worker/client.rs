//! How clients are made: each a little different.

use core::time::Duration;
use redlock_proof::simulate::Dice;

/// What is chosen for one client.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) node_timeout: Duration,
    pub(super) retry_least: Duration,
    pub(super) retry_most: Duration,
    pub(super) handshake_timeout: Duration,
}

impl Settings {
    pub(super) fn choose(dice: &mut Dice<'_>) -> Self {
        Self {
            node_timeout: Duration::from_millis(dice.between(20, 300)),
            retry_least: Duration::from_millis(dice.between(1, 20)),
            retry_most: Duration::from_millis(dice.between(20, 150)),
            handshake_timeout: Duration::from_millis(dice.between(200, 1_000)),
        }
    }
}

/// Configures a builder of any adapter.
macro_rules! configured {
    ($builder:expr, $nodes:expr, $settings:expr) => {
        $builder
            .nodes($nodes.iter().map(String::as_str))
            .node_timeout($settings.node_timeout)
            .retry_delay($settings.retry_least, $settings.retry_most)
            .handshake_timeout($settings.handshake_timeout)
    };
}
pub(super) use configured;
