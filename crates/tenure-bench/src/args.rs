//! The command line.

use crate::count::Path;
use crate::figures::{GROUPS, concurrent::Side};
use std::fmt::Write as _;

/// Fewer rounds than this are for a quick look only.
const ROUNDS: usize = 200;

pub(crate) enum Command {
    Help,
    Core(Core),
    /// Does a path so many times and nothing else; for a tool that counts instructions.
    Count {
        path: Path,
        iterations: usize,
    },
    /// Prints what an idle instance weighs. Run as a child, so that nothing else is in the heap.
    IdleBytes,
    /// Prints the most memory that the concurrent runs took. Run as a child, likewise.
    Peak(Side),
}

pub(crate) struct Core {
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
       tenure-bench count PATH ITERATIONS

  core          measure; exit code 1 if a figure is past its limit
    --json      one JSON object per line and figure; times in nanoseconds
    --rounds N  how many rounds the minimum is taken over ({ROUNDS}; below 150 for a quick look)
    --only NAME only this figure
  count         do a path so many times, for a tool that counts instructions

Figures:"
    );
    for name in GROUPS.iter().flat_map(|group| group.names) {
        let _ = write!(help, "\n  {name}");
    }
    help.push_str("\n\nPaths to count:");
    for path in Path::ALL {
        let _ = write!(help, "\n  {}", path.name());
    }
    help
}

pub(crate) fn parse(arguments: &[String]) -> Result<Command, String> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if arguments.iter().any(|argument| matches!(*argument, "--help" | "-h" | "help")) {
        return Ok(Command::Help);
    }
    match arguments.as_slice() {
        [] => Err("say what to do: core or count".to_owned()),
        ["core", options @ ..] => core(options).map(Command::Core),
        ["count", path, iterations] => Ok(Command::Count {
            path: Path::ALL
                .into_iter()
                .find(|known| known.name() == *path)
                .ok_or_else(|| format!("there is no path `{path}` to count"))?,
            iterations: number(iterations)?,
        }),
        ["count", ..] => Err("count takes a path and a number of iterations".to_owned()),
        ["idle-bytes"] => Ok(Command::IdleBytes),
        ["peak", "base"] => Ok(Command::Peak(Side::Base)),
        ["peak", "tenure"] => Ok(Command::Peak(Side::Tenure)),
        [other, ..] => Err(format!("there is no command `{other}`")),
    }
}

fn core(options: &[&str]) -> Result<Core, String> {
    let mut core = Core { output: Output::Table, rounds: ROUNDS, only: None };
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let mut value = || options.next().ok_or_else(|| format!("{option} takes a value"));
        match *option {
            "--json" => core.output = Output::Json,
            "--rounds" => core.rounds = number(value()?)?,
            "--only" => core.only = Some(figure(value()?)?),
            other => return Err(format!("core has no option `{other}`")),
        }
    }
    Ok(core)
}

fn number(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("`{text}` is not a whole number above zero")),
    }
}

fn figure(name: &str) -> Result<&'static str, String> {
    let mut names = GROUPS.iter().flat_map(|group| group.names.iter().copied());
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
        let Ok(Command::Core(core)) = parsed("core --json --rounds 7 --only wrap_ratio") else {
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
            ("count", "a path"),
            ("count nothing 3", "no path `nothing`"),
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
        for name in GROUPS.iter().flat_map(|group| group.names) {
            assert!(help.contains(name), "{name}");
        }
    }
}
