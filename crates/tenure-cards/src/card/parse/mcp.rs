//! The fields about tool servers.

use crate::card::{Management, McpConnection, McpFields, ProtocolMode, Reader, present};
use crate::diagnostic::Code;
use crate::source::{Node, Value};

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
    McpFields {
        servers: servers.into_iter().map(|(name, _)| name).collect(),
        tools: reader.filters(tree, "tools"),
        resources: reader.filters(tree, "resources"),
        prompts: reader.filters(tree, "prompts"),
        connect: Vec::new(),
    }
}

/// `mcp_connect`: a list of servers, or a mapping by name.
pub(super) fn connect(tree: &Node, reader: &mut Reader<'_>) -> Vec<McpConnection> {
    let Some(node) = present(tree, "mcp_connect") else { return Vec::new() };
    match &node.value {
        Value::List(items) => {
            items.iter().filter_map(|item| connection(item, None, reader)).collect()
        }
        Value::Map(entries) => entries
            .iter()
            .filter_map(|(key, item)| connection(item, Some(&key.text), reader))
            .collect(),
        _ => {
            reader.wrong_kind("mcp_connect", "a list or a mapping of servers", node);
            Vec::new()
        }
    }
}

fn connection(node: &Node, key: Option<&str>, reader: &mut Reader<'_>) -> Option<McpConnection> {
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
    Some(McpConnection {
        name: name.or_else(|| key.map(str::to_owned)),
        target,
        connector_id,
        description: reader.words(node, "description"),
        management: reader.one_of(node, "management", MANAGEMENT).unwrap_or_default(),
        headers: reader.secrets(node, "headers"),
        access_token: reader.secret(node, "access_token"),
        defer_loading: reader.truth(node, "defer_loading").unwrap_or(false),
        auth: reader.secrets(node, "auth"),
        protocol_mode: reader.one_of(node, "protocol_mode", PROTOCOL).unwrap_or_default(),
    })
}
