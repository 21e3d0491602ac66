//! Following handoffs.

use super::judge::{Judge, could_not_tell};
use super::view::{View, in_words};
use super::{HandoffKind, HandoffRule, Scope, Source};
use crate::route::selector::Selector;
use crate::route::{RouteCx, Router, RoutingDecision, Target};
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tenure_core::Error;

/// Handoffs decide who speaks.
///
/// The initial agent begins. After somebody has spoken its conditions are looked at in the order of
/// the rules, and the first that holds decides; if none does, its last `after` rule. Without one the
/// agent that the person answered speaks again, and after an agent the person is asked, or the chat
/// is complete if there is none. Then the conditions are looked at that come before the chosen one's
/// reply: one that holds sends the turn elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Handoffs {
    rules: Vec<HandoffRule>,
    view: View,
    selector: Option<Selector>,
    otherwise: Option<Target>,
}

/// A rule that holds.
struct Holds<'a> {
    place: usize,
    rule: &'a HandoffRule,
    values: Map<String, Value>,
}

impl Handoffs {
    /// These rules. Their order counts.
    pub fn new(rules: impl IntoIterator<Item = HandoffRule>) -> Self {
        Self { rules: rules.into_iter().collect(), ..Self::default() }
    }

    /// Which variables are declared. Conditions see no others, but for the system's. Without this
    /// they see everything that is there.
    #[must_use]
    pub fn declared(mut self, names: impl IntoIterator<Item = impl Into<Box<str>>>) -> Self {
        self.view = View::of(names);
        self
    }

    /// Who judges the conditions that are in plain words.
    #[must_use]
    pub fn selector(mut self, selector: Selector) -> Self {
        self.selector = Some(selector);
        self
    }

    /// What follows an agent that no rule speaks of. By default the person is asked if one takes
    /// part, and the chat is complete otherwise.
    #[must_use]
    pub fn otherwise(mut self, target: Target) -> Self {
        self.otherwise = Some(target);
        self
    }

    /// The rules of a source, each with its place in the whole list.
    fn rules_of<'a>(&'a self, source: &Source) -> Vec<(usize, &'a HandoffRule)> {
        self.rules.iter().enumerate().filter(|(_, rule)| rule.source == *source).collect()
    }

    /// Who is next by what comes after the last speaker.
    async fn after(&self, cx: &RouteCx<'_>) -> Result<RoutingDecision, Error> {
        let source = match (cx.after_user, cx.last_agent) {
            (true, _) => Source::User,
            (false, Some(last)) => Source::Agent(last.clone()),
            (false, None) => return initial(cx, "it is the initial agent"),
        };
        let rules = self.rules_of(&source);
        let default = rules.iter().rfind(|(_, rule)| rule.kind == HandoffKind::After);
        if let Some(holds) = self.first(cx, &rules).await? {
            let mut decision = holds.decision(&format!("holds after `{source}`"));
            if let Some((_, HandoffRule { target: Target::Agent(other), .. })) = default
                && decision.target.as_str() != &**other
            {
                decision.fallback = Some(other.clone());
            }
            return Ok(decision);
        }
        if let Some((place, rule)) = default {
            let why = format!("after `{source}` comes `{}`", rule.target);
            let mut decision = RoutingDecision::new(rule.target.clone(), rule.says(*place, &why));
            decision.metadata = json!({ "rule": place + 1 });
            return Ok(decision);
        }
        self.unruled(cx, &source)
    }

    /// The first of the conditions after a reply that holds.
    async fn first<'a>(
        &self,
        cx: &RouteCx<'_>,
        rules: &[(usize, &'a HandoffRule)],
    ) -> Result<Option<Holds<'a>>, Error> {
        let mut judge = Judge::new(self.selector.as_ref(), &self.view, rules);
        for (place, rule) in rules {
            let holds = match &rule.kind {
                HandoffKind::Expression { scope: Scope::Post, .. } => {
                    self.evaluate(cx, *place, rule)
                }
                HandoffKind::Model { .. } => judge.holds(cx, *place).await?,
                _ => false,
            };
            if holds {
                return Ok(Some(self.found(cx, *place, rule)));
            }
        }
        Ok(None)
    }

    /// The first of the conditions before a reply that holds.
    fn before<'a>(&'a self, cx: &RouteCx<'_>, source: &Source) -> Option<Holds<'a>> {
        let rules = self.rules_of(source).into_iter();
        let mut pre = rules.filter(|(_, rule)| rule.scope() == Some(Scope::Pre));
        let (place, rule) = pre.find(|(place, rule)| self.evaluate(cx, *place, rule))?;
        Some(self.found(cx, place, rule))
    }

    /// Whether the expression of a rule holds. One that cannot be evaluated does not.
    fn evaluate(&self, cx: &RouteCx<'_>, place: usize, rule: &HandoffRule) -> bool {
        let HandoffKind::Expression { condition, .. } = &rule.kind else { return false };
        condition.holds(|name| self.view.value(cx, name)).unwrap_or_else(|error| {
            could_not_tell(cx, place, rule, &error);
            false
        })
    }

    fn found<'a>(&self, cx: &RouteCx<'_>, place: usize, rule: &'a HandoffRule) -> Holds<'a> {
        Holds { place, rule, values: self.view.values(cx, rule.variables()) }
    }

    /// Who is next if no rule says so.
    fn unruled(&self, cx: &RouteCx<'_>, source: &Source) -> Result<RoutingDecision, Error> {
        if *source == Source::User {
            return match cx.last_agent {
                Some(last) => {
                    Ok(RoutingDecision::agent(last.clone(), "the user has answered this agent"))
                }
                None => initial(cx, "the user has spoken, and it is the initial agent"),
            };
        }
        let target = match &self.otherwise {
            Some(target) => target.clone(),
            None if cx.has_user() => Target::User,
            None => Target::End,
        };
        let reason = match target {
            Target::End => format!("no handoff follows `{source}`: the chat is complete"),
            _ => format!("no handoff follows `{source}`: it goes to `{target}`"),
        };
        Ok(RoutingDecision::new(target, reason))
    }

    /// Sends the turn elsewhere for as long as a condition holds that comes before the reply.
    fn redirected(
        &self,
        cx: &RouteCx<'_>,
        mut decision: RoutingDecision,
    ) -> Result<RoutingDecision, Error> {
        let mut passed: Vec<(Source, String)> = Vec::new();
        loop {
            let source = match &decision.target {
                Target::Agent(name) => Source::Agent(name.clone()),
                Target::User => Source::User,
                Target::End => break,
            };
            let Some(holds) = self.before(cx, &source) else { break };
            if passed.iter().any(|(before, _)| *before == source) {
                let mut circle: Vec<_> = passed.iter().map(|(it, _)| format!("`{it}`")).collect();
                circle.push(format!("`{source}`"));
                return Err(Error::orchestration(format!(
                    "the handoffs before a reply go in a circle, so that nobody replies: {}; \
                     change the condition of one of them",
                    circle.join(" -> ")
                )));
            }
            let next = holds.decision(&format!("holds before `{source}` replies"));
            let reason = std::mem::replace(&mut decision, next).reason;
            passed.push((source, reason.into_owned()));
        }
        if !passed.is_empty() {
            let passed: Vec<_> = passed
                .iter()
                .map(|(source, reason)| json!({ "target": source.as_str(), "reason": reason }))
                .collect();
            decision.metadata["instead_of"] = passed.into();
        }
        Ok(decision)
    }
}

#[async_trait]
impl Router for Handoffs {
    async fn route(&self, cx: &RouteCx<'_>) -> Result<RoutingDecision, Error> {
        let decision = self.after(cx).await?;
        self.redirected(cx, decision)
    }

    fn name(&self) -> &str {
        "default"
    }

    fn is_determined(&self) -> bool {
        self.rules.iter().all(|rule| !matches!(rule.kind, HandoffKind::Model { .. }))
    }
}

impl Holds<'_> {
    fn decision(self, holds: &str) -> RoutingDecision {
        let condition = self.rule.condition().unwrap_or_default();
        let judged = match self.rule.kind {
            HandoffKind::Model { .. } => "the model finds that ",
            _ => "",
        };
        let why = format!("{judged}`{condition}` {holds}{}", in_words(&self.values));
        let reason = self.rule.says(self.place, &why);
        let mut decision = RoutingDecision::new(self.rule.target.clone(), reason);
        decision.metadata = match self.values.is_empty() {
            true => json!({ "rule": self.place + 1 }),
            false => json!({ "rule": self.place + 1, "variables": self.values }),
        };
        decision
    }
}

/// The decision for who begins.
fn initial(cx: &RouteCx<'_>, reason: &'static str) -> Result<RoutingDecision, Error> {
    match cx.initial.or(cx.agents.first()) {
        Some(agent) => Ok(RoutingDecision::agent(agent.clone(), reason)),
        None => Err(Error::orchestration("the flow has no agent that could speak; add one")),
    }
}
