//! What comes with the command: completions for shells, and its manual pages; both from its own definition.

use std::io::{self, Write as _};

use clap::CommandFactory as _;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::exit::{self, Exit};
use crate::out;

pub(crate) fn completions(args: &CompletionsArgs) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "redlock", &mut script);
    // A reader that has seen enough is no failure.
    match io::stdout().write_all(&script) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            out::say(error);
            Exit(exit::UNAVAILABLE)
        }
        Ok(()) | Err(_) => Exit(0),
    }
}

pub(crate) fn man(args: &ManArgs) -> Exit {
    // With the name, or the pages say `run` where `redlock run` is meant; and they leave out the `--` before a command.
    let usage = "redlock run [OPTIONS] <RESOURCE> -- <CMD>...";
    let command = Cli::command().bin_name("redlock").mut_subcommand("run", |run| run.override_usage(usage));
    match clap_mangen::generate_to(command, &args.directory) {
        Ok(()) => Exit(0),
        Err(error) => {
            out::say(format_args!("{}: {error}", args.directory.display()));
            Exit(exit::UNAVAILABLE)
        }
    }
}
