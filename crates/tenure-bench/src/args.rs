//! The command line.

use crate::figures::{FLOW, GROUPS, Group, HOOKS, HOSTS, MODELS, STORE, concurrent::Side};
use std::fmt::Write as _;

/// Fewer rounds than this are for a quick look only.
const ROUNDS: usize = 200;

pub(crate) enum Command {
    Help,
    /// Measures the figures of one of the sets.
    Figures(Set, Figures),
    /// Prints what an idle instance weighs. Run as a child, so that nothing else is in the heap.
    IdleBytes,
    /// Prints the most memory that the concurrent runs took. Run as a child, likewise.
    Peak(Side),
    /// Echoes over MCP, and bare over the two pipes. Run as a child, by the figure of MCP.
    Echo {
        bare_in: String,
        bare_out: String,
    },
}

/// Which figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    Core,
    Hosts,
    Models,
    Flow,
    Store,
    Hooks,
}

impl Set {
    const ALL: [Self; 6] =
        [Self::Core, Self::Hosts, Self::Models, Self::Flow, Self::Store, Self::Hooks];

    pub(crate) fn groups(self) -> &'static [Group] {
        match self {
            Self::Core => &GROUPS,
            Self::Hosts => &HOSTS,
            Self::Models => &MODELS,
            Self::Flow => &FLOW,
            Self::Store => &STORE,
            Self::Hooks => &HOOKS,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Hosts => "hosts",
            Self::Models => "models",
            Self::Flow => "flow",
            Self::Store => "store",
            Self::Hooks => "hooks",
        }
    }
}

pub(crate) struct Figures {
    pub(crate) output: Output,
    pub(crate) rounds: usize,
    pub(crate) only: Option<&'static str>,
}

#[derive(Clone, Copy)]
pub(crate) enum Output {
    Table,
    Json,
}

pub(crate) fn help() -> String {
    let mut help = format!(
        "Measures Tenure against the same work written by hand.

Usage: tenure-bench core [--json] [--rounds N] [--only NAME]
       tenure-bench hosts [--json] [--rounds N] [--only NAME]
       tenure-bench models [--json] [--rounds N] [--only NAME]
       tenure-bench flow [--json] [--rounds N] [--only NAME]
       tenure-bench store [--json] [--rounds N] [--only NAME]
       tenure-bench hooks [--json] [--rounds N] [--only NAME]

  core          measure the lifecycle; exit code 1 if a figure is past its limit
  hosts         measure hooks in other processes and files, likewise; needs Python 3
  models        measure calls of providers and of MCP servers, likewise
  flow          measure chats of several agents, likewise
  store         measure runs that survive, likewise; needs valgrind
  hooks         measure each ready-made hook, likewise
    --json      one JSON object per line and figure; times in nanoseconds
    --rounds N  how many rounds the minimum is taken over ({ROUNDS}; below 150 for a quick look)
    --only NAME only this figure

Figures:"
    );
    for set in Set::ALL {
        for name in set.groups().iter().flat_map(|group| group.names) {
            let _ = write!(help, "\n  {name} ({})", set.name());
        }
    }
    help
}

pub(crate) fn parse(arguments: &[String]) -> Result<Command, String> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if arguments.iter().any(|argument| matches!(*argument, "--help" | "-h" | "help")) {
        return Ok(Command::Help);
    }
    match arguments.as_slice() {
        [] => Err("say what to do: core, hosts, models, flow, store or hooks".to_owned()),
        ["core", options @ ..] => figures(Set::Core, options),
        ["hosts", options @ ..] => figures(Set::Hosts, options),
        ["models", options @ ..] => figures(Set::Models, options),
        ["flow", options @ ..] => figures(Set::Flow, options),
        ["store", options @ ..] => figures(Set::Store, options),
        ["hooks", options @ ..] => figures(Set::Hooks, options),
        ["idle-bytes"] => Ok(Command::IdleBytes),
        ["peak", "base"] => Ok(Command::Peak(Side::Base)),
        ["peak", "tenure"] => Ok(Command::Peak(Side::Tenure)),
        ["echo", bare_in, bare_out] => {
            Ok(Command::Echo { bare_in: (*bare_in).to_owned(), bare_out: (*bare_out).to_owned() })
        }
        [other, ..] => Err(format!("there is no command `{other}`")),
    }
}

fn figures(set: Set, options: &[&str]) -> Result<Command, String> {
    let mut wanted = Figures { output: Output::Table, rounds: ROUNDS, only: None };
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let mut value = || options.next().ok_or_else(|| format!("{option} takes a value"));
        match *option {
            "--json" => wanted.output = Output::Json,
            "--rounds" => wanted.rounds = number(value()?)?,
            "--only" => wanted.only = Some(figure(set, value()?)?),
            other => return Err(format!("{} has no option `{other}`", set.name())),
        }
    }
    Ok(Command::Figures(set, wanted))
}

fn number(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("`{text}` is not a whole number above zero")),
    }
}

fn figure(set: Set, name: &str) -> Result<&'static str, String> {
    let mut names = set.groups().iter().flat_map(|group| group.names.iter().copied());
    names.find(|known| *known == name).ok_or_else(|| format!("there is no figure `{name}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_of_core_are_read() {
        let Ok(Command::Figures(Set::Core, core)) =
            parsed("core --json --rounds 7 --only wrap_ratio")
        else {
            panic!("these are fine");
        };
        assert!(matches!(core.output, Output::Json));
        assert_eq!((core.rounds, core.only), (7, Some("wrap_ratio")));
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for (line, part) in [
            ("", "say what"),
            ("tower", "no command `tower`"),
            ("core --rounds", "takes a value"),
            ("core --rounds 0", "above zero"),
            ("core --only nothing", "no figure `nothing`"),
            ("core --loud", "no option `--loud`"),
            ("hosts --only wrap_ratio", "no figure `wrap_ratio`"),
            ("models --only load_ratio", "no figure `load_ratio`"),
            ("flow --only mcp_ratio", "no figure `mcp_ratio`"),
            ("store --only mcp_ratio", "no figure `mcp_ratio`"),
        ] {
            match parsed(line) {
                Err(problem) => assert!(problem.contains(part), "{line}: {problem}"),
                Ok(_) => panic!("`{line}` should be refused"),
            }
        }
    }

    #[test]
    fn help_names_every_figure() {
        let help = help();
        let groups = GROUPS.iter().chain(&HOSTS).chain(&MODELS).chain(&FLOW).chain(&STORE);
        for name in groups.flat_map(|group| group.names) {
            assert!(help.contains(name), "{name}");
        }
    }
}
