//! A model that is read from data.

mod failure;

use self::failure::{Attempts, Failure};
use crate::words;
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::fmt;
use std::time::Duration;
use tenure_core::context::ModelCx;
use tenure_core::hook::Limit;
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::{
    Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse, StopReason,
};

/// Answers as a file says. It keeps nothing from one call to the next: the n-th model call of a turn
/// gets the n-th reply, so clones, forks and runs that go on after a crash all get the same. Only of
/// an error with `times` it is counted how often a call has failed; a run that goes on after a crash
/// counts anew.
///
/// A script is a list of replies, or `{"turns": [{"when": "part of a message", "replies": [...]}]}`;
/// the first turn whose `when` is part of what the user said counts, and one without `when` always
/// does. A reply is a text, or an object with some of these keys:
///
/// | key | what it does |
/// |---|---|
/// | `text` | says it |
/// | `call`, `with` | calls that tool with these arguments |
/// | `calls` | calls several: a list of `{call, with}` |
/// | `error` | fails with this message, however often it is called |
/// | `times` | beside `error`: fails so often, and then does what the next reply says |
/// | `kind` | beside `error`: what kind of failure it is, for instance `overloaded`; else `other` |
/// | `retry_after` | beside `error`: asks to come back after so long, for instance `50ms` |
/// | `wait` | waits so long before it answers, for instance `50ms` |
///
/// In texts, and in texts inside `with`, `{input}` is what the user said and `{result}` is what the
/// last tool answered. A turn that needs more replies than there are fails.
///
/// ```
/// use serde_json::json;
/// use tenure_core::agent::Agent;
/// use tenure_models::Script;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let script = Script::from_json(&json!(["you said {input}"]))?;
/// let agent = Agent::builder("actor").model(script).build()?;
/// agent.startup().await?;
/// assert_eq!(agent.run("hello").await?.output(), "you said hello");
/// assert_eq!(agent.run("again").await?.output(), "you said again");
/// agent.shutdown().await;
/// # Ok::<_, Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    name: Option<Box<str>>,
    turns: Vec<Turn>,
    attempts: Attempts,
}

#[derive(Clone, Debug, PartialEq)]
struct Turn {
    when: Option<String>,
    replies: Vec<Said>,
}

#[derive(Clone, Debug, PartialEq)]
struct Said {
    /// What goes wrong before it, and how often.
    before: Vec<(Failed, u64)>,
    wait: Option<Duration>,
    what: What,
}

/// A call that fails, after a while.
#[derive(Clone, Debug, PartialEq)]
struct Failed {
    wait: Option<Duration>,
    failure: Failure,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    Answer { text: String, calls: Vec<(String, Map<String, Value>)> },
    Fail(Failure),
}

/// What is wrong with a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError(String);

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ScriptError {}

impl Script {
    /// Reads a script. The error says where it is wrong and what is expected there.
    pub fn from_json(script: &Value) -> Result<Self, ScriptError> {
        let turns = match script {
            Value::Array(replies) => vec![Turn { when: None, replies: read_replies("", replies)? }],
            Value::Object(object) => {
                only(object, &["turns"], "the script")?;
                let Some(Value::Array(turns)) = object.get("turns") else {
                    return Err(wrong("the script needs a list `turns`"));
                };
                let read = |(at, turn)| read_turn(&format!("turns[{at}]"), turn);
                turns.iter().enumerate().map(read).collect::<Result<_, _>>()?
            }
            _ => {
                return Err(wrong(
                    "a script is a list of replies, or an object with a list `turns`",
                ));
            }
        };
        if turns.iter().all(|turn| turn.replies.is_empty()) {
            return Err(wrong("the script has no reply; give it at least one"));
        }
        Ok(Self { name: None, turns, attempts: Attempts::default() })
    }

    /// Calls the model so; else it is called `script`. Whoever uses several scripts beside one another
    /// tells them apart by it.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into().into());
        self
    }

    fn reply(&self, said: &str, made: usize) -> Result<&Said, ModelError> {
        let bad = |message| ModelError::new(ModelErrorKind::BadRequest, message);
        let fits = |turn: &&Turn| turn.when.as_ref().is_none_or(|part| said.contains(&**part));
        let Some(turn) = self.turns.iter().find(fits) else {
            return Err(bad(format!("the script has no turn for the message `{said}`")));
        };
        turn.replies.get(made).ok_or_else(|| {
            bad(format!(
                "the script has {} replies for this turn, and this is model call {} of it",
                turn.replies.len(),
                made + 1
            ))
        })
    }
}

impl Script {
    /// How this call fails, if it has not failed often enough yet.
    fn fails_first<'s>(&self, said: &'s Said, cx: ModelCx<'_>, made: usize) -> Option<&'s Failed> {
        if said.before.is_empty() {
            return None;
        }
        let all = said.before.iter().map(|(_, times)| times).sum();
        let mut at = self.attempts.next((cx.instance_id(), cx.trace_id(), made), all)?;
        said.before.iter().find_map(|(failed, times)| {
            let is_it = at < *times;
            at = at.saturating_sub(*times);
            is_it.then_some(failed)
        })
    }
}

async fn pause(wait: Option<Duration>) {
    if let Some(wait) = wait {
        tokio::time::sleep(wait).await;
    }
}

/// What a reply may have.
const KEYS: [&str; 9] =
    ["text", "call", "with", "calls", "error", "times", "kind", "retry_after", "wait"];
/// Of them, what says more of an error.
const OF_ERRORS: [&str; 3] = ["times", "kind", "retry_after"];

fn wrong(message: impl Into<String>) -> ScriptError {
    ScriptError(message.into())
}

fn only(object: &Map<String, Value>, known: &[&str], place: &str) -> Result<(), ScriptError> {
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(wrong(format!(
            "{place} has the unknown key `{key}`; the keys are {}",
            known.join(", ")
        ))),
    }
}

fn read_turn(place: &str, turn: &Value) -> Result<Turn, ScriptError> {
    let Value::Object(object) = turn else {
        return Err(wrong(format!("{place} must be an object with `replies`")));
    };
    only(object, &["when", "replies"], place)?;
    let when = match object.get("when") {
        None | Some(Value::Null) => None,
        Some(Value::String(part)) => Some(part.clone()),
        Some(_) => return Err(wrong(format!("{place}.when must be a text"))),
    };
    let Some(Value::Array(replies)) = object.get("replies") else {
        return Err(wrong(format!("{place} needs a list `replies`")));
    };
    Ok(Turn { when, replies: read_replies(&format!("{place}."), replies)? })
}

fn read_replies(place: &str, replies: &[Value]) -> Result<Vec<Said>, ScriptError> {
    let mut all = Vec::new();
    let mut before = Vec::new();
    for (at, reply) in replies.iter().enumerate() {
        let said = read_reply(&format!("{place}replies[{at}]"), reply)?;
        match said.what {
            What::Fail(failure) if failure.times.is_some() => {
                let times = failure.times.unwrap_or_default();
                before.push((Failed { wait: said.wait, failure }, times));
            }
            _ => all.push(Said { before: std::mem::take(&mut before), ..said }),
        }
    }
    match before.is_empty() {
        true => Ok(all),
        false => {
            let last = replies.len() - 1;
            let why = "has `times`, and no reply follows; give one, or leave `times` out";
            Err(wrong(format!("{place}replies[{last}] {why}")))
        }
    }
}

fn read_reply(place: &str, reply: &Value) -> Result<Said, ScriptError> {
    let object = match reply {
        Value::String(text) => {
            let what = What::Answer { text: text.clone(), calls: Vec::new() };
            return Ok(Said { before: Vec::new(), wait: None, what });
        }
        Value::Object(object) => object,
        _ => return Err(wrong(format!("{place} must be a text or an object"))),
    };
    only(object, &KEYS, place)?;
    let text = |key: &str| match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(wrong(format!("{place}.{key} must be a text"))),
    };
    let wait = read_time(place, "wait", text("wait")?)?;
    if let Some(error) = text("error")? {
        if ["text", "call", "with", "calls"].iter().any(|key| object.contains_key(*key)) {
            return Err(wrong(format!("{place} has an `error` and something else to say")));
        }
        let failure = Failure::read(place, error, object)?;
        return Ok(Said { before: Vec::new(), wait, what: What::Fail(failure) });
    }
    if let Some(key) = OF_ERRORS.into_iter().find(|key| object.contains_key(*key)) {
        return Err(wrong(format!("{place} has `{key}` but no `error`")));
    }
    let mut calls = Vec::new();
    match (object.get("call"), object.get("calls")) {
        (Some(_), Some(_)) => {
            return Err(wrong(format!("{place} has both `call` and `calls`; use one of them")));
        }
        (Some(_), None) => calls.push(read_call(place, object)?),
        (None, Some(Value::Array(list))) => {
            for (at, call) in list.iter().enumerate() {
                let place = format!("{place}.calls[{at}]");
                let Value::Object(call) = call else {
                    return Err(wrong(format!("{place} must be an object with `call`")));
                };
                only(call, &["call", "with"], &place)?;
                calls.push(read_call(&place, call)?);
            }
        }
        (None, Some(_)) => return Err(wrong(format!("{place}.calls must be a list"))),
        (None, None) if object.contains_key("with") => {
            return Err(wrong(format!("{place} has `with` but no `call`")));
        }
        (None, None) => {}
    }
    let text = text("text")?;
    if text.is_none() && calls.is_empty() {
        return Err(wrong(format!(
            "{place} says nothing; give it `text`, `call`, `calls` or `error`"
        )));
    }
    Ok(Said {
        before: Vec::new(),
        wait,
        what: What::Answer { text: text.unwrap_or_default(), calls },
    })
}

fn read_time(
    place: &str,
    key: &str,
    text: Option<String>,
) -> Result<Option<Duration>, ScriptError> {
    let read = |text: String| {
        let limit = text.parse::<Limit>();
        limit.map(|it| it.duration()).map_err(|error| wrong(format!("{place}.{key}: {error}")))
    };
    text.map(read).transpose()
}

fn read_call(
    place: &str,
    object: &Map<String, Value>,
) -> Result<(String, Map<String, Value>), ScriptError> {
    let name = match object.get("call") {
        Some(Value::String(name)) if !name.is_empty() => name.clone(),
        _ => return Err(wrong(format!("{place}.call must be the name of a tool"))),
    };
    match object.get("with") {
        None | Some(Value::Null) => Ok((name, Map::new())),
        Some(Value::Object(with)) => Ok((name, with.clone())),
        Some(_) => Err(wrong(format!("{place}.with must be an object"))),
    }
}

/// What a reply may refer to.
struct Words<'a> {
    input: &'a str,
    result: &'a str,
}

impl Words<'_> {
    fn fill(&self, text: &str) -> String {
        // In one pass, so that what a user says is never read as a place to fill.
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            filled.push_str(&rest[..at]);
            let (word, length) = if rest[at..].starts_with("{input}") {
                (self.input, "{input}".len())
            } else if rest[at..].starts_with("{result}") {
                (self.result, "{result}".len())
            } else {
                ("{", 1)
            };
            filled.push_str(word);
            rest = &rest[at + length..];
        }
        filled.push_str(rest);
        filled
    }

    fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.fill(text).into(),
            Value::Array(list) => list.iter().map(|value| self.fill_value(value)).collect(),
            Value::Object(object) => {
                let filled =
                    object.iter().map(|(key, value)| (key.clone(), self.fill_value(value)));
                Value::Object(filled.collect())
            }
            other => other.clone(),
        }
    }
}

#[async_trait]
impl Model for Script {
    async fn call(
        &self,
        request: &ModelRequest,
        cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let (mut words, mut made) = (Words { input: "", result: "" }, 0);
        for message in request.messages.iter() {
            match message {
                Message::User { content } => {
                    words = Words { input: content.text(), result: "" };
                    made = 0;
                }
                Message::Assistant { .. } => made += 1,
                Message::Tool(result) => words.result = result.content.text(),
                _ => {}
            }
        }
        let said = self.reply(words.input, made)?;
        if let Some(failed) = self.fails_first(said, cx, made) {
            pause(failed.wait).await;
            return Err(failed.failure.error(|text| words.fill(text)));
        }
        pause(said.wait).await;
        let (text, calls) = match &said.what {
            What::Fail(failure) => return Err(failure.error(|text| words.fill(text))),
            What::Answer { text, calls } => (words.fill(text), calls),
        };
        let calls = calls.iter().enumerate().map(|(at, (name, with))| {
            let with = words.fill_value(&Value::Object(with.clone()));
            ToolCall::new(format!("script_{}_{}", made + 1, at + 1), &**name, with.to_string())
        });
        let mut response =
            ModelResponse { content: text.into(), calls: calls.collect(), ..Default::default() };
        if !response.calls.is_empty() {
            response.stop = StopReason::ToolUse;
        }
        words::say(cx, response.content.text());
        let usage = words::usage(request, &response);
        Ok(response.with_usage(usage))
    }

    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("script")
    }
}
