//! What a run would connect to because the project says so: tool servers, and other servers for
//! models than the providers' own.

use super::ItemKind;
use super::collect::Collected;
use crate::build::used_servers;
use crate::check::Loaded;
use crate::server::{Reach, Server, variables};
use crate::trust::sha256_hex;
use tenure_models::provider::Authority;

impl Collected<'_> {
    /// Every tool server that a card uses.
    pub(super) fn servers(&mut self, loaded: &Loaded) {
        for (name, server) in used_servers(loaded) {
            let uses = |card: &&crate::card::Card| {
                card.kind.mcp().is_some_and(|mcp| {
                    mcp.servers.iter().any(|it| **it == *name)
                        || mcp.own().any(|it| it.name == name)
                })
            };
            let used: Vec<String> =
                loaded.cards.iter().filter(uses).map(|card| card.name.to_string()).collect();
            // What is hashed is what is written, values of headers and variables included.
            let written = sha256_hex(hashed(server).as_bytes());
            self.push(ItemKind::Server, described(server), Some(written), used.clone());
            if let Reach::Command { command, .. } = &server.reach {
                self.command_files(command, &used);
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
            let uses = |card: &&crate::card::Card| {
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
    text
}
