//! Conversations, made up and at random, and a model that remembers what it read.

use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use tenure_core::Error;
use tenure_core::agent::Agent;
use tenure_core::drive::TurnReport;
use tenure_core::hook::IntoRegistration;
use tenure_core::message::{History, HistoryDefect, Message, ToolCall, ToolResult, ToolStatus};
use tenure_core::model::ModelResponse;
use tenure_models::Scripted;
use tenure_testkit::Recorder;

/// A call of tools with these ids.
pub(crate) fn call(ids: &[&str], arguments: &str) -> Message {
    let calls = ids.iter().map(|id| ToolCall::new(*id, "look", arguments)).collect();
    Message::Assistant { content: "".into(), calls }
}

pub(crate) fn result(id: &str, content: &str) -> Message {
    result_of("look", id, content)
}

pub(crate) fn result_of(tool: &str, id: &str, content: &str) -> Message {
    Message::Tool(ToolResult {
        call_id: id.into(),
        name: tool.into(),
        content: content.into(),
        status: ToolStatus::Ok,
    })
}

/// So many words.
pub(crate) fn words(count: usize) -> String {
    vec!["word"; count].join(" ")
}

/// Counts words, for tests that say what comes out.
pub(crate) fn count_words(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

/// What an answer's beginning and each message take beside their words.
pub(crate) const ANSWER: u64 = 3;
pub(crate) const PER_MESSAGE: u64 = 3;
const PER_CALL: u64 = 5;

/// The words of a message, and what it takes beside them.
pub(crate) fn weight(message: &Message) -> u64 {
    let calls = message.calls().iter();
    let of_calls = calls.map(|it| PER_CALL + count_words(&it.name) + count_words(&it.arguments));
    PER_MESSAGE + count_words(message.text()) + of_calls.sum::<u64>()
}

/// What a model read, call by call.
#[derive(Clone, Default)]
pub(crate) struct Read(Arc<Mutex<Vec<Vec<Message>>>>);

impl Read {
    pub(crate) fn keep(&self, messages: Vec<Message>) {
        self.0.lock().expect("nobody panics with it").push(messages);
    }

    pub(crate) fn all(&self) -> Vec<Vec<Message>> {
        self.0.lock().expect("nobody panics with it").clone()
    }

    pub(crate) fn last(&self) -> Vec<Message> {
        self.all().pop().expect("the model was called")
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.last().iter().map(|message| message.text().to_owned()).collect()
    }
}

/// A model that says `ok`, and what it read.
pub(crate) fn reader() -> (Scripted, Read) {
    let read = Read::default();
    let seen = read.clone();
    let model = Scripted::from_fn(move |request, _| {
        seen.keep(request.messages.iter().cloned().collect());
        Ok(ModelResponse::text("ok"))
    });
    (model, read)
}

/// What came of one turn after a conversation.
pub(crate) struct Turned {
    pub(crate) report: Result<TurnReport, Error>,
    pub(crate) read: Read,
    pub(crate) history: Vec<Message>,
    pub(crate) recorder: Recorder,
}

/// One turn that says `input` after this conversation.
pub(crate) async fn turn(hook: impl IntoRegistration, before: Vec<Message>, input: &str) -> Turned {
    let (model, read) = reader();
    let (bus, recorder) = Recorder::with_bus();
    let builder = Agent::builder("clerk").model(model).events(&bus).with_lifecycle(hook);
    let agent = builder.build().expect("it can be built");
    agent.startup().await.expect("it starts");
    agent.set_history(before.into_iter().collect::<History>()).expect("it is valid");
    let report = agent.run(input).await;
    let history = agent.history().iter().cloned().collect();
    agent.shutdown().await;
    Turned { report, read, history, recorder }
}

/// Conversations that are valid, with texts of up to forty words.
pub(crate) fn any_conversation() -> impl Strategy<Value = Vec<Message>> {
    let exchange = (0u8..6, 1usize..4, 0usize..40);
    proptest::collection::vec(exchange, 0..25).prop_map(|exchanges| {
        let mut messages = Vec::new();
        for (at, (kind, calls, size)) in exchanges.into_iter().enumerate() {
            match kind {
                0 | 1 => messages.push(Message::user(words(size))),
                2 => messages.push(Message::assistant(words(size))),
                3 => messages.push(Message::system(words(size))),
                _ => {
                    let ids: Vec<String> = (0..calls).map(|nth| format!("{at}.{nth}")).collect();
                    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                    messages.push(call(&ids, &format!("{{ \"q\": \"{}\" }}", words(size / 4))));
                    let tools = ["look", "manual"];
                    let results = ids.iter().rev().enumerate();
                    messages.extend(
                        results.map(|(nth, id)| result_of(tools[nth % 2], id, &words(size))),
                    );
                }
            }
        }
        assert_eq!(HistoryDefect::find(&messages), None);
        messages
    })
}

/// Runs a future of a property, which is no async function.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("there is a runtime").block_on(future)
}
