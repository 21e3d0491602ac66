//! Puts answers into a form.

mod json;
mod markdown;
mod plain;

use crate::ready::{About, Makings, Options, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tenure_core::context::TurnCx;
use tenure_core::drive::TurnEnd;
use tenure_core::hook::{After, AgentLifecycle, HookError, IntoRegistration, Registration, hook};
use tenure_macros::lifecycle;

/// Puts the answer of a turn that ended well into a form: JSON, Markdown or plain text.
///
/// The conversation keeps what the model said; whoever asked gets the form, and so does whoever
/// keeps the result or is told of it. A stream is held back until the answer is whole.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::result::Format;
/// # use tenure_models::Scripted;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let model = Scripted::empty().text("# Done\n\nSee [the log](log.txt).");
/// let agent = Agent::builder("clerk").model(model).with_lifecycle(Format::plain()).build()?;
/// let report = agent.scoped(async |agent| agent.run("go").await).await?;
/// assert_eq!(report.output(), "Done\n\nSee the log (log.txt).");
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Format {
    form: Form,
    pretty: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Form {
    /// JSON: the answer with the agent's name and what it cost.
    Json,
    /// The JSON that is in the answer, and nothing around it.
    JsonAnswer,
    /// Markdown: JSON as lists and tables, everything else as it is.
    Markdown,
    /// The text without the marks of Markdown.
    Plain,
}

impl Format {
    fn of(form: Form) -> Self {
        Self { form, pretty: true }
    }

    /// An object with `output`, `agent` and `usage`. An output that is JSON itself is no text there.
    pub fn json() -> Self {
        Self::of(Form::Json)
    }

    /// The JSON that is in the answer, without the words and fences around it. An answer without any
    /// stays as it is, and the report says so.
    pub fn json_answer() -> Self {
        Self::of(Form::JsonAnswer)
    }

    /// Markdown. An answer that is JSON becomes lists and tables.
    pub fn markdown() -> Self {
        Self::of(Form::Markdown)
    }

    /// Text without the marks of Markdown. Where a link goes stands behind its text.
    pub fn plain() -> Self {
        Self::of(Form::Plain)
    }

    /// JSON on one line.
    pub fn compact(mut self) -> Self {
        self.pretty = false;
        self
    }

    fn written(&self, value: &Value) -> String {
        if self.pretty { format!("{value:#}") } else { value.to_string() }
    }

    fn formed(&self, cx: TurnCx<'_>, end: &TurnEnd<'_>, answer: &str) -> Result<String, HookError> {
        Ok(match self.form {
            Form::Json => {
                let usage = end.usage();
                let output = serde_json::from_str(answer.trim())
                    .ok()
                    .filter(|it: &Value| it.is_object() || it.is_array());
                self.written(&json!({
                    "output": output.unwrap_or_else(|| answer.into()),
                    "agent": cx.agent_name(),
                    "usage": {
                        "input": usage.input,
                        "output": usage.output,
                        "calls": usage.calls,
                        "cost_usd": (usage.unpriced == 0).then(|| usage.cost.usd()),
                    },
                }))
            }
            Form::JsonAnswer => match json::find(answer) {
                Some(value) => self.written(&value),
                None => {
                    let why = "the answer has no JSON in it, and is left as it is";
                    return Err(HookError::new(why));
                }
            },
            Form::Markdown => markdown::markdown(answer),
            Form::Plain => plain::plain(answer),
        })
    }
}

impl IntoRegistration for Format {
    fn into_registration(self) -> Registration {
        hook(Forming(self)).named("format").kind("format")
    }
}

struct Forming(Format);

#[lifecycle]
impl AgentLifecycle for Forming {
    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        if let Some(answer) = end.output() {
            let formed = self.0.formed(cx, end, answer)?;
            if let Some(output) = end.content_mut() {
                output.set_text(formed);
            }
        }
        Ok(After::Done)
    }
}

/// What `format` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct FormatOptions {
    /// The form: `json` (an object with `output`, `agent` and `usage`), `json_answer` (the JSON that
    /// is in the answer), `markdown` (JSON becomes lists and tables), `plain` (no marks of Markdown).
    to: Form,
    /// Whether JSON is written on several lines.
    pretty: bool,
}

impl Default for FormatOptions {
    fn default() -> Self {
        Self { to: Form::Plain, pretty: true }
    }
}

impl Options for FormatOptions {
    const ABOUT: About = About {
        name: "format",
        summary: "Puts the answer into a form: JSON, Markdown or plain text.",
        covers: &["UC-6.4", "UC-4.3"],
        peers: &[],
        example: r#"{ "to": "plain" }"#,
    };

    fn make(self, _: &dyn Makings) -> Result<Registration, Refusal> {
        Ok(Format { form: self.to, pretty: self.pretty }.into_registration())
    }
}
