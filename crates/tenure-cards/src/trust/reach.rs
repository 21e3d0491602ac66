//! What a run would connect to because the project says so, tool servers and the servers of models,
//! and what of the environment would go there.

use super::collect::Collector;
use super::{Guards, ItemKind};
use crate::build::{is_internal, used_servers};
use crate::card::{Card, CardKind, Place};
use crate::check::Loaded;
use crate::server::{Reach, Server, variables};
use crate::trust::sha256_hex;
use tenure_models::provider::Authority;

impl Collector<'_> {
    /// Every tool server that a card uses.
    pub(super) fn servers(&mut self, loaded: &Loaded) {
        for (name, server) in used_servers(loaded) {
            let uses = |card: &&Card| {
                card.kind.mcp().is_some_and(|mcp| {
                    mcp.servers.iter().any(|it| **it == *name)
                        || mcp.own().any(|it| it.name == name)
                })
            };
            let users = || loaded.cards.iter().filter(uses);
            let used: Vec<String> = users().map(|card| card.name.to_string()).collect();
            let taken = users().map(|card| format!("{}{}", card.name, taken(card, &name)));
            // What is hashed is what is written, values of headers and variables included.
            let written = sha256_hex(hashed(server).as_bytes());
            self.push(ItemKind::Server, described(server), Some(written), taken.collect());
            if let Some(grant) = &server.sandbox {
                self.granted(grant, &format!("tool server {name}"));
            }
            if let Reach::Command { command, .. } = &server.reach {
                let mut guards = Guards::new();
                guards.sandbox(server.sandbox.as_ref(), "");
                self.guards(format!("tool server {name}: {}", server.written()), guards);
                self.command_files(command, &used);
            }
        }
    }

    /// Every provider that the models of cards lead to, and the key that goes there. What the user
    /// chose for a run, or for cards that name no model, is the user's own.
    pub(super) fn models(&mut self, loaded: &Loaded) {
        for card in &loaded.cards {
            let variables = card.key_variables();
            let has_own = card.kind.model_fields().is_some_and(|it| it.api_key.is_some());
            let mut is_remote = false;
            for model in models_of(card, loaded) {
                is_remote |= self.reached(loaded, model, &variables, has_own, &card.name);
            }
            for name in variables.iter().filter(|_| !is_remote) {
                let what = format!("{name}: its value is the key of whatever model is chosen");
                self.push(ItemKind::Environment, what, None, vec![card.name.to_string()]);
            }
        }
    }

    /// Adds the provider that a model leads to which no card names, with the user's key; none means
    /// the project's default. `used` says who asks it.
    pub fn model(&mut self, loaded: &Loaded, model: Option<&str>, used: &str) {
        let default = loaded.project.config.models.default_model.as_ref();
        if let Some(model) = model.or(default.map(|it| &*it.text)) {
            self.reached(loaded, model, &[], false, used);
        }
    }

    /// Adds a variable of the environment whose value goes into something that no card says.
    pub fn environment(&mut self, variable: &str, into: &str, used: &str) {
        let what = format!("{variable}: its value goes into {into}");
        self.push(ItemKind::Environment, what, None, vec![used.to_owned()]);
    }

    /// Whether a model leads to a provider, which is then added with the key that goes there.
    fn reached(
        &mut self,
        loaded: &Loaded,
        model: &str,
        variables: &[&str],
        has_own: bool,
        used: &str,
    ) -> bool {
        if is_internal(model) {
            return false;
        }
        let providers = loaded.providers();
        let Ok(target) = providers.resolve(model) else { return false };
        let (provider, host) = (&target.provider, &target.host);
        for name in variables {
            if !providers.owners_of(name).contains(provider) {
                let what = format!("{name}: its value goes to {host} as the key of {provider}");
                self.push(ItemKind::Environment, what, None, vec![used.to_owned()]);
            }
        }
        // An address of the project's is an item of its own.
        if target.url_by != Authority::Project {
            let statuses = providers.known_providers();
            let status = statuses.iter().find(|status| status.name == *provider);
            let is_needed = status.is_some_and(|status| !status.keyless);
            let key = match (variables, &*providers.key_variables(provider)) {
                ([], _) if has_own => "with the key that the card gives".to_owned(),
                ([], _) if !target.may_have_key => "without a key".to_owned(),
                ([], []) => "with your key".to_owned(),
                ([], own) if is_needed => format!("with your key {}", own.join(" or ")),
                ([], own) => format!("with your key {}, if it is set", own.join(" or ")),
                (given, _) => format!("with the key {}", given.join(" and ")),
            };
            let what = format!("{provider} requests go to {host} {key}");
            self.push(ItemKind::Address, what, None, vec![used.to_owned()]);
        }
        true
    }

    /// Every variable whose value a card takes, set or not. Those of keys and headers are shown with
    /// where they go.
    pub(super) fn variables(&mut self, card: &Card) {
        for found in &card.expansions {
            let field = card.field_at(found.span);
            let is_shown =
                found.place == Place::Secret && matches!(field, "api_key" | "mcp_connect");
            if !is_shown {
                let what = format!("{}: its value goes into `{field}`", found.name);
                self.push(ItemKind::Environment, what, None, vec![card.name.to_string()]);
            }
        }
    }

    /// Every address of a model's server that the project chose.
    pub(super) fn addresses(&mut self, loaded: &Loaded) {
        let providers = loaded.providers();
        for status in providers.known_providers() {
            if status.url_by != Authority::Project {
                continue;
            }
            let key = match status.may_have_key {
                true => "your key is sent there, because your configuration allows it",
                false => "your key is NOT sent there",
            };
            let what = format!("{} requests go to {}; {key}", status.name, status.host);
            let uses = |card: &&Card| {
                let fields = card.kind.model_fields();
                let named =
                    fields.and_then(|it| it.request_params.model.as_ref().or(it.model.as_ref()));
                let target = named.and_then(|model| providers.resolve(model).ok());
                target.is_some_and(|target| target.provider == status.name)
            };
            let used = loaded.cards.iter().filter(uses).map(|card| card.name.to_string()).collect();
            self.push(ItemKind::Address, what, None, used);
        }
    }
}

/// The models that the project names for a card.
fn models_of<'a>(card: &'a Card, loaded: &'a Loaded) -> Vec<&'a str> {
    let Some(fields) = card.kind.model_fields() else { return Vec::new() };
    let own = fields.request_params.model.as_ref().or(fields.model.as_ref());
    let default = loaded.project.config.models.default_model.as_ref();
    let own = own.map(String::as_str).or(default.map(|it| &*it.text));
    let helpers = match &card.kind {
        CardKind::Agent(agent) => agent.subagent_model.as_deref(),
        _ => None,
    };
    own.into_iter().chain(helpers).collect()
}

/// What a card takes of a server, if it is not all: ` (tools read_*, list_*; no prompts)`.
fn taken(card: &Card, server: &str) -> String {
    let Some(mcp) = card.kind.mcp() else { return String::new() };
    let kinds = [("tools", &mcp.tools), ("resources", &mcp.resources), ("prompts", &mcp.prompts)];
    let said: Vec<String> = kinds
        .into_iter()
        .filter_map(|(kind, filters)| match &**filters.get(server)? {
            [] => Some(format!("no {kind}")),
            patterns => Some(format!("{kind} {}", patterns.join(", "))),
        })
        .collect();
    if said.is_empty() { String::new() } else { format!(" ({})", said.join("; ")) }
}

/// What a person reads of a server: `files: npx -y a-server (env TOKEN from ${GH_TOKEN})`.
fn described(server: &Server) -> String {
    let given: Vec<String> = server
        .given()
        .iter()
        .map(|(name, value)| match &*variables(value.reveal()) {
            [] => name.clone(),
            from => format!("{name} from {}", from.join(" and ")),
        })
        .collect();
    let kind = match &server.reach {
        Reach::Command { .. } => "env",
        Reach::Url { .. } => "headers",
    };
    let given = match given.is_empty() {
        true => String::new(),
        false => format!(" ({kind} {})", given.join(", ")),
    };
    format!("{}: {}{given}", server.name, server.written())
}

fn hashed(server: &Server) -> String {
    let mut text = server.written();
    for (name, value) in server.given() {
        text.push_str(&format!("\n{name:?} {:?}", value.reveal()));
    }
    if let Reach::Command { command, .. } = &server.reach {
        text.push_str(&format!("\n{:?}", command.dir.file_name()));
    }
    if let Some(grant) = &server.sandbox {
        text.push_str(&format!("\nsandbox {grant}"));
    }
    text
}
