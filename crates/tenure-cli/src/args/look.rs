//! The command line of what looks back at runs, and of what answers and stops them.

use super::{Yes, help_look as help};
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Which file of runs is meant.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct OfStore {
    /// The project whose runs are meant, by its folder or anything in it [default: the one here].
    #[arg(short = 'C', long, value_name = "PATH")]
    pub(crate) project: Option<PathBuf>,
    /// The file of runs, in place of the project's `.tenure/tenure.db`.
    #[arg(long, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,
    /// Adopt a store that is not known to be yours, or that an earlier release wrote: what is in it
    /// counts as what you recorded from then on.
    #[arg(long)]
    pub(crate) adopt_store: bool,
}

/// `tenure runs`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Runs {
    /// Every run, not only the newest.
    #[arg(short, long, conflicts_with = "count")]
    pub(crate) all: bool,
    /// Only runs with this status.
    #[arg(long, value_enum, value_name = "STATUS")]
    pub(crate) status: Option<StatusName>,
    /// Only runs of this agent or workflow.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Only runs of this conversation.
    #[arg(long, value_name = "THREAD")]
    pub(crate) thread: Option<String>,
    /// At most so many, the newest first.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) count: usize,
    /// Print one object a line.
    #[arg(long)]
    pub(crate) json: bool,
    /// Where.
    #[command(flatten)]
    pub(crate) of: OfStore,
}

/// A status on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatusName {
    /// It goes on, or would if its process were not gone.
    Running,
    /// It waits for a person.
    Waiting,
    /// Its record and its code differ, or it could not be recorded.
    Parked,
    /// It is over.
    Ended,
    /// Everything that is not over.
    Unfinished,
}

/// `tenure show`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Show {
    /// The run: its id, the beginning of it, or `last`.
    pub(crate) run: String,
    /// Every record, and not only what is made of them.
    #[arg(long)]
    pub(crate) events: bool,
    /// Every phase that agents went through, with its time.
    #[arg(long, conflicts_with = "events")]
    pub(crate) phases: bool,
    /// Print a JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// Where.
    #[command(flatten)]
    pub(crate) of: OfStore,
}

/// `tenure tail`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Tail {
    /// The run: its id, the beginning of it, or `last`. Without it, all of them.
    pub(crate) run: Option<String>,
    /// So many lines of what has been so far.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub(crate) lines: usize,
    /// Print each record as a line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Where.
    #[command(flatten)]
    pub(crate) of: OfStore,
}

/// `tenure events`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Events {
    /// The run: its id, the beginning of it, or `last`. Without it, all of them.
    pub(crate) run: Option<String>,
    /// Only records of these types, such as `tool.*`. May be repeated.
    #[arg(long = "type", value_name = "GLOB")]
    pub(crate) types: Vec<String>,
    /// Only records behind this one.
    #[arg(long, value_name = "SEQ", default_value_t = 0, requires = "run")]
    pub(crate) after: u64,
    /// Print one object a line.
    #[arg(long)]
    pub(crate) json: bool,
    /// Where.
    #[command(flatten)]
    pub(crate) of: OfStore,
}

/// `tenure asks`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Asks {
    /// Also those that are decided.
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Print one object a line.
    #[arg(long)]
    pub(crate) json: bool,
    /// Where.
    #[command(flatten)]
    pub(crate) of: OfStore,
}

/// `tenure answer`.
#[derive(Debug, ClapArgs)]
pub(crate) struct GivenAnswer {
    /// The question: its id, or the beginning of it.
    pub(crate) ask: String,
    /// `approve`, `reject` and why, `edit` and what to do instead as JSON, `respond` and a text; or
    /// only the text, where one is asked for. Without it the question is put in the terminal.
    #[arg(value_name = "DECISION")]
    pub(crate) words: Vec<String>,
    /// A name to record beside that of the system's user, who answers.
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// Print what became of it as a line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Where.
    #[command(flatten)]
    pub(crate) of: OfStore,
}

/// `tenure cancel` and `tenure kill`.
#[derive(Debug, ClapArgs)]
pub(crate) struct StopRun {
    /// The run: its id, the beginning of it, or `last`.
    pub(crate) run: String,
    /// Print what became of it as a line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Where.
    #[command(flatten)]
    pub(crate) of: OfStore,
}

/// `tenure replay`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Replay {
    /// The run: its id, the beginning of it, or `last`.
    pub(crate) run: String,
    /// Trust the project for this one command; that is not remembered.
    #[arg(long)]
    pub(crate) trust: bool,
    /// Print what was found as a line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Where.
    #[command(flatten)]
    pub(crate) of: OfStore,
}

/// `tenure restart`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Restart {
    /// The run: its id, the beginning of it, or `last`.
    pub(crate) run: String,
    /// The first step that is done anew: its number, as `tenure show` prints it, or its name, as
    /// `tenure events` does.
    #[arg(long, value_name = "STEP")]
    pub(crate) from: String,
    /// Trust the project for this one command; that is not remembered.
    #[arg(long)]
    pub(crate) trust: bool,
    /// Print each event and then the result as a line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the answer and nothing else.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// What is approved without asking.
    #[command(flatten)]
    pub(crate) yes: Yes,
    /// Where.
    #[command(flatten)]
    pub(crate) of: OfStore,
}

/// `tenure export`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Export {
    /// The run: its id, the beginning of it, or `last`.
    pub(crate) run: String,
    /// What to write.
    #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
    pub(crate) format: ExportFormat,
    /// Where to write it, in place of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write over a file that is there.
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Where.
    #[command(flatten)]
    pub(crate) of: OfStore,
}

/// What `export` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// The run, each of its records and each of its questions as a line of JSON.
    Jsonl,
    /// What was said and done, to read.
    Markdown,
}

/// `tenure db`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Db {
    /// What to do.
    #[command(subcommand)]
    pub(crate) action: DbAction,
}

/// What can be done with a file of runs.
#[derive(Debug, Subcommand)]
pub(crate) enum DbAction {
    /// Read all of it, and say what is damaged. Changes nothing.
    #[command(after_help = help::DB)]
    Verify(Verify),
    /// Write a copy of it as it is now, also while runs go on.
    #[command(after_help = help::DB)]
    Backup(Backup),
    /// Delete what was recorded of runs that are over, and give the room back.
    #[command(after_help = help::DB)]
    Compact(Compact),
    /// Give it another key, and seal every row with that.
    #[command(after_help = help::DB)]
    RotateKey(RotateKey),
}

/// `tenure db rotate-key`.
#[derive(Debug, ClapArgs)]
pub(crate) struct RotateKey {
    /// Print what was done as a line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Where.
    #[command(flatten)]
    pub(crate) of: OfStore,
}

/// `tenure db verify`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Verify {
    /// Print what was found as a line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Where.
    #[command(flatten)]
    pub(crate) of: OfStore,
}

/// `tenure db backup`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Backup {
    /// The new file.
    pub(crate) to: PathBuf,
    /// Print what was done as a line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Where.
    #[command(flatten)]
    pub(crate) of: OfStore,
}

/// `tenure db compact`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Compact {
    /// Only runs that ended longer ago than this: 12h, 30d, 8w.
    #[arg(long, value_name = "TIME", value_parser = long_time)]
    pub(crate) older_than: Option<Duration>,
    /// Keep the newest so many runs that are over, however old they are.
    #[arg(long, value_name = "N")]
    pub(crate) keep: Option<usize>,
    /// Print what was done as a line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Where.
    #[command(flatten)]
    pub(crate) of: OfStore,
}

/// A time with a unit that people use for what is old.
fn long_time(text: &str) -> Result<Duration, String> {
    const WANTED: &str = "write a whole number with a unit: 45s, 30m, 12h, 30d, 8w";
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit()).ok_or(WANTED)?;
    let (number, unit) = text.split_at(split);
    let seconds: u64 = match unit.trim() {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return Err(WANTED.to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| WANTED.to_owned())?;
    number
        .checked_mul(seconds)
        .map(Duration::from_secs)
        .ok_or_else(|| "that is too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::{Args, Command};
    use super::*;
    use clap::Parser as _;

    #[test]
    fn what_is_old_is_said_in_units_of_people() {
        assert_eq!(long_time("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert_eq!(long_time("8 w"), Ok(Duration::from_secs(8 * 604_800)));
        for wrong in ["", "30", "d", "1.5h", "30 months", "99999999999999999999d"] {
            assert!(long_time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_answer_needs_no_quotes() {
        let line = ["tenure", "answer", "3f2a", "reject", "too", "dear", "--by", "ada"];
        let Ok(Args { command: Command::Answer(answer) }) = Args::try_parse_from(line) else {
            panic!("it should parse");
        };
        assert_eq!(answer.words, ["reject", "too", "dear"]);
        assert_eq!(answer.by.as_deref(), Some("ada"));
    }
}
