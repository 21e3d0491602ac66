//! Running a hook without an agent to write.

mod run;

pub use run::HarnessRun;

use crate::Recorder;
use async_trait::async_trait;
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tenure_core::Error;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::chat::Chat;
use tenure_core::context::ToolCx;
use tenure_core::event::{EventBus, EventKind};
use tenure_core::hook::{IntoRegistration, Registration};
use tenure_core::message::ToolCall;
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_core::phase::Phase;
use tenure_core::tool::{Tool, ToolError, ToolOutput, ToolSpec};
use tenure_models::Scripted;

/// Runs one hook, or several, at any of the eleven points of an agent's life.
///
/// Each method that runs something builds a small agent around the hooks, starts it, has it do what
/// the point needs and shuts it down; all of it in the real drive loop. So every run also passes
/// `on_start` and `on_shutdown`. What it was like is in the [`HarnessRun`].
///
/// The model answers with the responses it was given, in order, and with `done` from then on.
///
/// ```
/// use tenure_core::hook::{self, Flow};
/// use tenure_testkit::HookHarness;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let polite = hook::before_agent(|_cx, input| {
///     input.content.push(", please");
///     Box::pin(async { Ok(Flow::Continue) })
/// });
/// let run = HookHarness::new(polite).before_agent("a coffee").await;
/// assert_eq!(run.input(), Some("a coffee, please"));
/// assert_eq!(run.output(), "done");
/// # });
/// ```
#[derive(Clone)]
pub struct HookHarness {
    hooks: Vec<Registration>,
    responses: Vec<ModelResponse>,
    tools: Vec<(String, ToolOutput)>,
    configure: Vec<Arc<Configure>>,
}

type Configure = dyn Fn(AgentBuilder) -> AgentBuilder + Send + Sync;

impl HookHarness {
    /// A harness for this hook, or a [`Registration`] of one.
    pub fn new(hook: impl IntoRegistration) -> Self {
        Self {
            hooks: vec![hook.into_registration()],
            responses: Vec::new(),
            tools: Vec::new(),
            configure: Vec::new(),
        }
    }

    /// Adds another hook, after those that are there.
    #[must_use]
    pub fn and(mut self, hook: impl IntoRegistration) -> Self {
        self.hooks.push(hook.into_registration());
        self
    }

    /// Adds what the model answers next.
    #[must_use]
    pub fn model_response(mut self, response: ModelResponse) -> Self {
        self.responses.push(response);
        self
    }

    /// Adds a tool that always answers `result`.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>, result: impl Into<ToolOutput>) -> Self {
        self.tools.push((name.into(), result.into()));
        self
    }

    /// Changes the agent that is built, in whatever way its builder can.
    #[must_use]
    pub fn configure(
        mut self,
        configure: impl Fn(AgentBuilder) -> AgentBuilder + Send + Sync + 'static,
    ) -> Self {
        self.configure.push(Arc::new(configure));
        self
    }

    /// Starts the agent and shuts it down.
    pub async fn on_start(&self) -> HarnessRun {
        self.live(Vec::new(), async |_, _| {}).await
    }

    /// Starts the agent and shuts it down, as [`HookHarness::on_start`] does.
    pub async fn on_shutdown(&self) -> HarnessRun {
        self.on_start().await
    }

    /// Runs a turn with this input.
    pub async fn before_agent(&self, input: &str) -> HarnessRun {
        self.turn(Vec::new(), input).await
    }

    /// Runs a turn with this input, as [`HookHarness::before_agent`] does.
    pub async fn after_agent(&self, input: &str) -> HarnessRun {
        self.before_agent(input).await
    }

    /// Runs a turn with this input, as [`HookHarness::before_agent`] does: the model is asked at
    /// least once.
    pub async fn before_model(&self, input: &str) -> HarnessRun {
        self.before_agent(input).await
    }

    /// Runs a turn with this input, as [`HookHarness::before_agent`] does: the model is asked at
    /// least once.
    pub async fn wrap_model_call(&self, input: &str) -> HarnessRun {
        self.before_agent(input).await
    }

    /// Runs a turn in which the model first answers with `response`.
    pub async fn after_model(&self, response: ModelResponse) -> HarnessRun {
        self.turn(vec![response], "hello").await
    }

    /// Runs a turn in which the model first calls this tool.
    ///
    /// # Panics
    ///
    /// If the tool was not added with [`HookHarness::tool`]: the hook would never see the call, and
    /// a test of a guard would pass without it.
    pub async fn wrap_tool_call(&self, tool: &str, arguments: Value) -> HarnessRun {
        let known: Vec<_> = self.tools.iter().map(|(name, _)| name.as_str()).collect();
        assert!(
            known.contains(&tool) || !self.configure.is_empty(),
            "there is no tool `{tool}` in this harness; add it with `.tool(..)`; there are: {known:?}"
        );
        let call = ToolCall::new("call_0", tool, arguments.to_string());
        self.turn(vec![ModelResponse::calls([call])], "hello").await
    }

    /// Runs a chat in which the agent takes one turn with this input.
    pub async fn chat(&self, input: &str) -> HarnessRun {
        self.live(Vec::new(), async |agent, run| {
            let chat = Chat::new("harness", [agent.clone()]);
            let result =
                chat.run(async |chat| agent.request(input).in_chat(chat).run().await).await;
            let failed = || result.end.error.clone().filter(|error| error.report().is_some());
            run.turn = result.value.map(Ok).or_else(|| failed().map(Err));
            run.failures.extend(chat.failures());
            run.chat = Some(result.end);
        })
        .await
    }

    /// Leads the agent through a life with a turn, with a tool call for each tool that was added,
    /// and with a pause.
    ///
    /// # Panics
    ///
    /// If the agent did not go from `from` to `to` in it.
    pub async fn transition(&self, from: Phase, to: Phase) -> HarnessRun {
        let calls: Vec<_> = self
            .tools
            .iter()
            .enumerate()
            .map(|(at, (tool, _))| ToolCall::new(format!("call_{at}"), tool.as_str(), "{}"))
            .collect();
        let first = match calls.is_empty() {
            true => Vec::new(),
            false => vec![ModelResponse::calls(calls)],
        };
        let run = self
            .live(first, async |agent, run| {
                run.turn = Some(agent.run("hello").await);
                if agent.pause().await.is_ok() {
                    // It is paused, so it can only be that somebody shut it down meanwhile.
                    let _ = agent.resume().await;
                }
            })
            .await;
        let wanted = |kind: &EventKind| matches!(kind, EventKind::PhaseEntered { from: a, to: b, .. } if (*a, *b) == (from, to));
        assert!(
            run.recorder().events().iter().any(|event| wanted(&event.kind)),
            "this life has no transition from {from} to {to}; it had: {:?}",
            run.recorder().names()
        );
        run
    }

    async fn turn(&self, first: Vec<ModelResponse>, input: &str) -> HarnessRun {
        self.live(first, async |agent, run| {
            run.turn = Some(agent.run(input).await);
        })
        .await
    }

    /// A whole life around `body`, which the agent only gets to if it started.
    async fn live(
        &self,
        first: Vec<ModelResponse>,
        body: impl AsyncFnOnce(&Agent, &mut HarnessRun),
    ) -> HarnessRun {
        let bus = EventBus::new();
        let mut run = HarnessRun::new(Recorder::new(&bus));
        let seen = Arc::new(Seen::default());
        let agent = match self.agent(&bus, &seen, first) {
            Ok(agent) => agent,
            Err(error) => {
                run.started = Err(error);
                return run;
            }
        };
        run.started = agent.startup().await;
        if run.started.is_ok() {
            body(&agent, &mut run).await;
        }
        agent.shutdown().await;
        run.exit = agent.exit_reason();
        run.failures.extend(agent.failures());
        run.requests = take(&seen.requests);
        run.tool_calls = take(&seen.calls);
        run
    }

    fn agent(
        &self,
        bus: &EventBus,
        seen: &Arc<Seen>,
        first: Vec<ModelResponse>,
    ) -> Result<Agent, Error> {
        let responses: Vec<_> = first.into_iter().chain(self.responses.iter().cloned()).collect();
        let asked = seen.clone();
        let model = Scripted::from_fn(move |request, call| {
            asked.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
            let done = || ModelResponse::text("done");
            Ok(responses.get(call).cloned().unwrap_or_else(done))
        });
        let mut builder = Agent::builder("harness").model(model).events(bus);
        for (name, result) in &self.tools {
            builder = builder.tool(FixedTool {
                name: name.clone(),
                result: result.clone(),
                seen: seen.clone(),
            });
        }
        for configure in &self.configure {
            builder = configure(builder);
        }
        for hook in &self.hooks {
            builder = builder.with_lifecycle(hook.clone());
        }
        builder.build()
    }
}

impl fmt::Debug for HookHarness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookHarness")
            .field("hooks", &self.hooks)
            .field("responses", &self.responses)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

/// What reached the model and the tools.
#[derive(Debug, Default)]
struct Seen {
    requests: Mutex<Vec<ModelRequest>>,
    calls: Mutex<Vec<(String, Value)>>,
}

fn take<T: Default>(kept: &Mutex<T>) -> T {
    std::mem::take(&mut kept.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A tool that always answers the same.
struct FixedTool {
    name: String,
    result: ToolOutput,
    seen: Arc<Seen>,
}

#[async_trait]
impl Tool for FixedTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.name.as_str(), "Always answers the same")
    }

    async fn call(&self, _cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        let call = (self.name.clone(), arguments.clone());
        self.seen.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        Ok(self.result.clone())
    }
}
