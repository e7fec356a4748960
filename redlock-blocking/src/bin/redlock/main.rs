//! The `redlock` command: locks from the shell.

#![forbid(unsafe_code)]

extern crate alloc;

mod args;
mod bench;
mod child;
mod clock;
mod demo;
mod durations;
mod exit;
mod hold;
mod inspect;
mod ladder;
mod nodes;
mod out;
mod run;
mod secure;
mod shell;
mod signals;
mod terminal;
mod verbose;

use std::process::ExitCode;

use args::Command;

fn main() -> ExitCode {
    if let Some(arguments) = child::is_to_become(std::env::args_os()) {
        return child::become_command(&arguments).into();
    }
    match args::parse(std::env::args_os()) {
        Ok(Command::Run(args)) => run::run(args),
        Ok(Command::Status(args)) => inspect::status::run(&args).into(),
        Ok(Command::Check(args)) => inspect::check::run(&args).into(),
        Ok(Command::Unlock(args)) => inspect::unlock::run(&args).into(),
        Ok(Command::Nodes(args)) => nodes::run(&args).into(),
        Ok(Command::Bench(args)) => bench::run(&args).into(),
        Ok(Command::Demo(args)) => demo::run(&args),
        Ok(Command::Completions(args)) => shell::completions(&args).into(),
        Ok(Command::Man(args)) => shell::man(&args).into(),
        Err(exit) => exit.into(),
    }
}
