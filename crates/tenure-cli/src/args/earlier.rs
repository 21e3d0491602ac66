//! Where runs are recorded, and what is done with those that were recorded before.

use clap::Args;
use std::path::PathBuf;

const HEADING: &str = "Records";

/// Where a run is recorded, for every command that runs agents.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct Recording {
    /// Record in this file, in place of the project's `.tenure/tenure.db`.
    #[arg(long, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,
    /// Record nothing.
    #[arg(long, conflicts_with = "store")]
    pub(crate) no_store: bool,
    /// Adopt a store that is not known to be yours, or that an earlier release wrote: what is in it
    /// counts as what you recorded from then on.
    #[arg(long, conflicts_with = "no_store")]
    pub(crate) adopt_store: bool,
}

/// What `tenure run` does with runs that were recorded before.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct Earlier {
    /// Go on with a run that did not finish, by its id or the beginning of it; without one with every
    /// run here that can go on.
    #[arg(
        long,
        value_name = "RUN",
        num_args = 0..=1,
        default_missing_value = "",
        conflicts_with_all = ["message", "agent", "model", "watch", "goes_on", "no_store", "workflow",
            "app", "user", "chat_id", "seed", "set"]
    )]
    pub(crate) resume: Option<String>,
    /// End a run that did not finish as abandoned, in good order; without its id every one here.
    #[arg(
        long,
        value_name = "RUN",
        num_args = 0..=1,
        default_missing_value = "",
        conflicts_with_all = ["message", "agent", "model", "watch", "goes_on", "no_store", "workflow",
            "app", "user", "chat_id", "seed", "set"]
    )]
    pub(crate) abandon: Option<String>,
    /// Say the message in an earlier conversation with the agent; without its id in the last one.
    #[arg(
        long = "continue",
        value_name = "THREAD",
        num_args = 0..=1,
        default_missing_value = "",
        conflicts_with_all = ["watch", "no_store"]
    )]
    pub(crate) goes_on: Option<String>,
}

/// Which run, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which<'a> {
    /// The one whose id begins so.
    One(&'a str),
    /// Every one that there is.
    All,
}

impl Earlier {
    /// Which runs are to be ended as abandoned. It is said with `--resume RUN --abandon` too.
    pub(crate) fn abandons(&self) -> Option<Which<'_>> {
        let given = self.abandon.as_deref()?;
        let named = if given.is_empty() { self.resume.as_deref().unwrap_or("") } else { given };
        Some(which(named))
    }

    /// Which runs are to go on.
    pub(crate) fn resumes(&self) -> Option<Which<'_>> {
        self.resume.as_deref().map(which)
    }
}

fn which(named: &str) -> Which<'_> {
    if named.is_empty() { Which::All } else { Which::One(named) }
}

#[cfg(test)]
mod tests {
    use super::super::{Args, Command, Run};
    use super::*;
    use clap::Parser as _;

    fn parsed(options: &[&str]) -> Result<Run, String> {
        match Args::try_parse_from([&["tenure", "run"], options].concat()) {
            Ok(Args { command: Command::Run(run) }) => Ok(run),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn what_goes_on_needs_no_path() {
        let run = parsed(&["--resume", "3f2a"]).expect("it parses");
        assert_eq!(run.earlier.resumes(), Some(Which::One("3f2a")));
        let run = parsed(&["--resume"]).expect("it parses");
        assert_eq!((run.earlier.resumes(), run.earlier.abandons()), (Some(Which::All), None));
        assert!(parsed(&[]).expect_err("a path is needed").contains("CARD|DIR|WORKFLOW"));
        assert!(parsed(&["--resume", "3f", "-m", "hi"]).is_err(), "the message is on record");
    }

    #[test]
    fn giving_up_is_said_in_two_ways() {
        for line in [&["--abandon", "3f"][..], &["--resume", "3f", "--abandon"]] {
            let run = parsed(line).expect("it parses");
            assert_eq!(run.earlier.abandons(), Some(Which::One("3f")), "{line:?}");
        }
        let run = parsed(&["--abandon"]).expect("it parses");
        assert_eq!(run.earlier.abandons(), Some(Which::All));
    }

    #[test]
    fn a_conversation_goes_on_with_or_without_its_id() {
        let run = parsed(&["a.md", "--continue", "-m", "hi"]).expect("it parses");
        assert_eq!(run.earlier.goes_on.as_deref(), Some(""));
        let run = parsed(&["a.md", "-m", "hi", "--continue", "3f2a"]).expect("it parses");
        assert_eq!(run.earlier.goes_on.as_deref(), Some("3f2a"));
        assert!(parsed(&["a.md", "--continue", "--no-store"]).is_err());
    }
}
