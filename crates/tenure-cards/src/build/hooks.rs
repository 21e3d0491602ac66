//! A card's hooks as entries of its agent's chain.

use super::HookCatalog;
use super::catalog::{CatalogError, Made};
use super::makings::{HookSite, Said};
use super::results::{PassResults, ResultMode};
use super::servers::Connections;
use crate::card::Card;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::feature::Feature;
use crate::hook::{Condition, Declared, DeclaredHook, On, Places, Run};
use crate::nearest;
use crate::sandbox::sandboxed;
use crate::source::{Source, Span};
use crate::trust::{CommandChecks, CommandUser};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure_core::hook::{AgentLifecycle, Origin, Point, Points, Policy, Registration, hook};
use tenure_hosts::{CommandHook, Environment, PythonHost, Role, TrimToolHistory};

/// What hooks are made with.
pub(super) struct Hosts<'a> {
    pub(super) python: &'a PythonHost,
    pub(super) environment: &'a Environment,
    pub(super) catalog: &'a HookCatalog,
    pub(super) commands: &'a CommandChecks,
}

/// Where a hook is declared, for whoever explains it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HookPlace {
    /// The name of its entry.
    pub(crate) name: Arc<str>,
    /// The file and line that declare it; none for the platform's own.
    pub(crate) declared: Option<String>,
    /// What runs.
    pub(crate) runs: String,
    /// The transition that it is called for, if it is called for one.
    pub(crate) transition: Option<String>,
    /// Its condition.
    pub(crate) when: Option<String>,
    /// How often a failed call is made again.
    pub(crate) retries: u32,
    /// Its purpose, as its file says.
    pub(crate) description: Option<Arc<str>>,
    /// The files that its commands are declared to write, as seen from its card.
    pub(crate) writes: Vec<String>,
    /// The confinement that its file asks for.
    pub(crate) sandbox: Option<String>,
}

/// The points of a turn.
const TURN: Points = Points::NONE
    .with(Point::BeforeAgent)
    .with(Point::BeforeModel)
    .with(Point::WrapModelCall)
    .with(Point::AfterModel)
    .with(Point::WrapToolCall)
    .with(Point::AfterAgent);

/// The files that the commands of a hook are declared to write, as seen from where it is declared.
pub(super) fn written(declared: &DeclaredHook) -> Vec<String> {
    match &declared.run {
        Run::Command(command) => shown_from(&declared.writes, &command.dir),
        Run::Use { dir, .. } => shown_from(&declared.writes, dir),
        // It has no command.
        Run::Python(_) => Vec::new(),
    }
}

/// Files as they are seen from a folder.
pub(super) fn shown_from(files: &[PathBuf], dir: &Path) -> Vec<String> {
    let shown =
        |file: &PathBuf| file.strip_prefix(dir).unwrap_or(file).to_string_lossy().into_owned();
    files.iter().map(shown).collect()
}

/// A hook without a point.
struct Nothing;

impl AgentLifecycle for Nothing {
    fn points(&self) -> Points {
        Points::NONE
    }
}

/// The entries of a card's chain.
#[derive(Default)]
pub(super) struct Entries {
    pub(super) registrations: Vec<Registration>,
    pub(super) places: Vec<HookPlace>,
    /// Whether any of them needs Python.
    pub(super) python: bool,
    /// What connects the agent to tool servers.
    pub(super) servers: Option<Connections>,
    /// What hooks need to run, and is not there.
    pub(super) needs: Vec<Diagnostic>,
    /// The name of the model that the agent uses.
    pub(super) model: Option<String>,
}

impl Entries {
    /// These entries at the points of a turn alone: what watches over an agent's work, but not over
    /// its life.
    pub(super) fn of_turns(&self) -> Self {
        let turns = |registration: &Registration| restricted(registration.clone(), TURN);
        let registrations = self.registrations.iter().map(turns).collect();
        Self { registrations, python: self.python, ..Self::default() }
    }

    /// Puts the platform's own before everything else: what hooks use is there before the first of
    /// them, and goes after the last.
    pub(super) fn keepers(&mut self, python: &PythonHost) {
        let (rest, places) =
            (std::mem::take(&mut self.registrations), std::mem::take(&mut self.places));
        if self.python {
            self.platform(python.keeper(), "ends the Python worker");
        }
        if let Some(servers) = self.servers.take() {
            self.platform(servers.view.keeper(), "connects tool servers");
            if let Some(registration) = self.registrations.pop() {
                self.registrations.push(registration.limit(servers.limit));
            }
        }
        self.registrations.extend(rest);
        self.places.extend(places);
    }

    /// Adds a hook of the platform's own.
    pub(super) fn platform(&mut self, own: impl AgentLifecycle, runs: &str) {
        let name: Arc<str> = own.name().into();
        self.places.push(HookPlace {
            name: name.clone(),
            declared: None,
            runs: runs.to_owned(),
            transition: None,
            when: None,
            retries: 0,
            description: None,
            writes: Vec::new(),
            sandbox: None,
        });
        self.registrations.push(hook(own).named(name).origin(Origin::Platform));
    }

    /// Adds fast-agent's five, as one entry.
    pub(super) fn tool_hooks(&mut self, card: &Card, hosts: &Hosts<'_>) {
        let tool_hooks = &card.hooks.tool_hooks;
        if tool_hooks.is_empty() {
            return;
        }
        let runs = tool_hooks.iter().map(|(name, hook)| format!("{name}: {}", hook.spec));
        let runs = runs.collect::<Vec<_>>().join(", ");
        self.of_field("tool_hooks", card, hosts.python.tool_hooks(tool_hooks.functions()), runs);
        self.python = true;
    }

    /// Adds what `trim_tool_history` asks for; after the tool hooks, which then see all of a turn.
    pub(super) fn trim(&mut self, card: &Card) {
        let runs = "keeps the last tool calls of a turn".to_owned();
        self.of_field("trim_tool_history", card, TrimToolHistory, runs);
    }

    /// Adds what `tool_result_mode` asks for. No text of the model's is changed by it.
    pub(super) fn results(&mut self, card: &Card, mode: ResultMode) {
        let (runs, own) = (mode.explained().to_owned(), PassResults(mode));
        self.of_field("request_params", card, own, runs);
        if let Some(registration) = self.registrations.pop() {
            self.registrations.push(registration.keeps_text());
        }
    }

    /// Adds a hook that stands for a field of the card, under the field's name.
    fn of_field(&mut self, field: &str, card: &Card, own: impl AgentLifecycle, runs: String) {
        let name: Arc<str> = field.into();
        let span = super::model::place(card, field);
        self.places.push(HookPlace {
            name: name.clone(),
            declared: Some(line(card, span.start)),
            runs,
            transition: None,
            when: None,
            retries: 0,
            description: None,
            writes: Vec::new(),
            sandbox: None,
        });
        self.registrations.push(hook(own).named(name).origin(Origin::Card));
    }

    /// Adds `lifecycle_hooks` and `hooks`.
    ///
    /// Of `lifecycle_hooks` the end comes first: an end runs for every entry that a start has
    /// passed, so it runs also if its own beginning failed.
    pub(super) fn declare(&mut self, card: &Card, hosts: &Hosts<'_>, report: &mut Report) {
        let lifecycle = card.tree().field("lifecycle_hooks").map(|node| node.span);
        let is_last_end = |declared: &DeclaredHook| {
            let inside =
                |span: Span| span.start <= declared.span.start && declared.span.end <= span.end;
            lifecycle.is_some_and(inside)
                && declared.on == On::Points(Points::from(Point::OnShutdown))
        };
        let mut all: Vec<_> = card.hooks.declared.iter().collect();
        all.sort_by_key(|declared| !is_last_end(declared));
        for declared in all {
            if let Some((registration, runs)) =
                self.one(declared, &card.source, Origin::Card, hosts, report)
            {
                self.registrations.push(registration);
                self.places.push(HookPlace {
                    name: declared.name.clone(),
                    declared: Some(line(card, declared.span.start)),
                    runs,
                    transition: transition(&declared.on),
                    when: declared.when.as_ref().map(|when| when.expression.clone()),
                    retries: declared.retries,
                    description: None,
                    writes: written(declared),
                    sandbox: declared.sandbox.as_ref().map(ToString::to_string),
                });
            }
        }
    }

    /// A hook that a file declares, and what it runs.
    pub(super) fn one(
        &mut self,
        declared: &DeclaredHook,
        source: &Arc<Source>,
        origin: Origin,
        hosts: &Hosts<'_>,
        report: &mut Report,
    ) -> Option<(Registration, String)> {
        let points = match &declared.on {
            On::Points(points) => *points,
            On::Transition { .. } => Point::OnTransition.into(),
            On::Own => Points::ALL,
        };
        let role = match declared.policy {
            Some(Policy::Deny) => Role::Guard,
            _ => Role::Other,
        };
        let (registration, runs) = match &declared.run {
            Run::Python(python) => {
                self.python = true;
                let mut own = hosts.python.hook(python.function.clone(), points).role(role);
                if let Some(grant) = &declared.sandbox {
                    own = own.environment(sandboxed(hosts.environment, Some(grant)));
                }
                (hook(own.named(declared.name.clone())), python.spec.clone())
            }
            Run::Command(command) => {
                let own = CommandHook::new(
                    command.argv.clone(),
                    points,
                    command.dir.clone(),
                    sandboxed(hosts.environment, declared.sandbox.as_ref()),
                );
                let own = own.role(role).named(declared.name.clone());
                let own = own.checked_by(hosts.commands.check(command, CommandUser::Hook));
                (hook(own), command.written.join(" "))
            }
            Run::Use { name, with, places, dir } => {
                let made = hosts.catalog.make(
                    name,
                    with,
                    HookSite {
                        dir,
                        writes: &declared.writes,
                        own_model: self.model.as_deref(),
                        sandbox: declared.sandbox.as_ref(),
                    },
                );
                let Made { registration, said } = match made {
                    Ok(made) => made,
                    Err(error) => {
                        let found = refused(error, name, declared, places, source, hosts.catalog);
                        found.into_iter().for_each(|diagnostic| report.push(diagnostic));
                        return None;
                    }
                };
                for said in said {
                    self.told(said, name, declared, places, source, report);
                }
                if registration.is_guard() && declared.policy == Some(Policy::Continue) {
                    let message = format!(
                        "the hook `{name}` is a guard, and with `policy: continue` it would fail \
                         open: what it could not judge would pass"
                    );
                    let found = Diagnostic::new(Code::DoubtfulHook, source, declared.span, message);
                    report.push(found.help("leave `policy` out: its failure denies"));
                }
                let registration = match declared.on {
                    On::Own => registration,
                    _ => registration.only(points),
                };
                (registration, configured(name, with))
            }
        };
        let mut registration = registration.named(declared.name.clone()).origin(origin);
        if let Some(policy) = declared.policy {
            registration = registration.policy(policy);
        }
        if let Some(limit) = declared.timeout {
            registration = registration.limited(limit);
        }
        if let On::Transition { from, to } = &declared.on {
            registration = registration.on(*from, *to);
        }
        let guards = if registration.is_guard() { Role::Guard } else { role };
        registration = conditioned(registration, declared, guards, source, report)?;
        registration = registration.order(declared.order);
        if declared.again_on_resume {
            registration = registration.again_on_resume();
        }
        for name in &declared.before {
            registration = registration.before(name.clone());
        }
        for name in &declared.after {
            registration = registration.after(name.clone());
        }
        Some((registration, runs))
    }
}

impl Entries {
    /// Passes on what is said of a hook that could be made.
    fn told(
        &mut self,
        said: Said,
        name: &str,
        declared: &DeclaredHook,
        places: &Places,
        source: &Arc<Source>,
        report: &mut Report,
    ) {
        match said {
            Said::Doubt { field, message } => {
                let span = places.find(&field).unwrap_or(declared.span);
                let help = format!("`tenure hooks {name}` says what its options do");
                let found = Diagnostic::new(Code::DoubtfulHook, source, span, message);
                report.push(found.help(help));
            }
            Said::Need { message, help } => {
                let found = Diagnostic::new(Code::RemoteModel, source, declared.span, message);
                self.needs.push(found.help(help));
            }
        }
    }
}

/// What a registered hook runs, and what it is told: `use retry (attempts: 3)`.
fn configured(name: &str, with: &serde_json::Value) -> String {
    const MOST: usize = 60;
    let said = with.as_object().into_iter().flatten();
    let said: Vec<String> = said.map(|(field, value)| format!("{field}: {value}")).collect();
    let mut said = said.join(", ");
    if let Some((end, _)) = said.char_indices().nth(MOST) {
        said.truncate(end);
        said.push('…');
    }
    if said.is_empty() { format!("use {name}") } else { format!("use {name} ({said})") }
}

/// A hook at these points alone. If it has none of them it keeps its place, because others may name
/// it in their order.
pub(super) fn restricted(registration: Registration, points: Points) -> Registration {
    let registration = registration.only(points);
    match registration.points().is_empty() {
        true => registration.map_hook(|_| Arc::new(Nothing)),
        false => registration,
    }
}

/// Puts the condition and the repetitions around a hook that has any.
fn conditioned(
    registration: Registration,
    declared: &DeclaredHook,
    role: Role,
    source: &Arc<Source>,
    report: &mut Report,
) -> Option<Registration> {
    if declared.when.is_none() && declared.retries == 0 {
        return Some(registration);
    }
    let condition = match declared.when.as_ref().map(|when| Condition::compile(&when.expression)) {
        None => None,
        Some(Ok(condition)) => Some(condition),
        Some(Err(error)) => {
            let message = format!("the condition of the hook `{}`: {error}", declared.name);
            let span = declared.when.as_ref().map_or(declared.span, |when| when.span);
            report.push(Diagnostic::new(Code::BadCondition, source, span, message));
            return None;
        }
    };
    Some(registration.map_hook(|inner| {
        let mut wrapped =
            Declared::new(inner, declared.name.clone(), role).retries(declared.retries);
        if let Some(condition) = condition {
            wrapped = wrapped.when(condition);
        }
        if let Some(backoff) = declared.backoff {
            wrapped = wrapped.backoff(backoff);
        }
        Arc::new(wrapped)
    }))
}

fn refused(
    error: CatalogError,
    name: &str,
    declared: &DeclaredHook,
    places: &Places,
    source: &Arc<Source>,
    catalog: &HookCatalog,
) -> Vec<Diagnostic> {
    let (message, help) = match error {
        CatalogError::Unknown => {
            let known: Vec<_> = catalog.names().collect();
            let help = match (nearest(name, catalog.usable()), &*known) {
                (Some(near), _) => format!("did you mean `{near}`?"),
                (None, []) => "`tenure hooks` lists those that there are".to_owned(),
                (None, known) => format!(
                    "registered are {}, beside those that `tenure hooks` lists",
                    known.join(", ")
                ),
            };
            (format!("no hook is registered under the name `{name}`"), help)
        }
        CatalogError::NotBuilt => {
            let message = Feature::Hooks.missing(&format!("the hook `{name}`"));
            let found = Diagnostic::new(Code::NotBuilt, source, declared.span, message);
            return vec![found.help(Feature::Hooks.help())];
        }
        CatalogError::Options(refusals) => {
            let diagnostics = refusals.iter().map(|refusal| {
                let message = format!("the hook `{name}` cannot be made: {refusal}");
                let span = places.find(refusal.field()).unwrap_or(declared.span);
                let help = format!("`tenure hooks {name}` lists its options");
                Diagnostic::new(Code::BadOption, source, span, message).help(help)
            });
            return diagnostics.collect();
        }
        CatalogError::Refused(why) => (
            format!("the hook `{name}` cannot be made: {why}"),
            "see what the hook takes by `with`".to_owned(),
        ),
    };
    vec![Diagnostic::new(Code::UnknownUse, source, declared.span, message).help(help)]
}

/// The transition that a hook is called for, if it is called for one.
pub(super) fn transition(on: &On) -> Option<String> {
    match on {
        On::Transition { from, to } => Some(format!("{from} -> {to}")),
        On::Points(_) | On::Own => None,
    }
}

/// The file and line of a place in a card.
pub(super) fn line(card: &Card, at: u32) -> String {
    line_of(&card.source, at)
}

/// The file and line of a place in a file.
pub(super) fn line_of(source: &Source, at: u32) -> String {
    format!("{}:{}", source.path().display(), source.line_col(at as usize).line)
}
