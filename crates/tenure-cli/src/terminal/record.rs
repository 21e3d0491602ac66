//! What happened in a run, instance by instance: the memory behind progress, timeline and usage.
//!
//! Pure: events go in with the time since the run began, and nothing is printed here.

use super::calls::{Calls, Told};
use super::group::{Group, Groups};
use super::reasons::{Reasons, Teller};
use super::words::{phase_in_words, progress_in_words, raised_at, waits_for_person};
use serde::Deserialize as _;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::event::{Event, EventKind};
use tenure_core::hook::Point;
use tenure_core::message::ToolStatus;
use tenure_core::model::Usage;
use tenure_core::phase::Phase;
use tenure_core::{ExitReason, InstanceId, Outcome};

/// An event with its place in time. Made of an [`Event`], or by hand in tests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Happening<'a> {
    /// The time since the run began.
    pub(crate) at: Duration,
    /// The agent's name.
    pub(crate) agent: &'a str,
    /// Which instance.
    pub(crate) instance: InstanceId,
    /// What happened.
    pub(crate) kind: &'a EventKind,
}

impl<'a> Happening<'a> {
    /// The event, `at` after the run began.
    pub(crate) fn new(event: &'a Event, at: Duration) -> Self {
        Self { at, agent: &event.agent, instance: event.instance, kind: &event.kind }
    }
}

/// Hooks that the program adds by itself. Nobody declared them, and nobody wants to read of them.
const OWN_HOOKS: &[&str] = &["python-workers", "ask_person"];

/// Whether the hook is one that the program adds by itself.
pub(super) fn is_own_hook(name: &str) -> bool {
    OWN_HOOKS.contains(&name)
}

/// Whether the hook is a lifecycle tool of a workflow, its own or one that every workflow has.
pub(super) fn is_lifecycle_tool(name: &str) -> bool {
    name.starts_with("lifecycle_tools.") || name.starts_with("platform.log_workflow_")
}

/// The lifecycle tool that a hook is, by the name that its workflow has for it.
pub(crate) fn lifecycle_tool(hook: &str) -> Option<&str> {
    hook.strip_prefix("lifecycle_tools.")
}

/// Whether somebody of whom this is heard first is over already: those that live are heard of
/// before they end.
fn is_burial(kind: &EventKind) -> bool {
    matches!(kind, EventKind::HookStarted { point: Point::OnShutdown, .. })
}

/// What a stretch of time was spent on. Later variants are drawn over earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Activity {
    /// Alive, and nothing else.
    Life,
    /// In a turn.
    Turn,
    /// In a hook around a call, the call included.
    Wrap,
    /// Waiting for a model.
    Model,
    /// Running a tool.
    Tool,
    /// In a hook.
    Hook,
    /// Waiting for a person.
    Ask,
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stretch {
    pub(crate) activity: Activity,
    pub(crate) from: Duration,
    /// `None` while it lasts.
    pub(crate) to: Option<Duration>,
}

/// How an instance stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// At work.
    Running,
    /// Waiting for a person.
    Waiting,
    /// There, and with nothing to do.
    Idle,
    /// Over, and well.
    Done,
    /// Over, or as good as, and not well.
    Failed,
    /// Over because somebody stopped it.
    Cancelled,
}

/// One instance of the run.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    pub(crate) name: String,
    pub(crate) started: Duration,
    pub(crate) ended: Option<Duration>,
    pub(crate) reason: Option<ExitReason>,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) usage: Usage,
    /// Model calls that failed, and those that were cancelled: they are in no usage.
    pub(crate) failed_calls: u64,
    pub(crate) cancelled_calls: u64,
    pub(crate) tool_calls: usize,
    pub(crate) hook_calls: usize,
    pub(crate) failed_hooks: usize,
    pub(crate) asks: usize,
    pub(crate) denied: usize,
    pub(crate) stretches: Vec<Stretch>,
    /// What it does right now, for people.
    pub(crate) doing: String,
    /// When it was last heard of.
    pub(crate) heard: Duration,
    /// When it last began to work.
    pub(crate) since: Duration,
    /// Whether it waits for somebody to ask it something.
    pub(crate) is_idle: bool,
    /// The hook that refused last, and its point, while nothing else has come of it.
    pub(crate) denier: Option<(Arc<str>, Point)>,
    /// Where the last exception was raised that was logged: `file:line`.
    pub(crate) raised: Option<String>,
    /// Why what ended last did not end well, unless that has been told.
    pub(crate) why: Option<String>,
    /// How the end of the last tool call is told.
    pub(crate) told: Told,
    /// Whether it stands for the person in a chat.
    pub(crate) is_person: bool,
    /// Whether it is only told that it is over: its process died, and nothing but its end is heard.
    pub(crate) is_buried: bool,
    /// Whether it has had a turn.
    had_turn: bool,
    open: Vec<(Key, usize)>,
}

/// What tells an open stretch apart from others.
#[derive(Clone, Debug, PartialEq)]
enum Key {
    Turn,
    Model(usize),
    Hook(Arc<str>, Point),
    Tool(Arc<str>),
    Ask(Arc<str>),
}

impl Instance {
    fn new(name: &str, at: Duration) -> Self {
        Self {
            name: super::text::clean_line(name),
            started: at,
            ended: None,
            reason: None,
            outcome: None,
            usage: Usage::default(),
            failed_calls: 0,
            cancelled_calls: 0,
            tool_calls: 0,
            hook_calls: 0,
            failed_hooks: 0,
            asks: 0,
            denied: 0,
            stretches: Vec::new(),
            doing: "starting".to_owned(),
            heard: at,
            since: at,
            is_idle: false,
            denier: None,
            raised: None,
            why: None,
            told: Told::default(),
            is_person: false,
            is_buried: false,
            had_turn: false,
            open: Vec::new(),
        }
    }

    /// The name of the agent that it is an instance of: clones and forks (`name#1`, `name#1[tool]`)
    /// lose what was added.
    pub(crate) fn template(&self) -> &str {
        let end = self.name.find(['[', '#']).filter(|at| *at > 0);
        &self.name[..end.unwrap_or(self.name.len())]
    }

    /// Whether it is a clone or a fork of another.
    pub(crate) fn is_clone(&self) -> bool {
        self.template().len() < self.name.len()
    }

    /// Whether it is there and does something.
    pub(crate) fn is_at_work(&self) -> bool {
        self.ended.is_none() && !self.is_idle
    }

    /// How its last turn ended, or its life if that came to a bad end. `None` if it had no turn.
    pub(crate) fn came_to(&self) -> Option<Standing> {
        use ExitReason::{Crashed, Fatal, Forced, StartupFailed};
        match (self.reason, self.outcome) {
            (Some(StartupFailed | Fatal | Forced | Crashed), _) => Some(Standing::Failed),
            (_, Some(Outcome::Ok)) => Some(Standing::Done),
            (_, Some(Outcome::Cancelled)) => Some(Standing::Cancelled),
            (_, Some(_)) => Some(Standing::Failed),
            (_, None) => None,
        }
    }

    /// How it stands.
    pub(crate) fn standing(&self) -> Standing {
        match self.ended {
            Some(_) => self.came_to().unwrap_or(Standing::Done),
            None if self.is_waiting() => Standing::Waiting,
            None if self.is_idle => Standing::Idle,
            None => Standing::Running,
        }
    }

    /// Whether it waits for a person.
    pub(crate) fn is_waiting(&self) -> bool {
        self.open.iter().any(|(key, _)| matches!(key, Key::Ask(_)))
    }

    fn begin(&mut self, key: Key, activity: Activity, at: Duration) {
        self.open.push((key, self.stretches.len()));
        self.stretches.push(Stretch { activity, from: at, to: None });
    }

    fn is_open(&self, key: &Key) -> bool {
        self.open.iter().any(|(other, _)| other == key)
    }

    /// Takes back what was begun last under this key.
    fn forget(&mut self, key: &Key) {
        let Some(open) = self.open.iter().rposition(|(other, _)| other == key) else { return };
        let (_, gone) = self.open.remove(open);
        self.stretches.remove(gone);
        for (_, stretch) in self.open.iter_mut().filter(|(_, stretch)| *stretch > gone) {
            *stretch -= 1;
        }
    }

    /// Takes back the questions that nobody answers any more: of a question that was cancelled no
    /// answer is heard.
    fn end_asks(&mut self, at: Duration) {
        let asks: Vec<Key> = self.open.iter().map(|(key, _)| key.clone()).collect();
        for key in asks.iter().filter(|key| matches!(key, Key::Ask(_))) {
            self.end(key, at);
        }
    }

    /// Closes the stretch, and says how long it was.
    fn end(&mut self, key: &Key, at: Duration) -> Option<Duration> {
        let open = self.open.iter().rposition(|(other, _)| other == key)?;
        let (_, stretch) = self.open.remove(open);
        let stretch = &mut self.stretches[stretch];
        stretch.to = Some(at);
        Some(at.saturating_sub(stretch.from))
    }
}

/// Everything that happened in a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    instances: Vec<Instance>,
    places: HashMap<InstanceId, usize>,
    /// The places of those that have not ended.
    alive: BTreeSet<usize>,
    /// The clones, agent by agent.
    pub(super) groups: Groups,
    /// The calls of child agents.
    calls: Calls,
    /// Why things failed lately.
    reasons: Reasons,
    /// When the last event happened.
    pub(crate) last: Duration,
    /// How wide the widest name is so far.
    pub(crate) name_width: usize,
    /// How many events were lost because they came too fast.
    pub(crate) missed: u64,
    /// Who stands for the chat that was asked for: the first that announced something.
    pub(super) host: Option<InstanceId>,
}

impl Record {
    /// The instances in the order in which they appeared.
    pub(crate) fn instances(&self) -> &[Instance] {
        &self.instances
    }

    /// Those that have not ended, by their places.
    pub(crate) fn alive(&self) -> impl Iterator<Item = (usize, &Instance)> {
        self.alive.iter().map(|place| (*place, &self.instances[*place]))
    }

    /// The clones that this one is one of, if it is a clone.
    pub(crate) fn group_of(&self, id: InstanceId) -> Option<&Group> {
        self.groups.of(*self.places.get(&id)?)
    }

    /// The instance of this id.
    pub(crate) fn instance(&self, id: InstanceId) -> Option<&Instance> {
        self.places.get(&id).map(|place| &self.instances[*place])
    }

    /// The instance of this id, else the first one of this name.
    pub(crate) fn find(&self, id: Option<InstanceId>, name: &str) -> Option<&Instance> {
        let named = || self.instances.iter().find(|it| it.name == name);
        id.and_then(|id| self.instance(id)).or_else(named)
    }

    /// Takes note of an event. Returns how long what it ends has taken, if it ends something.
    pub(crate) fn note(&mut self, happening: Happening<'_>) -> Option<Duration> {
        let Happening { at, agent, instance, kind } = happening;
        self.last = self.last.max(at);
        let place = match self.places.get(&instance) {
            Some(place) => *place,
            None => self.meet(agent, instance, at, is_burial(kind)),
        };
        let it = &mut self.instances[place];
        it.heard = at;
        self.name_width = self.name_width.max(it.name.chars().count());
        match kind {
            EventKind::PhaseEntered { to, reason, .. } => {
                it.is_buried = false;
                it.doing = phase_in_words(*to).to_owned();
                it.is_idle = *to == Phase::Idle;
                if *to == Phase::Terminated {
                    it.ended = Some(at);
                    it.reason = *reason;
                    self.alive.remove(&place);
                    self.groups.ended(place, it.standing(), at);
                    return Some(at.saturating_sub(it.started));
                }
            }
            EventKind::TurnStarted => {
                (it.denier, it.raised) = (None, None);
                it.since = at;
                it.had_turn = true;
                it.begin(Key::Turn, Activity::Turn, at);
            }
            EventKind::TurnEnded { outcome, reason, .. } => {
                // Who waits for a person has not failed.
                if !waits_for_person(reason.as_deref()) {
                    it.outcome = Some(*outcome);
                }
                it.end_asks(at);
                let took = it.end(&Key::Turn, at);
                it.why = self.reasons.news(place, reason.as_deref(), Teller::Turn);
                return took;
            }
            EventKind::HookStarted { hook, .. } | EventKind::HookEnded { hook, .. }
                if is_own_hook(hook) => {}
            EventKind::HookStarted { hook, point } => {
                let wraps = matches!(point, Point::WrapModelCall | Point::WrapToolCall);
                let activity = if wraps { Activity::Wrap } else { Activity::Hook };
                it.doing = format!("hook {} at {point}", super::text::clean_line(hook));
                it.begin(Key::Hook(hook.clone(), *point), activity, at);
                it.is_idle &= !it.is_buried;
            }
            EventKind::HookSkipped { hook, point } => {
                it.forget(&Key::Hook(hook.clone(), *point));
                it.is_idle |= it.is_buried;
            }
            // One that did nothing has been forgotten, and is no call.
            EventKind::HookEnded { hook, point, .. }
                if !it.is_open(&Key::Hook(hook.clone(), *point)) => {}
            EventKind::HookEnded { hook, point, outcome, .. } => {
                it.hook_calls += 1;
                let decided = matches!(outcome, Outcome::Ok | Outcome::Denied | Outcome::Cancelled);
                it.failed_hooks += usize::from(!decided);
                if *outcome == Outcome::Denied {
                    // Those around it pass the refusal on.
                    it.denier.get_or_insert_with(|| (hook.clone(), *point));
                }
                if *outcome == Outcome::Cancelled {
                    it.end_asks(at);
                }
                it.is_idle |= it.is_buried;
                return it.end(&Key::Hook(hook.clone(), *point), at);
            }
            EventKind::ModelStarted { step } => {
                it.doing = format!("model call {step}");
                it.denier = None;
                it.begin(Key::Model(*step), Activity::Model, at);
            }
            EventKind::ModelEnded { step, usage, outcome, reason } => {
                let mut usage = *usage;
                match outcome {
                    Outcome::Ok => {}
                    Outcome::Cancelled => {
                        it.cancelled_calls += 1;
                        // The provider may have been at work on it; nobody knows what that cost.
                        usage.unpriced += 1;
                    }
                    _ => it.failed_calls += 1,
                }
                it.usage += usage;
                self.groups.used(place, usage);
                let took = it.end(&Key::Model(*step), at);
                it.why = self.reasons.news(place, reason.as_deref(), Teller::Model);
                return took;
            }
            EventKind::ToolStarted { tool, .. } => {
                it.tool_calls += 1;
                self.calls.began(place, tool, at);
            }
            EventKind::ToolExecuting { call, tool } => {
                it.doing = format!("tool {}", super::text::clean_line(tool));
                it.begin(Key::Tool(call.clone()), Activity::Tool, at);
            }
            EventKind::ToolProgress { tool, done, total, message, .. } => {
                it.doing = progress_in_words(tool, *done, *total, message.as_deref());
            }
            EventKind::ToolEnded { call, tool, status, reason } => {
                it.told = self.calls.ended(place, tool, *status, at);
                let took = it.end(&Key::Tool(call.clone()), at);
                // The model hears of it, and the turn goes on.
                it.denier = None;
                if matches!(status, ToolStatus::Denied) {
                    it.denied += 1;
                    it.doing = "a tool call was denied".to_owned();
                }
                it.why = self.reasons.news(place, reason.as_deref(), Teller::Tool);
                return took;
            }
            EventKind::Asked { ask, .. } => {
                it.asks += 1;
                it.doing = "waiting for you".to_owned();
                it.begin(Key::Ask(ask.clone()), Activity::Ask, at);
            }
            EventKind::Log { line, .. } => {
                if let Some(place) = raised_at(line) {
                    it.raised = Some(place);
                }
            }
            EventKind::Announced { name, data } => {
                self.host.get_or_insert(instance);
                it.is_person |= *name == "select_speaker" && data["agent"] == "user";
                // What a hook asks of a model beside the conversation is part of what the agent uses.
                if *name == "hook.model_called" {
                    let usage = Usage::deserialize(&data["usage"]).unwrap_or_default();
                    it.failed_calls += u64::from(!data["error"].is_null());
                    it.usage += usage;
                    self.groups.used(place, usage);
                }
            }
            EventKind::Answered { ask, .. } | EventKind::AskEnded { ask, .. } => {
                if it.doing == "waiting for you" {
                    it.doing = "going on".to_owned();
                }
                return it.end(&Key::Ask(ask.clone()), at);
            }
            _ => {}
        }
        None
    }

    /// How many calls of an agent wait for a place.
    pub(crate) fn to_start(&self, group: &Group) -> usize {
        self.calls.waiting(&group.name)
    }

    /// Whether an instance is there only to be cloned: it never had a turn, and clones of it did.
    pub(crate) fn is_spare(&self, it: &Instance) -> bool {
        !it.had_turn && it.came_to().is_none() && !it.is_clone() && self.groups.has(&it.name)
    }

    /// Takes note of somebody new.
    fn meet(&mut self, agent: &str, id: InstanceId, at: Duration, is_buried: bool) -> usize {
        let (mut it, place) = (Instance::new(agent, at), self.instances.len());
        (it.is_buried, it.is_idle) = (is_buried, is_buried);
        if it.is_clone() && !is_buried {
            self.groups.joined(it.template(), place, at);
            self.calls.cloned(it.template());
        }
        self.instances.push(it);
        self.places.insert(id, place);
        self.alive.insert(place);
        place
    }
}
