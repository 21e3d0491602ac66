//! What can be checked only when every file of a workflow is read.

use super::data::{AgentKind, WorkflowFile};
use super::load::{Found, workflow_of};
use super::nested::Nested;
use super::pack;
use super::part::{Folder, Part, Slot, meant};
use std::sync::Arc;
use tenure_cards::Loaded;
use tenure_cards::card::CardKind;
use tenure_cards::diagnostic::{Code, Diagnostic, Report};

/// Agents with the models of their answers, and the workflows that they are.
pub(super) fn agents(
    folder: &mut Folder<'_, '_>,
    workflow: &mut WorkflowFile,
    found: &Found,
    own: &Nested,
) {
    for read in &found.agents {
        let name = &read.entry.name;
        let model = workflow.outputs.registry.get(&**name).cloned().flatten();
        let invoked = workflow.tools.iter().any(|it| it.auto_invoke && it.agents.contains(name));
        let source = &read.entry.source;
        folder.entry(source, &read.label, |scope| {
            let reader = &mut *scope.reader;
            let lacks = model.is_none() && found.outputs_whole;
            if let Some(span) = read.auto_span.filter(|_| lacks) {
                let message =
                    format!("`auto_tool_mode` needs a model of what `{name}` answers with");
                let help = format!(
                    "declare one in structured_outputs, and add `{name}` to its `registry`"
                );
                reader.problem_help(Code::AutoToolMode, span, message, help);
            }
            if let Some(span) = read.auto_span.filter(|_| !lacks && !invoked) {
                let message = "`auto_tool_mode` means nothing: no tool is called by itself";
                let help = format!("give a tool of `{name}` `auto_invoke: true`");
                reader.problem_help(Code::MeaninglessField, span, message, help);
            }
            if let Some(span) = read.required_span.filter(|_| lacks) {
                let message =
                    "`structured_outputs_required` means nothing: the registry has no model for it";
                let help = format!("add `{name}` to the `registry` of structured_outputs");
                reader.problem_help(Code::MeaninglessField, span, message, help);
            }
        });
        if let Some(entry) = workflow.agents.iter_mut().find(|entry| entry.name == *name) {
            entry.output = model.map(Arc::from);
            let nested = workflow_of(&entry.kind).and_then(|it| own.names.get(it));
            if let Some(nested) = nested {
                entry.kind = AgentKind::Workflow(Arc::clone(nested));
            }
        }
    }
}

/// Journeys with the workflows of their children.
pub(super) fn journeys(
    folder: &mut Folder<'_, '_>,
    workflow: &mut WorkflowFile,
    read: Vec<pack::Read>,
    slot: &Slot,
    own: &Nested,
) {
    let Some(part) = slot.part() else { return };
    for mut each in read {
        let trigger = &each.journey.trigger_agent;
        let answers = workflow.agent(trigger).is_none_or(|agent| agent.output.is_some());
        let nested = own.names.get(&each.workflow.0);
        let nested = nested.and_then(|name| own.loaded.iter().find(|it| it.workflow.name == *name));
        folder.entry(&part.source, &each.label, |scope| {
            let reader = &mut *scope.reader;
            if !answers {
                let message = format!(
                    "`{trigger}` has no structured output, so this journey would never begin"
                );
                let help = format!("add `{trigger}` to the `registry` of structured_outputs");
                reader.problem_help(Code::BadJourney, each.trigger_span, message, help);
            }
            let child = each.journey.fan_out.child_initial_agent.as_ref().zip(nested);
            if let Some((child, nested)) = child
                && nested.workflow.agent(child).is_none()
                && !nested.report.has_errors()
            {
                let known: Vec<&str> =
                    nested.workflow.agents.iter().map(|agent| &*agent.name).collect();
                let message = format!(
                    "`child_initial_agent` is `{child}`, which `{}` does not have",
                    nested.workflow.name
                );
                let help = meant(child, &known, "agent");
                let span = each.child_span.unwrap_or(each.trigger_span);
                reader.problem_help(Code::UnknownAgent, span, message, help);
            }
        });
        if let Some(nested) = nested {
            each.journey.fan_out.workflow = Some(Arc::clone(&nested.workflow.name));
            workflow.journeys.push(each.journey);
        }
    }
}

/// Gives the cards the tools that the file `tools` declares.
pub(super) fn tools(
    cards: &mut Loaded,
    workflow: &WorkflowFile,
    part: Option<&Part>,
    report: &mut Report,
) {
    let Some(part) = part else { return };
    for tool in &workflow.tools {
        let name = &tool.tool.spec.name;
        let mut problem = |code: Code, message: String, help: &str| {
            let found = Diagnostic::new(code, &part.source, tool.tool.span, message);
            report.push(found.help(help).entry(format!("tools `{name}`")));
        };
        for agent in &tool.agents {
            let Some(entry) = workflow.agent(agent) else { continue };
            let AgentKind::Card(card) = &entry.kind else {
                let message = format!("`{agent}` is a workflow, and has no tools of its own");
                problem(Code::Contradiction, message, "give the tool to an agent in that workflow");
                continue;
            };
            let Some(card) = cards.cards.iter_mut().find(|it| it.name == *card) else { continue };
            let (span, kind) = (card.name_span, card.card_type());
            let CardKind::Agent(card) = &mut card.kind else {
                let message = format!("`{agent}` is a card of type {kind}, and has no tools");
                problem(Code::Contradiction, message, "give the tool to one of its agents");
                continue;
            };
            if card.function_tools.iter().any(|it| it.spec.name == *name) {
                let message = format!("the card of `{agent}` has another tool `{name}`");
                problem(Code::ToolNameClash, message, "remove one of them, or rename the function");
                continue;
            }
            if !entry.auto_tool_mode {
                let mut own = tool.tool.clone();
                own.span = span;
                card.function_tools.push(own);
            }
        }
    }
}
