//! Everything that a flow says about who speaks, and the router of it.

use super::handoff::{HandoffKind, HandoffRule, Handoffs};
use super::{Auto, Pattern, Random, ReplyLimits, RoundRobin, Router, Selector, Target};
use std::collections::BTreeMap;
use std::sync::Arc;
use tenure_core::Error;

/// Everything that a flow says about who speaks.
///
/// ```
/// use tenure_flow::route::handoff::{HandoffRule, Source};
/// use tenure_flow::route::{Pattern, Routing, Target};
///
/// let planner = || Source::Agent("planner".into());
/// let routing = Routing::new(Pattern::Default)
///     .handoffs([
///         HandoffRule::when(planner(), Target::End, "${done} == True")?,
///         HandoffRule::after(planner(), Target::Agent("writer".into())),
///     ])
///     .declared(["done"])
///     .reply_limit("writer", 3);
/// assert_eq!(routing.router()?.name(), "default");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Routing {
    pattern: Pattern,
    handoffs: Vec<HandoffRule>,
    declared: Option<Vec<Box<str>>>,
    selector: Option<Selector>,
    descriptions: Vec<(Arc<str>, String)>,
    limits: BTreeMap<Arc<str>, usize>,
    otherwise: Option<Target>,
}

impl Routing {
    /// A pattern.
    pub fn new(pattern: Pattern) -> Self {
        Self { pattern, ..Self::default() }
    }

    /// Who takes over from whom, in this order. Only [`Pattern::Default`] follows them.
    pub fn handoffs(mut self, rules: impl IntoIterator<Item = HandoffRule>) -> Self {
        self.handoffs.extend(rules);
        self
    }

    /// Which variables are declared: the conditions of handoffs see no others. Without this they
    /// see everything that is there.
    pub fn declared(mut self, names: impl IntoIterator<Item = impl Into<Box<str>>>) -> Self {
        self.declared.get_or_insert_default().extend(names.into_iter().map(Into::into));
        self
    }

    /// Who picks speakers and judges conditions in plain words.
    pub fn selector(mut self, selector: Selector) -> Self {
        self.selector = Some(selector);
        self
    }

    /// What an agent is good for, as the one who picks speakers is told.
    pub fn describe(mut self, agent: impl Into<Arc<str>>, description: impl Into<String>) -> Self {
        self.descriptions.push((agent.into(), description.into()));
        self
    }

    /// How often an agent may reply before the person is asked (`max_consecutive_auto_reply`).
    pub fn reply_limit(mut self, agent: impl Into<Arc<str>>, limit: usize) -> Self {
        self.limits.insert(agent.into(), limit);
        self
    }

    /// What follows an agent that no handoff speaks of. By default the person is asked if one takes
    /// part, and the chat is complete otherwise.
    pub fn otherwise(mut self, target: Target) -> Self {
        self.otherwise = Some(target);
        self
    }

    /// Whether it needs somebody who picks speakers or judges conditions.
    pub fn needs_selector(&self) -> bool {
        let is_judged = |rule: &HandoffRule| matches!(rule.kind, HandoffKind::Model { .. });
        match self.pattern {
            Pattern::Auto => true,
            Pattern::Default => self.handoffs.iter().any(is_judged),
            Pattern::RoundRobin | Pattern::Random => false,
        }
    }

    /// The router of it. The error says what it needs and does not have.
    pub fn router(self) -> Result<Arc<dyn Router>, Error> {
        if self.needs_selector() && self.selector.is_none() {
            return Err(Error::invalid(match self.pattern {
                Pattern::Auto => "the pattern Auto needs a selector that picks the speakers",
                _ => "handoffs with conditions in plain words need a selector that judges them",
            }));
        }
        let router: Arc<dyn Router> = match (self.pattern, self.selector) {
            (Pattern::RoundRobin, _) => Arc::new(RoundRobin),
            (Pattern::Random, _) => Arc::new(Random),
            (Pattern::Auto, Some(selector)) => {
                let describe = |auto: Auto, (agent, it)| auto.describe(agent, it);
                Arc::new(self.descriptions.into_iter().fold(Auto::new(selector), describe))
            }
            (Pattern::Default | Pattern::Auto, selector) => {
                let mut handoffs = Handoffs::new(self.handoffs);
                if let Some(declared) = self.declared {
                    handoffs = handoffs.declared(declared);
                }
                if let Some(selector) = selector {
                    handoffs = handoffs.selector(selector);
                }
                if let Some(target) = self.otherwise {
                    handoffs = handoffs.otherwise(target);
                }
                Arc::new(handoffs)
            }
        };
        Ok(match self.limits.is_empty() {
            true => router,
            false => Arc::new(ReplyLimits::new(router, self.limits)),
        })
    }
}
