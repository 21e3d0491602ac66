//! Which commands may run.

use crate::ready::Refusal;
use regex_automata::meta::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happens to a command that no pattern allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Otherwise {
    /// A person is asked. Where nobody is there, it is refused.
    #[default]
    Ask,
    /// It is refused.
    Deny,
    /// It runs. Then `deny` is all that stands before it.
    Allow,
}

/// What may run: what a person or a pattern allows, and nothing else.
#[derive(Clone, Debug, Default)]
pub(super) struct Leave {
    allow: Vec<Regex>,
    deny: Vec<(String, Regex)>,
    pub(super) operators: bool,
    pub(super) otherwise: Otherwise,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Allowed,
    Denied(String),
    Ask,
}

impl Leave {
    /// Allows commands that the pattern matches as a whole.
    pub(super) fn allow(&mut self, pattern: &str) -> Result<(), Refusal> {
        // The pattern is whole before it is put between anchors: it cannot reach out of them.
        compile("allow", pattern)?;
        self.allow.push(compile("allow", &format!(r"\A(?:{pattern})\z"))?);
        Ok(())
    }

    /// Denies commands that the pattern matches anywhere.
    pub(super) fn deny(&mut self, pattern: &str) -> Result<(), Refusal> {
        self.deny.push((pattern.to_owned(), compile("deny", pattern)?));
        Ok(())
    }

    /// Whether somebody said in advance that the command must not run.
    pub(super) fn denied(&self, command: &str) -> Option<String> {
        let (pattern, _) = self.deny.iter().find(|(_, regex)| regex.is_match(command))?;
        Some(format!("the command is not allowed: it matches `{pattern}`"))
    }

    pub(super) fn judge(&self, command: &str) -> Verdict {
        if let Some(why) = self.denied(command) {
            return Verdict::Denied(why);
        }
        let is_plain = self.operators || !has_operators(command);
        if is_plain && self.allow.iter().any(|regex| regex.is_match(command)) {
            return Verdict::Allowed;
        }
        match self.otherwise {
            Otherwise::Ask => Verdict::Ask,
            Otherwise::Deny => {
                Verdict::Denied("the command is not among those that are allowed".to_owned())
            }
            Otherwise::Allow => Verdict::Allowed,
        }
    }
}

pub(super) fn compile(field: &str, pattern: &str) -> Result<Regex, Refusal> {
    Regex::new(pattern).map_err(|error| {
        let why = error.syntax_error().map_or_else(|| error.to_string(), ToString::to_string);
        Refusal::new(field, format!("`{pattern}` is no regular expression: {why}"))
    })
}

/// Whether a shell may make something else of a command than its words: a second command, a
/// redirection, a substitution. Quotes are not looked at: whoever means such a character literally
/// asks, too.
fn has_operators(command: &str) -> bool {
    command.contains([';', '&', '|', '`', '$', '(', ')', '<', '>', '\n', '\r', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leave(allow: &[&str], deny: &[&str]) -> Leave {
        let mut leave = Leave { otherwise: Otherwise::Ask, ..Leave::default() };
        allow.iter().for_each(|it| leave.allow(it).unwrap());
        deny.iter().for_each(|it| leave.deny(it).unwrap());
        leave
    }

    #[test]
    fn an_allowed_command_is_one_that_a_pattern_matches_whole() {
        let leave = leave(&["ls|ls -l", "git (status|log).*"], &[]);
        for command in ["ls", "ls -l", "git status", "git log -1"] {
            assert_eq!(leave.judge(command), Verdict::Allowed, "{command}");
        }
        for command in ["", "ls -la", " ls", "ls\n", "sudo ls", "git push", "xls"] {
            assert_eq!(leave.judge(command), Verdict::Ask, "{command}");
        }
    }

    #[test]
    fn what_a_shell_makes_more_of_is_never_allowed_by_a_pattern() {
        let mut leave = leave(&["(?s)echo .*"], &[]);
        for tail in ["; rm x", "& rm x", "| sh", "`rm x`", "$(rm x)", "$HOME", "> x", "< x", "\nrm"]
        {
            let command = format!("echo a {tail}");
            assert_eq!(leave.judge(&command), Verdict::Ask, "{command}");
        }
        leave.operators = true;
        assert_eq!(leave.judge("echo a | wc"), Verdict::Allowed);
    }

    #[test]
    fn what_is_denied_is_denied_whoever_allows_it() {
        let mut leave = leave(&[".*"], &[r"\brm\b"]);
        leave.otherwise = Otherwise::Allow;
        assert!(matches!(leave.judge("rm -r x"), Verdict::Denied(_)));
        assert_eq!(leave.judge("ls | wc"), Verdict::Allowed);
    }

    #[test]
    fn a_pattern_cannot_reach_out_of_its_anchors() {
        assert!(Leave::default().allow("a)|(?:b").is_err());
        let mut leave = leave(&["(?m)^ls$"], &[]);
        leave.operators = true;
        assert_eq!(leave.judge("ls\nrm x"), Verdict::Ask);
    }
}
