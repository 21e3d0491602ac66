//! The variables of a workflow, checked and ready for its chats.

use super::computed::{Formula, compile, near};
use super::database::Database;
use super::provided::ENTERPRISE_ID;
use super::{
    Definition, DescribedSchema, Exposure, Kind, Problem, Refresh, Source, Trigger, template,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tenure_cards::card::Environ;
use tenure_core::chat::Chat;
use tenure_core::secret::secret_parts;

/// How long a database may take to answer, unless somebody says otherwise.
const CALL_LIMIT: Duration = Duration::from_secs(30);

/// How long the end of a chat may take to write what is left, unless somebody says otherwise.
const END_LIMIT: Duration = Duration::from_secs(5);

/// The context variables of a workflow: what is declared, and where values come from. Every chat of
/// it has its own [`Session`](super::Session).
///
/// It says who may write what as [`Declarations`](tenure_core::chat::Declarations) of the chat.
pub struct Variables {
    pub(super) definitions: Vec<Definition>,
    by_name: BTreeMap<String, usize>,
    pub(super) formulas: Vec<Formula>,
    exposures: BTreeMap<String, Vec<usize>>,
    pub(super) root: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) environ: Environ,
    pub(super) databases: BTreeMap<String, Arc<dyn Database>>,
    pub(super) aware: bool,
    /// The files of `concept_overview` and `schema_overview`.
    pub(super) overviews: [Option<PathBuf>; 2],
    /// The database that chats get to know.
    pub(super) described: DescribedSchema,
    /// Whether a chat has anything to do with a database.
    pub(super) uses_data: bool,
    /// How long a database may take to answer.
    pub(super) call_limit: Duration,
    /// How long the end of a chat may take to write what is left.
    pub(super) end_limit: Duration,
}

impl Variables {
    /// Variables of a workflow in `folder`, whose files are beneath `root`; both absolute and with
    /// links resolved. Everything that is wrong is said at once.
    ///
    /// The environment is that of the process, until [`Variables::environ`] says otherwise.
    pub fn new(
        definitions: Vec<Definition>,
        exposures: Vec<Exposure>,
        root: impl Into<PathBuf>,
        folder: impl Into<PathBuf>,
    ) -> Result<Self, Vec<Problem>> {
        let mut problems = check(&definitions, &exposures);
        if !problems.is_empty() {
            return Err(problems);
        }
        let formulas = compile(&definitions, &mut problems);
        let by_name: BTreeMap<_, _> =
            definitions.iter().enumerate().map(|(at, it)| (it.name.clone(), at)).collect();
        let mut exposed: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for Exposure { agent, variables } in exposures {
            let all = exposed.entry(agent).or_default();
            for at in variables.iter().filter_map(|name| by_name.get(name)) {
                if !all.contains(at) {
                    all.push(*at);
                }
            }
        }
        exposed.retain(|_, variables| !variables.is_empty());
        let uses_data = definitions.iter().any(|it| database_of(&it.source).is_some());
        Ok(Self {
            uses_data,
            definitions,
            by_name,
            formulas,
            exposures: exposed,
            root: root.into(),
            folder: folder.into(),
            environ: Environ::process(),
            databases: BTreeMap::new(),
            aware: false,
            overviews: [None, None],
            described: DescribedSchema::default(),
            call_limit: CALL_LIMIT,
            end_limit: END_LIMIT,
        })
    }

    /// No variables at all: whatever is written is scratch.
    pub fn none() -> Self {
        Self {
            definitions: Vec::new(),
            by_name: BTreeMap::new(),
            formulas: Vec::new(),
            exposures: BTreeMap::new(),
            root: PathBuf::new(),
            folder: PathBuf::new(),
            environ: Environ::process(),
            databases: BTreeMap::new(),
            aware: false,
            overviews: [None, None],
            described: DescribedSchema::default(),
            uses_data: false,
            call_limit: CALL_LIMIT,
            end_limit: END_LIMIT,
        }
    }

    /// Where `config` variables are looked up.
    #[must_use]
    pub fn environ(mut self, environ: Environ) -> Self {
        self.environ = environ;
        self
    }

    /// The database of this name.
    #[must_use]
    pub fn database(mut self, name: impl Into<String>, database: Arc<dyn Database>) -> Self {
        self.databases.insert(name.into(), database);
        self
    }

    /// How long a database may take to answer (30 seconds), and how long the end of a chat may take
    /// to write everything that is left (5 seconds). A chat whose database takes longer fails, and a
    /// write that fails after the chat's own ends changes nothing of how it ended.
    #[must_use]
    pub fn data_limits(mut self, call: Duration, end: Duration) -> Self {
        self.call_limit = call;
        self.end_limit = end;
        self
    }

    /// The files of the read-only variables `concept_overview` and `schema_overview`. Chats get them
    /// if `aware` is true or the environment says `CONTEXT_AWARE=true`.
    #[must_use]
    pub fn overviews(
        mut self,
        aware: bool,
        concept: Option<PathBuf>,
        schema: Option<PathBuf>,
    ) -> Self {
        self.aware = aware;
        self.overviews = [concept, schema];
        self
    }

    /// The database that chats get to know as `schema_overview`, `database_schema_available`,
    /// `database_schema_db` and `collections_first_docs_full`.
    #[must_use]
    pub fn described(mut self, schema: DescribedSchema) -> Self {
        self.described = schema;
        self
    }

    /// The databases that variables need and nobody has given, by name, each with a variable that
    /// needs it.
    pub fn missing_databases(&self) -> BTreeMap<&str, &str> {
        let needs = self.definitions.iter().filter_map(|it| Some((database_of(&it.source)?, it)));
        needs
            .filter(|(name, _)| !self.databases.contains_key(*name))
            .map(|(name, definition)| (name, definition.name.as_str()))
            .collect()
    }

    /// What is declared of a variable.
    pub fn get(&self, name: &str) -> Option<&Definition> {
        self.by_name.get(name).map(|at| &self.definitions[*at])
    }

    /// Everything that is declared, in the order of the file.
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// Whether a chat can be given a value of this name to begin with: a state, a document that it
    /// writes, or one that is not declared.
    pub fn accepts(&self, name: &str) -> bool {
        !self.is_of_platform(name)
            && !Chat::system_keys().contains(&name)
            && self.get(name).is_none_or(|it| is_writable(&it.source))
    }

    /// What an agent gets to read.
    pub fn exposed_to(&self, agent: &str) -> impl Iterator<Item = &Definition> {
        let exposed = self.exposures.get(agent).into_iter().flatten();
        exposed.map(|at| &self.definitions[*at])
    }

    /// The values of the environment that must not be shown, as far as they are set now.
    pub fn secrets(&self) -> Vec<String> {
        secrets(&self.definitions, &self.environ)
    }

    /// What of a chat's variables is kept with it: not what comes from elsewhere when it goes on, and
    /// no state that says `persist: false`.
    pub fn persisted(
        &self,
        variables: &BTreeMap<String, serde_json::Value>,
    ) -> BTreeMap<String, serde_json::Value> {
        let is_kept = |name: &str| {
            self.accepts(name)
                && self.get(name).is_none_or(|it| match &it.source {
                    Source::State(state) => state.persist,
                    _ => true,
                })
        };
        let kept = variables.iter().filter(|(name, _)| is_kept(name));
        kept.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The files that chats read when they start, as they are written: those of `file` variables.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.definitions.iter().filter_map(|it| match &it.source {
            Source::File(file) => Some(&*file.path),
            _ => None,
        })
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variables").field("names", &self.by_name.keys()).finish_non_exhaustive()
    }
}

/// The values that these variables take from the environment and that must not be shown.
pub(crate) fn secrets(definitions: &[Definition], environ: &Environ) -> Vec<String> {
    let mut secrets = Vec::new();
    for definition in definitions {
        if let Source::Config(config) = &definition.source
            && let Some(value) = environ.value(&config.env_var)
        {
            secrets.extend(secret_parts(&config.env_var, &value).into_iter().map(str::to_owned));
        }
    }
    secrets
}

pub(super) fn is_writable(source: &Source) -> bool {
    matches!(source, Source::State(_) | Source::DataEntity(_))
}

fn database_of(source: &Source) -> Option<&str> {
    match source {
        Source::DataReference(it) => Some(&it.database_name),
        Source::DataEntity(it) => Some(&it.database_name),
        Source::Computed(it) => it.persist_to.as_ref().map(|it| it.database_name.as_str()),
        _ => None,
    }
}

/// Everything that is wrong with what a workflow declares. Agents and tools that triggers and
/// exposures name are the loader's to check: it knows who there is.
pub fn check(definitions: &[Definition], exposures: &[Exposure]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut names = BTreeSet::new();
    for definition in definitions {
        let name = definition.name.as_str();
        let mut problem = |message: String, help: &str| {
            problems.push(Problem::new(name, "name", message, help));
        };
        if !is_name(name) {
            let help = "write letters, digits and underscores, and no digit first";
            problem(format!("`{name}` cannot be a variable's name"), help);
        } else if Chat::system_keys().contains(&name) {
            let help = "leave it out: it is always there";
            problem(format!("`{name}` is set by the platform"), help);
        } else if !names.insert(name) {
            problem(format!("`{name}` is declared twice"), "leave one of them out");
        }
    }
    // What a query may name: what never comes out of a database, and what was read before it.
    let is_plain = |it: &&Definition| {
        matches!(
            it.source,
            Source::Config(_)
                | Source::State(_)
                | Source::File(_)
                | Source::Static(_)
                | Source::Provided(_)
        )
    };
    let mut known: BTreeSet<&str> =
        definitions.iter().filter(is_plain).map(|it| it.name.as_str()).collect();
    for definition in definitions {
        check_source(definition, &known, &mut problems);
        if let Source::DataReference(reference) = &definition.source
            && reference.refresh != Refresh::OnDemand
        {
            known.insert(definition.name.as_str());
        }
    }
    compile(definitions, &mut problems);
    for Exposure { agent, variables } in exposures {
        for name in variables.iter().filter(|name| !names.contains(name.as_str())) {
            let message = format!("agent `{agent}` gets `{name}`, which is not declared");
            problems.push(Problem::new(agent, "variables", message, near(name, &names)));
        }
    }
    problems
}

fn is_name(name: &str) -> bool {
    let starts = |it: char| it.is_alphabetic() || it == '_';
    name.starts_with(starts) && name.chars().all(|it| starts(it) || it.is_numeric())
}

fn check_source(definition: &Definition, known: &BTreeSet<&str>, problems: &mut Vec<Problem>) {
    let (name, kind) = (definition.name.as_str(), definition.kind);
    let mut wrong = |field: &'static str, message: String, help: &str| {
        problems.push(Problem::new(name, field, message, help));
    };
    let of_kind = |value: &serde_json::Value| {
        kind.coerce(value.clone()).err().map(|error| format!("its default is wrong: {error}"))
    };
    match &definition.source {
        Source::Config(config) => {
            if config.env_var.trim().is_empty() {
                let help = "say which variable of the environment it is";
                wrong("source.env_var", "it has no env_var".to_owned(), help);
            }
            if let Some(message) = config.default.as_ref().and_then(of_kind) {
                wrong("source.default", message, "give it a default of its type");
            }
        }
        Source::State(state) => {
            if let Some(message) = of_kind(&state.default) {
                wrong("source.default", message, "give it a default of its type");
            }
            for transition in &state.triggers {
                let is_text = matches!(transition.trigger, Trigger::AgentText { .. });
                match &transition.to {
                    Some(to) => {
                        if let Err(error) = kind.check(to) {
                            let message =
                                format!("a trigger sets it to what it cannot be: {error}");
                            wrong("source.triggers", message, "set it to a value of its type");
                        }
                    }
                    None if is_text && !matches!(kind, Kind::Bool | Kind::Any | Kind::Json) => {
                        let message =
                            format!("a message sets it to true, but it is declared as {kind}");
                        let help = "declare it as bool, or write transitions that say what it \
                                    becomes";
                        wrong("source.triggers", message, help);
                    }
                    None => {}
                }
            }
        }
        Source::File(file) => {
            let encoding = file.encoding.as_deref().unwrap_or("utf-8").to_ascii_lowercase();
            if !["utf-8", "utf8", "utf-8-sig", "ascii"].contains(&encoding.as_str()) {
                let message = format!("its encoding is `{encoding}`");
                wrong("source.encoding", message, "save the file as utf-8");
            }
            if let Some(message) = file.default.as_ref().and_then(of_kind) {
                wrong("source.default", message, "give it a default of its type");
            }
        }
        Source::Static(value) => {
            if let Err(error) = kind.check(value) {
                wrong("source.value", error, "give it a value of its type");
            }
        }
        Source::Provided(_) => {}
        Source::DataReference(reference) => {
            for (field, text) in [
                ("source.database_name", &reference.database_name),
                ("source.collection", &reference.collection),
            ] {
                check_named(text, field, &mut wrong);
            }
            if !matches!(kind, Kind::Any | Kind::Json | Kind::List | Kind::Dict)
                && reference.fields.len() != 1
            {
                let message = format!("it is declared as {kind}, and reads several fields");
                wrong("source.fields", message, "name the one field that it is");
            }
            let is_known = |name: &str| known.contains(name);
            if let Some((message, help)) = template::check(&reference.query_template, is_known) {
                wrong("source.query_template", message, &help);
            }
            if let Some(message) = reference.default.as_ref().and_then(of_kind) {
                wrong("source.default", message, "give it a default of its type");
            }
        }
        Source::DataEntity(entity) => {
            for (field, text) in [
                ("source.database_name", &entity.database_name),
                ("source.collection", &entity.collection),
                ("source.search_by", &entity.search_by),
            ] {
                check_named(text, field, &mut wrong);
            }
            if !matches!(kind, Kind::Any | Kind::Json | Kind::Dict) {
                let message = format!("it is declared as {kind}, but is a document");
                wrong("type", message, "declare it as dict");
            }
        }
        Source::Computed(computed) => {
            if let Some(to) = &computed.persist_to {
                check_named(&to.database_name, "source.persist_to", &mut wrong);
                check_named(&to.collection, "source.persist_to", &mut wrong);
                let by = to.search_by.as_str();
                if !Chat::system_keys().contains(&by) && by != ENTERPRISE_ID {
                    let message = format!("its document is searched by `{}`", to.search_by);
                    let help = "search by chat_id, app_id, user_id or workflow_name";
                    wrong("source.persist_to", message, help);
                }
            }
        }
    }
}

fn check_named(
    text: &str,
    field: &'static str,
    wrong: &mut impl FnMut(&'static str, String, &str),
) {
    if text.trim().is_empty() {
        let last = field.rsplit('.').next().unwrap_or(field);
        wrong(field, format!("it has no {last}"), "say where in a database it is");
    }
}
