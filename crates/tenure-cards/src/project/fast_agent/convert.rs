//! A configuration of fast-agent as the tables of a `tenure.toml`.
//!
//! The tables have the places of the YAML that they come from, so that whatever is wrong with them
//! is shown in the file that people wrote.

use crate::diagnostic::{Code, Diagnostic, Report, Severity};
use crate::nearest::nearest;
use crate::server::{Target, default_name, variables};
use crate::source::{self, Key, Node, Source, Span, Value};
use std::borrow::Cow;
use std::sync::Arc;
use tenure_core::secret::is_secret_name;
use tenure_models::provider::{ProviderConfig, Providers};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

type Item<'n> = Spanned<DeValue<'n>>;

/// The sections that mean something here, beside those of providers.
const SECTIONS: &[&str] = &["default_model", "model_references", "mcp"];
/// The settings of a server that a `tenure.toml` has by the same names.
const KEPT: &[&str] = &["command", "args", "env", "cwd", "url", "headers"];
/// Those that say nothing more: the kind of a server follows from the others.
const IMPLIED: &[&str] = &["transport", "name", "management"];
/// The remedy for a target that cannot be understood.
const TARGET: &str = "write an address or a command line";

/// Reads the file; none if it is no YAML. The source that comes with it is for messages: it has
/// nothing in it that may be a secret.
pub(super) fn tree(source: &Arc<Source>, report: &mut Report) -> Option<(Node, Arc<Source>)> {
    let span = Span::new(0, source.text().len());
    let tree = source::parse_yaml(source, span, report)?;
    let mut hidden = Arc::clone(source);
    hide(&tree, &mut hidden);
    Some((tree, hidden))
}

/// Hides what stands under the names of secrets, and all that servers are given.
fn hide(node: &Node, source: &mut Arc<Source>) {
    for (key, value) in node.map().unwrap_or_default() {
        let holds_secrets = matches!(&*key.text, "headers" | "env" | "auth");
        if holds_secrets || is_secret_name(&key.text) {
            *source = Arc::new(source.hiding(value.span));
        } else {
            hide(value, source);
        }
    }
    node.list().unwrap_or_default().iter().for_each(|item| hide(item, source));
}

/// Makes the tables of a `tenure.toml`; none if there are no sections. What means nothing here is
/// reported and left out.
pub(super) fn table<'n>(
    tree: &'n Node,
    source: &Arc<Source>,
    report: &mut Report,
) -> Option<DeTable<'n>> {
    let mut reading = Reading { source, report };
    match &tree.value {
        Value::Null => Some(DeTable::new()),
        Value::Map(entries) => Some(reading.sections(entries)),
        other => {
            let message =
                format!("the configuration is {}, not a mapping of sections", other.kind());
            let help = "write sections such as `default_model: sonnet`";
            reading.problem(Code::NotAMapping, tree.span, message, help);
            None
        }
    }
}

struct Reading<'a> {
    source: &'a Arc<Source>,
    report: &'a mut Report,
}

impl Reading<'_> {
    fn sections<'n>(&mut self, entries: &'n [(Key, Node)]) -> DeTable<'n> {
        let providers = Providers::with_env(ProviderConfig::default(), |_| None);
        let providers: Vec<String> =
            providers.known_providers().into_iter().map(|it| it.name).collect();
        let (mut table, mut entered) = (DeTable::new(), DeTable::new());
        for (key, node) in entries.iter().filter(|(_, node)| node.value != Value::Null) {
            match &*key.text {
                "default_model" => put(&mut table, key.span, "default_model", value(node)),
                "model_references" => {
                    let aliases = self.references(node);
                    put(&mut table, key.span, "aliases", nested(node.span, aliases));
                }
                "mcp" => {
                    let mut mcp = DeTable::new();
                    let servers = self.mcp(node);
                    put(&mut mcp, key.span, "servers", nested(node.span, servers));
                    put(&mut table, key.span, "mcp", nested(node.span, mcp));
                }
                name if providers.iter().any(|it| it == name) => {
                    let settings = self.provider(name, node);
                    if !settings.is_empty() {
                        put(&mut entered, key.span, name, nested(node.span, settings));
                    }
                }
                name => {
                    let near = nearest(name, SECTIONS.iter().copied());
                    self.meaningless(name, key.span, near);
                }
            }
        }
        if !entered.is_empty() {
            put(&mut table, Span::at(0), "providers", nested(Span::at(0), entered));
        }
        table
    }

    /// `$system.fast` and the others, as aliases.
    fn references<'n>(&mut self, node: &'n Node) -> DeTable<'n> {
        let mut aliases = DeTable::new();
        for (space, models) in self.entries("model_references", node) {
            let path = format!("model_references.{}", space.text);
            for (name, model) in self.entries(&path, models) {
                let reference = format!("${}.{}", space.text, name.text);
                put(&mut aliases, name.span, &reference, value(model));
            }
        }
        aliases
    }

    fn provider<'n>(&mut self, name: &str, node: &'n Node) -> DeTable<'n> {
        let mut settings = DeTable::new();
        for (key, node) in self.entries(name, node) {
            let path = format!("{name}.{}", key.text);
            match &*key.text {
                "base_url" => put(&mut settings, key.span, "base_url", value(node)),
                "api_key" => self.key(&path, key.span, node),
                _ => self.meaningless(&path, key.span, None),
            }
        }
        settings
    }

    fn mcp<'n>(&mut self, node: &'n Node) -> DeTable<'n> {
        let mut servers = DeTable::new();
        for (key, node) in self.entries("mcp", node) {
            match &*key.text {
                "servers" => {
                    for (name, settings) in self.entries("mcp.servers", node) {
                        let path = format!("mcp.servers.{}", name.text);
                        let entries = self.entries(&path, settings);
                        if let Some(server) = self.server(&path, entries) {
                            put(&mut servers, name.span, &name.text, nested(settings.span, server));
                        }
                    }
                }
                "targets" => {
                    for target in node.list().unwrap_or_default() {
                        self.listed(target, &mut servers);
                    }
                }
                other => self.meaningless(&format!("mcp.{other}"), key.span, None),
            }
        }
        servers
    }

    fn server<'n>(&mut self, path: &str, entries: &'n [(Key, Node)]) -> Option<DeTable<'n>> {
        let mut server = DeTable::new();
        for (key, node) in entries.iter().filter(|(_, node)| node.value != Value::Null) {
            match &*key.text {
                name if KEPT.contains(&name) => put(&mut server, key.span, name, texts(node)),
                "target" => {
                    if !self.target(node, &mut server) {
                        return None;
                    }
                }
                "access_token" => self.token(key.span, node, entries, &mut server),
                "protocol_mode" => put(&mut server, key.span, "protocol", value(node)),
                "read_timeout_seconds" => {
                    let seconds = format!("{}s", node.scalar().unwrap_or_default());
                    put(&mut server, key.span, "call_timeout", text(node.span, seconds));
                }
                name if IMPLIED.contains(&name) && node.text() != Some("provider") => {}
                "management" | "connector_id" => {
                    let message = format!("`{path}` is run by the model's provider, and left out");
                    let help =
                        "servers are connected to by Tenure itself: give a `command` or a `url`";
                    self.warn(Code::MeaninglessField, key.span, message, help);
                    return None;
                }
                name => self.meaningless(&format!("{path}.{name}"), key.span, None),
            }
        }
        Some(server)
    }

    /// A token goes into the header that it is for.
    fn token<'n>(
        &mut self,
        at: Span,
        node: &Node,
        entries: &'n [(Key, Node)],
        server: &mut DeTable<'n>,
    ) {
        let headers = entries.iter().find(|(key, _)| key.text == "headers").map(|(_, node)| node);
        let mut given = DeTable::new();
        for (key, node) in headers.and_then(Node::map).unwrap_or_default() {
            put(&mut given, key.span, &key.text, texts(node));
        }
        let token = format!("Bearer {}", node.scalar().unwrap_or_default());
        put(&mut given, at, "Authorization", text(node.span, token));
        put(server, at, "headers", nested(node.span, given));
    }

    /// A server of the list `mcp.targets`, which may have no name of its own.
    fn listed<'n>(&mut self, node: &'n Node, servers: &mut DeTable<'n>) {
        let target = node.field("target").unwrap_or(node);
        let Some(written) = target.text() else {
            let message = "an entry of `mcp.targets` has no `target`";
            self.problem(Code::BadServer, node.span, message, TARGET);
            return;
        };
        let name = node.field("name").and_then(Node::text).map(str::to_owned);
        let name = name.or_else(|| Target::parse(written).ok().map(|it| default_name(&it)));
        let name = name.unwrap_or_default();
        let path = format!("mcp.targets.{name}");
        let server = match node.map() {
            Some(entries) => self.server(&path, entries),
            None => {
                let mut server = DeTable::new();
                self.target(node, &mut server).then_some(server)
            }
        };
        if let Some(server) = server {
            put(servers, target.span, &name, nested(node.span, server));
        }
    }

    /// Puts the address or the command of a target; returns `false` if it cannot be understood.
    fn target(&mut self, node: &Node, server: &mut DeTable<'_>) -> bool {
        let written = node.text().unwrap_or_default();
        match Target::parse(written) {
            Ok(Target::Url(url)) => put(server, node.span, "url", text(node.span, url)),
            Ok(Target::Command(words)) => {
                let mut command = DeArray::new();
                words.into_iter().for_each(|word| command.push(text(node.span, word)));
                put(server, node.span, "command", spanned(node.span, DeValue::Array(command)));
            }
            Err(why) => {
                let message = format!("the target `{written}` {why}");
                self.problem(Code::BadServer, node.span, message, TARGET);
                return false;
            }
        }
        true
    }

    /// The entries of a section, which has to be a mapping.
    fn entries<'n>(&mut self, path: &str, node: &'n Node) -> &'n [(Key, Node)] {
        match &node.value {
            Value::Map(entries) => entries,
            Value::Null => &[],
            other => {
                let message = format!("`{path}` must be a mapping, but is {}", other.kind());
                self.problem(Code::BadSetting, node.span, message, "write `name: value` below it");
                &[]
            }
        }
    }

    /// A key is named, and its value is neither read nor shown.
    fn key(&mut self, path: &str, at: Span, node: &Node) {
        let from = match &*variables(node.scalar().unwrap_or_default()) {
            [] => "set the provider's variable".to_owned(),
            names => format!("set {}", names.join(" and ")),
        };
        let help = format!(
            "keys are yours and not the project's: {from} in your environment, or say in your own \
             configuration, ~/.config/tenure/config.toml, where the key is"
        );
        let message = format!("`{path}` is not read");
        let found = Diagnostic::new(Code::KeyInConfig, self.source, at, message);
        self.report.push(found.help(help).severity(Severity::Warning));
    }

    fn meaningless(&mut self, path: &str, at: Span, near: Option<&str>) {
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "it is left out; docs/migrating.md says what takes its place".to_owned(),
        };
        self.warn(Code::MeaninglessField, at, format!("`{path}` means nothing here"), &help);
    }

    fn warn(&mut self, code: Code, at: Span, message: String, help: &str) {
        self.report.push(Diagnostic::new(code, self.source, at, message).help(help));
    }

    fn problem(&mut self, code: Code, at: Span, message: impl Into<String>, help: &str) {
        self.report.push(Diagnostic::new(code, self.source, at, message).help(help));
    }
}

fn put<'n>(table: &mut DeTable<'n>, at: Span, key: &str, item: Item<'n>) {
    table.insert(Spanned::new(at.range(), Cow::Owned(key.to_owned())), item);
}

fn spanned<'n>(at: Span, value: DeValue<'n>) -> Item<'n> {
    Spanned::new(at.range(), value)
}

fn nested<'n>(at: Span, table: DeTable<'n>) -> Item<'n> {
    spanned(at, DeValue::Table(table))
}

fn text<'n>(at: Span, text: impl Into<String>) -> Item<'n> {
    spanned(at, DeValue::String(Cow::Owned(text.into())))
}

/// The value as TOML has it.
fn value(node: &Node) -> Item<'_> {
    match &node.value {
        Value::Text(said) => text(node.span, said),
        Value::List(items) => {
            let mut array = DeArray::new();
            items.iter().for_each(|item| array.push(value(item)));
            spanned(node.span, DeValue::Array(array))
        }
        Value::Map(entries) => {
            let mut table = DeTable::new();
            entries
                .iter()
                .for_each(|(key, node)| put(&mut table, key.span, &key.text, value(node)));
            nested(node.span, table)
        }
        Value::Bool(said) => spanned(node.span, DeValue::Boolean(*said)),
        Value::Null | Value::Int(_) | Value::Float(_) => match DeValue::parse(&node.raw) {
            Ok(number) => spanned(node.span, number.into_inner()),
            Err(_) => text(node.span, &*node.raw),
        },
    }
}

/// The same where every scalar is meant as a text: arguments, variables and headers.
fn texts(node: &Node) -> Item<'_> {
    match &node.value {
        Value::List(items) => {
            let mut array = DeArray::new();
            items.iter().for_each(|item| array.push(texts(item)));
            spanned(node.span, DeValue::Array(array))
        }
        Value::Map(entries) => {
            let mut table = DeTable::new();
            entries
                .iter()
                .for_each(|(key, node)| put(&mut table, key.span, &key.text, texts(node)));
            nested(node.span, table)
        }
        _ => text(node.span, node.scalar().unwrap_or_default()),
    }
}
