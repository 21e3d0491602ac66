//! What a workflow would run and reach.

use super::attach::described_schema;
use crate::file::{LoadedWorkflow, ToolType, WorkflowFile};
use crate::lifecycle::{LifecycleTool, Run};
use crate::route::Routing;
use crate::variables::Source;
use std::path::Path;
use tenure_cards::trust::{Collector, Guards, Inventory, UsedHook, inventory_with};

/// Everything that a workflow would execute, let its models execute, read or reach: of its agents,
/// its lifecycle tools, its tools, its hooks and its variables, with the contents of files as
/// hashes; of the workflows that it names too. Executes nothing.
pub fn trust_items(loaded: &LoadedWorkflow) -> Inventory {
    let own = inventory_with(&loaded.cards, |found| collect(loaded, found));
    loaded.nested.iter().map(trust_items).fold(own, Inventory::merged)
}

fn collect(loaded: &LoadedWorkflow, found: &mut Collector<'_>) {
    let file = &loaded.workflow;
    let name = &file.name;
    let folder = loaded.cards.project.relative(&file.dir);
    found.guards(format!("workflow {name} in {folder}"), guards(file));
    for (path, source) in &file.sources {
        found.instruction(path, source.text(), name);
    }
    for tool in &file.lifecycle {
        let used = format!("{name}: {}", described(tool));
        match &tool.run {
            Run::Python(function) => found.python(function, &used),
            Run::Command { argv, dir } => found.program(argv, dir, &tool.writes, &used),
            Run::Use { .. } => {
                if let Some(hook) = used_hook(tool, &loaded.cards.project.root) {
                    found.uses(&hook, &used);
                }
            }
            Run::Platform => {}
        }
    }
    for entry in &file.tools {
        for agent in &entry.agents {
            found.python(&entry.tool.function, &format!("{agent}: tool"));
        }
    }
    for hook in &file.message_hooks {
        let agent = hook.agent.as_deref().unwrap_or("all");
        found.python(&hook.function, &format!("{name}: {} of {agent}", hook.kind));
    }
    found.hooks(&file.orchestrator.hooks, name, &file.orchestrator.source);
    for function in &loaded.platform.functions {
        found.python(function, &format!("{name}: platform"));
    }
    for definition in &file.variables.definitions {
        let used = format!("{name}: variable {}", definition.name);
        let database = match &definition.source {
            Source::File(source) => {
                let root = &loaded.cards.project.root;
                let there = source.located(root, &file.dir);
                found.data(&there.unwrap_or(file.dir.join(&source.path)), false, &used);
                None
            }
            Source::DataReference(source) => Some(&source.database_name),
            Source::DataEntity(source) => Some(&source.database_name),
            Source::Computed(source) => source.persist_to.as_ref().map(|it| &it.database_name),
            Source::Config(source) => {
                found.environment(&source.env_var, &read_by(file, &definition.name), name);
                None
            }
            Source::State(_) | Source::Static(_) | Source::Provided(_) => None,
        };
        let databases = &loaded.cards.project.config.databases;
        if let Some(path) = database.and_then(|name| databases.get(name)) {
            found.data(path, true, &used);
        }
    }
    for taken in &file.expansions {
        found.environment(&taken.name, "the files of the workflow", name);
    }
    let context = &loaded.cards.project.config.context;
    let overviews = [("concept", &context.concept_overview), ("schema", &context.schema_overview)];
    for (which, path) in overviews {
        if let Some(path) = path {
            found.data(path, false, &format!("{name}: variable {which}_overview"));
        }
    }
    let databases = &loaded.cards.project.config.databases;
    let schema = described_schema(loaded).database_of(loaded.cards.environ(), databases.keys());
    if let Some(path) = schema.and_then(|schema| databases.get(&schema)) {
        found.data(path, true, &format!("{name}: variable schema_overview"));
    }
    let orchestrator = &file.orchestrator;
    let routing = Routing::new(orchestrator.pattern).handoffs(file.handoffs.clone());
    if routing.needs_selector() {
        let model = orchestrator.selector_model.as_deref();
        found.model(&loaded.cards, model, &format!("{name}: selector"));
    }
}

/// The guards of a workflow: its hooks, its lifecycle tools, its tools that ask a person, and its limits.
fn guards(file: &WorkflowFile) -> Guards {
    let mut guards = Guards::new();
    let orchestrator = &file.orchestrator;
    guards.hooks(&orchestrator.hooks, &orchestrator.source);
    for tool in &file.lifecycle {
        let mut said = format!("{} {}", described(tool), runs(tool));
        let timeout = tool.timeout.map(|limit| limit.to_string()).unwrap_or_default();
        for (name, value) in [
            ("timeout", timeout),
            ("retries", nonzero(i64::from(tool.retries))),
            ("before", tool.before.join("+")),
            ("after", tool.after.join("+")),
            ("order", nonzero(i64::from(tool.order))),
        ] {
            if !value.is_empty() {
                said += &format!(", {name} {value}");
            }
        }
        guards.setting("lifecycle tool", said);
    }
    for hook in &file.message_hooks {
        let agent = hook.agent.as_deref().unwrap_or("all");
        guards.setting("message hook", format!("{} of {agent} {}", hook.kind, hook.function.name));
    }
    for tool in file.tools.iter().filter(|tool| matches!(tool.tool_type, ToolType::Ui(_))) {
        guards.setting("a person is asked by the tool", &tool.tool.function.name);
    }
    guards.setting("max_turns", orchestrator.max_turns);
    guards.setting("human_in_the_loop", orchestrator.human_in_the_loop);
    guards.setting("error_strategy", format!("{:?}", orchestrator.error_strategy));
    for agent in &file.agents {
        if let Some(most) = agent.max_consecutive_auto_reply {
            guards.setting(&format!("max_consecutive_auto_reply of {}", agent.name), most);
        }
    }
    guards
}

/// Returns what a lifecycle tool runs, with all of its options.
fn runs(tool: &LifecycleTool) -> String {
    match used_hook(tool, Path::new("")) {
        Some(hook) => hook.described(),
        None => tool.runs(),
    }
}

/// The hook that a lifecycle tool of a file uses. Its paths start from the project, as they do when it is made.
fn used_hook<'a>(tool: &'a LifecycleTool, root: &'a Path) -> Option<UsedHook<'a>> {
    let (Run::Use { name, with, places }, Some((source, span))) = (&tool.run, &tool.place) else {
        return None;
    };
    let span = places.whole().map_or(*span, |options| span.to(options));
    Some(UsedHook::new(name, with, places, (source, span), root))
}

fn nonzero(number: i64) -> String {
    if number == 0 { String::new() } else { number.to_string() }
}

/// What the value of a variable goes into: whoever sees it sends it to its model.
fn read_by(file: &WorkflowFile, variable: &str) -> String {
    let sees =
        file.variables.exposures.iter().filter(|it| it.variables.iter().any(|n| n == variable));
    let agents: Vec<&str> = sees.map(|it| it.agent.as_str()).collect();
    match &*agents {
        [] => format!("the context variable `{variable}`"),
        agents => format!("the context variable `{variable}`, read by {}", agents.join(", ")),
    }
}

/// When a lifecycle tool runs, and what its failure means: one that is switched off is another use.
fn described(tool: &LifecycleTool) -> String {
    let mut text = tool.trigger.to_string();
    if let Some(agent) = &tool.agent {
        text += &format!(" of {agent}");
    }
    let policy = tool.policy.map(|policy| format!("policy {}", policy.as_str()));
    let when = tool.when.as_ref().map(|when| format!("when {when}"));
    let said: Vec<String> = policy.into_iter().chain(when).collect();
    if !said.is_empty() {
        text += &format!(" ({})", said.join(", "));
    }
    text
}
