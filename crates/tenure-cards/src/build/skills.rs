//! `skills`: folders with a `SKILL.md`.

use super::model::place;
use crate::card::{Card, Skills};
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::project::Project;
use crate::source::{self, Span};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MANIFEST: &str = "SKILL.md";

/// A skill, as it was read. The text that is listed is the text that the model reads.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Skill {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) text: Arc<str>,
}

/// The skills that a card names: each entry is a skill's folder, or a folder of such folders. A
/// card that does not say has none.
pub(super) fn skills(
    named: &Skills,
    card: &Card,
    project: &Project,
    report: &mut Report,
) -> Vec<Skill> {
    let Skills::Named(entries) = named else { return Vec::new() };
    let mut skills: Vec<Skill> = Vec::new();
    for entry in entries {
        let refuse = |report: &mut Report, message: String| {
            let help =
                "name a folder beneath the project that holds a SKILL.md, or folders that do";
            let span = place(card, "skills");
            report.push(Diagnostic::new(Code::BadSkill, &card.source, span, message).help(help));
        };
        let folder = match project.confine(card.dir(), Path::new(entry)) {
            Ok(folder) => folder,
            Err(error) => {
                refuse(report, format!("the skill `{entry}` {error}"));
                continue;
            }
        };
        let manifests = manifests(&folder);
        if manifests.is_empty() {
            refuse(report, format!("the skill `{entry}` has no {MANIFEST}"));
        }
        for manifest in manifests {
            // A folder inside the one that was named may still be a link.
            let manifest = match project.confine(&project.root, &manifest) {
                Ok(manifest) => manifest,
                Err(error) => {
                    refuse(report, format!("the skill file `{}` {error}", manifest.display()));
                    continue;
                }
            };
            match read(&manifest, project, report) {
                Some(Ok(skill)) if skills.iter().any(|it| it.name == skill.name) => {
                    refuse(report, format!("two skills have the name `{}`", skill.name));
                }
                Some(Ok(skill)) => skills.push(skill),
                Some(Err(why)) => {
                    let file = project.relative(&manifest);
                    refuse(report, format!("the skill file `{file}` {why}"));
                }
                None => {}
            }
        }
    }
    skills
}

/// The manifests of a folder: its own, else those of the folders in it, by name.
pub(crate) fn manifests(folder: &Path) -> Vec<PathBuf> {
    if folder.file_name().is_some_and(|name| name == MANIFEST) && folder.is_file() {
        return vec![folder.to_owned()];
    }
    let own = folder.join(MANIFEST);
    if own.is_file() {
        return vec![own];
    }
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path().join(MANIFEST)))
        .filter(|manifest| manifest.is_file())
        .collect();
    found.sort();
    found
}

/// Reads a manifest; `None` if the report says already why not.
fn read(path: &Path, project: &Project, report: &mut Report) -> Option<Result<Skill, String>> {
    let source = source::read(path, project.relative(path), report)?;
    let text = source.text();
    let start = text.len() - text.trim_start_matches('\u{feff}').trim_start().len();
    let rest = &text[start..];
    let opened = rest.strip_prefix("---").filter(|rest| rest.starts_with(['\n', '\r']));
    let Some(end) = opened.and_then(|rest| rest.find("\n---")) else {
        return Some(Err("has no front matter with `name` and `description`".to_owned()));
    };
    let fields = Span::new(start + 3, start + 3 + end + 1);
    let before = report.errors();
    let tree = source::parse_yaml(&source, fields, report)?;
    if report.errors() > before {
        return None;
    }
    let field = |name: &str| {
        let text = tree.field(name).and_then(|node| node.scalar()).map(str::trim);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    Some(match (field("name"), field("description")) {
        (Some(name), Some(description)) => {
            Ok(Skill { name, description, text: source.shared_text() })
        }
        (None, _) => Err("has no `name`".to_owned()),
        (_, None) => Err("has no `description`".to_owned()),
    })
}

/// The list of skills, as the instruction shows it.
pub(super) fn listing(skills: &[Skill]) -> String {
    if skills.is_empty() {
        return String::new();
    }
    let mut text = "You have these skills. Read a skill with the tool read_skill before you use \
                    it.\n\n<available_skills>\n"
        .to_owned();
    for skill in skills {
        text.push_str(&format!("- {}: {}\n", skill.name, skill.description));
    }
    text.push_str("</available_skills>");
    text
}
