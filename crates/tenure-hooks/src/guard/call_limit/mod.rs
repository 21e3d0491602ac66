//! How many model and tool calls there may be.

mod count;
mod options;

pub(super) use options::CallLimitOptions;

use super::glob::Glob;
use count::Counts;
use std::sync::Arc;
use tenure_core::context::{ToolCx, TurnCx};
use tenure_core::hook::{
    AgentLifecycle, Flow, HookError, IntoRegistration, Policy, Registration, hook,
};
use tenure_core::model::ModelRequest;
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_core::{Error, NextTool};
use tenure_macros::lifecycle;

/// How many model and tool calls there may be, in a run and in a thread.
///
/// A *run* is one turn: one request to the agent and everything it does about it. A *thread* is the
/// conversation of one instance: all turns of it, or, in a chat, those that belong to the chat (a
/// turn in another chat begins a thread of its own). A clone and a fork have a conversation of their
/// own, and so a thread. What was counted is state of the instance (`_call_limit`, with
/// `:` and its name behind for a hook of another name), so it is recorded with the steps of a run and there again when the run goes on.
///
/// A model call counts when the agent asks the model, however often a retry tries; a tool call when
/// the model asks for it, in the order in which it asks. So how many are counted does not depend on
/// which of several calls is quicker.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::guard::{AtLimit, CallLimit};
/// # use tenure_models::Passthrough;
///
/// let limit = CallLimit::new()
///     .models_per_run(10)
///     .tools_per_run("search", 3)
///     .tools_per_thread("*", 50)
///     .at_limit(AtLimit::End);
/// let agent =
///     Agent::builder("modest").model(Passthrough::new()).with_lifecycle(limit).build()?;
/// # Ok::<_, tenure_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct CallLimit {
    models: Most,
    tools: Vec<(Glob, Most)>,
    at_limit: AtLimit,
    text: Option<String>,
    broken: Option<String>,
}

/// What happens when there have been as many calls as there may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtLimit {
    /// The turn ends as denied.
    Error,
    /// The turn ends well, with a text that says so.
    #[default]
    End,
    /// A tool call beyond the limit is denied, and the model goes on; a model call beyond it ends
    /// the turn as [`AtLimit::End`] does.
    Continue,
}

/// The most calls of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Most {
    run: Option<u64>,
    thread: Option<u64>,
}

impl CallLimit {
    /// No limits yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The most model calls in a run.
    pub fn models_per_run(mut self, calls: u64) -> Self {
        self.models.run = Some(calls);
        self
    }

    /// The most model calls in a thread.
    pub fn models_per_thread(mut self, calls: u64) -> Self {
        self.models.thread = Some(calls);
        self
    }

    /// The most calls in a run of this tool; or of those that the pattern names, all together.
    pub fn tools_per_run(mut self, tool: &str, calls: u64) -> Self {
        if let Some(most) = self.most(tool) {
            most.run = Some(calls);
        }
        self
    }

    /// The most calls in a thread of this tool; or of those that the pattern names, all together.
    pub fn tools_per_thread(mut self, tool: &str, calls: u64) -> Self {
        if let Some(most) = self.most(tool) {
            most.thread = Some(calls);
        }
        self
    }

    /// What happens at a limit.
    pub fn at_limit(mut self, at_limit: AtLimit) -> Self {
        self.at_limit = at_limit;
        self
    }

    /// What the turn ends with, in place of a text that says which limit was met.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    fn most(&mut self, tool: &str) -> Option<&mut Most> {
        if let Some(at) = self.tools.iter().position(|(glob, _)| glob.text() == tool) {
            return Some(&mut self.tools[at].1);
        }
        match Glob::of_names(tool) {
            Ok(glob) => self.tools.push((glob, Most::default())),
            Err(why) => {
                self.broken = Some(why);
                return None;
            }
        }
        self.tools.last_mut().map(|(_, most)| most)
    }
}

impl IntoRegistration for CallLimit {
    fn into_registration(self) -> Registration {
        let before =
            ["load_context", "prompt", "todo", "dedupe", "clear_tool_results", "select_tools"];
        let within = ["window", "cheaper_model", "tool_retry", "result_schema", "timeout"];
        let registration = hook(Limited(Arc::new(self)))
            .named("call_limit")
            .kind("call_limit")
            .policy(Policy::Deny)
            .inside("approval")
            .inside("tool_errors");
        before.into_iter().chain(within).fold(registration, Registration::outside)
    }
}

struct Limited(Arc<CallLimit>);

impl Limited {
    /// The turn is over, as was chosen.
    fn over(&self, why: String) -> Result<Flow, HookError> {
        match self.0.at_limit {
            AtLimit::Error => Err(Error::denied(why).into()),
            AtLimit::End | AtLimit::Continue => {
                Ok(Flow::Finish(self.0.text.clone().unwrap_or(why).into()))
            }
        }
    }
}

#[lifecycle]
impl AgentLifecycle for Limited {
    async fn before_model(
        &self,
        cx: TurnCx<'_>,
        _request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        if let Some(why) = &self.0.broken {
            return Err(HookError::new(format!("a limit cannot be read: {why}")));
        }
        let mut counts = Counts::read(&cx)?;
        if cx.step_number() <= 1 {
            counts.begin_run(cx.chat_id());
        }
        let over = counts.over.clone().or_else(|| counts.model_denial(self.0.models));
        if over.is_none() {
            counts.models += 1;
        }
        counts.step = cx.step_number() as u64;
        counts.write(&cx)?;
        match over {
            Some(why) => self.over(why),
            None => Ok(Flow::Continue),
        }
    }

    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        if self.0.tools.is_empty() {
            return Ok(next.call(request).await?);
        }
        let mut counts = Counts::read(&cx)?;
        let denials = counts.judge(cx.batch().iter().map(|call| &call.name), &self.0.tools);
        let denial = denials.into_iter().nth(cx.index()).flatten();
        if let Some(why) = &denial
            && self.0.at_limit != AtLimit::Continue
        {
            counts.over = Some(why.clone());
        }
        counts.write(&cx)?;
        match denial {
            Some(why) => Ok(ToolOutput::denied(why)),
            None => Ok(next.call(request).await?),
        }
    }
}
