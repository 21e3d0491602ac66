//! The tools for files that come with a shell: `read_text_file` and `write_text_file`.
//!
//! Their paths stay beneath the project, links resolved. What decides over processes, and what Tenure and git keep for
//! themselves, is not written; what no process gets to see is not read.

use crate::project::{CONFIG_FILE, confine, confine_new};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use tenure_core::context::ToolCx;
use tenure_core::tool::{Effect, Tool, ToolError, ToolOutput, ToolSpec};
use tenure_hosts::Confinement;

pub(super) const READ: &str = "read_text_file";
pub(super) const WRITE: &str = "write_text_file";

/// The most that a model reads of a file at once.
const MOST_READ: u64 = 256 * 1024;
/// The most that it writes.
const MOST_WRITTEN: usize = 16 * 1024 * 1024;
/// Names in a path that keep a model from writing there.
const KEPT: &[&str] = &[".tenure", ".git"];

/// The folder of relative paths, and the one that no path leaves.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    /// The project's folder, absolute and resolved.
    pub(super) root: PathBuf,
    /// The folder that relative paths start from.
    pub(super) dir: PathBuf,
    /// The rules of the processes beside these tools.
    pub(super) rules: Option<Arc<Confinement>>,
}

impl Ground {
    /// Returns `true` if the file is kept from processes.
    fn is_hidden(&self, file: &Path) -> bool {
        let mut hidden = self.rules.iter().flat_map(|rules| &rules.hidden);
        hidden.any(|place| file.starts_with(place))
            || self.rules.is_some() && tenure_hosts::hidden().iter().any(|it| file.starts_with(it))
    }

    /// Returns `true` if the file decides over the project, or keeps its history.
    fn is_guarding(&self, file: &Path) -> bool {
        let below = file.strip_prefix(&self.root).unwrap_or(file);
        let is_kept = |part: Component<'_>| KEPT.iter().any(|name| part.as_os_str() == *name);
        let mut protected = self.rules.iter().flat_map(|rules| &rules.protected);
        below == Path::new(CONFIG_FILE)
            || below.components().any(is_kept)
            || protected.any(|place| file.starts_with(place))
    }
}

/// `read_text_file`: the model reads a file of the project.
pub(super) struct ReadTextFile(pub(super) Ground);

#[async_trait]
impl Tool for ReadTextFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(READ, "Read a text file").effect(Effect::Idempotent).parameters(json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "The file" },
                "line": { "type": "integer", "minimum": 1, "description": "The first line to read, from 1" },
                "limit": { "type": "integer", "minimum": 1, "description": "The most lines to read" },
            },
            "required": ["path"],
            "additionalProperties": false,
        }))
    }

    async fn call(&self, _cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        let path = path_of(arguments)?;
        let (line, limit) = (count(arguments, "line")?, count(arguments, "limit")?);
        let ground = self.0.clone();
        on_a_thread(move || {
            let file = confine(&ground.root, &ground.dir, Path::new(&path));
            let file = file.map_err(|error| format!("`{path}` {error}"))?;
            if ground.is_hidden(&file) {
                return Err(format!("`{path}` is kept from models"));
            }
            if !file.is_file() {
                return Err(format!("`{path}` is not a file"));
            }
            let text = match (line, limit) {
                (None, None) => whole(&file),
                _ => lines(&file, line.unwrap_or(1), limit.unwrap_or(usize::MAX)),
            };
            text.map_err(|error| format!("`{path}` cannot be read: {error}"))
        })
        .await
    }
}

/// `write_text_file`: the model writes a file of the project.
pub(super) struct WriteTextFile(pub(super) Ground);

#[async_trait]
impl Tool for WriteTextFile {
    fn spec(&self) -> ToolSpec {
        let description = "Write a text file; one that is there is overwritten";
        ToolSpec::new(WRITE, description).effect(Effect::Idempotent).parameters(json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "The file" },
                "content": { "type": "string", "description": "All of its text" },
            },
            "required": ["path", "content"],
            "additionalProperties": false,
        }))
    }

    async fn call(&self, _cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        let path = path_of(arguments)?;
        let Some(content) = arguments["content"].as_str().map(str::to_owned) else {
            return Err(ToolError::new("argument `content` must be a text"));
        };
        if content.len() > MOST_WRITTEN {
            return Err(ToolError::new("argument `content` is longer than 16 MiB"));
        }
        let ground = self.0.clone();
        on_a_thread(move || {
            let file = confine_new(&ground.root, &ground.dir, Path::new(&path));
            let file = file.map_err(|error| format!("`{path}` {error}"))?;
            if ground.is_hidden(&file) || ground.is_guarding(&file) {
                return Err(format!("`{path}` is kept from models"));
            }
            let written = file.parent().map_or(Ok(()), fs::create_dir_all);
            let written = written.and_then(|()| fs::write(&file, &content));
            written.map_err(|error| format!("`{path}` cannot be written: {error}"))?;
            Ok(format!("wrote {} characters to {path}", content.chars().count()))
        })
        .await
    }
}

fn path_of(arguments: &Value) -> Result<String, ToolError> {
    let path = arguments["path"].as_str().map(str::trim).filter(|path| !path.is_empty());
    path.map(str::to_owned)
        .ok_or_else(|| ToolError::new("argument `path` must be the path of a file"))
}

fn count(arguments: &Value, name: &str) -> Result<Option<usize>, ToolError> {
    match &arguments[name] {
        Value::Null => Ok(None),
        value => {
            match value.as_u64().and_then(|it| usize::try_from(it).ok()).filter(|it| *it > 0) {
                Some(number) => Ok(Some(number)),
                None => {
                    Err(ToolError::new(format!("argument `{name}` must be a number of 1 or more")))
                }
            }
        }
    }
}

fn whole(file: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(file)?.take(MOST_READ + 1).read_to_end(&mut bytes)?;
    let is_cut = bytes.len() as u64 > MOST_READ;
    bytes.truncate(MOST_READ as usize);
    Ok(cut(String::from_utf8_lossy(&bytes).into_owned(), is_cut))
}

fn lines(file: &Path, first: usize, most: usize) -> io::Result<String> {
    let mut text = String::new();
    let lines = BufReader::new(File::open(file)?).split(b'\n').skip(first - 1).take(most);
    for (at, line) in lines.enumerate() {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        if text.len() + line.len() > MOST_READ as usize {
            return Ok(cut(text, true));
        }
        if at > 0 {
            text.push('\n');
        }
        text.push_str(line.trim_end_matches('\r'));
    }
    Ok(text)
}

fn cut(mut text: String, is_cut: bool) -> String {
    if is_cut {
        text.push_str("\n[the rest is left out: read it with `line` and `limit`]");
    }
    text
}

/// Does what may wait for a disk where nothing else waits.
async fn on_a_thread(
    work: impl FnOnce() -> Result<String, String> + Send + 'static,
) -> Result<ToolOutput, ToolError> {
    let done = tokio::task::spawn_blocking(work).await.map_err(ToolError::new)?;
    Ok(done.map_or_else(ToolOutput::error, ToolOutput::text))
}
