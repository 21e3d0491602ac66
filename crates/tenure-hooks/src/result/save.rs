//! Keeps results.

use super::file;
use super::record::{OutcomeName, Part, Remembered, Report, report};
use crate::ready::{About, Makings, Options, ProjectPath, Refusal};
use crate::words::{Moment, bounded, evaluator};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use tenure_core::Outcome;
use tenure_core::context::TurnCx;
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::hook::{
    After, AgentLifecycle, Flow, HookError, IntoRegistration, Point, Points, Registration, hook,
};
use tenure_core::state::{Ownership, StateOwnership};
use tenure_macros::lifecycle;

/// The name of a file, unless somebody gives another.
const NAME: &str = "{{ date }}-{{ agent }}-{{ run }}.json";

/// Keeps the result of every turn: as a line of a file, as a file of its own, or in the agent's
/// memory.
///
/// A file is written whole or not at all, and only its owner may read it. A result that is delivered
/// again after a crash is known by its delivery, and not kept twice. If it cannot be kept, the turn
/// ends as it would have; its report says that this hook failed.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::result::SaveResult;
/// # use tenure_models::Passthrough;
///
/// let agent = Agent::builder("clerk")
///     .model(Passthrough::new())
///     .with_lifecycle(SaveResult::lines("results.jsonl"))
///     .build()?;
/// # Ok::<_, tenure_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct SaveResult {
    place: Place,
    report: Report,
    sync: bool,
}

#[derive(Clone, Debug)]
enum Place {
    Lines(PathBuf),
    Folder { dir: PathBuf, name: String },
    Memory(String),
}

impl SaveResult {
    /// Appends a line of JSON to this file.
    pub fn lines(path: impl Into<PathBuf>) -> Self {
        Self::at(Place::Lines(path.into()))
    }

    /// Writes a file for each result into this folder, which is made if it is not there.
    pub fn files(dir: impl Into<PathBuf>) -> Self {
        Self::at(Place::Folder { dir: dir.into(), name: NAME.to_owned() })
    }

    /// Remembers the last result under this key, which is one of the memory's: `memory/last_result`,
    /// for instance.
    pub fn memory(key: impl Into<String>) -> Self {
        Self::at(Place::Memory(key.into()))
    }

    fn at(place: Place) -> Self {
        let report = Report { parts: Part::ALL.into(), on: Vec::new() };
        Self { place, report, sync: false }
    }

    /// The name of each file: a template with `agent`, `run`, `date`, `time`, `outcome` and
    /// `delivery`. A result of that name is replaced; any other file stays, and the result is not
    /// kept. Only for [`files`](Self::files).
    pub fn name(mut self, template: &str) -> Result<Self, Refusal> {
        check_template(template)?;
        if let Place::Folder { name, .. } = &mut self.place {
            *name = template.to_owned();
        }
        Ok(self)
    }

    /// What is kept; everything unless said otherwise.
    pub fn what(mut self, parts: impl IntoIterator<Item = Part>) -> Self {
        self.report.parts = parts.into_iter().collect();
        self
    }

    /// Of which turns a result is kept; of all unless said otherwise.
    pub fn on(mut self, outcomes: impl IntoIterator<Item = Outcome>) -> Self {
        self.report.on = outcomes.into_iter().collect();
        self
    }

    /// Whether to wait until the disk has it.
    pub fn sync(mut self, yes: bool) -> Self {
        self.sync = yes;
        self
    }
}

impl IntoRegistration for SaveResult {
    fn into_registration(self) -> Registration {
        let mut points = Points::from(Point::AfterAgent);
        if self.report.needs_begin() {
            points = points.with(Point::BeforeAgent);
        }
        // What is kept is what the caller gets.
        hook(Saving(self))
            .named("save")
            .kind("save")
            .observes()
            .only(points)
            .outside("format")
            .outside("pii")
    }
}

struct Saving(SaveResult);

#[lifecycle]
impl AgentLifecycle for Saving {
    async fn before_agent(&self, cx: TurnCx<'_>, _: &mut Input) -> Result<Flow, HookError> {
        self.0.report.begin(cx)?;
        Ok(Flow::Continue)
    }

    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        let SaveResult { place, report, sync } = &self.0;
        if !report.concerns(end) {
            return Ok(After::Done);
        }
        let now = Moment::now();
        let record = report.record(cx, end, now);
        let sync = *sync;
        match place {
            Place::Lines(path) => {
                let (path, resumed) = (path.clone(), cx.resumed());
                let delivery = record.delivery.clone();
                let text = Value::from(record).to_string();
                let write = move || file::append(&path, &delivery, &text, sync, resumed);
                tenure_core::blocking(write).await.map_err(HookError::new)?;
            }
            Place::Folder { dir, name } => {
                let name = file_name(name, cx, end, now).map_err(HookError::new)?;
                let path = dir.join(name);
                let delivery = record.delivery.clone();
                let text = format!("{:#}\n", Value::from(record));
                let write = move || file::replace(&path, &delivery, &text, sync);
                tenure_core::blocking(write).await.map_err(HookError::new)?;
            }
            Place::Memory(key) => {
                let Some(memory) = cx.memory() else {
                    return Err(HookError::new("the agent has no memory to keep its result in"));
                };
                // It becomes JSON when somebody reads it, or when it is stored.
                let known = memory.get_as::<Remembered>(key)?;
                if !known.is_some_and(|known| known.is_of(&record.delivery)) {
                    memory.keep(key, Remembered::Here(Arc::new(record)))?;
                }
            }
        }
        Ok(After::Done)
    }
}

/// What the template makes of a result, beneath the folder.
fn file_name(
    template: &str,
    cx: TurnCx<'_>,
    end: &TurnEnd<'_>,
    now: Moment,
) -> Result<PathBuf, String> {
    let delivery = cx.delivery_id();
    render(template, cx.agent_name(), &cx.run_id().to_string(), &delivery, end.outcome(), now)
}

fn render(
    template: &str,
    agent: &str,
    run: &str,
    delivery: &str,
    outcome: Outcome,
    now: Moment,
) -> Result<PathBuf, String> {
    let values = minijinja::context! {
        agent => plain(agent),
        run => plain(run),
        delivery => plain(delivery),
        outcome => outcome.as_str(),
        date => now.date(),
        time => now.clock(),
    };
    let name = bounded(template).and_then(|template| evaluator().render_str(template, values));
    let name = name.map_err(|error| error.to_string())?;
    let path = Path::new(&name);
    let is_beneath = path.components().all(|part| matches!(part, Component::Normal(_)));
    if name.trim().is_empty() || !is_beneath || name.ends_with('/') || name.contains('\0') {
        return Err(format!("`{name}` is no name of a file in the folder"));
    }
    Ok(path.to_owned())
}

/// A value that can be part of a file's name.
fn plain(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '#' | '.');
    let clean: String = text.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    clean.trim_start_matches('.').to_owned()
}

fn check_template(template: &str) -> Result<(), Refusal> {
    let now = Moment { millis: 0 };
    render(template, "agent", "run", "delivery", Outcome::Ok, now)
        .map(|_| ())
        .map_err(|why| Refusal::new("name", why))
}

/// What `save` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SaveOptions {
    /// A file that gets a line of JSON for each result, beneath the project. One of `file`, `folder`
    /// and `memory` is given.
    file: Option<ProjectPath>,
    /// A folder that gets a file for each result, beneath the project.
    folder: Option<ProjectPath>,
    /// The key in the agent's memory under which its last result is, as in `memory/last_result`.
    memory: Option<String>,
    /// The name of each file in `folder`: a template with `agent`, `run`, `date`, `time`, `outcome`
    /// and `delivery`. A result of that name is replaced; any other file stays as it is.
    name: String,
    /// What is kept, beside the delivery, the time, the agent and the run.
    what: Vec<Part>,
    /// Of which turns a result is kept, by outcome; of all, if it is empty.
    on: Vec<OutcomeName>,
    /// Whether to wait until the disk has it.
    sync: bool,
}

impl Default for SaveOptions {
    fn default() -> Self {
        Self {
            file: None,
            folder: None,
            memory: None,
            name: NAME.to_owned(),
            what: Part::ALL.into(),
            on: Vec::new(),
            sync: false,
        }
    }
}

impl Options for SaveOptions {
    const ABOUT: About = About {
        name: "save",
        summary: "Keeps the result of each turn: in a file, as files, or in the agent's memory.",
        covers: &["UC-6.1"],
        peers: &[],
        example: r#"{ "memory": "memory/last_result" }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        let path = |field: &str, path: &ProjectPath| {
            makings.path(&path.0).map_err(|why| Refusal::new(field, why))
        };
        let save = match (&self.file, &self.folder, &self.memory) {
            (Some(file), None, None) => SaveResult::lines(path("file", file)?),
            (None, Some(folder), None) => {
                SaveResult::files(path("folder", folder)?).name(&self.name)?
            }
            (None, None, Some(key)) if key.trim().is_empty() => {
                return Err(Refusal::new("memory", "it is empty; name a key"));
            }
            (None, None, Some(key)) => {
                if Ownership::new().owner(key) != StateOwnership::Memory {
                    let why = format!(
                        "`{key}` is not the memory's unless it is declared so; write `memory/{key}`"
                    );
                    makings.warn("memory", why);
                }
                SaveResult::memory(key)
            }
            _ => {
                let why = "give one place to keep results: `file`, `folder` or `memory`";
                return Err(Refusal::new("", why));
            }
        };
        if self.folder.is_none() && self.name != NAME {
            return Err(Refusal::new("name", "it names the files of `folder`, which is not given"));
        }
        let report = report(self.what, self.on)?;
        Ok(SaveResult { report, ..save.sync(self.sync) }.into_registration())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_stays_in_its_folder() {
        let name = |template, agent| {
            render(template, agent, "r1", "d1", Outcome::Ok, Moment { millis: 0 })
        };
        let fine = name("{{ agent }}/{{ date }}-{{ run }}.json", "../../a#1[b]").unwrap();
        assert_eq!(fine, Path::new("_.._a#1_b_/1970-01-01-r1.json"));
        for template in ["../{{ run }}", "/{{ run }}", "", "{{ nobody }}", "a/", "./x"] {
            assert!(name(template, "a").is_err(), "{template}");
        }
    }
}
