//! The life of a team: start in order, stop in reverse.

use super::builder::environment;
use super::{Recording, SHUTDOWN, Stage, Team, TeamError};
use crate::build::{Assembly, Built};
use crate::check::Loaded;
use crate::diagnostic::Severity;
use crate::sandbox::confined;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::agent::{Agent, Blueprint};
use tenure_core::hook::FaultKind;
use tenure_core::message::History;
use tenure_core::{CancelToken, Error};
use tenure_hosts::mcp::McpServers;
use tenure_hosts::{Environment, Interpreter, PythonConfig, PythonHost, PythonModules};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// The agents that have been started, and what they share. Dropping it stops them in the
/// background, in the same order as a shutdown does.
pub(super) struct Life {
    parts: Option<Parts>,
}

struct Parts {
    /// In the order in which they started.
    agents: Vec<(Built, Agent)>,
    host: Option<PythonHost>,
    servers: McpServers,
    runs: Arc<Runs>,
    /// Where it is stopped if it is dropped.
    background: TaskTracker,
}

/// How long a stop may take.
#[derive(Clone, Copy, Debug)]
enum Budget {
    /// What each agent may take for itself, one after the other.
    Own,
    /// So long for all of them, each with its share of what is left.
    Whole(Duration),
}

/// The runs that go on.
#[derive(Default)]
pub(super) struct Runs {
    tokens: Mutex<BTreeMap<u64, CancelToken>>,
    /// Chats that are held open, whether or not anything goes on in them.
    chats: Mutex<BTreeMap<u64, CancelToken>>,
    next: AtomicU64,
    tracker: TaskTracker,
    /// Told when the last one is over.
    idle: Notify,
    /// Whether the one run that is recorded has begun.
    recorded: AtomicBool,
}

/// One run that goes on. Its end is noticed however it ends.
pub(super) struct OneRun {
    runs: Arc<Runs>,
    number: u64,
    pub(super) token: CancelToken,
    _counted: TaskTrackerToken,
}

impl Runs {
    pub(super) fn begin(self: &Arc<Self>) -> OneRun {
        let token = CancelToken::new();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.tokens().insert(number, token.clone());
        OneRun { runs: self.clone(), number, token, _counted: self.tracker.token() }
    }

    /// Whether this is the first time that the recorded run begins.
    pub(super) fn begin_recorded(&self) -> bool {
        !self.recorded.swap(true, Ordering::AcqRel)
    }

    /// Holds a chat open, as a conversation does between its turns.
    pub(super) fn hold(self: &Arc<Self>) -> HeldChat {
        let token = CancelToken::new();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.chats().insert(number, token.clone());
        HeldChat { runs: self.clone(), number, token }
    }

    pub(super) fn cancel(&self) {
        let mut tokens: Vec<_> = self.tokens().values().cloned().collect();
        tokens.extend(self.chats().values().cloned());
        for token in tokens {
            token.cancel();
        }
    }

    /// Waits until none goes on.
    pub(super) async fn idle(&self) {
        loop {
            let mut told = std::pin::pin!(self.idle.notified());
            // From here on no end is missed.
            told.as_mut().enable();
            if self.tokens().is_empty() {
                return;
            }
            told.await;
        }
    }

    /// Whether the team is being stopped, or has been.
    pub(super) fn is_over(&self) -> bool {
        self.tracker.is_closed()
    }

    /// Runs something that belongs to a run. The team does not stop before it has ended.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.tracker.spawn(task));
    }

    fn chats(&self) -> MutexGuard<'_, BTreeMap<u64, CancelToken>> {
        self.chats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tokens(&self) -> MutexGuard<'_, BTreeMap<u64, CancelToken>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One chat that is held open.
pub(super) struct HeldChat {
    runs: Arc<Runs>,
    number: u64,
    pub(super) token: CancelToken,
}

impl Drop for HeldChat {
    fn drop(&mut self) {
        self.runs.chats().remove(&self.number);
    }
}

impl Drop for OneRun {
    fn drop(&mut self) {
        let mut tokens = self.runs.tokens();
        tokens.remove(&self.number);
        if tokens.is_empty() {
            self.runs.idle.notify_waiters();
        }
    }
}

impl Life {
    fn parts(&self) -> impl Iterator<Item = &Parts> {
        self.parts.iter()
    }

    pub(super) fn agent(&self, name: &str) -> Option<Agent> {
        let mut agents = self.parts().flat_map(|parts| &parts.agents);
        agents.find(|(built, _)| &*built.name == name).map(|(_, agent)| agent.clone())
    }

    /// The tool servers that its agents share.
    pub(super) fn servers(&self) -> Option<McpServers> {
        self.parts.as_ref().map(|parts| parts.servers.clone())
    }

    /// Its agents, in the order in which they started.
    pub(super) fn agents(&self) -> impl Iterator<Item = &(Built, Agent)> {
        self.parts().flat_map(|parts| &parts.agents)
    }

    /// Everybody, in the order in which they started, with what their cards give them to begin with.
    pub(super) fn members(&self) -> Vec<(Arc<str>, Agent, Option<History>)> {
        let agents = self.parts().flat_map(|parts| &parts.agents);
        agents.map(|(it, agent)| (it.name.clone(), agent.clone(), it.history.clone())).collect()
    }

    /// The blueprints of its agents.
    fn blueprints(&self) -> Vec<Blueprint> {
        let agents = self.parts().flat_map(|parts| &parts.agents);
        agents.map(|(built, _)| built.blueprint.clone()).collect()
    }

    pub(super) fn runs(&self) -> Option<Arc<Runs>> {
        self.parts.as_ref().map(|parts| parts.runs.clone())
    }

    async fn stop(mut self, budget: Budget) {
        if let Some(parts) = &self.parts {
            parts.stop(budget).await;
        }
        self.parts = None;
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        let Some(parts) = self.parts.take() else { return };
        match Handle::try_current() {
            Ok(runtime) => {
                let tracker = parts.background.clone();
                drop(tracker.spawn_on(async move { parts.stop(Budget::Own).await }, &runtime));
            }
            // Nobody is left to run hooks. The agents release what they can; processes are killed.
            Err(_) => {
                if let Some(host) = &parts.host {
                    host.kill();
                }
            }
        }
    }
}

impl Parts {
    /// Cancels what runs, then stops the agents in reverse order of their start, then the workers.
    /// May be called again after it was dropped half way.
    ///
    /// One agent after the other: that is the order that is promised, and agents share a Python
    /// worker, which one that hangs takes along. What an agent may take is its own, so that nobody's
    /// end is lost because somebody else's hangs.
    async fn stop(&self, budget: Budget) {
        let until = match budget {
            Budget::Own => None,
            Budget::Whole(budget) => Some(Instant::now() + budget),
        };
        let left = || Some(until?.saturating_duration_since(Instant::now()));
        self.runs.cancel();
        self.runs.tracker.close();
        let for_runs = left().map_or_else(|| self.for_runs(), |left| left / 2);
        let _ = tokio::time::timeout(for_runs, self.runs.tracker.wait()).await;
        for (before, (_, agent)) in self.agents.iter().enumerate().rev() {
            match left() {
                None => agent.shutdown().await,
                Some(left) => {
                    let share = left / u32::try_from(before + 1).unwrap_or(u32::MAX);
                    agent.shutdown_within(share.max(Duration::from_millis(1))).await;
                }
            }
        }
        let until = until.unwrap_or_else(|| Instant::now() + SHUTDOWN);
        for (built, _) in self.agents.iter().rev() {
            // Ends that dropped runs left behind.
            let _ = tokio::time::timeout_at(until, built.blueprint.settled()).await;
        }
        if let Some(host) = &self.host {
            host.shutdown().await;
        }
    }

    /// What cancelled runs may take: the ends of a turn, and those of its chat.
    fn for_runs(&self) -> Duration {
        let ends = self.agents.iter().map(|(built, _)| built.blueprint.config().limits.ends);
        ends.max().unwrap_or_default().saturating_mul(2).max(SHUTDOWN)
    }
}

impl Team {
    /// Starts every agent, children before parents, then by name.
    ///
    /// If one cannot be started, those that were are stopped again in reverse order, and the error
    /// says which hook of which agent failed, and how. A team is started once.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops what was started, in the background, in reverse order.
    pub async fn start(&self) -> Result<(), TeamError> {
        {
            let mut stage = self.stage();
            match *stage {
                Stage::Built => *stage = Stage::Starting,
                Stage::Starting => return Err(TeamError::not_running("the team is being started")),
                Stage::Running(_) => return Ok(()),
                Stage::Over => {
                    let message = "the team has been stopped; build another one";
                    return Err(TeamError::not_running(message));
                }
            }
        }
        // Until it has succeeded, whatever happens means that it is over.
        let over = OverUnless(self);
        let life = self.start_agents().await?;
        {
            let mut stage = self.stage();
            if matches!(*stage, Stage::Starting) {
                std::mem::forget(over);
                *stage = Stage::Running(life);
                return Ok(());
            }
        }
        // Somebody stopped the team meanwhile.
        life.stop(Budget::Own).await;
        Err(TeamError::not_running("the team was stopped while it was being started"))
    }

    async fn start_agents(&self) -> Result<Life, TeamError> {
        let (loaded, guarding) = (&self.loaded, self.settings.guarding.as_deref());
        let environment = confined(environment(loaded), loaded, guarding);
        let needed = self.plan.python;
        let config = python_config(loaded, self.python.as_ref(), needed, &environment).await?;
        let host = PythonHost::new(config);
        let assembly = Assembly::new(&self.loaded, &self.settings, &host, &environment);
        unchanged(&assembly)?;
        let host = assembly.python.then_some(host);
        let mut life = Life {
            parts: Some(Parts {
                agents: Vec::new(),
                host: host.clone(),
                servers: assembly.servers,
                runs: Arc::default(),
                background: self.background.clone(),
            }),
        };
        for built in assembly.agents {
            let agent = built.blueprint.instance();
            if let Some(history) = &built.history {
                let set = agent.set_history(history.clone());
                set.map_err(|error| not_started(&built, &agent, error))?;
            }
            if let Some(Recording { steps, .. }) = &self.recording {
                let recorded = agent.record(steps);
                recorded.map_err(|error| not_started(&built, &agent, error))?;
            }
            if let Some(host) = &host {
                host.join(agent.id(), "team");
            }
            if let Some(parts) = &mut life.parts {
                parts.agents.push((built.clone(), agent.clone()));
            }
            if let Err(error) = agent.startup().await {
                let error = not_started(&built, &agent, error);
                life.stop(Budget::Own).await;
                return Err(error);
            }
        }
        Ok(life)
    }

    /// Waits until everything has ended that a dropped start, a dropped shutdown or a dropped run left
    /// behind. Bounded, as a shutdown is.
    ///
    /// Runs that go on are not waited for: shut the team down first.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing; it may be called again.
    pub async fn settled(&self) {
        self.background.close();
        // Each of those is bounded by itself.
        self.background.wait().await;
        self.background.reopen();
        let blueprints = match &*self.stage() {
            Stage::Running(life) => life.blueprints(),
            _ => return,
        };
        let until = Instant::now() + SHUTDOWN;
        for blueprint in blueprints {
            let _ = tokio::time::timeout_at(until, blueprint.settled()).await;
        }
    }

    /// Cancels every run that goes on, and ends every conversation as cancelled. The agents stay.
    pub fn cancel(&self) {
        let runs = match &*self.stage() {
            Stage::Running(life) => life.runs(),
            _ => None,
        };
        if let Some(runs) = runs {
            runs.cancel();
        }
    }

    /// Stops the team: cancels what runs, then stops the agents one after the other, in reverse
    /// order of their start. Idempotent, never fails.
    ///
    /// Bounded: runs have 30 s (or twice `limits.ends`, if that is more) to end, and then each agent
    /// has what its own shutdown may take, 30 s unless configured. An agent whose `on_shutdown` hangs
    /// takes nothing from the others. What dropped runs left behind has 30 s more, so a team of n
    /// agents is over after 30 s × (n + 2) at the very latest; [`shutdown_within`](Team::shutdown_within) sets another bound.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing: the shutdown goes on in the background.
    pub async fn shutdown(&self) {
        self.stop(Budget::Own).await;
    }

    /// Stops the team within a budget for all of it: half of it at most for the runs, and for each
    /// agent at least an equal share of what is left, so that every one gets its turn.
    pub async fn shutdown_within(&self, budget: Duration) {
        self.stop(Budget::Whole(budget)).await;
    }

    async fn stop(&self, budget: Budget) {
        let before = std::mem::replace(&mut *self.stage(), Stage::Over);
        if let Stage::Running(life) = before {
            life.stop(budget).await;
        }
    }
}

/// How Python is run. Its interpreter is looked for only if somebody needs it.
pub(super) async fn python_config(
    loaded: &Loaded,
    said: Option<&PythonConfig>,
    needed: bool,
    environment: &Environment,
) -> Result<PythonConfig, TeamError> {
    let mut start_check = None;
    let modules = match said.map(|config| &config.modules) {
        Some(own @ PythonModules::Checked(_)) => own.clone(),
        _ if needed => {
            let (python, project) = (loaded.python.clone(), loaded.project.clone());
            let read = move || python.modules(&project).clone();
            let read = tokio::task::spawn_blocking(read).await;
            let read = read.map_err(|error| TeamError::start(error.to_string(), None))?;
            start_check = read.start.check(&loaded.project);
            PythonModules::Checked(read)
        }
        _ => PythonModules::Any,
    };
    if let Some(config) = said {
        return Ok(PythonConfig { modules, ..config.clone() });
    }
    let root = loaded.project.root.clone();
    // Asked for its version it runs too.
    if let Some(check) = &start_check {
        check.run().await.map_err(|why| TeamError::start(why, None))?;
    }
    let interpreter = match &loaded.project.config.interpreter {
        Some(path) => Interpreter::at(root.join(path)),
        None if needed => {
            let (project, environment) = (root.clone(), environment.clone());
            let find = move || Interpreter::find_in(&project, &environment);
            let found = tokio::task::spawn_blocking(find).await;
            match found {
                Ok(found) => found.map_err(|error| TeamError::start(error.to_string(), None))?,
                Err(error) => return Err(TeamError::start(error.to_string(), None)),
            }
        }
        None => Interpreter::at("python3"),
    };
    Ok(PythonConfig {
        start_check,
        interpreter,
        environment: environment.clone(),
        dir: root,
        limits: loaded.project.config.python_limits,
        modules,
    })
}

/// Files were checked before; what is wrong with them now has happened since.
pub(super) fn unchanged(assembly: &Assembly) -> Result<(), TeamError> {
    let mut problems = assembly.report.iter().chain(assembly.needs.iter());
    let Some(problem) = problems.find(|it| it.severity == Severity::Error) else { return Ok(()) };
    let file = problem.source.path().display();
    let message = format!(
        "the files have changed since they were checked: {file}: {}; build the team again",
        problem.message
    );
    Err(TeamError::start(message, None))
}

/// Marks a team as over, unless it is forgotten.
struct OverUnless<'a>(&'a Team);

impl Drop for OverUnless<'_> {
    fn drop(&mut self) {
        *self.0.stage() = Stage::Over;
    }
}

/// Says which hook of which agent failed, as its card names it.
fn not_started(built: &Built, agent: &Agent, error: Error) -> TeamError {
    let failures = agent.failures();
    let failed = failures.iter().find(|failure| &*failure.point == "on_start");
    let message = match failed {
        Some(failure) => {
            let place = built.places.iter().find(|place| place.name == failure.hook);
            let runs = place.map_or(&*failure.hook, |place| &*place.runs);
            let what = match failure.kind {
                FaultKind::Panicked => "crashed",
                FaultKind::TimedOut => "timed out",
                FaultKind::BadReply => "gave a bad reply",
                FaultKind::Exited => "exited with a failure",
                FaultKind::NotStarted => "could not be started",
                _ => "failed",
            };
            format!("agent `{}`: on_start `{runs}` {what}: {}", built.name, failure.message)
        }
        None => format!("agent `{}`: {error}", built.name),
    };
    TeamError::start(message, Some(error))
}
