//! Tells somebody of results.

#[cfg(feature = "network")]
mod signature;
#[cfg(feature = "network")]
mod webhook;

#[cfg(feature = "network")]
pub use signature::verify_signature;

use super::record::{OutcomeName, Part, Report, report};
use crate::ready::{About, Address, CommandLine, Makings, Options, Refusal, Time, Variable};
use crate::words::Moment;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
#[cfg(feature = "network")]
use std::sync::Arc;
use std::time::Duration;
use tenure_core::Outcome;
use tenure_core::context::TurnCx;
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::event::LogStream;
use tenure_core::hook::{
    After, AgentLifecycle, FaultKind, Flow, HookError, IntoRegistration, Point, Points,
    Registration, hook,
};
use tenure_macros::lifecycle;
use tenure_process::{Command, Ended, Environment, StartCheck};
use tokio_util::task::TaskTracker;

/// What all ends of a turn have together.
const MOST: Duration = Duration::from_secs(15);
const LIMIT: Duration = Duration::from_secs(5);

/// Tells somebody of the result of every turn: a command, which gets it as JSON on its standard
/// input, or a server, which gets it by HTTP and can see by the signature who sent it.
///
/// Whoever is told gets the name of the delivery, which is the same if it comes again. All of it
/// takes at most the [`limit`](Notify::limit); then a command is killed and a request is given up. If
/// nobody could be told, the turn ends as it would have, and its report says that this hook failed.
///
/// ```
/// use tenure_core::Outcome;
/// use tenure_core::agent::Agent;
/// use tenure_hooks::result::Notify;
/// # use tenure_models::Passthrough;
///
/// let notify = Notify::command(["sh", "-c", "cat >&2"]).on([Outcome::Failed]);
/// let agent = Agent::builder("clerk").model(Passthrough::new()).with_lifecycle(notify).build()?;
/// # Ok::<_, tenure_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Notify {
    by: By,
    report: Report,
    limit: Duration,
}

#[derive(Clone, Debug)]
enum By {
    Command {
        argv: Vec<String>,
        dir: PathBuf,
        environment: Environment,
        tracker: TaskTracker,
        check: Option<StartCheck>,
    },
    #[cfg(feature = "network")]
    Webhook(Arc<webhook::Webhook>),
}

impl Notify {
    /// Runs this command for each result.
    pub fn command(argv: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::by(By::Command {
            argv: argv.into_iter().map(Into::into).collect(),
            dir: PathBuf::from("."),
            environment: Environment::new(),
            tracker: TaskTracker::new(),
            check: None,
        })
    }

    /// Posts each result to this address, signed with the secret that is in this variable of our
    /// environment. At most four attempts are made; a receiver that is overloaded says by
    /// `Retry-After` when to come again. Redirects are not followed.
    ///
    /// The address is one of `https`, or of this machine. A receiver checks the signature with
    /// [`verify_signature`].
    #[cfg(feature = "network")]
    pub fn webhook(address: &str, secret_variable: &str) -> Result<Self, Refusal> {
        let secret = Some(secret_variable.to_owned());
        let webhook = webhook::Webhook::new(address, secret, ATTEMPTS, false)?;
        Ok(Self::by(By::Webhook(Arc::new(webhook))))
    }

    fn by(by: By) -> Self {
        let report = Report { parts: Part::ALL.into(), on: Vec::new() };
        Self { by, report, limit: LIMIT }
    }

    /// The folder that a command runs in.
    pub fn dir(mut self, folder: impl Into<PathBuf>) -> Self {
        if let By::Command { dir, .. } = &mut self.by {
            *dir = folder.into();
        }
        self
    }

    /// What a command gets to see of our environment.
    pub fn environment(mut self, seen: Environment) -> Self {
        if let By::Command { environment, .. } = &mut self.by {
            *environment = seen;
        }
        self
    }

    fn checked_by(mut self, by: Option<StartCheck>) -> Self {
        if let By::Command { check, .. } = &mut self.by {
            *check = by;
        }
        self
    }

    /// What is told; everything unless said otherwise.
    pub fn what(mut self, parts: impl IntoIterator<Item = Part>) -> Self {
        self.report.parts = parts.into_iter().collect();
        self
    }

    /// Of which turns somebody is told; of all unless said otherwise.
    pub fn on(mut self, outcomes: impl IntoIterator<Item = Outcome>) -> Self {
        self.report.on = outcomes.into_iter().collect();
        self
    }

    /// The time that all of it may take: 5 s unless said otherwise, and 15 s at most, which all ends
    /// of a turn have together.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit.min(MOST);
        self
    }
}

impl IntoRegistration for Notify {
    fn into_registration(self) -> Registration {
        let mut points = Points::from(Point::AfterAgent);
        if self.report.needs_begin() {
            points = points.with(Point::BeforeAgent);
        }
        let limit = self.limit;
        // What is told is what the caller gets.
        hook(Telling(self))
            .named("notify")
            .kind("notify")
            .observes()
            .only(points)
            .limit(limit)
            .outside("format")
            .outside("pii")
    }
}

struct Telling(Notify);

#[lifecycle]
impl AgentLifecycle for Telling {
    async fn before_agent(&self, cx: TurnCx<'_>, _: &mut Input) -> Result<Flow, HookError> {
        self.0.report.begin(cx)?;
        Ok(Flow::Continue)
    }

    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        if !self.0.report.concerns(end) {
            return Ok(After::Done);
        }
        let record = self.0.report.record(cx, end, Moment::now());
        let delivery = record.delivery.clone();
        let body = Value::from(record).to_string().into_bytes();
        match &self.0.by {
            By::Command { argv, dir, environment, tracker, check } => {
                let command = Command::new(argv.clone(), dir, environment)
                    .variable("TENURE_AGENT", cx.agent_name())
                    .variable("TENURE_DELIVERY", &delivery)
                    .variable("TENURE_OUTCOME", end.outcome().as_str())
                    .checked_by(check.clone())
                    .told(body);
                run(cx, &command, tracker).await?;
            }
            #[cfg(feature = "network")]
            By::Webhook(webhook) => {
                // It ends by itself, and says what it came to, before its time is up.
                let limit = self.0.limit.mul_f64(0.95);
                webhook.send(&delivery, body, limit).await.map_err(HookError::new)?;
            }
        }
        Ok(After::Done)
    }
}

/// Runs the command. When the hook's time is up this future is dropped, and the command is killed.
async fn run(cx: TurnCx<'_>, command: &Command, tracker: &TaskTracker) -> Result<(), HookError> {
    let not_started = |why| HookError::of_kind(FaultKind::NotStarted, why);
    let heard = command.run(tracker).await.map_err(not_started)?;
    for (stream, kept) in [(LogStream::Stdout, &heard.out), (LogStream::Stderr, &heard.err)] {
        for line in kept.text().lines() {
            cx.log("notify", stream, line);
        }
    }
    let kind = match heard.ended {
        Ended::Code(0) => return Ok(()),
        Ended::Code(_) => FaultKind::Exited,
        Ended::Signal(_) => FaultKind::Panicked,
    };
    Err(HookError::of_kind(kind, format!("`{}` ended with {}", command.shown(), heard.ended)))
}

/// How often a server is told at most.
const ATTEMPTS: u32 = 4;
const OF_COMMAND: &str =
    "a server gets no variables; this is about a `command`, which is not given";

/// What `notify` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct NotifyOptions {
    /// A command that gets each result as JSON on its standard input. Either it is given, or `url`.
    command: Option<CommandLine>,
    /// An address that each result is posted to: `https`, or this machine.
    url: Option<Address>,
    /// The name of the variable that holds the secret to sign with.
    secret_env: Option<Variable>,
    /// Whether results are posted without a signature.
    unsigned: bool,
    /// Whether `url` may be one of `http`, which everybody on the way can read.
    allow_http: bool,
    /// How often a result is posted at most, within `limit`.
    attempts: u32,
    /// What is told, beside the delivery, the time, the agent and the run.
    what: Vec<Part>,
    /// Of which turns somebody is told, by outcome; of all, if it is empty.
    on: Vec<OutcomeName>,
    /// The time that all of it may take; at most 15 s.
    limit: Time,
    /// Names of variables of ours that the command gets to see, beside the usual ones and those that
    /// the project passes to all hooks.
    pass_env: Vec<Variable>,
    /// Variables that the command gets, with their values. No place for secrets.
    env: BTreeMap<String, String>,
}

impl Default for NotifyOptions {
    fn default() -> Self {
        Self {
            command: None,
            url: None,
            secret_env: None,
            unsigned: false,
            allow_http: false,
            attempts: ATTEMPTS,
            what: Part::ALL.into(),
            on: Vec::new(),
            limit: Time(LIMIT),
            pass_env: Vec::new(),
            env: BTreeMap::new(),
        }
    }
}

impl Options for NotifyOptions {
    const ABOUT: About = About {
        name: "notify",
        summary: "Tells a command or a server of each result; requests are signed.",
        covers: &["UC-6.2"],
        peers: &[],
        example: r#"{ "command": ["true"], "on": ["ok", "failed"] }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        if self.limit.0 > MOST {
            let why = "it is more than 15s, which all ends of a turn have together; write less";
            return Err(Refusal::new("limit", why));
        }
        if self.attempts == 0 {
            return Err(Refusal::new("attempts", "it is 0; write 1 or more"));
        }
        let of_server = self.secret_env.is_some() || self.unsigned || self.allow_http;
        let notify = match (&self.command, &self.url) {
            (Some(_), None) if of_server => {
                let why = "`secret_env`, `unsigned` and `allow_http` are about a `url`, which is \
                           not given";
                return Err(Refusal::new("url", why));
            }
            (Some(_), None) if self.attempts != ATTEMPTS => {
                let why = "a command is told once; this is about a `url`, which is not given";
                return Err(Refusal::new("attempts", why));
            }
            (Some(command), None) => {
                let pass: Vec<String> = self.pass_env.iter().map(|it| it.0.clone()).collect();
                let environment = crate::tools::environment(makings, &pass, &self.env)?;
                let dir = makings.path(".").map_err(|why| Refusal::new("command", why))?;
                let check = makings.start_check(&command.0, &dir);
                let notify = Notify::command(command.0.clone()).dir(dir);
                notify.environment(environment).checked_by(check)
            }
            (None, Some(_)) if !self.pass_env.is_empty() => {
                return Err(Refusal::new("pass_env", OF_COMMAND));
            }
            (None, Some(_)) if !self.env.is_empty() => {
                return Err(Refusal::new("env", OF_COMMAND));
            }
            (None, Some(address)) => self.by_url(address, makings)?,
            _ => return Err(Refusal::new("", "give one of `command` and `url`")),
        };
        let report = report(self.what, self.on)?;
        Ok(Notify { report, ..notify.limit(self.limit.0) }.into_registration())
    }
}

impl NotifyOptions {
    #[cfg(feature = "network")]
    fn by_url(&self, address: &Address, makings: &dyn Makings) -> Result<Notify, Refusal> {
        match (&self.secret_env, self.unsigned) {
            (Some(_), true) => {
                return Err(Refusal::new("unsigned", "`secret_env` is given too; take one away"));
            }
            (None, false) => {
                let why = "name the variable that holds the secret to sign with; or say \
                           `unsigned: true`, if the receiver trusts everybody";
                return Err(Refusal::new("secret_env", why));
            }
            (Some(Variable(name)), false) if name.is_empty() || name.contains(['=', '\0', ' ']) => {
                let why = "this is no name of a variable; the secret itself is not written here";
                return Err(Refusal::new("secret_env", why));
            }
            (Some(Variable(name)), false) if std::env::var_os(name).is_none() => {
                makings.warn("secret_env", format!("the variable {name} is not set"));
            }
            _ => {}
        }
        let secret = self.secret_env.clone().map(|it| it.0);
        let webhook = webhook::Webhook::new(&address.0, secret, self.attempts, self.allow_http)?;
        Ok(Notify::by(By::Webhook(Arc::new(webhook))))
    }

    #[cfg(not(feature = "network"))]
    fn by_url(&self, _: &Address, _: &dyn Makings) -> Result<Notify, Refusal> {
        Err(Refusal::new("url", "this program was built without `network`; use a `command`"))
    }
}
