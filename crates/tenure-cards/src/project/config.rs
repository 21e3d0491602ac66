//! `tenure.toml`.

use super::models::{self, ModelSettings, Owner};
use super::reader::Settings;
use super::store::{self, StoreSettings};
use super::{databases, servers, shown};
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::sandbox::{self, SandboxSettings};
use crate::server::Server;
use crate::source::{self, Source, Span};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure_core::hook::Limit;
use tenure_hosts::PythonLimits;
use toml::de::DeTable;

/// What `tenure.toml` says.
///
/// ```toml
/// default_model = "fast"
///
/// [aliases]
/// fast = "openai.gpt-4.1-mini"
///
/// [providers.local]             # a server of one's own
/// kind = "openai"               # also: anthropic, gemini, ollama
/// base_url = "http://127.0.0.1:8080/v1"
///
/// [mcp.servers.files]
/// command = ["npx", "-y", "@modelcontextprotocol/server-filesystem", "."]
///
/// [mcp.servers.web]
/// url = "https://example.com/mcp"
/// headers = { Authorization = "Bearer ${WEB_TOKEN}" }
///
/// [hooks]
/// env = ["DATABASE_URL"]        # variables that hooks get beside the usual ones
///
/// [python]
/// interpreter = ".venv/bin/python"
/// queue = "1m"                  # also: start, load; what comes before a function
///
/// [limits]
/// hook = "30s"                  # also: end, ends, turn, model, tool
///
/// [databases.shop]              # a database of workflows, SQLite
/// path = "data/shop.sqlite"
///
/// [context]                     # what workflows get to know of the project
/// aware = true                  # or CONTEXT_AWARE=true in the environment
/// concept_overview = "docs/concept.md"
/// schema_overview = "docs/schema.md"
///
/// [store]                       # where runs are recorded
/// record = true
/// path = ".tenure/tenure.db"
/// on_start = "keep"             # runs that did not finish; also: resume, abandon
/// on_message = "refuse"         # a message to a run that waits for a person; also: cancel
/// durability = "full"           # also: relaxed
///
/// [secrets]                     # hidden beside what is called or looks like a secret
/// names = ["LICENCE"]           # variables of the environment
/// shapes = true                 # false: only known values are hidden
///
/// [sandbox]                     # what processes of hooks, tools and servers may do
/// preset = "workspace-write"    # also: read-only, full
/// network = true                # also for a shell that a model drives
/// write = ["~/.npm"]            # folders that they may write beside the project
/// processes = 512               # the most processes of each
/// memory_mib = 8192             # the most memory of each process
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ProjectConfig {
    /// What it says about models.
    pub models: ModelSettings,
    /// `mcp.servers`: the tool servers that cards may name, by name.
    pub servers: BTreeMap<Arc<str>, Server>,
    /// `hooks.env`: names of environment variables that hooks get beside the usual ones.
    pub hook_env: Vec<String>,
    /// `python.interpreter`: the interpreter, relative to the project.
    pub interpreter: Option<PathBuf>,
    /// `python.start`, `python.load` and `python.queue`: what comes before a Python function.
    pub python_limits: PythonLimits,
    /// `limits.hook`: each call of a hook.
    pub hook_limit: Option<Limit>,
    /// `limits.end`: each call of a hook at the end of a scope.
    pub end_limit: Option<Limit>,
    /// `limits.ends`: all calls at the end of a scope together.
    pub ends_limit: Option<Limit>,
    /// `limits.turn`: a turn.
    pub turn_limit: Option<Limit>,
    /// `limits.model`: a model call.
    pub model_limit: Option<Limit>,
    /// `limits.tool`: a tool call.
    pub tool_limit: Option<Limit>,
    /// `databases`: the file of each, absolute and beneath the project; it need not be there yet.
    pub databases: BTreeMap<String, PathBuf>,
    /// `context`: what workflows get to know of the project.
    pub context: ContextSettings,
    /// `store`: where runs are recorded.
    pub store: StoreSettings,
    /// `secrets`: what is hidden beside what has the name or the look of a secret.
    pub secrets: SecretSettings,
    /// `sandbox`: the confinement of every process that the project has started.
    pub sandbox: SandboxSettings,
}

/// The table `[secrets]` of `tenure.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SecretSettings {
    /// Names of environment variables whose values are secrets, whatever they are called.
    pub names: Vec<String>,
    /// Whether only known values are hidden, and nothing because of the way that it looks.
    pub ignores_shapes: bool,
}

/// What `[context]` of `tenure.toml` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextSettings {
    /// Whether chats get the overviews also if `CONTEXT_AWARE` is not set.
    #[doc(alias = "CONTEXT_AWARE")]
    pub aware: bool,
    /// The file of the variable `concept_overview`, absolute.
    pub concept_overview: Option<PathBuf>,
    /// The file of the variable `schema_overview`, absolute.
    pub schema_overview: Option<PathBuf>,
    /// Whether chats get to know a database also if `CONTEXT_INCLUDE_SCHEMA` is not set.
    #[doc(alias = "CONTEXT_INCLUDE_SCHEMA")]
    pub include_schema: bool,
    /// The database that they get to know; none means the only one.
    #[doc(alias = "CONTEXT_SCHEMA_DB")]
    pub schema_database: Option<String>,
}

const TABLES: &[&str] = &[
    "hooks",
    "python",
    "limits",
    "mcp",
    databases::DATABASES,
    databases::CONTEXT,
    store::STORE,
    "secrets",
    sandbox::SANDBOX,
    models::DEFAULT_MODEL,
    models::PROVIDERS,
    models::ALIASES,
    models::PRICES,
];
const PYTHON: &[&str] = &["interpreter", "start", "load", "queue"];
const LIMITS: &[&str] = &["hook", "end", "ends", "turn", "model", "tool"];

/// Reads `file`, which stands in the resolved folder `root`. What is wrong goes to `report`.
pub(super) fn read(
    root: &Path,
    file: &Path,
    here: Option<&Path>,
    report: &mut Report,
) -> (ProjectConfig, Option<Arc<str>>) {
    if !stays_inside(root, file, here, report) {
        return (ProjectConfig::default(), None);
    }
    let Some(source) = source::read(file, shown(file, here), report) else {
        return (ProjectConfig::default(), None);
    };
    let text = source.shared_text();
    let table = Settings { source: &source, report }.parse(source.text());
    let config = table.map(|table| parse(&source, root, table.get_ref(), report));
    (config.unwrap_or_default(), Some(text))
}

/// Returns `true` if the file is one of the project's own; a link that leads out of it is reported.
pub(super) fn stays_inside(
    root: &Path,
    file: &Path,
    here: Option<&Path>,
    report: &mut Report,
) -> bool {
    if file.canonicalize().is_ok_and(|real| !real.starts_with(root)) {
        // Nothing of what it leads to is read, so nothing of it is shown.
        let source = Arc::new(Source::new(shown(file, here), ""));
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let message = format!("{name} is a link that leads out of the project");
        let diagnostic = Diagnostic::new(Code::LinkOutsideProject, &source, Span::at(0), message);
        report.push(diagnostic.help("put the file itself into the project"));
        return false;
    }
    true
}

/// Reads the tables, whose places are in `source`.
pub(super) fn parse(
    source: &Arc<Source>,
    folder: &Path,
    root: &DeTable<'_>,
    report: &mut Report,
) -> ProjectConfig {
    let mut reader = Settings { source, report };
    let mut config = ProjectConfig::default();
    reader.only(root, "tenure.toml", TABLES);
    config.models = models::read(&mut reader, root, &Owner::Project);
    config.servers = servers::read(&mut reader, root, folder);
    if let Some(hooks) = reader.table(root, "hooks") {
        reader.only(hooks, "[hooks]", &["env"]);
        config.hook_env = reader.names(hooks, "hooks.env", "env");
    }
    if let Some(secrets) = reader.table(root, "secrets") {
        reader.only(secrets, "[secrets]", &["names", "shapes"]);
        config.secrets.names = reader.names(secrets, "secrets.names", "names");
        if let Some(found) = secrets.get("shapes") {
            match found.get_ref().as_bool() {
                Some(hidden) => config.secrets.ignores_shapes = !hidden,
                None => reader.wrong("secrets.shapes", "true or false", found),
            }
        }
    }
    if let Some(python) = reader.table(root, "python") {
        reader.only(python, "[python]", PYTHON);
        config.interpreter = reader.program(python, "python.interpreter", "interpreter", folder);
        let PythonLimits { start, load, queue } = &mut config.python_limits;
        for (key, limit) in [("start", start), ("load", load), ("queue", queue)] {
            if let Some(said) = reader.limit(python, "python", key) {
                *limit = said.duration();
            }
        }
    }
    if let Some(limits) = reader.table(root, "limits") {
        reader.only(limits, "[limits]", LIMITS);
        config.hook_limit = reader.limit(limits, "limits", "hook");
        config.end_limit = reader.limit(limits, "limits", "end");
        config.ends_limit = reader.limit(limits, "limits", "ends");
        config.turn_limit = reader.limit(limits, "limits", "turn");
        config.model_limit = reader.limit(limits, "limits", "model");
        config.tool_limit = reader.limit(limits, "limits", "tool");
    }
    config.databases = databases::read(&mut reader, root, folder);
    config.context = databases::read_context(&mut reader, root, folder);
    config.store = store::read(&mut reader, root, folder);
    config.sandbox = sandbox::read(&mut reader, root, folder);
    config
}
