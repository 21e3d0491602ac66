//! The command line: what can be asked for, and how it is explained.
//!
//! Parsing only. What an argument means for the files on disk is the business of the commands.

mod audit;
mod earlier;
mod help;
mod help_look;
mod look;
mod workflow;
mod yes;

pub(crate) use audit::Audit;
#[cfg(feature = "hooks")]
pub(crate) use audit::{AuditAction, VerifyAudit};
pub(crate) use earlier::{Earlier, Recording, Which};
pub(crate) use look::{
    Asks, Backup, Compact, Db, DbAction, Events, Export, ExportFormat, GivenAnswer, OfStore,
    Replay, Restart, RotateKey, Runs, Show, StatusName, StopRun, Tail, Verify,
};
pub(crate) use workflow::OfWorkflow;
pub(crate) use yes::Yes;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use tenure_core::hook::Limit;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "tenure", version, about = help::ABOUT, after_help = help::PROGRAM)]
#[command(disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one of them, as long as the program runs")]
pub(crate) enum Command {
    /// Run an agent from its card, or a workflow from its folder, and print the answer.
    #[command(after_help = help::RUN)]
    Run(Run),
    /// Talk to an agent in the terminal.
    #[command(after_help = help::CHAT)]
    Chat(Chat),
    /// Find every mistake in cards, workflows and hooks. Executes nothing.
    #[command(after_help = help::CHECK)]
    Check(Check),
    /// Show which hooks run at each point, in order. Executes nothing.
    #[command(after_help = help::EXPLAIN)]
    Explain(Explain),
    /// Print a card in its full form. Executes nothing.
    #[command(after_help = help::DUMP)]
    Dump(Dump),
    /// Write a project that runs without a key.
    #[command(after_help = help::INIT)]
    Init(Init),
    /// Watch a small team at work: no key, no network, a few seconds.
    #[command(after_help = help::DEMO)]
    Demo(Demo),
    /// List the runs that are on record.
    #[command(after_help = help_look::RUNS)]
    Runs(Runs),
    /// Show what happened in a run, step by step.
    #[command(after_help = help_look::SHOW)]
    Show(Show),
    /// Follow a run, or all of them, as they go.
    #[command(after_help = help_look::TAIL)]
    Tail(Tail),
    /// Print the records of a run.
    #[command(after_help = help_look::EVENTS)]
    Events(Events),
    /// List the questions that wait for an answer.
    #[command(after_help = help_look::ASKS)]
    Asks(Asks),
    /// Answer a question, from any terminal, whether or not its run goes on.
    #[command(after_help = help_look::ANSWER)]
    Answer(GivenAnswer),
    /// Have a run cancelled, in good order.
    #[command(after_help = help_look::CANCEL)]
    Cancel(StopRun),
    /// End a run at once, without waiting for its hooks.
    #[command(after_help = help_look::KILL)]
    Kill(StopRun),
    /// Hold a run's record against the code as it is now.
    #[command(after_help = help_look::REPLAY)]
    Replay(Replay),
    /// Begin a new run with the record of another one, up to a step.
    #[command(after_help = help_look::RESTART)]
    Restart(Restart),
    /// Write what is on record of a run to a file, for programs or to read.
    #[command(after_help = help_look::EXPORT)]
    Export(Export),
    /// Check, copy or shrink the file that runs are recorded in.
    #[command(after_help = help_look::DB)]
    Db(Db),
    /// Look after which projects may execute their hooks and tools.
    #[command(after_help = help::TRUST)]
    Trust(Trust),
    /// See whether this machine and this project are fit to run.
    #[command(after_help = help::DOCTOR)]
    Doctor(Doctor),
    /// List the ready-made hooks, or what one of them does and takes.
    #[command(after_help = help::HOOKS)]
    Hooks(Hooks),
    /// Check that the log of the hook `audit` is as it was written.
    #[command(after_help = help::AUDIT)]
    Audit(Audit),
    /// Print the JSON Schema of a file format, for editors.
    #[command(after_help = help::SCHEMA)]
    Schema(Schema),
    /// Print a completion script for a shell.
    #[command(after_help = help::COMPLETIONS)]
    Completions(Completions),
}

/// `tenure run`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Run {
    /// A card, a directory of cards, or the folder (or name) of a workflow. What is on record needs
    /// none.
    #[arg(
        value_name = "CARD|DIR|WORKFLOW",
        required_unless_present_any = ["resume", "abandon", "goes_on"]
    )]
    pub(crate) path: Option<PathBuf>,
    /// What to say to the agent; without it the message is read from standard input. A workflow needs
    /// none, and reads standard input only if the user begins.
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) message: Option<String>,
    /// The agent to talk to, where there are several; in a workflow the one that begins.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The model for every agent in place of its own, such as `passthrough`.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Print each event and then the result as a line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Trust the project for this one command; that is not remembered.
    #[arg(long)]
    pub(crate) trust: bool,
    /// Print the answer and nothing else.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// How long the run may take, all of it together, with a unit: 500ms, 30s, 5m.
    #[arg(short, long, value_name = "TIME")]
    pub(crate) timeout: Option<Limit>,
    /// Run again whenever a card, a hook, a tool or another file of the project changes.
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// What is approved without asking.
    #[command(flatten)]
    pub(crate) yes: Yes,
    /// What only workflows know.
    #[command(flatten)]
    pub(crate) of_workflow: OfWorkflow,
    /// Where it is recorded.
    #[command(flatten)]
    pub(crate) recording: Recording,
    /// What was recorded before.
    #[command(flatten)]
    pub(crate) earlier: Earlier,
}

/// `tenure chat`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Chat {
    /// A card, or a directory of cards.
    #[arg(value_name = "CARD|DIR", default_value = ".")]
    pub(crate) path: PathBuf,
    /// The agent to talk to, where there are several.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The model for every agent in place of its own, such as `passthrough`.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Trust the project for this one command; that is not remembered.
    #[arg(long)]
    pub(crate) trust: bool,
    /// Print the answers and nothing else.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Take cards, hooks and tools again whenever they change; what was said stays.
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// What is approved without asking.
    #[command(flatten)]
    pub(crate) yes: Yes,
    /// Go on with an earlier conversation with the agent; without its id with the last one.
    #[arg(
        long = "continue",
        value_name = "THREAD",
        num_args = 0..=1,
        default_missing_value = "",
        conflicts_with = "no_store"
    )]
    pub(crate) goes_on: Option<String>,
    /// Where it is kept.
    #[command(flatten)]
    pub(crate) recording: Recording,
}

/// `tenure check`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Check {
    /// A card, a workflow, or a directory: its cards and all of workflows/.
    #[arg(default_value = ".")]
    pub(crate) path: PathBuf,
    /// How to print what was found.
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) format: ReportFormat,
    /// Let warnings count as errors.
    #[arg(long)]
    pub(crate) deny_warnings: bool,
}

/// How `check` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people.
    Text,
    /// One object a line.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
}

/// `tenure hooks`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Hooks {
    /// The hook to describe; without it all are listed.
    pub(crate) name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `tenure explain`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Explain {
    /// A card, a directory of cards, or a workflow.
    #[arg(default_value = ".")]
    pub(crate) path: PathBuf,
    /// Only this agent.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Only this point, such as `wrap_tool_call`.
    #[arg(long, value_name = "POINT")]
    pub(crate) point: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `tenure dump`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Dump {
    /// The card.
    #[arg(value_name = "CARD")]
    pub(crate) path: PathBuf,
    /// The kind of file to print.
    #[arg(long, value_enum, default_value_t = DumpFormat::Markdown)]
    pub(crate) format: DumpFormat,
}

/// The two kinds of card file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DumpFormat {
    /// Front matter, then the instruction.
    Markdown,
    /// One YAML document.
    Yaml,
}

/// `tenure init`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Init {
    /// Where to write it. Without it, a folder named after the template.
    pub(crate) dir: Option<PathBuf>,
    /// What to write. Without it, the template that the folder is named after, else `hello`.
    #[arg(long, value_enum)]
    pub(crate) template: Option<Template>,
    /// Write a tenure.toml for a project of another framework, in its folder or in this one.
    #[arg(long, value_enum, value_name = "FRAMEWORK", conflicts_with = "template")]
    pub(crate) from: Option<Framework>,
}

/// The frameworks whose configuration `init` can convert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Framework {
    /// fast-agent.yaml or fastagent.config.yaml, in the folder or in its .fast-agent.
    FastAgent,
}

/// What `init` can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Template {
    /// One agent with a start and a stop hook.
    Hello,
    /// An agent whose tool a person has to approve.
    Approval,
    /// An agent that hands work to others, with a guard.
    Team,
    /// A workflow: two agents in one chat, with lifecycle tools.
    Workflow,
}

/// `tenure demo`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Demo {
    /// Keep the files in this new folder, to look at and to change.
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
}

/// `tenure trust`.
#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Trust {
    /// What to do; without it, `status`.
    #[command(subcommand)]
    pub(crate) action: Option<TrustAction>,
}

/// What can be done about trust.
#[derive(Debug, Subcommand)]
pub(crate) enum TrustAction {
    /// Say whether the project is trusted, and list the others that are.
    Status(Place),
    /// List everything that the project would execute, with hashes, and what changed.
    Review(Place),
    /// Trust the project as it is now.
    Accept(Accept),
    /// Forget that the project was trusted.
    Revoke(Place),
}

/// Which project.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Place {
    /// A card, a workflow, or a directory: its cards and all of workflows/.
    #[arg(default_value = ".")]
    pub(crate) path: PathBuf,
}

/// `tenure trust accept`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Accept {
    /// Which project.
    #[command(flatten)]
    pub(crate) place: Place,
    /// Accept only what has this fingerprint, as `review` printed it (or its first 32 digits).
    #[arg(long, value_name = "HEX")]
    pub(crate) fingerprint: Option<String>,
}

/// `tenure doctor`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Doctor {
    /// The project to look at.
    #[arg(default_value = ".")]
    pub(crate) path: PathBuf,
    /// Try each rule of confinement in a folder of its own, and say which of them hold here.
    #[arg(long)]
    pub(crate) sandbox: bool,
}

/// `tenure schema`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Schema {
    /// Of which file.
    #[arg(value_enum, default_value_t = SchemaOf::Card)]
    pub(crate) of: SchemaOf,
}

/// The formats that have a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaOf {
    /// An agent card.
    Card,
}

/// `tenure completions`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Completions {
    /// For which shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_message_may_begin_with_a_hyphen() {
        let args = Args::try_parse_from(["tenure", "run", "a.md", "-m", "-1 + 2"]);
        let Ok(Args { command: Command::Run(run) }) = args else {
            panic!("it should parse: {args:?}");
        };
        assert_eq!(run.message.as_deref(), Some("-1 + 2"));
    }

    #[test]
    fn trust_alone_is_a_question_about_the_status() {
        let args = Args::try_parse_from(["tenure", "trust"]);
        assert!(
            matches!(args, Ok(Args { command: Command::Trust(Trust { action: None }) })),
            "{args:?}"
        );
    }
}
