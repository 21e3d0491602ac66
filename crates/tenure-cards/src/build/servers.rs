//! The tool servers that agents use.

use super::agent::Workshop;
use crate::card::{Card, Environ, Management, McpConnection, McpFields, Meaning, expand_each};
use crate::check::Loaded;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::feature::Feature;
use crate::sandbox::{Preset, sandboxed};
use crate::server::{Reach, Server, variables};
use crate::trust::CommandUser;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::agent::AgentBuilder;
use tenure_hosts::Environment;
use tenure_hosts::mcp::{McpProtocol, McpSelection, McpServer, McpTransport, McpView};

/// What a start may take beyond its servers.
const BESIDE: Duration = Duration::from_secs(10);

/// The servers that these cards use, ready to be connected to. A variable that is not set goes to
/// `needs`; a build that cannot connect to any says so in `report`.
pub(crate) fn connectable(
    loaded: &Loaded,
    environment: &Environment,
    report: &mut Report,
    needs: &mut Report,
) -> Vec<McpServer> {
    let mut all = Vec::new();
    for server in used(loaded).into_values() {
        if !Feature::Mcp.is_built() {
            let message = Feature::Mcp.missing(&format!("the tool server `{}`", server.name));
            let found = Diagnostic::new(Code::NotBuilt, &server.source, server.span, message);
            report.push(found.help(Feature::Mcp.help()));
        }
        let mut ready = ready(server, &loaded.environ, needs);
        foreign_keys(server, &ready.transport, loaded, needs);
        keys_of_process(server, &ready.transport, loaded, needs);
        if let Reach::Command { command, .. } = &server.reach {
            // It may die and be started again, and must not run anything else then.
            ready = ready.checked_by(loaded.commands.check(command, CommandUser::Server));
            let grant = server.sandbox.as_ref();
            ready.environment = grant.map(|grant| sandboxed(environment, Some(grant)));
        }
        all.push(ready);
    }
    all
}

/// Refuses a header that would take the key of a provider to another host than the provider's: one that
/// the user's own configuration does not allow, or one that is reached by http beyond this machine.
fn foreign_keys(server: &Server, transport: &McpTransport, loaded: &Loaded, needs: &mut Report) {
    let (Reach::Url { headers, .. }, McpTransport::Http { url, headers: sent }) =
        (&server.reach, transport)
    else {
        return;
    };
    let keys = loaded.key_owners();
    let providers = &keys.providers;
    for (name, written) in headers {
        let value = sent.iter().find(|(header, _)| header == name).map_or("", |(_, value)| value);
        let owners = keys.of(&variables(written.reveal()), value);
        let refused = owners.iter().find_map(|owner| providers.check_key_target(owner, url).err());
        if let Some(error) = refused {
            let message = format!(
                "the header {name} of the tool server `{}` is not sent: {error}",
                server.name
            );
            let found = Diagnostic::new(Code::KeyToHost, &server.source, server.span, message);
            needs.push(found.help(error.help()));
        }
    }
}

/// Refuses a variable or an argument that would give the key of a provider to a confined process, unless the user's
/// own configuration names its command.
fn keys_of_process(server: &Server, transport: &McpTransport, loaded: &Loaded, needs: &mut Report) {
    let (Reach::Command { command, env }, McpTransport::Stdio { command: argv, env: set, .. }) =
        (&server.reach, transport)
    else {
        return;
    };
    let of_project = loaded.project.config.sandbox.grant.preset;
    if server.sandbox.as_ref().and_then(|grant| grant.preset).or(of_project) == Some(Preset::Full) {
        return;
    }
    let variables_of = env.iter().map(|(name, written)| {
        let value = set.get(name).map_or("", String::as_str);
        (format!("the variable {name}"), variables(written.reveal()), value)
    });
    let arguments = command.written.iter().zip(argv);
    let arguments =
        arguments.map(|(written, it)| ("an argument".to_owned(), variables(written), it.as_str()));
    let (keys, line) = (loaded.key_owners(), server.written());
    for (what, names, value) in variables_of.chain(arguments) {
        let owners = keys.of(&names, value).into_iter();
        for owner in owners.filter(|owner| !loaded.user.models.may_have_key(owner, &line)) {
            let message = format!(
                "{what} of the tool server `{}` would give a confined process the key of the provider \
                 {owner}",
                server.name
            );
            let found = Diagnostic::new(Code::KeyToHost, &server.source, server.span, message);
            let help = format!(
                "remove it, give the server a key of its own, or allow this command in your own \
                 configuration, ~/.config/tenure/config.toml: [providers.{owner}] allow_commands = \
                 [{line:?}]"
            );
            needs.push(found.help(help));
        }
    }
}

/// Every server that a card uses, by name.
pub(crate) fn used(loaded: &Loaded) -> BTreeMap<Arc<str>, &Server> {
    let mut used = BTreeMap::new();
    for mcp in loaded.cards.iter().filter_map(|card| card.kind.mcp()) {
        for server in mcp.own() {
            used.entry(server.name.clone()).or_insert(server);
        }
        for name in &mcp.servers {
            if let Some(server) = loaded.project.config.servers.get(&**name) {
                used.entry(server.name.clone()).or_insert(server);
            }
        }
    }
    used
}

fn ready(server: &Server, environ: &Environ, needs: &mut Report) -> McpServer {
    let mut filled = |text: &str| {
        let mut unset = Vec::new();
        let value = expand_each(text, environ, |name, meaning| {
            if matches!(meaning, Meaning::Unset) {
                unset.push(name.to_owned());
            }
        });
        for name in unset {
            let message = format!(
                "the tool server `{}` needs the variable {name}, which is not set",
                server.name
            );
            let found = Diagnostic::new(Code::UnsetVariable, &server.source, server.span, message);
            needs.push(
                found.help(format!("export {name}=…, or write a default: ${{{name}:default}}")),
            );
        }
        value
    };
    let transport = match &server.reach {
        Reach::Command { command, env } => {
            let given = env.iter().map(|(name, it)| (name.clone(), filled(it.reveal())));
            let env = given.collect();
            // A card's target was filled in when it was read. Only what is missing is of interest.
            command.written.iter().for_each(|part| drop(filled(part)));
            McpTransport::Stdio { command: command.argv.clone(), env, dir: command.dir.clone() }
        }
        Reach::Url { url, written, headers } => {
            let given = headers.iter().map(|(name, it)| (name.clone(), filled(it.reveal())));
            let headers = given.collect();
            filled(written);
            McpTransport::Http { url: url.clone(), headers }
        }
    };
    let mut ready = McpServer::new(server.name.clone(), transport);
    ready.protocol = match server.protocol {
        crate::card::ProtocolMode::Auto => McpProtocol::Auto,
        crate::card::ProtocolMode::Modern => McpProtocol::Modern,
        crate::card::ProtocolMode::Legacy => McpProtocol::Legacy,
    };
    if let Some(limit) = server.start_limit {
        ready.start_limit = limit.duration();
    }
    if let Some(limit) = server.call_limit {
        ready.call_limit = Some(limit.duration());
    }
    ready
}

/// What a card takes of each of its servers.
pub(crate) fn selections(mcp: &McpFields) -> Vec<McpSelection> {
    let own = mcp.own().map(|server| server.name.clone());
    let named = mcp.servers.iter().map(|name| Arc::from(&**name));
    let mut selections: Vec<McpSelection> = Vec::new();
    for name in named.chain(own) {
        if selections.iter().any(|known| known.server == name) {
            continue;
        }
        let mut selection = McpSelection::all(name.clone());
        selection.tools = mcp.tools.get(&*name).cloned();
        selection.resources = mcp.resources.get(&*name).cloned();
        selection.prompts = mcp.prompts.get(&*name).cloned();
        selections.push(selection);
    }
    selections
}

impl Workshop<'_> {
    /// Gives an agent the servers of its card.
    pub(super) fn with_servers(
        &mut self,
        mut builder: AgentBuilder,
        card: &Card,
    ) -> (AgentBuilder, Option<Connections>) {
        let Some(mcp) = card.kind.mcp().filter(|mcp| !mcp.is_empty()) else {
            return (builder, None);
        };
        let selections = selections(mcp);
        let limit = |name: &Arc<str>| self.start_limits.get(name).copied();
        let longest = selections.iter().filter_map(|it| limit(&it.server)).max();
        let view = self.servers.view(selections);
        self.views.insert(card.name.clone(), view.clone());
        let connections =
            Connections { view: view.clone(), limit: longest.unwrap_or_default() + BESIDE / 2 };
        let config = builder.config_mut();
        // Connecting is a part of the start, and must not use up what the rest of it may take.
        let needed = longest.unwrap_or_default() + BESIDE;
        config.lifecycle.timeout = config.lifecycle.timeout.max(needed);
        builder = builder.tool_source(view);
        (builder, Some(connections))
    }

    /// Refuses, by name, what cannot be done for a server yet.
    pub(super) fn refuse_connections(&mut self, card: &Card, mcp: &McpFields) {
        for connection in &mcp.connect {
            for (what, help) in unsupported(connection) {
                let message = format!("{what} cannot be run yet");
                self.refuse(card, Code::NotRunnable, connection.span, message, help);
            }
        }
    }
}

/// What connects an agent to its servers.
#[derive(Clone)]
pub(super) struct Connections {
    pub(super) view: McpView,
    /// How long connecting may take.
    pub(super) limit: Duration,
}

fn unsupported(connection: &McpConnection) -> Vec<(&'static str, &'static str)> {
    let mut found = Vec::new();
    if connection.management == Management::Provider {
        let help = "connections that the model's provider holds are not in this release; leave it \
                    out, and this program connects";
        found.push(("`management: provider`", help));
    }
    if connection.connector_id.is_some() {
        let help = "connectors of a provider are not in this release; write `target` with an \
                    address or a command";
        found.push(("`connector_id`", help));
    }
    let is_off = |(name, value): (&String, &crate::card::Secret)| {
        name == "oauth" && matches!(value.reveal(), "false" | "off")
    };
    if !connection.auth.iter().all(is_off) {
        let help = "logging in is not in this release; give a token by `access_token` or `headers`";
        found.push(("`auth`", help));
    }
    if connection.defer_loading {
        let help = "tools are listed when the agent starts; leave it out";
        found.push(("`defer_loading: true`", help));
    }
    found
}
