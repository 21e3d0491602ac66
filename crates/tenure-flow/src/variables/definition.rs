//! What a workflow declares of its context variables, as data.

use super::{Kind, Pattern, Provided};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// One declared variable.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Kind,
    /// What it is, as agents that it is exposed to read it.
    pub description: Option<String>,
    /// Where its value comes from.
    pub source: Source,
}

impl Definition {
    /// A variable of this type.
    pub fn new(name: impl Into<String>, kind: Kind, source: Source) -> Self {
        Self { name: name.into(), kind, description: None, source }
    }

    /// Says what it is.
    #[must_use]
    pub fn described(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
}

/// Where the value of a variable comes from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Source {
    /// `config`, older `environment`: a variable of the environment.
    Config(Config),
    /// `state`, older `derived`, newest `runtime`: what the chat itself knows.
    State(State),
    /// `computed`: what follows from others.
    Computed(Computed),
    /// `file`: a file of the project.
    File(File),
    /// `static`: always the same.
    Static(Value),
    /// `data_reference`, older `database`: what a database has.
    DataReference(DataReference),
    /// `data_entity`: a document of a database that the chat writes.
    DataEntity(DataEntity),
    /// What the platform provides; no file declares it.
    Provided(Provided),
}

impl Source {
    /// The source's name, as files of today spell it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Config(_) => "config",
            Self::State(_) => "state",
            Self::Computed(_) => "computed",
            Self::File(_) => "file",
            Self::Static(_) => "static",
            Self::DataReference(_) => "data_reference",
            Self::DataEntity(_) => "data_entity",
            Self::Provided(_) => "provided",
        }
    }
}

/// What the `type` of a source in a file stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SourceKind {
    /// [`Source::Config`].
    Config,
    /// [`Source::State`].
    State,
    /// [`Source::Computed`].
    Computed,
    /// [`Source::File`].
    File,
    /// [`Source::Static`].
    Static,
    /// [`Source::DataReference`].
    DataReference,
    /// [`Source::DataEntity`].
    DataEntity,
    /// Known, and refused: `external`.
    Refused(&'static str),
}

const SOURCES: &[(&str, SourceKind)] = &[
    ("config", SourceKind::Config),
    ("state", SourceKind::State),
    ("computed", SourceKind::Computed),
    ("file", SourceKind::File),
    ("static", SourceKind::Static),
    ("data_reference", SourceKind::DataReference),
    ("data_entity", SourceKind::DataEntity),
    ("environment", SourceKind::Config),
    ("database", SourceKind::DataReference),
    ("derived", SourceKind::State),
    ("runtime", SourceKind::State),
    (
        "external",
        SourceKind::Refused(
            "call the service from a before_chat lifecycle tool and keep what it says in a state \
             variable",
        ),
    ),
];

impl SourceKind {
    /// What a file calls so: the names of today, the older `environment`, `database` and `derived`,
    /// and the newest, `runtime`.
    pub fn parse(name: &str) -> Option<Self> {
        SOURCES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// Every name that [`SourceKind::parse`] knows, the refused left out.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SOURCES.iter().filter(|(_, kind)| !matches!(kind, Self::Refused(_))).map(|(name, _)| *name)
    }
}

/// A variable of the environment.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Config {
    /// The name of the environment variable.
    pub env_var: String,
    /// The value if it is not set.
    pub default: Option<Value>,
    /// Whether a chat cannot start without it.
    pub required: bool,
}

impl Config {
    /// This variable of the environment.
    pub fn new(env_var: impl Into<String>) -> Self {
        Self { env_var: env_var.into(), default: None, required: false }
    }
}

/// What the chat itself knows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct State {
    /// The value that a chat begins with.
    pub default: Value,
    /// What changes it beside hooks and tools; of several that match the first does.
    pub triggers: Vec<Transition>,
    /// Whether it is kept with the chat. True.
    pub persist: bool,
}

impl State {
    /// A state that begins with this value.
    pub fn new(default: impl Into<Value>) -> Self {
        Self { default: default.into(), triggers: Vec::new(), persist: true }
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new(Value::Null)
    }
}

/// One change of a state: an entry of `triggers`, or of the older `transitions`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Transition {
    /// The value that it has to have; any, if nothing is said.
    pub from: Option<Value>,
    /// The value that it gets. If nothing is said: true, or what the response says.
    pub to: Option<Value>,
    /// When.
    pub trigger: Trigger,
}

impl Transition {
    /// An entry of `triggers`.
    pub fn new(trigger: Trigger) -> Self {
        Self { from: None, to: None, trigger }
    }

    /// An entry of `transitions`.
    pub fn between(from: Option<Value>, to: Value, trigger: Trigger) -> Self {
        Self { from, to: Some(to), trigger }
    }
}

/// What changes a state.
#[derive(Clone, Debug)]
pub enum Trigger {
    /// An agent says something. Compared without the spaces around it, and without case.
    AgentText {
        /// Who has to say it.
        agent: String,
        /// What.
        matches: Pattern,
        /// Whether people do not get to see that message.
        ui_hidden: bool,
    },
    /// A person answers what a tool shows.
    UiResponse {
        /// The tool.
        tool: String,
        /// The part of the response that counts, dotted; the whole of it, if nothing is said.
        response_key: Option<String>,
    },
}

/// What follows from others.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Computed {
    /// The expression, in which `${x}` is x.
    pub computation: String,
    /// The variables that it sees. If there are none: those that it names.
    pub inputs: Vec<String>,
    /// The type of the result, if another than the variable's is declared.
    pub output_type: Option<Kind>,
    /// Where the result is written after each turn that changed it.
    pub persist_to: Option<PersistTo>,
}

impl Computed {
    /// The value of this expression.
    pub fn new(computation: impl Into<String>) -> Self {
        Self { computation: computation.into(), ..Self::default() }
    }
}

/// Where a computed value is written: the field of its name, in one document.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PersistTo {
    /// The database.
    pub database_name: String,
    /// The collection.
    pub collection: String,
    /// The field that finds the document; its value is the chat's: `chat_id`, `app_id`, `user_id` or
    /// `workflow_name`.
    pub search_by: String,
}

impl PersistTo {
    /// A document of the chat's.
    pub fn new(database_name: impl Into<String>, collection: impl Into<String>) -> Self {
        Self {
            database_name: database_name.into(),
            collection: collection.into(),
            search_by: "chat_id".to_owned(),
        }
    }
}

/// A file of the project, read when a chat starts.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct File {
    /// Where it is, from the workflow's folder or from the project's.
    pub path: PathBuf,
    /// What is in it.
    pub format: FileFormat,
    /// How its text is written; `utf-8` is the one there is.
    pub encoding: Option<String>,
    /// The value if it is not there.
    pub default: Option<Value>,
    /// Whether a chat cannot start without it. True, unless there is a default.
    pub required: bool,
}

impl File {
    /// This file.
    pub fn new(path: impl Into<PathBuf>, format: FileFormat) -> Self {
        Self { path: path.into(), format, encoding: None, default: None, required: true }
    }
}

/// What is in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FileFormat {
    /// JSON.
    #[default]
    Json,
    /// YAML.
    Yaml,
    /// Text.
    Text,
}

impl FileFormat {
    /// The format that a file names so.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "json" => Some(Self::Json),
            "yaml" => Some(Self::Yaml),
            "text" => Some(Self::Text),
            _ => None,
        }
    }
}

/// What a database has.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DataReference {
    /// The database.
    pub database_name: String,
    /// The collection.
    pub collection: String,
    /// The fields that a document has to have, with `{{runtime.app_id}}` and `{{variable}}` in their
    /// values. If there are none: those of this app.
    pub query_template: Map<String, Value>,
    /// The fields that are read; all, if there are none. The value of the only one is the
    /// variable's, unless that is a list or an object.
    pub fields: Vec<String>,
    /// When it is read.
    pub refresh: Refresh,
    /// The value if nothing is found.
    pub default: Option<Value>,
}

impl DataReference {
    /// What this collection has.
    pub fn new(database_name: impl Into<String>, collection: impl Into<String>) -> Self {
        Self {
            database_name: database_name.into(),
            collection: collection.into(),
            ..Self::default()
        }
    }
}

/// When a reference is read again. A phase is the turns that one agent has in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Refresh {
    /// When the chat starts.
    #[default]
    Once,
    /// When the chat starts, and whenever another agent begins to speak.
    PerPhase,
    /// Before every turn of an agent that it is exposed to, and not before.
    OnDemand,
}

impl Refresh {
    /// The strategy that a file names so.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "once" => Some(Self::Once),
            "per_phase" => Some(Self::PerPhase),
            "on_demand" => Some(Self::OnDemand),
            _ => None,
        }
    }
}

/// A document of a database that the chat writes.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DataEntity {
    /// The database.
    pub database_name: String,
    /// The collection.
    pub collection: String,
    /// What its fields are.
    pub schema: Vec<EntityField>,
    /// What is looked up fast.
    pub indexes: Vec<Index>,
    /// When it is written.
    pub write: WriteStrategy,
    /// The field that finds the document. The chat's own are `chat_id`, `app_id`, `user_id` and
    /// `workflow_name`; any other is one of the document's.
    pub search_by: String,
}

impl DataEntity {
    /// A document of this chat, in this collection.
    pub fn new(database_name: impl Into<String>, collection: impl Into<String>) -> Self {
        Self {
            database_name: database_name.into(),
            collection: collection.into(),
            search_by: "chat_id".to_owned(),
            ..Self::default()
        }
    }
}

/// A field of an entity.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EntityField {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Kind,
    /// Whether a document has to have it.
    pub required: bool,
}

impl EntityField {
    /// A field of this type.
    pub fn new(name: impl Into<String>, kind: Kind, required: bool) -> Self {
        Self { name: name.into(), kind, required }
    }
}

/// An index of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Index {
    /// The fields.
    pub fields: Vec<String>,
    /// Whether no two documents have the same.
    pub unique: bool,
}

impl Index {
    /// An index of these fields.
    pub fn new(fields: Vec<String>, unique: bool) -> Self {
        Self { fields, unique }
    }
}

/// When an entity is written. A phase is the turns that one agent has in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WriteStrategy {
    /// After the turn that changed it; what `before_chat` changed, before the first turn.
    #[default]
    Immediate,
    /// When another agent begins to speak, and at the end.
    OnPhaseTransition,
    /// When the last turn is over, however the chat ends.
    OnWorkflowEnd,
}

impl WriteStrategy {
    /// The strategy that a file names so.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "immediate" => Some(Self::Immediate),
            "on_phase_transition" => Some(Self::OnPhaseTransition),
            "on_workflow_end" => Some(Self::OnWorkflowEnd),
            _ => None,
        }
    }
}

/// Which variables an agent gets to read in its instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exposure {
    /// The agent.
    pub agent: String,
    /// The variables, in the order in which it reads them.
    pub variables: Vec<String>,
}

impl Exposure {
    /// What this agent reads.
    pub fn new(agent: impl Into<String>, variables: Vec<String>) -> Self {
        Self { agent: agent.into(), variables }
    }
}
