//! From records to lines: what began and ended is one line, with what was recorded of it.

mod calls;

use super::entry::Entry;
use super::item::{Ended, Item, What};
use super::spoken;
use calls::{Arguments, depth_of};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, SystemTime};
use tenure_core::model::Usage;
use tenure_core::step::StepKey;

/// Takes the records of one run, one after the other, and makes lines of them.
#[derive(Default)]
pub(super) struct Timeline {
    pub(super) items: Vec<Item>,
    /// What has begun and not ended: its name, and its line.
    open: Vec<(String, usize)>,
    /// Where each instance is.
    places: HashMap<String, String>,
    pub(super) arguments: Arguments,
    agents: BTreeSet<String>,
    pub(super) life: u32,
    /// The steps on record, and whether this life has read them.
    recorded: Vec<(StepKey, IsRead)>,
    /// How often earlier lives, and this one, went through what surrounds calls: that is done again
    /// with every life, and is on no record.
    before: HashMap<String, usize>,
    now: HashMap<String, usize>,
    /// Whether this life does nothing yet but to read what earlier ones have done.
    is_replaying: bool,
    served: usize,
    life_line: Option<usize>,
    pub(super) phases: Phases,
    /// Whether every phase is a line.
    wants_phases: bool,
    pub(super) usage: Usage,
    pub(super) steps: usize,
    pub(super) tools: usize,
}

/// How long agents were in which phase.
#[derive(Default)]
pub(super) struct Phases {
    since: HashMap<String, SystemTime>,
    /// By agent and phase.
    pub(super) spent: BTreeMap<(String, String), Duration>,
}

/// Whether a life has asked for a step that is on record.
type IsRead = bool;

impl Timeline {
    /// All lines of these records.
    pub(super) fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut timeline = Self::default();
        for entry in entries {
            timeline.take(entry);
        }
        timeline
    }

    /// The same with a line for every phase.
    pub(super) fn with_phases<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut timeline = Self { wants_phases: true, ..Self::default() };
        for entry in entries {
            timeline.take(entry);
        }
        timeline
    }

    /// Nobody drives the run any more: what has begun and not ended was cut off.
    pub(super) fn cut(&mut self) {
        for (name, at) in &self.open {
            if !name.starts_with("ask/") {
                self.items[*at].ended = Ended::Other("interrupted".to_owned());
            }
        }
    }

    /// The lines that are to be seen.
    pub(super) fn lines(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| !item.is_hidden)
    }

    /// Whether more than one agent has something to say.
    pub(super) fn has_several_agents(&self) -> bool {
        self.agents.len() > 1
    }

    /// Takes the next record. The lines that are whole now, by their places in `items`.
    pub(super) fn take(&mut self, entry: &Entry) -> Vec<usize> {
        if let Some(agent) = &entry.agent
            && entry.scope_kind() != Some("chat")
        {
            self.agents.insert(agent.clone());
        }
        match &*entry.of {
            // A run that begins with a part of another one's record is driven by nobody yet.
            "run.started" if entry.data.get("steps").is_some() => {
                self.moment(entry, What::Run, spoken::forked(entry), "")
            }
            "run.started" => self.lives(entry, 1),
            "run.resumed" => {
                let life = entry.data.get("life").and_then(Value::as_u64).unwrap_or(0);
                self.lives(entry, u32::try_from(life).unwrap_or(u32::MAX))
            }
            // The question itself says that it waits, until the process lets go of it.
            "run.waiting" if entry.data.get("life").is_none() => Vec::new(),
            "run.waiting" => {
                self.set_aside();
                self.moment(entry, What::Run, "waits for a person, and nobody drives it", "")
            }
            "run.parked" => {
                self.set_aside();
                self.stops(entry)
            }
            "run.ended" => self.stops(entry),
            "scope.began" => self.scope_begins(entry),
            "scope.ended" => self.scope_ends(entry),
            "hook.started" => {
                let title = spoken::hook(entry);
                self.begins(entry, hook_name(entry), What::Hook, title)
            }
            "hook.skipped" => {
                // It found that the call does not concern it.
                if let Some((_, at)) = self.find(&hook_name(entry)) {
                    self.items[at].is_hidden = true;
                }
                Vec::new()
            }
            "hook.ended" => self.ends(entry, &hook_name(entry)),
            "hook.log" => {
                let (source, line) = (entry.text("source"), entry.text("line"));
                let title = format!("{}: {}", source.unwrap_or("?"), line.unwrap_or_default());
                self.moment(entry, What::Log, title, "")
            }
            "model.started" => {
                let call = entry.data.get("step").and_then(Value::as_u64).unwrap_or(0);
                self.begins(entry, model_name(entry), What::Model, format!("call {call}"))
            }
            "model.ended" => self.ends(entry, &model_name(entry)),
            "tool.started" => {
                let title = entry.text("tool").unwrap_or("?").to_owned();
                let call = entry.text("call").unwrap_or_default();
                let place = self.place_of(entry).unwrap_or_default();
                let arguments = self.arguments.of(place, call).to_owned();
                let done = self.begins(entry, tool_name(entry), What::Tool, title);
                if let Some((_, at)) = self.find(&tool_name(entry)) {
                    self.items[at].detail = arguments;
                    self.items[at].call = Some(call.to_owned());
                }
                done
            }
            "tool.ended" => self.ends(entry, &tool_name(entry)),
            "ask.opened" => self.asks(entry),
            "ask.answered" => self.answered(entry),
            "step.recorded" => self.step(entry),
            "agent.turn.ended" => self.turn_says(entry),
            of if of.starts_with("agent.phase.") => self.phase(entry),
            // Scopes, steps and the hooks themselves say all that these do.
            "agent.turn.started"
            | "chat.started"
            | "chat.ended"
            | "agent.startup"
            | "agent.shutdown"
            | "agent.spawned"
            | "tool.executing"
            | "tool.progress"
            | "lifecycle.tool_call"
            | "lifecycle.tool_result"
            | "lifecycle.tool_paused"
            | "select_speaker"
            | "chat.status"
            | "orchestrator.execute" => Vec::new(),
            "resource.leaked" => {
                let what = entry.text("resource").unwrap_or("?");
                let why = entry.text("reason").unwrap_or_default();
                self.moment(entry, What::Event, format!("{what} was not released"), why)
            }
            "memory.flush_failed" => {
                let why = entry.text("reason").unwrap_or_default();
                self.moment(entry, What::Event, "memory was not stored".to_owned(), why)
            }
            of => {
                let (title, detail) = spoken::announced(of, &entry.data);
                let done = self.moment(entry, What::Event, title, &detail);
                for at in &done {
                    // A workflow speaks of itself by way of an agent that has no turns.
                    self.items[*at].agent.clear();
                    self.items[*at].is_hidden = self.is_replaying;
                }
                done
            }
        }
    }

    fn lives(&mut self, entry: &Entry, life: u32) -> Vec<usize> {
        // What a dead process was at is neither done nor denied. Chats, turns and questions go on.
        let (goes_on, cut): (Vec<_>, Vec<_>) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|(name, _)| name.starts_with("scope/") || name.starts_with("ask/"));
        self.open = goes_on;
        for (_, at) in cut {
            self.items[at].ended = Ended::Other("interrupted".to_owned());
        }
        self.phases.since.clear();
        for (name, count) in std::mem::take(&mut self.now) {
            let before = self.before.entry(name).or_default();
            *before = (*before).max(count);
        }
        self.recorded.iter_mut().for_each(|(_, is_read)| *is_read = false);
        self.is_replaying = !self.recorded.is_empty();
        (self.life, self.served) = (life, 0);
        let detail = spoken::life(entry, life);
        self.life_line = Some(self.items.len());
        self.moment(entry, What::Life, format!("{life}"), &detail)
    }

    /// What was on its way when the run was let go of is done by a later life.
    fn set_aside(&mut self) {
        let from = self.life_line.unwrap_or(0);
        for item in &mut self.items[from..] {
            let is_call = matches!(item.what, What::Hook | What::Tool | What::Model);
            if is_call && item.step.is_none() && item.ended == Ended::Other("cancelled".to_owned())
            {
                item.ended = Ended::Other("set aside".to_owned());
            }
        }
    }

    fn stops(&mut self, entry: &Entry) -> Vec<usize> {
        let outcome = entry.text("outcome");
        let reason = entry.text("error").or_else(|| entry.text("reason")).map(str::to_owned);
        let at = self.push(entry, What::Run, "");
        let item = &mut self.items[at];
        match (&*entry.of, outcome) {
            ("run.parked", _) => {
                item.ended = Ended::Other("parked".to_owned());
                item.reason = reason;
            }
            (_, Some("ok") | None) => {
                item.title = "is over".to_owned();
                item.ended = Ended::Ok;
            }
            (_, Some(outcome)) => {
                item.ended = Ended::Other(outcome.to_owned());
                item.reason = reason;
            }
        }
        vec![at]
    }

    fn scope_begins(&mut self, entry: &Entry) -> Vec<usize> {
        let path = entry.path.clone().unwrap_or_default();
        if let Some(instance) = &entry.instance {
            self.places.insert(instance.clone(), path.clone());
        }
        let name = scope_name(entry);
        if entry.scope_kind() == Some("instance")
            && let Some((place, at)) = self.find(&starting_name(entry))
        {
            self.open[place].0 = name;
            let depth = depth_of(&path);
            let instance = self.items[at].instance.clone();
            let of_it = self.items[at..].iter_mut().filter(|item| item.instance == instance);
            of_it.for_each(|item| item.depth = depth);
            return Vec::new();
        }
        // It begins once, and is told again with every hook that it has passed.
        if self.find(&name).is_some() {
            return Vec::new();
        }
        let agent = entry.agent.clone().unwrap_or_default();
        let (what, title) = match entry.scope_kind() {
            Some("chat") => (What::Chat, String::new()),
            Some("turn") => (What::Turn, agent),
            _ => (What::Agent, agent),
        };
        self.begins(entry, name, what, title)
    }

    fn scope_ends(&mut self, entry: &Entry) -> Vec<usize> {
        self.ends(entry, &scope_name(entry))
    }

    fn turn_says(&mut self, entry: &Entry) -> Vec<usize> {
        let instance = entry.instance.as_deref().unwrap_or_default();
        let turn = self.open.iter().rev().find(|(_, at)| {
            let item = &self.items[*at];
            item.what == What::Turn && item.instance == instance
        });
        if let (Some((_, at)), Some(reason)) = (turn, entry.text("reason")) {
            self.items[*at].reason = Some(reason.to_owned());
        }
        Vec::new()
    }

    fn asks(&mut self, entry: &Entry) -> Vec<usize> {
        let name = format!("ask/{}", entry.text("ask").unwrap_or_default());
        let prompt = entry.text("prompt").unwrap_or_default();
        let first = prompt.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        self.is_replaying = false;
        let done = self.begins(entry, name.clone(), What::Ask, format!("\"{}\"", first.trim()));
        if let Some((_, at)) = self.find(&name) {
            self.items[at].ask = entry.text("ask").map(str::to_owned);
            let who = entry.text("hook").map(|hook| format!("by {hook}"));
            self.items[at].detail = who.unwrap_or_default();
            // A question is news before it is answered.
            return vec![at];
        }
        done
    }

    fn answered(&mut self, entry: &Entry) -> Vec<usize> {
        let name = format!("ask/{}", entry.text("ask").unwrap_or_default());
        let Some((place, at)) = self.find(&name) else { return Vec::new() };
        self.open.remove(place);
        let item = &mut self.items[at];
        item.took = entry.time.duration_since(item.at).ok();
        item.detail = spoken::answer(entry);
        let why = entry.data.pointer("/answer/value").and_then(Value::as_str).map(str::to_owned);
        (item.ended, item.reason) = match (entry.text("status"), entry.text("decision")) {
            (Some(status @ ("expired" | "cancelled")), _) => {
                (Ended::Other(status.to_owned()), None)
            }
            (_, Some("reject")) => (Ended::Other("rejected".to_owned()), why),
            _ => (Ended::Ok, None),
        };
        vec![at]
    }

    fn phase(&mut self, entry: &Entry) -> Vec<usize> {
        let (from, to) = (entry.text("from").unwrap_or("?"), entry.text("to").unwrap_or("?"));
        let instance = entry.instance.clone().unwrap_or_default();
        if let Some(since) = self.phases.since.insert(instance.clone(), entry.time) {
            let spent = entry.time.duration_since(since).unwrap_or_default();
            let agent = entry.agent.clone().unwrap_or_default();
            *self.phases.spent.entry((agent, from.to_owned())).or_default() += spent;
        }
        if to == "bootstrapping" {
            // Its hooks are called before it is on record that it has begun.
            let title = entry.agent.clone().unwrap_or_default();
            return self.begins(entry, starting_name(entry), What::Agent, title);
        }
        if !self.wants_phases && !spoken::is_notable(to) {
            return Vec::new();
        }
        if let Some(last) = self.items.last_mut()
            && last.what == What::Phase
            && Some(&last.instance) == entry.instance.as_ref()
        {
            last.title.push_str(&format!(" → {to}"));
            return Vec::new();
        }
        let done = self.moment(entry, What::Phase, format!("→ {to}"), "");
        done.iter().for_each(|at| self.items[*at].is_hidden = self.is_replaying);
        done
    }
}

/// An instance that starts, before it is on record where.
fn starting_name(entry: &Entry) -> String {
    format!("scope/starting/{}", entry.instance.as_deref().unwrap_or_default())
}

fn scope_name(entry: &Entry) -> String {
    format!("scope/{}", entry.scope.as_deref().unwrap_or_default())
}

fn hook_name(entry: &Entry) -> String {
    let (hook, point) = (entry.text("hook").unwrap_or("?"), entry.text("point").unwrap_or("?"));
    format!("hook/{}/{point}/{hook}", entry.instance.as_deref().unwrap_or_default())
}

fn model_name(entry: &Entry) -> String {
    format!("model/{}", entry.instance.as_deref().unwrap_or_default())
}

fn tool_name(entry: &Entry) -> String {
    let call = entry.text("call").unwrap_or_default();
    format!("tool/{}/{call}", entry.instance.as_deref().unwrap_or_default())
}
