//! Conditions in which a server answers, but not with what was asked for.

use alloc::format;
use alloc::string::String;

use super::dialect::Dialect;

/// A condition that a node is in until [`Server::set_condition`](super::Server::set_condition) ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Condition {
    /// The data set is loading: `HELLO`, `AUTH`, `INFO` and the like answer, commands on keys and `PING` say `LOADING`.
    Loading,
    /// Over `maxmemory`: commands that need memory say `OOM`; deleting and changing an expiry go on.
    Oom,
    /// Snapshots fail: every write, and `PING`, says `MISCONF`.
    Misconf,
    /// Too few replicas: every write says `NOREPLICAS`.
    Noreplicas,
    /// Another client's script is over its time: nearly everything says `BUSY`.
    Busy,
    /// The node is a read-only replica: writes say `READONLY`, and so do `ROLE`, `INFO` and `HELLO` in their ways.
    Readonly,
    /// A replica that has lost its master and serves no stale data: reads say `MASTERDOWN`, writes `READONLY`.
    Masterdown,
    /// A member of a cluster whose keys all live elsewhere: `MOVED … moved`, or `CLUSTERDOWN` if there is no address.
    Cluster {
        /// `host:port` of the node that has the keys.
        moved: Option<String>,
    },
    /// New connections are told `max number of clients reached`, unasked, and closed.
    MaxClients,
    /// New connections are told `DENIED` (protected mode), unasked, and closed.
    ProtectedMode,
}

impl Condition {
    /// The error line, without its `-`.
    pub(super) fn text(&self, dialect: Dialect) -> String {
        let product = dialect.product();
        match self {
            Self::Loading => format!("LOADING {product} is loading the dataset in memory"),
            Self::Oom => "OOM command not allowed when used memory > 'maxmemory'.".into(),
            Self::Misconf => format!(
                "MISCONF {product} is configured to save RDB snapshots, but it's currently unable to persist to disk. \
                 Commands that may modify the data set are disabled, because this instance is configured to report \
                 errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check \
                 the {product} logs for details about the RDB error."
            ),
            Self::Noreplicas => "NOREPLICAS Not enough good replicas to write.".into(),
            Self::Busy => format!(
                "BUSY {product} is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
            ),
            Self::Readonly => "READONLY You can't write against a read only replica.".into(),
            Self::Masterdown => {
                "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.".into()
            }
            Self::Cluster { moved } => match moved {
                Some(address) => format!("MOVED 0 {address}"),
                None => "CLUSTERDOWN Hash slot not served".into(),
            },
            Self::MaxClients => "ERR max number of clients reached".into(),
            Self::ProtectedMode => denied(dialect),
        }
    }

    pub(super) const fn is_replica(&self) -> bool {
        matches!(self, Self::Readonly | Self::Masterdown)
    }

    pub(super) const fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster { .. })
    }
}

fn denied(dialect: Dialect) -> String {
    let product = dialect.product();
    format!(
        "DENIED {product} is running in protected mode because protected mode is enabled and no password is set for \
         the default user. In this mode connections are only accepted from the loopback interface. If you want to \
         connect from external computers to {product} you may adopt one of the following solutions: 1) Just disable \
         protected mode sending the command 'CONFIG SET protected-mode no' from the loopback interface by connecting \
         to {product} from the same host the server is running, however MAKE SURE {product} is not publicly \
         accessible from internet if you do so. Use CONFIG REWRITE to make this change permanent. 2) Alternatively \
         you can just disable the protected mode by editing the {product} configuration file, and setting the \
         protected mode option to 'no', and then restarting the server. 3) If you started the server manually just \
         for testing, restart it with the '--protected-mode no' option. 4) Setup a an authentication password for \
         the default user. NOTE: You only need to do one of the above things in order for the server to start \
         accepting connections from the outside."
    )
}
