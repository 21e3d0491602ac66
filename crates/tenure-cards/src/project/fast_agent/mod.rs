//! Projects of fast-agent: where their cards and their configuration are, and what of it means
//! something here.

mod convert;
mod write;

use self::write::Reader;
use super::config::{self, ProjectConfig};
use super::{CONFIG_FILE, Project, shown};
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::source::{self, Source, Span};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder of a workspace in which fast-agent keeps what is its own.
const HOME: &str = ".fast-agent";
/// The folders of cards in it: agents, and agents that are tools of the default one.
const AGENT_CARDS: &str = "agent-cards";
pub(crate) const TOOL_CARDS: &str = "tool-cards";
/// The names that a configuration has had, newest first.
const CONFIGS: &[&str] = &["fast-agent.yaml", "fast-agent.config.yaml", "fastagent.config.yaml"];
const SECRETS: &[&str] = &["fast-agent.secrets.yaml", "fastagent.secrets.yaml"];
/// The manifest of a pack of cards.
const PACK: &str = "card-pack.yaml";

/// A configuration of fast-agent that a project has in place of a `tenure.toml`.
#[derive(Clone)]
#[non_exhaustive]
pub struct FastAgentConfig {
    /// The file.
    pub file: PathBuf,
    /// Its text, which may hold keys.
    pub text: Arc<str>,
}

impl fmt::Debug for FastAgentConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FastAgentConfig").field("file", &self.file).finish_non_exhaustive()
    }
}

/// A configuration of fast-agent as a `tenure.toml`.
#[derive(Clone)]
#[non_exhaustive]
pub struct Conversion {
    /// The file that it was read from.
    pub file: PathBuf,
    /// The text of a `tenure.toml` for the workspace.
    pub toml: String,
    /// The same without values that may be secrets.
    pub shown: String,
    /// Problems of the file, and everything that was left out.
    pub report: Report,
}

impl fmt::Debug for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Conversion");
        shown.field("file", &self.file).field("toml", &self.shown).finish_non_exhaustive()
    }
}

/// Converts the configuration of fast-agent that the workspace `root` has; none if it has none.
/// Writes nothing.
pub fn convert(root: &Path) -> Option<Conversion> {
    let here = std::env::current_dir().ok();
    let root = root.canonicalize().ok()?;
    let files = Files::of(&root);
    let file = files.config.clone()?;
    let mut report = Report::new();
    let read = source_of(&file, &root, here.as_deref(), &mut report);
    let toml = read.and_then(|source| {
        let (tree, source) = convert::tree(&source, &mut report)?;
        let table = convert::table(&tree, &source, &mut report)?;
        config::parse(&source, &root, &table, &mut report);
        Some([Reader::Program, Reader::Person].map(|reader| write::toml(&table, reader)))
    });
    files.report_unread(here.as_deref(), Reason::Found, &mut report);
    let [toml, shown] = toml.unwrap_or_default();
    Some(Conversion { file, toml, shown, report })
}

/// The workspace that `start` belongs to, if fast-agent has left its files there: the nearest of
/// the folders from `start` up to `outermost`, or the one around the home that `start` is in.
pub(super) fn workspace(start: &Path, outermost: &Path) -> Option<PathBuf> {
    let around = |home: &Path| match home.file_name().is_some_and(|name| name == HOME) {
        true => home.parent().map(Path::to_owned),
        false => Some(home.to_owned()),
    };
    for folder in start.ancestors() {
        let name = folder.file_name().unwrap_or_default();
        if name == HOME {
            return around(folder);
        }
        if name == AGENT_CARDS || name == TOOL_CARDS {
            return folder.parent().and_then(around);
        }
        if !folder.starts_with(outermost) {
            break;
        }
        if folder.join(HOME).is_dir() || Files::of(folder).config.is_some() {
            return Some(folder.to_owned());
        }
    }
    None
}

/// The folders of cards that a workspace or a home has; none if it is an ordinary folder.
pub(crate) fn card_folders(folder: &Path) -> Option<[PathBuf; 2]> {
    let homes = [folder.join(HOME), folder.to_owned()];
    homes
        .iter()
        .map(|home| [home.join(AGENT_CARDS), home.join(TOOL_CARDS)])
        .find(|folders| folders.iter().any(|it| it.is_dir()))
}

/// The folder of cards that belongs to this one, if this is one of a home's two.
pub(crate) fn sibling_cards(folder: &Path) -> Option<PathBuf> {
    let full = folder.canonicalize().ok()?;
    let other = match full.file_name()?.to_str()? {
        AGENT_CARDS => TOOL_CARDS,
        TOOL_CARDS => AGENT_CARDS,
        _ => return None,
    };
    let beside = match folder.file_name() {
        Some(_) => folder.with_file_name(other),
        None => folder.join("..").join(other),
    };
    beside.is_dir().then_some(beside)
}

/// Returns `true` if a file has one of the names by which fast-agent finds its own files.
pub(crate) fn is_own(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name == PACK || CONFIGS.contains(&name) || SECRETS.contains(&name)
}

/// Reads the configuration of the workspace `root`; none if it has none.
pub(super) fn read(
    root: &Path,
    here: Option<&Path>,
    report: &mut Report,
) -> (ProjectConfig, Option<FastAgentConfig>) {
    let files = Files::of(root);
    files.report_unread(here, Reason::Found, report);
    let Some(file) = files.config else { return (ProjectConfig::default(), None) };
    let Some(source) = source_of(&file, root, here, report) else {
        return (ProjectConfig::default(), None);
    };
    let text = source.shared_text();
    let read = convert::tree(&source, report);
    let config = read.and_then(|(tree, source)| {
        let table = convert::table(&tree, &source, report)?;
        Some(config::parse(&source, root, &table, report))
    });
    (config.unwrap_or_default(), Some(FastAgentConfig { file, text }))
}

/// Names the files of fast-agent that do not count beside a `tenure.toml`.
pub(super) fn report_unread(root: &Path, here: Option<&Path>, report: &mut Report) {
    Files::of(root).report_unread(here, Reason::OwnConfig, report);
}

/// Names the configurations of fast-agent in a folder of cards that is not where they count.
pub(crate) fn report_stray(folder: &Path, project: &Project, report: &mut Report) {
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    if real == project.root || real == project.root.join(HOME) {
        return;
    }
    let names = CONFIGS.iter().chain(SECRETS).map(|name| folder.join(name));
    for file in names.filter(|file| file.is_file()) {
        let help = format!(
            "a configuration counts in the project's folder, beside a {HOME} folder or in it, and \
             only where there is no {CONFIG_FILE}"
        );
        unread(&file, "this file is not read", &help, report);
    }
}

/// Says that a file is not read. Nothing of it is looked at.
fn unread(shown: &Path, message: &str, help: &str, report: &mut Report) {
    let source = Arc::new(Source::new(shown, ""));
    let found = Diagnostic::new(Code::UnreadConfig, &source, Span::at(0), message);
    report.push(found.help(help));
}

fn source_of(
    file: &Path,
    root: &Path,
    here: Option<&Path>,
    report: &mut Report,
) -> Option<Arc<Source>> {
    config::stays_inside(root, file, here, report)
        .then(|| source::read(file, shown(file, here), report))?
}

/// Why a configuration is not read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// There is a `tenure.toml`.
    OwnConfig,
    /// There is another one.
    Found,
}

/// The files of fast-agent in a workspace.
#[derive(Default)]
struct Files {
    /// The configuration that counts.
    config: Option<PathBuf>,
    other_configs: Vec<PathBuf>,
    secrets: Vec<PathBuf>,
}

impl Files {
    fn of(root: &Path) -> Self {
        let folders = [root.join(HOME), root.to_owned()];
        let there = |names: &[&str]| -> Vec<PathBuf> {
            let all = folders.iter().flat_map(|folder| names.iter().map(|it| folder.join(it)));
            all.filter(|file| file.is_file()).collect()
        };
        let mut configs = there(CONFIGS);
        let rest = configs.split_off(configs.len().min(1));
        Self { config: configs.pop(), other_configs: rest, secrets: there(SECRETS) }
    }

    /// Names what is not read.
    fn report_unread(&self, here: Option<&Path>, reason: Reason, report: &mut Report) {
        let counting = self.config.as_ref().and_then(|file| file.file_name());
        let (own, other, help) = match reason {
            Reason::OwnConfig => (
                self.config.as_ref(),
                CONFIG_FILE.into(),
                "put what it says into the tenure.toml, and remove it; without that file, `tenure init --from \
                 fast-agent` writes it",
            ),
            Reason::Found => {
                (None, counting.unwrap_or_default().to_string_lossy(), "keep one of the two")
            }
        };
        for file in own.into_iter().chain(&self.other_configs) {
            let message = format!("this file is not read, because there is a {other}");
            unread(&shown(file, here), &message, help, report);
        }
        for file in &self.secrets {
            let help = "keys come from the environment (OPENAI_API_KEY, …) or from where your own \
                        configuration says, never from a project; `tenure doctor` lists them";
            unread(&shown(file, here), "this file is not read", help, report);
        }
    }
}
