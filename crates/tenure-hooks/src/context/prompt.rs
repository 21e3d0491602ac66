//! An instruction that is made anew for each model call.

use crate::input::marked::{Joint, Side, joined};
use crate::input::seen::{AT_MODEL, Moment, Template};
use crate::ready::{About, Makings, Options, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tenure_core::Error;
use tenure_core::context::TurnCx;
use tenure_core::hook::{AgentLifecycle, Flow, HookError, IntoRegistration, Registration, hook};
use tenure_core::model::ModelRequest;
use tenure_macros::lifecycle;

/// Where a text stands that is made for each model call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PromptPlace {
    /// Before the instruction.
    #[default]
    Before,
    /// Behind the instruction.
    After,
    /// In place of the instruction.
    Instead,
}

/// Makes a part of the instruction anew for each model call, of a template that sees the time, the
/// user, the agent's state and the chat's variables.
///
/// It never piles up: each call has it once. What a template says is on record in a recorded run, so
/// that a run that goes on has said the same. A template is strict (what is not there is an error),
/// reads no files, includes no other template, and may do only so much work.
///
/// It sees `now` (`iso`, `date`, `time`, `weekday`, `year`, `month`, `day`, `hour`, `minute`,
/// `second`, `unix`; all in UTC), `agent.name`, `user`, `variables`, `state`, `input`, `step`,
/// `tools`, `chars` and `usage` (`input`, `output`, `total`, `cost`).
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::context::DynamicPrompt;
/// # use tenure_models::Passthrough;
///
/// let prompt = DynamicPrompt::new("Today is {{ now.weekday }}, {{ now.date }}.")?;
/// let agent = Agent::builder("clerk").model(Passthrough::new()).with_lifecycle(prompt).build()?;
/// assert!(DynamicPrompt::new("{{ nobody }}").is_err());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct DynamicPrompt {
    template: Arc<Template>,
    place: PromptPlace,
}

impl DynamicPrompt {
    /// What the template says, before the instruction.
    pub fn new(template: &str) -> Result<Self, Refusal> {
        let template = Template::compile(template, AT_MODEL);
        let template = template.map_err(|why| Refusal::new("template", why))?;
        Ok(Self { template: Arc::new(template), place: PromptPlace::default() })
    }

    /// Where it stands.
    pub fn place(mut self, place: PromptPlace) -> Self {
        self.place = place;
        self
    }
}

impl IntoRegistration for DynamicPrompt {
    fn into_registration(self) -> Registration {
        hook(Prompting { own: self, joint: Joint::default() })
            .named("prompt")
            .kind("prompt")
            // What it says is a step of its own, and it has to know what it said before.
            .again_on_resume()
            .outside("todo")
            .outside("dedupe")
            .outside("clear_tool_results")
            .outside("select_tools")
            .outside("window")
            .outside("cheaper_model")
    }
}

struct Prompting {
    own: DynamicPrompt,
    joint: Joint,
}

/// What was said at the step before.
struct Said(Arc<str>);

impl Prompting {
    /// What the template says. A recorded run has it on record.
    async fn say(&self, cx: TurnCx<'_>, request: &ModelRequest) -> Result<Arc<str>, Error> {
        let template = &self.own.template;
        let say = || template.render(&Moment::of_request(cx, request)).map_err(Error::invalid);
        if cx.steps().is_none() {
            return say();
        }
        let said: String = cx.step("prompt", async { say().map(|said| said.to_string()) }).await?;
        Ok(said.trim().into())
    }

    /// The instruction without what was said at the step before: a hook that keeps an edited request
    /// keeps that too.
    fn clear(&self, said: &str, request: &mut ModelRequest) {
        let Some(instruction) = &request.instruction else { return };
        let without = match self.own.place {
            PromptPlace::Before => {
                instruction.strip_prefix(said).map(|rest| rest.trim_start_matches('\n'))
            }
            PromptPlace::After => {
                instruction.strip_suffix(said).map(|rest| rest.trim_end_matches('\n'))
            }
            PromptPlace::Instead => None,
        };
        if let Some(without) = without {
            request.instruction = (!without.is_empty()).then(|| without.into());
        }
    }
}

#[lifecycle]
impl AgentLifecycle for Prompting {
    async fn before_model(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        let before = cx.carried::<Said>();
        if let Some(before) = &before {
            self.clear(&before.0, request);
        }
        let said = self.say(cx, request).await?;
        if said.is_empty() {
            return Ok(Flow::Continue);
        }
        let side = match self.own.place {
            PromptPlace::Before => Some(Side::Before),
            PromptPlace::After => Some(Side::After),
            PromptPlace::Instead => None,
        };
        match side {
            Some(side) => self.joint.put(&mut request.instruction, &said, |instruction| {
                joined(instruction, &said, side)
            }),
            None => request.instruction = Some(said.clone()),
        }
        if before.is_none_or(|before| before.0 != said) {
            cx.carry(Said(said));
        }
        Ok(Flow::Continue)
    }
}

/// What `prompt` takes by `with`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PromptOptions {
    /// The template. It sees `now` (`iso`, `date`, `time`, `weekday`, `year`, `month`, `day`, `hour`,
    /// `minute`, `second`, `unix`; in UTC), `agent.name`, `user`, `variables`, `state`, `input`,
    /// `step`, `tools`, `chars` and `usage`.
    template: String,
    /// Where it stands: `before` the instruction, `after` it, or `instead` of it.
    place: PromptPlace,
}

impl Options for PromptOptions {
    const ABOUT: About = About {
        name: "prompt",
        summary: "Makes a part of the instruction anew for each model call, of a template.",
        covers: &["UC-2.2"],
        peers: &["dynamic_prompt"],
        example: r#"{ "template": "Today is {{ now.weekday }}, {{ now.date }} (UTC)." }"#,
    };

    fn make(self, _: &dyn Makings) -> Result<Registration, Refusal> {
        if self.template.trim().is_empty() {
            return Err(Refusal::new("template", "there is none; write what the model is to read"));
        }
        Ok(DynamicPrompt::new(&self.template)?.place(self.place).into_registration())
    }
}
