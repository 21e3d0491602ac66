//! Calls: what began, what was recorded of it, and how it ended.

use super::super::entry::Entry;
use super::super::item::{Ended, Item, What};
use super::super::spoken;
use super::Timeline;
use serde_json::Value;
use std::collections::HashMap;
use std::time::{Duration, SystemTime};

impl Timeline {
    /// A step is recorded before whoever took it says that it is over.
    pub(super) fn step(&mut self, entry: &Entry) -> Vec<usize> {
        let Some(key) = &entry.step else { return Vec::new() };
        self.steps += 1;
        self.recorded.push((key.clone(), true));
        if &*key.kind != "on_shutdown" {
            self.is_replaying = false;
        }
        if let Some(response) = spoken::response(&entry.data)
            && &*key.kind == "model"
        {
            for call in &response.calls {
                self.arguments.keep(&key.path, &call.id, &call.arguments);
            }
            self.usage += response.usage;
        }
        let found = self.open.iter().rev().find(|(_, at)| {
            let item = &self.items[*at];
            let place = self.places.get(&item.instance).map_or("", String::as_str);
            item.step.is_none() && spoken::is_step_of(key, item, place)
        });
        let at = match (found, &*key.kind) {
            (Some((_, at)), _) => *at,
            // What is about to be done is told by what came of it, and a question by its answer.
            (None, "intent" | "ask") => {
                let id = key.id(entry.run);
                let asked = self.items.iter().rposition(|item| item.ask.as_ref() == Some(&id));
                if let Some(at) = asked {
                    self.items[at].step = Some(entry.seq);
                    self.items[at].key = Some(key.to_string());
                }
                return Vec::new();
            }
            (None, kind) => {
                let (what, title) = spoken::lone_step(kind, &key.name);
                let at = self.push(entry, what, title);
                self.items[at].ended = Ended::Moment;
                if what == What::Tool {
                    let (_, call) = spoken::tool_and_call(&key.name);
                    self.items[at].detail = self.arguments.of(&key.path, call).to_owned();
                    self.items[at].call = Some(call.to_owned());
                    self.tools += 1;
                }
                self.describe(at, entry);
                return vec![at];
            }
        };
        self.describe(at, entry);
        Vec::new()
    }

    pub(super) fn describe(&mut self, at: usize, entry: &Entry) {
        let Some(key) = &entry.step else { return };
        let item = &mut self.items[at];
        item.step = Some(entry.seq);
        item.key = Some(key.to_string());
        if item.depth == 0 {
            item.depth = depth_of(&key.path);
        }
        spoken::result(item, &entry.data);
    }

    /// The place of the instance that an entry is about.
    pub(super) fn place_of(&self, entry: &Entry) -> Option<&str> {
        self.places.get(entry.instance.as_ref()?).map(String::as_str)
    }

    pub(super) fn find(&self, name: &str) -> Option<(usize, usize)> {
        let place = self.open.iter().rposition(|(open, _)| open == name)?;
        Some((place, self.open[place].1))
    }

    pub(super) fn push(&mut self, entry: &Entry, what: What, title: impl Into<String>) -> usize {
        let path = match (&entry.step, &entry.path, &entry.instance) {
            (Some(key), ..) => Some(&*key.path),
            // The place of an announcement is its own, and not that of what it is about.
            (None, Some(path), _) if entry.scope.is_some() => Some(path.as_str()),
            (None, _, Some(instance)) => self.places.get(instance).map(String::as_str),
            _ => None,
        };
        self.items.push(Item {
            seq: entry.seq,
            step: None,
            key: None,
            at: entry.time,
            took: None,
            depth: path.map_or(0, depth_of),
            agent: entry.agent.clone().unwrap_or_default(),
            instance: entry.instance.clone().unwrap_or_default(),
            ask: None,
            call: None,
            what,
            title: title.into(),
            detail: String::new(),
            ended: Ended::Open,
            reason: None,
            is_hidden: false,
        });
        self.items.len() - 1
    }

    pub(super) fn moment(
        &mut self,
        entry: &Entry,
        what: What,
        title: impl Into<String>,
        detail: &str,
    ) -> Vec<usize> {
        let at = self.push(entry, what, title);
        self.items[at].ended = Ended::Moment;
        detail.clone_into(&mut self.items[at].detail);
        vec![at]
    }

    pub(super) fn begins(
        &mut self,
        entry: &Entry,
        name: String,
        what: What,
        title: String,
    ) -> Vec<usize> {
        let at = self.push(entry, what, title);
        self.open.push((name, at));
        Vec::new()
    }

    pub(super) fn ends(&mut self, entry: &Entry, name: &str) -> Vec<usize> {
        let Some((place, at)) = self.find(name) else { return self.ends_unseen(entry) };
        self.open.remove(place);
        let item = &mut self.items[at];
        item.took = took(&entry.data, item.at, entry.time);
        item.ended = ended(entry);
        if let Some(reason) = entry.text("reason") {
            item.reason = Some(reason.to_owned());
        }
        let (what, is_step) = (item.what, item.step.is_some());
        if what == What::Tool && is_step {
            self.tools += 1;
        }
        if matches!(what, What::Hook | What::Model | What::Tool) {
            self.served_or_done(at, is_step);
        }
        if self.items[at].is_hidden { Vec::new() } else { vec![at] }
    }

    /// The end of what began while a life only read what earlier ones had done: its beginning is on
    /// the record of those.
    fn ends_unseen(&mut self, entry: &Entry) -> Vec<usize> {
        let (what, title) = match &*entry.of {
            "hook.ended" => (What::Hook, spoken::hook(entry)),
            "tool.ended" => (What::Tool, entry.text("tool").unwrap_or("?").to_owned()),
            _ => return Vec::new(),
        };
        let call = entry.text("call").unwrap_or_default();
        if what == What::Tool {
            let from = self.life_line.unwrap_or(0);
            let place = self.place_of(entry);
            let own = place.filter(|place| !place.starts_with('@')).unwrap_or_default().to_owned();
            let is_it = |item: &&mut Item| {
                item.what == What::Tool
                    && item.call.as_deref() == Some(call)
                    && item.key.as_ref().is_some_and(|key| key.starts_with(&own))
            };
            if let Some(item) = self.items[from..].iter_mut().find(is_it) {
                (item.ended, item.agent) = (ended(entry), entry.agent.clone().unwrap_or_default());
                return Vec::new();
            }
        }
        let at = self.push(entry, what, title);
        let arguments =
            self.arguments.of(self.place_of(entry).unwrap_or_default(), call).to_owned();
        let item = &mut self.items[at];
        item.ended = ended(entry);
        item.reason = entry.text("reason").map(str::to_owned);
        item.detail = arguments;
        if let Some(took) = said_took(&entry.data) {
            item.took = Some(took);
            item.at = item.at.checked_sub(took).unwrap_or(item.at);
        }
        vec![at]
    }

    /// What an earlier life has done and this one only reads is not told twice.
    fn served_or_done(&mut self, at: usize, is_step: bool) {
        let item = &self.items[at];
        if is_step {
            return;
        }
        if item.title.starts_with("wrap_") {
            // One that was cut off has not been gone through.
            if item.ended == Ended::Other("cancelled".to_owned()) {
                return;
            }
            let name = format!("{}/{}", item.agent, item.title);
            let count = self.now.entry(name.clone()).or_default();
            *count += 1;
            let was_done = self.before.get(&name).is_some_and(|before| *count <= *before);
            self.items[at].is_hidden |= was_done;
            return;
        }
        let place = self.places.get(&item.instance).map_or("", String::as_str);
        let read = self
            .recorded
            .iter_mut()
            .find(|(key, is_read)| !is_read && spoken::is_step_of(key, item, place));
        let Some((_, is_read)) = read else { return };
        *is_read = true;
        self.items[at].is_hidden = true;
        self.served += 1;
        if let Some(line) = self.life_line {
            self.items[line].detail = spoken::served(&self.items[line].detail, self.served);
        }
    }
}

/// The arguments of tool calls, by the place of the turn and the id of the call. An id alone is not enough: models
/// begin to count anew in every clone.
#[derive(Default)]
pub(in super::super) struct Arguments(HashMap<String, Vec<(String, String)>>);

impl Arguments {
    fn keep(&mut self, place: &str, call: &str, arguments: &str) {
        let same_id = self.0.entry(call.to_owned()).or_default();
        same_id.retain(|(at, _)| at != place);
        same_id.push((place.to_owned(), arguments.to_owned()));
    }

    /// Returns the arguments of a call; where its turn is not known, those of the last call with this id.
    pub(in super::super) fn of(&self, place: &str, call: &str) -> &str {
        let Some(same_id) = self.0.get(call) else { return "" };
        let found = same_id.iter().find(|(at, _)| at == place).or(same_id.last());
        found.map_or("", |(_, arguments)| arguments)
    }
}

/// How deep a place is nested. An instance is where its turns are.
pub(super) fn depth_of(path: &str) -> usize {
    let place = match path.rsplit_once('/') {
        Some((place, own)) if own.starts_with('@') => place,
        _ => path,
    };
    place.matches('/').count()
}

/// How it ended, as its record says.
fn ended(entry: &Entry) -> Ended {
    match entry.text("outcome").or_else(|| entry.text("status")) {
        Some("ok") | None => Ended::Ok,
        Some("error") => Ended::Other("failed".to_owned()),
        Some(other) => Ended::Other(other.to_owned()),
    }
}

/// How long it took: what is said of it, else what the clock says.
fn took(data: &Value, from: SystemTime, to: SystemTime) -> Option<Duration> {
    said_took(data).or_else(|| to.duration_since(from).ok())
}

fn said_took(data: &Value) -> Option<Duration> {
    let took = data.get("took")?;
    let (seconds, nanos) = (took.get("secs")?.as_u64()?, took.get("nanos")?.as_u64()?);
    Some(Duration::new(seconds, u32::try_from(nanos).ok()?))
}
