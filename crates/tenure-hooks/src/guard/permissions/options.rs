//! What `permissions` takes by `with`.

use super::{Condition, Permissions};
use crate::ready::{About, Makings, Options, ProjectPath, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use tenure_core::hook::{IntoRegistration, Registration};

/// What `permissions` takes by `with`.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(default, deny_unknown_fields)]
pub(in crate::guard) struct PermissionsOptions {
    /// The rules. The first one that is about a call counts.
    rules: Vec<RuleOptions>,
    /// What happens to a call that no rule is about.
    default: Otherwise,
    /// What a denied call does: the model is told, or the turn ends as denied.
    on_denied: OnDenied,
}

/// A rule: exactly one of `allow`, `deny` and `ask`, with the name of a tool or a pattern of names.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(default, deny_unknown_fields)]
struct RuleOptions {
    /// The tool that may be called: a name, or a pattern such as `read_*`.
    allow: Option<String>,
    /// The tool that may not be called.
    deny: Option<String>,
    /// The tool that a person is asked about.
    ask: Option<String>,
    /// What arguments have to be for the rule to be about a call, by their place: `path`,
    /// `options.mode`, `files.*`. All of it has to hold, and an argument that is missing does not.
    #[serde(rename = "where")]
    wheres: BTreeMap<String, ConditionOptions>,
    /// Why it is denied, for the model to read.
    why: Option<String>,
}

/// What an argument has to be. All that is given has to hold; nothing is decoded first.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(default, deny_unknown_fields)]
struct ConditionOptions {
    /// A text that this pattern is about, or one of these: `*` stops at a `/`, `**` does not. Where a
    /// pattern has a `/` in it, a text with `..` between its slashes is denied: use `beneath` for
    /// those.
    glob: Option<OneOrMany>,
    /// A text that this regular expression matches, all of it. If it has a `/` in it, `..` is denied
    /// as it is for `glob`.
    pattern: Option<String>,
    /// One of these values. Numbers are compared by what they are: `1.0` is `1`.
    one_of: Option<Vec<Value>>,
    /// A number that is not more than this.
    max: Option<f64>,
    /// A number that is not less than this.
    min: Option<f64>,
    /// A text of at most so many characters, or a list of at most so many items.
    max_length: Option<usize>,
    /// A path that leads to this folder or beneath it. Links and `..` are resolved.
    beneath: Option<ProjectPath>,
    /// Where the tool takes relative paths from, for `beneath`; without it from the project's folder,
    /// as the tools of a project do.
    relative_to: Option<ProjectPath>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Otherwise {
    /// It is denied.
    #[default]
    Deny,
    /// It is allowed.
    Allow,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum OnDenied {
    /// The model reads why, and goes on.
    #[default]
    Tell,
    /// The turn ends as denied.
    End,
}

impl Options for PermissionsOptions {
    const ABOUT: About = About {
        name: "permissions",
        summary: "Says which tools may be called with which arguments; everything else is denied.",
        covers: &["UC-5.2"],
        peers: &[],
        example: r#"{ "rules": [{ "deny": "delete_*" }, { "allow": "*" }] }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        let mut permissions = Permissions::new();
        if self.rules.is_empty() && self.default == Otherwise::Deny {
            let message = "there are no rules, so that no tool could be called; allow some";
            return Err(Refusal::new("rules", message));
        }
        for (at, rule) in self.rules.into_iter().enumerate() {
            let field = format!("rules[{at}]");
            permissions = rule.add_to(permissions, makings, &field)?;
            if let Some(why) = &permissions.rules.broken {
                return Err(Refusal::new(field, why.clone()));
            }
        }
        if self.default == Otherwise::Allow {
            permissions = permissions.allow_others();
        }
        if self.on_denied == OnDenied::End {
            permissions = permissions.ends_turn();
        }
        Ok(permissions.into_registration())
    }
}

impl RuleOptions {
    fn add_to(
        self,
        permissions: Permissions,
        makings: &dyn Makings,
        field: &str,
    ) -> Result<Permissions, Refusal> {
        let mut permissions = match (self.allow, self.deny, self.ask) {
            (Some(tool), None, None) => permissions.allow(&tool),
            (None, Some(tool), None) => permissions.deny(&tool),
            (None, None, Some(tool)) => permissions.ask(&tool),
            _ => {
                let message = "a rule has exactly one of `allow`, `deny` and `ask`";
                return Err(Refusal::new(field, message));
            }
        };
        for (argument, condition) in self.wheres {
            let field = format!("{field}.where.{argument}");
            let condition = condition.make(makings, &field)?;
            if let Some(why) = &condition.broken {
                return Err(Refusal::new(field, why.clone()));
            }
            permissions = permissions.where_(&argument, condition);
        }
        Ok(match self.why {
            Some(why) => permissions.why(why),
            None => permissions,
        })
    }
}

impl ConditionOptions {
    fn make(self, makings: &dyn Makings, field: &str) -> Result<Condition, Refusal> {
        let mut all: Vec<Condition> = Vec::new();
        match self.glob {
            Some(OneOrMany::One(glob)) => all.push(Condition::glob([glob.as_str()])),
            Some(OneOrMany::Many(globs)) => {
                all.push(Condition::glob(globs.iter().map(String::as_str)));
            }
            None => {}
        }
        all.extend(self.pattern.map(|pattern| Condition::pattern(&pattern)));
        all.extend(self.one_of.map(Condition::one_of));
        all.extend(self.max.map(Condition::max));
        all.extend(self.min.map(Condition::min));
        all.extend(self.max_length.map(Condition::max_length));
        let path = |name: &str, path: ProjectPath| {
            let refused = |why| Refusal::new(format!("{field}.{name}"), why);
            makings.path(&path.0).map_err(refused)
        };
        match (self.beneath, self.relative_to) {
            (Some(folder), None) => {
                all.push(Condition::beneath_from(path("beneath", folder)?, makings.root()));
            }
            (Some(folder), Some(start)) => {
                let (folder, start) = (path("beneath", folder)?, path("relative_to", start)?);
                all.push(Condition::beneath_from(folder, start));
            }
            (None, Some(_)) => {
                let message = "it says where paths start from, so it needs `beneath`";
                return Err(Refusal::new(format!("{field}.relative_to"), message));
            }
            (None, None) => {}
        }
        all.into_iter().reduce(Condition::and).ok_or_else(|| {
            Refusal::new(field, "it says nothing of the argument; give `glob`, `one_of` or another")
        })
    }
}
