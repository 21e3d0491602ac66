//! The figures of Tenure: what it costs, against the same work written by hand.
//!
//! Everything is measured in one run of one program: the contenders of a figure take turns, every
//! sample is taken on a fresh instance, and of many rounds the fastest counts. Other processes can
//! only make a sample slower, so the minimum is what stands still on a busy machine.

mod args;
mod base;
mod count;
mod echo;
mod fakes;
mod figures;
mod http;
mod measure;
mod process;
mod raw;
mod report;
mod streams;

use args::{Command, Figures, Output, Set};
use measure::Bench;
use std::error::Error;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let command = match args::parse(&arguments) {
        Ok(command) => command,
        Err(problem) => {
            eprintln!("{problem}\n\n{}", args::help());
            return ExitCode::from(2);
        }
    };
    // Before there is a thread. Processes of hooks are confined, which is part of what they cost.
    if let Command::Figures(Set::Hosts, _) = command
        && let Err(error) = tenure_hosts::supervise()
    {
        eprintln!("processes cannot be supervised: {error}");
        return ExitCode::FAILURE;
    }
    match run(command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode, Box<dyn Error>> {
    match command {
        Command::Help => println!("{}", args::help()),
        Command::Figures(set, wanted) => return figures(set, &wanted),
        Command::IdleBytes => println!("{}", figures::instances::idle_bytes()?),
        Command::Peak(side) => println!("{}", figures::concurrent::peak(side)?),
        Command::Echo { bare_in, bare_out } => echo::run(&bare_in, &bare_out)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures and prints; fails if a figure does.
fn figures(set: Set, wanted: &Figures) -> Result<ExitCode, Box<dyn Error>> {
    let bench = Bench::new(wanted.rounds)?;
    let mut failed = 0;
    for group in set.groups() {
        if wanted.only.is_some_and(|only| !group.names.contains(&only)) {
            continue;
        }
        for figure in (group.measure)(&bench)? {
            if wanted.only.is_some_and(|only| only != figure.name) {
                continue;
            }
            failed += usize::from(!figure.passes());
            match wanted.output {
                Output::Json => println!("{}", figure.to_json()),
                Output::Table => println!("{}", figure.to_row()),
            }
        }
    }
    if failed > 0 {
        eprintln!("{failed} of the figures are past their limits");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
