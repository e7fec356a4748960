//! What something that was looked at means, in words.

use alloc::string::String;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "whoever shows it has to show all of it")]
pub enum Severity {
    /// As it should be.
    Ok,
    /// Worth knowing; nothing has to be done.
    Note,
    /// Locks hold as long as nothing else goes wrong.
    Warning,
    /// The node does not count: locks cannot be had there, or can be lost.
    Problem,
}

impl Severity {
    /// In one word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// What was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Topic {
    /// Whether the node can be connected to, and answers.
    Reach,
    /// Whether it lets us in: user, password, database.
    Login,
    /// Whether it is a server by itself: no replica, no cluster, no sentinel.
    Role,
    /// Whether it is another one than the other nodes.
    Identity,
    /// Which commands its version has.
    Version,
    /// Whether a lock can be taken, extended and deleted.
    Locking,
    /// Whether the user may run what is needed.
    Rights,
    /// Whether it tells waiters that a lock got free.
    WakeUps,
    /// Whether it may remove locks to save memory.
    Eviction,
    /// Whether it remembers locks when it restarts.
    Persistence,
    /// How long answers take.
    Latency,
    /// Whether its clock agrees with the others.
    Clock,
    /// Whether a restarted node is still kept away from votes.
    RestartGuard,
    /// How many nodes there are.
    NodeCount,
    /// Whether enough of them are fit.
    Quorum,
}

impl Topic {
    /// Its name for programs; it stays.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reach => "reach",
            Self::Login => "login",
            Self::Role => "role",
            Self::Identity => "identity",
            Self::Version => "version",
            Self::Locking => "locking",
            Self::Rights => "rights",
            Self::WakeUps => "wake-ups",
            Self::Eviction => "eviction",
            Self::Persistence => "persistence",
            Self::Latency => "latency",
            Self::Clock => "clock",
            Self::RestartGuard => "restart-guard",
            Self::NodeCount => "node-count",
            Self::Quorum => "quorum",
        }
    }
}

/// What something that was looked at means.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// What was looked at.
    pub topic: Topic,
    /// How bad it is.
    pub severity: Severity,
    /// What was found, in a sentence.
    pub finding: String,
    /// What to do about it, in a sentence, where there is something to do.
    pub advice: Option<String>,
}

impl Verdict {
    pub(super) fn ok(topic: Topic, finding: impl Into<String>) -> Self {
        Self { topic, severity: Severity::Ok, finding: finding.into(), advice: None }
    }

    pub(super) fn note(topic: Topic, finding: impl Into<String>) -> Self {
        Self { severity: Severity::Note, ..Self::ok(topic, finding) }
    }

    pub(super) fn warning(topic: Topic, finding: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::ok(topic, finding) }
    }

    pub(super) fn problem(topic: Topic, finding: impl Into<String>) -> Self {
        Self { severity: Severity::Problem, ..Self::ok(topic, finding) }
    }

    pub(super) fn advice(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }
}
