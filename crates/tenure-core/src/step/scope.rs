//! Where in a run steps are recorded: a path, and what began and ended there.

use super::{StepKey, StepLog};
use crate::id::InstanceId;
use crate::outcome::{ExitReason, Outcome};
use crate::sync::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The log of one run, and where in it to write.
///
/// Whoever runs several agents gives each turn a path of its own: paths are the same in every
/// attempt at a run, and no two turns of a run have the same.
#[derive(Clone)]
pub struct Steps {
    log: Arc<dyn StepLog>,
    path: Arc<str>,
}

impl Steps {
    /// The whole of a run.
    pub fn new(log: Arc<dyn StepLog>) -> Self {
        Self { log, path: "".into() }
    }

    /// A place within this one.
    #[must_use]
    pub fn at(&self, part: impl fmt::Display) -> Self {
        let path = match &*self.path {
            "" => part.to_string(),
            path => format!("{path}/{part}"),
        };
        Self { log: self.log.clone(), path: path.into() }
    }

    /// The place of an instance in one life of the run.
    pub(crate) fn of_life(&self, life: u32) -> Self {
        Self { log: self.log.clone(), path: format!("{}#{life}", self.path).into() }
    }

    /// The same log, at the place of an instance that is over.
    pub(crate) fn of_instance(&self, record: &ScopeRecord) -> Self {
        Self { log: self.log.clone(), path: format!("{}#{}", record.path, record.life).into() }
    }

    /// A name without what must not be written: names are written, too.
    fn plain(&self, name: &str) -> Arc<str> {
        let mut value = Value::from(name);
        match (self.log.redact(&mut value), value) {
            (true, Value::String(plain)) => plain.into(),
            _ => name.into(),
        }
    }

    /// The log.
    pub fn log(&self) -> &Arc<dyn StepLog> {
        &self.log
    }

    /// The place.
    pub fn path(&self) -> &Arc<str> {
        &self.path
    }

    /// Runs `effect` once: its result is recorded before it is used, and a replay is served from the
    /// record (G7). For whoever runs several agents; `name` is unique at this place, and `input` is
    /// what the effect depends on.
    pub async fn step<T, F>(
        &self,
        name: &str,
        input: &impl Serialize,
        effect: F,
    ) -> Result<T, crate::Error>
    where
        T: Serialize + serde::de::DeserializeOwned + Send,
        F: Future<Output = Result<T, crate::Error>> + Send,
    {
        let name = self.plain(name);
        let key = StepKey::new(self.path.clone(), "step", name, 0, super::fingerprint(input));
        let mut fresh = None;
        let effect = async {
            let value = effect.await?;
            let mut record = super::encode(&value)?;
            if !self.log.redact(&mut record) {
                fresh = Some(value);
            }
            Ok(record)
        };
        let record = self.log.step(key, Box::pin(effect)).await?;
        match fresh {
            Some(value) => Ok(value),
            None => super::decode(record),
        }
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steps")
            .field("run", &self.log.run_id())
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// A place in a run, and how many steps of which name were taken there.
pub(crate) struct StepScope {
    pub(crate) steps: Steps,
    /// By kind and name.
    ordinals: Mutex<Ordinals>,
}

type Ordinals = HashMap<(Arc<str>, Arc<str>), u32>;

impl StepScope {
    pub(crate) fn new(steps: Steps) -> Self {
        Self { steps, ordinals: Mutex::default() }
    }

    pub(crate) fn log(&self) -> &dyn StepLog {
        &*self.steps.log
    }

    pub(crate) fn path(&self) -> &Arc<str> {
        &self.steps.path
    }

    /// Where an instance stands, whatever the life.
    pub(crate) fn place(&self) -> &str {
        place(self.path())
    }

    /// The key of the step of this kind and name that was taken last.
    pub(crate) fn last(&self, kind: &str, name: &str) -> StepKey {
        let (kind, name): (Arc<str>, Arc<str>) = (kind.into(), name.into());
        let taken = self.ordinals.lock().get(&(kind.clone(), name.clone())).copied();
        let ordinal = taken.unwrap_or_default().saturating_sub(1);
        StepKey::new(self.path().clone(), kind, name, ordinal, 0)
    }

    /// The key of the next step of this kind and name.
    pub(crate) fn key(&self, kind: &str, name: &str, input: u64) -> StepKey {
        let (kind, name): (Arc<str>, Arc<str>) = (kind.into(), self.steps.plain(name));
        let mut ordinals = self.ordinals.lock();
        let next = ordinals.entry((kind.clone(), name.clone())).or_insert(0);
        let ordinal = *next;
        *next += 1;
        StepKey::new(self.path().clone(), kind, name, ordinal, input)
    }
}

/// The path of an instance without the life that it is of.
fn place(path: &str) -> &str {
    path.rsplit_once('#').map_or(path, |(place, _)| place)
}

/// What kind of scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ScopeKind {
    /// One live agent.
    Instance,
    /// A chat.
    Chat,
    /// A turn.
    Turn,
}

impl ScopeKind {
    /// The kind's name as records spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::Chat => "chat",
            Self::Turn => "turn",
        }
    }
}

/// Something that began in a run, and will end once.
///
/// A chat and a turn go on in the next life of a run, under the same id. An instance does not: it
/// ends with its process, and the next life has one of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ScopeRecord {
    /// Its name in the run.
    pub id: Arc<str>,
    /// What it is.
    pub kind: ScopeKind,
    /// Where it is.
    pub path: Arc<str>,
    /// Whose it is: an agent's name, or a chat's id.
    pub agent: Arc<str>,
    /// The instance.
    pub instance: Option<InstanceId>,
    /// In which life of the run it began.
    pub life: u32,
    /// How many entries of the chain it has passed: those get their ends.
    pub entered: usize,
}

impl ScopeRecord {
    pub(crate) fn turn(steps: &Steps, agent: &str, instance: InstanceId) -> Self {
        Self::new(ScopeKind::Turn, format!("turn:{}", steps.path), steps, agent, Some(instance))
    }

    pub(crate) fn chat(steps: &Steps, chat: &str) -> Self {
        Self::new(ScopeKind::Chat, format!("chat:{}", steps.path), steps, chat, None)
    }

    pub(crate) fn instance(steps: &Steps, agent: &str, instance: InstanceId) -> Self {
        let id = format!("instance:{}", steps.path);
        let mut record = Self::new(ScopeKind::Instance, id, steps, agent, Some(instance));
        record.path = place(&steps.path).into();
        record
    }

    fn new(
        kind: ScopeKind,
        id: String,
        steps: &Steps,
        agent: &str,
        instance: Option<InstanceId>,
    ) -> Self {
        let (life, path) = (steps.log.life(), steps.path.clone());
        Self { id: id.into(), kind, path, agent: agent.into(), instance, life, entered: 0 }
    }
}

/// How a scope ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ScopeEnd {
    /// Its outcome. Of an instance: `ok`, or `abandoned` if its process died.
    pub outcome: Outcome,
    /// Why an instance is over.
    pub reason: Option<ExitReason>,
}

impl ScopeEnd {
    /// The end of a chat or a turn.
    pub const fn of(outcome: Outcome) -> Self {
        Self { outcome, reason: None }
    }

    /// The end of an instance.
    pub const fn of_instance(reason: ExitReason) -> Self {
        let outcome = match reason {
            ExitReason::Crashed => Outcome::Abandoned,
            ExitReason::Completed => Outcome::Ok,
            _ => Outcome::Failed,
        };
        Self { outcome, reason: Some(reason) }
    }
}
