//! Lines of JSON for what an agent does.

mod hook;
mod line;
mod writer;

use super::seen::{around, lock};
use crate::ready::{About, Makings, Options, ProjectPath, Refusal};
use line::{Line, Lines};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use tenure_core::hook::{IntoRegistration, Registration, hook};
use tenure_core::{Error, InstanceId};
use writer::Writer;

/// The name of this hook.
const KIND: &str = "log";
/// How many lines may wait to be written.
const QUEUE: usize = 4096;
/// What there is of a text at most.
const CONTENT_LIMIT: usize = 4 << 10;
const MAX_BYTES: u64 = 10 << 20;
const KEEP: usize = 5;

/// One line of JSON for each begin and end of a turn, a model call and a tool call.
///
/// A line has `time`, `level`, `event` (`turn.started`, `turn.ended`, `model.started`,
/// `model.ended`, `tool.started`, `tool.ended`), `agent`, `instance`, `run`, `trace` and `chat`; an
/// end has `outcome` or `status`, `took_ms`, `usage`, and of a failure its kind in `error`. What was
/// said is no part of it, unless [`content`](StructuredLog::content) says so.
///
/// Lines are written by a thread of its own, some milliseconds after they were said; one of a failure
/// is written at once, with all that are before it. Where the thread cannot keep up, lines are left
/// out, and counted: a line `log.lost` says how many. When the last agent has shut down, all of them
/// are written. A process that ends without that, or is killed, loses those of its last moment.
///
/// Clones of one log write together.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::see::StructuredLog;
/// # use tenure_models::Passthrough;
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("agent.log");
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let agent = Agent::builder("clerk")
///     .model(Passthrough::new())
///     .with_lifecycle(StructuredLog::to_file(&path).keep(3))
///     .build()?;
/// agent.scoped(async |agent| agent.run("hello").await).await?;
/// let log = std::fs::read_to_string(&path).unwrap();
/// assert!(log.contains(r#""event":"turn.ended""#), "{log}");
/// assert!(!log.contains("hello"), "{log}");
/// # Ok::<_, tenure_core::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
#[must_use]
pub struct StructuredLog {
    target: Target,
    least: Level,
    content: Option<usize>,
    queue: usize,
    center: Arc<Center>,
}

/// How much a line matters.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
enum Level {
    #[default]
    Info,
    Warn,
    Error,
}

impl Level {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

#[derive(Clone, Debug)]
enum Target {
    Stderr,
    Tracing,
    File { path: PathBuf, max_bytes: u64, keep: usize },
}

/// What several agents write to.
struct Center {
    target: Target,
    least: Level,
    queue: usize,
    users: Mutex<HashSet<InstanceId>>,
    writer: RwLock<Option<Writer>>,
}

impl Center {
    fn new(target: &Target, least: Level, queue: usize) -> Arc<Self> {
        let (users, writer) = (Mutex::default(), RwLock::default());
        Arc::new(Self { target: target.clone(), least, queue, users, writer })
    }

    fn writer(&self) -> RwLockReadGuard<'_, Option<Writer>> {
        self.writer.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a line written, if anybody writes.
    fn write(&self, level: Level, say: impl FnOnce(&mut Lines) -> Line) {
        if let Some(writer) = &*self.writer() {
            writer.write(level, say);
        }
    }

    /// An instance starts. The first one opens the target.
    fn enter(&self, user: InstanceId) -> Result<(), Error> {
        let mut users = lock(&self.users);
        if self.writer().is_none() {
            let writer = Writer::open(&self.target, self.queue).map_err(|error| {
                Error::invalid(format!("the log cannot be opened ({:?}): {error}", self.target))
            })?;
            let mut place = self.writer.write().unwrap_or_else(PoisonError::into_inner);
            *place = Some(writer);
        }
        users.insert(user);
        Ok(())
    }

    /// An instance is over. The last one gets the writer, to close it.
    fn leave(&self, user: InstanceId) -> Option<Writer> {
        let mut users = lock(&self.users);
        if !users.remove(&user) || !users.is_empty() {
            return None;
        }
        self.writer.write().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl StructuredLog {
    fn to(target: Target) -> Self {
        let center = Center::new(&target, Level::Info, QUEUE);
        Self { target, least: Level::Info, content: None, queue: QUEUE, center }
    }

    /// Clones write together, so what they write to is made anew whenever it changes.
    fn changed(mut self) -> Self {
        self.center = Center::new(&self.target, self.least, self.queue);
        self
    }

    /// Lines on the standard error.
    pub fn to_stderr() -> Self {
        Self::to(Target::Stderr)
    }

    /// Lines as events of `tracing`, of the target `tenure::log`.
    pub fn to_tracing() -> Self {
        Self::to(Target::Tracing)
    }

    /// Lines in a file that only its owner may read. At 10 MiB it begins anew, and five full ones are
    /// kept: `agent.log.1` is the newest of them.
    pub fn to_file(path: impl Into<PathBuf>) -> Self {
        Self::to(Target::File { path: path.into(), max_bytes: MAX_BYTES, keep: KEEP })
    }

    /// How large a file becomes before it begins anew.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        if let Target::File { max_bytes, .. } = &mut self.target {
            *max_bytes = bytes;
        }
        self.changed()
    }

    /// How many full files are kept.
    pub fn keep(mut self, files: usize) -> Self {
        if let Target::File { keep, .. } = &mut self.target {
            *keep = files;
        }
        self.changed()
    }

    /// Only writes what did not end well.
    pub fn failures_only(mut self) -> Self {
        self.least = Level::Warn;
        self.changed()
    }

    /// Whether what was said is written too.
    pub fn content(mut self, told: bool) -> Self {
        self.content = told.then_some(CONTENT_LIMIT);
        self
    }

    /// How many lines may wait to be written. 4096.
    pub fn queue(mut self, lines: usize) -> Self {
        self.queue = lines;
        self.changed()
    }

    /// How many lines were left out because too many waited, and are not told of yet.
    pub fn lost(&self) -> u64 {
        self.center.writer().as_ref().map_or(0, Writer::lost)
    }
}

impl IntoRegistration for StructuredLog {
    fn into_registration(self) -> Registration {
        let write = hook::Write { center: self.center, content: self.content };
        around(hook(write).named(KIND).kind(KIND)).again_on_resume()
    }
}

impl fmt::Debug for StructuredLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StructuredLog")
            .field("target", &self.target)
            .field("content", &self.content)
            .finish_non_exhaustive()
    }
}

/// Where lines go.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum To {
    #[default]
    Stderr,
    File,
    Tracing,
}

/// What `log` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LogOptions {
    /// Where lines go: the standard error, a file, or the program's own log.
    to: Option<To>,
    /// The file. Only its owner may read it.
    file: Option<ProjectPath>,
    /// How large a file becomes before it begins anew, in bytes.
    max_bytes: u64,
    /// How many full files are kept.
    keep: usize,
    /// The least that a line has to matter: `warn` leaves out what ended well.
    level: Level,
    /// Whether what was said is written too: inputs, outputs, arguments, results, reasons.
    content: bool,
    /// The most bytes of each text that is written, if any is.
    content_limit: usize,
    /// How many lines may wait to be written. What comes after them is left out, and counted.
    queue: usize,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            to: None,
            file: None,
            max_bytes: MAX_BYTES,
            keep: KEEP,
            level: Level::Info,
            content: false,
            content_limit: CONTENT_LIMIT,
            queue: QUEUE,
        }
    }
}

impl Options for LogOptions {
    const ABOUT: About = About {
        name: KIND,
        summary: "Writes a line of JSON for each begin and end of a turn, a model call, a tool call.",
        covers: &["UC-3.4", "UC-6.3"],
        peers: &[],
        example: r#"{ "to": "stderr" }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        let target = match (self.to, &self.file) {
            (Some(To::File) | None, Some(path)) => {
                let path = makings.path(&path.0).map_err(|why| Refusal::new("file", why))?;
                Target::File { path, max_bytes: self.max_bytes, keep: self.keep }
            }
            (Some(To::File), None) => {
                return Err(Refusal::new("file", "lines go to a file, so it needs a name"));
            }
            (Some(_), Some(_)) => {
                return Err(Refusal::new("file", "lines do not go to a file; leave out `to`"));
            }
            (Some(To::Tracing), None) => Target::Tracing,
            (Some(To::Stderr) | None, None) => Target::Stderr,
        };
        if self.max_bytes < 1024 {
            return Err(Refusal::new("max_bytes", "no line would fit; give 1024 or more"));
        }
        if !matches!(target, Target::File { .. }) {
            let why = "lines do not go to a file; name one by `file`, or leave this out";
            if self.max_bytes != MAX_BYTES {
                return Err(Refusal::new("max_bytes", why));
            }
            if self.keep != KEEP {
                return Err(Refusal::new("keep", why));
            }
        }
        if self.queue == 0 {
            return Err(Refusal::new("queue", "no line would ever be written; give 1 or more"));
        }
        if self.content && self.content_limit == 0 {
            return Err(Refusal::new("content_limit", "0 leaves nothing; set `content` to false"));
        }
        let content = self.content.then_some(self.content_limit);
        // Agents of a team that write to the same place do so through one thread.
        let key = format!("{target:?} {:?}", self.level);
        let make = || Center::new(&target, self.level, self.queue);
        let center = Arc::clone(&*makings.shared().part::<Arc<Center>>(KIND, &key, make));
        let (least, queue) = (self.level, self.queue);
        Ok(StructuredLog { target, least, content, queue, center }.into_registration())
    }
}
