//! The fields about tool servers.

use crate::card::{Management, McpConnection, McpFields, ProtocolMode, Reader, Secret, present};
use crate::diagnostic::{Code, Diagnostic};
use crate::hook::CommandRef;
use crate::project::{Project, url_problem};
use crate::sandbox;
use crate::server::{Reach, Server, Target, default_name};
use crate::source::{Node, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

const KEYS: &[&str] = &[
    "target",
    "name",
    "description",
    "management",
    "connector_id",
    "headers",
    "access_token",
    "defer_loading",
    "auth",
    "protocol_mode",
    sandbox::SANDBOX,
];
const MANAGEMENT: &[(&str, Management)] =
    &[("client", Management::Client), ("provider", Management::Provider)];
const PROTOCOL: &[(&str, ProtocolMode)] = &[
    ("auto", ProtocolMode::Auto),
    ("modern", ProtocolMode::Modern),
    ("legacy", ProtocolMode::Legacy),
];

pub(super) fn read(tree: &Node, reader: &mut Reader<'_>) -> McpFields {
    let servers = reader.texts(tree, "servers").unwrap_or_default();
    let (servers, places) = servers.into_iter().unzip();
    McpFields {
        servers,
        places,
        tools: reader.filters(tree, "tools"),
        resources: reader.filters(tree, "resources"),
        prompts: reader.filters(tree, "prompts"),
        connect: Vec::new(),
    }
}

/// `mcp_connect`: a list of servers, or a mapping by name.
pub(super) fn connect(
    tree: &Node,
    reader: &mut Reader<'_>,
    project: &Project,
) -> Vec<McpConnection> {
    let Some(node) = present(tree, "mcp_connect") else { return Vec::new() };
    match &node.value {
        Value::List(items) => {
            items.iter().filter_map(|item| connection(item, None, reader, project)).collect()
        }
        Value::Map(entries) => entries
            .iter()
            .filter_map(|(key, item)| connection(item, Some(&key.text), reader, project))
            .collect(),
        _ => {
            reader.wrong_kind("mcp_connect", "a list or a mapping of servers", node);
            Vec::new()
        }
    }
}

fn connection(
    node: &Node,
    key: Option<&str>,
    reader: &mut Reader<'_>,
    project: &Project,
) -> Option<McpConnection> {
    if node.map().is_none() {
        reader.wrong_kind("an entry of mcp_connect", "a mapping with `target`", node);
        return None;
    }
    reader.only(node, "mcp_connect", KEYS, Code::UnknownField);
    let target = reader.words(node, "target").map(|it| it.trim().to_owned());
    let connector_id = reader.words(node, "connector_id").map(|it| it.trim().to_owned());
    match (present(node, "target"), node.entry("connector_id")) {
        (None, None) => reader.problem_help(
            Code::MissingField,
            node.span,
            "this server has neither `target` nor `connector_id`",
            "add `target` with an address or a command",
        ),
        (Some(_), Some((other, _))) => reader.problem_help(
            Code::Contradiction,
            other.span,
            "this server has both `target` and `connector_id`",
            "keep one of the two",
        ),
        _ => {}
    }
    let name = reader.words(node, "name").map(|it| it.trim().to_owned());
    let name = name.or_else(|| key.map(str::to_owned));
    let protocol_mode = reader.one_of(node, "protocol_mode", PROTOCOL).unwrap_or_default();
    let reach = match &connector_id {
        None => target.as_deref().and_then(|target| reach(node, target, reader, project)),
        Some(_) => None,
    };
    let grant = sandbox::grant(reader, node);
    let server = reach.map(|(reach, default)| Server {
        name: name.clone().unwrap_or(default).into(),
        reach,
        protocol: protocol_mode,
        start_limit: None,
        call_limit: None,
        sandbox: grant,
        source: Arc::clone(reader.source),
        span: node.span,
    });
    Some(McpConnection {
        name,
        target,
        connector_id,
        description: reader.words(node, "description"),
        management: reader.one_of(node, "management", MANAGEMENT).unwrap_or_default(),
        headers: reader.secrets(node, "headers"),
        access_token: reader.secret(node, "access_token"),
        defer_loading: reader.truth(node, "defer_loading").unwrap_or(false),
        auth: reader.secrets(node, "auth"),
        protocol_mode,
        server,
        span: node.span,
    })
}

/// How the server is reached, and what it is called if it has no name.
fn reach(
    node: &Node,
    text: &str,
    reader: &mut Reader<'_>,
    project: &Project,
) -> Option<(Reach, String)> {
    let field = present(node, "target")?;
    let bad = |reader: &mut Reader<'_>, what: &str, help: &str| {
        let message = format!("the target of this server {what}");
        reader.problem_help(Code::BadTarget, field.span, message, help);
    };
    let target = match Target::parse(text) {
        Ok(target) => target,
        Err(what) => {
            bad(reader, what, "write an address (https://…), or a program and what it is given");
            return None;
        }
    };
    let name = default_name(&target);
    let written = field.text().unwrap_or(text).trim().to_owned();
    let headers = headers(node, reader);
    match target {
        Target::Url(url) => {
            if let Some((what, help)) = url_problem(&url) {
                // What is wrong with it may be that there is a password in it.
                let source = Arc::new(reader.source.hiding(field.span));
                let message = format!("the target of this server {what}");
                let found = Diagnostic::new(Code::BadTarget, &source, field.span, message);
                reader.report.push(found.help(help));
                return None;
            }
            Some((Reach::Url { url, written, headers }, name))
        }
        Target::Command(mut argv) => {
            for field in ["headers", "access_token"] {
                if let Some((key, _)) = present(node, field).and_then(|_| node.entry(field)) {
                    reader.problem_help(
                        Code::Contradiction,
                        key.span,
                        format!("`{field}` goes with an address, and this server is a program"),
                        "leave it out; describe the server in tenure.toml to give it variables (env)",
                    );
                }
            }
            let written = match Target::parse(&written) {
                Ok(Target::Command(written)) => written,
                _ => vec![written],
            };
            let mut file = None;
            if argv[0].contains('/') && !Path::new(&argv[0]).is_absolute() {
                match project.confine(&project.root, Path::new(&argv[0])) {
                    Ok(path) => {
                        argv[0] = path.to_string_lossy().into_owned();
                        file = Some(path);
                    }
                    Err(error) => {
                        let what = format!("names the program `{}`, which {error}", argv[0]);
                        let help = "a path starts from the project's folder; a bare name is looked \
                                    up in PATH";
                        bad(reader, &what, help);
                        return None;
                    }
                }
            }
            let command = CommandRef {
                argv,
                written,
                file,
                dir: project.root.clone(),
                writes: BTreeSet::new(),
            };
            Some((Reach::Command { command, env: BTreeMap::new() }, name))
        }
    }
}

/// The headers as they are written, the token among them.
fn headers(node: &Node, reader: &mut Reader<'_>) -> BTreeMap<String, Secret> {
    let mut headers = BTreeMap::new();
    let written = present(node, "headers").and_then(Node::map).unwrap_or_default();
    for (key, value) in written {
        let text = value.text().map_or_else(|| value.raw.to_string(), str::to_owned);
        headers.insert(key.text.clone(), Secret::new(text));
    }
    if let Some(token) = present(node, "access_token").and_then(Node::text) {
        let twice = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        if let (true, Some((key, _))) = (twice, node.entry("access_token")) {
            reader.problem_help(
                Code::Contradiction,
                key.span,
                "`access_token` is the header Authorization, which `headers` have too",
                "keep one of the two",
            );
        }
        headers.insert("Authorization".to_owned(), Secret::new(format!("Bearer {}", token.trim())));
    }
    headers
}
