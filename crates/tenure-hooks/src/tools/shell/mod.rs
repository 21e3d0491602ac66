//! A shell for the model, with a guard before it.

mod leave;
mod life;
mod tool;

pub use leave::Otherwise;

use crate::ready::{
    About, CommandLine, Makings, Options, Pattern, ProjectPath, Refusal, Time, Variable,
};
use leave::{Leave, compile};
use life::Guard;
use regex_automata::meta::Regex;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::hook::{IntoRegistration, Point, Points, Policy, Registration, hook};
use tenure_process::{Environment, StartCheck};
use tokio_util::task::TaskTracker;
use tool::ShellTool;

const DESCRIPTION: &str = "Run a shell command and read what it writes. Every command is a shell of \
                           its own: it begins in the same folder, and `cd` and variables do not last.";
/// What a hook may take beside what it waits for.
const OWN_TIME: Duration = Duration::from_secs(30);

/// Gives the model a shell: the tool `shell`, and the guard before it.
///
/// Every command needs leave. It has it if one of the patterns of [`allow`](Shell::allow) matches
/// it, as a whole; a command that has `;`, `&`, `|`, `` ` ``, `$`, `(`, `)`, `<`, `>` or a line break
/// in it is never matched. Every other is put to a person. What one of [`deny`](Shell::deny) matches
/// never runs, whoever allows it; a shell knows many ways to write the same thing, so this is a help
/// and not a wall.
///
/// A command runs by `sh -c`, in one folder, with an environment by allow-list and nothing on its
/// standard input. It finds the key of its call in `TENURE_IDEMPOTENCY_KEY`. When its time is up or
/// the turn is cancelled it is killed, with everything that it started. After a crash it is not
/// made again.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::tools::Shell;
/// # use tenure_models::Passthrough;
///
/// let shell = Shell::new(".").allow("git (status|log)")?.allow("ls( .*)?")?;
/// let agent = Agent::builder("clerk").model(Passthrough::new()).with_lifecycle(shell).build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Shell {
    name: String,
    description: String,
    dir: PathBuf,
    program: Vec<String>,
    environment: Environment,
    limit: Duration,
    most: usize,
    startup: Vec<Vec<String>>,
    /// The checks before commands of whoever wrote the file.
    checks: BTreeMap<Vec<String>, StartCheck>,
    shutdown: Vec<Vec<String>>,
    shutdown_limit: Duration,
    leave: Leave,
    redact: Vec<Regex>,
}

impl Shell {
    /// A shell in this folder. A person is asked before every command.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            name: "shell".to_owned(),
            description: DESCRIPTION.to_owned(),
            dir: dir.into(),
            program: vec!["sh".to_owned(), "-c".to_owned()],
            environment: Environment::new(),
            limit: Duration::from_secs(60),
            most: 64 * 1024,
            startup: Vec::new(),
            checks: BTreeMap::new(),
            shutdown: Vec::new(),
            shutdown_limit: Duration::from_secs(5),
            leave: Leave::default(),
            redact: Vec::new(),
        }
    }

    /// The tool's name: `shell` unless said otherwise.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// What the model reads of the tool.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// The program that takes a command as its last argument: `sh -c` unless said otherwise.
    pub fn program(mut self, argv: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.program = argv.into_iter().map(Into::into).collect();
        self
    }

    /// What commands get to see of our environment.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// The most time that a command may take: a minute unless said otherwise.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The most bytes of each of a command's two streams that the model gets to read.
    pub fn output_limit(mut self, bytes: usize) -> Self {
        self.most = bytes;
        self
    }

    /// Runs a command when the agent starts. If it fails, so does the start.
    pub fn at_startup(mut self, argv: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.startup.push(argv.into_iter().map(Into::into).collect());
        self
    }

    /// Runs a command when the agent ends, also after a start that failed.
    pub fn at_shutdown(mut self, argv: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.shutdown.push(argv.into_iter().map(Into::into).collect());
        self
    }

    /// The time that all commands at the shutdown share: 5 s unless said otherwise, and 15 s at
    /// most, which all ends of an agent have together.
    pub fn shutdown_limit(mut self, limit: Duration) -> Self {
        self.shutdown_limit = limit;
        self
    }

    /// Allows commands that a regular expression matches as a whole.
    pub fn allow(mut self, pattern: &str) -> Result<Self, Refusal> {
        self.leave.allow(pattern)?;
        Ok(self)
    }

    /// Refuses commands that a regular expression matches anywhere, whoever allows them.
    pub fn deny(mut self, pattern: &str) -> Result<Self, Refusal> {
        self.leave.deny(pattern)?;
        Ok(self)
    }

    /// Lets patterns of [`allow`](Self::allow) match commands that have operators of the shell too.
    pub fn allow_operators(mut self) -> Self {
        self.leave.operators = true;
        self
    }

    /// What happens to a command that no pattern allows. A person is asked unless said otherwise.
    pub fn otherwise(mut self, otherwise: Otherwise) -> Self {
        self.leave.otherwise = otherwise;
        self
    }

    /// Replaces what a regular expression matches in what commands write, at the start and at the
    /// end of the agent too.
    pub fn redact(mut self, pattern: &str) -> Result<Self, Refusal> {
        self.redact.push(compile("redact", pattern)?);
        Ok(self)
    }
}

impl IntoRegistration for Shell {
    fn into_registration(self) -> Registration {
        let (shell, tracker) = (Arc::new(self), TaskTracker::new());
        let started = u32::try_from(shell.startup.len()).unwrap_or(u32::MAX);
        let limit = shell.limit.saturating_mul(started).max(shell.shutdown_limit) + OWN_TIME;
        let mut points = Points::from(Point::WrapToolCall);
        if !shell.startup.is_empty() {
            points = points.with(Point::OnStart);
        }
        if !shell.shutdown.is_empty() {
            points = points.with(Point::OnShutdown);
        }
        let guard = Guard { shell: shell.clone(), tracker: tracker.clone() };
        // A person may write another command, and permissions judge that one. What is rewritten
        // on its way is rewritten before it is put to a person.
        hook(guard)
            .named(shell.name.clone())
            .kind("shell")
            .policy_at(Point::WrapToolCall, Policy::Deny)
            .only(points)
            .limit(limit)
            .innermost()
            .inside("pii")
            .outside("permissions")
            .with_tool(ShellTool { shell, tracker })
    }
}

/// What `shell` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ShellOptions {
    /// The folder that commands run in, beneath the project.
    root: ProjectPath,
    /// The tool's name.
    tool_name: String,
    /// What the model reads of the tool; without it, a description of ours.
    description: Option<String>,
    /// The program that takes a command as its last argument.
    shell: CommandLine,
    /// Regular expressions. A command that one of them matches as a whole runs without asking.
    allow: Vec<Pattern>,
    /// Regular expressions. A command that one of them matches anywhere never runs.
    deny: Vec<Pattern>,
    /// Whether `allow` may match commands with operators of the shell: `;`, `&`, `|`, `` ` ``, `$`,
    /// parentheses, `<`, `>`, line breaks.
    allow_operators: bool,
    /// What happens to every other command: `ask` a person (who is not there denies), `deny`, or
    /// `allow`.
    otherwise: Otherwise,
    /// The most time that a command may take; less, if `[limits] tool` is less.
    limit: Time,
    /// The most bytes of each of a command's two streams that the model gets to read.
    output_limit: usize,
    /// Names of variables of ours that commands get to see, beside the usual ones and those that the
    /// project passes to all hooks.
    pass_env: Vec<Variable>,
    /// Variables that commands get, with their values. No place for secrets.
    env: BTreeMap<String, String>,
    /// Commands that run when the agent starts, each a list. If one fails, so does the start.
    startup_commands: Vec<CommandLine>,
    /// Commands that run when the agent ends, each a list; also after a start that failed.
    shutdown_commands: Vec<CommandLine>,
    /// The time that all of `shutdown_commands` share; at most 15 s.
    shutdown_limit: Time,
    /// Regular expressions. What they match in what a command writes reads `[redacted]`.
    redact: Vec<Pattern>,
}

impl Default for ShellOptions {
    fn default() -> Self {
        Self {
            root: ProjectPath(".".to_owned()),
            tool_name: "shell".to_owned(),
            description: None,
            shell: CommandLine(vec!["sh".to_owned(), "-c".to_owned()]),
            allow: Vec::new(),
            deny: Vec::new(),
            allow_operators: false,
            otherwise: Otherwise::Ask,
            limit: Time(Duration::from_secs(60)),
            output_limit: 64 * 1024,
            pass_env: Vec::new(),
            env: BTreeMap::new(),
            startup_commands: Vec::new(),
            shutdown_commands: Vec::new(),
            shutdown_limit: Time(Duration::from_secs(5)),
            redact: Vec::new(),
        }
    }
}

impl Options for ShellOptions {
    const ABOUT: About = About {
        name: "shell",
        summary: "Gives the model a shell in one folder; every command needs leave.",
        covers: &["UC-4.1", "UC-5.2"],
        peers: &["ShellToolMiddleware"],
        example: r#"{ "allow": ["ls( .*)?", "git (status|log)"], "limit": "30s" }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        let dir = makings.path(&self.root.0).map_err(|why| Refusal::new("root", why))?;
        super::check_name("tool_name", &self.tool_name)?;
        if self.output_limit == 0 {
            return Err(Refusal::new("output_limit", "it is 0; give the model something to read"));
        }
        let most = Duration::from_secs(15);
        if self.shutdown_limit.0 > most {
            let why = "it is more than 15s, which all ends have together; write less";
            return Err(Refusal::new("shutdown_limit", why));
        }
        if self.otherwise == Otherwise::Allow {
            let why = "every command runs that `deny` does not match; nobody is asked";
            makings.warn("otherwise", why.to_owned());
        }
        let pass: Vec<String> = self.pass_env.into_iter().map(|it| it.0).collect();
        let environment = super::environment(makings, &pass, &self.env)?;
        let mut shell = Shell::new(dir)
            .name(self.tool_name)
            .program(self.shell.0)
            .environment(environment)
            .limit(makings.tool_limit().map_or(self.limit.0, |most| most.min(self.limit.0)))
            .output_limit(self.output_limit)
            .shutdown_limit(self.shutdown_limit.0)
            .otherwise(self.otherwise);
        shell.leave.operators = self.allow_operators;
        shell.description = self.description.unwrap_or(shell.description);
        shell.startup = self.startup_commands.into_iter().map(|it| it.0).collect();
        shell.shutdown = self.shutdown_commands.into_iter().map(|it| it.0).collect();
        for argv in shell.startup.iter().chain(&shell.shutdown) {
            let check = makings.start_check(argv, &shell.dir);
            shell.checks.extend(check.map(|check| (argv.clone(), check)));
        }
        shell.redact = self.redact.into_iter().map(|it| it.regex).collect();
        for (at, pattern) in self.allow.iter().enumerate() {
            let refused = |it: Refusal| Refusal::new(format!("allow[{at}]"), it.message());
            shell.leave.allow(&pattern.text).map_err(refused)?;
        }
        for pattern in &self.deny {
            shell.leave.deny(&pattern.text)?;
        }
        Ok(shell.into_registration())
    }
}
