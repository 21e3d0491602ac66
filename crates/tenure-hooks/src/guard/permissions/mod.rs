//! Which tools may be called, and with which arguments.

pub(crate) mod argument;
mod beneath;
mod condition;
mod options;
mod rule;

pub use condition::Condition;
pub(super) use options::PermissionsOptions;

use super::ending;
use super::glob::Glob;
use crate::words::own_key;
use argument::Argument;
use rule::{Rule, Rules, Says, Verdict};
use serde_json::json;
use std::sync::Arc;
use tenure_core::ask::{Answer, Ask};
use tenure_core::context::{ToolCx, TurnCx};
use tenure_core::hook::{
    AgentLifecycle, Flow, HookError, IntoRegistration, Point, Policy, Registration, hook,
};
use tenure_core::model::ModelRequest;
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_core::{Error, NextTool, blocking};
use tenure_macros::lifecycle;

/// The mark of a turn that is to end.
const ENDS: &str = "_permissions";

/// Which tools may be called, and with which arguments: rules in order, of which the first one that
/// is about a call counts. What no rule is about is denied.
///
/// It stands next to the tool, so it judges what is really done: also what another hook or a person
/// made of the arguments. A call that is denied gets `Tool 'x' not authorized` and the reason as its
/// result; [`Permissions::ends_turn`] ends the turn as denied in its stead.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::guard::{Condition, Permissions};
/// # use tenure_models::Passthrough;
///
/// let permissions = Permissions::new()
///     .deny("read_file").where_("path", Condition::glob(["**/.env"])).why("it holds secrets")
///     .allow("read_file").where_("path", Condition::beneath("data"))
///     .allow("shell").where_("command", Condition::one_of(["ls", "pwd"]));
/// let agent = Agent::builder("careful")
///     .model(Passthrough::new())
///     .with_lifecycle(permissions)
///     .build()?;
/// # Ok::<_, tenure_core::Error>(())
/// ```
///
/// A condition is about an argument by its place: `path`, `options.mode`, `files.0`, `files.*` for
/// every item, or a JSON Pointer as `/options/mode`. A rule about an argument that is missing is not
/// about the call; nor is one that allows, if only some of the items have it. An argument of another
/// kind than the rule speaks of denies the call, as everything does that cannot be judged. So say what is allowed rather than what is not.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Permissions {
    rules: Rules,
    ends: bool,
}

impl Permissions {
    /// Nothing is allowed yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows the calls of this tool, or of those that the pattern names (`read_*`).
    pub fn allow(self, tool: &str) -> Self {
        self.rule(Says::Allow, tool)
    }

    /// Denies them.
    pub fn deny(self, tool: &str) -> Self {
        self.rule(Says::Deny, tool)
    }

    /// Asks a person about them. Where nobody can be asked, they are denied.
    pub fn ask(self, tool: &str) -> Self {
        self.rule(Says::Ask, tool)
    }

    /// Has the rule that was added last be only about calls with such an argument. Several of these
    /// have to hold together.
    pub fn where_(mut self, argument: &str, condition: Condition) -> Self {
        let broken = match (Argument::new(argument), self.rules.rules.last_mut()) {
            (Err(why), _) => Some(why),
            (_, None) => Some("a condition stands before the first rule".to_owned()),
            (Ok(argument), Some(rule)) => {
                let broken = condition.broken.clone();
                rule.wheres.push((argument, condition));
                broken
            }
        };
        self.rules.broken = self.rules.broken.or(broken);
        self
    }

    /// Why the rule that was added last denies, for the model to read.
    pub fn why(mut self, why: impl Into<String>) -> Self {
        if let Some(rule) = self.rules.rules.last_mut() {
            rule.why = Some(why.into());
        }
        self
    }

    /// Allows what no rule is about.
    pub fn allow_others(mut self) -> Self {
        self.rules.open = true;
        self
    }

    /// Ends the turn as denied when a call is denied, once the other calls of its batch are over.
    pub fn ends_turn(mut self) -> Self {
        self.ends = true;
        self
    }

    fn rule(mut self, says: Says, tool: &str) -> Self {
        match Glob::of_names(tool) {
            Ok(tool) => {
                self.rules.rules.push(Rule { says, tool, wheres: Vec::new(), why: None });
            }
            Err(why) => self.rules.broken = self.rules.broken.or(Some(why)),
        }
        self
    }
}

impl IntoRegistration for Permissions {
    fn into_registration(self) -> Registration {
        let Self { rules, ends } = self;
        let registration = hook(Guard { rules: Arc::new(rules), ends })
            .named("permissions")
            .kind("permissions")
            .policy(Policy::Deny)
            .innermost()
            .inside("pii");
        if ends { registration } else { registration.only(Point::WrapToolCall) }
    }
}

struct Guard {
    rules: Arc<Rules>,
    ends: bool,
}

impl Guard {
    /// What is said of the call as it is now. On the file system that may be something else when the
    /// run goes on later: what was denied stays denied, and what was allowed is looked at again.
    async fn judge(&self, cx: ToolCx<'_>, request: &ToolRequest) -> Result<Verdict, HookError> {
        let name = request.name();
        if !self.rules.look(name) {
            return Ok(self.rules.judge(name, &request.arguments));
        }
        let (rules, name) = (self.rules.clone(), name.to_owned());
        let arguments = request.arguments.clone();
        let now = blocking(move || rules.judge(&name, &arguments)).await;
        let denied = match &now {
            Verdict::Deny(why) => Some(why.clone()),
            _ => None,
        };
        let denied: Option<String> = cx.step("judged", async { Ok(denied) }).await?;
        Ok(denied.map_or(now, Verdict::Deny))
    }

    /// Why the call is denied, if it is. A person may have changed its arguments meanwhile.
    async fn denial(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
    ) -> Result<Option<String>, HookError> {
        match self.judge(cx, request).await? {
            Verdict::Allow => return Ok(None),
            Verdict::Deny(why) => return Ok(Some(why)),
            Verdict::Ask => {}
        }
        let action = json!({ "tool": request.name(), "arguments": request.arguments });
        let prompt = format!("May the tool `{}` be called?", request.name());
        match cx.ask(Ask::approval(prompt, action)).await? {
            Answer::Approve => Ok(None),
            Answer::Reject(why) if why.is_empty() => Ok(Some("a person said no".to_owned())),
            Answer::Reject(why) | Answer::Respond(why) => Ok(Some(why)),
            Answer::Edit(edited) => {
                // Whoever is asked changes the arguments, or the whole action.
                let edited = edited.get("arguments").cloned().unwrap_or(edited);
                if !edited.is_object() {
                    return Ok(Some("the edited arguments are not an object".to_owned()));
                }
                request.arguments = edited;
                Ok(match self.judge(cx, request).await? {
                    Verdict::Deny(why) => Some(why),
                    Verdict::Allow | Verdict::Ask => None,
                })
            }
        }
    }
}

#[lifecycle]
impl AgentLifecycle for Guard {
    async fn before_model(
        &self,
        cx: TurnCx<'_>,
        _request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        match ending::marked(cx, &own_key(&cx, "permissions", ENDS))? {
            Some(why) => Err(Error::denied(why).into()),
            None => Ok(Flow::Continue),
        }
    }

    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        let Some(why) = self.denial(cx, request).await? else {
            return Ok(next.call(request).await?);
        };
        let message = format!("Tool '{}' not authorized: {why}", request.name());
        if self.ends {
            ending::mark(cx, &own_key(&cx, "permissions", ENDS), &message)?;
        }
        Ok(ToolOutput::denied(message))
    }
}
