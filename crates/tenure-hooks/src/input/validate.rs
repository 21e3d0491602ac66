//! Input that has to be as somebody wants it, or no model is asked.

use super::seen::pattern;
use crate::context::Encoding;
use crate::context::tokens::Counter;
use crate::guard::refuse_unread;
use crate::ready::{About, Makings, Options, Pattern, Refusal};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use tenure_core::Error;
use tenure_core::context::TurnCx;
use tenure_core::drive::Input;
use tenure_core::hook::{
    AgentLifecycle, Flow, HookError, IntoRegistration, Policy, Registration, hook,
};
use tenure_core::message::Message;
use tenure_macros::lifecycle;

/// A guard that judges the input of a turn before any model is asked: its length, what it has to look
/// like and what it must not contain, and, with the feature `schema`, the JSON Schema that it fits.
///
/// What others said in a chat since the agent last took part is judged as well, each of it by itself.
/// What does not pass is denied, with the reason. An input of nothing but blanks is refused unless it
/// is allowed.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::input::Validate;
/// # use tenure_models::Passthrough;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let agent = Agent::builder("strict")
///     .model(Passthrough::new())
///     .with_lifecycle(Validate::new().max_chars(20))
///     .build()?;
/// let long = "a question that is much too long";
/// let error = agent.scoped(async |agent| agent.run(long).await).await.unwrap_err();
/// assert_eq!(error.to_string(), "the input has 32 characters, and at most 20 are allowed");
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Validate {
    min_chars: usize,
    max_chars: Option<usize>,
    max_tokens: Option<u64>,
    encoding: Encoding,
    blank: bool,
    matches: Vec<Pattern>,
    forbids: Vec<Pattern>,
    schema: Option<Schema>,
    message: Option<Arc<str>>,
}

impl Validate {
    /// Refuses an input of nothing but blanks, and nothing else yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets an input of nothing but blanks pass.
    pub fn allow_blank(mut self) -> Self {
        self.blank = true;
        self
    }

    /// The fewest characters.
    pub fn min_chars(mut self, least: usize) -> Self {
        self.min_chars = least;
        self
    }

    /// The most characters.
    pub fn max_chars(mut self, most: usize) -> Self {
        self.max_chars = Some(most);
        self
    }

    /// The most tokens, as models count; those included that every message has.
    pub fn max_tokens(mut self, most: u64) -> Self {
        self.max_tokens = Some(most);
        self
    }

    /// How tokens are counted.
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = encoding;
        self
    }

    /// A regular expression that the input has to match somewhere; `^` and `$` make it all of it.
    pub fn matches(mut self, text: &str) -> Result<Self, Refusal> {
        self.matches.push(pattern(text).map_err(|why| Refusal::new("matches", why))?);
        Ok(self)
    }

    /// A regular expression that the input must not match anywhere.
    pub fn forbids(mut self, text: &str) -> Result<Self, Refusal> {
        self.forbids.push(pattern(text).map_err(|why| Refusal::new("forbids", why))?);
        Ok(self)
    }

    /// The JSON Schema that the input fits, which is JSON then.
    #[cfg(feature = "schema")]
    pub fn schema(mut self, schema: &Value) -> Result<Self, Refusal> {
        self.schema = Some(Schema::compile(schema)?);
        Ok(self)
    }

    /// What is said in the place of the reason.
    pub fn message(mut self, message: impl Into<Arc<str>>) -> Self {
        self.message = Some(message.into());
        self
    }

    async fn judge(&self, text: &str) -> Result<(), String> {
        if !self.blank && text.trim().is_empty() {
            return Err(match text.is_empty() {
                true => "the input is empty".to_owned(),
                false => "the input has nothing but blanks".to_owned(),
            });
        }
        if self.min_chars > 0 || self.max_chars.is_some() {
            let chars = text.chars().count();
            if chars < self.min_chars {
                let least = self.min_chars;
                return Err(format!(
                    "the input has {chars} characters, and at least {least} are wanted"
                ));
            }
            if let Some(most) = self.max_chars.filter(|most| chars > *most) {
                return Err(format!(
                    "the input has {chars} characters, and at most {most} are allowed"
                ));
            }
        }
        self.judge_tokens(text).await?;
        for pattern in &self.matches {
            if !pattern.regex.is_match(text) {
                return Err(format!("the input does not match `{}`", pattern.text));
            }
        }
        for pattern in &self.forbids {
            if pattern.regex.is_match(text) {
                return Err(format!("the input matches `{}`, which it must not", pattern.text));
            }
        }
        match &self.schema {
            Some(schema) => schema.judge(text),
            None => Ok(()),
        }
    }

    /// A message has a few tokens of its own, beside those of its text.
    async fn judge_tokens(&self, text: &str) -> Result<(), String> {
        let Some(most) = self.max_tokens else { return Ok(()) };
        let counter = Counter::new(self.encoding);
        let tokens = counter.message(&Message::user(text)).await;
        match tokens > most {
            true => Err(format!("the input has {tokens} tokens, and at most {most} are allowed")),
            false => Ok(()),
        }
    }
}

/// A JSON Schema, compiled.
#[derive(Clone)]
struct Schema {
    #[cfg(feature = "schema")]
    validator: Arc<jsonschema::Validator>,
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schema")
    }
}

/// How many faults a reason names.
#[cfg(feature = "schema")]
const FAULTS: usize = 3;

#[cfg(feature = "schema")]
impl Schema {
    fn compile(schema: &Value) -> Result<Self, Refusal> {
        let validator = crate::words::compiled(schema);
        Ok(Self { validator: validator.map_err(|why| Refusal::new("schema", why))? })
    }

    fn judge(&self, text: &str) -> Result<(), String> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| format!("the input has to be JSON, and it is not: {error}"))?;
        let mut faults = Vec::new();
        let mut more = 0;
        for error in self.validator.iter_errors(&value) {
            if faults.len() == FAULTS {
                more += 1;
                continue;
            }
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { "the whole".to_owned() } else { place };
            // The values themselves may be nobody's business who reads the reason.
            faults.push(format!("{place}: {}", error.masked()));
        }
        match (faults.is_empty(), more) {
            (true, _) => Ok(()),
            (_, 0) => Err(format!("the input does not fit its schema: {}", faults.join("; "))),
            (_, more) => Err(format!(
                "the input does not fit its schema: {}; and {more} more",
                faults.join("; ")
            )),
        }
    }
}

#[cfg(not(feature = "schema"))]
impl Schema {
    fn compile(_: &Value) -> Result<Self, Refusal> {
        Err(Refusal::new("schema", "this build cannot read schemas; build it with `schema`"))
    }

    fn judge(&self, _: &str) -> Result<(), String> {
        Err("this build cannot read schemas".to_owned())
    }
}

impl IntoRegistration for Validate {
    fn into_registration(self) -> Registration {
        let others = ["pii", "quota", "route", "load_context"];
        let registration =
            hook(Judge(self)).named("validate").kind("validate").policy(Policy::Deny);
        others.into_iter().fold(registration, Registration::outside)
    }
}

struct Judge(Validate);

#[lifecycle]
impl AgentLifecycle for Judge {
    async fn before_agent(&self, _cx: TurnCx<'_>, input: &mut Input) -> Result<Flow, HookError> {
        // What others said in a chat reaches the model too, as messages of their own.
        for content in input.earlier.iter().chain([&input.content]) {
            refuse_unread(content)?;
            match (self.0.judge(content.text()).await, &self.0.message) {
                (Ok(()), _) => {}
                (Err(_), Some(message)) => return Err(Error::denied(&**message).into()),
                (Err(reason), None) => return Err(Error::denied(reason).into()),
            }
        }
        Ok(Flow::Continue)
    }
}

/// What `validate` takes by `with`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ValidateOptions {
    /// Whether an input of nothing but blanks passes.
    allow_blank: bool,
    /// The fewest characters.
    min_chars: usize,
    /// The most characters; without it, there may be any number.
    max_chars: Option<usize>,
    /// The most tokens, as models count, those included that every message has; without it, there may
    /// be any number.
    max_tokens: Option<u64>,
    /// How tokens are counted.
    encoding: Encoding,
    /// Regular expressions that the input has to match, every one of them, somewhere. `^` and `$`
    /// stand for its beginning and its end.
    matches: Vec<Pattern>,
    /// Regular expressions that the input must not match anywhere.
    forbids: Vec<Pattern>,
    /// The JSON Schema that the input fits, which is JSON then.
    schema: Option<Value>,
    /// What is said in the place of the reason.
    message: Option<String>,
}

impl Options for ValidateOptions {
    const ABOUT: About = About {
        name: "validate",
        summary: "Refuses input that is too long, too short or not of the form that is wanted.",
        covers: &["UC-1.5"],
        peers: &[],
        example: r#"{ "max_chars": 4000, "forbids": ["(?i)ignore all previous instructions"] }"#,
    };

    fn make(self, _: &dyn Makings) -> Result<Registration, Refusal> {
        if let Some(most) = self.max_chars
            && most < self.min_chars.max(1)
        {
            let why = format!("no input has at most {most} and at least {}", self.min_chars.max(1));
            return Err(Refusal::new("max_chars", why));
        }
        if self.max_tokens == Some(0) {
            return Err(Refusal::new("max_tokens", "no input has no tokens; give more than zero"));
        }
        let schema = self.schema.as_ref().map(Schema::compile).transpose()?;
        let validate = Validate {
            min_chars: self.min_chars,
            max_chars: self.max_chars,
            max_tokens: self.max_tokens,
            encoding: self.encoding,
            blank: self.allow_blank,
            matches: self.matches,
            forbids: self.forbids,
            schema,
            message: self.message.map(Into::into),
        };
        Ok(validate.into_registration())
    }
}
