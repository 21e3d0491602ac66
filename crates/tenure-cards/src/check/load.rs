//! Loading.

use super::files::{self, Asked, Candidate, ReadFile};
use super::home::folders_beside;
use super::scripts::Strays;
use super::{grants, servers, together, variables};
use crate::build::used_servers;
use crate::card::{Card, CardContext, Environ, Expansion, Secret, parse_card};
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::project::{ModelSettings, Project, card_folders, report_stray, sibling_cards};
use crate::python::{PythonFiles, check_processes, reach};
use crate::source::{Document, FileKind, Layout, Node, Source, Span};
use crate::trust::{CommandChecks, Modules, ProjectPython};
use crate::user::UserConfig;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure_core::secret::{Redactor, passwords};
use tenure_models::provider::{KeySource, Providers};

/// No key is longer.
const MOST_OF_A_KEY: u64 = 16 * 1024;

/// How cards are loaded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Where the values of `${VAR}` come from: the environment of this process.
    pub environ: Environ,
    /// The names that `use` may say. None, the default, leaves that to whoever builds the agents.
    pub registered_hooks: Option<Vec<String>>,
    /// The user's own configuration; by default it says nothing.
    pub user: UserConfig,
    /// The redactor that learns the project's secrets. A caller that reads the files again gives the same one, so
    /// that what was hidden stays hidden.
    pub redactor: Redactor,
}

impl Default for LoadOptions {
    fn default() -> Self {
        let user = UserConfig::default();
        let redactor = Redactor::new();
        Self { environ: Environ::process(), registered_hooks: None, user, redactor }
    }
}

impl LoadOptions {
    /// Takes the values of `${VAR}` from here.
    #[must_use]
    pub fn environ(mut self, environ: Environ) -> Self {
        self.environ = environ;
        self
    }

    /// The user's own configuration. What is wrong with it is reported with the cards.
    #[must_use]
    pub fn user_config(mut self, user: UserConfig) -> Self {
        self.user = user;
        self
    }

    /// Has this redactor learn the project's secrets.
    #[must_use]
    pub fn redactor(mut self, redactor: &Redactor) -> Self {
        self.redactor = redactor.clone();
        self
    }

    /// Reports a `use` that says none of these names.
    #[must_use]
    pub fn registered_hooks<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.registered_hooks = Some(names.into_iter().map(Into::into).collect());
        self
    }
}

/// The cards of a file or a folder, with everything that is wrong with them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Loaded {
    /// The project that they belong to.
    pub project: Project,
    /// The cards that could be read, sorted by file. If the report has errors, some are missing and
    /// others are not whole: nothing of them may run.
    pub cards: Vec<Card>,
    /// What is wrong.
    pub report: Report,
    /// The user's own configuration.
    pub user: UserConfig,
    /// Where values of variables come from.
    pub(crate) environ: Environ,
    redactor: Redactor,
    /// The file or folder that was asked for, as it was written.
    pub(crate) asked: PathBuf,
    /// The folder of the card that was asked for, if that was one file.
    only_one_of: Option<PathBuf>,
    /// Whether there are cards that could not be read, whose names nobody knows for sure.
    lacks_cards: bool,
    /// What other files of the same agents take from the environment.
    elsewhere: Vec<Expansion>,
    /// The commands that it starts, with their files as they were checked.
    pub(crate) commands: CommandChecks,
    /// The Python files of its hooks and tools, and what those import.
    pub(crate) python: Arc<ProjectPython>,
}

impl Loaded {
    /// Where the values of `${VAR}` come from.
    pub fn environ(&self) -> &Environ {
        &self.environ
    }

    /// The card of this name.
    pub fn card(&self, name: &str) -> Option<&Card> {
        self.cards.iter().find(|card| &*card.name == name)
    }

    /// The names of all agents, sorted; none, if there may be others that could not be read.
    pub(crate) fn agent_names(&self) -> Option<Arc<[String]>> {
        let mut names: Vec<String> = self.cards.iter().map(|card| card.name.to_string()).collect();
        names.sort();
        (!self.lacks_cards).then(|| names.into())
    }

    /// What to do where an agent is not among them, if there may be more cards beside those.
    pub(crate) fn more_agents(&self) -> Option<Arc<str>> {
        let folder = self.only_one_of.as_ref()?.display();
        let help = "only one file was loaded; to have the cards beside it too, name the folder";
        Some(format!("{help}: `tenure check {folder}`").into())
    }

    /// Returns what hooks and tools may import of the project, as it was when it was first asked for: when
    /// what would run was listed, or else when the agents were started.
    pub(crate) fn modules(&self) -> &Arc<Modules> {
        self.python.modules(&self.project)
    }

    /// The providers of models, as the configurations describe them. Keys are looked for where
    /// values of `${VAR}` come from, when a model is made.
    pub fn providers(&self) -> Providers {
        let config = ModelSettings::merged(&self.project.config.models, &self.user.models);
        let environ = self.environ.clone();
        Providers::with_env(config, move |name| environ.value(name))
    }

    /// Returns the redactor of the project, which knows its secrets: what stands for `${VAR}` in fields
    /// such as `api_key` and `headers`; the variables of the environment whose names are those of
    /// secrets, or that `[secrets] names` lists; what tool servers are given in headers and under such
    /// names; the keys of providers; and keys that are written in a card.
    ///
    /// There is one for the project: every sink is given it, and what a hook says is a secret at run
    /// time, all of them hide.
    pub fn redactor(&self) -> Redactor {
        let config = &self.project.config;
        let expansions = self.cards.iter().flat_map(|card| &card.expansions).chain(&self.elsewhere);
        let of_cards = expansions.filter_map(|it| it.secret.as_ref()).map(Secret::reveal);
        let mut values: Vec<String> = of_cards.map(str::to_owned).collect();
        values.extend(self.environ.secrets(&config.secrets.names));
        values.extend(self.cards.iter().flat_map(Card::literal_secrets));
        values.extend(used_servers(self).values().flat_map(|it| it.secrets(&self.environ)));
        values.extend(self.provider_keys().into_iter().map(|(_, key)| key));
        let hidden: Vec<String> =
            values.iter().flat_map(|value| passwords(value)).map(str::to_owned).collect();
        self.redactor.learn(values.iter().chain(&hidden));
        if config.secrets.ignores_shapes {
            self.redactor.ignore_shapes();
        }
        self.redactor.clone()
    }

    /// Returns the keys of providers, as far as they are there, each with its provider.
    pub(crate) fn provider_keys(&self) -> Vec<(String, String)> {
        let statuses = self.providers().known_providers();
        let set = statuses.iter().filter_map(|status| {
            let key = self.environ.value(&status.key_name)?;
            Some((status.name.clone(), key))
        });
        let said = self.user.models.providers.iter().filter_map(|(name, entry)| match &entry.key {
            Some(KeySource::File(path)) => Some((name.clone(), key_file(path)?)),
            Some(KeySource::Env(variable)) => Some((name.clone(), self.environ.value(variable)?)),
            _ => None,
        });
        set.chain(said).collect()
    }

    /// Counts what other files of the same agents take from the environment among the secrets.
    pub fn also_takes(&mut self, expansions: &[Expansion]) {
        self.elsewhere.extend(expansions.iter().cloned());
    }

    /// The card that a run without a name talks to: the one that says `default: true`, else the
    /// only one that no other names, else the first that people may talk to.
    pub fn default_card(&self) -> Option<&Card> {
        default_of(&self.cards)
    }
}

/// The card of these that a run without a name talks to.
pub(super) fn default_of(cards: &[Card]) -> Option<&Card> {
    let open = || cards.iter().filter(|card| !card.tool_only);
    let named: HashSet<&str> =
        cards.iter().flat_map(Card::references).map(|it| &*it.name).collect();
    open()
        .find(|card| card.default)
        .or_else(|| open().find(|card| !named.contains(&*card.name)))
        .or_else(|| open().next())
}

/// Loads a card, or every card of a folder. Executes nothing, opens no connection and never fails:
/// what is wrong is in the report.
///
/// Agents that a card names and that are not loaded are looked for among the files beside it.
#[doc(alias = "agent_card_loader")]
pub fn load(path: &Path, options: &LoadOptions) -> Loaded {
    let mut loading = CardLoader::new(path, options);
    match (path.is_dir(), card_folders(path)) {
        (true, Some(folders)) => loading.home(path, &folders),
        (true, None) => {
            loading.folder(path, &[path.to_owned()]);
            loading.beside(path, sibling_cards(path).into_iter().collect());
        }
        (false, _) => {
            let candidate = Candidate { path: path.to_owned(), shown: path.to_owned() };
            loading.file(&candidate, Asked::ByName);
            loading.beside(path, folders_beside(path));
        }
    }
    loading.cards.sort_by(|a, b| a.source.path().cmp(b.source.path()));
    let mut loaded = loading.finish(path);
    loaded.only_one_of = path.is_file().then(|| folder_as_written(path).to_owned());
    loaded
}

/// The folder that a file is in, as it is written.
pub(super) fn folder_as_written(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// What a key file of the user's holds, if it is a plain file of the size of a key.
fn key_file(path: &Path) -> Option<String> {
    let meta = path.metadata().ok().filter(|meta| meta.is_file() && meta.len() <= MOST_OF_A_KEY)?;
    let text = std::fs::read_to_string(path).ok()?;
    (meta.len() > 0).then_some(text)
}

/// Cards that are being loaded, from files of their own and from others.
///
/// It is public for crates that read other files which declare agents; see
/// [`embed`](crate::embed).
#[derive(Debug)]
pub struct CardLoader<'a> {
    /// The project.
    pub project: Project,
    /// How cards are loaded.
    pub options: &'a LoadOptions,
    /// The Python files that were read so far, each once.
    pub python: PythonFiles,
    /// The names that `{{name}}` and `${name}` in the instructions of the next cards may say, because
    /// whoever embeds them puts values there when their models are called.
    pub filled: Vec<String>,
    pub(super) cards: Vec<Card>,
    /// Names of cards that could not be read: nobody who names them is wrong.
    broken: HashSet<Arc<str>>,
    files: HashSet<PathBuf>,
    /// Folders as they are written, and resolved.
    folders: HashMap<PathBuf, PathBuf>,
    strays: Strays,
    report: Report,
}

impl<'a> CardLoader<'a> {
    /// Begins loading cards of the project that `path` belongs to.
    pub fn new(path: &Path, options: &'a LoadOptions) -> Self {
        let project = Project::find(path);
        let mut report = options.user.report().clone();
        report.extend(project.report().clone());
        Self {
            report,
            project,
            options,
            python: PythonFiles::default(),
            filled: Vec::new(),
            cards: Vec::new(),
            broken: HashSet::new(),
            files: HashSet::new(),
            folders: HashMap::new(),
            strays: Strays::default(),
        }
    }
}

impl CardLoader<'_> {
    /// Reads a card from its own file, with the cards that it names from beside it. Its name, if it
    /// could be read.
    pub fn card_file(&mut self, path: &Path, shown: &Path) -> Option<Arc<str>> {
        let before = self.cards.len();
        let candidate = Candidate { path: path.to_owned(), shown: shown.to_owned() };
        self.file(&candidate, Asked::ByName);
        let name = self.cards.get(before).map(|card| Arc::clone(&card.name));
        self.beside(path, folders_beside(path));
        name
    }

    /// Reads a card from an entry of another file: its fields are `tree`, its relative paths start
    /// from `dir`, which is resolved. Its name, also if it cannot be used.
    pub fn embedded(
        &mut self,
        source: &Arc<Source>,
        tree: Node,
        dir: &Path,
        report: &mut Report,
    ) -> Arc<str> {
        let layout = Layout::new(tree.span);
        let source = Arc::clone(source);
        let document = Document { source, kind: FileKind::Yaml, tree, body: None, layout };
        self.read(document, dir, report)
    }

    /// The cards so far.
    pub fn cards(&self) -> &[Card] {
        &self.cards
    }

    /// Checks the cards together. `asked` is what the user asked for.
    pub fn finish(self, asked: &Path) -> Loaded {
        let Self { project, cards, mut report, broken, options, python, .. } = self;
        together::check(&cards, &broken, &mut report);
        servers::check(&cards, &project, &mut report);
        grants::check(&cards, &project, &mut report);
        let (user, environ) = (options.user.clone(), options.environ.clone());
        let redactor = options.redactor.clone();
        check_processes(&python, &mut report);
        let reached = reach(&python, &project, &mut report);
        let python = Arc::new(ProjectPython::new(python.into_files(), reached));
        let (asked, commands) = (asked.to_owned(), CommandChecks::new(&project));
        let (elsewhere, lacks_cards) = (Vec::new(), !broken.is_empty());
        let mut loaded = Loaded {
            project,
            cards,
            report,
            user,
            environ,
            redactor,
            asked,
            only_one_of: None,
            lacks_cards,
            elsewhere,
            commands,
            python,
        };
        let found = variables::check(&loaded);
        loaded.report.extend(found);
        loaded
    }

    /// Loads the cards in `folders`, for what was asked for.
    pub(super) fn folder(&mut self, folder: &Path, folders: &[PathBuf]) {
        let before = self.report.errors();
        for folder in folders {
            report_stray(folder, &self.project, &mut self.report);
            for candidate in files::list(folder, &mut self.report) {
                self.file(&candidate, Asked::InFolder);
            }
        }
        let (own, user) = (&self.project.config.models, &self.options.user.models);
        let models = [own, user].into_iter();
        for model in models.flat_map(|it| it.default_model.iter().chain(it.aliases.values())) {
            self.strays.script(&model.text, &self.project.root, &self.project);
        }
        self.report.extend(self.strays.lost());
        if self.cards.is_empty() && self.report.errors() == before {
            let source = Arc::new(Source::new(folder, ""));
            self.report.push(
                Diagnostic::new(Code::NoCards, &source, Span::at(0), "the folder holds no card")
                    .help(
                        "name a folder with .md or .yaml cards; folders inside it are not searched",
                    ),
            );
        }
    }

    fn file(&mut self, file: &Candidate, asked: Asked) {
        let path = self.folder_of(&file.path).join(file.path.file_name().unwrap_or_default());
        if !self.files.insert(path) {
            return;
        }
        match files::read(file, asked, &self.project, &mut self.report) {
            ReadFile::Card(document) => {
                let mut report = std::mem::take(&mut self.report);
                self.card(*document, file, &mut report);
                self.report = report;
            }
            ReadFile::Broken => {
                let stem = file.path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
                self.broken.insert(stem.unwrap_or_default().replace(' ', "_").into());
            }
            ReadFile::Stray(said) => self.strays.add(&file.path, *said),
            ReadFile::Skipped => {}
        }
    }

    fn card(&mut self, document: Document, file: &Candidate, report: &mut Report) {
        let dir = self.folder_of(&file.path);
        let environ = &self.options.environ;
        self.strays.named_in(&document.tree, &dir, &self.project, environ);
        self.read(document, &dir, report);
    }

    fn read(&mut self, document: Document, dir: &Path, report: &mut Report) -> Arc<str> {
        let context = CardContext {
            project: &self.project,
            environ: &self.options.environ,
            python: &mut self.python,
            registered: self.options.registered_hooks.as_deref(),
            dir,
            filled: &self.filled,
        };
        let parsed = parse_card(document, context, report);
        match parsed.card {
            Some(mut card) => {
                // Nobody has to set these in the environment.
                card.expansions.retain(|it| it.is_resolved || !self.filled.contains(&it.name));
                self.cards.push(card);
            }
            None => {
                self.broken.insert(Arc::clone(&parsed.name));
            }
        }
        parsed.name
    }

    /// Loads what the cards name from the files in `folders`, until nothing is missing. `path` is
    /// what was asked for.
    fn beside(&mut self, path: &Path, folders: Vec<PathBuf>) {
        let missing = |loading: &Self| -> Vec<Arc<str>> {
            let there: HashSet<&str> = loading.cards.iter().map(|card| &*card.name).collect();
            let named = loading.cards.iter().flat_map(Card::references);
            named.map(|it| it.name.clone()).filter(|name| !there.contains(&**name)).collect()
        };
        if missing(self).is_empty() {
            return;
        }
        // The names are found without keeping what is wrong with files that nobody asked for.
        let mut names: HashMap<Arc<str>, Vec<Candidate>> = HashMap::new();
        let files = folders.iter().flat_map(|it| files::list(it, &mut Report::new()));
        for mut candidate in files.collect::<Vec<_>>() {
            if candidate.path.parent() == Some(Path::new("."))
                && path.parent().is_none_or(|parent| parent.as_os_str().is_empty())
            {
                candidate.shown = candidate.path.file_name().map(PathBuf::from).unwrap_or_default();
            }
            if let Some(name) = self.peek(&candidate) {
                names.entry(name).or_default().push(candidate);
            }
        }
        loop {
            let wanted = missing(self);
            let found: Vec<Candidate> =
                wanted.iter().filter_map(|name| names.remove(name)).flatten().collect();
            if found.is_empty() {
                return;
            }
            for candidate in found {
                self.file(&candidate, Asked::ByName);
            }
        }
    }

    /// The name of the card in a file.
    fn peek(&mut self, candidate: &Candidate) -> Option<Arc<str>> {
        let mut report = Report::new();
        let stem = || {
            let stem = candidate.path.file_stem()?.to_string_lossy();
            Some(Arc::<str>::from(stem.replace(' ', "_")))
        };
        match files::read(candidate, Asked::InFolder, &self.project, &mut report) {
            ReadFile::Card(document) => {
                match document.tree.field("name").and_then(|it| it.text()) {
                    Some(name) => {
                        let name = crate::card::expand(name, &self.options.environ);
                        Some(name.trim().replace(' ', "_").into())
                    }
                    None => stem(),
                }
            }
            ReadFile::Broken => stem(),
            ReadFile::Stray(_) | ReadFile::Skipped => None,
        }
    }

    /// The folder that a file is in, resolved. It is the folder of the name, not of what a link
    /// points to: relative paths are written for it.
    fn folder_of(&mut self, file: &Path) -> PathBuf {
        let parent = folder_as_written(file);
        if let Some(folder) = self.folders.get(parent) {
            return folder.clone();
        }
        let folder = parent.canonicalize().unwrap_or_else(|_| parent.to_owned());
        self.folders.insert(parent.to_owned(), folder.clone());
        folder
    }
}
