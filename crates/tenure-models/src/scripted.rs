//! A model that follows a script.

use crate::words;
use async_trait::async_trait;
use serde_json::Value;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use tenure_core::context::ModelCx;
use tenure_core::message::ToolCall;
use tenure_core::model::{
    Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse, StopReason, Usage,
};

/// What a [`Scripted`] model does when it is called.
///
/// A text, a [`ModelResponse`], a [`ModelError`] and a `Result` of these two convert into it.
#[derive(Debug)]
pub enum Reply {
    /// Answers.
    Respond(ModelResponse),
    /// Fails.
    Fail(ModelError),
    /// Panics with this message.
    Panic(String),
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Self::Respond(ModelResponse::text(text))
    }
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Self::Respond(ModelResponse::text(text))
    }
}

impl From<ModelResponse> for Reply {
    fn from(response: ModelResponse) -> Self {
        Self::Respond(response)
    }
}

impl From<ModelError> for Reply {
    fn from(error: ModelError) -> Self {
        Self::Fail(error)
    }
}

impl From<Result<ModelResponse, ModelError>> for Reply {
    fn from(result: Result<ModelResponse, ModelError>) -> Self {
        match result {
            Ok(response) => Self::Respond(response),
            Err(error) => Self::Fail(error),
        }
    }
}

/// Answers as a script says: each call takes the next reply.
///
/// A call beyond the script is an error of the kind [`Other`](ModelErrorKind::Other) that says how
/// long the script was. A response without usage gets one in words; one with usage keeps it. The
/// text is streamed word by word if somebody reads along.
///
/// ```
/// use serde_json::json;
/// use tenure_core::agent::Agent;
/// use tenure_core::tool::{FnTool, ToolSpec};
/// use tenure_models::Scripted;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let model = Scripted::empty().call("clock", json!({})).text("It is noon.");
/// let clock = FnTool::new(ToolSpec::new("clock", "The time"), |_| Ok("12:00".into()));
/// let agent = Agent::builder("timekeeper").model(model).tool(clock).build()?;
/// agent.startup().await?;
/// let report = agent.run("What time is it?").await?;
/// assert_eq!((report.output(), report.steps), ("It is noon.", 2));
/// agent.shutdown().await;
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
pub struct Scripted {
    script: Script,
    made: AtomicUsize,
    length: usize,
    calls: usize,
}

type Body = dyn Fn(&ModelRequest, usize) -> Result<ModelResponse, ModelError> + Send + Sync;

enum Script {
    List(Mutex<VecDeque<Reply>>),
    Closure(Box<Body>),
}

impl Scripted {
    /// A script of these replies, to be added to. Texts, responses and errors convert.
    ///
    /// ```
    /// use tenure_models::Scripted;
    ///
    /// let model = Scripted::new(["first", "second"]).text("third");
    /// assert_eq!(model.remaining(), Some(3));
    /// ```
    pub fn new<R: Into<Reply>>(replies: impl IntoIterator<Item = R>) -> Self {
        replies.into_iter().fold(Self::empty(), Self::reply)
    }

    /// A script without replies, to be added to.
    pub fn empty() -> Self {
        Self::of(Script::List(Mutex::default()))
    }

    /// A model that asks `body` what to do. The number counts the calls from 0.
    ///
    /// ```
    /// use tenure_core::model::ModelResponse;
    /// use tenure_models::Scripted;
    ///
    /// let counting = Scripted::from_fn(|_, call| Ok(ModelResponse::text(call.to_string())));
    /// assert_eq!(counting.remaining(), None);
    /// ```
    pub fn from_fn(
        body: impl Fn(&ModelRequest, usize) -> Result<ModelResponse, ModelError> + Send + Sync + 'static,
    ) -> Self {
        Self::of(Script::Closure(Box::new(body)))
    }

    fn of(script: Script) -> Self {
        Self { script, made: AtomicUsize::new(0), length: 0, calls: 0 }
    }

    /// Adds a reply. A model that was made from a closure follows the closure only.
    #[must_use]
    pub fn reply(mut self, reply: impl Into<Reply>) -> Self {
        if let Script::List(replies) = &mut self.script {
            let replies = replies.get_mut().unwrap_or_else(PoisonError::into_inner);
            replies.push_back(reply.into());
            self.length += 1;
        }
        self
    }

    /// Adds an answer of text alone.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.reply(text.into())
    }

    /// Adds a call of one tool. Ids are `call_0`, `call_1` and so on.
    #[must_use]
    pub fn call(self, tool: &str, arguments: Value) -> Self {
        self.calls([(tool, arguments)])
    }

    /// Adds a call of several tools at once.
    #[must_use]
    pub fn calls<'a>(mut self, calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let calls: Vec<_> = calls
            .into_iter()
            .map(|(tool, arguments)| {
                let id = format!("call_{}", self.calls);
                self.calls += 1;
                ToolCall::new(id, tool, arguments.to_string())
            })
            .collect();
        self.reply(ModelResponse::calls(calls))
    }

    /// Adds a failure.
    #[must_use]
    pub fn error(self, kind: ModelErrorKind, message: impl Into<String>) -> Self {
        self.reply(ModelError::new(kind, message))
    }

    /// Adds a panic.
    #[must_use]
    pub fn panics(self, message: impl Into<String>) -> Self {
        self.reply(Reply::Panic(message.into()))
    }

    /// How many calls were made so far.
    pub fn calls_made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }

    /// How many replies are left; `None` for a closure, which never runs out.
    pub fn remaining(&self) -> Option<usize> {
        match &self.script {
            Script::List(replies) => {
                let replies = replies.lock().unwrap_or_else(PoisonError::into_inner);
                Some(replies.len())
            }
            Script::Closure(_) => None,
        }
    }

    fn next(&self, request: &ModelRequest) -> Reply {
        let call = self.made.fetch_add(1, Ordering::Relaxed);
        match &self.script {
            Script::Closure(body) => body(request, call).into(),
            Script::List(replies) => {
                let mut replies = replies.lock().unwrap_or_else(PoisonError::into_inner);
                replies.pop_front().unwrap_or_else(|| {
                    let message = format!(
                        "the script has {} replies, and this is call {}; add a reply",
                        self.length,
                        call + 1
                    );
                    Reply::Fail(ModelError::new(ModelErrorKind::Other, message))
                })
            }
        }
    }
}

#[async_trait]
impl Model for Scripted {
    async fn call(
        &self,
        request: &ModelRequest,
        cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let mut response = match self.next(request) {
            Reply::Respond(response) => response,
            Reply::Fail(error) => return Err(error),
            Reply::Panic(message) => panic!("{message}"),
        };
        words::say(cx, response.content.text());
        if response.usage == Usage::default() {
            response.usage = words::usage(request, &response);
        }
        if !response.calls.is_empty() {
            response.stop = StopReason::ToolUse;
        }
        Ok(response)
    }

    fn name(&self) -> &str {
        "scripted"
    }
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted")
            .field("calls_made", &self.calls_made())
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
