//! The variables of one chat: what is read again and what is written, and when.

use super::database::{Database, DatabaseError, Document, Query};
use super::trigger::{CONTEXT_CHANGED, Change};
use super::writing::Moment;
use super::{
    DataEntity, DataReference, Definition, Kind, Refresh, RuntimeKeys, Source, Variables, template,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tenure_core::Error;
use tenure_core::chat::Chat;
use tenure_core::step::Steps;
use tokio::time::timeout;

/// The most documents that a variable holds.
const MOST_DOCUMENTS: usize = 1000;

/// The variables of one chat, between its start and its end. Whoever runs the chat calls:
///
/// 1. [`Variables::open`] before the agents start, and gives [`Session::values`] to the chat;
/// 2. [`Session::before_turn`] before every turn, the person's too;
/// 3. [`Session::after_message`] with what was said, before it is shown;
/// 4. [`Session::after_turn`] after every turn, however it ended;
/// 5. [`Session::finish`] after the last turn, and once more after the chat's own ends.
pub struct Session {
    pub(super) variables: Arc<Variables>,
    pub(super) keys: RuntimeKeys,
    kept: Mutex<Kept>,
    /// Where what is read and written is recorded, if it is.
    pub(super) steps: Option<Steps>,
    /// How often something was to be read or written.
    calls: AtomicUsize,
    /// How often changes were looked for.
    occasions: AtomicUsize,
}

#[derive(Default)]
pub(super) struct Kept {
    values: BTreeMap<String, Value>,
    /// Who spoke last: when somebody else begins, a phase is over.
    speaker: Option<String>,
    /// What the databases have of the variables that are written.
    pub(super) written: BTreeMap<String, Value>,
}

impl Session {
    pub(super) fn new(variables: Arc<Variables>, keys: RuntimeKeys, steps: Option<Steps>) -> Self {
        let (kept, calls) = (Mutex::default(), AtomicUsize::new(0));
        Self { variables, keys, kept, steps, calls, occasions: AtomicUsize::new(0) }
    }

    pub(super) fn keys(&self) -> &RuntimeKeys {
        &self.keys
    }

    /// What the databases have, as far as is known.
    pub(super) fn written(&self) -> BTreeMap<String, Value> {
        self.kept().written.clone()
    }

    pub(super) fn was_written(&self, written: BTreeMap<String, Value>) {
        self.kept().written = written;
    }

    pub(super) fn opened(&self, mut values: BTreeMap<String, Value>) {
        for key in Chat::system_keys() {
            values.remove(*key);
        }
        self.kept().values = values;
    }

    pub(super) fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The values that the chat begins with.
    pub fn values(&self) -> BTreeMap<String, Value> {
        self.kept().values.clone()
    }

    /// What is declared.
    pub fn variables(&self) -> &Arc<Variables> {
        &self.variables
    }

    /// A turn of this agent is about to begin. If somebody else spoke before, that phase is over:
    /// documents that are written with the phase are, and references that are read with the phase
    /// are read again; and so are those that are read on demand, if the agent gets to see them.
    pub async fn before_turn(&self, chat: &Chat, agent: &str) -> Result<(), Error> {
        let is_new = {
            let mut kept = self.kept();
            let is_new = kept.speaker.as_deref() != Some(agent);
            if is_new {
                kept.speaker = Some(agent.to_owned());
            }
            is_new
        };
        match self.variables.uses_data {
            // Boxed, so that chats that have nothing to do with a database are no larger for it.
            true => Box::pin(self.bring_up_to_date(chat, agent, is_new)).await,
            false => Ok(()),
        }
    }

    async fn bring_up_to_date(&self, chat: &Chat, agent: &str, is_new: bool) -> Result<(), Error> {
        self.write(chat, if is_new { Moment::Phase } else { Moment::Turn }).await?;
        let is_exposed = |it: &Definition| {
            self.variables.exposed_to(agent).any(|exposed| exposed.name == it.name)
        };
        self.refresh_where(chat, |definition, reference| match reference.refresh {
            Refresh::Once => false,
            Refresh::PerPhase => is_new,
            Refresh::OnDemand => is_exposed(definition),
        })
        .await
    }

    /// Somebody has said something: changes what that changes and announces it. The result is
    /// whether people do not get to see the message.
    pub fn after_message(&self, chat: &Chat, agent: &str, text: &str) -> Result<bool, Error> {
        let heard = self.variables.after_message(&chat.context_variables(), agent, text)?;
        self.announce(chat, &heard.changes);
        Ok(heard.hidden)
    }

    /// A turn is over: writes what is written at once.
    pub async fn after_turn(&self, chat: &Chat) -> Result<(), Error> {
        match self.variables.uses_data {
            true => Box::pin(self.write(chat, Moment::Turn)).await,
            false => Ok(()),
        }
    }

    /// The last turn is over: writes everything that is not written yet, within the limit for the
    /// end of a chat ([`Variables::data_limits`]).
    pub async fn finish(&self, chat: &Chat) -> Result<(), Error> {
        self.write_all(chat, Moment::End).await
    }

    /// The same once the chat's own ends are over. Of a run that is given up it is one of them.
    pub(crate) async fn settle(&self, chat: &Chat) -> Result<(), Error> {
        self.write_all(chat, Moment::Over).await
    }

    async fn write_all(&self, chat: &Chat, moment: Moment) -> Result<(), Error> {
        if !self.variables.uses_data {
            return Ok(());
        }
        let limit = self.variables.end_limit;
        let written = timeout(limit, Box::pin(self.write(chat, moment))).await;
        written.unwrap_or_else(|_| {
            Err(Error::orchestration(format!(
                "what the chat leaves could not be written within {limit:?}"
            )))
        })
    }

    /// Waits for a database, and no longer than it may take.
    pub(super) async fn within<T>(
        &self,
        call: impl Future<Output = Result<T, DatabaseError>>,
    ) -> Result<T, DatabaseError> {
        let limit = self.variables.call_limit;
        timeout(limit, call).await.unwrap_or_else(|_| {
            Err(DatabaseError::new(format!("the database did not answer within {limit:?}")))
        })
    }

    /// Reads a reference again.
    pub async fn refresh(&self, chat: &Chat, name: &str) -> Result<(), Error> {
        if !matches!(self.variables.get(name).map(|it| &it.source), Some(Source::DataReference(_)))
        {
            return Err(Error::invalid(format!(
                "context variable `{name}` is no data_reference; only those are read again"
            )));
        }
        self.refresh_where(chat, |definition, _| definition.name == name).await
    }

    async fn refresh_where(
        &self,
        chat: &Chat,
        is_due: impl Fn(&Definition, &DataReference) -> bool,
    ) -> Result<(), Error> {
        let due: Vec<_> = self
            .variables
            .definitions
            .iter()
            .filter_map(|definition| match &definition.source {
                Source::DataReference(reference) if is_due(definition, reference) => {
                    Some((definition, reference))
                }
                _ => None,
            })
            .collect();
        let number = self.next_call();
        if due.is_empty() {
            return Ok(());
        }
        let patch = match &self.steps {
            None => self.read_again(chat, &due).await?,
            Some(steps) => {
                let names: Vec<_> = due.iter().map(|(definition, _)| &definition.name).collect();
                let step = format!("variables:{number}:read");
                steps.step(&step, &names, self.read_again(chat, &due)).await?
            }
        };
        if patch.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = patch.iter().map(|(name, _)| name.clone()).collect();
        let before = chat.variables();
        let mut after = before.clone();
        after.extend(patch.iter().cloned());
        self.variables.follow(&names, &mut after).map_err(Error::invalid)?;
        chat.set_variables(patch);
        let after = chat.variables();
        let changes = self.variables.changes(&before, &after, &names, "data_reference");
        self.announce(chat, &changes);
        Ok(())
    }

    /// Counts what is read and written: the same in every life of a run.
    pub(super) fn next_call(&self) -> usize {
        self.calls.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// What of these references is another now.
    async fn read_again(
        &self,
        chat: &Chat,
        due: &[(&Definition, &DataReference)],
    ) -> Result<Vec<(String, Value)>, Error> {
        let mut current = chat.variables();
        let mut patch = Vec::new();
        for (definition, reference) in due {
            let value = self.read(definition, reference, &current).await?;
            if current.get(&definition.name) != Some(&value) {
                current.insert(definition.name.clone(), value.clone());
                patch.push((definition.name.clone(), value));
            }
        }
        Ok(patch)
    }

    /// Reads what the databases have, for a chat that starts.
    pub(super) async fn load_data(
        &self,
        values: &mut BTreeMap<String, Value>,
    ) -> Result<(), Error> {
        if let Some((database, variable)) = self.variables.missing_databases().into_iter().next() {
            return Err(Error::invalid(format!(
                "context variable `{variable}` needs the database `{database}`, which there is \
                 not; declare it in tenure.toml: [databases.{database}] with its path"
            )));
        }
        for definition in &self.variables.definitions {
            let value = match &definition.source {
                Source::DataReference(it) if Variables::is_read_at_start(it.refresh) => {
                    self.read(definition, it, values).await?
                }
                Source::DataReference(it) => it.default.clone().unwrap_or_default(),
                Source::DataEntity(entity) => {
                    let value = self.read_entity(definition, entity).await?;
                    self.kept().written.insert(definition.name.clone(), value.clone());
                    if values.contains_key(&definition.name) {
                        continue;
                    }
                    value
                }
                _ => continue,
            };
            values.insert(definition.name.clone(), value);
        }
        Ok(())
    }

    async fn read(
        &self,
        definition: &Definition,
        reference: &DataReference,
        values: &BTreeMap<String, Value>,
    ) -> Result<Value, Error> {
        let name = &definition.name;
        let wrong =
            |error: String| Error::orchestration(format!("context variable `{name}`: {error}"));
        let query = match reference.query_template.is_empty() {
            true => Query::new().with("app_id", &*self.keys.app_id),
            false => template::fill(&reference.query_template, values).map_err(wrong)?,
        };
        let limit = if definition.kind == Kind::List { MOST_DOCUMENTS } else { 1 };
        let database = self.database(name, &reference.database_name)?;
        let found = self.within(database.find(&reference.collection, &query, limit)).await;
        let found = found.map_err(|error| wrong(error.to_string()))?;
        let value = value_of(definition.kind, reference, found);
        definition.kind.coerce(value).map_err(wrong)
    }

    async fn read_entity(
        &self,
        definition: &Definition,
        entity: &DataEntity,
    ) -> Result<Value, Error> {
        let name = &definition.name;
        let wrong = |error| Error::orchestration(format!("context variable `{name}`: {error}"));
        let database = self.database(name, &entity.database_name)?;
        for index in &entity.indexes {
            self.within(database.index(&entity.collection, index)).await.map_err(wrong)?;
        }
        // A field of the document's own says nothing before there is a document.
        let Some(key) = self.keys.get(&entity.search_by) else { return Ok(Value::Null) };
        let query = Query::new().with(&*entity.search_by, key);
        let found =
            self.within(database.find(&entity.collection, &query, 1)).await.map_err(wrong)?;
        Ok(found.into_iter().next().map_or(Value::Null, Value::Object))
    }

    fn announce(&self, chat: &Chat, changes: &[Change]) {
        // Counted also where nothing has changed: the same in every life of a run.
        let occasion = self.occasions.fetch_add(1, Ordering::Relaxed) + 1;
        for change in changes {
            let place = format_args!("change:{occasion}:{}", change.name);
            chat.announce_once(place, CONTEXT_CHANGED, || change.data());
        }
    }

    pub(super) fn database(&self, variable: &str, name: &str) -> Result<&Arc<dyn Database>, Error> {
        self.variables.databases.get(name).ok_or_else(|| {
            Error::invalid(format!(
                "context variable `{variable}` needs the database `{name}`, which there is not"
            ))
        })
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("chat", &self.keys.chat_id).finish_non_exhaustive()
    }
}

/// What a variable is of what was found.
fn value_of(kind: Kind, reference: &DataReference, found: Vec<Document>) -> Value {
    let fields = &reference.fields;
    let picked = |mut document: Document| {
        if !fields.is_empty() {
            document.retain(|name, _| fields.contains(name));
        }
        document
    };
    // The one field that is named may itself be what the variable is declared as.
    let own = |document: &Document| match fields.as_slice() {
        [only] => document.get(only).filter(|it| it.is_array() || it.is_object()).cloned(),
        _ => None,
    };
    let own = found.first().and_then(own).filter(|it| kind.fits(it));
    if let (Kind::List | Kind::Dict, Some(own)) = (kind, own) {
        return own;
    }
    if kind == Kind::List && !found.is_empty() {
        let single = |mut document: Document| document.remove(&fields[0]).unwrap_or_default();
        return match fields.len() {
            1 => found.into_iter().map(single).collect(),
            _ => found.into_iter().map(|it| Value::Object(picked(it))).collect(),
        };
    }
    let Some(mut document) = found.into_iter().next() else {
        let none = if kind == Kind::List { json!([]) } else { Value::Null };
        return reference.default.clone().unwrap_or(none);
    };
    match (kind, fields.as_slice()) {
        (Kind::Dict, _) => Value::Object(picked(document)),
        (_, [only]) => document.remove(only).unwrap_or_default(),
        _ => Value::Object(picked(document)),
    }
}
