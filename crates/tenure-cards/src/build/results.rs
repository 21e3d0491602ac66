//! `tool_result_mode`: what becomes of the results of an agent's tools.

use async_trait::async_trait;
use serde_json::{Value, json};
use tenure_core::NextModel;
use tenure_core::clone::ChildOptions;
use tenure_core::context::TurnCx;
use tenure_core::hook::{AgentLifecycle, HookError, Point, Points};
use tenure_core::message::Message;
use tenure_core::model::{ModelRequest, ModelResponse};

/// The argument by which a caller chooses, and where the clone keeps it.
const ARGUMENT: &str = "response_mode";
const KEPT: &str = "_response_mode";
const MODES: [&str; 3] = ["inherit", "postprocess", "passthrough"];

/// The party that decides that results are the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResultMode {
    /// The card: they always are.
    Passthrough,
    /// The caller, with each call.
    Selectable,
}

impl ResultMode {
    /// The mode of this name; none if the model gets to read the results, as usual.
    pub(super) fn of(name: Option<&str>) -> Option<Self> {
        match name {
            Some("passthrough") => Some(Self::Passthrough),
            Some("selectable") => Some(Self::Selectable),
            _ => None,
        }
    }

    /// Returns its effect in words, for `explain`.
    pub(super) fn explained(self) -> &'static str {
        match self {
            Self::Passthrough => "answers with what the tools returned",
            Self::Selectable => "answers with what the tools returned, if the caller asks for it",
        }
    }
}

/// Answers in place of the model once tools were called: with their results, one behind the other.
pub(super) struct PassResults(pub(super) ResultMode);

impl PassResults {
    fn applies(&self, cx: &TurnCx<'_>) -> Result<bool, HookError> {
        if self.0 == ResultMode::Passthrough {
            return Ok(true);
        }
        let Some(kept) = cx.state(KEPT) else { return Ok(false) };
        let said = kept.as_str().map(|it| it.trim().to_lowercase()).unwrap_or_default();
        match MODES.iter().find(|mode| **mode == said) {
            Some(mode) => Ok(*mode == "passthrough"),
            None => {
                let shown = kept.as_str().map_or_else(|| kept.to_string(), str::to_owned);
                let [first, second, third] = MODES;
                Err(HookError::new(format!(
                    "`{ARGUMENT}` is `{shown}`, but must be {first}, {second} or {third}"
                )))
            }
        }
    }
}

#[async_trait]
impl AgentLifecycle for PassResults {
    fn points(&self) -> Points {
        Point::WrapModelCall.into()
    }

    fn name(&self) -> &str {
        "tool_result_mode"
    }

    async fn wrap_model_call(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        if self.applies(&cx)? && matches!(request.messages.last(), Some(Message::Tool(_))) {
            let messages: Vec<&Message> = request.messages.iter().collect();
            let results = messages.iter().rev().map_while(|message| match message {
                Message::Tool(result) => Some(result.content.text()),
                _ => None,
            });
            let mut results: Vec<&str> = results.collect();
            results.reverse();
            return Ok(ModelResponse::text(results.join("\n")));
        }
        Ok(next.call(request).await?)
    }
}

/// Lets the caller of a child choose, unless the child's own schema has an argument of that name.
pub(super) fn selectable(options: ChildOptions) -> ChildOptions {
    let mut schema = options.parameters.clone().unwrap_or_else(|| {
        json!({
            "type": "object",
            "properties": {
                "message": { "type": "string", "description": "What to ask the agent" },
            },
            "required": ["message"],
        })
    });
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return options;
    };
    if properties.contains_key(ARGUMENT) {
        return options;
    }
    let description = "What comes back: the agent's answer, or what its tools returned";
    properties.insert(
        ARGUMENT.to_owned(),
        json!({ "type": "string", "enum": MODES, "default": MODES[0], "description": description }),
    );
    options.parameters(schema).state_argument(ARGUMENT)
}
