//! The two searches.

use super::ground::{Found, Ground, matcher};
use super::stop::Stop;
use regex_automata::meta::{Config, Regex};
use regex_automata::util::syntax;
use serde::Deserialize;
use std::fs::File;
use std::io::Read;

/// The most characters of a line that are shown.
const MOST_LINE: usize = 300;
/// Where a binary file is known by.
const HEAD: usize = 8192;
/// The most memory that a pattern may take.
const MOST_PATTERN: usize = 4 * 1024 * 1024;
/// How many lines are looked at before the time is.
const LINES: usize = 512;

/// How much is shown and read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) results: usize,
    pub(super) file_size: u64,
}

/// What the model asks of `glob`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GlobCall {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
}

/// What the model asks of `grep`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GrepCall {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    include: Option<String>,
    #[serde(default)]
    output_mode: Mode,
    #[serde(default)]
    ignore_case: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Files,
    Content,
    Count,
}

/// What is found, and what is to be said about it.
struct Finds {
    lines: Vec<String>,
    most: usize,
    is_full: bool,
}

impl Finds {
    fn at_most(most: usize) -> Self {
        Self { lines: Vec::new(), most, is_full: false }
    }

    /// Takes a find. Says whether there is room for more.
    fn take(&mut self, line: String) -> bool {
        if self.lines.len() >= self.most {
            self.is_full = true;
            return false;
        }
        self.lines.push(line);
        true
    }

    fn text(mut self, stop: &Stop, too_large: usize) -> String {
        if self.lines.is_empty() {
            self.lines.push("nothing found".to_owned());
        }
        if self.is_full {
            let most = self.most;
            self.lines.push(format!("[there is more than {most}; search for less at once]"));
        }
        if too_large > 0 {
            self.lines.push(format!("[left out because of their size: {too_large}]"));
        }
        if stop.is_over() {
            self.lines.push("[the time was up before all was searched]".to_owned());
        }
        self.lines.join("\n")
    }
}

pub(super) fn glob(
    ground: &Ground,
    bounds: Bounds,
    call: &GlobCall,
    stop: &Stop,
) -> Result<String, String> {
    let matcher = matcher(&call.pattern)?;
    let bases = ground.bases(call.path.as_deref())?;
    let mut finds = Finds::at_most(bounds.results);
    for found in ground.files(bases, stop) {
        if matcher.is_match(&found.relative) && !finds.take(found.shown) {
            break;
        }
    }
    Ok(finds.text(stop, 0))
}

pub(super) fn grep(
    ground: &Ground,
    bounds: Bounds,
    call: &GrepCall,
    stop: &Stop,
) -> Result<String, String> {
    let regex = Regex::builder()
        .configure(Config::new().nfa_size_limit(Some(MOST_PATTERN)))
        .syntax(syntax::Config::new().case_insensitive(call.ignore_case))
        .build(&call.pattern)
        .map_err(|error| {
            let why = error.syntax_error().map_or_else(|| error.to_string(), ToString::to_string);
            format!("the pattern `{}` is no regular expression: {why}", call.pattern)
        })?;
    let include = call.include.as_deref().map(matcher).transpose()?;
    let bases = ground.bases(call.path.as_deref())?;
    let mut finds = Finds::at_most(bounds.results);
    let mut too_large = 0;
    for found in ground.files(bases, stop) {
        if include.as_ref().is_some_and(|include| !include.is_match(&found.relative)) {
            continue;
        }
        let text = match read(&found, bounds.file_size) {
            Content::Text(text) => text,
            Content::TooLarge => {
                too_large += 1;
                continue;
            }
            Content::Nothing => continue,
        };
        if !look(&regex, call.output_mode, &found, &text, &mut finds, stop) {
            break;
        }
    }
    Ok(finds.text(stop, too_large))
}

/// Looks through one file. Says whether there is room for more.
fn look(
    regex: &Regex,
    mode: Mode,
    found: &Found,
    text: &[u8],
    finds: &mut Finds,
    stop: &Stop,
) -> bool {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let mut count = 0;
    for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
        if number % LINES == LINES - 1 && stop.is_over() {
            break;
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !regex.is_match(line) {
            continue;
        }
        count += 1;
        match mode {
            Mode::Files => return finds.take(found.shown.clone()),
            Mode::Content => {
                let shown = shown(line);
                if !finds.take(format!("{}:{}: {shown}", found.shown, number + 1)) {
                    return false;
                }
            }
            Mode::Count => {}
        }
    }
    match mode {
        Mode::Count if count > 0 => finds.take(format!("{}: {count}", found.shown)),
        _ => true,
    }
}

fn shown(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line);
    match line.char_indices().nth(MOST_LINE) {
        Some((end, _)) => format!("{} [...]", &line[..end]),
        None => line.into_owned(),
    }
}

enum Content {
    Text(Vec<u8>),
    TooLarge,
    /// Binary, or not to be read.
    Nothing,
}

fn read(found: &Found, most: u64) -> Content {
    let Ok(file) = File::open(&found.path) else { return Content::Nothing };
    if file.metadata().is_ok_and(|it| it.len() > most) {
        return Content::TooLarge;
    }
    let mut text = Vec::new();
    if file.take(most).read_to_end(&mut text).is_err() || text.iter().take(HEAD).any(|it| *it == 0)
    {
        return Content::Nothing;
    }
    Content::Text(text)
}
