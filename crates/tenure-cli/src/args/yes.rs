//! `--yes`: what is approved without asking.

use clap::Args;

/// `--yes`, for every command that runs agents.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Yes {
    /// Approve every call of these tools without asking, and nothing else. May be repeated.
    #[arg(
        long = "yes",
        value_name = "TOOL,...",
        value_delimiter = ',',
        num_args = 0..=1,
        default_missing_value = "",
        value_parser = tool_name
    )]
    pub(crate) tools: Vec<String>,
}

/// A name of one tool. Everything at once is not offered.
fn tool_name(text: &str) -> Result<String, String> {
    let name = text.trim();
    match name {
        "" => Err("name the tools whose calls are approved, such as `--yes shell,write_file`; \
                   there is no yes to everything"
            .to_owned()),
        "all" | "ALL" => Err(everything()),
        name if name.contains('*') => Err(everything()),
        name => Ok(name.to_owned()),
    }
}

fn everything() -> String {
    "there is no yes to everything, because nobody can know what that will be; name each tool, \
     such as `--yes shell,write_file`"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use crate::args::{Args, Command};
    use clap::Parser as _;

    fn parsed(yes: &[&str]) -> Result<Vec<String>, String> {
        let line = [&["tenure", "run", "a.md", "-m", "hi"], yes].concat();
        match Args::try_parse_from(line) {
            Ok(Args { command: Command::Run(run) }) => Ok(run.yes.tools),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn names_are_given_together_or_one_by_one() {
        let tools = parsed(&["--yes", "shell,write_file", "--yes", "fetch"]);
        assert_eq!(tools.expect("it parses"), ["shell", "write_file", "fetch"]);
        assert!(parsed(&[]).expect("it parses").is_empty());
    }

    #[test]
    fn everything_is_not_offered() {
        for yes in [&["--yes"][..], &["--yes", "all"], &["--yes", "*"], &["--yes", "shell,fs__*"]] {
            let said = parsed(yes).expect_err("it is refused");
            assert!(said.contains("there is no yes to everything"), "{yes:?}: {said}");
        }
        let said = parsed(&["--yes", "shell,"]).expect_err("it is refused");
        assert!(said.contains("name the tools"), "{said}");
    }
}
