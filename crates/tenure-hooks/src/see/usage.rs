//! Usage and cost: per run, agent, model and user.

use super::saver::Saver;
use super::seen::{around, lock, model_name, user};
use crate::ready::{About, Makings, Options, ProjectPath, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tenure_core::context::{InstanceCx, ToolCx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::hook::{
    After, AgentLifecycle, Flow, HookError, IntoRegistration, Registration, hook,
};
use tenure_core::model::{Cost, ModelRequest, ModelResponse, Usage};
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_core::{Error, ExitReason, InstanceId, NextModel, NextTool, Outcome, RunId};
use tenure_macros::lifecycle;

/// The name of this hook.
const KIND: &str = "usage";
/// How many runs are kept by default, the newest ones.
const RUNS: usize = 1000;
/// How many agents, models or users are told apart.
const MOST_NAMES: usize = 10_000;

/// Usage and cost, added up per run, agent, model and user.
///
/// An agent's own share is counted as its: what agents that it calls as tools use is theirs, and
/// part of the run. What hooks ask of models beside the conversation is part of the agent's share,
/// and of no model's row.
///
/// Clones of one report add up together. At the end of each turn the event `usage.reported` says
/// what the run used.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::see::UsageReport;
/// # use tenure_models::Passthrough;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let report = UsageReport::new();
/// let agent = Agent::builder("clerk")
///     .model(Passthrough::new())
///     .with_lifecycle(report.clone())
///     .build()?;
/// agent.scoped(async |agent| agent.run("hello").await).await?;
/// let seen = report.snapshot();
/// assert_eq!(seen.agents["clerk"].turns, 1);
/// assert_eq!(seen.models["passthrough"].usage.calls, seen.total.usage.calls);
/// # Ok::<_, tenure_core::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
#[must_use]
pub struct UsageReport {
    book: Arc<Mutex<Book>>,
    file: Option<PathBuf>,
    saver: Option<Arc<Saver>>,
}

/// What was used so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct UsageSnapshot {
    /// All of it.
    pub total: UsageRow,
    /// By the agent's name. A clone counts as the agent that it is a clone of.
    pub agents: BTreeMap<String, UsageRow>,
    /// By the model that answered.
    pub models: BTreeMap<String, UsageRow>,
    /// By the user whom a turn was for. Turns for nobody in particular are not here.
    pub users: BTreeMap<String, UsageRow>,
    /// The newest runs by their id: what each used, with the agents that it called as tools.
    pub runs: BTreeMap<String, UsageRow>,
}

/// One line of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct UsageRow {
    /// How many turns it adds up. Of a model it is zero.
    pub turns: u64,
    /// How many of them, or of the model's calls, did not end well.
    pub failed: u64,
    /// What they used.
    #[serde(flatten)]
    pub usage: Usage,
    /// What that cost, in US dollars, as far as prices are known.
    pub cost_usd: f64,
}

impl UsageRow {
    fn add(&mut self, turns: u64, is_ok: bool, usage: Usage) {
        self.turns += turns;
        self.failed += u64::from(!is_ok);
        self.usage += usage;
        self.cost_usd = self.usage.cost.usd();
    }
}

struct Book {
    /// All but the runs.
    snapshot: UsageSnapshot,
    /// The newest runs, and the order in which they ended.
    runs: HashMap<RunId, UsageRow>,
    order: VecDeque<RunId>,
    most_runs: usize,
    /// The turns that are under way.
    open: HashMap<RunId, Arc<Tally>>,
}

/// A turn, as the turns within it know it.
struct Tally {
    instance: InstanceId,
    outer: Option<Arc<Tally>>,
    /// What turns within it used, which is part of what it used.
    within: Mutex<Usage>,
}

tokio::task_local! {
    /// The turn whose tool runs another agent.
    static OUTER: Arc<Tally>;
}

impl Default for UsageReport {
    fn default() -> Self {
        Self::new()
    }
}

impl UsageReport {
    /// Nothing was used yet.
    pub fn new() -> Self {
        Self::made(None, RUNS)
    }

    fn made(file: Option<PathBuf>, most_runs: usize) -> Self {
        let book = Book {
            snapshot: UsageSnapshot::default(),
            runs: HashMap::new(),
            order: VecDeque::new(),
            most_runs,
            open: HashMap::new(),
        };
        let book = Arc::new(Mutex::new(book));
        let read = book.clone();
        let saver = file.clone().map(|path| {
            Saver::new(path, 0o600, move || {
                let snapshot = lock(&read).snapshot();
                // Texts and numbers can always be written.
                let mut text = serde_json::to_vec_pretty(&snapshot).unwrap_or_default();
                text.push(b'\n');
                text
            })
        });
        Self { book, file, saver }
    }

    /// Writes the report to this file at the end of each turn, as a whole. What was added up before
    /// this is forgotten.
    pub fn file(self, path: impl Into<PathBuf>) -> Self {
        let most_runs = lock(&self.book).most_runs;
        Self::made(Some(path.into()), most_runs)
    }

    /// How many runs are kept, the newest ones. 1000.
    pub fn runs(self, most: usize) -> Self {
        lock(&self.book).most_runs = most;
        self
    }

    /// What was used so far.
    pub fn snapshot(&self) -> UsageSnapshot {
        lock(&self.book).snapshot()
    }
}

impl Book {
    fn snapshot(&self) -> UsageSnapshot {
        let runs = self.runs.iter().map(|(run, row)| (run.to_string(), *row)).collect();
        UsageSnapshot { runs, ..self.snapshot.clone() }
    }

    fn turn(&mut self, agent: &str, user: Option<&str>, is_ok: bool, share: Usage) {
        self.snapshot.total.add(1, is_ok, share);
        row(&mut self.snapshot.agents, agent).add(1, is_ok, share);
        if let Some(user) = user {
            row(&mut self.snapshot.users, user).add(1, is_ok, share);
        }
    }

    fn run(&mut self, run: RunId, is_ok: bool, usage: Usage) {
        if self.most_runs == 0 {
            return;
        }
        let mut row = UsageRow::default();
        row.add(1, is_ok, usage);
        if self.runs.insert(run, row).is_none() {
            self.order.push_back(run);
        }
        while self.order.len() > self.most_runs {
            if let Some(oldest) = self.order.pop_front() {
                self.runs.remove(&oldest);
            }
        }
    }
}

/// The row of this name; of all further ones together, once there are too many.
fn row<'a>(rows: &'a mut BTreeMap<String, UsageRow>, name: &str) -> &'a mut UsageRow {
    let name = match rows.contains_key(name) || rows.len() < MOST_NAMES {
        true => name,
        false => "(other)",
    };
    // Nearly always it is there, and its name need not be made.
    if !rows.contains_key(name) {
        rows.insert(name.to_owned(), UsageRow::default());
    }
    rows.get_mut(name).unwrap_or_else(|| unreachable!("it was put in if it was not there"))
}

/// What is left of a sum without one of its parts.
fn without(sum: Usage, part: Usage) -> Usage {
    Usage {
        input: sum.input.saturating_sub(part.input),
        output: sum.output.saturating_sub(part.output),
        cached: sum.cached.saturating_sub(part.cached),
        reasoning: sum.reasoning.saturating_sub(part.reasoning),
        calls: sum.calls.saturating_sub(part.calls),
        cost: Cost::from_nano_usd(sum.cost.nano_usd().saturating_sub(part.cost.nano_usd())),
        unpriced: sum.unpriced.saturating_sub(part.unpriced),
    }
}

impl IntoRegistration for UsageReport {
    fn into_registration(self) -> Registration {
        around(hook(Adds(self)).named(KIND).kind(KIND)).again_on_resume()
    }
}

/// Adds up what an agent uses.
struct Adds(UsageReport);

#[lifecycle]
impl AgentLifecycle for Adds {
    async fn on_shutdown(&self, cx: InstanceCx<'_>, _: ExitReason) -> Result<(), HookError> {
        // A turn that is to go on in another process has not ended here.
        lock(&self.0.book).open.retain(|_, tally| tally.instance != cx.instance_id());
        if let Some(saver) = &self.0.saver {
            saver.now().await.map_err(|error| {
                Error::invalid(format!("the usage report cannot be written: {error}"))
            })?;
        }
        Ok(())
    }

    async fn before_agent(&self, cx: TurnCx<'_>, _: &mut Input) -> Result<Flow, HookError> {
        let outer = OUTER.try_with(Arc::clone).ok();
        let (instance, within) = (cx.instance_id(), Mutex::default());
        let tally = Arc::new(Tally { instance, outer, within });
        lock(&self.0.book).open.insert(cx.run_id(), tally);
        Ok(Flow::Continue)
    }

    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        let (usage, is_ok) = (end.usage(), end.outcome().is_ok());
        let user = user(&cx);
        {
            let mut book = lock(&self.0.book);
            let tally = book.open.remove(&cx.run_id());
            let within = tally.as_ref().map(|tally| *lock(&tally.within)).unwrap_or_default();
            if let Some(outer) = tally.as_ref().and_then(|tally| tally.outer.as_ref()) {
                *lock(&outer.within) += usage;
            }
            let share = without(usage, within);
            book.turn(&cx.config().name, user.as_deref(), is_ok, share);
            book.run(cx.run_id(), is_ok, usage);
        }
        cx.announce("usage.reported", || {
            let cost = usage.cost.usd();
            json!({ "run": cx.run_id(), "usage": usage, "cost_usd": cost })
        });
        if let Some(saver) = &self.0.saver {
            saver.soon();
        }
        Ok(After::Done)
    }

    async fn wrap_model_call(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        let result = next.call(request).await;
        let usage = result.as_ref().map(|response| response.usage).unwrap_or_default();
        let outcome = result.as_ref().map_or_else(Error::outcome, |_| Outcome::Ok);
        // Somebody further in may have had another model answer.
        let model = model_name(&cx, request);
        row(&mut lock(&self.0.book).snapshot.models, model).add(0, outcome.is_ok(), usage);
        Ok(result?)
    }

    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        match cx.run_id().and_then(|run| lock(&self.0.book).open.get(&run).cloned()) {
            Some(tally) => Ok(OUTER.scope(tally, next.call(request)).await?),
            None => Ok(next.call(request).await?),
        }
    }
}

impl fmt::Debug for UsageReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UsageReport")
            .field("total", &lock(&self.book).snapshot.total)
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

/// What `usage` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct UsageOptions {
    /// A file that gets the report at the end of each turn, as JSON. Without it, only the event
    /// `usage.reported` tells.
    file: Option<ProjectPath>,
    /// How many runs are kept, the newest ones.
    runs: usize,
}

impl Default for UsageOptions {
    fn default() -> Self {
        Self { file: None, runs: RUNS }
    }
}

impl Options for UsageOptions {
    const ABOUT: About = About {
        name: KIND,
        summary: "Adds up tokens and cost per run, agent, model and user.",
        covers: &["UC-3.4", "UC-6.3"],
        peers: &[],
        example: r#"{ "runs": 100 }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        let file = match &self.file {
            None => None,
            Some(path) => Some(makings.path(&path.0).map_err(|why| Refusal::new("file", why))?),
        };
        // Agents of a team that say the same add up together: there is one file.
        let key = format!("{file:?} {}", self.runs);
        let make = || UsageReport::made(file.clone(), self.runs);
        let report = makings.shared().part::<UsageReport>(KIND, &key, make);
        Ok(UsageReport::clone(&report).into_registration())
    }
}
