//! The command lines of what looks at nodes.

use core::time::Duration;
use std::ffi::OsString;

use clap::Args;

use crate::durations;
use crate::secure::TlsOptions;

/// Which nodes, and how patient to be with them.
#[derive(Args, Clone, Debug)]
pub(crate) struct NodeOptions {
    /// A node: redis://[user[:password]@]host[:port][/db], rediss://… for TLS, or unix:///path; repeat it for each node
    ///
    /// Without --node they are read from REDLOCK_NODES, separated by commas.
    #[arg(long = "node", value_name = "URL")]
    pub(crate) nodes: Vec<String>,
    #[command(flatten)]
    pub(crate) tls: TlsOptions,
    /// How long a node may take to be connected, and then for any answer
    #[arg(long, value_name = "D", default_value = "2s", value_parser = durations::parse)]
    pub(crate) timeout: Duration,
    /// Put before RESOURCE to make the key, as for `redlock run`
    #[arg(long, value_name = "P")]
    pub(crate) key_prefix: Option<OsString>,
}

/// Say who holds a lock, node by node
///
/// Reads the key of RESOURCE on every node and says who holds it, on how many nodes, and until when; nothing is changed.
/// A lock is held by a value that is on a majority of all nodes. Of a value only the beginning is shown, since who knows a
/// whole token can release the lock; the name behind it is the one that --client-name gave to its owner.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = "\
Examples:
  redlock status nightly-report
  redlock status --json nightly-report | jq -r .state

What it says:
  held    one value is on a majority of the nodes
  free    a majority of the nodes has nothing there: the lock can be had
  split   neither: nobody holds it, and nobody can before keys run out; the rest
          of a lock that ended, or several that try at the same moment
  unknown too few nodes answered

Exit codes:
  0    it can be told who holds it, or that nobody does
  64   the command line makes no sense
  69   too few nodes answered")]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) node: NodeOptions,
    /// As JSON, for programs; the names of its fields stay
    #[arg(long)]
    pub(crate) json: bool,
    /// What is locked
    #[arg(value_name = "RESOURCE")]
    pub(crate) resource: OsString,
}

/// Look whether the nodes are fit for locks, and say what to do where they are not
///
/// Asks every node who it is, how it is set up, how quickly it answers and what its clock says, and takes, extends and
/// releases a lock on a key of its own (PREFIX + redlock-check:RANDOM, gone after 5s at the latest). What it finds is
/// explained: what can go wrong by it, and what to do.
///
/// A node with a `problem` is not counted: locks cannot be had there, or can be lost. A `warning` breaks no lock as long
/// as nothing else goes wrong, such as the crash of a node that forgets. A `note` is worth knowing.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = "\
Examples:
  export REDLOCK_NODES=redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3
  redlock check
  redlock check --verbose                      what is as it should be, too
  redlock check --sampling 1m                  measure the drift of clocks well
  redlock check --restart-guard 30s            for users of that restart guard
  redlock check --json | jq .safe
  redlock check && redlock run job -- ./job.sh

What is looked at:
  reach, login   can it be connected to, and does it let us in
  role           no replica, no cluster, no sentinel: those forget locks
  identity       no server counts twice
  version        which commands it has for locks
  locking        a lock can be taken, extended and released
  rights         what the user's ACL lacks, by name
  eviction       `maxmemory-policy` does not remove held locks
  persistence    what it forgets in a crash
  restart-guard  has it been up for long enough
  latency        against the node timeout that --ttl means
  clock          against the other nodes' clocks, and how it drifts
  node-count, quorum   of all nodes together

Exit codes:
  0    a majority of the nodes has no problem: locks are safe there
  64   the command line makes no sense
  69   fewer: locks cannot be had, or are not safe")]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) node: NodeOptions,
    /// The ttl that locks will have; their node timeout, against which answers are measured, comes from it
    #[arg(long, value_name = "D", default_value = "10s", value_parser = durations::parse)]
    pub(crate) ttl: Duration,
    /// The node timeout that locks will have [default: a twentieth of the ttl, 10ms to 1s]
    #[arg(long, value_name = "D", value_parser = durations::parse)]
    pub(crate) node_timeout: Option<Duration>,
    /// The restart guard that locks will have: how long a restarted node is kept away
    #[arg(long, value_name = "D", value_parser = durations::parse)]
    pub(crate) restart_guard: Option<Duration>,
    /// For how long clocks and answers are looked at
    #[arg(long, value_name = "D", default_value = "1s", value_parser = durations::parse)]
    pub(crate) sampling: Duration,
    /// Say also what is as it should be
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// As JSON, for programs; the names of its fields stay
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove a lock by force, whoever holds it
///
/// For emergencies: deletes the key of RESOURCE on all nodes. Its holder is not stopped by that: it notices at its next
/// renewal, after a third of its ttl at most, and until then it and the next holder both believe that they have the lock.
/// Make sure first that the holder is gone. A lock whose holder died ends by itself, after its ttl; `redlock status` says
/// when.
///
/// The fence counter of RESOURCE stays, so that fences go on growing.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = "\
Examples:
  redlock status nightly-report                who is it, and for how long
  redlock unlock --force nightly-report        asks before it does
  redlock unlock --force --yes nightly-report  does not ask, for scripts

Exit codes:
  0    nothing is left of it on a majority of the nodes: it can be had
  1    it was not confirmed; nothing was removed
  64   the command line makes no sense, or --force is missing
  69   it was not removed from a majority; it is said from which")]
pub(crate) struct UnlockArgs {
    #[command(flatten)]
    pub(crate) node: NodeOptions,
    /// Yes, whoever holds it
    #[arg(long)]
    pub(crate) force: bool,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// What is locked
    #[arg(value_name = "RESOURCE")]
    pub(crate) resource: OsString,
}
