//! What a person is asked about the calls of a tool.

use crate::people::condition::{Condition, check_template};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use tenure_core::Error;
use tenure_core::ask::Answer;

/// What a person may decide about a call.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It is made as it is.
    Approve,
    /// It is made with other arguments.
    Edit,
    /// It is not made, and the model reads why.
    Reject,
    /// It is not made, and the model reads the person's words as its result.
    Respond,
}

impl Decision {
    /// Every decision.
    pub const ALL: [Self; 4] = [Self::Approve, Self::Edit, Self::Reject, Self::Respond];

    /// The decision's name as files spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Edit => "edit",
            Self::Reject => "reject",
            Self::Respond => "respond",
        }
    }

    pub(super) fn of(answer: &Answer) -> Self {
        match answer {
            Answer::Approve => Self::Approve,
            Answer::Edit(_) => Self::Edit,
            Answer::Reject(_) => Self::Reject,
            Answer::Respond(_) => Self::Respond,
        }
    }
}

/// What a person is asked about the calls of a tool, and what may be answered.
#[derive(Clone, Debug)]
#[must_use]
pub struct ApprovalRule {
    pub(super) allowed: Vec<Decision>,
    pub(super) description: Option<String>,
    pub(super) args_schema: Option<Value>,
    pub(super) when: Option<Arc<Condition>>,
}

impl Default for ApprovalRule {
    fn default() -> Self {
        Self { allowed: Decision::ALL.to_vec(), description: None, args_schema: None, when: None }
    }
}

impl ApprovalRule {
    /// Every call is asked about, and everything may be answered.
    pub fn new() -> Self {
        Self::default()
    }

    /// What may be answered.
    pub fn allow(mut self, decisions: impl IntoIterator<Item = Decision>) -> Self {
        self.allowed = decisions.into_iter().collect();
        self
    }

    /// The question: a template that sees `tool`, `arguments`, `agent` and `user`.
    pub fn description(mut self, template: impl Into<String>) -> Result<Self, Error> {
        let template = template.into();
        check_template(&template).map_err(Error::invalid)?;
        self.description = Some(template);
        Ok(self)
    }

    /// The JSON Schema that edited arguments have to fit, beside the tool's own.
    pub fn args_schema(mut self, schema: Value) -> Self {
        self.args_schema = Some(schema);
        self
    }

    /// Asks only where this expression holds. It sees `tool` (name, description), `arguments`,
    /// `agent` (name) and `user`. Where it cannot be decided, somebody is asked.
    pub fn when(mut self, expression: &str) -> Result<Self, Error> {
        let condition = Condition::compile(expression).map_err(Error::invalid)?;
        self.when = Some(Arc::new(condition));
        Ok(self)
    }
}
