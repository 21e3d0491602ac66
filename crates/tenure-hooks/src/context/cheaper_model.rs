//! Another model where the agent's own is more than it takes.

use super::tokens::{Counter, Encoding};
use crate::input::sanitise::collapsed;
use crate::input::seen::{AT_MODEL, Expression, Moment, chars_of};
use crate::ready::{About, Makings, ModelName, Options, Refusal};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::fmt;
use std::sync::Arc;
use tenure_core::Error;
use tenure_core::content::Part;
use tenure_core::context::TurnCx;
use tenure_core::hook::{AgentLifecycle, Flow, HookError, IntoRegistration, Registration, hook};
use tenure_core::message::Message;
use tenure_core::model::{Model, ModelRequest};
use tenure_macros::lifecycle;

/// When a model answers in the place of the agent's own: if everything holds that is said here.
#[derive(Clone)]
#[must_use]
pub struct ModelRule {
    model: Arc<dyn Model>,
    below_chars: Option<usize>,
    below_tokens: Option<u64>,
    after_steps: Option<usize>,
    spent: Option<f64>,
    when: Option<Arc<Expression>>,
}

impl ModelRule {
    /// This model; always, until something is said.
    pub fn new(model: impl Model) -> Self {
        Self::of(Arc::new(model))
    }

    fn of(model: Arc<dyn Model>) -> Self {
        Self {
            model,
            below_chars: None,
            below_tokens: None,
            after_steps: None,
            spent: None,
            when: None,
        }
    }

    /// For requests with fewer characters: instruction and messages.
    pub fn below_chars(mut self, chars: usize) -> Self {
        self.below_chars = Some(chars);
        self
    }

    /// For requests with fewer tokens: instruction, messages and tools.
    pub fn below_tokens(mut self, tokens: u64) -> Self {
        self.below_tokens = Some(tokens);
        self
    }

    /// Once the turn has made so many model calls.
    pub fn after_steps(mut self, steps: usize) -> Self {
        self.after_steps = Some(steps);
        self
    }

    /// Once the turn has spent this share of the [budget](CheaperModel::budget): 0.5 is half of it.
    pub fn spent(mut self, share: f64) -> Self {
        self.spent = Some(share);
        self
    }

    /// Where this condition holds. It sees `step`, `input`, `tools`, `chars`, `usage`, `user`,
    /// `agent`, `variables`, `state` and `now`.
    pub fn when(mut self, expression: &str) -> Result<Self, Refusal> {
        let when = Expression::compile(expression, AT_MODEL);
        self.when = Some(Arc::new(when.map_err(|why| Refusal::new("when", why))?));
        Ok(self)
    }

    fn says_nothing(&self) -> bool {
        self.below_chars.is_none()
            && self.below_tokens.is_none()
            && self.after_steps.is_none()
            && self.spent.is_none()
            && self.when.is_none()
    }
}

impl fmt::Debug for ModelRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelRule")
            .field("model", &self.model.name())
            .field("below_chars", &self.below_chars)
            .field("below_tokens", &self.below_tokens)
            .field("after_steps", &self.after_steps)
            .field("spent", &self.spent)
            .field("when", &self.when)
            .finish()
    }
}

/// Has another model answer where a rule says that it will do: the first rule that holds counts, and
/// if none does, the agent's own model answers.
///
/// A model that another hook has chosen stays. The choice is announced as `model.chosen`, and it is
/// on record in a recorded run.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::context::{CheaperModel, ModelRule};
/// # use tenure_models::{Failing, Passthrough};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let small = ModelRule::new(Passthrough::new()).below_chars(200);
/// let agent = Agent::builder("thrifty")
///     .model(Failing::new(tenure_core::model::ModelErrorKind::Overloaded))
///     .with_lifecycle(CheaperModel::new().rule(small))
///     .build()?;
/// let report = agent.scoped(async |agent| agent.run("a small question").await).await?;
/// assert_eq!(report.output(), "a small question");
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct CheaperModel {
    rules: Vec<ModelRule>,
    budget: Option<f64>,
    encoding: Encoding,
    collapse: bool,
}

impl CheaperModel {
    /// No rules yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule.
    pub fn rule(mut self, rule: ModelRule) -> Self {
        self.rules.push(rule);
        self
    }

    /// What a turn should cost at most, in US dollars. It is no limit: rules speak of shares of it.
    pub fn budget(mut self, usd: f64) -> Self {
        self.budget = Some(usd);
        self
    }

    /// How tokens are counted.
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = encoding;
        self
    }

    /// Makes several blanks one in the messages, for the call only.
    pub fn collapse_blanks(mut self) -> Self {
        self.collapse = true;
        self
    }
}

impl IntoRegistration for CheaperModel {
    fn into_registration(self) -> Registration {
        let counter = Counter::new(self.encoding);
        hook(Choosing { own: self, counter })
            .named("cheaper_model")
            .kind("cheaper_model")
            // A model cannot be put on record, so it is chosen again; by what is on record.
            .again_on_resume()
            .inside("dedupe")
            .inside("clear_tool_results")
            .inside("select_tools")
            .inside("window")
    }
}

struct Choosing {
    own: CheaperModel,
    counter: Counter,
}

impl Choosing {
    async fn holds(
        &self,
        cx: TurnCx<'_>,
        request: &ModelRequest,
        rule: &ModelRule,
    ) -> Result<bool, Error> {
        // The step that is about to be made is counted already.
        if rule.after_steps.is_some_and(|steps| cx.step_number() <= steps) {
            return Ok(false);
        }
        if rule.below_chars.is_some_and(|chars| chars_of(request) >= chars) {
            return Ok(false);
        }
        if let Some(share) = rule.spent {
            let budget = self.own.budget.unwrap_or_default();
            if cx.usage().cost.usd() < budget * share {
                return Ok(false);
            }
        }
        if let Some(tokens) = rule.below_tokens
            && self.counter.request(request).await.total() >= tokens
        {
            return Ok(false);
        }
        match &rule.when {
            Some(when) => when.holds(&Moment::of_request(cx, request)).map_err(Error::invalid),
            None => Ok(true),
        }
    }

    async fn choose(&self, cx: TurnCx<'_>, request: &ModelRequest) -> Result<Option<usize>, Error> {
        for (at, rule) in self.own.rules.iter().enumerate() {
            if self.holds(cx, request, rule).await? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }
}

#[lifecycle]
impl AgentLifecycle for Choosing {
    async fn before_model(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        if self.own.collapse {
            collapse(request);
        }
        if request.model().is_some() {
            return Ok(Flow::Continue);
        }
        let chosen = {
            let request = &*request;
            cx.step("choice", self.choose(cx, request)).await?
        };
        if let Some(rule) = chosen.and_then(|at| self.own.rules.get(at)) {
            let step = cx.step_number();
            cx.announce(
                "model.chosen",
                || json!({ "model": rule.model.name(), "rule": chosen, "step": step }),
            );
            request.use_model(rule.model.clone());
        }
        Ok(Flow::Continue)
    }
}

/// Makes several blanks one, where that changes anything. What a model said and how it called tools
/// stays as it is.
fn collapse(request: &mut ModelRequest) {
    let shorter = |text: &str| Some(collapsed(text)).filter(|short| short.len() < text.len());
    let changes = |message: &Message| {
        let texts = message.content().parts().iter().filter_map(Part::as_text);
        !matches!(message, Message::Assistant { .. }) && texts.filter_map(shorter).next().is_some()
    };
    if !request.messages.iter().any(changes) {
        return;
    }
    for message in request.messages.edit() {
        if !matches!(message, Message::Assistant { .. }) {
            message.content_mut().edit_texts(shorter);
        }
    }
}

/// When a model answers in the place of the agent's own: if everything holds that is said.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RuleOptions {
    /// The model.
    model: ModelName,
    /// For requests with fewer characters: instruction and messages.
    #[serde(default)]
    below_chars: Option<usize>,
    /// For requests with fewer tokens: instruction, messages and tools.
    #[serde(default)]
    below_tokens: Option<u64>,
    /// Once the turn has made so many model calls.
    #[serde(default)]
    after_steps: Option<usize>,
    /// Once the turn has spent this share of the `budget`; 0.5 is half of it.
    #[serde(default)]
    spent: Option<f64>,
    /// Where this condition holds. It sees `step`, `input`, `tools`, `chars`, `usage`, `user`,
    /// `agent`, `variables`, `state` and `now`.
    #[serde(default)]
    when: Option<String>,
}

/// What `cheaper_model` takes by `with`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct CheaperModelOptions {
    /// The rules. The first that holds counts; if none does, the agent's own model answers.
    rules: Vec<RuleOptions>,
    /// What a turn should cost at most, in US dollars, for rules that speak of shares of it.
    budget: Option<f64>,
    /// How tokens are counted.
    encoding: Encoding,
    /// Whether several blanks in messages become one, for the call only.
    collapse: bool,
}

impl Options for CheaperModelOptions {
    const ABOUT: About = About {
        name: "cheaper_model",
        summary: "Has another model answer where a rule says that it will do.",
        covers: &["UC-2.4"],
        peers: &["dynamic model"],
        example: r#"{ "rules": [{ "model": "passthrough", "below_chars": 10 }] }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        if self.rules.is_empty() && !self.collapse {
            return Err(Refusal::new("rules", "there is none; say which model, and when"));
        }
        if self.budget.is_some_and(|usd| !usd.is_finite() || usd <= 0.0) {
            return Err(Refusal::new("budget", "it is an amount of US dollars; more than zero"));
        }
        let mut cheaper = CheaperModel {
            rules: Vec::new(),
            budget: self.budget,
            encoding: self.encoding,
            collapse: self.collapse,
        };
        for (at, options) in self.rules.into_iter().enumerate() {
            let refuse = |part: &str, why: String| {
                let dot = if part.is_empty() { "" } else { "." };
                Refusal::new(format!("rules[{at}]{dot}{part}"), why)
            };
            let RuleOptions { model, below_chars, below_tokens, after_steps, spent, when } =
                options;
            let model = makings.model(&model.0).map_err(|why| refuse("model", why))?;
            let mut rule =
                ModelRule { below_chars, below_tokens, after_steps, spent, ..ModelRule::of(model) };
            if let Some(when) = when {
                rule = rule.when(&when).map_err(|why| refuse("when", why.message().to_owned()))?;
            }
            if rule.says_nothing() {
                let why = "it says not when; give a size, steps, a share of the budget or `when`";
                return Err(refuse("", why.to_owned()));
            }
            if let Some(share) = spent {
                if !(0.0..=1.0).contains(&share) {
                    return Err(refuse("spent", format!("{share} is no share; 0 to 1 are")));
                }
                if self.budget.is_none() {
                    return Err(refuse("spent", "a share of what? give a `budget`".to_owned()));
                }
            }
            cheaper.rules.push(rule);
        }
        Ok(cheaper.into_registration())
    }
}
