//! The fields of `type: agent`.

use super::{mcp, model, tools};
use crate::card::{
    AgentCard, CardType, ChildSettings, HistoryMerge, HistorySource, InputSchema, Reader, Skills,
    found, present,
};
use crate::diagnostic::Code;
use crate::hook::SpecScope;
use crate::project::{ConfineError, Project};
use crate::python::refusal;
use crate::source::{Node, Value};
use std::path::{Path, PathBuf};

const SOURCES: &[(&str, HistorySource)] = &[
    ("none", HistorySource::None),
    ("messages", HistorySource::Messages),
    ("child", HistorySource::Child),
    ("orchestrator", HistorySource::Orchestrator),
];
const MERGES: &[(&str, HistoryMerge)] = &[
    ("none", HistoryMerge::None),
    ("child", HistoryMerge::Child),
    ("orchestrator", HistoryMerge::Orchestrator),
];

pub(super) fn read(
    tree: &Node,
    scope: &mut SpecScope<'_, '_>,
    smart: bool,
    tool_only: bool,
) -> AgentCard {
    let function_tools = tools::read(tree, scope);
    let commands = tools::commands(tree, scope);
    let project = scope.origin.project;
    let reader = &mut *scope.reader;
    let harness_tools = reader.truth(tree, "harness_tools").unwrap_or(smart);
    let mut subagents = reader.truth(tree, "subagents");
    if let Some(node) = tree.field("subagents").filter(|node| node.value == Value::Null) {
        reader.wrong_kind("subagents", "true or false", node);
    }
    if smart && subagents.is_none() {
        subagents = Some(true);
    }
    if let Some((key, _)) = tree.entry("harness_tools")
        && harness_tools
        && tool_only
    {
        reader.problem_help(
            Code::Contradiction,
            key.span,
            "`harness_tools` lets the agent steer the program, and `tool_only` hides it from people",
            "keep one of the two",
        );
    }
    if let Some((key, _)) = present(tree, "variables").and_then(|_| tree.entry("variables")) {
        reader.problem_help(
            Code::MeaninglessField,
            key.span,
            "`variables` means nothing",
            "remove it; `${VAR}` is taken from the environment",
        );
    }
    let mut servers = mcp::read(tree, reader);
    servers.connect = mcp::connect(tree, reader, project);
    AgentCard {
        agents: reader.agents(tree, "agents"),
        children: children(tree, reader),
        model: model::read(tree, reader, CardType::Agent),
        mcp: servers,
        skills: skills(tree, reader),
        shell: reader.truth(tree, "shell").unwrap_or(false),
        cwd: cwd(tree, reader, project),
        trim_tool_history: reader.truth(tree, "trim_tool_history").unwrap_or(false),
        harness_tools,
        subagents,
        subagent_model: reader.words(tree, "subagent_model").map(|it| it.trim().to_owned()),
        function_tools,
        commands,
        tool_input_schema: InputSchema::read(tree, reader),
        smart,
    }
}

fn children(tree: &Node, reader: &mut Reader<'_>) -> ChildSettings {
    let default = ChildSettings::default();
    let count = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
    ChildSettings {
        history_source: reader.one_of(tree, "history_source", SOURCES).unwrap_or_default(),
        history_merge_target: reader
            .one_of(tree, "history_merge_target", MERGES)
            .unwrap_or_default(),
        max_parallel: reader.count(tree, "max_parallel").map(count),
        child_timeout: reader.seconds(tree, "child_timeout_sec"),
        max_display_instances: reader
            .count(tree, "max_display_instances")
            .map_or(default.max_display_instances, count),
    }
}

fn skills(tree: &Node, reader: &mut Reader<'_>) -> Skills {
    let Some(node) = present(tree, "skills") else { return Skills::Default };
    match &node.value {
        Value::Text(_) => match reader.words_of("skills", node) {
            Some(text) => Skills::Named(vec![text.trim().to_owned()]),
            None => Skills::Default,
        },
        Value::List(items) if items.is_empty() => Skills::None,
        Value::List(_) => {
            let texts = reader.texts_of("skills", node).unwrap_or_default();
            Skills::Named(texts.into_iter().map(|(text, _)| text).collect())
        }
        _ => {
            let message =
                format!("`skills` must be text or a list of texts, but is {}", found(node));
            let help = "name folders of skills, or write `skills: []` for none";
            reader.problem_help(Code::WrongKind, node.span, message, help);
            Skills::Default
        }
    }
}

fn cwd(tree: &Node, reader: &mut Reader<'_>, project: &Project) -> Option<PathBuf> {
    let node = present(tree, "cwd")?;
    let text = reader.words_of("cwd", node)?;
    let text = text.trim();
    match project.confine(&project.root, Path::new(text)) {
        Ok(path) if path.is_dir() => Some(path),
        Ok(_) => {
            reader.problem_help(
                Code::BadFolder,
                node.span,
                format!("`cwd` is `{text}`, which is a file"),
                "name a folder",
            );
            None
        }
        Err(ConfineError::Missing) => {
            // A folder that is not there may be made by the time that it is needed.
            let later = project.confine_new(&project.root, Path::new(text)).ok();
            let code = if later.is_some() { Code::MissingFolder } else { Code::BadFolder };
            let message = format!("`cwd` is `{text}`, which is not there");
            let help = "it starts from the project's folder; create it before the shell is used, \
                        or correct it";
            reader.problem_help(code, node.span, message, help);
            later
        }
        Err(error) => {
            let mut problem = refusal(text, error, project);
            if problem.code == Code::OutsideProject {
                problem.help = "name a folder beneath the project's folder".into();
            }
            reader.problem_help(problem.code, node.span, problem.message, problem.help);
            None
        }
    }
}
