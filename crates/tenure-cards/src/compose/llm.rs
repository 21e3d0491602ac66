//! The model that a planner asks.

use super::progress::Progress;
use tenure_core::context::ModelCx;
use tenure_core::message::Message;
use tenure_core::model::{Model, ModelError, ModelErrorKind, ModelRequest, Usage};

/// The card's own model, for a planner: what it says is a plan, not an answer, so nobody reads
/// along while it is made.
pub(super) struct Llm<'a> {
    model: Option<&'a dyn Model>,
    request: &'a ModelRequest,
    /// What was said in earlier turns, if the agent remembers them; without tool calls, which the
    /// model did not make.
    earlier: Vec<Message>,
    cx: ModelCx<'a>,
    usage: Usage,
}

/// Who reads the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    Planner,
    User,
}

impl<'a> Llm<'a> {
    pub(super) fn new(
        model: Option<&'a dyn Model>,
        request: &'a ModelRequest,
        progress: &Progress<'_>,
        cx: ModelCx<'a>,
    ) -> Self {
        let said = |message: &&Message| match message {
            Message::User { content } => Some(Message::user(content.clone())),
            Message::Assistant { content, calls } if calls.is_empty() => {
                Some(Message::assistant(content.clone()))
            }
            _ => None,
        };
        let earlier = match model {
            Some(_) => progress.earlier.iter().filter_map(said).collect(),
            None => Vec::new(),
        };
        Self { model, request, earlier, cx, usage: Usage::default() }
    }

    /// What the calls have cost.
    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// Asks for something that `read` understands. An answer that it does not is shown to the model
    /// once, with the reason. Returns what was read, and the answer it was read from.
    pub(super) async fn ask<T>(
        &mut self,
        rules: &str,
        prompt: String,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<(T, String), ModelError> {
        let mut messages = self.earlier.clone();
        messages.push(Message::user(prompt));
        let said = self.call(rules, messages.clone(), Reader::Planner).await?;
        let why = match read(&said) {
            Ok(value) => return Ok((value, said)),
            Err(why) => why,
        };
        messages.push(Message::assistant(said));
        messages.push(Message::user(format!(
            "Your answer could not be used: {why}. Answer again, with the JSON object and nothing \
             else."
        )));
        let said = self.call(rules, messages, Reader::Planner).await?;
        match read(&said) {
            Ok(value) => Ok((value, said)),
            Err(why) => Err(ModelError::new(
                ModelErrorKind::Malformed,
                format!("the model `{}` was corrected once, and still {why}", self.name()),
            )),
        }
    }

    /// Asks for the answer of the turn.
    pub(super) async fn answer(
        &mut self,
        rules: &str,
        prompt: String,
    ) -> Result<String, ModelError> {
        let mut messages = self.earlier.clone();
        messages.push(Message::user(prompt));
        self.call(rules, messages, Reader::User).await
    }

    fn name(&self) -> &str {
        self.model.map_or("none", Model::name)
    }

    async fn call(
        &mut self,
        rules: &str,
        messages: Vec<Message>,
        reader: Reader,
    ) -> Result<String, ModelError> {
        let Some(model) = self.model else {
            return Err(ModelError::new(
                ModelErrorKind::BadRequest,
                "this agent needs a model to plan with; set `model` in its card",
            ));
        };
        let mut request = ModelRequest::new(messages);
        request.instruction = Some(match self.request.instruction.as_deref() {
            Some(own) if !own.is_empty() => format!("{own}\n\n{rules}").into(),
            _ => rules.into(),
        });
        request.params = self.request.params.clone();
        if reader == Reader::Planner {
            // The form that the user wants is that of the answer, not of the plan.
            request.params.output_schema = None;
        }
        let cx = match reader {
            Reader::Planner => self.cx.quiet(),
            Reader::User => self.cx,
        };
        let response = model.call(&request, cx).await?;
        self.usage += response.usage;
        Ok(response.content.into_text())
    }
}
