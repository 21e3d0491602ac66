//! What a ready-made hook would run and reach because of what a file tells it.

use super::ItemKind;
use super::collect::Collector;
use super::guard::shown_options;
use crate::hook::{CommandRef, Places};
use crate::source::{Source, Span};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tenure_hooks::ready;

/// A hook that a file uses by its name, `use` and `with`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct UsedHook<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its options, with what they take from the environment.
    pub with: &'a Value,
    /// The place of each of them.
    pub places: &'a Places,
    /// The file that uses it, and where.
    pub at: (&'a Source, Span),
    /// The folder that its paths start from.
    pub dir: &'a Path,
    /// The files that its commands are declared to write.
    pub writes: &'a [PathBuf],
}

impl<'a> UsedHook<'a> {
    /// A hook whose commands write nothing.
    pub fn new(
        name: &'a str,
        with: &'a Value,
        places: &'a Places,
        at: (&'a Source, Span),
        dir: &'a Path,
    ) -> Self {
        Self { name, with, places, at, dir, writes: &[] }
    }

    /// The hook as a person reads it: `use notify (with url "https://x.example")`.
    pub fn described(&self) -> String {
        let options = shown_options(self.with, self.places, self.at.0).join(", ");
        let name = self.name;
        if options.is_empty() { format!("use {name}") } else { format!("use {name} ({options})") }
    }
}

/// Hooks that write the files that they name.
const WRITERS: [&str; 5] = ["audit", "log", "metrics", "save", "usage"];

/// Hooks that decide by the files that they name.
const READERS: [&str; 1] = ["result_schema"];

/// Hooks that have a model read the files that they name.
const TELLERS: [&str; 1] = ["load_context"];

impl Collector<'_> {
    /// Adds what a ready-made hook names: models, commands, addresses, variables, files; and what it
    /// lets a model or others do.
    pub(super) fn ready_made(&mut self, written: &UsedHook<'_>, used: &str) {
        let UsedHook { name, with, dir, .. } = *written;
        let Some(hook) = ready::find(name) else { return };
        if let Some(allows) = allowed(name, with) {
            let what = format!("{name}: {allows}");
            self.push(ItemKind::Permission, what, None, vec![used.to_owned()]);
        }
        let schema = hook.schema();
        let mut found = Vec::new();
        named(&schema, &schema, with, String::new(), &mut found);
        let used = format!("{used} ({name})");
        for Named { format, path, value } in found {
            match (format, value) {
                ("model", Value::String(model)) => {
                    self.script(Some(model), dir, &used);
                    let loaded = self.loaded;
                    self.model(loaded, Some(model), &used);
                }
                ("url", Value::String(address)) => {
                    let what = format!("{name}: requests go to {}", written.shown(&path, address));
                    self.push(ItemKind::Receiver, what, None, vec![used.clone()]);
                }
                ("env", Value::String(variable)) => {
                    let into = format!("`{path}` of the hook {name}");
                    self.environment(&written.shown(&path, variable), &into, &used);
                }
                ("path", Value::String(file)) => self.file(file, &path, written, &used),
                ("command", Value::Array(words)) => {
                    let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                    let shown = words.iter().enumerate();
                    let shown =
                        shown.map(|(at, word)| written.shown(&format!("{path}[{at}]"), word));
                    let shown: Vec<String> = shown.collect();
                    let argv: Vec<String> = words.into_iter().map(str::to_owned).collect();
                    let command = CommandRef::of(&argv, dir, &self.loaded.project);
                    let command = CommandRef { written: shown, ..command.writing(written.writes) };
                    self.command(&command, used.clone());
                }
                _ => {}
            }
        }
        // Which program a name means, and what it loads, is up to its variables.
        for (variable, value) in with["env"].as_object().into_iter().flatten() {
            let value = value.as_str().unwrap_or_default();
            let value = written.shown(&format!("env.{variable}"), value);
            let what = format!("{variable}={value}: commands of the hook {name} get it");
            self.push(ItemKind::Environment, what, None, vec![used.clone()]);
        }
    }

    /// Adds a file that a hook decides by, or that it writes.
    fn file(&mut self, file: &str, path: &str, written: &UsedHook<'_>, used: &str) {
        let UsedHook { name, dir, .. } = *written;
        if TELLERS.contains(&name) && written.of_environment(path).is_none() {
            return self.named(ItemKind::Instruction, dir, file, used);
        }
        let is_written = WRITERS.contains(&name);
        if !is_written && !READERS.contains(&name) {
            return;
        }
        if let Some(shown) = written.of_environment(path) {
            return self.push(ItemKind::Data, shown, None, vec![used.to_owned()]);
        }
        // What leads out of the project is refused when the hook is made.
        let Ok(found) = self.loaded.project.confine_new(dir, Path::new(file)) else { return };
        if is_written {
            self.data(&found, true, &format!("{used}, which writes it"));
        } else if found.is_file() {
            self.data(&found, false, used);
        }
    }
}

impl UsedHook<'_> {
    /// What a person reads of a value: as it is written, if it takes something from the environment,
    /// which is no part of the project and may be a secret.
    fn shown(&self, path: &str, value: &str) -> String {
        self.of_environment(path).unwrap_or_else(|| value.to_owned())
    }

    /// What is written, if it takes something from the environment.
    fn of_environment(&self, path: &str) -> Option<String> {
        let written = self.at.0.slice(self.places.find(path)?);
        if !written.contains("${") {
            return None;
        }
        // Of a field, the place is that of its name and its value.
        let value = match path.ends_with(']') {
            true => written,
            false => written.split_once(':').map_or(written, |(_, value)| value),
        };
        Some(value.trim().trim_matches(['"', '\'']).to_owned())
    }
}

/// What a hook lets a model do, or others.
fn allowed(name: &str, with: &Value) -> Option<String> {
    match name {
        "shell" if with["otherwise"] == "allow" => {
            Some("the model may run any command, as you, and nobody is asked".to_owned())
        }
        "shell" => {
            Some("the model may run commands, as you, after the hook's own guard".to_owned())
        }
        "file_search" => Some("the model may find and read files beneath its roots".to_owned()),
        "metrics" => {
            let listen = with["listen"].as_str()?;
            let address: SocketAddr = listen.parse().ok()?;
            let is_open = !address.ip().is_loopback();
            is_open.then(|| format!("other machines may read the metrics, at {listen}"))
        }
        _ => None,
    }
}

/// A value that names something.
struct Named<'v> {
    format: &'static str,
    /// Where it is in `with`, as in `headers.authorization` or `pass_env[0]`.
    path: String,
    value: &'v Value,
}

/// Every value whose schema has a format that says what it names.
fn named<'v>(
    root: &Value,
    schema: &Value,
    value: &'v Value,
    path: String,
    found: &mut Vec<Named<'v>>,
) {
    for format in ["model", "url", "command", "env", "path"] {
        let is_known = |it: &Named<'_>| std::ptr::eq(it.value, value);
        if schema["format"] == format && !found.iter().any(is_known) {
            found.push(Named { format, path: path.clone(), value });
        }
    }
    if let Some(target) = schema["$ref"].as_str()
        && let Some(target) = target.strip_prefix('#').and_then(|path| root.pointer(path))
    {
        named(root, target, value, path.clone(), found);
    }
    for word in ["anyOf", "oneOf", "allOf"] {
        for schema in schema[word].as_array().into_iter().flatten() {
            named(root, schema, value, path.clone(), found);
        }
    }
    for (field, inner) in value.as_object().into_iter().flatten() {
        let known = schema["properties"].get(field);
        if let Some(schema) = known.or_else(|| schema.get("additionalProperties")) {
            let path = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
            named(root, schema, inner, path, found);
        }
    }
    for (at, inner) in value.as_array().into_iter().flatten().enumerate() {
        if let Some(schema) = schema.get("items") {
            named(root, schema, inner, format!("{path}[{at}]"), found);
        }
    }
}
