//! The command line.

use core::time::Duration;
use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand, ValueEnum};
use redlock_core::sim::Dialect;

use crate::exit::{self, Exit};
use crate::inspect::args::{CheckArgs, NodeOptions, StatusArgs, UnlockArgs};
use crate::secure::TlsOptions;
use crate::{durations, out};

/// Distributed locks over independent Redis or Valkey nodes, from the shell
///
/// Mutual exclusion between machines, by the Redlock algorithm: a lock is held while a majority of N independent nodes
/// says so. One node is the plain single-server lock; three or five survive the loss of one or two.
#[derive(Debug, Parser)]
#[command(
    name = "redlock",
    version,
    after_help = "\
Try it without any server:
  redlock demo
  redlock nodes                  (prints the line to paste in another terminal)
  redlock run my-job -- ./job.sh
Before locks are trusted to your own servers:
  redlock check                  (are they fit for locks, and what to do about it)",
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    Status(StatusArgs),
    Check(CheckArgs),
    Unlock(UnlockArgs),
    Nodes(NodesArgs),
    Bench(BenchArgs),
    Demo(DemoArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Hold a lock while a command runs
///
/// Takes the lock on RESOURCE, runs CMD, renews the lock until CMD has ended, and releases it. While it is held, nobody
/// else who uses the same nodes and the same name holds it, be it by this command or by any Redlock library.
///
/// CMD runs in a process group of its own. Signals that redlock gets are passed on to that group; on a terminal it gets
/// the keyboard. When the lock cannot be renewed, the group gets TERM while there is time left (a quarter of the ttl),
/// and KILL halfway from there to the end, so that nothing of it runs any more when the lock is gone. Where the lock is
/// taken away (its keys deleted by someone), TERM comes at once and KILL 100 ms later; where redlock itself
/// was suspended until after the end, KILL comes at once. Only what CMD puts into other process groups escapes, and what
/// it leaves running in the background when it ends is not waited for. Should redlock itself be killed (KILL), the kernel
/// kills CMD (on Linux), but not what CMD had started.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = RUN_HELP)]
pub(crate) struct RunArgs {
    /// A node: redis://[user[:password]@]host[:port][/db], rediss://… for TLS, or unix:///path; repeat it for each node
    ///
    /// All users of a lock must name the same nodes. Without --node they are read from REDLOCK_NODES, separated by
    /// commas; that is the better place for passwords, which others can see in a command line.
    #[arg(long = "node", value_name = "URL")]
    pub(crate) nodes: Vec<String>,
    #[command(flatten)]
    pub(crate) tls: TlsOptions,
    /// How long the lock outlives this process at most, should it die [default: 10s, or what --max-hold
    /// or --restart-guard allow]
    #[arg(long, value_name = "D", value_parser = durations::parse)]
    pub(crate) ttl: Option<Duration>,
    /// How long to wait for the lock, from the start; 0 is one try, `forever` has no end
    #[arg(long, value_name = "D", default_value = "10s", value_parser = durations::parse_or_forever)]
    pub(crate) wait: Duration,
    /// Give up the lock after so long, and stop CMD before that [default: no limit]
    #[arg(long, value_name = "D", value_parser = durations::parse)]
    pub(crate) max_hold: Option<Duration>,
    /// Get a fencing token with the lock, and hand it to CMD in REDLOCK_FENCE
    ///
    /// A number that grows from grant to grant, for CMD to pass on with each write: a store that refuses what comes with a
    /// smaller number than it has seen is safe from a CMD that was stopped for so long that its lock ran out.
    #[arg(long)]
    pub(crate) fenced: bool,
    /// Keep nodes that restarted without their memory from voting until locks of up to D have expired [default: off]
    ///
    /// A node that forgot who holds the lock could let a second owner in. D is the longest ttl that anybody uses with these
    /// nodes; a longer --ttl is refused. Not needed where nodes write every command to disk (appendfsync always).
    #[arg(long, value_name = "D", value_parser = durations::parse)]
    pub(crate) restart_guard: Option<Duration>,
    /// The name that operators see at the servers
    #[arg(long, value_name = "N")]
    pub(crate) client_name: Option<String>,
    /// Put before RESOURCE to make the key
    #[arg(long, value_name = "P")]
    pub(crate) key_prefix: Option<OsString>,
    /// How long to wait for the answer of one node [default: a twentieth of the ttl, 10ms to 1s]
    #[arg(long, value_name = "D", value_parser = durations::parse)]
    pub(crate) node_timeout: Option<Duration>,
    /// Say when the lock is acquired, trouble with its renewal, and its end
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// What to lock: any name that all who want it agree on
    #[arg(value_name = "RESOURCE")]
    pub(crate) resource: OsString,
    /// The command and its arguments, after `--`
    #[arg(value_name = "CMD", last = true, required = true, num_args = 1..)]
    pub(crate) command: Vec<OsString>,
}

const RUN_HELP: &str = "\
Examples:
  export REDLOCK_NODES=redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3
  redlock run report -- ./report.sh                  wait up to 10s for the lock
  redlock run --wait 0 report -- ./report.sh         skip it if running
  redlock run --wait forever deploy -- make deploy   queue
  redlock run --max-hold 1h backup -- ./backup.sh    an hour at most
  redlock run --fenced ledger -- sh -c './post --fence \"$REDLOCK_FENCE\"'

Environment:
  REDLOCK_NODES      the nodes, where --node is not given
  REDLOCK_RESOURCE   set for CMD: the RESOURCE
  REDLOCK_FENCE      set for CMD with --fenced: the fencing token, a number

Exit codes:
  CMD's own; 128 + the number of the signal if CMD died by one
  64   the command line makes no sense: a bad address, a bad ttl
  69   no quorum of nodes could be reached
  70   the lock was lost while CMD ran, or CMD was stopped because it was about
       to be; also where CMD ended well but the release found that the lock was
       no longer ours: it may have been gone while CMD ran
  75   busy: another owner held the lock until the wait was over
  126  CMD cannot be executed
  127  CMD was not found
  128 + n if redlock got signal n before CMD was started";

/// Serve simulated nodes on this machine, for development
///
/// Starts N independent nodes on 127.0.0.1, which speak enough of Redis or Valkey for locks, and prints the line to
/// paste where redlock is to use them. They keep everything in memory and end with SIGINT or SIGTERM.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  redlock nodes --count 3 --port 7001
in another terminal, with the line that it has printed:
  export REDLOCK_NODES=redis://127.0.0.1:7001,redis://127.0.0.1:7002,…
  redlock run my-job -- ./job.sh")]
pub(crate) struct NodesArgs {
    /// How many nodes
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) count: u16,
    /// The port of the first; the others have the next ones. 0 takes any that are free
    #[arg(long, value_name = "P", default_value = "7001")]
    pub(crate) port: u16,
    /// Which server they speak like
    #[arg(long, value_name = "D", value_enum, default_value = "valkey9")]
    pub(crate) dialect: DialectArg,
    /// The password that they ask for
    #[arg(long, value_name = "PASSWORD")]
    pub(crate) password: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum DialectArg {
    /// Redis 7.0: scripts for everything
    Redis7,
    /// Redis from 8.4: SET IFEQ and DELEX
    Redis84,
    /// Valkey 8.1: SET IFEQ
    Valkey81,
    /// Valkey from 9.0: SET IFEQ and DELIFEQ
    Valkey9,
}

impl From<DialectArg> for Dialect {
    fn from(arg: DialectArg) -> Self {
        match arg {
            DialectArg::Redis7 => Self::Redis7,
            DialectArg::Redis84 => Self::Redis84,
            DialectArg::Valkey81 => Self::Valkey81,
            DialectArg::Valkey9 => Self::Valkey9,
        }
    }
}

/// Watch locks survive and refuse, on five simulated nodes; needs no server
///
/// Four contenders, each a client with connections of its own, want one lock, over and over. Meanwhile two of the five
/// nodes are killed (it goes on), then three (it refuses, rather than to let two in), they come back, and one comes
/// back with its memory lost, after it stayed away for one ttl.
///
/// Every time in the critical section is written down with its start and end, on one clock. The demo ends with exit
/// code 0 only if no two of them overlap.
#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// How long the tour takes, in seconds
    #[arg(long, value_name = "S", default_value = "12", value_parser = clap::value_parser!(u16).range(8..=25))]
    pub(crate) seconds: u16,
    /// One line per phase and second instead of a live table, as when it is not on a terminal
    #[arg(long)]
    pub(crate) plain: bool,
    /// Exists only to check the checker: a contender needs no more than so many votes of the five, since it is told of so
    /// few nodes that they are a majority. Below 3 that lets two in, and the demo must fail
    #[arg(long, value_name = "Q", hide = true, value_parser = clap::value_parser!(u8).range(1..=3))]
    pub(crate) unsafe_quorum: Option<u8>,
}

/// Measure what locks cost on your nodes
///
/// Acquires and releases, over and over, each time another resource, and tells how long that took. It reports nothing when a
/// single cycle failed: figures of locks that are not held say nothing.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  export REDLOCK_NODES=redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3
  redlock bench                              one at a time, for 10s: the latency
  redlock bench --threads 64 --duration 30s  many at a time: the throughput
  redlock bench --json                       for a script; spans in microseconds

Exit codes:
  0    the figures are printed
  64   the command line makes no sense
  69   no quorum of nodes could be reached, or a cycle failed")]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeOptions,
    /// For how long
    #[arg(long, value_name = "D", default_value = "10s", value_parser = durations::parse)]
    pub(crate) duration: Duration,
    /// How many at a time
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: u16,
    /// The ttl of each lock
    #[arg(long, value_name = "D", default_value = "10s", value_parser = durations::parse)]
    pub(crate) ttl: Duration,
    /// How long to wait for the answer of one node [default: a twentieth of the ttl, 10ms to 1s]
    #[arg(long, value_name = "D", value_parser = durations::parse)]
    pub(crate) node_timeout: Option<Duration>,
    /// With fencing tokens
    #[arg(long)]
    pub(crate) fenced: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print what a shell needs to complete this command
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  redlock completions bash > /etc/bash_completion.d/redlock
  redlock completions zsh > /usr/local/share/zsh/site-functions/_redlock
  redlock completions fish > ~/.config/fish/completions/redlock.fish")]
pub(crate) struct CompletionsArgs {
    /// Which shell
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// Write the manual pages
///
/// One for the command and one for each of its subcommands: redlock.1, redlock-run.1 and so on.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  redlock man /usr/local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Where to; the directory has to be there
    #[arg(value_name = "DIR")]
    pub(crate) directory: std::path::PathBuf,
}

/// Reads the command line. What is not a command was answered here: help and version, or one line that says what is
/// wrong.
///
/// # Errors
///
/// How to end: 0 after help and version, else 64.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, Exit> {
    match Cli::try_parse_from(args) {
        Ok(cli) => Ok(cli.command),
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            drop(error.print());
            Err(Exit(0))
        }
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            drop(error.print());
            Err(Exit(exit::USAGE))
        }
        Err(error) => {
            out::say(one_line(&error.render().to_string()));
            Err(Exit(exit::USAGE))
        }
    }
}

/// The sentence in a message of several paragraphs: without the usage, which `--help` tells better.
fn one_line(message: &str) -> String {
    let sentence = message.strip_prefix("error: ").unwrap_or(message);
    let end = ["\nUsage:", "\nFor more information"].iter().filter_map(|mark| sentence.find(mark)).min();
    let words: Vec<&str> =
        sentence.get(..end.unwrap_or(sentence.len())).unwrap_or_default().split_whitespace().collect();
    format!("{} (try --help)", words.join(" "))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn parse_words(line: &str) -> Result<Command, Exit> {
        parse(line.split(' ').map(OsString::from))
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_command_comes_after_two_dashes() {
        let Ok(Command::Run(run)) = parse_words("redlock run --ttl 3 --node a --node b job -- sh -c --node")
        else {
            panic!("not understood");
        };
        assert_eq!(run.nodes, ["a", "b"]);
        assert_eq!(run.ttl, Some(Duration::from_secs(3)));
        assert_eq!(run.wait, Duration::from_secs(10));
        assert_eq!(run.resource, "job");
        assert_eq!(run.command, ["sh", "-c", "--node"]);
    }

    #[test]
    fn what_makes_no_sense_is_64() {
        for line in [
            "redlock",
            "redlock run",
            "redlock run job",
            "redlock run job --",
            "redlock run job sh",
            "redlock run --ttl 5x job -- sh",
            "redlock run --ttl forever job -- sh",
            "redlock walk",
            "redlock nodes --count 0",
            "redlock nodes --port 65536",
            "redlock nodes --dialect mysql",
            "redlock demo --seconds 1000",
            "redlock status",
            "redlock check job",
            "redlock check --sampling forever",
            "redlock unlock",
        ] {
            assert_eq!(parse_words(line).unwrap_err(), Exit(exit::USAGE), "{line}");
        }
        for line in ["redlock --help", "redlock --version", "redlock run --help", "redlock nodes -h"] {
            assert_eq!(parse_words(line).unwrap_err(), Exit(0), "{line}");
        }
    }

    #[test]
    fn errors_are_one_line() {
        let error = Cli::try_parse_from(["redlock", "run", "--ttl", "5x", "job", "--", "sh"]).unwrap_err();
        let line = one_line(&error.render().to_string());
        assert!(line.contains("--ttl") && line.contains("`x`") && line.ends_with("(try --help)"), "{line}");
        assert!(!line.contains('\n') && !line.contains("Usage"), "{line}");
    }
}
