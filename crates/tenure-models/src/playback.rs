//! A model that plays a conversation back.

use crate::words;
use async_trait::async_trait;
use std::sync::{Mutex, PoisonError};
use tenure_core::context::ModelCx;
use tenure_core::message::Message;
use tenure_core::model::{Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse};

/// Answers with the assistant messages of a conversation, one after the other, whatever it is
/// asked. Messages of others are skipped.
///
/// When none is left it says so: `MESSAGES EXHAUSTED (list size 4) (0 overage)`, with the overage
/// rising by one on each further call.
///
/// Tool calls are not played back: a message's text is, and no tool runs for it.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_core::message::Message;
/// use tenure_models::Playback;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let model = Playback::new([Message::user("knock knock"), Message::assistant("who is there?")]);
/// let agent = Agent::builder("again").model(model).build()?;
/// agent.startup().await?;
/// assert_eq!(agent.run("knock knock").await?.output(), "who is there?");
/// agent.shutdown().await;
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
#[derive(Debug, Default)]
pub struct Playback {
    tape: Mutex<Option<Tape>>,
}

#[derive(Debug)]
struct Tape {
    messages: Vec<Message>,
    next: usize,
    overage: usize,
}

impl Tape {
    fn new(messages: Vec<Message>) -> Self {
        Self { messages, next: 0, overage: 0 }
    }

    fn play(&mut self) -> String {
        let left = self.messages.iter().enumerate().skip(self.next);
        let assistant = |message: &Message| matches!(message, Message::Assistant { .. });
        if let Some((at, message)) = left.into_iter().find(|(_, message)| assistant(message)) {
            self.next = at + 1;
            return message.text().to_owned();
        }
        let exhausted = format!(
            "MESSAGES EXHAUSTED (list size {}) ({} overage)",
            self.messages.len(),
            self.overage
        );
        self.overage += 1;
        exhausted
    }
}

impl Playback {
    /// Plays this conversation back.
    pub fn new(messages: impl IntoIterator<Item = Message>) -> Self {
        Self { tape: Mutex::new(Some(Tape::new(messages.into_iter().collect()))) }
    }

    /// Takes the conversation from the first request: answers it with
    /// `HISTORY LOADED (N) messages`, and plays it back from then on.
    ///
    /// A first request that wants an answer of a certain form is an error of the kind
    /// [`BadRequest`](ModelErrorKind::BadRequest), because there is nothing to play yet.
    pub fn loading() -> Self {
        Self::default()
    }

    fn answer(&self, request: &ModelRequest) -> Result<String, ModelError> {
        let mut tape = self.tape.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tape) = &mut *tape {
            return Ok(tape.play());
        }
        if request.params.output_schema.is_some() {
            return Err(ModelError::new(
                ModelErrorKind::BadRequest,
                "Use generate() to load playback history",
            ));
        }
        let messages: Vec<_> = request.messages.iter().cloned().collect();
        let loaded = format!("HISTORY LOADED ({}) messages", messages.len());
        *tape = Some(Tape::new(messages));
        Ok(loaded)
    }
}

impl From<Vec<Message>> for Playback {
    fn from(messages: Vec<Message>) -> Self {
        Self::new(messages)
    }
}

#[async_trait]
impl Model for Playback {
    async fn call(
        &self,
        request: &ModelRequest,
        cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let response = ModelResponse::text(self.answer(request)?);
        words::say(cx, response.content.text());
        let usage = words::usage(request, &response);
        Ok(response.with_usage(usage))
    }

    fn name(&self) -> &str {
        "playback"
    }
}
