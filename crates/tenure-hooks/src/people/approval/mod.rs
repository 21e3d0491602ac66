//! A person decides about tool calls.

mod options;
mod rule;

pub(super) use options::ApprovalOptions;
pub use rule::{ApprovalRule, Decision};

use super::condition::render;
use crate::words::fits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::time::Duration;
use tenure_core::ask::{Answer, Ask, check};
use tenure_core::context::{ToolCx, TurnCx};
use tenure_core::drive::Input;
use tenure_core::hook::{
    AgentLifecycle, Flow, HookError, IntoRegistration, Point, Points, Policy, Registration, hook,
};
use tenure_core::model::ModelRequest;
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_core::{Error, NextTool};
use tenure_macros::lifecycle;

/// What follows when a call is rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnReject {
    /// The model reads why, and goes on.
    #[default]
    Tell,
    /// The turn ends as denied, when the other calls of the batch have ended.
    End,
}

/// For how long an approval counts for the same tool with the same arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Remember {
    /// For the run.
    ForRun,
    /// For as long as the agent lives.
    ForThread,
}

/// A person decides about tool calls before they are made: approve, edit, reject, or respond.
///
/// Each call is a question of its own, and all questions of a batch are put at once; an answer
/// belongs to the call that it was asked for, in whatever order answers come. What a person edits
/// goes through the guards as what a model writes does. Where there is nobody to ask, the call is
/// denied.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_core::ask::{Answer, PendingAsk};
/// use tenure_hooks::people::{Approval, ApprovalRule, Decision};
/// # use tenure_models::Passthrough;
///
/// let pay = ApprovalRule::new()
///     .allow([Decision::Approve, Decision::Reject])
///     .when("arguments.amount > 100")?;
/// let agent = Agent::builder("clerk")
///     .model(Passthrough::new())
///     .with_lifecycle(Approval::new().tool("delete_*").tool_with("pay", pay))
///     .on_ask(|_: &PendingAsk| Some(Answer::Reject("not today".into())))
///     .build()?;
/// # Ok::<_, tenure_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
#[doc(alias = "HITL")]
pub struct Approval {
    tools: Vec<(String, Option<ApprovalRule>)>,
    prefix: String,
    edit_notice: bool,
    on_reject: OnReject,
    expires_after: Option<Duration>,
    remember: Option<Remember>,
    attempts: usize,
}

impl Default for Approval {
    fn default() -> Self {
        Self {
            tools: Vec::new(),
            prefix: "Tool execution requires approval".to_owned(),
            edit_notice: true,
            on_reject: OnReject::default(),
            expires_after: None,
            remember: None,
            attempts: 3,
        }
    }
}

impl Approval {
    /// Asks about nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks about every call of this tool; a name, in which `*` stands for any text.
    pub fn tool(self, tool: impl Into<String>) -> Self {
        self.tool_with(tool, ApprovalRule::new())
    }

    /// Asks about the calls of this tool as the rule says. A whole name beats one with `*`, of those
    /// the longer one counts, and of equals the one that asks.
    pub fn tool_with(mut self, tool: impl Into<String>, rule: ApprovalRule) -> Self {
        self.tools.push((tool.into(), Some(rule)));
        self
    }

    /// Asks about no call of this tool.
    pub fn never(mut self, tool: impl Into<String>) -> Self {
        self.tools.push((tool.into(), None));
        self
    }

    /// How the question begins, where a rule has no description.
    pub fn description_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Whether the model is told, behind the result, which arguments a person changed. What they
    /// became is not said: only the guards further in know what of it a model may read.
    pub fn edit_notice(mut self, is_told: bool) -> Self {
        self.edit_notice = is_told;
        self
    }

    /// What follows when a call is rejected.
    pub fn on_reject(mut self, what: OnReject) -> Self {
        self.on_reject = what;
        self
    }

    /// How long a question stands. After that the call is rejected.
    pub fn expires_after(mut self, after: Duration) -> Self {
        self.expires_after = Some(after);
        self
    }

    /// Lets an approval count for further calls of the same tool with the same arguments.
    pub fn remember(mut self, span: Remember) -> Self {
        self.remember = Some(span);
        self
    }

    /// How often a question is put when answers are not allowed or do not fit. Then the call is
    /// rejected.
    pub fn attempts(mut self, attempts: usize) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// The rule for a tool: the one with the most letters in its name that are no wildcards. Where
    /// two fit equally well, nobody said that a person need not be asked.
    fn rule(&self, tool: &str) -> Option<&ApprovalRule> {
        let letters = |name: &str| name.chars().filter(|c| !matches!(c, '*' | '?')).count();
        let fitting = self.tools.iter().filter(|(name, _)| fits(name, tool));
        let asks = |rule: &Option<ApprovalRule>| match rule {
            Some(rule) if rule.when.is_none() => 2,
            Some(_) => 1,
            None => 0,
        };
        fitting.max_by_key(|(name, rule)| (name == tool, letters(name), asks(rule)))?.1.as_ref()
    }
}

impl IntoRegistration for Approval {
    fn into_registration(self) -> Registration {
        let mut points = Points::from(Point::WrapToolCall);
        if self.on_reject == OnReject::End {
            points = points.with(Point::BeforeAgent).with(Point::BeforeModel);
        }
        // A call that is tried again was approved already; what is written down is what was decided.
        let within = ["audit", "call_limit", "tool_retry", "result_schema", "timeout"];
        let registration = hook(Asks(self))
            .named("approval")
            .kind("approval")
            .policy(Policy::Deny)
            .only(points)
            .inside("tool_errors");
        within.into_iter().fold(registration, Registration::outside)
    }
}

/// Where it is kept that a call was rejected, and so ends the turn.
const REJECTED: &str = "_approval.rejected";
/// What core says in place of somebody who did not answer.
const TOO_LATE: &str = "nobody answered in time";

/// What was found before anybody is asked. It is recorded, so that a run that goes on does as it did:
/// a condition that has changed meanwhile must not let through what a person has rejected.
#[derive(Serialize, Deserialize)]
struct Gate {
    /// The question; none, if the call may be made without one.
    prompt: Option<String>,
    /// Whether there is somebody to ask.
    can_ask: bool,
}

struct Asks(Approval);

impl Asks {
    fn gate(&self, cx: &ToolCx<'_>, rule: &ApprovalRule, request: &ToolRequest) -> Gate {
        let user = cx.context().map(|context| context.user_id().to_owned());
        let seen = json!({
            "tool": {
                "name": request.name(),
                "description": cx.tool().map(|spec| spec.description.as_str()),
            },
            "arguments": request.arguments,
            "agent": { "name": cx.agent_name() },
            "user": user.unwrap_or_default(),
        });
        let asks = rule.when.as_ref().is_none_or(|when| {
            // What cannot be decided is for a person to decide.
            when.holds(&seen).unwrap_or_else(|why| {
                tracing::warn!(tool = request.name(), "a condition cannot be decided: {why}");
                true
            })
        });
        let can_ask = cx.approved() || cx.can_ask();
        if !asks || self.is_remembered(cx, request) {
            return Gate { prompt: None, can_ask };
        }
        let usual = || format!("{}: {}", self.0.prefix, request.name());
        let prompt = rule.description.as_ref().map_or_else(usual, |template| {
            render(template, &seen).unwrap_or_else(|why| {
                tracing::warn!(tool = request.name(), "a description cannot be made: {why}");
                usual()
            })
        });
        Gate { prompt: Some(prompt), can_ask }
    }

    /// Where an approval of this call is kept, and what stands there.
    fn remembered(&self, cx: &ToolCx<'_>, request: &ToolRequest) -> Option<(String, Value)> {
        let span = self.0.remember?;
        let mut hash = Sha256::new();
        hash.update(request.name());
        hash.update([0]);
        hash.update(request.arguments.to_string());
        let hash: String = hash.finalize().iter().take(16).map(|it| format!("{it:02x}")).collect();
        let value = match (span, cx.steps()) {
            (Remember::ForThread, _) => json!(true),
            (Remember::ForRun, Some(steps)) => json!(steps.log().run_id().to_string()),
            (Remember::ForRun, None) => json!(cx.run_id().map(|run| run.to_string())),
        };
        Some((format!("_approval.approved.{hash}"), value))
    }

    fn is_remembered(&self, cx: &ToolCx<'_>, request: &ToolRequest) -> bool {
        self.remembered(cx, request).is_some_and(|(key, value)| cx.state(&key) == Some(value))
    }

    /// Asks until an answer may count; `None` if none did.
    async fn ask(
        &self,
        cx: &ToolCx<'_>,
        rule: &ApprovalRule,
        request: &ToolRequest,
        prompt: &str,
    ) -> Result<Option<Answer>, Error> {
        let allowed: Vec<_> = rule.allowed.iter().map(|decision| decision.as_str()).collect();
        let mut complaint = None;
        for _ in 0..self.0.attempts {
            let prompt = match complaint {
                Some(why) => format!("{prompt}\nThe last answer does not count: {why}"),
                None => prompt.to_owned(),
            };
            let mut ask = Ask::approval(prompt, request.arguments.clone())
                .form(json!({ "allowed_decisions": allowed }));
            if let Some(schema) = &rule.args_schema {
                ask = ask.schema(schema.clone());
            }
            if let Some(after) = self.0.expires_after {
                ask = ask.expires_after(after);
            }
            let answer = cx.ask(ask).await?;
            let is_late = matches!(&answer, Answer::Reject(why) if why == TOO_LATE);
            match judge(cx, rule, &answer) {
                Ok(()) => return Ok(Some(answer)),
                // Time that is up is up, whatever may be answered.
                Err(_) if is_late => return Ok(Some(answer)),
                Err(why) => complaint = Some(why),
            }
        }
        Ok(None)
    }

    /// A call that is not made.
    fn reject(&self, cx: &ToolCx<'_>, tool: &str, why: &str) -> Result<ToolOutput, Error> {
        let why = if why.trim().is_empty() { "no reason was given" } else { why };
        let message = format!("a person rejected the call of `{tool}`: {why}");
        if self.0.on_reject == OnReject::End {
            cx.set_state(REJECTED, message.as_str())?;
        }
        Ok(ToolOutput::denied(message))
    }
}

/// What the model is told of arguments that a person changed: the names that it wrote itself, and
/// no values.
fn notice(written: &Value, edited: &Value) -> String {
    let fields = written.as_object().into_iter().flatten();
    let changed = fields.filter(|(name, value)| edited.get(name) != Some(value));
    let mut changed: Vec<_> = changed.map(|(name, _)| format!("`{name}`")).collect();
    changed.sort_unstable();
    match changed.is_empty() {
        true => "\n\n(A person changed the arguments.)".to_owned(),
        false => format!("\n\n(A person changed the arguments: {}.)", changed.join(", ")),
    }
}

/// Whether an answer may count.
fn judge(cx: &ToolCx<'_>, rule: &ApprovalRule, answer: &Answer) -> Result<(), String> {
    let decision = Decision::of(answer);
    if !rule.allowed.contains(&decision) {
        let allowed: Vec<_> = rule.allowed.iter().map(|decision| decision.as_str()).collect();
        let (found, allowed) = (decision.as_str(), allowed.join(", "));
        return Err(format!("`{found}` is not allowed here; allowed are: {allowed}"));
    }
    let Answer::Edit(arguments) = answer else { return Ok(()) };
    if !arguments.is_object() {
        return Err("the edited arguments are no JSON object".to_owned());
    }
    let own = cx.tool().map(|spec| &spec.parameters);
    own.into_iter()
        .chain(&rule.args_schema)
        .try_for_each(|schema| fits_schema(schema, arguments))
        .map_err(|why| format!("the edited arguments do not fit: {why}"))
}

#[cfg(feature = "schema")]
fn fits_schema(schema: &Value, value: &Value) -> Result<(), String> {
    // What core looks at has the better words.
    check(schema, value).map_err(|misfit| misfit.to_string())?;
    let validator = jsonschema::validator_for(schema).map_err(|error| error.to_string())?;
    validator.validate(value).map_err(|error| error.to_string())
}

#[cfg(not(feature = "schema"))]
fn fits_schema(schema: &Value, value: &Value) -> Result<(), String> {
    check(schema, value).map_err(|misfit| misfit.to_string())
}

/// Why nothing can be held against a schema, if that is so.
fn check_schema(schema: &Value) -> Result<(), String> {
    if !schema.is_object() {
        return Err("a JSON Schema is a table".to_owned());
    }
    #[cfg(feature = "schema")]
    jsonschema::validator_for(schema).map_err(|error| format!("it is no JSON Schema: {error}"))?;
    Ok(())
}

#[lifecycle]
impl AgentLifecycle for Asks {
    async fn before_agent(&self, cx: TurnCx<'_>, _input: &mut Input) -> Result<Flow, HookError> {
        // What was rejected in an earlier turn has ended that one.
        if cx.state(REJECTED).is_some_and(|it| !it.is_null()) {
            cx.set_state(REJECTED, Value::Null)?;
        }
        Ok(Flow::Continue)
    }

    async fn before_model(
        &self,
        cx: TurnCx<'_>,
        _request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        match cx.state(REJECTED) {
            Some(Value::String(why)) => Err(Error::denied(why).into()),
            _ => Ok(Flow::Continue),
        }
    }

    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        let Some(rule) = self.0.rule(request.name()) else {
            cx.skipped();
            return Ok(next.call(request).await?);
        };
        let gate = cx.step("gate", async { Ok(self.gate(&cx, rule, request)) }).await?;
        let Some(prompt) = gate.prompt else {
            cx.skipped();
            return Ok(next.call(request).await?);
        };
        let name = request.name().to_owned();
        if !gate.can_ask {
            return Ok(ToolOutput::denied(format!(
                "the call of `{name}` needs the approval of a person, and nobody is there to ask; \
                 it was not made"
            )));
        }
        let Some(answer) = self.ask(&cx, rule, request, &prompt).await? else {
            let why = format!("none of {} answers could count", self.0.attempts);
            return Ok(self.reject(&cx, &name, &why)?);
        };
        match answer {
            Answer::Approve => {
                if let Some((key, value)) = self.remembered(&cx, request) {
                    cx.set_state(key, value)?;
                }
                Ok(next.call(request).await?)
            }
            Answer::Edit(arguments) => {
                let notice = notice(&request.arguments, &arguments);
                request.arguments = arguments;
                let mut output = next.call(request).await?;
                if self.0.edit_notice {
                    output.content.push(&*notice);
                }
                Ok(output)
            }
            Answer::Reject(why) => Ok(self.reject(&cx, &name, &why)?),
            Answer::Respond(text) => Ok(ToolOutput::text(text)),
        }
    }
}
