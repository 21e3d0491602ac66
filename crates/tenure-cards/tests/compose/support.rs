//! Members that write down what they are asked.

use std::sync::{Arc, Mutex, PoisonError};
use tenure_cards::compose::{Composition, Member};
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::message::Message;
use tenure_core::model::{Model, ModelError, ModelErrorKind, ModelResponse};
use tenure_models::Scripted;
use tenure_testkit::{Recorder, assert_paired};

/// Who was asked what, in order.
#[derive(Clone, Default)]
pub(crate) struct Asked(Arc<Mutex<Vec<(String, String)>>>);

impl Asked {
    pub(crate) fn add(&self, who: &str, what: &str) {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push((who.to_owned(), what.to_owned()));
    }

    pub(crate) fn all(&self) -> Vec<(String, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn who(&self) -> Vec<String> {
        self.all().into_iter().map(|(who, _)| who).collect()
    }

    /// What `who` was asked, in order.
    pub(crate) fn of(&self, who: &str) -> Vec<String> {
        self.all().into_iter().filter(|(name, _)| name == who).map(|(_, what)| what).collect()
    }
}

/// A model that writes down what it is asked and says what `say` makes of it; the number counts its
/// calls from 0. An `Err` is the model's failure.
pub(crate) fn model(
    who: &str,
    asked: &Asked,
    say: impl Fn(&str, usize) -> Result<String, String> + Send + Sync + 'static,
) -> Scripted {
    let (who, asked) = (who.to_owned(), asked.clone());
    Scripted::from_fn(move |request, call| {
        let what = request.messages.last().map(Message::text).unwrap_or_default();
        asked.add(&who, what);
        match say(what, call) {
            Ok(text) => Ok(ModelResponse::text(text)),
            Err(error) => Err(ModelError::new(ModelErrorKind::Other, error)),
        }
    })
}

/// A member that answers with `say`.
pub(crate) fn member(
    who: &str,
    asked: &Asked,
    say: impl Fn(&str, usize) -> Result<String, String> + Send + Sync + 'static,
) -> Member {
    built(Agent::builder(who).model(model(who, asked, say)))
}

/// A member that answers `answers`, one after the other, and the last one again and again.
pub(crate) fn saying<const N: usize>(who: &str, asked: &Asked, answers: [&str; N]) -> Member {
    let answers = answers.map(str::to_owned);
    member(who, asked, move |_, call| Ok(answers[call.min(N - 1)].clone()))
}

pub(crate) fn built(builder: AgentBuilder) -> Member {
    Member::new(&builder.blueprint().expect("a good member"))
}

pub(crate) fn name(name: &str) -> Arc<str> {
    name.into()
}

pub(crate) fn names<const N: usize>(names: [&str; N]) -> Vec<Arc<str>> {
    names.into_iter().map(Arc::from).collect()
}

/// A composed agent under a recorder.
pub(crate) struct Stage {
    pub(crate) agent: Agent,
    pub(crate) recorder: Recorder,
}

pub(crate) async fn staged(composition: Composition, members: &[Member]) -> Stage {
    stage_with(composition, members, None, |builder| builder).await
}

pub(crate) async fn stage_with(
    composition: Composition,
    members: &[Member],
    llm: Option<Arc<dyn Model>>,
    more: impl FnOnce(AgentBuilder) -> AgentBuilder,
) -> Stage {
    let (bus, recorder) = Recorder::with_bus();
    let builder = more(Agent::builder("whole").events(&bus).without_history());
    let agent = composition.apply(builder, members, llm).build().expect("a good composition");
    agent.startup().await.expect("it starts");
    Stage { agent, recorder }
}

impl Stage {
    pub(crate) async fn answer(&self, message: &str) -> String {
        self.agent.run(message).await.expect("it answers").output().to_owned()
    }

    pub(crate) async fn failure(&self, message: &str) -> String {
        self.agent.run(message).await.expect_err("it fails").to_string()
    }

    /// Ends the agent; everything that began has ended.
    pub(crate) async fn over(self) {
        self.agent.shutdown().await;
        assert_paired(&self.recorder);
    }
}
