//! What a registration says of a hook.

use super::{AgentLifecycle, Limit, Point, Points};
use crate::phase::PhasePattern;
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
