//! The tool servers that cards name.

use crate::card::{Card, McpFields, list_words};
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::nearest::nearest;
use crate::project::Project;
use crate::server::Server;
use crate::source::{Source, Span};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Checks what cards say about servers against `tenure.toml` and against each other.
pub(super) fn check(cards: &[Card], project: &Project, report: &mut Report) {
    let described = cards.iter().filter_map(|card| card.kind.mcp()).flat_map(McpFields::own);
    ambiguous(project.config.servers.values(), Code::BadServer, report);
    ambiguous(described, Code::BadTarget, report);
    let fields = cards.iter().filter_map(|card| card.kind.mcp());
    let named: HashSet<&str> = fields.flat_map(|mcp| &mcp.servers).map(|it| &**it).collect();
    let mut described: HashMap<&str, (&Card, &Server)> = HashMap::new();
    for card in cards {
        let Some(mcp) = card.kind.mcp() else { continue };
        let mut own: Vec<&str> = Vec::new();
        for server in mcp.own() {
            let name = &*server.name;
            if own.contains(&name) {
                let message = format!("this card describes two servers `{name}`");
                clash(server, message, "give one of them another `name`", report);
            } else if project.config.servers.contains_key(name) && named.contains(name) {
                let message = format!("tenure.toml describes a server `{name}` too, which is used");
                let help =
                    format!("write `servers: [{name}]` to use that one, or give this another name");
                clash(server, message, &help, report);
            } else if let Some((other, known)) = described.get(name)
                && !known.is_same(server)
            {
                let place = other.source.path().display();
                let message = format!("`{name}` is another server in {place}");
                let help = "agents of a run share their servers by name; give one another `name`";
                clash(server, message, help, report);
            } else {
                described.entry(name).or_insert((card, server));
            }
            own.push(name);
        }
        missing(card, mcp, &own, project, report);
        filters(card, mcp, &own, report);
    }
}

/// Refuses names that could be read as those of another server and a part of its tool.
fn ambiguous<'a>(servers: impl Iterator<Item = &'a Server>, code: Code, report: &mut Report) {
    for server in servers {
        let Some(why) = server.ambiguous_name() else { continue };
        let message = format!("the name of the tool server `{}` {why}", server.name);
        let help = "its tools are called `<server>__<tool>`, and a name has to say which server is \
                    meant; give it another name";
        report.push(Diagnostic::new(code, &shown(server), server.span, message).help(help));
    }
}

/// The source of a server for a message about the whole of it: what it is given may be a secret, and
/// may stand on the same line.
pub(super) fn shown(server: &Server) -> Arc<Source> {
    if server.given().is_empty() {
        return Arc::clone(&server.source);
    }
    let (text, span) = (server.source.text(), server.span);
    let rest = text.get(span.end as usize..).unwrap_or_default().lines().next();
    let end = span.end as usize + rest.map_or(0, str::len);
    let is_name = server.source.slice(span).trim_matches(['"', '\'']) == &*server.name;
    let start = if is_name { span.end } else { span.start };
    Arc::new(server.source.hiding(Span::new(start as usize, end)))
}

fn clash(server: &Server, message: String, help: &str, report: &mut Report) {
    let diagnostic = Diagnostic::new(Code::ServerClash, &shown(server), server.span, message);
    report.push(diagnostic.help(help));
}

fn missing(card: &Card, mcp: &McpFields, own: &[&str], project: &Project, report: &mut Report) {
    // Of a configuration that cannot be read whole nobody knows what is missing.
    if project.report().has_errors() {
        return;
    }
    for (name, span) in mcp.servers.iter().zip(&mcp.places) {
        if project.config.servers.contains_key(&**name) || own.contains(&&**name) {
            continue;
        }
        let known: Vec<&str> = project.config.servers.keys().map(|name| &**name).collect();
        let near = nearest(name, known.iter().copied());
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "describe it in tenure.toml: a line `[mcp.servers.{}]`, and below it `command = \
                 [\"program\", \"argument\"]` or `url = \"https://…\"`",
                key(name)
            ),
        };
        let message = format!("`servers` names the tool server `{name}`, which is not there");
        report.push(Diagnostic::new(Code::MissingServer, &card.source, *span, message).help(help));
    }
}

/// A name as a key of TOML.
fn key(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.chars().all(plain) { name.to_owned() } else { format!("\"{name}\"") }
}

fn filters(card: &Card, mcp: &McpFields, own: &[&str], report: &mut Report) {
    let used: Vec<&str> = mcp.servers.iter().map(|it| &**it).chain(own.iter().copied()).collect();
    for field in ["tools", "resources", "prompts"] {
        let keys = card.tree().field(field).and_then(|node| node.map()).unwrap_or_default();
        for (key, _) in keys.iter().filter(|(key, _)| !used.contains(&&*key.text)) {
            let help = match nearest(&key.text, used.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if used.is_empty() => format!("add `servers: [{}]`", key.text),
                None => format!("the card uses {}", list_words(&used, "and")),
            };
            let message = format!(
                "`{field}` filters the server `{}`, which this card does not use",
                key.text
            );
            let found = Diagnostic::new(Code::StrayFilter, &card.source, key.span, message);
            report.push(found.help(help));
        }
    }
}
