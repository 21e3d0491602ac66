//! What the commands of a chat print. Whatever agents, servers and files say is foreign, and shown
//! without what could steer the terminal.

use super::super::explain;
use super::slash;
use crate::terminal::style::{BAD, BOLD, DIM, GOOD, WARN, paint};
use crate::terminal::text::{clean_line, exact, fit, plural};
use crate::terminal::{Screen, print_plain};
use serde_json::Value;
use std::collections::BTreeMap;
use tenure_cards::team::{Conversation, Team};
use tenure_core::hook::{HookFailure, Point};
use tenure_core::message::Message;
use tenure_hosts::mcp::{McpOffer, McpState};

/// More of a line is not read by anybody.
const MOST: usize = 200;

/// The first lines of a chat.
pub(super) fn greeting(team: &Team, agent: &str) -> String {
    let model = team.explain(agent).map(|it| clean_line(&it.model)).unwrap_or_default();
    let others = match team.agents().len() {
        0 | 1 => String::new(),
        agents => format!("{} · ", plural(agents, "agent")),
    };
    format!(
        "{} {}\n{}",
        paint(BOLD, clean_line(agent)),
        paint(DIM, model),
        paint(DIM, format_args!("{others}/help for commands · Ctrl-D leaves"))
    )
}

pub(super) fn help() -> String {
    let mut rows: Vec<_> = slash::help();
    rows.extend([
        ("@NAME MESSAGE".to_owned(), "say one thing to another agent"),
        ("//TEXT".to_owned(), "say something that begins with a slash"),
    ]);
    let mut lines = columns(rows.into_iter().map(|(name, does)| [name, does.to_owned()]));
    lines.push(paint(
        DIM,
        "Alt-Enter or Ctrl-J: new line · Ctrl-R: search · Tab: complete · Ctrl-C: cancel · \
         Ctrl-D: leave",
    ));
    lines.join("\n")
}

/// Rows of two cells, the first ones equally wide.
fn columns(rows: impl IntoIterator<Item = [String; 2]>) -> Vec<String> {
    let rows: Vec<_> = rows.into_iter().collect();
    let width = rows.iter().map(|row| row[0].chars().count()).max().unwrap_or(0);
    let line = |row: &[String; 2]| {
        let room = width.saturating_sub(row[0].chars().count());
        format!("  {}{:room$}  {}", paint(BOLD, &row[0]), "", row[1]).trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

pub(super) fn agents(team: &Team, current: &str) -> String {
    let rows = team.agents().into_iter().map(|name| {
        let mark = if name == current { "*" } else { " " };
        let mut about = Vec::new();
        if let Ok(it) = team.explain(name) {
            about.push(paint(DIM, exact(&it.kind)));
            about.push(exact(&it.model));
            if !it.children.is_empty() {
                about.push(format!("calls {}", exact(&it.children.join(", "))));
            }
        }
        let state = team
            .agent(name)
            .map_or_else(|| "not there".to_owned(), |agent| agent.phase().to_string());
        about.insert(about.len().min(2), state);
        [format!("{mark} {}", clean_line(name)), about.join(" · ")]
    });
    columns(rows).join("\n")
}

pub(super) fn tools(team: &Team, agent: &str) -> String {
    let tools = team.agent(agent).map(|agent| agent.blueprint().current_tools());
    let rows = tools.iter().flat_map(|tools| tools.iter()).map(|tool| {
        let first = tool.description.lines().next().unwrap_or_default();
        [clean_line(&tool.name), fit(&clean_line(first), MOST)]
    });
    let mut lines = columns(rows);
    if lines.is_empty() {
        lines.push("  it has no tools".to_owned());
    }
    lines.extend(missing(team, agent, McpOffer::Tools));
    lines.join("\n")
}

pub(super) fn hooks(team: &Team, agent: &str, point: Option<Point>) -> String {
    match team.explain(agent) {
        Ok(mut it) => {
            if let Some(point) = point {
                it.points.retain(|at| at.point == point.as_str());
            }
            explain::text(&it).trim_end().to_owned()
        }
        Err(error) => clean_line(&error.to_string()),
    }
}

pub(super) fn state(team: &Team, agent: &str, conversation: &Conversation) -> String {
    let state = team.agent(agent).map(|agent| agent.state_values()).unwrap_or_default();
    let mut lines = vec![paint(DIM, format_args!("state of {}", clean_line(agent)))];
    lines.extend(values(&state));
    lines.push(paint(DIM, "variables of this chat"));
    lines.extend(values(&conversation.variables()));
    lines.join("\n")
}

fn values(values: &BTreeMap<String, Value>) -> Vec<String> {
    let shown = |value: &Value| fit(&exact(&value.to_string()), MOST);
    let lines = columns(values.iter().map(|(name, value)| [exact(name), shown(value)]));
    if lines.is_empty() { vec!["  nothing".to_owned()] } else { lines }
}

pub(super) fn history(team: &Team, agent: &str, most: usize) -> String {
    let history = team.agent(agent).map(|agent| agent.history()).unwrap_or_default();
    let first = history.len().saturating_sub(most);
    let mut lines = Vec::new();
    if first > 0 {
        lines.push(paint(DIM, format_args!("  {} before", plural(first, "message"))));
    }
    let rows = history.iter().skip(first).map(|message| {
        let who = match message {
            Message::System { .. } => "system",
            Message::User { .. } => "you",
            Message::Assistant { .. } => "agent",
            _ => "tool",
        };
        let calls: Vec<_> = message.calls().iter().map(|call| clean_line(&call.name)).collect();
        let calls = match calls.is_empty() {
            true => String::new(),
            false => paint(DIM, format_args!("[calls {}]", calls.join(", "))),
        };
        let text = fit(&clean_line(message.text()), MOST);
        [who.to_owned(), format!("{text} {calls}").trim().to_owned()]
    });
    lines.extend(columns(rows));
    or_nothing(lines, "nothing has been said")
}

pub(super) fn servers(team: &Team) -> String {
    let rows = team.servers().into_iter().map(|server| {
        let state = match server.state {
            McpState::Connected => paint(GOOD, "connected"),
            McpState::Connecting => paint(WARN, "connecting"),
            McpState::Failed => paint(BAD, "failed"),
            _ => paint(DIM, "idle"),
        };
        let state = match server.retry_in {
            Some(pause) => format!("{state}, retried in {}s", pause.as_millis().div_ceil(1000)),
            None => state,
        };
        let tools = plural(server.tools, "tool");
        let tools = match server.state {
            McpState::Connected if server.taken < server.tools => {
                format!("{tools}, {} taken", server.taken)
            }
            _ => tools,
        };
        let mut about = vec![state, tools];
        about.extend(server.protocol.map(|version| format!("protocol {}", exact(&version))));
        about.extend(server.unmatched.iter().map(|it| fit(&exact(&it.to_string()), MOST)));
        about.extend(server.error.map(|error| fit(&exact(&error), MOST)));
        [clean_line(&server.name), about.join(" · ")]
    });
    or_nothing(columns(rows), "there are no servers")
}

pub(super) fn prompts(team: &Team, agent: &str) -> String {
    let prompts = match team.prompts(agent) {
        Ok(prompts) => prompts,
        Err(error) => return clean_line(&error.to_string()),
    };
    let rows = prompts.into_iter().map(|prompt| {
        let arguments = prompt.arguments.iter().map(|it| match it.required {
            true => format!("{}=…", exact(&it.name)),
            false => format!("[{}=…]", exact(&it.name)),
        });
        let arguments: Vec<_> = arguments.collect();
        let about = prompt.description.as_deref().unwrap_or_default();
        let name = exact(&format!("{}/{} {}", prompt.server, prompt.name, arguments.join(" ")));
        [name.trim_end().to_owned(), fit(&clean_line(about), MOST)]
    });
    let mut lines = columns(rows);
    let missing = missing(team, agent, McpOffer::Prompts);
    if lines.is_empty() {
        let servers = team.servers_of(agent).unwrap_or_default();
        let all: usize = servers.iter().map(|server| server.prompts).sum();
        lines.push(match all {
            0 if missing.is_empty() => "  its servers offer no prompts".to_owned(),
            0 => "  no prompts are known".to_owned(),
            all => {
                let all = plural(all, "prompt");
                format!("  its servers offer {all}, and its card takes none")
            }
        });
    }
    lines.extend(missing);
    lines.join("\n")
}

/// Why an agent may have less of its servers than somebody looks for: filters that match nothing,
/// and servers that are not there.
fn missing(team: &Team, agent: &str, offer: McpOffer) -> Vec<String> {
    let mut lines = Vec::new();
    for server in team.servers_of(agent).unwrap_or_default() {
        if server.state != McpState::Connected {
            let state = format!("`{}` is not connected ({})", server.name, server.state);
            lines.push(state);
        }
        let unmatched = server.unmatched.iter().filter(|it| it.offer == offer);
        lines.extend(unmatched.map(ToString::to_string));
    }
    lines.iter().map(|line| format!("  {}", paint(WARN, fit(&exact(line), MOST)))).collect()
}

fn or_nothing(lines: Vec<String>, nothing: &str) -> String {
    if lines.is_empty() { format!("  {nothing}") } else { lines.join("\n") }
}

/// Hooks that failed without anything else coming of it.
pub(super) fn warnings<'a>(screen: &Screen, failures: impl Iterator<Item = &'a HookFailure>) {
    if !screen.is_quiet() {
        for failure in failures {
            let text = clean_line(&failure.to_string());
            print_plain(&format!("{} {text}", paint(WARN, "warning:")));
        }
    }
}
