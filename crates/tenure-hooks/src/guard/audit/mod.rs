//! Who had which tool called with what, and what came of it.

mod content;
mod line;
mod options;
mod verify;
mod writer;

pub(super) use options::AuditOptions;
pub use verify::{Broken, Verified};

use super::glob::Tools;
use super::permissions::argument::Argument;
use content::Content;
use line::{Fields, Record};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure_core::context::{Cx, ToolCx, TurnCx};
use tenure_core::hook::{
    AgentLifecycle, HookError, IntoRegistration, Point, Policy, Registration, hook,
};
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_core::secret::Redactor;
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_core::{Error, NextModel, NextTool, blocking};
use tenure_macros::lifecycle;
use tokio::sync::OnceCell;
use tokio::time::Instant;
use writer::{Job, Writer};

/// What is kept of arguments, results and answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// All of it, up to a bound.
    #[default]
    Full,
    /// Its SHA-256 and its length.
    Hash,
    /// Nothing.
    Nothing,
}

/// Who had which tool called with what, what came of it, and how long it took: a line of JSON
/// before each call and one after it, in a file in which every line has the hash of the one before.
///
/// A tool whose line cannot be written is not called, and a result whose line cannot be written is
/// withheld. A line `begun` without an `ended` is a call whose outcome nobody saw: the process died
/// in it. It stands around the permissions, so it sees what they deny, and within an approval, so it
/// sees what is really asked for. A run that goes on in another process does not write lines again.
///
/// Several agents and processes may write to the same file. [`AuditLog::verify`] says whether it is
/// as it was written: a line that was changed, taken away, put in or moved is found. Lines missing at
/// the *end* show only against [`Verified::head`], so keep that elsewhere from time to time; and
/// whoever may write the file can make a whole new one, so let nobody else write it.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::guard::AuditLog;
/// # use tenure_models::Passthrough;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("audit/tools.jsonl");
/// let agent = Agent::builder("accountable")
///     .model(Passthrough::new())
///     .with_lifecycle(AuditLog::new(&path).redact("password")?)
///     .build()?;
/// # std::fs::create_dir_all(path.parent().unwrap())?;
/// # std::fs::write(&path, "")?;
/// let verified = AuditLog::verify(&path)?;
/// assert_eq!(verified.lines, 0);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct AuditLog {
    path: PathBuf,
    tools: Tools,
    models: bool,
    content: Content,
    sync: bool,
}

impl AuditLog {
    /// A log in this file, which is made with the folders it is in when something is to be written.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            tools: Tools::default(),
            models: false,
            content: Content::default(),
            sync: false,
        }
    }

    /// Only the calls of this tool, or of those that the pattern names; more with each call of this.
    pub fn tool(mut self, name: &str) -> Self {
        self.tools.only(name);
        self
    }

    /// Not the calls of this tool, or of those that the pattern names.
    pub fn except(mut self, name: &str) -> Self {
        self.tools.except(name);
        self
    }

    /// Model calls too.
    pub fn models(mut self) -> Self {
        self.models = true;
        self
    }

    /// What is kept of arguments, results and answers: all of it unless said.
    pub fn keep(mut self, keep: Keep) -> Self {
        self.content.keep = keep;
        self
    }

    /// The most bytes that are kept of each of them: 16 KiB unless said, and 1 MiB at most. Of what
    /// is longer the beginning is kept, with its length and its SHA-256.
    pub fn most(mut self, bytes: usize) -> Self {
        self.content.most = bytes.min(content::MOST);
        self
    }

    /// Keeps `[redacted]` of this argument: `password`, `headers.authorization`, `users.*.token`.
    pub fn redact(mut self, argument: &str) -> Result<Self, Error> {
        self.content.redact.push(Argument::new(argument).map_err(Error::invalid)?);
        Ok(self)
    }

    /// Waits for the disk after every line, so that also a crash of the machine loses none.
    pub fn sync(mut self) -> Self {
        self.sync = true;
        self
    }

    /// Whether the log at `path` is as it was written. It reads all of it, and blocks meanwhile.
    pub fn verify(path: impl AsRef<Path>) -> Result<Verified, Broken> {
        verify::verify(path.as_ref())
    }
}

impl IntoRegistration for AuditLog {
    fn into_registration(self) -> Registration {
        let models = self.models;
        let registration = hook(Audited { log: self, writer: OnceCell::new() })
            .named("audit")
            .kind("audit")
            .policy(Policy::Deny)
            .keeps_text()
            .inside("tool_errors")
            .inside("approval");
        let registration = ["call_limit", "tool_retry", "result_schema", "retry", "timeout"]
            .into_iter()
            .fold(registration, Registration::outside);
        if models { registration } else { registration.only(Point::WrapToolCall) }
    }
}

struct Audited {
    log: AuditLog,
    writer: OnceCell<Arc<Writer>>,
}

impl Audited {
    async fn writer(&self) -> Result<&Arc<Writer>, Error> {
        let make = || async {
            let path = self.log.path.clone();
            blocking(move || Writer::of(&path)).await
        };
        self.writer.get_or_try_init(make).await.map_err(unwritten)
    }

    /// Writes a line. It says where it came to stand.
    async fn write(&self, cx: &Cx<'_>, record: Record) -> Result<u64, Error> {
        // Only a later life of a run may find a line that an earlier one has written, and died.
        let job = Job { record, once: cx.resumed(), sync: self.log.sync };
        let (seq, hash) = self.writer().await?.write(job).await.map_err(unwritten)?;
        cx.announce("audit.written", || json!({ "seq": seq, "hash": hash }));
        Ok(seq)
    }

    /// The rest of a call: a line for how it ended.
    fn ended(&self, open: &Open, next: Ended) -> Record {
        let took = open.started.elapsed().as_secs_f64() * 1e3;
        let mut more = vec![
            ("phase", "ended".into()),
            ("status", next.status.into()),
            ("took_ms", ((took * 1e3).round() / 1e3).into()),
            ("attempts", next.attempts.into()),
        ];
        if let Some(result) =
            next.result.and_then(|text| self.log.content.of_text(&text, &open.redactor))
        {
            more.push(("result", result));
        }
        if let Some(usage) = next.usage {
            more.push(("usage", usage));
        }
        if open.resumed {
            more.push(("resumed", true.into()));
        }
        Record { common: open.common.clone(), more }
    }
}

fn unwritten(why: String) -> Error {
    Error::denied(format!("the audit log cannot be written: {why}"))
}

/// A call that has begun.
struct Open {
    /// What both of its lines say.
    common: Arc<Fields>,
    started: Instant,
    resumed: bool,
    redactor: Redactor,
}

/// How a call ended.
struct Ended {
    status: &'static str,
    result: Option<String>,
    attempts: u32,
    usage: Option<Value>,
}

impl Ended {
    /// An error that ends a call, unless the call goes on later.
    fn failed(error: &Error, attempts: u32) -> Option<Self> {
        if error.parks() {
            return None;
        }
        let status = error.outcome().as_str();
        Some(Self { status, result: Some(error.to_string()), attempts, usage: None })
    }
}

/// Writes that a call was cancelled if nobody is left to say how it ended.
struct Cut<'a> {
    audited: &'a Audited,
    open: &'a Open,
    armed: bool,
}

impl Cut<'_> {
    fn post(&mut self, ended: Ended) {
        self.armed = false;
        if let Some(writer) = self.audited.writer.get() {
            let record = self.audited.ended(self.open, ended);
            writer.post(Job { record, once: false, sync: self.audited.log.sync });
        }
    }
}

impl Drop for Cut<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.post(Ended { status: "cancelled", result: None, attempts: 0, usage: None });
        }
    }
}

/// Who does something, and what both lines say of it.
fn who(cx: &Cx<'_>, kind: &str, key: String, run: Option<String>) -> Fields {
    let mut fields = Fields::with_capacity(12);
    let mut put = |name: &'static str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            fields.push((name, value.into()));
        }
    };
    put("kind", Some(kind.to_owned()));
    put("key", Some(key));
    put("agent", Some(cx.agent_name().to_owned()));
    put("instance", Some(cx.instance_id().to_string()));
    put("run", cx.steps().map(|steps| steps.log().run_id().to_string()).or(run));
    put("trace", Some(cx.trace_id()));
    put("chat", cx.chat_id().map(str::to_owned));
    put("user", cx.context().map(|context| context.user_id().to_owned()));
    fields
}

fn begun(common: &Arc<Fields>, more: Option<(&'static str, Value)>) -> Record {
    let more = [("phase", "begun".into())].into_iter().chain(more).collect();
    Record { common: common.clone(), more }
}

#[lifecycle]
impl AgentLifecycle for Audited {
    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        if !self.log.tools.concern(request.name()) {
            cx.skipped();
            return Ok(next.call(request).await?);
        }
        let run = cx.run_id().map(|run| run.to_string());
        let mut common = who(&cx, "tool", cx.idempotency_key(), run);
        common.push(("tool", request.name().into()));
        common.push(("call", request.id().into()));
        let common = Arc::new(common);
        let arguments = self.log.content.of_arguments(&request.arguments, cx.redactor());
        let line = begun(&common, arguments.map(|it| ("arguments", it)));
        let open = Open {
            common,
            started: Instant::now(),
            resumed: cx.resumed(),
            redactor: cx.redactor().clone(),
        };
        // A recorded run that is dropped goes on later.
        let armed = cx.steps().is_none();
        let mut cut = Cut { audited: self, open: &open, armed };
        // The line may be written when the call is dropped, and then it has an end as well.
        if let Err(error) = cx.step("begun", self.write(&cx, line)).await {
            cut.armed = false;
            return Err(error.into());
        }
        let result = next.call(request).await;
        let attempts = next.runs();
        let ended = match &result {
            Ok(ToolOutput { content, status, .. }) => {
                let status = status_name(*status);
                Some(Ended {
                    status,
                    result: Some(content.text().to_owned()),
                    attempts,
                    usage: None,
                })
            }
            Err(error) => Ended::failed(error, attempts),
        };
        match ended {
            // Nothing is waited for any more in a turn that is cancelled.
            Some(ended) if result.as_ref().is_err_and(Error::is_cancelled) => cut.post(ended),
            Some(ended) => {
                cut.armed = false;
                cx.step("ended", self.write(&cx, self.ended(&open, ended))).await?;
            }
            None => cut.armed = false,
        }
        Ok(result?)
    }

    async fn wrap_model_call(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        let run = match cx.steps() {
            Some(steps) => format!("{}/{}", steps.log().run_id(), steps.path()),
            None => format!("{}/", cx.run_id()),
        };
        let key = format!("{run}/{}/model", cx.step_number());
        let mut common = who(&cx, "model", key, Some(cx.run_id().to_string()));
        let model = request.model().unwrap_or(cx.agent().model()).name().to_owned();
        common.push(("model", model.into()));
        common.push(("messages", request.messages.len().into()));
        let common = Arc::new(common);
        let asked = request
            .messages
            .last()
            .and_then(|last| self.log.content.of_text(last.text(), cx.redactor()));
        let line = begun(&common, asked.map(|it| ("asked", it)));
        let open = Open {
            common,
            started: Instant::now(),
            resumed: cx.resumed(),
            redactor: cx.redactor().clone(),
        };
        let armed = cx.steps().is_none();
        let mut cut = Cut { audited: self, open: &open, armed };
        // The line may be written when the call is dropped, and then it has an end as well.
        if let Err(error) = cx.step("begun", self.write(&cx, line)).await {
            cut.armed = false;
            return Err(error.into());
        }
        let result = next.call(request).await;
        let attempts = next.runs();
        let ended = match &result {
            Ok(response) => {
                let usage = serde_json::to_value(response.usage).ok();
                Some(Ended {
                    status: "ok",
                    result: Some(response.content.text().to_owned()),
                    attempts,
                    usage,
                })
            }
            Err(error) => Ended::failed(error, attempts),
        };
        match ended {
            Some(ended) if result.as_ref().is_err_and(Error::is_cancelled) => cut.post(ended),
            Some(ended) => {
                cut.armed = false;
                cx.step("ended", self.write(&cx, self.ended(&open, ended))).await?;
            }
            None => cut.armed = false,
        }
        Ok(result?)
    }
}

fn status_name(status: tenure_core::message::ToolStatus) -> &'static str {
    use tenure_core::message::ToolStatus;
    match status {
        ToolStatus::Ok => "ok",
        ToolStatus::Error => "error",
        ToolStatus::Denied => "denied",
        ToolStatus::Cancelled => "cancelled",
        _ => "not_executed",
    }
}
