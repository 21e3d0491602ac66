//! Who takes over from whom, and when: the data of it.

use super::{Condition, ModelCondition};
use crate::route::Target;
use std::fmt;
use std::sync::Arc;

/// Who hands over.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// This agent.
    Agent(Arc<str>),
    /// The person.
    User,
}

impl Source {
    /// The source's name, as files and events spell it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Agent(name) => name,
            Self::User => "user",
        }
    }

    /// The source that a file means by this name, where these agents are known. A name of an agent
    /// is that agent, also if it is an alias of the person.
    pub fn of_name<'a>(name: &str, agents: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        match Target::of_name(name, agents)? {
            Target::Agent(name) => Some(Self::Agent(name)),
            Target::User => Some(Self::User),
            Target::End => None,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// When a condition is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Before the source replies: if it holds, the source does not.
    Pre,
    /// After the source has replied.
    #[default]
    Post,
}

impl Scope {
    /// The scope's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pre => "pre",
            Self::Post => "after",
        }
    }
}

/// What a handoff waits for.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum HandoffKind {
    /// Nothing: it is what happens when no condition of the source holds. The last one counts.
    After,
    /// An expression over the variables.
    Expression {
        /// The expression.
        condition: Condition,
        /// When it is looked at.
        scope: Scope,
    },
    /// A model says whether it holds, after the source has replied.
    Model {
        /// What the model is asked.
        condition: ModelCondition,
    },
}

/// One rule of who takes over from whom.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HandoffRule {
    /// Who hands over.
    pub source: Source,
    /// Who takes over.
    pub target: Target,
    /// What it waits for.
    pub kind: HandoffKind,
    /// What its author says of it.
    pub description: Option<String>,
    /// Where it is declared, as `file:line`, if a file declares it.
    pub declared: Option<Arc<str>>,
}

impl HandoffRule {
    /// A rule.
    pub fn new(source: Source, target: Target, kind: HandoffKind) -> Self {
        Self { source, target, kind, description: None, declared: None }
    }

    /// What happens after `source` if no condition of it holds.
    pub fn after(source: Source, target: Target) -> Self {
        Self::new(source, target, HandoffKind::After)
    }

    /// A rule with an expression that is looked at after `source` has replied; the error says what
    /// is wrong with it.
    pub fn when(source: Source, target: Target, condition: &str) -> Result<Self, String> {
        let condition = Condition::compile(condition)?;
        Ok(Self::new(source, target, HandoffKind::Expression { condition, scope: Scope::Post }))
    }

    /// A rule with an expression that is looked at before `source` replies; the error says what is
    /// wrong with it.
    pub fn before(source: Source, target: Target, condition: &str) -> Result<Self, String> {
        let condition = Condition::compile(condition)?;
        Ok(Self::new(source, target, HandoffKind::Expression { condition, scope: Scope::Pre }))
    }

    /// A rule whose condition a model judges; the error says what is wrong with it.
    pub fn judged(source: Source, target: Target, condition: &str) -> Result<Self, String> {
        let condition = ModelCondition::new(condition)?;
        Ok(Self::new(source, target, HandoffKind::Model { condition }))
    }

    /// The same with what its author says of it.
    #[must_use]
    pub fn described(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// The same with the place where it is declared, as `file:line`.
    #[must_use]
    pub fn declared(mut self, place: impl Into<Arc<str>>) -> Self {
        self.declared = Some(place.into());
        self
    }

    /// When its condition is looked at; `None` if it has none.
    pub fn scope(&self) -> Option<Scope> {
        match &self.kind {
            HandoffKind::After => None,
            HandoffKind::Expression { scope, .. } => Some(*scope),
            HandoffKind::Model { .. } => Some(Scope::Post),
        }
    }

    /// Its condition as it is written, if it has one.
    pub fn condition(&self) -> Option<&str> {
        match &self.kind {
            HandoffKind::After => None,
            HandoffKind::Expression { condition, .. } => Some(condition.text()),
            HandoffKind::Model { condition } => Some(condition.text()),
        }
    }

    /// Why it decides, for people: which rule it is and what its author says of it.
    pub(super) fn says(&self, place: usize, why: &str) -> String {
        let number = place + 1;
        match self.description.as_deref().map(str::trim).filter(|it| !it.is_empty()) {
            Some(description) => format!("handoff {number}, \"{description}\": {why}"),
            None => format!("handoff {number}: {why}"),
        }
    }

    /// The variables that its condition mentions.
    pub fn variables(&self) -> Vec<&str> {
        match &self.kind {
            HandoffKind::After => Vec::new(),
            HandoffKind::Expression { condition, .. } => condition.variables().collect(),
            HandoffKind::Model { condition } => condition.variables(),
        }
    }
}
