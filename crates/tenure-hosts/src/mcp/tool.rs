//! Tools of a server, as tools of an agent.

use super::filter::passes;
use super::server::Server;
use super::status::ToolFacts;
use super::{call, content};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use tenure_core::context::ToolCx;
use tenure_core::tool::{Effect, Tool, ToolError, ToolOutput, ToolSpec};

/// A tool of a server.
pub(super) struct McpTool {
    spec: ToolSpec,
    /// The name that the server knows it by.
    name: Arc<str>,
    server: Arc<Server>,
}

impl McpTool {
    pub(super) fn new(name: String, facts: &ToolFacts, server: Arc<Server>) -> Self {
        let spec = ToolSpec::new(name, facts.description.clone())
            .parameters(facts.parameters.clone())
            .effect(facts.effect);
        Self { spec: limited(spec, &server), name: (&*facts.name).into(), server }
    }
}

/// A limit of the tool itself stands still while a person is asked.
fn limited(spec: ToolSpec, server: &Server) -> ToolSpec {
    match server.config.call_limit {
        Some(limit) => spec.limit(limit),
        None => spec,
    }
}

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        call::call(&self.server, &self.name, &cx, arguments).await.map_err(ToolError::new)
    }
}

/// Reads a resource that the agent may read.
pub(super) struct ReadResource {
    spec: ToolSpec,
    patterns: Vec<String>,
    server: Arc<Server>,
}

impl ReadResource {
    pub(super) fn new(name: String, patterns: &[String], server: Arc<Server>) -> Self {
        let description = format!(
            "Reads a resource of {}, given its URI. These may be read: {}",
            server.name(),
            patterns.join(", ")
        );
        let spec = ToolSpec::new(name, description)
            .parameters(json!({
                "type": "object",
                "properties": { "uri": { "type": "string", "description": "The URI." } },
                "required": ["uri"],
            }))
            .effect(Effect::Idempotent);
        Self { spec: limited(spec, &server), patterns: patterns.to_vec(), server }
    }
}

#[async_trait]
impl Tool for ReadResource {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, _cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        let Some(uri) = arguments["uri"].as_str() else {
            return Ok(ToolOutput::error("`uri` has to be a string"));
        };
        if !passes(Some(&self.patterns), uri) {
            let may = self.patterns.join(", ");
            let no = format!("the resource `{uri}` may not be read; these may: {may}");
            return Ok(ToolOutput::denied(no));
        }
        let read = self.server.read_resource(uri).await.map_err(ToolError::new)?;
        Ok(content::resource(read).into())
    }
}
