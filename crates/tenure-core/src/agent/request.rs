//! One request, with options.

use super::{Agent, Label};
use crate::cancel::CancelToken;
use crate::chat::{Chat, ChatRun};
use crate::context::ExecutionContext;
use crate::drive::{Input, OutputCheck, TurnOptions, TurnReport, TurnStream, drive};
use crate::error::{Error, ErrorKind};
use crate::phase::Phase;
use crate::step::{StepLog, StepScope, Steps};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A request to an agent, to be given options and then run.
#[must_use = "a request does nothing until it is run"]
pub struct Request<'a> {
    agent: &'a Agent,
    input: Input,
    /// Boxed from the beginning: a request is handed on several times before it runs.
    options: Box<TurnOptions>,
}

impl<'a> Request<'a> {
    pub(crate) fn new(agent: &'a Agent, input: Input) -> Self {
        Self { agent, input, options: Box::default() }
    }

    /// What the orchestrator says about the request.
    pub fn context(mut self, context: impl Into<Arc<ExecutionContext>>) -> Self {
        self.options.context = Some(context.into());
        self
    }

    /// Cancels the turn when `token` is cancelled.
    pub fn cancel_on(mut self, token: &CancelToken) -> Self {
        self.options.token = Some(token.clone());
        self
    }

    /// The most time that the turn may take. Exceeding it ends the turn as timed out.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.options.limit = Some(limit);
        self
    }

    /// Records the turn's steps, or goes on with those that are recorded (G7).
    ///
    /// With a log a dropped run is parked, not cancelled: its ends wait for the run that goes on
    /// with it.
    pub fn steps(self, log: impl StepLog) -> Self {
        self.recorded(&Steps::new(Arc::new(log)))
    }

    /// The same at a place within a run, for whoever runs several turns.
    pub fn recorded(mut self, steps: &Steps) -> Self {
        self.options.steps = Some(StepScope::new(steps.clone()));
        self
    }

    /// Makes the turn part of a chat.
    pub fn in_chat(mut self, chat: &Chat) -> Self {
        self.options.chat = Some(chat.run_data());
        self
    }

    /// Has the model answer with JSON of this schema.
    pub fn output_schema(mut self, schema: impl Into<Arc<Value>>) -> Self {
        self.options.schema = Some(schema.into());
        self
    }

    /// Checks the answer. One that does not pass is shown to the model with the reason, up to twice;
    /// then the turn fails.
    pub fn check_output(
        mut self,
        check: impl Fn(&str) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.options.check = Some(OutputCheck::new(check));
        self
    }

    /// Makes the turn part of the chat that its parent's turn is part of.
    pub(crate) fn with_chat(mut self, chat: Option<Arc<ChatRun>>) -> Self {
        self.options.chat = chat;
        self
    }

    pub(crate) fn with_steps(self, steps: Option<&Steps>) -> Self {
        match steps {
            Some(steps) => self.recorded(steps),
            None => self,
        }
    }

    fn check(&self) -> Result<(), Error> {
        if self.options.limit.is_some_and(|limit| limit.is_zero()) {
            return Err(Error::invalid(
                "the request's limit is zero; give it more than zero, or leave it out",
            ));
        }
        if let Some(Err(defects)) = self.options.context.as_ref().map(|it| it.validate()) {
            let defects: Vec<_> = defects.iter().map(ToString::to_string).collect();
            return Err(Error::invalid(format!(
                "the execution context is not valid: {}",
                defects.join("; ")
            )));
        }
        Ok(())
    }

    /// Runs the turn. See [`Agent::run`].
    pub async fn run(self) -> Result<TurnReport, Error> {
        self.check()?;
        drive(self.agent.inner(), self.input, Some(self.options)).await
    }

    /// Runs the turn and hands out its text while it is made. See [`Agent::stream`].
    pub fn stream(self) -> TurnStream<'a> {
        let checked = self.check();
        TurnStream::new(self.agent, self.input, self.options, checked.err())
    }

    /// Runs the turn and reads its output as JSON of type `T`. An answer that cannot be read is
    /// shown to the model with the reason, up to twice.
    pub async fn run_as<T: DeserializeOwned>(mut self) -> Result<(T, TurnReport), Error> {
        self.options.check = Some(OutputCheck::new(|text| {
            serde_json::from_str::<T>(json_of(text)).map(|_| ()).map_err(|error| error.to_string())
        }));
        let report = self.run().await?;
        let value = serde_json::from_str(json_of(report.output())).map_err(|error| {
            Error::new(ErrorKind::Output, format!("the output has another form: {error}"))
        })?;
        Ok((value, report))
    }

    /// Runs the turn here, or on a fork if the agent is busy. See [`Agent::handle`].
    pub async fn handle(self) -> Result<TurnReport, Error> {
        self.check()?;
        let agent = self.agent;
        let inner = agent.inner();
        let Request { input, options, .. } = self;
        if inner.cell.is_setting_up() {
            // A fork would do the setup again.
            agent.ready().await?;
        }
        let (input, options) = match crate::drive::claim(inner, input, Some(options)) {
            Ok(turn) => return turn.run().await,
            Err((error, input, options)) => {
                if inner.cell.life() != Phase::Idle {
                    return Err(error);
                }
                (input, options)
            }
        };
        let label = Label::Numbered(inner.next_number());
        let history = inner.history.lock().clone();
        let fork = inner.spawn(&agent.blueprint(), label, Some(history)).await?;
        let result = drive(fork.inner(), input, options).await;
        fork.shutdown().await;
        result
    }
}

/// The JSON in an answer: some models put a fence around it.
fn json_of(text: &str) -> &str {
    let text = text.trim();
    let Some(fenced) = text.strip_prefix("```") else {
        return text;
    };
    let fenced = fenced.strip_prefix("json").unwrap_or(fenced);
    fenced.strip_suffix("```").unwrap_or(fenced).trim()
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("agent", &self.agent.name())
            .field("input", &self.input)
            .finish_non_exhaustive()
    }
}
