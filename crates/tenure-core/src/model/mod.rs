//! What a model is to an agent: a request in, a response out, deltas on the way.
//!
//! The room holds the trait and its data. Real models live in other crates.

mod error;
mod request;
mod usage;

pub use error::{ModelError, ModelErrorKind};
pub use request::{Messages, ModelParams, ModelRequest};
pub use usage::{Cost, Usage};

use crate::content::Content;
use crate::context::ModelCx;
use crate::message::{Message, ToolCall};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A language model.
///
/// There is one method for blocking and streaming calls, so that neither can skip what the other
/// does (G6): a model that can stream hands its deltas to [`ModelCx::delta`] while it works, and
/// returns the assembled response at the end.
///
/// # Cancel safety
///
/// The future is dropped when the turn is cancelled or its time is up. A model must not leave
/// anything half done behind an `await`.
#[async_trait]
#[doc(alias = "LLMProvider")]
pub trait Model: Send + Sync + 'static {
    /// Answers `request`.
    #[doc(alias = "ProviderResult")]
    #[doc(alias = "complete")]
    async fn call(
        &self,
        request: &ModelRequest,
        cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError>;

    /// The name that usage tables and events show.
    fn name(&self) -> &str {
        "model"
    }
}

#[async_trait]
impl<M: Model + ?Sized> Model for Arc<M> {
    async fn call(
        &self,
        request: &ModelRequest,
        cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        (**self).call(request, cx).await
    }

    fn name(&self) -> &str {
        (**self).name()
    }
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// It had said what it had to say.
    #[default]
    EndTurn,
    /// It wants tools called.
    ToolUse,
    /// It ran into its token limit.
    MaxTokens,
    /// The provider withheld the answer.
    Refused,
    /// It did not: a hook answered in its place, because it failed.
    StandIn,
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[doc(alias = "ProviderResponse")]
pub struct ModelResponse {
    /// What it says, possibly empty beside tool calls.
    #[serde(default, rename = "text")]
    pub content: Content,
    /// The tools it wants called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[doc(alias = "ToolCalls")]
    pub calls: Vec<ToolCall>,
    /// What it cost.
    #[serde(default)]
    pub usage: Usage,
    /// Why it stopped.
    #[serde(default)]
    pub stop: StopReason,
}

impl ModelResponse {
    /// A response that asks for no tools.
    pub fn text(content: impl Into<Content>) -> Self {
        Self { content: content.into(), ..Self::default() }
    }

    /// A response that asks for tools.
    pub fn calls(calls: impl IntoIterator<Item = ToolCall>) -> Self {
        Self { calls: calls.into_iter().collect(), stop: StopReason::ToolUse, ..Self::default() }
    }

    /// The same response with `usage`.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    pub(crate) fn into_message(self) -> Message {
        Message::Assistant { content: self.content, calls: self.calls }
    }
}
