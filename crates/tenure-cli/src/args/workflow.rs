//! What only a run of a workflow can be told.

use clap::Args;
use serde_json::Value;

const HEADING: &str = "Workflows";

/// The options of `tenure run` for workflows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct OfWorkflow {
    /// The workflow to run, where a project has several: the name of its folder in workflows/.
    #[arg(long, value_name = "NAME")]
    pub(crate) workflow: Option<String>,
    /// The app that the chat belongs to: the context variable `app_id` [default: local].
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) app: Option<String>,
    /// Who the user is: the context variable `user_id` [default: local].
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) user: Option<String>,
    /// The chat's id, in place of a new one: the context variable `chat_id`.
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) chat_id: Option<String>,
    /// What chance is made of, in place of the workflow's own seed.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Set a declared context variable before the chat begins; JSON where it is JSON, else text. May
    /// be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub(crate) set: Vec<(String, Value)>,
}

impl OfWorkflow {
    /// The first option that was given, for a run that is none of a workflow.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let options = [
            ("--workflow", self.workflow.is_some()),
            ("--app", self.app.is_some()),
            ("--user", self.user.is_some()),
            ("--chat-id", self.chat_id.is_some()),
            ("--seed", self.seed.is_some()),
            ("--set", !self.set.is_empty()),
        ];
        options.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }
}

/// An id is not empty, and one line.
fn id(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("it is empty; give it an id, or leave the option out".to_owned()),
        id if id.chars().any(char::is_control) => Err("an id is one line of text".to_owned()),
        id => Ok(id.to_owned()),
    }
}

/// `name=value`. What is no JSON is text.
fn assignment(text: &str) -> Result<(String, Value), String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err(format!("`{text}` has no `=`; write `{text}=value`"));
    };
    let name = name.trim();
    match name {
        "" => Err("there is no name before the `=`".to_owned()),
        "workflow_name" => Err("`workflow_name` is the workflow's own".to_owned()),
        "app_id" => Err("`app_id` is set with --app".to_owned()),
        "enterprise_id" => {
            Err("`enterprise_id` is the older name of `app_id`, which is set with --app".to_owned())
        }
        "user_id" => Err("`user_id` is set with --user".to_owned()),
        "chat_id" => Err("`chat_id` is set with --chat-id".to_owned()),
        name => {
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
            Ok((name.to_owned(), value))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, Command};
    use clap::Parser as _;
    use serde_json::json;

    fn parsed(options: &[&str]) -> Result<OfWorkflow, String> {
        let line = [&["tenure", "run", "story"], options].concat();
        match Args::try_parse_from(line) {
            Ok(Args { command: Command::Run(run) }) => Ok(run.of_workflow),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn values_are_json_where_they_are_json_and_text_elsewhere() {
        let set = ["--set", "n=3", "--set", "who=Ada", "--set", "on=true", "--set", "eq=a=b"];
        let expected =
            [("n", json!(3)), ("who", json!("Ada")), ("on", json!(true)), ("eq", json!("a=b"))];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(parsed(&set).expect("it parses").set, expected);
    }

    #[test]
    fn what_has_an_option_of_its_own_is_not_set_as_a_variable() {
        for (set, part) in [
            ("app_id=x", "--app"),
            ("user_id=x", "--user"),
            ("chat_id=x", "--chat-id"),
            ("enterprise_id=x", "--app"),
        ] {
            let said = parsed(&["--set", set]).expect_err("it is refused");
            assert!(said.contains(part), "{said}");
        }
        assert!(parsed(&["--set", "loud"]).expect_err("it is refused").contains("loud=value"));
        assert!(parsed(&["--app", " "]).expect_err("it is refused").contains("it is empty"));
    }

    #[test]
    fn the_first_option_that_only_workflows_have_is_known() {
        assert_eq!(parsed(&[]).expect("it parses").given(), None);
        assert_eq!(parsed(&["--seed", "7"]).expect("it parses").given(), Some("--seed"));
    }
}
