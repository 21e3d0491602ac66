//! The tools that a workflow gives its agents beside those of their cards.

use crate::file::{AgentEntry, ToolEntry, ToolType, UiComponent, UiMode, WorkflowFile};
use crate::output::{Outputs, auto_tool};
use crate::people::{ShownTool, TakesResponse, UI_RESPONSE, UiTool};
use crate::variables::Variables;
use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tenure_cards::Loaded;
use tenure_cards::build::{AttachHosts, Attached, AttachedEntry};
use tenure_cards::card::CardKind;
use tenure_core::context::ToolCx;
use tenure_core::tool::{Tool, ToolError, ToolOutput, ToolSpec};

/// Whether a tool is made here: the card's workshop makes plain ones.
fn is_special(entry: &ToolEntry) -> bool {
    matches!(entry.tool_type, ToolType::Ui(_)) || entry.shown.is_some()
}

/// Takes the tools out of the cards that [`of_agent`] puts in their place.
pub(super) fn take_out(file: &WorkflowFile, cards: &mut Loaded) {
    for card in &mut cards.cards {
        let CardKind::Agent(agent) = &mut card.kind else { continue };
        let name = &card.name;
        let is_replaced = |tool: &tenure_cards::card::FunctionTool| {
            file.tools.iter().any(|entry| {
                is_special(entry)
                    && entry.agents.contains(name)
                    && entry.tool.function == tool.function
            })
        };
        agent.function_tools.retain(|tool| !is_replaced(tool));
    }
}

/// The tools of an agent that people see, and for one with `auto_tool_mode` all of them, with what
/// calls the one that is called by itself.
pub(super) fn of_agent(
    file: &WorkflowFile,
    agent: &AgentEntry,
    variables: &Arc<Variables>,
    outputs: &Outputs,
    hosts: &AttachHosts<'_>,
) -> Attached {
    let mut attached = Attached::new();
    let own = || file.tools.iter().filter(|entry| entry.agents.contains(&agent.name));
    for entry in own().filter(|entry| agent.auto_tool_mode || is_special(entry)) {
        attached.python = true;
        attached.tools.push(tool(entry, variables, hosts));
    }
    let called = own().find(|entry| entry.auto_invoke);
    if let (true, Some(entry), Some(output)) =
        (agent.auto_tool_mode, called, outputs.get(&agent.name))
    {
        let name = entry.tool.spec.name.clone();
        let runs = format!("calls {name} with what the agent answers");
        let calls = AttachedEntry::new("auto_tool", auto_tool(output, name), runs);
        attached.entries.push(calls.declared(&*entry.declared));
    }
    attached
}

fn tool(entry: &ToolEntry, variables: &Arc<Variables>, hosts: &AttachHosts<'_>) -> Arc<dyn Tool> {
    let (spec, function) = (&entry.tool.spec, entry.tool.function.clone());
    let inner: Arc<dyn Tool> = Arc::new(hosts.python.tool(function, (**spec).clone()));
    let mode = |ui: &UiComponent| ui.mode.map(UiMode::as_str);
    let ui = match (&entry.tool_type, &entry.shown) {
        (ToolType::Ui(ui), _) => ui,
        (ToolType::Agent, None) => return inner,
        (ToolType::Agent, Some(ui)) => {
            return Arc::new(ShownTool::new(inner, ui.component.clone(), mode(ui)));
        }
    };
    let (told, response) = without_response(spec);
    let takes = if response.is_some() { TakesResponse::Yes } else { TakesResponse::No };
    let asks = UiTool::new(inner)
        .component(ui.component.clone())
        .mode(mode(ui))
        .takes_response(takes)
        .schema(response)
        .on_response(variables.ui_response(&*spec.name));
    Arc::new(Told { spec: told, asks })
}

/// A tool that asks a person, as the model is told of it.
struct Told {
    spec: ToolSpec,
    asks: UiTool,
}

#[async_trait]
impl Tool for Told {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        self.asks.call(cx, arguments).await
    }

    fn cancel_grace(&self) -> Duration {
        self.asks.cancel_grace()
    }

    fn is_composite(&self) -> bool {
        self.asks.is_composite()
    }
}

/// What a model is told of a tool that asks a person: not the argument that the person gives. That
/// argument's schema is the form of the answer.
fn without_response(spec: &ToolSpec) -> (ToolSpec, Option<Value>) {
    let mut spec = spec.clone();
    let mut parameters = spec.parameters.clone();
    let properties = parameters.get_mut("properties").and_then(Value::as_object_mut);
    let mut response = properties.and_then(|properties| properties.remove(UI_RESPONSE));
    if let (Some(Value::Object(response)), Some(defs)) = (&mut response, parameters.get("$defs")) {
        response.insert("$defs".to_owned(), defs.clone());
    }
    if let Some(required) = parameters.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| name != UI_RESPONSE);
    }
    spec = spec.parameters(parameters);
    (spec, response)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_form_of_an_answer_has_the_definitions_that_it_refers_to() {
        let part = json!({ "$ref": "#/$defs/Part" });
        let definitions = json!({ "Part": { "properties": { "parts": { "items": part } } } });
        let spec = ToolSpec::new("confirm", "").parameters(json!({
            "type": "object",
            "properties": { "what": { "type": "string" }, UI_RESPONSE: part },
            "required": ["what", UI_RESPONSE],
            "$defs": definitions,
        }));
        let (told, response) = without_response(&spec);
        assert_eq!(told.parameters["required"], json!(["what"]));
        assert_eq!(response, Some(json!({ "$ref": "#/$defs/Part", "$defs": definitions })));
    }
}
