//! What is sent to a model.

use super::Model;
use crate::kernel::Bounds;
use crate::message::{History, HistoryDefect, Message};
use crate::tool::ToolSpec;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A request to a model.
///
/// Its parts are shared with the agent; cloning it copies a few pointers. A hook that edits the
/// messages copies them, for this call only, unless it calls [`ModelRequest::persist`].
#[derive(Clone, Debug, Default)]
pub struct ModelRequest {
    /// The system instruction. Not part of the messages, so that replacing it never accumulates.
    pub instruction: Option<Arc<str>>,
    /// The conversation so far.
    pub messages: Messages,
    /// The tools that the model may ask for.
    #[doc(alias = "tool_defs")]
    pub tools: Arc<[Arc<ToolSpec>]>,
    /// Everything else that steers the model.
    pub params: ModelParams,
    wishes: Option<Box<Wishes>>,
}

/// What only some hooks want of a request.
#[derive(Clone, Default)]
struct Wishes {
    /// That its messages are kept as the agent's history.
    persist: bool,
    /// That this model answers, in place of the agent's.
    model: Option<Arc<dyn Model>>,
    /// That the model answers within this time.
    bounds: Option<Bounds>,
}

impl Wishes {
    #[cold]
    fn answered_by<'a>(
        &'a self,
        model: &'a Arc<dyn Model>,
        bounds: &'a Bounds,
    ) -> (&'a dyn Model, &'a Bounds) {
        let own =
            self.bounds.as_ref().filter(|own| bounds.limit.is_none_or(|it| own.limit < Some(it)));
        (&**self.model.as_ref().unwrap_or(model), own.unwrap_or(bounds))
    }
}

impl fmt::Debug for Wishes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wishes")
            .field("persist", &self.persist)
            .field("model", &self.model.as_ref().map(|model| model.name()))
            .finish()
    }
}

impl ModelRequest {
    /// A request of these messages and nothing else.
    pub fn new(messages: impl Into<Messages>) -> Self {
        Self { messages: messages.into(), ..Self::default() }
    }

    /// Keeps the messages of this request as the agent's history from here on.
    ///
    /// Messages that are not a valid history (G8) are refused, and the turn fails.
    pub fn persist(&mut self) {
        self.wishes.get_or_insert_default().persist = true;
    }

    /// Has `model` answer this request, in place of the agent's own. The hooks further in see the
    /// request as they would any other.
    pub fn use_model(&mut self, model: Arc<dyn Model>) {
        self.wishes.get_or_insert_default().model = Some(model);
    }

    /// The most time that the model may take for this request, if that is less than it has anyway. A
    /// call that takes longer fails as a time-out, which is on record like any other failure.
    pub fn limit(&mut self, limit: Duration) {
        let wishes = self.wishes.get_or_insert_default();
        let earlier = wishes.bounds.and_then(|bounds| bounds.limit);
        wishes.bounds = Some(Bounds::begin(earlier.map_or(limit, |earlier| earlier.min(limit))));
    }

    /// Takes over which model was chosen for a copy of this request.
    pub(crate) fn choose_as(&mut self, copy: &ModelRequest) {
        if let Some(model) = copy.model()
            && !self.model().is_some_and(|own| Arc::ptr_eq(own, model))
        {
            self.use_model(model.clone());
        }
        if self.params.model != copy.params.model {
            self.params.model = copy.params.model.clone();
        }
    }

    /// The model that answers, and what it is held to.
    #[inline]
    pub(crate) fn answered_by<'a>(
        &'a self,
        model: &'a Arc<dyn Model>,
        bounds: &'a Bounds,
    ) -> (&'a dyn Model, &'a Bounds) {
        match &self.wishes {
            None => (&**model, bounds),
            Some(wishes) => wishes.answered_by(model, bounds),
        }
    }

    /// The model that is to answer in place of the agent's own, if a hook has chosen one.
    #[inline]
    pub fn model(&self) -> Option<&Arc<dyn Model>> {
        self.wishes.as_ref()?.model.as_ref()
    }

    /// The conversation as the agent will keep it: with what hooks edited only if one of them wants
    /// it kept.
    pub fn conversation(&self) -> History {
        if self.persisted() { self.messages.to_history() } else { self.messages.history().clone() }
    }

    pub(crate) fn persisted(&self) -> bool {
        self.wishes.as_ref().is_some_and(|wishes| wishes.persist)
    }
}

/// What steers a model beside the messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ModelParams {
    /// Another model than the agent's, if the model serves several.
    pub model: Option<Arc<str>>,
    /// The sampling temperature.
    pub temperature: Option<f32>,
    /// The most tokens to write.
    pub max_tokens: Option<u32>,
    /// The JSON Schema that the answer has to fit.
    pub output_schema: Option<Arc<Value>>,
    /// What a provider takes beyond these.
    pub extra: Option<Arc<Value>>,
}

/// The messages of a request: the agent's own history, or an edited copy.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    history: History,
    edited: Option<Arc<Vec<Message>>>,
}

impl Messages {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.edited.as_ref().map_or_else(|| self.history.len(), |edited| edited.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The messages, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Message> {
        let (shared, edited) = match &self.edited {
            Some(edited) => (None, Some(edited.iter())),
            None => (Some(self.history.iter()), None),
        };
        shared.into_iter().flatten().chain(edited.into_iter().flatten())
    }

    /// The newest message.
    pub fn last(&self) -> Option<&Message> {
        match &self.edited {
            Some(edited) => edited.last(),
            None => self.history.last(),
        }
    }

    /// The messages for editing. The first call copies them; the agent's history stays as it is.
    pub fn edit(&mut self) -> &mut Vec<Message> {
        let history = &self.history;
        let edited = self.edited.get_or_insert_with(|| Arc::new(history.iter().cloned().collect()));
        Arc::make_mut(edited)
    }

    /// A fingerprint of them.
    pub(crate) fn print(&self) -> u64 {
        match &self.edited {
            Some(edited) => edited.iter().cloned().collect::<History>().print(),
            None => self.history.print(),
        }
    }

    /// Whether a hook has edited these messages.
    pub fn is_edited(&self) -> bool {
        self.edited.is_some()
    }

    /// What is wrong with the messages as a history, if anything.
    pub fn defect(&self) -> Option<HistoryDefect> {
        HistoryDefect::find(self.iter())
    }

    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    #[inline]
    pub(crate) fn history_mut(&mut self) -> &mut History {
        &mut self.history
    }

    pub(crate) fn to_history(&self) -> History {
        match &self.edited {
            Some(edited) => edited.iter().cloned().collect(),
            None => self.history.clone(),
        }
    }
}

impl From<History> for Messages {
    fn from(history: History) -> Self {
        Self { history, edited: None }
    }
}

impl From<Vec<Message>> for Messages {
    fn from(messages: Vec<Message>) -> Self {
        Self { history: History::new(), edited: Some(Arc::new(messages)) }
    }
}

impl<'a> IntoIterator for &'a Messages {
    type Item = &'a Message;
    type IntoIter = Box<dyn Iterator<Item = &'a Message> + 'a>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}
