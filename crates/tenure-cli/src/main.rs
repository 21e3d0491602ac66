//! The program `tenure`: runs, checks and explains agents from files.

mod args;
mod command;
mod exit;
mod kill;
mod own_process;
mod person;
mod signal;
mod terminal;
mod time;
mod trust;

use clap::Parser as _;
use exit::{Exit, Stop};
use std::process::ExitCode;
use terminal::print_plain;
use terminal::style::{BAD, paint};

fn main() -> ExitCode {
    // Before there is a thread: whatever is started from now on ends with the program, however that ends.
    if let Err(error) = own_process::supervise() {
        print_plain(&format!("{} {error:#}", paint(BAD, "error:")));
        return Exit::Failed.into();
    }
    own_process::prepare();
    let code = run();
    tenure_hosts::end_supervisor();
    code
}

fn run() -> ExitCode {
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and the version are asked for; everything else is a mistake on the line.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Ok };
            // If it cannot be printed there is nobody to tell.
            let _ = error.print();
            return exit.into();
        }
    };
    match command::run(args.command) {
        Ok(exit) => exit.into(),
        Err(error) if is_broken_pipe(&error) => Exit::Ok.into(),
        Err(error) => {
            print_plain(&format!("{} {error:#}", paint(BAD, "error:")));
            Stop::exit_of(&error).into()
        }
    }
}

/// Whether whoever reads our output has seen enough.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let cause = error.root_cause().downcast_ref::<std::io::Error>();
    cause.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
