//! Tools that a card switches on.

use super::agent::Workshop;
use super::files::{Ground, READ, ReadTextFile, WRITE, WriteTextFile};
use super::skills::Skill;
use crate::card::AgentCard;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use tenure_core::agent::AgentBuilder;
use tenure_core::ask::{Answer, Ask};
use tenure_core::context::ToolCx;
use tenure_core::tool::{Effect, Tool, ToolError, ToolOutput, ToolSpec};
use tenure_hosts::ShellTool;

impl Workshop<'_> {
    /// Adds what `shell` gives: a shell, and tools for the files that it works on. A function of the
    /// card's that has the name of one of these counts in its place.
    pub(super) fn with_shell(&self, mut builder: AgentBuilder, agent: &AgentCard) -> AgentBuilder {
        let root = self.project.root.clone();
        let dir = agent.cwd.clone().unwrap_or_else(|| root.clone());
        let has = |name: &str| agent.function_tools.iter().any(|it| &*it.spec.name == name);
        let mut shell = ShellTool::new(dir.clone(), self.hosts.environment.clone());
        if let Some(limit) = self.project.config.tool_limit {
            shell = shell.limit(limit.duration());
        }
        builder = builder.tool(shell);
        let rules = self.hosts.environment.sandbox().cloned().map(Arc::new);
        let ground = Ground { root, dir, rules };
        if !has(READ) {
            builder = builder.tool(ReadTextFile(ground.clone()));
        }
        if !has(WRITE) {
            builder = builder.tool(WriteTextFile(ground));
        }
        builder
    }
}

/// `human_input`: the model asks the person.
pub(super) struct HumanInput;

#[async_trait]
impl Tool for HumanInput {
    fn spec(&self) -> ToolSpec {
        let description = "Ask the person who gave you the task, and wait for the answer";
        ToolSpec::new("__human_input", description).effect(Effect::Idempotent).parameters(json!({
            "type": "object",
            "properties": {
                "prompt": { "type": "string", "description": "The question" },
            },
            "required": ["prompt"],
            "additionalProperties": false,
        }))
    }

    async fn call(&self, cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        let Some(prompt) = arguments["prompt"].as_str() else {
            return Err(ToolError::new("argument `prompt` must be the question"));
        };
        Ok(match cx.ask(Ask::input(prompt)).await? {
            Answer::Respond(text) => ToolOutput::text(text),
            Answer::Edit(Value::String(text)) => ToolOutput::text(text),
            Answer::Edit(value) => ToolOutput::text(value.to_string()),
            Answer::Approve => ToolOutput::text("yes"),
            Answer::Reject(reason) => ToolOutput::denied(reason),
        })
    }
}

/// `read_skill`: the model reads a skill of its list.
pub(super) struct ReadSkill {
    pub(super) skills: Arc<[Skill]>,
}

#[async_trait]
impl Tool for ReadSkill {
    fn spec(&self) -> ToolSpec {
        let names: Vec<_> = self.skills.iter().map(|skill| &*skill.name).collect();
        let description = "Read the instructions of a skill before you use it";
        ToolSpec::new("read_skill", description).effect(Effect::Idempotent).parameters(json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "enum": names, "description": "The skill's name" },
            },
            "required": ["name"],
            "additionalProperties": false,
        }))
    }

    async fn call(&self, _cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        let name = arguments["name"].as_str().unwrap_or_default();
        match self.skills.iter().find(|skill| skill.name == name) {
            Some(skill) => Ok(ToolOutput::text(&*skill.text)),
            None => {
                let names: Vec<_> = self.skills.iter().map(|skill| &*skill.name).collect();
                let names = names.join(", ");
                Err(ToolError::new(format!("there is no skill `{name}`; there are: {names}")))
            }
        }
    }
}
