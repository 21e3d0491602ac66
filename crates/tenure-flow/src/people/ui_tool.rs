//! A tool that shows something to a person, and goes on with what they answer.

use super::WaitsForPerson;
use crate::variables::{CONTEXT_CHANGED, Change};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::ask::{Answer, Ask, Misfit, check};
use tenure_core::context::ToolCx;
use tenure_core::tool::{Tool, ToolError, ToolOutput, ToolSpec};
use tenure_core::{Error, ErrorKind};

/// The argument that the answer is given to a function in.
pub const UI_RESPONSE: &str = "ui_response";

/// How often a person is asked the same whose answers do not have the form.
const TRIES: usize = 3;

/// Whether a function takes what the person answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TakesResponse {
    /// As its argument `ui_response`.
    #[default]
    Yes,
    /// It does not; what it is given is what the model wrote.
    No,
}

/// A tool whose call asks a person first: the question is what the tool says of itself, with the
/// component that shows it, its mode and the arguments as the form. The answer becomes the argument
/// `ui_response` of the function behind it.
///
/// - An answer that is no JSON is a text; an empty one is given on as it is, an empty text.
/// - One that does not have the form of the [schema](UiTool::schema) is asked for again, three times
///   at most; then the call has failed, which the model gets to read. Whoever answers by
///   [`Agent::answer`](tenure_core::agent::Agent::answer) is told that it does not fit, and the
///   question stays open.
/// - Of two answers the first counts; the second is told so.
/// - Who rejects it denies the call, which the model gets to read.
/// - If nobody is there the turn ends, and the chat is paused.
pub struct UiTool {
    inner: Arc<dyn Tool>,
    component: Option<String>,
    mode: Option<String>,
    schema: Option<Value>,
    takes: TakesResponse,
    expires_after: Option<Duration>,
    on_response: Option<OnResponse>,
}

/// Called with what a person answered, before the function is.
type OnResponse = Arc<dyn Fn(&ToolCx<'_>, &Value) -> Result<Vec<Change>, Error> + Send + Sync>;

impl UiTool {
    /// Asks a person before `inner` is called.
    pub fn new(inner: Arc<dyn Tool>) -> Self {
        Self {
            inner,
            component: None,
            mode: None,
            schema: None,
            takes: TakesResponse::default(),
            expires_after: None,
            on_response: None,
        }
    }

    /// The component that a front end shows it with.
    #[must_use]
    pub fn component(mut self, component: Option<impl Into<String>>) -> Self {
        self.component = component.map(Into::into);
        self
    }

    /// Where a front end shows it: `inline` or `artifact`.
    #[must_use]
    pub fn mode(mut self, mode: Option<impl Into<String>>) -> Self {
        self.mode = mode.map(Into::into);
        self
    }

    /// The JSON Schema of the answer.
    #[must_use]
    pub fn schema(mut self, schema: Option<Value>) -> Self {
        self.schema = schema;
        self
    }

    /// Whether the function takes the answer. It does unless this says otherwise.
    #[must_use]
    pub fn takes_response(mut self, takes: TakesResponse) -> Self {
        self.takes = takes;
        self
    }

    /// How long the question stands. It then counts as rejected.
    #[must_use]
    pub fn expires_after(mut self, after: Duration) -> Self {
        self.expires_after = Some(after);
        self
    }

    /// Called with every answer, before the function is: for variables that wait for it. What it
    /// changed is announced. An error fails the call, which the model gets to read. In a recorded run
    /// every life calls it, and one announces.
    #[must_use]
    pub fn on_response(
        mut self,
        on_response: impl Fn(&ToolCx<'_>, &Value) -> Result<Vec<Change>, Error> + Send + Sync + 'static,
    ) -> Self {
        self.on_response = Some(Arc::new(on_response));
        self
    }

    /// Puts the question until the answer has its form.
    async fn ask(&self, cx: &ToolCx<'_>, arguments: &Value) -> Result<Asked, ToolError> {
        if !cx.can_ask() {
            return Err(ToolError::ends_turn(WaitsForPerson));
        }
        let spec = self.spec();
        let mut prompt = match spec.description.as_str() {
            "" => format!("`{}` asks for input", spec.name),
            description => description.to_owned(),
        };
        for _ in 0..TRIES {
            let mut ask = Ask::input(prompt.clone()).form(json!({
                "tool": spec.name,
                "component": self.component,
                "mode": self.mode,
                "arguments": arguments,
            }));
            ask.schema = self.schema.clone();
            ask.expires_after = self.expires_after;
            match cx.ask(ask).await {
                Ok(Answer::Reject(reason)) => return Ok(Asked::Rejected(reason)),
                Ok(Answer::Respond(text)) => return Ok(Asked::Answered(self.read(&text))),
                Ok(Answer::Edit(value)) => return Ok(Asked::Answered(value)),
                Ok(Answer::Approve) => return Ok(Asked::Answered(Value::Bool(true))),
                Err(error) if error.kind() == ErrorKind::Ask => {
                    let Some(misfit) = misfit(&error) else { return Err(error.into()) };
                    prompt = format!("{}\n(the answer did not fit: {misfit})", spec.description);
                }
                Err(error) => return Err(ToolError::ends_turn(error)),
            }
        }
        let message = format!("no answer had the form that `{}` needs: {prompt}", spec.name);
        Err(ToolError::new(message))
    }

    /// Announces an answer and what it changed, in a recorded run once over all of its lives.
    fn announce(&self, cx: &ToolCx<'_>, response: &Value, changes: &[Change]) {
        let tool = self.spec().name;
        let answered = || json!({ "tool": tool, "response": response });
        let Some(place) = cx.own_steps() else {
            cx.announce("ui_tool.response", answered);
            changes.iter().for_each(|change| cx.announce(CONTEXT_CHANGED, || change.data()));
            return;
        };
        cx.announce_once(&place, "ui_tool.response", answered);
        for change in changes {
            cx.announce_once(&place.at(&change.name), CONTEXT_CHANGED, || change.data());
        }
    }

    /// An answer in words, or the JSON that a form sent. Where words are wanted, `42` is a word.
    fn read(&self, text: &str) -> Value {
        let fits = |value: &Value| self.schema.as_ref().is_none_or(|it| check(it, value).is_ok());
        let sent = serde_json::from_str(text).ok().filter(fits);
        sent.unwrap_or_else(|| Value::from(text))
    }
}

/// What came of the question.
enum Asked {
    Answered(Value),
    Rejected(String),
}

fn misfit(error: &tenure_core::Error) -> Option<&Misfit> {
    std::error::Error::source(error)?.downcast_ref()
}

#[async_trait]
impl Tool for UiTool {
    fn spec(&self) -> ToolSpec {
        self.inner.spec()
    }

    async fn call(&self, cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        let response = match self.ask(&cx, arguments).await? {
            Asked::Answered(response) => response,
            Asked::Rejected(reason) => {
                let reason = if reason.is_empty() { "the person rejected it" } else { &reason };
                return Ok(ToolOutput::denied(reason));
            }
        };
        let mut given = arguments.clone();
        if let (TakesResponse::Yes, Value::Object(fields)) = (self.takes, &mut given) {
            fields.insert(UI_RESPONSE.to_owned(), response.clone());
        }
        let changes = match &self.on_response {
            Some(on_response) => on_response(&cx, &response)?,
            None => Vec::new(),
        };
        self.announce(&cx, &response, &changes);
        cx.recorded(&given, self.inner.call(cx, &given)).await
    }

    fn cancel_grace(&self) -> Duration {
        self.inner.cancel_grace()
    }

    /// The question is recorded by itself: while it stands nothing has been called.
    fn is_composite(&self) -> bool {
        true
    }
}

impl fmt::Debug for UiTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UiTool")
            .field("tool", &self.inner.spec().name)
            .field("component", &self.component)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}
