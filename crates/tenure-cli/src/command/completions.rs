//! `tenure completions`.

use crate::args::{Args, Completions};
use crate::exit::Exit;
use crate::terminal::sink::print_as_written;
use anyhow::Result;
use clap::CommandFactory as _;

pub(super) fn run(args: &Completions) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "tenure", &mut script);
    print_as_written(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
