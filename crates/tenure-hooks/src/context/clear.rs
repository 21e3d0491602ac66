//! Old results of tools that make room.

use super::tokens::{Counter, Encoding};
use crate::ready::{About, Makings, Options, Refusal};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use tenure_core::context::{InstanceCx, TurnCx};
use tenure_core::hook::{AgentLifecycle, Flow, HookError, IntoRegistration, Point, Points};
use tenure_core::hook::{Registration, hook};
use tenure_core::message::Message;
use tenure_core::model::ModelRequest;
use tenure_macros::lifecycle;

const TRIGGER: u64 = 100_000;
const KEEP: usize = 3;
const PLACEHOLDER: &str = "[cleared]";
/// What the arguments of a call become.
const NO_INPUT: &str = "{}";

/// Clears old results of tools once a request is large: the model has used them, and can call again.
///
/// What was called stays in the conversation, with a placeholder for its result, so that it stays
/// valid and the model knows what it did. It is done for the call at hand; the agent's own
/// conversation keeps the results, unless [`persist`](Self::persist) says otherwise.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::context::ClearToolResults;
/// # use tenure_models::Passthrough;
///
/// let clear = ClearToolResults::new().trigger(50_000).keep(5).exclude_tool("read_manual");
/// let agent =
///     Agent::builder("clerk").model(Passthrough::new()).with_lifecycle(clear).build()?;
/// # Ok::<_, tenure_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ClearToolResults {
    trigger: u64,
    keep: usize,
    clear_at_least: u64,
    clear_tool_inputs: bool,
    exclude_tools: BTreeSet<String>,
    placeholder: String,
    persist: bool,
    encoding: Encoding,
    counter: Counter,
}

impl ClearToolResults {
    /// Clears all but the last three results of a request with more than 100,000 tokens.
    pub fn new() -> Self {
        Self {
            trigger: TRIGGER,
            keep: KEEP,
            clear_at_least: 0,
            clear_tool_inputs: false,
            exclude_tools: BTreeSet::new(),
            placeholder: PLACEHOLDER.to_owned(),
            persist: false,
            encoding: Encoding::default(),
            counter: Counter::new(Encoding::default()),
        }
    }

    /// Acts when a request has more tokens than these.
    pub fn trigger(mut self, tokens: u64) -> Self {
        self.trigger = tokens;
        self
    }

    /// Leaves so many of the newest results alone.
    pub fn keep(mut self, results: usize) -> Self {
        self.keep = results;
        self
    }

    /// Stops as soon as so many tokens are won; with 0, all there are.
    pub fn clear_at_least(mut self, tokens: u64) -> Self {
        self.clear_at_least = tokens;
        self
    }

    /// Clears the arguments of the calls, too.
    pub fn clear_tool_inputs(mut self) -> Self {
        self.clear_tool_inputs = true;
        self
    }

    /// Leaves the results of this tool alone.
    pub fn exclude_tool(mut self, tool: impl Into<String>) -> Self {
        self.exclude_tools.insert(tool.into());
        self
    }

    /// What stands in place of a result: `[cleared]`.
    pub fn placeholder(mut self, text: impl Into<String>) -> Self {
        self.placeholder = text.into();
        self
    }

    /// Clears the results in the agent's own conversation, for good.
    pub fn persist(mut self) -> Self {
        self.persist = true;
        self
    }

    /// How tokens are counted.
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        (self.encoding, self.counter) = (encoding, Counter::new(encoding));
        self
    }

    /// Counts the tokens of a text in a way of one's own.
    pub fn count_by(mut self, count: impl Fn(&str) -> u64 + Send + Sync + 'static) -> Self {
        self.encoding = Encoding::Approximate;
        self.counter = Counter::by(Arc::new(count));
        self
    }

    /// Whether the result of a tool is one that can go.
    fn may_clear(&self, message: &Message) -> bool {
        matches!(message, Message::Tool(result)
            if !self.exclude_tools.contains(&*result.name) && result.content != self.placeholder)
    }
}

impl Default for ClearToolResults {
    fn default() -> Self {
        Self::new()
    }
}

impl IntoRegistration for ClearToolResults {
    fn into_registration(self) -> Registration {
        let points = match self.encoding {
            Encoding::Approximate => Points::from(Point::BeforeModel),
            #[cfg(feature = "tokens")]
            _ => Points::from(Point::BeforeModel).with(Point::OnStart),
        };
        hook(Clearing(self))
            .only(points)
            .named("clear_tool_results")
            .kind("clear_tool_results")
            .inside("dedupe")
            .outside("window")
    }
}

struct Clearing(ClearToolResults);

#[lifecycle]
impl AgentLifecycle for Clearing {
    async fn on_start(&self, _cx: InstanceCx<'_>) -> Result<(), HookError> {
        self.0.counter.load().await;
        Ok(())
    }

    async fn before_model(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        let it = &self.0;
        let is_result = |message: &Message| matches!(message, Message::Tool(_));
        let results = request.messages.iter().filter(|message| is_result(message)).count();
        let old = results.saturating_sub(it.keep);
        let old: Vec<usize> = (request.messages.iter().enumerate())
            .filter(|(_, message)| is_result(message))
            .take(old)
            .filter(|(_, message)| it.may_clear(message))
            .map(|(at, _)| at)
            .collect();
        if old.is_empty() {
            return Ok(Flow::Continue);
        }
        let before = it.counter.request(request).await.total();
        if before <= it.trigger {
            return Ok(Flow::Continue);
        }
        let messages = request.messages.edit();
        let mut calls = it.clear_tool_inputs.then(|| Calls::of(messages));
        let (mut won, mut cleared) = (0, 0);
        for at in old {
            won += self.clear(messages, at).await;
            if let Some(call) = calls.as_mut().and_then(|calls| calls.of_result(at)) {
                won += self.clear_input(messages, call).await;
            }
            cleared += 1;
            if it.clear_at_least > 0 && won >= i128::from(it.clear_at_least) {
                break;
            }
        }
        if it.persist {
            request.persist();
        }
        cx.announce("tool_results.cleared", || {
            json!({ "results": cleared, "tokens": { "before": before, "won": won.max(0) as u64 } })
        });
        Ok(Flow::Continue)
    }
}

impl Clearing {
    /// Clears a result. How many tokens that won; a placeholder may be longer than what it replaces.
    async fn clear(&self, messages: &mut [Message], at: usize) -> i128 {
        let before = self.0.counter.message(&messages[at]).await;
        if let Message::Tool(result) = &mut messages[at] {
            result.content = self.0.placeholder.as_str().into();
        }
        i128::from(before) - i128::from(self.0.counter.message(&messages[at]).await)
    }

    async fn clear_input(&self, messages: &mut [Message], (at, nth): (usize, usize)) -> i128 {
        let before = self.0.counter.message(&messages[at]).await;
        if let Message::Assistant { calls, .. } = &mut messages[at]
            && let Some(call) = calls.get_mut(nth)
        {
            NO_INPUT.clone_into(&mut call.arguments);
        }
        i128::from(before) - i128::from(self.0.counter.message(&messages[at]).await)
    }
}

/// Where the call of each result is: the message, and which of its calls.
struct Calls(HashMap<usize, (usize, usize)>);

impl Calls {
    fn of(messages: &[Message]) -> Self {
        let mut all = HashMap::new();
        let mut open: HashMap<&str, (usize, usize)> = HashMap::new();
        for (at, message) in messages.iter().enumerate() {
            match message {
                Message::Tool(result) => {
                    if let Some(call) = open.remove(&*result.call_id) {
                        all.insert(at, call);
                    }
                }
                other => {
                    // An id is one call's only within its own exchange.
                    open = other
                        .calls()
                        .iter()
                        .enumerate()
                        .map(|(nth, call)| (&*call.id, (at, nth)))
                        .collect();
                }
            }
        }
        Self(all)
    }

    fn of_result(&mut self, at: usize) -> Option<(usize, usize)> {
        self.0.remove(&at)
    }
}

/// What `clear_tool_results` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ClearOptions {
    /// It acts when a request has more tokens than these.
    trigger: u64,
    /// So many of the newest results are left alone.
    keep: usize,
    /// It stops as soon as so many tokens are won; with 0, it clears all that it may.
    clear_at_least: u64,
    /// Whether the arguments of the calls are cleared, too.
    clear_tool_inputs: bool,
    /// The tools whose results are left alone.
    exclude_tools: Vec<String>,
    /// What stands in place of a result.
    placeholder: String,
    /// Whether the results are cleared in the agent's own conversation, for good.
    persist: bool,
    /// How tokens are counted. `approximate`, a quarter of the characters, is for models whose tokens
    /// nobody else can count.
    encoding: Encoding,
}

impl Default for ClearOptions {
    fn default() -> Self {
        Self {
            trigger: TRIGGER,
            keep: KEEP,
            clear_at_least: 0,
            clear_tool_inputs: false,
            exclude_tools: Vec::new(),
            placeholder: PLACEHOLDER.to_owned(),
            persist: false,
            encoding: Encoding::default(),
        }
    }
}

impl Options for ClearOptions {
    const ABOUT: About = About {
        name: "clear_tool_results",
        summary: "Clears old results of tools when a request is large.",
        covers: &["UC-2.1", "UC-2.4"],
        peers: &["ContextEditingMiddleware", "ClearToolUsesEdit"],
        example: r#"{ "trigger": 50000, "keep": 5, "encoding": "approximate" }"#,
    };

    fn make(self, _: &dyn Makings) -> Result<Registration, Refusal> {
        if self.exclude_tools.iter().any(|tool| tool.trim().is_empty()) {
            return Err(Refusal::new(
                "exclude_tools",
                "a tool has a name; take the empty one away",
            ));
        }
        let clear = ClearToolResults {
            trigger: self.trigger,
            keep: self.keep,
            clear_at_least: self.clear_at_least,
            clear_tool_inputs: self.clear_tool_inputs,
            exclude_tools: self.exclude_tools.into_iter().collect(),
            placeholder: self.placeholder,
            persist: self.persist,
            encoding: self.encoding,
            counter: Counter::new(self.encoding),
        };
        Ok(clear.into_registration())
    }
}
