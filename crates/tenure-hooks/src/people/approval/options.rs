//! What `approval` takes by `with`.

use super::{Approval, ApprovalRule, Decision, OnReject, Remember};
use crate::ready::{About, Makings, Options, Refusal, Time};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use tenure_core::hook::{IntoRegistration, Registration};

/// What `approval` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::people) struct ApprovalOptions {
    /// The tools whose calls a person decides about, by name; `*` stands for any text. `true` asks
    /// about every call, `false` about none, and a table says more. A whole name beats one with
    /// `*`, of those the longer one counts, and of equals the one that asks.
    tools: BTreeMap<String, OnTool>,
    /// How the question begins, where a tool has no `description`.
    description_prefix: String,
    /// Whether the model is told, behind the result, which arguments a person changed; not to what.
    edit_notice: bool,
    /// What follows when a call is rejected: `tell` has the model read why and go on, `end` also
    /// ends the turn as denied.
    on_reject: OnReject,
    /// How long a question stands; after that the call is rejected. Without it, it stands until
    /// somebody answers or the turn is cancelled.
    expires_after: Option<Time>,
    /// Whether an approval counts for further calls of the same tool with the same arguments:
    /// `false`, `for_run`, or `for_thread` (for as long as the agent lives).
    remember: RememberOption,
    /// How often a question is put when answers are not allowed or do not fit; then the call is
    /// rejected.
    attempts: usize,
}

/// What is said about a tool.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum OnTool {
    /// Whether its calls are asked about.
    Whether(bool),
    /// How they are asked about.
    Rule(Box<RuleOptions>),
}

/// How the calls of a tool are asked about.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct RuleOptions {
    /// What may be answered.
    allowed_decisions: Vec<Decision>,
    /// The question: a template that sees `tool`, `arguments`, `agent` and `user`.
    description: Option<String>,
    /// The JSON Schema that edited arguments have to fit, beside the tool's own.
    args_schema: Option<Value>,
    /// Asks only where this expression holds, over `tool`, `arguments`, `agent` and `user`.
    when: Option<String>,
}

impl Default for RuleOptions {
    fn default() -> Self {
        Self {
            allowed_decisions: Decision::ALL.to_vec(),
            description: None,
            args_schema: None,
            when: None,
        }
    }
}

impl<'de> Deserialize<'de> for OnTool {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = OnTool;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false or a table")
            }

            fn visit_bool<E: de::Error>(self, whether: bool) -> Result<OnTool, E> {
                Ok(OnTool::Whether(whether))
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<OnTool, A::Error> {
                let rule = RuleOptions::deserialize(MapAccessDeserializer::new(table))?;
                Ok(OnTool::Rule(Box::new(rule)))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

/// Whether approvals are remembered.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "the schema is made of it")]
enum RememberOption {
    /// They are not.
    No(bool),
    /// They are.
    Span(Remember),
}

impl<'de> Deserialize<'de> for RememberOption {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Span;

        impl Visitor<'_> for Span {
            type Value = RememberOption;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("false, `for_run` or `for_thread`")
            }

            fn visit_bool<E: de::Error>(self, whether: bool) -> Result<RememberOption, E> {
                match whether {
                    false => Ok(RememberOption::No(false)),
                    true => Err(E::custom("say for how long: `for_run` or `for_thread`")),
                }
            }

            fn visit_str<E: de::Error>(self, span: &str) -> Result<RememberOption, E> {
                Remember::deserialize(span.into_deserializer()).map(RememberOption::Span)
            }
        }

        deserializer.deserialize_any(Span)
    }
}

impl Default for ApprovalOptions {
    fn default() -> Self {
        let Approval { prefix, edit_notice, on_reject, attempts, .. } = Approval::new();
        Self {
            tools: BTreeMap::new(),
            description_prefix: prefix,
            edit_notice,
            on_reject,
            expires_after: None,
            remember: RememberOption::No(false),
            attempts,
        }
    }
}

impl Options for ApprovalOptions {
    const ABOUT: About = About {
        name: "approval",
        summary: "Asks a person before a tool is called: approve, edit, reject or respond.",
        covers: &["UC-4.1"],
        peers: &["HumanInTheLoopMiddleware"],
        example: r#"{ "tools": { "delete_*": true, "pay": { "when": "arguments.amount > 100" } } }"#,
    };

    fn make(self, _: &dyn Makings) -> Result<Registration, Refusal> {
        if self.tools.is_empty() {
            return Err(Refusal::new("tools", "name a tool, or `\"*\": true` for all of them"));
        }
        if self.attempts == 0 {
            return Err(Refusal::new(
                "attempts",
                "a question is put at least once; give 1 or more",
            ));
        }
        let mut approval = Approval::new()
            .description_prefix(self.description_prefix)
            .edit_notice(self.edit_notice)
            .on_reject(self.on_reject)
            .attempts(self.attempts);
        if let Some(Time(after)) = self.expires_after {
            approval = approval.expires_after(after);
        }
        if let RememberOption::Span(span) = self.remember {
            approval = approval.remember(span);
        }
        for (tool, said) in self.tools {
            approval = match said {
                OnTool::Whether(true) => approval.tool(tool),
                OnTool::Whether(false) => approval.never(tool),
                OnTool::Rule(rule) => {
                    let rule = rule.read(&format!("tools.{tool}"))?;
                    approval.tool_with(tool, rule)
                }
            };
        }
        Ok(approval.into_registration())
    }
}

impl RuleOptions {
    fn read(self, at: &str) -> Result<ApprovalRule, Refusal> {
        let wrong = |field: &str, why: String| Refusal::new(format!("{at}.{field}"), why);
        if self.allowed_decisions.is_empty() {
            return Err(wrong("allowed_decisions", "nothing could be answered; name one".into()));
        }
        let mut rule = ApprovalRule::new().allow(self.allowed_decisions);
        if let Some(description) = self.description {
            rule = rule
                .description(description)
                .map_err(|error| wrong("description", error.to_string()))?;
        }
        if let Some(schema) = self.args_schema {
            super::check_schema(&schema).map_err(|why| wrong("args_schema", why))?;
            rule = rule.args_schema(schema);
        }
        if let Some(when) = self.when {
            rule = rule.when(&when).map_err(|error| wrong("when", error.to_string()))?;
        }
        Ok(rule)
    }
}
