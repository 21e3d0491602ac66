//! What is said of a run that this process is done with.

use super::input::WORKFLOW;
use crate::exit::Exit;
use crate::terminal::lifecycle_tool;
use crate::terminal::question::Allowed;
use crate::terminal::text::{clean_line, fit};
use serde_json::{Value, json};
use tenure_core::RunId;
use tenure_core::engine::{RunInfo, RunStatus};
use tenure_store::AskInfo;

/// Of a question, a line says no more.
const MOST_OF_QUESTION: usize = 200;

/// What is on record of a run that this process is done with.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) info: RunInfo,
    /// The questions that wait for an answer.
    pub(crate) asks: Vec<AskInfo>,
    /// Why it stopped.
    pub(crate) said: Option<String>,
    /// Why the end of it is not on record.
    pub(crate) trouble: Option<String>,
    /// What to add to a command so that it means the file.
    pub(crate) option: String,
}

impl Kept {
    pub(crate) fn run(&self) -> RunId {
        self.info.id
    }

    /// Whether the run is not over and cannot go on here and now.
    pub(crate) fn is_parked(&self) -> bool {
        matches!(self.info.status, RunStatus::Waiting | RunStatus::Parked) || self.trouble.is_some()
    }

    /// The code that the program ends with, if that is decided here.
    pub(crate) fn exit(&self) -> Option<Exit> {
        match self.info.status {
            _ if self.trouble.is_some() => Some(Exit::Failed),
            RunStatus::Waiting => Some(Exit::Waiting),
            RunStatus::Parked => Some(Exit::Failed),
            _ => None,
        }
    }

    /// How a line about it begins, if the run is parked.
    pub(crate) fn head(&self) -> &'static str {
        match self.info.status {
            RunStatus::Waiting => "waiting:",
            RunStatus::Parked => "parked:",
            _ => "error:",
        }
    }

    /// Why it is parked, and what to do.
    pub(crate) fn why(&self) -> Option<String> {
        if let Some(trouble) = &self.trouble {
            return Some(format!(
                "{trouble}\n  what was recorded before is kept; go on with it: tenure run --resume \
                 {}{}",
                self.run(),
                self.option
            ));
        }
        match self.info.status {
            RunStatus::Waiting => Some(self.waits()),
            RunStatus::Parked => {
                let why = self.info.error.clone().or_else(|| self.said.clone());
                Some(why.unwrap_or_else(|| "the run cannot go on".to_owned()))
            }
            _ => None,
        }
    }

    fn waits(&self) -> String {
        let mut lines: Vec<String> = self.asks.iter().map(asks).collect();
        if lines.is_empty() {
            let why = self.info.error.as_deref().unwrap_or("the run waits for a person");
            lines.push(clean_line(why));
        }
        lines.push(
            "  there is no terminal to ask on; the question is on record, and the run waits".into(),
        );
        lines.extend(self.asks.iter().map(|ask| format!("  {}", how_to_answer(ask, &self.option))));
        lines.push(format!("  go on:  tenure run --resume {}{}", self.run(), self.option));
        lines.join("\n")
    }

    /// What programs are told of a run that was left as it is.
    pub(crate) fn result(&self) -> Value {
        let what = if self.info.kind == WORKFLOW { "workflow" } else { "agent" };
        let mut line = json!({
            "type": "result",
            what: self.info.name,
            "output": null,
            "error": self.why(),
            "exit_code": self.exit().unwrap_or(Exit::Ok).code(),
        });
        self.to_json(&mut line);
        line
    }

    /// What programs are told beside the rest of a result.
    pub(crate) fn to_json(&self, line: &mut Value) {
        line["run"] = json!(self.run());
        line["run_status"] = json!(self.info.status);
        line["thread"] = json!(self.info.thread);
        if self.is_parked() {
            line["outcome"] = Value::Null;
            line["asks"] = self.asks.iter().map(|ask| Value::from(&*ask.id)).collect();
        }
    }
}

/// Who asks what.
pub(super) fn asks(ask: &AskInfo) -> String {
    let prompt = fit(&clean_line(&ask.prompt), MOST_OF_QUESTION);
    format!("{} asks: {prompt}", asker(ask))
}

/// The agent that asks, with the tool that does so in its name.
pub(crate) fn asker(ask: &AskInfo) -> String {
    let agent = clean_line(&ask.agent);
    let own = ask.tool.as_deref().filter(|_| ask.hook.is_none() && !ask.is_approval());
    match ask.hook.as_deref().and_then(lifecycle_tool).or(own) {
        Some(tool) => format!("{agent} ({})", clean_line(tool)),
        None => agent,
    }
}

/// The command that answers.
pub(super) fn how_to_answer(ask: &AskInfo, option: &str) -> String {
    let (id, option) = (&ask.id, option);
    match ask.is_approval() {
        true => {
            let allowed = Allowed::of(ask.form.as_ref());
            let names = ["approve", "reject", "edit", "respond"];
            let mut names = names.into_iter().filter(|name| allowed.has(name));
            let first = match names.next() {
                Some("edit") => "edit JSON",
                Some("respond") => "respond TEXT",
                Some(name) => name,
                None => "",
            };
            let rest: Vec<&str> = names.collect();
            let or = match rest.is_empty() {
                true => String::new(),
                false => format!("   (or: {})", rest.join(", ")),
            };
            format!("answer: tenure answer {id} {first}{option}{or}")
        }
        false => format!("answer: tenure answer {id} respond TEXT{option}"),
    }
}
