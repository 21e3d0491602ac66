//! Instructions and the templates in them.

use super::Card;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::limit::MAX_INSTRUCTION;
use crate::nearest::nearest;
use crate::project::{ConfineError, Project};
use crate::source::{MAX_FILE, Source, Span};
use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The instruction of a card that has none.
pub const DEFAULT_INSTRUCTION: &str = "You are a helpful AI Agent.

{{serverInstructions}}
{{agentSkills}}
{{file_silent:AGENTS.md}}
{{env}}

The current date is {{currentDate}}.";

const NAMES: &[&str] = &[
    "currentDate",
    "hostPlatform",
    "pythonVer",
    "workspaceRoot",
    "env",
    "serverInstructions",
    "agentSkills",
    "agentName",
    "agentType",
    "agentCardPath",
    "agentCardDir",
    "file",
    "file_silent",
    "url",
];

/// What the templates of an instruction stand for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TemplateContext {
    /// The folder that `{{file:...}}` starts from and stays beneath; resolved. Also
    /// `{{workspaceRoot}}`.
    pub root: PathBuf,
    /// `{{currentDate}}`: today, as in `15 November 2026`.
    pub current_date: String,
    /// `{{hostPlatform}}`.
    pub host_platform: String,
    /// `{{pythonVer}}`.
    pub python_version: String,
    /// `{{serverInstructions}}`: what tool servers say of themselves.
    pub server_instructions: String,
    /// `{{agentSkills}}`: the list of skills.
    pub skills: String,
}

impl TemplateContext {
    /// The context of this moment and machine, for a project.
    pub fn new(project: &Project) -> Self {
        Self::at(project, SystemTime::now())
    }

    /// The context of another moment: that at which a run began, for a run that goes on.
    pub fn at(project: &Project, now: SystemTime) -> Self {
        Self {
            root: project.root.clone(),
            current_date: day_of(now),
            host_platform: format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH),
            python_version: String::new(),
            server_instructions: String::new(),
            skills: String::new(),
        }
    }
}

/// Why an instruction could not be rendered.
#[derive(Debug)]
pub struct TemplateError(String);

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TemplateError {}

/// The card's instruction with its templates filled in. Files are read now, so that a file that has
/// changed since the card was loaded is taken as it is.
pub fn render_instruction(card: &Card, context: &TemplateContext) -> Result<String, TemplateError> {
    let text = card.instruction.as_deref().unwrap_or(DEFAULT_INSTRUCTION);
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for template in templates(text) {
        out.push_str(&text[done..template.start]);
        match value(&template, card, context)? {
            Some(value) => out.push_str(&value),
            None => out.push_str(&text[template.start..template.end]),
        }
        if out.len() > MAX_INSTRUCTION {
            return Err(TemplateError(format!(
                "the instruction of `{}` {}",
                card.name,
                too_long()
            )));
        }
        done = template.end;
    }
    out.push_str(&text[done..]);
    Ok(out.trim().to_owned())
}

/// The files that a card's instruction takes in, as it names them from the project's folder.
pub(crate) fn included(card: &Card) -> Vec<&str> {
    let text = card.instruction.as_deref().unwrap_or(DEFAULT_INSTRUCTION);
    let files = templates(text).into_iter();
    let files = files.filter(|template| matches!(template.name, "file" | "file_silent"));
    files.filter_map(|template| template.argument).collect()
}

fn too_long() -> String {
    format!("is larger than {} MiB with its templates filled in", MAX_INSTRUCTION >> 20)
}

fn value(
    template: &Template<'_>,
    card: &Card,
    context: &TemplateContext,
) -> Result<Option<String>, TemplateError> {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    Ok(Some(match (template.name, template.argument) {
        ("currentDate", None) => context.current_date.clone(),
        ("hostPlatform", None) => context.host_platform.clone(),
        ("pythonVer", None) => context.python_version.clone(),
        ("workspaceRoot", None) => path(&context.root),
        ("env", None) => format!(
            "Environment:\n- Workspace root: {}\n- Host platform: {}",
            path(&context.root),
            context.host_platform
        ),
        ("serverInstructions", None) => context.server_instructions.clone(),
        ("agentSkills", None) => context.skills.clone(),
        ("agentName", None) => card.name.to_string(),
        ("agentType", None) => card.card_type().to_string(),
        ("agentCardPath", None) => path(card.source.path()),
        ("agentCardDir", None) => path(card.dir()),
        ("file" | "file_silent", Some(file)) => match (take(&context.root, file), template.name) {
            (Ok(text), _) => text,
            (Err(Refusal::Missing), "file_silent") => String::new(),
            (Err(error), _) => {
                return Err(TemplateError(format!(
                    "the instruction of `{}` takes in `{file}`, which {error}",
                    card.name
                )));
            }
        },
        ("url", Some(_)) => {
            return Err(TemplateError(format!(
                "the instruction of `{}` takes in an address, and nothing is taken from the \
                 network; put the text into a file",
                card.name
            )));
        }
        _ => return Ok(None),
    }))
}

/// Reports what is wrong with the templates of `text`, which is written at `span`. `filled` are names
/// that somebody else puts values for.
pub(super) fn check(
    text: &str,
    source: &Arc<Source>,
    span: Span,
    project: &Project,
    filled: &[String],
    report: &mut Report,
) {
    let written = source.slice(span);
    let mut from = 0;
    let mut filled_in = text.len();
    // Each file is looked at once, however often it is taken in.
    let mut files: HashMap<&str, Result<usize, Refusal>> = HashMap::new();
    for template in templates(text) {
        let whole = &text[template.start..template.end];
        let at = match written[from..].find(whole) {
            Some(at) => {
                let start = from + at;
                from = start + whole.len();
                let start = span.start as usize + start;
                Span::new(start, start + whole.len())
            }
            None => span,
        };
        let is_full = report.is_full(source, Code::UnknownTemplate);
        let mut problem = |code: Code, message: String, help: String| {
            report.push(Diagnostic::new(code, source, at, message).help(help));
        };
        match (template.name, template.argument) {
            ("file" | "file_silent", Some(file)) => match files
                .entry(file)
                .or_insert_with(|| take(&project.root, file).map(|text| text.len()))
            {
                Ok(size) => {
                    filled_in += *size;
                    if filled_in > MAX_INSTRUCTION {
                        let help = "take in less: name fewer or smaller files";
                        let message = format!("the instruction {}", too_long());
                        problem(Code::TooMuch, message, help.into());
                        return;
                    }
                }
                Err(Refusal::Missing) if template.name == "file_silent" => {}
                Err(error) => problem(
                    Code::TemplateFileMissing,
                    format!("the instruction takes in `{file}`, which {error}"),
                    match error {
                        Refusal::Missing => "paths in templates start from the project's folder; \
                                             correct the path, or write `file_silent:` if the file \
                                             may be missing"
                            .into(),
                        _ => "name a file beneath the project's folder".into(),
                    },
                ),
            },
            ("url", Some(_)) => problem(
                Code::TemplateRefused,
                "the instruction takes in an address, and nothing is taken from the network".into(),
                "put the text into a file and write `{{file:path}}`".into(),
            ),
            ("file" | "file_silent" | "url", None) => problem(
                Code::TemplateFileMissing,
                format!("`{whole}` does not say which"),
                format!("write `{{{{{}:path}}}}`", template.name),
            ),
            _ if is_full => {}
            (name, None) if NAMES.contains(&name) || filled.iter().any(|it| it == name) => {}
            (name, _) => problem(
                Code::UnknownTemplate,
                format!("`{whole}` is not a template that is known here, and stays as it is"),
                match nearest(name, NAMES.iter().copied()) {
                    Some(near) => format!("did you mean `{{{{{near}}}}}`?"),
                    None => "nothing to do if the text is meant literally".into(),
                },
            ),
        }
    }
}

/// A template of a text: `{{name}}` or `{{name:argument}}`.
#[derive(Debug, PartialEq, Eq)]
struct Template<'t> {
    name: &'t str,
    argument: Option<&'t str>,
    start: usize,
    end: usize,
}

fn templates(text: &str) -> Vec<Template<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(close) = text[at..].find("}}").map(|close| at + close) {
        // What is inside may be a template too, `{{{{name}}`, and there are no braces in one.
        let open = text[at..close].rfind("{{").map(|open| at + open);
        at = close + 2;
        let Some(start) = open else { continue };
        let content = text[start + 2..close].trim();
        let (name, argument) = match content.split_once(':') {
            Some((name, argument)) => (name.trim(), Some(argument.trim())),
            None => (content, None),
        };
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let is_line = argument.is_none_or(|it| !it.is_empty() && !it.contains(['{', '}', '\n']));
        if is_name && is_line {
            found.push(Template { name, argument, start, end: close + 2 });
        }
    }
    found
}

enum Refusal {
    Missing,
    Confined(ConfineError),
    Unfit(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("is not there"),
            Self::Confined(error) => error.fmt(f),
            Self::Unfit(why) => f.write_str(why),
        }
    }
}

/// The text of a file of the project.
fn take(root: &Path, file: &str) -> Result<String, Refusal> {
    let path = match crate::project::confine(root, root, Path::new(file)) {
        Ok(path) => path,
        Err(ConfineError::Missing) => return Err(Refusal::Missing),
        Err(error) => return Err(Refusal::Confined(error)),
    };
    let unreadable = |error: std::io::Error| Refusal::Unfit(format!("cannot be read: {error}"));
    if !path.is_file() {
        return Err(Refusal::Unfit("is not a file".into()));
    }
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(&path).map_err(unreadable)?;
    opened.take(MAX_FILE as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > MAX_FILE {
        return Err(Refusal::Unfit("is larger than 1 MiB".into()));
    }
    String::from_utf8(bytes).map_err(|_| Refusal::Unfit("is not UTF-8".into()))
}

/// The day of a moment in UTC, as in `15 November 2026`.
fn day_of(now: SystemTime) -> String {
    let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    date(seconds / 86_400)
}

/// The date so many days after 1 January 1970.
fn date(days: u64) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    // Years begin in March, so that the day that is sometimes there is the last of a year.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12;
    let year = year_of_era + era * 400 + u64::from(month < 2);
    format!("{day:02} {} {year}", MONTHS[month as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        for (days, expected) in [
            (0, "01 January 1970"),
            (58, "28 February 1970"),
            (59, "01 March 1970"),
            (11_016, "29 February 2000"),
            (20_772, "15 November 2026"),
        ] {
            assert_eq!(date(days), expected);
        }
    }

    #[test]
    fn only_names_with_perhaps_a_path_are_templates() {
        let found = |text| -> Vec<(String, Option<String>)> {
            let own = |it: Template<'_>| (it.name.to_owned(), it.argument.map(str::to_owned));
            templates(text).into_iter().map(own).collect()
        };
        let name = |name: &str| (name.to_owned(), None);
        assert_eq!(found("a {{env}} b {{ x }}"), [name("env"), name("x")]);
        assert_eq!(found("{{file:a b.md}}"), [("file".to_owned(), Some("a b.md".to_owned()))]);
        assert_eq!(found("{{{{env}}"), [name("env")]);
        for literal in ["{{}}", "{{ user.name }}", "{{\"a\": 1}}", "{{env", "{ {env} }", "{{a b}}"]
        {
            assert_eq!(found(literal), [], "{literal}");
        }
    }
}
