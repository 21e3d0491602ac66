//! The owners, and the rule that finds the owner of a key.

use super::Reducer;
use crate::life::OwnSlot;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Who owns a piece of state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateOwnership {
    /// The instance; gone at shutdown.
    #[default]
    Agent,
    /// The memory service; lives across runs and is written through `memory.update()`.
    Memory,
    /// The orchestrator; read-only to agents.
    Orchestrator,
    /// Several, as the key's declaration says.
    Shared,
}

impl StateOwnership {
    /// The owner's name as errors spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Memory => "memory",
            Self::Orchestrator => "orchestrator",
            Self::Shared => "shared",
        }
    }
}

impl fmt::Display for StateOwnership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A write by somebody who does not own the key. The whole patch was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "StateViolationError")]
pub struct StateViolation {
    /// The key.
    pub key: String,
    /// Who owns it.
    pub owner: StateOwnership,
    /// Who tried to write it.
    pub actor: StateOwnership,
}

impl fmt::Display for StateViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, owner, actor } = self;
        write!(f, "state `{key}` is owned by {owner}, but {actor} tried to write it")?;
        f.write_str(match owner {
            StateOwnership::Memory => "; use memory.update()",
            StateOwnership::Orchestrator => "; it is read-only to agents",
            StateOwnership::Agent => "; only the agent and its hooks write it",
            StateOwnership::Shared => "; declare it with a reducer to write it from tools",
        })
    }
}

impl std::error::Error for StateViolation {}

/// Which owner each key has: what the agent declares, else the defaults.
///
/// The defaults: `_x` is the agent's; `history`, `embeddings`, `facts`, `memory` and every key that
/// begins with `memory/` are memory's;
/// `trace_id`, `routing` and `context` are the orchestrator's; `config` is shared; anything else is
/// the agent's.
#[derive(Clone, Debug, Default)]
pub struct Ownership {
    declared: BTreeMap<String, StateOwnership>,
    shared: BTreeMap<String, Reducer>,
    /// The type of one's own whose state it is, which is asked first.
    own: Option<OwnSlot>,
}

impl Ownership {
    /// The defaults alone.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares the owner of a key.
    #[must_use]
    pub fn declare(mut self, key: impl Into<String>, owner: StateOwnership) -> Self {
        self.declared.insert(key.into(), owner);
        self
    }

    /// Declares a shared key and how several writes to it are put together.
    #[must_use]
    pub fn shared(mut self, key: impl Into<String>, reducer: Reducer) -> Self {
        let key = key.into();
        self.declared.insert(key.clone(), StateOwnership::Shared);
        self.shared.insert(key, reducer);
        self
    }

    /// Has a type of one's own say who owns what, once it is held in an [`Arc`](std::sync::Arc).
    pub(crate) fn asking(mut self, own: OwnSlot) -> Self {
        self.own = Some(own);
        self
    }

    /// Who owns `key`.
    pub fn owner(&self, key: &str) -> StateOwnership {
        let own = self.own.as_ref().and_then(|own| own.owner_of(key));
        own.unwrap_or_else(|| self.declared_owner(key))
    }

    /// Who owns `key`, whatever a type of one's own says.
    pub(crate) fn declared_owner(&self, key: &str) -> StateOwnership {
        if let Some(owner) = self.declared.get(key) {
            return *owner;
        }
        match key {
            "history" | "embeddings" | "facts" | "memory" => StateOwnership::Memory,
            "trace_id" | "routing" | "context" => StateOwnership::Orchestrator,
            "config" => StateOwnership::Shared,
            key if key.starts_with("memory/") => StateOwnership::Memory,
            _ => StateOwnership::Agent,
        }
    }

    pub(crate) fn reducer(&self, key: &str) -> Option<&Reducer> {
        self.shared.get(key)
    }

    /// Whether the agent may write `key`: it owns it, or the key's declaration says how.
    pub(crate) fn check_agent_write(&self, key: &str) -> Result<(), StateViolation> {
        let owner = self.owner(key);
        let allowed = match owner {
            StateOwnership::Agent => true,
            StateOwnership::Shared => self.shared.contains_key(key),
            StateOwnership::Memory | StateOwnership::Orchestrator => false,
        };
        if allowed {
            Ok(())
        } else {
            Err(StateViolation { key: key.to_owned(), owner, actor: StateOwnership::Agent })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g9_keys_have_the_owner_that_is_declared_or_else_the_default() {
        let ownership = Ownership::new()
            .declare("user_history", StateOwnership::Memory)
            .shared("working_memory", Reducer::LastWins);
        for (key, owner) in [
            ("_temp", StateOwnership::Agent),
            ("history", StateOwnership::Memory),
            ("facts", StateOwnership::Memory),
            ("memory/quota/user:ada", StateOwnership::Memory),
            ("memory_of", StateOwnership::Agent),
            ("trace_id", StateOwnership::Orchestrator),
            ("config", StateOwnership::Shared),
            ("unknown", StateOwnership::Agent),
            ("user_history", StateOwnership::Memory),
            ("working_memory", StateOwnership::Shared),
        ] {
            assert_eq!(ownership.owner(key), owner, "{key}");
        }
    }

    #[test]
    fn g9_a_violation_names_key_owner_and_actor() {
        let violation = Ownership::new().check_agent_write("trace_id").unwrap_err();
        assert_eq!(
            violation.to_string(),
            "state `trace_id` is owned by orchestrator, but agent tried to write it; it is \
             read-only to agents"
        );
        assert!(Ownership::new().check_agent_write("config").is_err());
    }
}
