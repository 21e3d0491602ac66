//! `[mcp.servers]`.

use super::confine::{ConfineError, confine};
use super::reader::{Settings, may_hold_a_secret, span, url_problem};
use crate::card::{ProtocolMode, Secret};
use crate::diagnostic::Code;
use crate::hook::CommandRef;
use crate::sandbox;
use crate::server::{Reach, Server};
use crate::source::Span;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::de::DeTable;

const KEYS: &[&str] = &[
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "protocol",
    "start_timeout",
    "call_timeout",
    sandbox::SANDBOX,
];
const PROTOCOLS: &[(&str, ProtocolMode)] = &[
    ("auto", ProtocolMode::Auto),
    ("modern", ProtocolMode::Modern),
    ("legacy", ProtocolMode::Legacy),
];

/// The servers of the project in `folder`.
pub(super) fn read(
    reader: &mut Settings<'_>,
    root: &DeTable<'_>,
    folder: &Path,
) -> BTreeMap<Arc<str>, Server> {
    let mut servers = BTreeMap::new();
    let Some(mcp) = reader.table(root, "mcp") else { return servers };
    reader.only(mcp, "[mcp]", &["servers"]);
    let Some(all) = reader.table_in(mcp, "mcp", "servers") else { return servers };
    for (key, _) in all {
        let name = key.get_ref();
        let Some(table) = reader.table_in(all, "mcp.servers", name) else { continue };
        let at = span(key);
        let of = format!("mcp.servers.{name}");
        reader.only(table, &format!("[{of}]"), KEYS);
        let protocol = reader.one_of(table, &format!("{of}.protocol"), "protocol", PROTOCOLS);
        let start_limit = reader.limit(table, &of, "start_timeout");
        let call_limit = reader.limit(table, &of, "call_timeout");
        let grant = sandbox::server_grant(reader, table, &of);
        let mut reading = One { reader: &mut *reader, table, of: &of, at, folder };
        let Some(reach) = reading.reach() else { continue };
        let name: Arc<str> = name.to_string().into();
        let server = Server {
            name: name.clone(),
            reach,
            protocol: protocol.unwrap_or_default(),
            start_limit,
            call_limit,
            sandbox: grant,
            source: Arc::clone(reader.source),
            span: at,
        };
        servers.insert(name, server);
    }
    servers
}

/// One server that is being read.
struct One<'a, 's, 't> {
    reader: &'a mut Settings<'s>,
    table: &'a DeTable<'t>,
    /// The name of its table.
    of: &'a str,
    at: Span,
    folder: &'a Path,
}

impl One<'_, '_, '_> {
    fn reach(&mut self) -> Option<Reach> {
        let has = |key: &str| self.table.get(key).map(span);
        let wrong = match (has("command"), has("url")) {
            (None, None) => Some((self.at, "has neither `command` nor `url`".to_owned(), "")),
            (Some(_), Some(at)) => Some((at, "has both `command` and `url`".to_owned(), "url")),
            (Some(_), None) => has("headers")
                .map(|at| (at, "has `headers`, which go with `url`".to_owned(), "headers")),
            (None, Some(_)) => ["args", "env", "cwd", "sandbox"].into_iter().find_map(|key| {
                Some((has(key)?, format!("has `{key}`, which goes with `command`"), key))
            }),
        };
        if let Some((at, what, key)) = wrong {
            let message = format!("the server [{}] {what}", self.of);
            let help = "a server is either a program (command, args, env, cwd) or an address (url, \
                        headers)";
            let url = self.table.get("url").and_then(|url| url.get_ref().as_str());
            match key {
                "env" | "headers" => self.reader.hidden(Code::BadServer, at, at, message, help),
                "url" if url.is_none_or(may_hold_a_secret) => {
                    self.reader.hidden(Code::BadServer, at, at, message, help);
                }
                _ => self.reader.problem(Code::BadServer, at, message, help),
            }
            return None;
        }
        match self.table.get("url") {
            Some(_) => self.url(),
            None => self.command(),
        }
    }

    fn url(&mut self) -> Option<Reach> {
        let (url, at) = self.reader.text(self.table, &format!("{}.url", self.of), "url")?;
        let url = url.trim().to_owned();
        if let Some((what, help)) = url_problem(&url) {
            let message = format!("the address of the server [{}] {what}", self.of);
            self.reader.address(Code::BadServer, at, &url, message, help);
            return None;
        }
        self.no_variable(&url, "url", "headers", at)?;
        let headers = self.secrets("headers");
        Some(Reach::Url { written: url.clone(), url, headers })
    }

    fn command(&mut self) -> Option<Reach> {
        let (dir, env) = (self.dir(), self.secrets("env"));
        let (mut argv, at) = self.words()?;
        for part in &argv {
            self.no_variable(part, "command", "env", at)?;
        }
        let written = argv.clone();
        let program = argv.first().filter(|program| !program.trim().is_empty());
        let Some(program) = program.cloned() else {
            let message = format!("the command of the server [{}] names no program", self.of);
            let help = "write the program first, as in command = [\"npx\", \"-y\", \"a-server\"]";
            self.reader.problem(Code::BadServer, at, message, help);
            return None;
        };
        let dir = dir?;
        let mut file = None;
        if program.contains('/') && !Path::new(&program).is_absolute() {
            match confine(self.folder, &dir, Path::new(&program)) {
                Ok(path) => {
                    argv[0] = path.to_string_lossy().into_owned();
                    file = Some(path);
                }
                Err(error) => {
                    let message = format!("the program `{program}` {error}");
                    let help = "a path starts from the server's `cwd`, which is the project's \
                                folder unless it is said; a bare name is looked up in PATH";
                    self.reader.problem(Code::BadServer, at, message, help);
                    return None;
                }
            }
        } else if program.contains(char::is_whitespace) && argv.len() == 1 {
            let message = format!("`{program}` is not the name of a program");
            let parts: Vec<String> =
                program.split_whitespace().map(|part| format!("\"{part}\"")).collect();
            let help = format!("write it in parts: command = [{}]", parts.join(", "));
            self.reader.problem(Code::BadServer, at, message, &help);
            return None;
        }
        let command = CommandRef { argv, written, file, dir, writes: BTreeSet::new() };
        Some(Reach::Command { command, env })
    }

    /// What is shown of a server is what it is reached by, so nothing is filled in there.
    fn no_variable(&mut self, text: &str, key: &str, instead: &str, at: Span) -> Option<()> {
        if !text.contains("${") {
            return Some(());
        }
        let message = format!("the `{key}` of the server [{}] has a `${{`", self.of);
        let help = format!("variables are filled in in `{instead}` only; write it out here");
        self.reader.problem(Code::BadServer, at, message, &help);
        None
    }

    /// The program and what it is given.
    fn words(&mut self) -> Option<(Vec<String>, Span)> {
        let found = self.table.get("command")?;
        let at = span(found);
        let name = format!("{}.command", self.of);
        if found.get_ref().is_array() {
            if let Some(args) = self.table.get("args").map(span) {
                let message = format!("the server [{}] has `args` beside a list", self.of);
                let help =
                    "write all of it in `command`, or the program alone and the rest in args";
                self.reader.problem(Code::BadServer, args, message, help);
            }
            return Some((self.reader.texts(self.table, &name, "command")?, at));
        }
        let (program, _) = self.reader.text(self.table, &name, "command")?;
        let mut words = vec![program];
        let args = self.reader.texts(self.table, &format!("{}.args", self.of), "args");
        words.extend(args.into_iter().flatten());
        Some((words, at))
    }

    /// The folder that the program runs in.
    fn dir(&mut self) -> Option<PathBuf> {
        if self.table.get("cwd").is_none() {
            return Some(self.folder.to_owned());
        }
        let name = format!("{}.cwd", self.of);
        let (text, at) = self.reader.text(self.table, &name, "cwd")?;
        let what = match confine(self.folder, self.folder, Path::new(text.trim())) {
            Ok(dir) if dir.is_dir() => return Some(dir),
            Ok(_) => "is a file".to_owned(),
            Err(ConfineError::LinkOutside(_)) => "is a link that leads out of the project".into(),
            Err(error) => error.to_string(),
        };
        let message = format!("`{name}` is `{}`, which {what}", text.trim());
        self.reader.problem(Code::BadSetting, at, message, "name a folder beneath the project's");
        None
    }

    fn secrets(&mut self, key: &str) -> BTreeMap<String, Secret> {
        let name = format!("{}.{key}", self.of);
        let texts = self.reader.texts_by_name(self.table, &name, key);
        texts.into_iter().map(|(name, text)| (name, Secret::new(text))).collect()
    }
}
