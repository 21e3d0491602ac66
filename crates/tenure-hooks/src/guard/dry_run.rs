//! Tools that are not called.

use super::glob::Tools;
use crate::ready::{About, Makings, Options, Refusal};
use schemars::JsonSchema;
use serde::Deserialize;
use tenure_core::NextTool;
use tenure_core::context::ToolCx;
use tenure_core::hook::{AgentLifecycle, HookError, IntoRegistration, Policy, Registration, hook};
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_macros::lifecycle;

/// Says what a tool would have been called with, and does not call it.
///
/// The model gets `[DRY RUN] Tool 'x' would execute here` and the arguments as the result. It stands
/// next to the tool and within the permissions: what they deny is denied here too.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::guard::DryRun;
/// # use tenure_models::Passthrough;
///
/// let agent = Agent::builder("rehearsal")
///     .model(Passthrough::new())
///     .with_lifecycle(DryRun::new().except("read_*"))
///     .build()?;
/// # Ok::<_, tenure_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct DryRun {
    tools: Tools,
}

impl DryRun {
    /// No tool is called.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only this tool is not called, or those that the pattern names; more with each call of this.
    pub fn tool(mut self, name: &str) -> Self {
        self.tools.only(name);
        self
    }

    /// This tool is really called, or those that the pattern names: because they only read, say.
    pub fn except(mut self, name: &str) -> Self {
        self.tools.except(name);
        self
    }
}

impl IntoRegistration for DryRun {
    fn into_registration(self) -> Registration {
        hook(Rehearsed(self.tools))
            .named("dry_run")
            .kind("dry_run")
            .policy(Policy::Deny)
            .innermost()
            .inside("permissions")
            .inside("pii")
    }
}

struct Rehearsed(Tools);

#[lifecycle]
impl AgentLifecycle for Rehearsed {
    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        if !self.0.concern(request.name()) {
            cx.skipped();
            return Ok(next.call(request).await?);
        }
        let (name, arguments) = (request.name(), &request.arguments);
        Ok(ToolOutput::text(format!("[DRY RUN] Tool '{name}' would execute here with {arguments}")))
    }
}

/// What `dry_run` takes by `with`.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(default, deny_unknown_fields)]
pub(super) struct DryRunOptions {
    /// The tools that are not called, by name or pattern; without any, all of them.
    tools: Vec<String>,
    /// The tools that are really called all the same.
    except: Vec<String>,
}

impl Options for DryRunOptions {
    const ABOUT: About = About {
        name: "dry_run",
        summary: "Says what a tool would have been called with, and does not call it.",
        covers: &["UC-5.4"],
        peers: &[],
        example: r#"{ "except": ["read_*"] }"#,
    };

    fn make(self, _: &dyn Makings) -> Result<Registration, Refusal> {
        Ok(DryRun { tools: tools(&self.tools, &self.except)? }.into_registration())
    }
}

/// The tools that two lists of patterns name.
pub(super) fn tools(only: &[String], except: &[String]) -> Result<Tools, Refusal> {
    let mut tools = Tools::default();
    let lists = [("tools", only), ("except", except)];
    for (list, name, at) in lists
        .into_iter()
        .flat_map(|(list, names)| names.iter().enumerate().map(move |(at, name)| (list, name, at)))
    {
        match list {
            "tools" => tools.only(name),
            _ => tools.except(name),
        }
        if let Some(why) = tools.broken() {
            return Err(Refusal::new(format!("{list}[{at}]"), why));
        }
    }
    Ok(tools)
}
