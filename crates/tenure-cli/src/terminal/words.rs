//! What events say, in words.

use tenure_core::phase::Phase;

/// How far a tool has come: `tool read 3/10 the second file`.
pub(super) fn progress_in_words(
    tool: &str,
    done: f64,
    total: Option<f64>,
    message: Option<&str>,
) -> String {
    let mut text = format!("tool {}", super::text::clean_line(tool));
    match total {
        Some(total) => text.push_str(&format!(" {}/{}", short(done), short(total))),
        None if done > 0.0 => text.push_str(&format!(" {}", short(done))),
        None => {}
    }
    if let Some(message) = message {
        text.push_str(&format!(" {}", super::text::clean_line(message)));
    }
    text
}

/// A number without digits that say nothing.
fn short(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number:.0}") } else { format!("{number:.1}") }
}

/// Whether something did not end well only because nobody is there to ask.
pub(super) fn waits_for_person(reason: Option<&str>) -> bool {
    reason.is_some_and(|reason| reason.contains("waits for a person, and nobody is there to ask"))
}

/// The `file:line` of a line of a Python traceback.
pub(super) fn raised_at(line: &str) -> Option<String> {
    let (file, rest) = line.trim_start().strip_prefix("File \"")?.split_once("\", line ")?;
    let number = rest.split(',').next()?.trim();
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| format!("{file}:{number}"))
}

/// A phase as a progress line says it.
pub(super) fn phase_in_words(phase: Phase) -> &'static str {
    match phase {
        Phase::Uninitialized | Phase::Bootstrapping => "starting",
        Phase::Idle => "ready",
        Phase::Paused => "paused",
        Phase::ProcessingUserInput => "reading the message",
        Phase::AwaitingLlmResponse => "waiting for the model",
        Phase::AnalyzingLlmResponse => "looking at the answer",
        Phase::AwaitingToolApproval | Phase::AwaitingUserInput => "waiting for you",
        Phase::ExecutingTool => "running a tool",
        Phase::ToolDenied => "a tool call was denied",
        Phase::ProcessingToolResult => "taking in the result",
        Phase::Error => "in error",
        Phase::ShuttingDown => "stopping",
        Phase::Terminated => "over",
        _ => phase.as_str(),
    }
}
