//! Rules in order, and what they say of a call.

use super::argument::Argument;
use super::condition::{Condition, Holds};
use crate::guard::glob::Glob;
use serde_json::Value;

/// What a rule says of the calls that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    Allow,
    Deny,
    Ask,
}

/// One rule.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) says: Says,
    pub(super) tool: Glob,
    pub(super) wheres: Vec<(Argument, Condition)>,
    pub(super) why: Option<String>,
}

/// All that there are, in order: the first one that is about a call counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    pub(super) rules: Vec<Rule>,
    /// Whether a call is allowed that no rule is about.
    pub(super) open: bool,
    /// What cannot be read of them. Nothing is allowed then.
    pub(super) broken: Option<String>,
}

/// What comes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Allow,
    Ask,
    /// The reason.
    Deny(String),
}

/// Whether a rule is about a call.
enum About {
    Yes,
    No,
    Odd(String),
}

impl Rules {
    /// Whether what is said of this tool may depend on the file system.
    pub(super) fn look(&self, tool: &str) -> bool {
        let looks = |rule: &Rule| rule.wheres.iter().any(|(_, condition)| condition.looks());
        self.rules.iter().any(|rule| looks(rule) && rule.tool.matches(tool))
    }

    pub(super) fn judge(&self, tool: &str, arguments: &Value) -> Verdict {
        if let Some(why) = &self.broken {
            return Verdict::Deny(format!("the rules cannot be read: {why}"));
        }
        for rule in self.rules.iter().filter(|rule| rule.tool.matches(tool)) {
            match rule.about(arguments) {
                About::No => {}
                About::Odd(why) => return Verdict::Deny(why),
                About::Yes => {
                    return match rule.says {
                        Says::Allow => Verdict::Allow,
                        Says::Ask => Verdict::Ask,
                        Says::Deny => Verdict::Deny(rule.reason()),
                    };
                }
            }
        }
        match self.open {
            true => Verdict::Allow,
            false => Verdict::Deny("no rule allows this call".to_owned()),
        }
    }
}

impl Rule {
    fn reason(&self) -> String {
        let own = || match self.wheres.is_empty() {
            true => format!("the rule for `{}` denies it", self.tool.text()),
            false => format!("the rule for `{}` denies it with these arguments", self.tool.text()),
        };
        self.why.clone().unwrap_or_else(own)
    }

    /// A rule about an argument that is missing is not about the call. Where an argument names
    /// several, a rule that lets pass is about all of them, so none may be missing, and one
    /// that denies about any.
    fn about(&self, arguments: &Value) -> About {
        let mut about = About::Yes;
        for (argument, condition) in &self.wheres {
            let found = match argument.find(arguments) {
                Ok(found) => found,
                Err(why) => return About::Odd(format!("`{argument}`: {why}")),
            };
            let (mut held, count) = (0, found.values.len());
            for value in found.values {
                match condition.holds(value) {
                    Holds::Yes => held += 1,
                    Holds::No => {}
                    Holds::Odd(why) => return About::Odd(format!("`{argument}`: {why}")),
                }
            }
            let holds = match self.says {
                Says::Deny => held > 0,
                Says::Allow | Says::Ask => count > 0 && held == count && !found.missing,
            };
            if !holds {
                about = About::No;
            }
        }
        about
    }
}
