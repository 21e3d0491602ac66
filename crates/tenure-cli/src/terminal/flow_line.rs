//! The lines of what is announced. Of a workflow: who speaks, what its lifecycle tools did, how far
//! its parts are. Of a ready-made hook: what it did.

use super::hook_line::sentence;
use super::line::Line;
use super::speech::MESSAGE;
use super::style::{BAD, CALM, DIM, GOOD, WARN};
use super::text::{clean_line, fit, human};
use anstyle::Style;
use serde_json::Value;
use std::time::Duration;

/// Of what somebody says in a line, nobody reads more.
const MOST_WORDS: usize = 200;

/// Which chat something was announced in, as far as that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chat {
    /// By whoever stands for the one that was asked for.
    Own,
    /// By somebody else: a speaker, or whoever stands for a chat that it began.
    Nested,
}

/// The line of an announced event, if it is worth one. `line` begins one.
pub(super) fn line_of_announced(
    name: &str,
    data: &Value,
    chat: Chat,
    line: impl Fn(&'static str, Style) -> Line,
) -> Option<Line> {
    Some(match name {
        "select_speaker" => {
            let reason = words(&data["reason"]).unwrap_or_default();
            line("SPEAKING", CALM).what(turn(data)).detail(reason)
        }
        // What it returned is in the log.
        "lifecycle.tool_result" => line("LIFECYCLE", GOOD).what(trigger(data)).detail(tool(data)),
        "lifecycle.tool_error" => {
            let why = words(&data["error"]).unwrap_or_else(|| "it failed".to_owned());
            let detail = format!("{} failed: {why}", tool(data));
            line("LIFECYCLE", BAD).what(trigger(data)).detail(detail).lasting()
        }
        "lifecycle.tool_paused" => {
            let detail = format!("{} is paused with its chat", tool(data));
            line("LIFECYCLE", WARN).what(trigger(data)).detail(detail).lasting()
        }
        MESSAGE => match (chat, data["hidden"].as_bool()) {
            (Chat::Nested, Some(false)) => {
                let speaker = clean_line(data["speaker"].as_str().unwrap_or_default());
                line("SAID", DIM).what(speaker).detail(words(&data["text"])?)
            }
            // What is said in the chat that was asked for is on standard output.
            _ => return None,
        },
        // What a ready-made hook did. With many clones the end of each says enough.
        _ => line("HOOK", DIM).detail(sentence(name, data)?).ending(),
    })
}

/// Which turn it is. The person's are not counted.
fn turn(data: &Value) -> String {
    match data["turn"].as_u64().filter(|turn| *turn > 0 && data["agent"] != "user") {
        Some(turn) => format!("turn {turn}"),
        None => String::new(),
    }
}

fn trigger(data: &Value) -> String {
    clean_line(data["trigger"].as_str().unwrap_or_default())
}

/// The tool, what it runs if that is called otherwise, and how long it took.
fn tool(data: &Value) -> String {
    let function = clean_line(data["function"].as_str().unwrap_or_default());
    let mut shown = match data["tool"].as_str().map(clean_line) {
        Some(tool) if tool != function => format!("{tool} ({function})"),
        _ => function,
    };
    // One of the workflow's may have the same name.
    if data["origin"] == "platform" {
        shown = format!("platform {shown}");
    }
    match data["elapsed_ms"].as_f64().filter(|millis| millis.is_finite() && *millis >= 0.0) {
        Some(millis) => format!("{shown} {}", human(Duration::from_secs_f64(millis / 1e3))),
        None => shown,
    }
}

/// A value in one line; nothing if it says nothing.
fn words(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.lines().find(|line| !line.trim().is_empty())?.to_owned(),
        other => other.to_string(),
    };
    Some(fit(&clean_line(&text), MOST_WORDS))
}

#[cfg(test)]
mod tests {
    use super::super::line::line_of;
    use super::super::record::{Happening, Record};
    use super::super::tests::plain;
    use serde_json::{Value, json};
    use std::time::Duration;
    use tenure_core::InstanceId;
    use tenure_core::event::EventKind;

    fn line(agent: &str, name: &'static str, data: Value) -> Option<String> {
        line_beside(None, agent, name, data)
    }

    /// The line in a run whose own chat `host` stands for.
    fn line_beside(
        host: Option<InstanceId>,
        agent: &str,
        name: &'static str,
        data: Value,
    ) -> Option<String> {
        let kind = EventKind::Announced { name, data };
        let (at, instance) = (Duration::from_millis(1200), InstanceId::unique());
        let happening = Happening { at, agent, instance, kind: &kind };
        let mut record = Record::default();
        if let Some(instance) = host {
            let kind = EventKind::Announced { name: "orchestrator.initialize", data: json!({}) };
            record.note(Happening { at, agent: "x", instance, kind: &kind });
        }
        let took = record.note(happening);
        Some(plain(&line_of(happening, took, &record)?.render(None)))
    }

    #[test]
    fn speakers_and_lifecycle_tools_have_lines() {
        let speaks = json!({ "agent": "writer", "turn": 3, "reason": "handoff 1" });
        let expected = "   SPEAKING [  1.200s] writer turn 3          handoff 1";
        assert_eq!(line("writer", "select_speaker", speaks).as_deref(), Some(expected));
        let person = json!({ "agent": "user", "turn": 3, "reason": "handoff 2" });
        let expected = "   SPEAKING [  1.200s] user handoff 2";
        assert_eq!(line("user", "select_speaker", person).as_deref(), Some(expected));
        let failed = json!({
            "trigger": "before_chat", "function": "init", "elapsed_ms": 12.5,
            "error": "Traceback:\x1b[2J", "status": "error",
        });
        let shown = line("x.workflow", "lifecycle.tool_error", failed).expect("a line");
        assert!(
            shown.contains("before_chat") && shown.contains("init 12ms failed: Traceback:"),
            "{shown}"
        );
        assert!(!shown.contains('\x1b'), "{shown}");
        let paused =
            json!({ "trigger": "before_agent", "function": "ask_first", "elapsed_ms": 80 });
        let shown = line("writer", "lifecycle.tool_paused", paused).expect("a line");
        assert!(shown.ends_with("ask_first 80ms is paused with its chat"), "{shown}");
    }

    #[test]
    fn a_lifecycle_tool_is_called_by_its_name_whatever_function_it_runs() {
        let data = json!({
            "trigger": "after_chat", "tool": "seal\x1b[2J", "function": "close", "elapsed_ms": 3,
            "error": "no wax",
        });
        let shown = |event| line("x.workflow", event, data.clone()).expect("a line");
        assert!(shown("lifecycle.tool_result").ends_with("after_chat      seal (close) 3ms"));
        let failed = shown("lifecycle.tool_error");
        assert!(failed.ends_with("seal (close) 3ms failed: no wax"), "{failed}");
        let mut same = data.clone();
        same["tool"] = "close".into();
        let shown = line("x.workflow", "lifecycle.tool_result", same).expect("a line");
        assert!(shown.ends_with("after_chat      close 3ms"), "{shown}");
    }

    #[test]
    fn a_tool_of_the_platforms_is_told_from_one_of_the_same_name() {
        let own = json!({ "trigger": "before_chat", "function": "log_workflow_start" });
        let mut platform = own.clone();
        platform["origin"] = "platform".into();
        let shown = |data| line("x.workflow", "lifecycle.tool_result", data).expect("a line");
        assert!(shown(platform).contains("platform log_workflow_start"));
        assert!(!shown(own).contains("platform"));
    }

    #[test]
    fn what_a_ready_made_hook_did_has_a_line() {
        let data = json!({ "attempt": 2, "of": 3, "wait_ms": 20, "kind": "overloaded" });
        let expected = "       HOOK [  1.200s] clerk retry: attempt 2 of 3 in 20ms: overloaded";
        assert_eq!(line("clerk", "retry", data).as_deref(), Some(expected));
        assert_eq!(line("clerk", "my.own", json!({ "text": "x" })), None);
    }

    #[test]
    fn what_is_said_and_what_nobody_needs_to_read_has_none() {
        let said = json!({ "speaker": "writer", "text": "hi", "turn": 1, "hidden": false });
        assert_eq!(line("x.workflow", "chat.message", said.clone()), None);
        let nested = line_beside(Some(InstanceId::unique()), "y.workflow", "chat.message", said);
        let expected = "       SAID [  1.200s] y.workflow writer          hi";
        assert_eq!(nested.as_deref(), Some(expected), "of a chat that it began there is a line");
        assert_eq!(line("x.workflow", "chat.status", json!({ "status": "running" })), None);
        assert_eq!(line("x.workflow", "orchestrator.plan", json!({})), None);
    }
}
