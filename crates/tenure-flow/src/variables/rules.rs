//! Who may write which variable, and what follows from a write.

use super::plan::is_writable;
use super::{Source, Variables};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tenure_core::Error;
use tenure_core::chat::{Chat, Declarations};
use tenure_core::state::{StateOwnership, StateViolation};

impl Declarations for Variables {
    fn check(
        &self,
        patch: &[(String, Value)],
        current: &BTreeMap<String, Value>,
    ) -> Result<(), Error> {
        for (key, value) in patch {
            self.check_write(key, value, current)?;
        }
        // A write that something cannot be computed from any more is refused whole.
        if !self.concerns(patch.iter().map(|(key, _)| key.as_str())) {
            return Ok(());
        }
        let mut after = current.clone();
        after.extend(patch.iter().cloned());
        let changed: Vec<_> = patch.iter().map(|(key, _)| key.clone()).collect();
        self.follow(&changed, &mut after).map_err(Error::invalid)
    }

    fn removed(&self, key: &str) -> Option<Value> {
        let definition = self.get(key)?;
        Some(match &definition.source {
            Source::State(state) => {
                definition.kind.coerce(state.default.clone()).unwrap_or_default()
            }
            // A document is forgotten, not deleted; and nothing may be written to the others.
            _ => Value::Null,
        })
    }

    fn settle(&self, changed: &[String], variables: &mut BTreeMap<String, Value>) {
        // What agents write was computed once already, in the check. Whoever runs the chat is not
        // refused; then the earlier value stays.
        if let Err(error) = self.follow(changed, variables) {
            tracing::error!("{error}");
        }
    }
}

impl Variables {
    fn check_write(
        &self,
        key: &str,
        value: &Value,
        current: &BTreeMap<String, Value>,
    ) -> Result<(), Error> {
        // What has not changed was not written: a hook hands back all that it was given.
        if current.get(key) == Some(value) {
            return Ok(());
        }
        let is_system = Chat::system_keys().contains(&key) || self.is_of_platform(key);
        let definition = self.get(key);
        if is_system || definition.is_some_and(|it| !is_writable(&it.source)) {
            let (owner, actor) = (StateOwnership::Orchestrator, StateOwnership::Agent);
            let owned = match definition.filter(|_| !is_system) {
                Some(definition) => format!("comes from `{}` and is", definition.source.as_str()),
                None => "is the platform's and".to_owned(),
            };
            let message = format!(
                "context variable `{key}` {owned} read-only; nothing of this write was kept"
            );
            let violation = StateViolation { key: key.to_owned(), owner, actor };
            return Err(Error::orchestration(message).because(violation.into()));
        }
        let Some(definition) = definition else { return Ok(()) };
        definition
            .kind
            .check(value)
            .map_err(|error| Error::invalid(format!("context variable `{key}`: {error}")))?;
        if let (Source::DataEntity(entity), Value::Object(document)) = (&definition.source, value) {
            for field in &entity.schema {
                let found = document.get(&field.name);
                if field.required && found.is_none_or(Value::is_null) {
                    return Err(Error::invalid(format!(
                        "context variable `{key}`: its field `{}` is required, and not there",
                        field.name
                    )));
                }
                if let Some(Err(error)) = found.map(|value| field.kind.check(value)) {
                    return Err(Error::invalid(format!(
                        "context variable `{key}`: field `{}`: {error}",
                        field.name
                    )));
                }
            }
        }
        Ok(())
    }

    /// Whether something is computed from one of these.
    fn concerns<'k>(&self, mut keys: impl Iterator<Item = &'k str>) -> bool {
        !self.formulas.is_empty()
            && keys.any(|key| self.formulas.iter().any(|it| it.inputs.contains(key)))
    }

    /// Computes what follows from a change, in the order of need. The first that cannot be computed
    /// is the error; what was computed before it stays.
    pub(super) fn follow(
        &self,
        changed: &[String],
        variables: &mut BTreeMap<String, Value>,
    ) -> Result<(), String> {
        if !self.concerns(changed.iter().map(String::as_str)) {
            return Ok(());
        }
        let mut changed: BTreeSet<&str> = changed.iter().map(String::as_str).collect();
        for formula in &self.formulas {
            if !formula.inputs.iter().any(|input| changed.contains(input.as_str())) {
                continue;
            }
            let name = &formula.name;
            let value = formula.value(variables).map_err(|error| {
                format!("context variable `{name}` cannot be computed: {error}")
            })?;
            if variables.get(name) != Some(&value) {
                variables.insert(name.clone(), value);
                changed.insert(name);
            }
        }
        Ok(())
    }

    /// Computes everything, for a chat that starts.
    pub(super) fn compute_all(
        &self,
        variables: &mut BTreeMap<String, Value>,
    ) -> Result<(), String> {
        for formula in &self.formulas {
            let value = formula.value(variables).map_err(|error| {
                format!("context variable `{}` cannot be computed: {error}", formula.name)
            })?;
            variables.insert(formula.name.clone(), value);
        }
        Ok(())
    }
}
