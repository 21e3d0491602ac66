//! A call that is under way: its span is exported when it ends, also if it is given up.

use super::Pipeline;
use super::ids::Place;
use super::records::{Answer, Asked, ModelName, ModelTold, Record, Records, Told, ToolTold};
use super::span::Failed;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_core::context::Cx;
use tenure_core::message::ToolCall;
use tenure_core::model::{Model, ModelRequest, StopReason, Usage};

/// What is called.
pub(super) enum Called<'a> {
    Model { model: Chosen<'a>, wanted: Option<Arc<str>>, asked: Asked },
    Tool { call: &'a ToolCall, description: &'a str, arguments: Option<String> },
}

/// The model that is to answer a request.
pub(super) enum Chosen<'a> {
    /// The agent's own, by its name.
    Own(&'a str),
    /// Another one that a hook chose.
    Other(Arc<dyn Model>),
}

impl<'a> Chosen<'a> {
    pub(super) fn of(cx: &Cx<'a>, request: &ModelRequest) -> Self {
        match request.model() {
            Some(model) => Self::Other(model.clone()),
            None => Self::Own(cx.agent().model().name()),
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Own(name) => name,
            Self::Other(model) => model.name(),
        }
    }
}

/// What a call came to.
#[derive(Default)]
pub(super) struct Ended<'r> {
    pub(super) error: Option<Failed>,
    /// Of a model.
    pub(super) answer: Option<Said<'r>>,
    /// Of a tool, if it may be told.
    pub(super) result: Option<String>,
}

/// What a model said.
pub(super) struct Said<'r> {
    pub(super) model: &'r str,
    pub(super) wanted: Option<Arc<str>>,
    pub(super) stop: StopReason,
    pub(super) usage: Usage,
    pub(super) first: Option<Duration>,
    pub(super) output: Option<String>,
}

/// A call that is under way.
pub(super) struct Call<'a> {
    pipe: Pipeline,
    cx: Cx<'a>,
    /// Until it is over.
    called: Option<Called<'a>>,
    pub(super) place: Place,
    parent: Option<Place>,
    began: Instant,
}

impl<'a> Call<'a> {
    pub(super) fn new(
        pipe: Pipeline,
        cx: Cx<'a>,
        called: Called<'a>,
        (place, parent): (Place, Option<Place>),
    ) -> Self {
        Self { pipe, cx, called: Some(called), place, parent, began: Instant::now() }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// It has ended, well or not.
    pub(super) fn end(mut self, ended: Ended<'_>) {
        self.over(ended);
    }

    fn over(&mut self, ended: Ended<'_>) {
        let Some(called) = self.called.take() else { return };
        let Ended { error, answer, result } = ended;
        let (place, parent, began, took) = (self.place, self.parent, self.began, self.elapsed());
        let told = Told { place, parent, began, took, error };
        match called {
            Called::Model { model, wanted, asked } => {
                let (name, conversation) = (model.name(), conversation(&self.cx));
                self.pipe.give(|Records { list, texts }| {
                    let answer = answer.map(|said| Answer {
                        model: ModelName { name: texts.keep(said.model), wanted: said.wanted },
                        stop: said.stop,
                        usage: said.usage,
                        first: said.first,
                        output: said.output,
                    });
                    let model = ModelName { name: texts.keep(name), wanted };
                    let conversation = conversation.map(|id| texts.keep(id));
                    list.push(Record::Model(
                        told,
                        ModelTold { model, conversation, asked, answer },
                    ));
                });
            }
            Called::Tool { call, description, arguments } => {
                let (name, id) = (call.name.clone(), call.id.clone());
                self.pipe.give(|Records { list, texts }| {
                    let description = texts.keep(description);
                    let call = ToolTold { name, id, description, arguments, result };
                    list.push(Record::Tool(told, call));
                });
            }
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if self.called.is_some() {
            let error = Some(Failed { kind: "cancelled", words: String::new() });
            self.over(Ended { error, ..Ended::default() });
        }
    }
}

/// Which conversation a turn is part of, as far as anybody says.
pub(super) fn conversation<'a>(cx: &Cx<'a>) -> Option<&'a str> {
    let said = cx.context().map(|context| context.conversation_id()).filter(|id| !id.is_empty());
    said.or_else(|| cx.chat_id())
}
