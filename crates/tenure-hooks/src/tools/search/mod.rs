//! Search for files and in files, beneath folders that somebody named.

mod ground;
mod look;
mod stop;

pub use ground::Order;

use crate::ready::{About, Makings, Options, ProjectPath, Refusal, Time};
use async_trait::async_trait;
use ground::{Ground, Root, excluding};
use look::{Bounds, GlobCall, GrepCall};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use stop::Stop;
use tenure_core::context::{InstanceCx, ToolCx};
use tenure_core::hook::{AgentLifecycle, HookError, IntoRegistration, Registration, hook};
use tenure_core::tool::{Effect, Tool, ToolError, ToolOutput, ToolSpec};
use tenure_macros::lifecycle;

/// What may hold a secret, and is not for a model to read.
const SECRETS: [&str; 13] = [
    ".git",
    ".env",
    ".env.*",
    "*.env",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.keystore",
    "id_*",
    ".netrc",
    ".npmrc",
    ".ssh",
];
/// What a call may take beside the search itself.
const ASIDE: Duration = Duration::from_secs(5);

/// Gives the model two tools: `glob`, which finds files by their paths, and `grep`, which finds them
/// by what is in them.
///
/// Both see the folders that were named and nothing else: a path that is absolute or has a `..` in
/// it is refused, and links are not followed. Files that git ignores, hidden and binary files, and
/// files that may hold secrets are left out. What is found is cut at a number of results and at a
/// time, and says so; it comes in the same order every time. Nothing is changed, so a call may be
/// made again.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::tools::FileSearch;
/// # use tenure_models::Passthrough;
///
/// let search = FileSearch::new(".").max_results(50);
/// let agent = Agent::builder("reader").model(Passthrough::new()).with_lifecycle(search).build()?;
/// # Ok::<_, tenure_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct FileSearch {
    ground: Ground,
    bounds: Bounds,
    limit: Duration,
    glob: String,
    grep: String,
}

impl FileSearch {
    /// Searches this folder.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let secrets: Vec<_> = SECRETS.map(str::to_owned).into();
        Self {
            ground: Ground {
                roots: vec![Root { shown: PathBuf::new(), dir: root.into() }],
                exclude: excluding(&secrets).expect("a test compiles these patterns"),
                hidden: false,
                gitignore: true,
                order: Order::Path,
            },
            bounds: Bounds { results: 200, file_size: 10 * 1024 * 1024 },
            limit: Duration::from_secs(20),
            glob: "glob".to_owned(),
            grep: "grep".to_owned(),
        }
    }

    /// The names of the two tools.
    pub fn names(mut self, glob: impl Into<String>, grep: impl Into<String>) -> Self {
        self.glob = glob.into();
        self.grep = grep.into();
        self
    }

    /// Leaves out what one of these patterns matches, in place of what may hold secrets. A pattern
    /// without a `/` is about names, wherever they are; case makes no difference.
    pub fn exclude(mut self, patterns: &[String]) -> Result<Self, Refusal> {
        self.ground.exclude = excluding(patterns).map_err(|why| Refusal::new("exclude", why))?;
        Ok(self)
    }

    /// Whether hidden files are searched too.
    pub fn hidden(mut self, yes: bool) -> Self {
        self.ground.hidden = yes;
        self
    }

    /// Whether files are left out that git ignores.
    pub fn gitignore(mut self, yes: bool) -> Self {
        self.ground.gitignore = yes;
        self
    }

    /// In which order finds come.
    pub fn order(mut self, order: Order) -> Self {
        self.ground.order = order;
        self
    }

    /// The most finds of one call.
    pub fn max_results(mut self, most: usize) -> Self {
        self.bounds.results = most;
        self
    }

    /// The largest file, in bytes, that is looked into.
    pub fn max_file_size(mut self, bytes: u64) -> Self {
        self.bounds.file_size = bytes;
        self
    }

    /// The time that a search may take. What was found by then is the result.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }
}

impl IntoRegistration for FileSearch {
    fn into_registration(self) -> Registration {
        let tool = |kind| SearchTool { search: self.clone(), kind };
        hook(Roots(self.ground.roots.clone()))
            .named("file_search")
            .kind("file_search")
            .with_tool(tool(Kind::Glob))
            .with_tool(tool(Kind::Grep))
    }
}

/// Sees to it that there is something to search.
struct Roots(Vec<Root>);

#[lifecycle]
impl AgentLifecycle for Roots {
    async fn on_start(&self, _: InstanceCx<'_>) -> Result<(), HookError> {
        match self.0.iter().find(|root| !root.dir.is_dir()) {
            None => Ok(()),
            Some(root) => Err(HookError::new(format!(
                "the folder {} is to be searched and is not there; create it, or correct `roots`",
                root.dir.display()
            ))),
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Glob,
    Grep,
}

struct SearchTool {
    search: FileSearch,
    kind: Kind,
}

#[async_trait]
impl Tool for SearchTool {
    fn spec(&self) -> ToolSpec {
        let path = json!({
            "type": "string",
            "description": "A folder or file to search, relative; all of it if left out",
        });
        let (name, description, parameters) = match self.kind {
            Kind::Glob => (
                &self.search.glob,
                "Find files by path. `*` stays within a folder, `**` does not; a pattern without \
                 `/` is about names in any folder. Gives a path per line.",
                json!({
                    "pattern": { "type": "string", "description": "A pattern, as in `src/**/*.rs`" },
                    "path": path,
                }),
            ),
            Kind::Grep => (
                &self.search.grep,
                "Find files by what is in them, line by line, with a regular expression.",
                json!({
                    "pattern": { "type": "string", "description": "A regular expression" },
                    "path": path,
                    "include": {
                        "type": "string",
                        "description": "Only files whose path matches this, as in `*.md`",
                    },
                    "output_mode": {
                        "type": "string",
                        "enum": ["files", "content", "count"],
                        "description":
                            "The paths (as if left out), the lines with their numbers, or how many",
                    },
                    "ignore_case": { "type": "boolean" },
                }),
            ),
        };
        ToolSpec::new(name.as_str(), description)
            .parameters(json!({
                "type": "object",
                "properties": parameters,
                "required": ["pattern"],
                "additionalProperties": false,
            }))
            .effect(Effect::Idempotent)
            .limit(self.search.limit + ASIDE)
    }

    async fn call(&self, _: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        let FileSearch { ground, bounds, limit, .. } = self.search.clone();
        let stop = Stop::within(limit);
        // The thread ends when nobody waits for it any more.
        let _stop = stop.on_drop();
        let (arguments, kind) = (arguments.clone(), self.kind);
        let done = tenure_core::blocking(move || match kind {
            Kind::Glob => {
                let call = GlobCall::deserialize(&arguments).map_err(|error| error.to_string())?;
                look::glob(&ground, bounds, &call, &stop)
            }
            Kind::Grep => {
                let call = GrepCall::deserialize(&arguments).map_err(|error| error.to_string())?;
                look::grep(&ground, bounds, &call, &stop)
            }
        });
        done.await.map(ToolOutput::text).map_err(ToolError::new)
    }
}

/// What `file_search` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct FileSearchOptions {
    /// The folders that are searched, beneath the project.
    roots: Vec<ProjectPath>,
    /// The name of the tool that finds files by path.
    glob_name: String,
    /// The name of the tool that finds files by what is in them.
    grep_name: String,
    /// Patterns of paths that are left out. What is given here takes the place of the default, which
    /// leaves out what may hold secrets. A pattern without a `/` is about names, in any folder.
    exclude: Vec<String>,
    /// Whether hidden files are searched too.
    hidden: bool,
    /// Whether files are left out that git ignores.
    gitignore: bool,
    /// In which order finds come: by `path`, or `newest` first.
    order: Order,
    /// The most finds of one call.
    max_results: usize,
    /// The largest file, in bytes, that is looked into.
    max_file_size: u64,
    /// The time that a search may take. What was found by then is the result.
    limit: Time,
}

impl Default for FileSearchOptions {
    fn default() -> Self {
        Self {
            roots: vec![ProjectPath(".".to_owned())],
            glob_name: "glob".to_owned(),
            grep_name: "grep".to_owned(),
            exclude: SECRETS.map(str::to_owned).into(),
            hidden: false,
            gitignore: true,
            order: Order::Path,
            max_results: 200,
            max_file_size: 10 * 1024 * 1024,
            limit: Time(Duration::from_secs(20)),
        }
    }
}

impl Options for FileSearchOptions {
    const ABOUT: About = About {
        name: "file_search",
        summary: "Gives the model tools that find files by path and by content, beneath folders.",
        covers: &["UC-5.2"],
        peers: &["FilesystemFileSearchMiddleware"],
        example: r#"{ "roots": ["."], "max_results": 100 }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        super::check_name("glob_name", &self.glob_name)?;
        super::check_name("grep_name", &self.grep_name)?;
        if self.glob_name == self.grep_name {
            return Err(Refusal::new("grep_name", "both tools have this name; give each its own"));
        }
        if self.roots.is_empty() {
            return Err(Refusal::new("roots", "there is no folder to search; name one"));
        }
        if self.max_results == 0 {
            return Err(Refusal::new("max_results", "it is 0; a search has to find something"));
        }
        let mut roots = Vec::new();
        for (at, path) in self.roots.iter().enumerate() {
            let dir = makings.path(&path.0);
            let dir = dir.map_err(|why| Refusal::new(format!("roots[{at}]"), why))?;
            let shown = Path::new(&path.0);
            // As the model writes it: without the dots at its beginning.
            let parts = shown.components();
            let shown = parts.filter(|it| matches!(it, std::path::Component::Normal(_))).collect();
            roots.push(Root { shown, dir });
        }
        let mut search = FileSearch::new("")
            .names(self.glob_name, self.grep_name)
            .exclude(&self.exclude)?
            .hidden(self.hidden)
            .gitignore(self.gitignore)
            .order(self.order)
            .max_results(self.max_results)
            .max_file_size(self.max_file_size)
            .limit(self.limit.0);
        search.ground.roots = roots;
        Ok(search.into_registration())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patterns_of_secrets_can_be_compiled() {
        let secrets: Vec<_> = SECRETS.map(str::to_owned).into();
        assert_eq!(excluding(&secrets).unwrap().len(), SECRETS.len());
    }
}
