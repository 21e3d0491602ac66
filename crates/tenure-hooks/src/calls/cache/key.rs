//! The hash of everything that an answer depends on.

use crate::words::hex;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tenure_core::content::Content;
use tenure_core::message::Message;
use tenure_core::model::{ModelParams, ModelRequest};
use tenure_core::tool::ToolSpec;

/// Changes whenever the same bytes would mean something else.
const FORM: &str = "tenure answer 1";

/// Makes keys. What requests have in common stands first in them, so it is hashed once, and its hash
/// is gone on from as long as it is the same.
#[derive(Default)]
pub(super) struct Keys(Mutex<Option<Begun>>);

/// The beginning of a key, and all that it is made of.
struct Begun {
    agent: Option<String>,
    model: String,
    instruction: Option<Arc<str>>,
    tools: Arc<[Arc<ToolSpec>]>,
    params: ModelParams,
    key: Key,
}

impl Begun {
    fn of(agent: Option<&str>, model: &str, request: &ModelRequest) -> Self {
        let mut key = Key(Sha256::new());
        key.text(FORM);
        key.optional(agent);
        key.text(model);
        key.optional(request.instruction.as_deref());
        key.number(request.tools.len());
        for tool in &*request.tools {
            key.text(&tool.name);
            key.text(&tool.description);
            key.value(&tool.parameters);
        }
        key.serialised(&request.params);
        Self {
            agent: agent.map(str::to_owned),
            model: model.to_owned(),
            instruction: request.instruction.clone(),
            tools: request.tools.clone(),
            params: request.params.clone(),
            key,
        }
    }

    fn is_of(&self, agent: Option<&str>, model: &str, request: &ModelRequest) -> bool {
        // Tools that are the same things are the same; others are hashed again.
        let tools = Arc::ptr_eq(&self.tools, &request.tools)
            || (self.tools.len() == request.tools.len()
                && self.tools.iter().zip(&*request.tools).all(|(a, b)| Arc::ptr_eq(a, b)));
        tools
            && self.agent.as_deref() == agent
            && self.model == model
            && self.instruction == request.instruction
            && self.params == request.params
    }
}

impl Keys {
    /// The key of a request: of an agent, or of all of them.
    pub(super) fn of(&self, agent: Option<&str>, model: &str, request: &ModelRequest) -> String {
        let known = {
            let begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let known = begun.as_ref().filter(|begun| begun.is_of(agent, model, request));
            known.map(|begun| begun.key.clone())
        };
        let key = known.unwrap_or_else(|| {
            let begun = Begun::of(agent, model, request);
            let key = begun.key.clone();
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(begun);
            key
        });
        with_messages(key, request)
    }
}

/// The whole key, from its beginning.
fn with_messages(mut key: Key, request: &ModelRequest) -> String {
    // Providers make ids up; what matters is which result belongs to which call.
    let mut ids: HashMap<&str, usize> = HashMap::new();
    key.number(request.messages.len());
    for message in request.messages.iter() {
        match message {
            Message::System { content } => key.said("system", content),
            Message::User { content } => key.said("user", content),
            Message::Assistant { content, calls } => {
                key.said("assistant", content);
                key.number(calls.len());
                for call in calls {
                    let next = ids.len();
                    ids.insert(&call.id, next);
                    key.number(next);
                    key.texts(&[&call.name, &call.arguments]);
                    key.value(call.continuation.as_deref().unwrap_or(&Value::Null));
                }
            }
            Message::Tool(result) => {
                key.text("tool");
                key.number(ids.get(&*result.call_id).copied().unwrap_or(usize::MAX));
                key.said(&result.name, &result.content);
                key.serialised(&result.status);
            }
            other => key.serialised(other),
        }
    }
    key.finish()
}

/// Everything goes in with its length or its kind before it, so that no two things run into the same
/// bytes.
#[derive(Clone)]
struct Key(Sha256);

impl Key {
    fn number(&mut self, number: usize) {
        self.0.update((number as u64).to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len());
        self.0.update(text.as_bytes());
    }

    fn texts(&mut self, texts: &[&str]) {
        texts.iter().for_each(|text| self.text(text));
    }

    fn optional(&mut self, text: Option<&str>) {
        self.number(usize::from(text.is_some()));
        self.text(text.unwrap_or_default());
    }

    /// What was said, by whom. Parts that are no text count with what is known of them.
    fn said(&mut self, by: &str, content: &Content) {
        self.texts(&[by, content.text()]);
        if !content.is_text() {
            self.serialised(content);
        }
    }

    fn serialised(&mut self, it: &impl Serialize) {
        self.value(&serde_json::to_value(it).unwrap_or_default());
    }

    /// A value, the same whatever the order of its fields.
    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_unstable_by_key(|(name, _)| *name);
                self.0.update([b'{']);
                self.number(fields.len());
                for (name, value) in fields {
                    self.text(name);
                    self.value(value);
                }
            }
            Value::Array(items) => {
                self.0.update([b'[']);
                self.number(items.len());
                items.iter().for_each(|item| self.value(item));
            }
            Value::String(text) => {
                self.0.update([b'"']);
                self.text(text);
            }
            other => {
                self.0.update([b'=']);
                self.text(&other.to_string());
            }
        }
    }

    fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::Keys;
    use serde_json::{Value, json};
    use std::sync::Arc;
    use tenure_core::message::{Message, ToolCall, ToolResult, ToolStatus};
    use tenure_core::model::ModelRequest;
    use tenure_core::tool::ToolSpec;

    fn of(agent: Option<&str>, model: &str, request: &ModelRequest) -> String {
        Keys::default().of(agent, model, request)
    }

    fn asked(id: &str, result_of: &str, content: &str) -> ModelRequest {
        let call = ToolCall::new(id, "clock", "{}");
        ModelRequest::new(vec![
            Message::user("when?"),
            Message::Assistant { content: "".into(), calls: vec![call] },
            Message::Tool(ToolResult {
                call_id: result_of.into(),
                name: "clock".into(),
                content: content.into(),
                status: ToolStatus::Ok,
            }),
        ])
    }

    fn with_extra(extra: Value) -> ModelRequest {
        let mut request = ModelRequest::new(vec![Message::user("a")]);
        request.params.extra = Some(Arc::new(extra));
        request
    }

    #[test]
    fn only_what_an_answer_depends_on_is_in_a_key() {
        let key = |request: &ModelRequest| of(Some("a"), "m", request);
        let plain = asked("call_1", "call_1", "noon");
        assert_eq!(key(&plain), key(&asked("xyz", "xyz", "noon")), "ids are made up");
        assert_ne!(key(&plain), key(&asked("call_1", "call_1", "night")));
        assert_ne!(key(&plain), of(Some("b"), "m", &plain), "another agent");
        assert_ne!(key(&plain), of(None, "m", &plain), "all agents");
        assert_ne!(key(&plain), of(Some("a"), "n", &plain), "another model");

        let one: Value = serde_json::from_str(r#"{ "a": 1, "b": { "c": 2, "d": 3 } }"#).unwrap();
        let two: Value = serde_json::from_str(r#"{ "b": { "d": 3, "c": 2 }, "a": 1 }"#).unwrap();
        assert_eq!(key(&with_extra(one)), key(&with_extra(two)), "fields have no order");
        assert_ne!(key(&with_extra(json!([1, 2]))), key(&with_extra(json!([2, 1]))));

        let mut changed: Vec<ModelRequest> = vec![plain.clone(); 5];
        changed[0].instruction = Some("be brief".into());
        changed[1].params.temperature = Some(0.5);
        changed[2].params.model = Some("other".into());
        changed[3].tools = [Arc::new(ToolSpec::new("clock", "the time"))].into();
        changed[4].tools = [Arc::new(ToolSpec::new("clock", "the hour"))].into();
        let mut keys: Vec<_> = changed.iter().chain([&plain]).map(key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 6, "each of them is another request");

        // Whatever was asked before, a key is the same.
        let made = Keys::default();
        for request in changed.iter().chain([&plain, &plain]).chain(&changed) {
            for (agent, model) in [(Some("a"), "m"), (Some("a"), "m"), (None, "m"), (None, "n")] {
                assert_eq!(made.of(agent, model, request), of(agent, model, request));
            }
        }
    }

    /// Caches outlive processes and releases.
    #[test]
    fn a_key_is_what_it_has_always_been() {
        let key = of(Some("a"), "m", &asked("call_1", "call_1", "noon"));
        assert_eq!(key, "4beb9f373706efcb90cafbc80c547a1023e4e66f26c48cccfe593e85dbac224d");
    }

    #[test]
    fn texts_do_not_run_into_each_other() {
        let two = |a: &str, b: &str| {
            of(None, "m", &ModelRequest::new(vec![Message::user(a), Message::user(b)]))
        };
        assert_ne!(two("ab", "c"), two("a", "bc"));
        let one = ModelRequest::new(vec![Message::user("a"), Message::assistant("b")]);
        let other = ModelRequest::new(vec![Message::assistant("a"), Message::user("b")]);
        assert_ne!(of(None, "m", &one), of(None, "m", &other));
    }
}
