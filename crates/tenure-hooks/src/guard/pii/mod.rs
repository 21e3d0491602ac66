//! Personal data and secrets: found, and kept from where they should not go.

mod detector;
mod fold;
pub(super) mod leaves;
mod marks;
mod options;
mod personal;
mod quick;
mod scan;
mod secret;
mod stream;
#[cfg(test)]
mod tests;
mod trace;

pub use detector::{Detector, Strategy};
pub(super) use options::PiiOptions;

use super::refuse_unread;
use crate::words::fits;
use scan::{Blocked, Counts, Custom, Rule, Scanner, Source};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tenure_core::context::{Cx, ToolCx, TurnCx};
use tenure_core::drive::Input;
use tenure_core::hook::{
    AgentLifecycle, Flow, HookAction, HookError, IntoRegistration, Point, Points, Policy,
    Registration, hook,
};
use tenure_core::model::ModelResponse;
use tenure_core::secret::PassScope;
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_core::{Error, NextTool};
use tenure_macros::lifecycle;

/// Personal data and secrets in what enters an agent, in what its model says, and in what its tools
/// answer: redacted, masked, hashed, or refused. It is a guard: where it fails, nothing passes.
///
/// Without a choice of detectors everything is looked for but web addresses. While an answer is
/// streamed, its text flows up to where something may begin that has to be taken out. What is written
/// in other forms is found as well: in full-width characters, in the digits of other scripts, and with
/// signs of no width in it.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::guard::{Detector, Pii, Strategy};
/// # use tenure_models::Passthrough;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let agent = Agent::builder("clerk")
///     .model(Passthrough::new())
///     .with_lifecycle(Pii::new().strategy_of(Detector::CreditCard, Strategy::Mask))
///     .build()?;
/// agent.startup().await?;
/// let report = agent.run("ann@example.org pays with 4111 1111 1111 1111").await?;
/// assert_eq!(report.output(), "[REDACTED_EMAIL] pays with **** **** **** 1111");
/// agent.shutdown().await;
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
#[must_use]
pub struct Pii {
    detectors: Vec<Detector>,
    strategy: Strategy,
    strategies: BTreeMap<Detector, Strategy>,
    patterns: Vec<(Custom, Option<Strategy>)>,
    salt: String,
    input: bool,
    output: bool,
    tool_results: bool,
    except_tools: Vec<String>,
    record: bool,
}

impl Default for Pii {
    fn default() -> Self {
        Self {
            detectors: Detector::ALL.into_iter().filter(|it| *it != Detector::Url).collect(),
            strategy: Strategy::default(),
            strategies: BTreeMap::new(),
            patterns: Vec::new(),
            salt: String::new(),
            input: true,
            output: true,
            tool_results: true,
            except_tools: Vec::new(),
            record: true,
        }
    }
}

impl Pii {
    /// Redacts everything that is known but web addresses, everywhere.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks for exactly these.
    pub fn detect(mut self, detectors: impl IntoIterator<Item = Detector>) -> Self {
        self.detectors = detectors.into_iter().collect();
        self.detectors.sort_unstable();
        self.detectors.dedup();
        self
    }

    /// What is done with whatever is found, where nothing else is said.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// What is done with what this detector finds.
    pub fn strategy_of(mut self, detector: Detector, strategy: Strategy) -> Self {
        self.strategies.insert(detector, strategy);
        self
    }

    /// Looks for a pattern of your own, by a name: a regular expression without look-around and
    /// back-references, whose time grows with the text and no faster.
    pub fn pattern(mut self, name: &str, pattern: &str) -> Result<Self, Error> {
        let custom = Custom::new(name, pattern).map_err(Error::invalid)?;
        self.patterns.push((custom, None));
        Ok(self)
    }

    /// The same with what is done with it.
    pub fn pattern_with(
        mut self,
        name: &str,
        pattern: &str,
        strategy: Strategy,
    ) -> Result<Self, Error> {
        let custom = Custom::new(name, pattern).map_err(Error::invalid)?;
        self.patterns.push((custom, Some(strategy)));
        Ok(self)
    }

    /// What is hashed together with each value, so that nobody can find a value by trying.
    pub fn salt(mut self, salt: impl Into<String>) -> Self {
        self.salt = salt.into();
        self
    }

    /// Whether what enters the agent is looked at.
    pub fn input(mut self, is_looked_at: bool) -> Self {
        self.input = is_looked_at;
        self
    }

    /// Whether what the model says is looked at: its text, and the arguments of its calls.
    pub fn output(mut self, is_looked_at: bool) -> Self {
        self.output = is_looked_at;
        self
    }

    /// Whether what tools answer is looked at.
    pub fn tool_results(mut self, is_looked_at: bool) -> Self {
        self.tool_results = is_looked_at;
        self
    }

    /// Leaves the arguments and the results of this tool alone; a name, in which `*` stands for
    /// any text.
    pub fn except_tool(mut self, tool: impl Into<String>) -> Self {
        self.except_tools.push(tool.into());
        self
    }

    /// Whether what is found is also taken out of the record of a run, of logs, of events and of whatever
    /// else is shown or exported: it is, unless this says otherwise. Where this guard leaves a place or a
    /// tool alone, the record keeps what the agent goes on using.
    pub fn record(mut self, is_redacted: bool) -> Self {
        self.record = is_redacted;
        self
    }

    /// Guards that look for the same are one to a project's sinks.
    fn pass_name(&self) -> String {
        let patterns: Vec<_> = self.patterns.iter().map(|(own, how)| (&*own.name, how)).collect();
        format!("{self:?} {patterns:?} {:?}", self.scope())
    }

    /// Which sinks are kept free of what is found.
    fn scope(&self) -> PassScope {
        let is_everywhere = self.input && self.output && self.tool_results;
        if is_everywhere && self.except_tools.is_empty() {
            PassScope::Recorded
        } else {
            PassScope::Shown
        }
    }

    fn scanner(&self) -> Scanner {
        let known = self.detectors.iter().map(|detector| Rule {
            source: Source::Known(*detector),
            strategy: *self.strategies.get(detector).unwrap_or(&self.strategy),
        });
        let own = self.patterns.iter().map(|(custom, strategy)| Rule {
            source: Source::Own(custom.clone()),
            strategy: strategy.unwrap_or(self.strategy),
        });
        Scanner { rules: known.chain(own).collect(), salt: self.salt.clone() }
    }
}

impl fmt::Debug for Pii {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The salt is nobody's business.
        f.debug_struct("Pii")
            .field("detectors", &self.detectors)
            .field("strategy", &self.strategy)
            .field("strategies", &self.strategies)
            .finish_non_exhaustive()
    }
}

impl IntoRegistration for Pii {
    fn into_registration(self) -> Registration {
        let mut points = Points::NONE;
        let chosen = [
            (self.input, Point::BeforeAgent),
            (self.output, Point::AfterModel),
            (self.output || self.tool_results, Point::WrapToolCall),
        ];
        for (_, point) in chosen.into_iter().filter(|(is_chosen, _)| *is_chosen) {
            points = points.with(point);
        }
        let scanner = Arc::new(self.scanner());
        let covers = self.record.then(|| (self.pass_name(), self.scope(), scanner.clone()));
        let filter = self.output.then(|| stream::Filter(scanner.clone()));
        // What is sanitised is what is really said; and nothing goes to another agent unseen.
        let mut registration = hook(Guard { scanner, options: self })
            .named("pii")
            .kind("pii")
            .policy(Policy::Deny)
            .only(points)
            .innermost()
            .inside("sanitise")
            .inside("validate")
            .outside("route");
        if let Some((name, scope, scanner)) = covers {
            registration =
                registration.redacts(name, scope, move |text, scope| scanner.cover(text, scope));
        }
        match filter {
            Some(filter) => registration.filters_text(filter),
            None => registration.keeps_text(),
        }
    }
}

/// The text of an answer, if it changes, and the arguments of calls that do, by their places.
type Cleaned = (Option<String>, Vec<(usize, String)>);

struct Guard {
    scanner: Arc<Scanner>,
    options: Pii,
}

impl Guard {
    fn excepts(&self, tool: &str) -> bool {
        self.options.except_tools.iter().any(|pattern| fits(pattern, tool))
    }

    /// What has to change of an answer.
    fn cleaned(&self, response: &ModelResponse, counts: &mut Counts) -> Result<Cleaned, Blocked> {
        let text = self.scanner.clean(response.content.text(), counts)?;
        let mut calls = Vec::new();
        for (at, call) in response.calls.iter().enumerate() {
            if !self.excepts(&call.name)
                && let Some(clean) = self.scanner.clean_json(&call.arguments, counts)?
            {
                calls.push((at, clean));
            }
        }
        Ok((text, calls))
    }

    /// Tells whoever listens what was found, and nothing of what it was.
    fn tell(&self, cx: &Cx<'_>, place: &'static str, counts: &Counts) {
        if !counts.is_empty() {
            cx.announce("pii.found", || json!({ "in": place, "found": counts }));
        }
    }

    /// The same of what is refused, as words.
    fn refuse(&self, cx: &Cx<'_>, place: &'static str, Blocked(name): Blocked) -> String {
        cx.announce("pii.blocked", || json!({ "in": place, "found": name }));
        format!("{place} has something in it that must not be there: {name}")
    }
}

#[lifecycle]
impl AgentLifecycle for Guard {
    async fn before_agent(&self, cx: TurnCx<'_>, input: &mut Input) -> Result<Flow, HookError> {
        let mut counts = Counts::new();
        for content in input.earlier.iter_mut().chain([&mut input.content]) {
            refuse_unread(content)?;
            match self.scanner.clean(content.text(), &mut counts) {
                Ok(Some(clean)) => content.set_text(clean),
                Ok(None) => {}
                Err(blocked) => {
                    return Err(Error::denied(self.refuse(&cx, "the input", blocked)).into());
                }
            }
        }
        self.tell(&cx, "the input", &counts);
        Ok(Flow::Continue)
    }

    async fn after_model(
        &self,
        cx: TurnCx<'_>,
        response: &ModelResponse,
    ) -> Result<HookAction, HookError> {
        if let Err(unread) = refuse_unread(&response.content) {
            return Ok(HookAction::Reject(unread.to_string()));
        }
        let mut counts = Counts::new();
        let (text, calls) = match self.cleaned(response, &mut counts) {
            Ok(cleaned) => cleaned,
            Err(blocked) => {
                return Ok(HookAction::Reject(self.refuse(&cx, "the answer", blocked)));
            }
        };
        self.tell(&cx, "the answer", &counts);
        if text.is_none() && calls.is_empty() {
            return Ok(HookAction::Continue);
        }
        let mut response = response.clone();
        if let Some(text) = text {
            response.content.set_text(text);
        }
        for (at, clean) in calls {
            response.calls[at].arguments = clean;
        }
        Ok(HookAction::Modify(Box::new(response)))
    }

    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        if self.excepts(request.name()) {
            return Ok(next.call(request).await?);
        }
        let mut counts = Counts::new();
        // Whoever stands further out may have put something in that the model did not say.
        if self.options.output {
            let cleaned = self.scanner.clean_value(&mut request.arguments, &mut counts);
            if let Err(blocked) = cleaned {
                return Err(Error::denied(self.refuse(&cx, "the call", blocked)).into());
            }
            self.tell(&cx, "the call", &counts);
        }
        let mut output = next.call(request).await?;
        if self.options.tool_results {
            counts.clear();
            // The same once more, for programs, in a form that is not looked at.
            output.structured = None;
            if let Err(unread) = refuse_unread(&output.content) {
                return Ok(ToolOutput::denied(format!("{unread}; the tool has run")));
            }
            match self.scanner.clean(output.content.text(), &mut counts) {
                Ok(Some(clean)) => output.content.set_text(clean),
                Ok(None) => {}
                Err(blocked) => {
                    let why = self.refuse(&cx, "the result", blocked);
                    return Ok(ToolOutput::denied(format!("{why}; the tool has run")));
                }
            }
            self.tell(&cx, "the result", &counts);
        }
        Ok(output)
    }
}
