//! What one conversation with a node found out.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::clock::Sample;
use super::key::{FenceState, KeyState, Removal};
use super::rights::Rights;
use crate::address::Address;
use crate::error::NodeFault;
use crate::wire::error::ServerError;
use crate::wire::handshake::{DeleteForm, ExtendForm, Mode, Product, Role, Version};

/// What one conversation with a node found out. What was not asked, or not answered, is `None` or empty.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NodeReport {
    /// Which node.
    pub address: Address,
    /// Why the node cannot be used, or where the conversation ended before its end.
    pub fault: Option<NodeFault>,
    /// Whether the node said anything at all.
    pub is_reached: bool,
    /// Who answered.
    pub server: ServerFacts,
    /// How it is set up.
    pub settings: Settings,
    /// What the user may do.
    pub rights: Rights,
    /// How taking, extending and deleting a lock went, on a key made for it.
    pub trial: Trial,
    /// Round trips, in order.
    pub samples: Vec<Sample>,
    /// What the key holds.
    pub key: Option<KeyState>,
    /// What the fence counter beside the key says.
    pub fence: Option<FenceState>,
    /// What became of the key that was to be removed.
    pub removal: Option<Removal>,
}

impl NodeReport {
    pub(super) fn new(address: Address) -> Self {
        Self {
            address,
            fault: None,
            is_reached: false,
            server: ServerFacts::default(),
            settings: Settings::default(),
            rights: Rights::default(),
            trial: Trial::default(),
            samples: Vec::new(),
            key: None,
            fence: None,
            removal: None,
        }
    }

    /// The quickest and the middle round trip; `None` where there was none.
    #[must_use]
    pub fn round_trips(&self) -> Option<(Duration, Duration)> {
        let mut trips: Vec<Duration> = self.samples.iter().map(Sample::round_trip).collect();
        trips.sort_unstable();
        Some((*trips.first()?, *trips.get(trips.len() / 2)?))
    }

    /// A node with which there was no conversation.
    #[must_use]
    pub fn unreachable(address: Address, fault: NodeFault) -> Self {
        Self { fault: Some(fault), ..Self::new(address) }
    }
}

/// Who answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerFacts {
    /// Whose server it is.
    pub product: Option<Product>,
    /// Its version.
    pub version: Option<Version>,
    /// 2 or 3: the protocol that is spoken.
    pub protocol: Option<u8>,
    /// What it is in its replication.
    pub role: Option<Role>,
    /// How it is deployed.
    pub mode: Option<Mode>,
    /// Changes with every start of the server.
    pub run_id: Option<String>,
    /// Seconds since its start, by its wall clock; negative after that was set back.
    pub uptime_secs: Option<i64>,
    /// How the engine asks it to delete a lock.
    pub delete: Option<DeleteForm>,
    /// How the engine asks it to extend a lock.
    pub extend: Option<ExtendForm>,
}

/// How a node is set up, as far as it matters to locks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Whether writes go to an append-only file.
    pub appendonly: Option<bool>,
    /// When that file is written to the disk.
    pub appendfsync: Option<Fsync>,
    /// The limit of its memory in bytes; 0 is none.
    pub maxmemory: Option<u64>,
    /// What it removes at that limit.
    pub maxmemory_policy: Option<String>,
    /// How many keys it has removed so far.
    pub evicted_keys: Option<u64>,
    /// Why `CONFIG GET` was refused; what is known is from `INFO` then.
    pub config_refused: Option<ServerError>,
}

impl Settings {
    /// Whether what it acknowledged survives a crash.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.appendonly == Some(true) && self.appendfsync == Some(Fsync::Always)
    }
}

/// When an append-only file is written to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "whoever shows it has to show all of it")]
pub enum Fsync {
    /// Before the answer.
    Always,
    /// Once a second.
    Everysec,
    /// When the operating system likes.
    No,
}

impl Fsync {
    /// As it is configured.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Everysec => "everysec",
            Self::No => "no",
        }
    }
}

/// A lock taken, extended and deleted on a key of the probe's own, by the commands that the engine sends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trial {
    /// `SET … NX PX`.
    pub set: Tried,
    /// The extension in the form that the server's version has.
    pub extend: Tried,
    /// The extension by script.
    pub extend_by_script: Tried,
    /// The deletion in the form that the server's version has.
    pub delete: Tried,
}

/// How a command went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "whoever shows it has to show all of it")]
pub enum Tried {
    /// It was not sent.
    #[default]
    Not,
    /// It did what it should.
    Worked,
    /// The server's error.
    Refused(ServerError),
    /// An answer that it does not give, in words.
    Odd(String),
}

impl Tried {
    /// Whether it did what it should.
    #[must_use]
    pub const fn worked(&self) -> bool {
        matches!(self, Self::Worked)
    }

    /// The server's error.
    #[must_use]
    pub const fn error(&self) -> Option<&ServerError> {
        if let Self::Refused(error) = self { Some(error) } else { None }
    }
}
