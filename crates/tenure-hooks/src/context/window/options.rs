//! A window as files ask for it.

use super::{ContextWindow, FRACTION, KEEP, Kept, READS, TIMEOUT, Trigger, WRITES};
use crate::context::Encoding;
use crate::ready::{About, Makings, ModelName, Options, Refusal, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure_core::hook::{IntoRegistration, Registration};

/// What is done with what has no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Strategy {
    /// It goes.
    #[default]
    Trim,
    /// A model summarises it.
    Summarise,
}

/// What is done if not even the last exchange has room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Overflow {
    /// The turn fails.
    #[default]
    Error,
    /// The largest results of tools are cut.
    Truncate,
}

/// What is done if no summary can be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Failure {
    /// What has no room goes for this call; the next one tries again.
    #[default]
    Trim,
    /// The turn fails.
    Error,
}

/// When it acts: as soon as any of these is reached.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct TriggerOptions {
    /// So many tokens in the request.
    tokens: Option<u64>,
    /// So many messages in the conversation.
    messages: Option<usize>,
    /// This share of `context_size`, from 0 to 1.
    fraction: Option<f64>,
}

/// How much of the end is kept, if there is room for it: one of these.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct KeepOptions {
    /// So many messages: 20, if nothing is said. A call of tools and its results stay together.
    messages: Option<usize>,
    /// So many tokens.
    tokens: Option<u64>,
    /// This share of `context_size`, from 0 to 1.
    fraction: Option<f64>,
}

/// What `window` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::context) struct WindowOptions {
    /// The most tokens that a request may have, with its instruction and its tools.
    max_tokens: Option<u64>,
    /// How many tokens the model can read and write.
    context_size: Option<u64>,
    /// The share of `context_size` that a request may have, from 0 to 1; the rest is for the answer.
    fraction: f64,
    /// When it acts, beside when there is no room: as soon as any of these is reached.
    trigger: TriggerOptions,
    /// How much of the end is kept, if there is room for it.
    keep: KeepOptions,
    /// What is done with the rest.
    strategy: Strategy,
    /// Whether the first message of the user stays, too.
    pin_first: bool,
    /// What is done if not even the last exchange has room: the turn fails (`error`), or the largest
    /// results of tools are cut (`truncate`).
    on_overflow: Overflow,
    /// The model that summarises; the agent's own, if none is named.
    model: Option<ModelName>,
    /// What the model is told that summarises. The conversation takes the place of `{messages}` in
    /// it, or is a message of its own.
    prompt: Option<String>,
    /// The most tokens that are read for a summary, the newest of what goes; 0 for all of them.
    trim_tokens_to_summarise: u64,
    /// The most tokens that a summary may have.
    summary_tokens: u64,
    /// How long a summary may take.
    timeout: Time,
    /// What is done if no summary can be made.
    on_failure: Failure,
    /// Whether the agent goes on with the shortened conversation. If nothing is said: with a summary
    /// yes, so that it is made once, else no.
    persist: Option<bool>,
    /// How tokens are counted. `approximate`, a quarter of the characters, is for models whose tokens
    /// nobody else can count.
    encoding: Encoding,
}

impl Default for WindowOptions {
    fn default() -> Self {
        Self {
            max_tokens: None,
            context_size: None,
            fraction: FRACTION,
            trigger: TriggerOptions::default(),
            keep: KeepOptions::default(),
            strategy: Strategy::default(),
            pin_first: false,
            on_overflow: Overflow::default(),
            model: None,
            prompt: None,
            trim_tokens_to_summarise: READS,
            summary_tokens: WRITES,
            timeout: Time(TIMEOUT),
            on_failure: Failure::default(),
            persist: None,
            encoding: Encoding::default(),
        }
    }
}

impl WindowOptions {
    /// Refuses a share that is none, or that is of nothing.
    fn check_share(&self, field: &str, share: Option<f64>) -> Result<(), Refusal> {
        let Some(share) = share else { return Ok(()) };
        if !(share > 0.0 && share <= 1.0) {
            let message = format!("a share is more than 0 and at most 1, and not {share}");
            return Err(Refusal::new(field, message));
        }
        if self.context_size.is_none() {
            let message = "it is a share of `context_size`, which is not there; add it";
            return Err(Refusal::new(field, message));
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Refusal> {
        let TriggerOptions { tokens, messages, fraction } = self.trigger;
        let has_trigger = tokens.is_some() || messages.is_some() || fraction.is_some();
        if self.max_tokens.is_none() && self.context_size.is_none() && !has_trigger {
            let message = "give a bound: `max_tokens`, `context_size`, or a `trigger`";
            return Err(Refusal::new("", message));
        }
        let numbers = [
            ("max_tokens", self.max_tokens),
            ("context_size", self.context_size),
            ("trigger.tokens", tokens),
            ("trigger.messages", messages.map(|it| it as u64)),
            ("keep.messages", self.keep.messages.map(|it| it as u64)),
            ("keep.tokens", self.keep.tokens),
            ("summary_tokens", Some(self.summary_tokens)),
        ];
        if let Some((field, _)) = numbers.iter().find(|(_, number)| *number == Some(0)) {
            return Err(Refusal::new(*field, "nothing fits into 0; give a larger number"));
        }
        let of_context = self.context_size.map(|_| self.fraction);
        self.check_share("fraction", of_context)?;
        self.check_share("trigger.fraction", fraction)?;
        self.check_share("keep.fraction", self.keep.fraction)?;
        let kept = [
            self.keep.messages.is_some(),
            self.keep.tokens.is_some(),
            self.keep.fraction.is_some(),
        ];
        if kept.iter().filter(|is_given| **is_given).count() > 1 {
            let message = "give one of `messages`, `tokens` and `fraction`, and not several";
            return Err(Refusal::new("keep", message));
        }
        if self.strategy == Strategy::Trim {
            let of_summaries = [("model", self.model.is_some()), ("prompt", self.prompt.is_some())];
            if let Some((field, _)) = of_summaries.iter().find(|(_, is_given)| *is_given) {
                let message = "it is of no use without `strategy: summarise`; add that, or take it \
                               away";
                return Err(Refusal::new(*field, message));
            }
        }
        Ok(())
    }
}

impl Options for WindowOptions {
    const ABOUT: About = About {
        name: "window",
        summary: "Keeps a conversation within what its model can read: trims or summarises it.",
        covers: &["UC-2.1"],
        peers: &["SummarizationMiddleware"],
        example: r#"{ "max_tokens": 100000, "trigger": { "messages": 200 }, "encoding": "approximate" }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        self.check()?;
        let mut window = ContextWindow::new().fraction(self.fraction).encoding(self.encoding);
        (window.max_tokens, window.context_size) = (self.max_tokens, self.context_size);
        let TriggerOptions { tokens, messages, fraction } = self.trigger;
        window.trigger = Trigger { tokens, messages, fraction };
        window.keep = match self.keep {
            KeepOptions { tokens: Some(tokens), .. } => Kept::Tokens(tokens),
            KeepOptions { fraction: Some(fraction), .. } => Kept::Fraction(fraction),
            KeepOptions { messages, .. } => Kept::Messages(messages.unwrap_or(KEEP)),
        };
        window.pin_first = self.pin_first;
        window.truncate = self.on_overflow == Overflow::Truncate;
        window.fails = self.on_failure == Failure::Error;
        window.persist = self.persist;
        if self.strategy == Strategy::Summarise {
            let reads = Some(self.trim_tokens_to_summarise).filter(|most| *most > 0);
            window = window
                .trim_tokens_to_summarise(reads)
                .summary_tokens(self.summary_tokens)
                .timeout(self.timeout.0);
            if let Some(prompt) = self.prompt {
                window = window.prompt(prompt);
            }
            if let Some(name) = self.model {
                let model = makings.model(&name.0).map_err(|why| Refusal::new("model", why))?;
                window = window.model(model);
            }
        }
        Ok(window.into_registration())
    }
}
