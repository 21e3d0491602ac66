//! The commands, one file each.

mod admission;
mod asked;
#[cfg(feature = "hooks")]
mod audit;
mod cards;
mod chat;
mod check;
mod completions;
mod confinement;
mod convert;
mod demo;
mod doctor;
mod dump;
mod ended;
mod explain;
mod files;
mod findings;
mod ground;
mod hooks;
mod init;
mod look;
mod project;
mod recorded;
mod reload;
mod run;
mod schema;
mod session;
mod trust;
mod whole;
mod workflow;

use crate::args::Command;
use crate::exit::Exit;
use crate::own_process;
use crate::terminal::sink;
use anyhow::Result;

/// Does what was asked for.
pub(crate) fn run(command: Command) -> Result<Exit> {
    if drives(&command) {
        own_process::check_descriptors()?;
    }
    match command {
        Command::Run(args) => run::run(&args),
        Command::Chat(args) => chat::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Dump(args) => dump::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Runs(args) => look::runs(&args),
        Command::Show(args) => look::show(&args),
        Command::Tail(args) => look::tail(&args),
        Command::Events(args) => look::events(&args),
        Command::Asks(args) => look::asks(&args),
        Command::Answer(args) => look::answer(&args),
        Command::Cancel(args) => look::cancel(&args),
        Command::Kill(args) => look::kill(&args),
        Command::Replay(args) => look::replay(&args),
        Command::Restart(args) => look::restart(&args),
        Command::Export(args) => look::export(&args),
        Command::Db(args) => look::db(&args),
        Command::Trust(args) => trust::run(args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Hooks(args) => hooks::run(&args),
        #[cfg(feature = "hooks")]
        Command::Audit(args) => audit::run(&args),
        #[cfg(not(feature = "hooks"))]
        Command::Audit(_) => Err(hooks::not_built()),
        Command::Schema(args) => schema::run(&args),
        Command::Completions(args) => completions::run(&args),
    }
}

/// Whether a command starts agents, or talks to those that do.
fn drives(command: &Command) -> bool {
    matches!(
        command,
        Command::Run(_)
            | Command::Chat(_)
            | Command::Demo(_)
            | Command::Answer(_)
            | Command::Cancel(_)
            | Command::Kill(_)
            | Command::Replay(_)
            | Command::Restart(_)
    )
}

/// Prints text on standard output, ended by a line break.
fn say(text: &str) -> Result<()> {
    Ok(sink::print_text(text)?)
}
