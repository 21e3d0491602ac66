//! Writing the variables of a chat to their databases.

use super::database::{Document, Query};
use super::session::Session;
use super::{DataEntity, Definition, PersistTo, Source, WriteStrategy};
use crate::chat::Outcome;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tenure_core::Error;
use tenure_core::chat::Chat;

/// When documents are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    Turn,
    Phase,
    End,
    /// The chat's own ends are over too.
    Over,
}

impl Session {
    pub(super) async fn write(&self, chat: &Chat, moment: Moment) -> Result<(), Error> {
        let due = self.unwritten(chat, moment);
        let number = self.next_call();
        if due.is_empty() {
            return Ok(());
        }
        let values: BTreeMap<_, _> = due
            .iter()
            .map(|(definition, value)| (definition.name.clone(), value.clone()))
            .collect();
        match &self.steps {
            None => self.write_these(&due).await?,
            Some(steps) if moment == Moment::Over => {
                let kept = Outcome::at(steps, "variables");
                if kept.known::<()>().await?.is_none() {
                    self.write_these(&due).await?;
                    kept.keep(()).await?;
                }
            }
            Some(steps) => {
                let step = format!("variables:{number}:write");
                steps.step(&step, &values, self.write_these(&due)).await?;
            }
        }
        self.kept().written.extend(values);
        Ok(())
    }

    /// What is to be written now and is another than what the databases have.
    fn unwritten(&self, chat: &Chat, moment: Moment) -> Vec<(&Definition, Value)> {
        let is_due = |definition: &&Definition| match &definition.source {
            Source::DataEntity(entity) => match entity.write {
                WriteStrategy::Immediate => true,
                WriteStrategy::OnPhaseTransition => moment != Moment::Turn,
                WriteStrategy::OnWorkflowEnd => matches!(moment, Moment::End | Moment::Over),
            },
            Source::Computed(computed) => computed.persist_to.is_some(),
            _ => false,
        };
        let kept = self.kept();
        let due = self.variables.definitions.iter().filter(is_due);
        let due = due.map(|it| (it, chat.variable(&it.name).unwrap_or_default()));
        due.filter(|(it, value)| kept.written.get(&it.name) != Some(value)).collect()
    }

    /// Each can be done twice: a document takes the place of what was there.
    async fn write_these(&self, due: &[(&Definition, Value)]) -> Result<(), Error> {
        for (definition, value) in due {
            let name = &definition.name;
            match &definition.source {
                Source::DataEntity(entity) => self.write_entity(name, entity, value).await?,
                Source::Computed(computed) => {
                    if let Some(to) = &computed.persist_to {
                        self.write_computed(name, to, value).await?;
                    }
                }
                _ => continue,
            }
            self.kept().written.insert(name.clone(), value.clone());
        }
        Ok(())
    }

    async fn write_entity(
        &self,
        name: &str,
        entity: &DataEntity,
        value: &Value,
    ) -> Result<(), Error> {
        // A document is written, and not taken away.
        let Value::Object(document) = value else { return Ok(()) };
        let mut document = document.clone();
        let by = &entity.search_by;
        let key = match self.keys.get(by) {
            Some(key) => {
                document.insert(by.clone(), key.into());
                Value::from(key)
            }
            None => match document.get(by) {
                Some(key) if !key.is_null() => key.clone(),
                _ => {
                    return Err(Error::orchestration(format!(
                        "context variable `{name}` cannot be written: its documents are searched \
                         by `{by}`, and this one has none"
                    )));
                }
            },
        };
        let query = Query::new().with(&**by, key);
        let database = self.database(name, &entity.database_name)?;
        let put = self.within(database.put(&entity.collection, &query, &document)).await;
        put.map_err(|error| {
            Error::orchestration(format!("context variable `{name}` cannot be written: {error}"))
        })
    }

    async fn write_computed(&self, name: &str, to: &PersistTo, value: &Value) -> Result<(), Error> {
        let wrong = |error| {
            Error::orchestration(format!("context variable `{name}` cannot be written: {error}"))
        };
        let key = self.keys.get(&to.search_by).unwrap_or_default();
        let database = self.database(name, &to.database_name)?;
        let query = Query::new().with(&*to.search_by, key);
        let mut fields: Document = Map::new();
        fields.insert(name.to_owned(), value.clone());
        let updated = self.within(database.update(&to.collection, &query, &fields)).await;
        if updated.map_err(wrong)? > 0 {
            return Ok(());
        }
        fields.insert(to.search_by.clone(), key.into());
        self.within(database.insert(&to.collection, &fields)).await.map_err(wrong)
    }
}
