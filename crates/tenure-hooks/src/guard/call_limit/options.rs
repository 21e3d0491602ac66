//! What `call_limit` takes by `with`.

use super::{AtLimit, CallLimit, Most};
use crate::ready::{About, Makings, Options, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tenure_core::hook::{IntoRegistration, Registration};

/// What `call_limit` takes by `with`.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(default, deny_unknown_fields)]
pub(in crate::guard) struct CallLimitOptions {
    /// The most model calls.
    models: MostOptions,
    /// The most calls of a tool, by its name; or of all that a pattern names (`search_*`, `*`)
    /// together.
    tools: BTreeMap<String, MostOptions>,
    /// What happens at a limit.
    exit: Exit,
    /// What the turn ends with, unless `exit` is `error`; without it a text that says which limit was
    /// reached.
    text: Option<String>,
}

/// The most calls of a kind.
#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy)]
#[serde(default, deny_unknown_fields)]
struct MostOptions {
    /// In one run: one request to the agent.
    run: Option<u64>,
    /// In one thread: all runs of this agent's conversation, or, in a chat, its own turns there.
    thread: Option<u64>,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Exit {
    /// The turn ends as denied.
    Error,
    /// The turn ends well, with a text.
    #[default]
    End,
    /// A tool call beyond the limit is denied and the model goes on; a model call beyond it ends the
    /// turn with a text.
    Continue,
}

impl Options for CallLimitOptions {
    const ABOUT: About = About {
        name: "call_limit",
        summary: "Bounds how many model and tool calls there are in a run and in a thread.",
        covers: &[],
        peers: &["ModelCallLimitMiddleware", "ToolCallLimitMiddleware"],
        example: r#"{ "models": { "run": 20 }, "tools": { "*": { "run": 50 } } }"#,
    };

    fn make(self, _: &dyn Makings) -> Result<Registration, Refusal> {
        let mut limit = CallLimit::new().at_limit(match self.exit {
            Exit::Error => AtLimit::Error,
            Exit::End => AtLimit::End,
            Exit::Continue => AtLimit::Continue,
        });
        limit.models = most("models", self.models)?;
        if limit.models == Most::default() && self.tools.is_empty() {
            return Err(Refusal::new("", "give a limit: `models`, `tools`, or both"));
        }
        if self.exit == Exit::Continue && self.tools.is_empty() {
            let message = "only tool calls can be denied and gone on from; use `end` or `error`";
            return Err(Refusal::new("exit", message));
        }
        if self.exit == Exit::Error && self.text.is_some() {
            let message = "with `exit: error` the turn ends as denied, and not with a text; leave \
                           it out, or use `exit: end`";
            return Err(Refusal::new("text", message));
        }
        for (tool, options) in self.tools {
            let field = format!("tools.{tool}");
            let set = most(&field, options)?;
            if set == Most::default() {
                return Err(Refusal::new(field, "give `run`, `thread`, or both"));
            }
            if let Some(most) = limit.most(&tool) {
                *most = set;
            }
            if let Some(why) = limit.broken {
                return Err(Refusal::new(field, why));
            }
        }
        limit.text = self.text;
        Ok(limit.into_registration())
    }
}

fn most(field: &str, options: MostOptions) -> Result<Most, Refusal> {
    let MostOptions { run, thread } = options;
    if field == "models" && (run == Some(0) || thread == Some(0)) {
        return Err(Refusal::new(field, "with 0 model calls the agent could say nothing"));
    }
    if let (Some(run), Some(thread)) = (run, thread)
        && run > thread
    {
        let message = format!("`run` ({run}) is more than `thread` ({thread}) lets it be");
        return Err(Refusal::new(format!("{field}.run"), message));
    }
    Ok(Most { run, thread })
}
