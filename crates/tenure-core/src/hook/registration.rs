//! What a registration says of a hook.

use super::text::{Text, TextFilter};
use super::{AgentLifecycle, Limit, Point, Points};
use crate::phase::PhasePattern;
use crate::secret::PassScope;
use crate::tool::Tool;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What a failure of a hook means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// What the hook stood before does not happen; the scope fails with the hook's error.
    Abort,
    /// What the hook stood before does not happen; it counts as denied. This makes a hook a guard:
    /// a guard never fails open. Not possible on ends and transitions.
    Deny,
    /// The failure is recorded and the agent goes on.
    Continue,
}

impl Policy {
    /// The policy's name as files spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Abort => "abort",
            Self::Deny => "deny",
            Self::Continue => "continue",
        }
    }
}

/// Where an entry comes from. Entries of an earlier origin stand before those of a later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Origin {
    /// The platform's own.
    Platform,
    /// A workflow file.
    Workflow,
    /// An agent card.
    Card,
    /// Rust code.
    #[default]
    Rust,
}

/// A hook with everything that is said of it: name, policy, limit and place.
///
/// ```
/// use std::time::Duration;
/// use tenure_core::hook::{self, Policy};
///
/// let guard = hook::wrap_tool_call(|_cx, request, next| {
///     Box::pin(async move { Ok(next.call(request).await?) })
/// });
/// let registration =
///     hook::hook(guard).named("guard").policy(Policy::Deny).limit(Duration::from_secs(2));
/// # let _ = registration;
/// ```
#[derive(Clone)]
#[must_use]
pub struct Registration {
    pub(crate) hook: Arc<dyn AgentLifecycle>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) points: Points,
    pub(crate) policy: Option<Policy>,
    pub(crate) policy_at: Vec<(Point, Policy)>,
    pub(crate) limit: Option<Duration>,
    pub(crate) observes: bool,
    pub(crate) origin: Origin,
    pub(crate) order: i32,
    pub(crate) before: Vec<Arc<str>>,
    pub(crate) after: Vec<Arc<str>>,
    pub(crate) transition: Option<(PhasePattern, PhasePattern)>,
    pub(crate) again: bool,
    pub(crate) kind: Option<&'static str>,
    pub(crate) stands: Stands,
    pub(crate) text: Text,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) tool_limit: Option<Duration>,
    pub(crate) redacts: Option<(Arc<str>, PassScope, Pass)>,
}

/// A change to the texts of every sink. See [`Registration::redacts`].
type Pass = Arc<dyn Fn(&str, PassScope) -> Option<String> + Send + Sync>;

/// Where a hook has to stand among others, if they are there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stands {
    /// Around every hook of these kinds.
    pub(crate) outside: Vec<&'static str>,
    /// Within every hook of these kinds.
    pub(crate) inside: Vec<&'static str>,
    /// Next to the effect.
    pub(crate) innermost: bool,
}

/// Starts a registration of `hook`.
pub fn hook(hook: impl AgentLifecycle) -> Registration {
    Registration::shared(Arc::new(hook))
}

impl Registration {
    /// A registration of a hook that is shared with others.
    pub fn shared(hook: Arc<dyn AgentLifecycle>) -> Self {
        Self {
            points: hook.points(),
            hook,
            name: None,
            policy: None,
            policy_at: Vec::new(),
            limit: None,
            observes: false,
            origin: Origin::default(),
            order: 0,
            before: Vec::new(),
            after: Vec::new(),
            transition: None,
            again: false,
            kind: None,
            stands: Stands::default(),
            text: Text::Changes,
            tools: Vec::new(),
            tool_limit: None,
            redacts: None,
        }
    }

    /// The name under which reports, events and order constraints know it. Names are unique.
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The same registration of another hook, made of this one. Its points stay as they are.
    pub fn map_hook(
        mut self,
        make: impl FnOnce(Arc<dyn AgentLifecycle>) -> Arc<dyn AgentLifecycle>,
    ) -> Self {
        self.hook = make(self.hook);
        self
    }

    /// Whether a failure of it denies, at some point of its.
    pub fn is_guard(&self) -> bool {
        self.policy == Some(Policy::Deny)
            || self.policy_at.iter().any(|(_, policy)| *policy == Policy::Deny)
    }

    /// The points at which it is called.
    pub fn points(&self) -> Points {
        self.points
    }

    /// What a failure means, at every point that the hook has.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// What a failure means at this point; beats [`Registration::policy`].
    pub fn policy_at(mut self, point: Point, policy: Policy) -> Self {
        self.policy_at.push((point, policy));
        self
    }

    /// The time that each call may take.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Like [`Registration::limit`], for a limit that was read from text.
    pub fn limited(self, limit: Limit) -> Self {
        self.limit(limit.duration())
    }

    /// Says that the hook only watches. Its limit is 5 s, its failures are recorded and ignored,
    /// what it changes or returns is not used, and streams are not held back for it. So it can have
    /// no policy but `continue`.
    pub fn observes(mut self) -> Self {
        self.observes = true;
        self
    }

    /// Takes only these points of the hook.
    pub fn only(mut self, points: impl Into<Points>) -> Self {
        let points = points.into();
        self.points = self.points.iter().filter(|point| points.contains(*point)).collect();
        self
    }

    /// Places it before the entry of this name.
    pub fn before(mut self, name: impl Into<Arc<str>>) -> Self {
        self.before.push(name.into());
        self
    }

    /// Places it after the entry of this name.
    pub fn after(mut self, name: impl Into<Arc<str>>) -> Self {
        self.after.push(name.into());
        self
    }

    /// Within one origin, smaller orders come first; equal ones as registered. The default is 0.
    pub fn order(mut self, order: i32) -> Self {
        self.order = order;
        self
    }

    /// Where it comes from.
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// What kind of hook it is, for others that have to stand around it or within it: `retry`,
    /// `cache`.
    pub fn kind(mut self, kind: &'static str) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Has it stand around every hook of this kind that there is: its begins come earlier, its wraps
    /// are further out. An order that somebody asks for and that contradicts this is an error of
    /// the agent's build.
    pub fn outside(mut self, kind: &'static str) -> Self {
        self.stands.outside.push(kind);
        self
    }

    /// Has it stand within every hook of this kind that there is.
    pub fn inside(mut self, kind: &'static str) -> Self {
        self.stands.inside.push(kind);
        self
    }

    /// Has it stand next to the effect: within every hook that wraps the same calls and may change
    /// them. For guards, which then judge what is really done.
    pub fn innermost(mut self) -> Self {
        self.stands.innermost = true;
        self
    }

    /// Says that the hook never changes what a model said, and never has it said again once some of
    /// it [is out](crate::context::TurnCx::is_text_out): a reader of the stream need not wait for
    /// it.
    pub fn keeps_text(mut self) -> Self {
        self.text = Text::Keeps;
        self
    }

    /// Says what the hook does to a text on its way to a reader: the same, piece by piece, as it
    /// does to the whole of it. A reader of the stream then waits for pieces, and not for the whole.
    pub fn filters_text(mut self, filter: impl TextFilter) -> Self {
        self.text = Text::Filters(Arc::new(filter));
        self
    }

    /// Brings a tool along, which every agent with this hook then has.
    pub fn with_tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// The most time that a call of any tool of the agent may take, whatever else is said of it. What
    /// takes longer is an error result, on record like any other; waiting for a person does not count.
    pub fn limits_tools(mut self, limit: Duration) -> Self {
        self.tool_limit = Some(limit);
        self
    }

    /// Puts the texts of these sinks of the project through `pass`: what the hook keeps from an agent is
    /// not to be read in its events, its record or its logs either. A pass is told where
    /// a text goes, and returns `None` for one that stays as it is; of several with one name the last
    /// counts.
    pub fn redacts(
        mut self,
        name: impl Into<Arc<str>>,
        scope: PassScope,
        pass: impl Fn(&str, PassScope) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.redacts = Some((name.into(), scope, Arc::new(pass)));
        self
    }

    /// The tools that it brings along.
    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// The kinds of hooks that it has to stand around, and those that it has to stand within.
    pub fn stands(&self) -> (&[&'static str], &[&'static str]) {
        (&self.stands.outside, &self.stands.inside)
    }

    /// Whether it has to stand next to the effect.
    pub fn is_innermost(&self) -> bool {
        self.stands.innermost
    }

    /// Whether it only observes.
    pub fn is_observer(&self) -> bool {
        self.observes
    }

    /// Which kind of hook it is, if it says so.
    pub fn kind_name(&self) -> Option<&'static str> {
        self.kind
    }

    /// Says that what the hook decides at a begin is not recorded: it is called again when a run goes
    /// on in another process. For a hook that makes something which does not outlive its process, a
    /// connection for one.
    pub fn again_on_resume(mut self) -> Self {
        self.again = true;
        self
    }

    /// Calls `on_transition` only for transitions from `source` to `target`.
    pub fn on(mut self, source: impl Into<PhasePattern>, target: impl Into<PhasePattern>) -> Self {
        self.transition = Some((source.into(), target.into()));
        self
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("hook", &self.name.as_deref().unwrap_or(self.hook.name()))
            .field("points", &self.points)
            .field("policy", &self.policy)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// What `with_lifecycle` takes: a hook, or a [`Registration`] of one.
pub trait IntoRegistration {
    /// The registration.
    fn into_registration(self) -> Registration;
}

impl<H: AgentLifecycle> IntoRegistration for H {
    fn into_registration(self) -> Registration {
        hook(self)
    }
}

impl IntoRegistration for Registration {
    fn into_registration(self) -> Registration {
        self
    }
}
