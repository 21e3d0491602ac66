//! What a configuration says about models: the project's and the user's own have the same tables.
//!
//! What decides over keys is the user's alone. A project that could say where a key comes from, or
//! where it may go, could send it to itself.

use super::reader::{Settings, Written, span};
use crate::diagnostic::Code;
use crate::source::Span;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tenure_models::provider::{Authority, KeySource, Price, ProviderConfig, ProviderEntry, Wire};
use toml::de::DeTable;

/// The reference to the model of cards that name none.
pub(crate) const SYSTEM_DEFAULT: &str = "$system.default";
pub(crate) const DEFAULT_MODEL: &str = "default_model";
pub(crate) const PROVIDERS: &str = "providers";
pub(crate) const ALIASES: &str = "aliases";
pub(crate) const PRICES: &str = "prices";

const KINDS: &[(&str, Wire)] = &[
    ("openai", Wire::OpenAi),
    ("anthropic", Wire::Anthropic),
    ("gemini", Wire::Gemini),
    ("ollama", Wire::Ollama),
];
/// What only the user may say about a provider.
const OF_THE_USER: &[&str] = &["api_key_env", "api_key_file", "allow_hosts", "allow_commands"];

/// What a configuration says about models.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ModelSettings {
    /// `default_model`: the model of agents whose cards name none.
    pub default_model: Option<Written>,
    /// `providers`, by name.
    pub providers: BTreeMap<String, ProviderEntry>,
    /// `aliases`: short names for models.
    pub aliases: BTreeMap<String, Written>,
    /// `prices`: what models cost, in US dollars for a million tokens.
    pub prices: BTreeMap<String, Price>,
}

impl ModelSettings {
    /// The project's settings, and before them the user's own: where both say something, the user
    /// counts.
    pub fn merged(project: &Self, user: &Self) -> ProviderConfig {
        let mut config = ProviderConfig::default();
        for settings in [project, user] {
            for (name, said) in &settings.providers {
                let entry = config.providers.entry(name.clone()).or_default();
                entry.wire = said.wire.or(entry.wire);
                entry.base_url = said.base_url.clone().or(entry.base_url.take());
                entry.key = said.key.clone().or(entry.key.take());
                entry.allow_hosts.extend(said.allow_hosts.iter().cloned());
                entry.allow_commands.extend(said.allow_commands.iter().cloned());
            }
            let aliases = settings.aliases.iter();
            config.aliases.extend(aliases.map(|(name, it)| (name.clone(), it.text.clone())));
            config.prices.extend(settings.prices.iter().map(|(name, it)| (name.clone(), *it)));
        }
        if let Some(default) = Self::default_of(project, user) {
            config.aliases.entry(SYSTEM_DEFAULT.to_owned()).or_insert(default.text.clone());
        }
        config
    }

    /// Returns `true` if a command may have the key of a provider in its environment.
    pub(crate) fn may_have_key(&self, provider: &str, command: &str) -> bool {
        let entry = self.providers.get(provider);
        entry.is_some_and(|entry| entry.allow_commands.iter().any(|it| it.trim() == command))
    }

    /// Returns the files that hold keys.
    pub(crate) fn key_files(&self) -> impl Iterator<Item = &Path> {
        self.providers.values().filter_map(|entry| match &entry.key {
            Some(KeySource::File(path)) => Some(path.as_path()),
            _ => None,
        })
    }

    /// The model of agents whose cards name none, or say `$system.default`: the project's, else the
    /// user's.
    pub(crate) fn default_of<'a>(project: &'a Self, user: &'a Self) -> Option<&'a Written> {
        let said = [project, user].into_iter().filter_map(|it| it.default_model.as_ref());
        said.into_iter().find(|it| it.text != SYSTEM_DEFAULT)
    }
}

/// Whose configuration is read.
pub(crate) enum Owner<'a> {
    Project,
    /// The user's, in this folder.
    User(&'a Path),
}

pub(crate) fn read(
    reader: &mut Settings<'_>,
    root: &DeTable<'_>,
    owner: &Owner<'_>,
) -> ModelSettings {
    let mut settings = ModelSettings {
        default_model: reader.written(root, DEFAULT_MODEL, DEFAULT_MODEL),
        ..ModelSettings::default()
    };
    let providers = reader.table(root, PROVIDERS);
    for (name, _) in providers.into_iter().flatten() {
        let name = name.get_ref().to_string();
        let Some(table) = providers.and_then(|all| reader.table_in(all, PROVIDERS, &name)) else {
            continue;
        };
        settings.providers.insert(name.clone(), provider(reader, table, &name, owner));
    }
    let aliases = reader.table(root, ALIASES);
    for (name, _) in aliases.into_iter().flatten() {
        let name = name.get_ref();
        let of = format!("{ALIASES}.{name}");
        if let Some(model) = aliases.and_then(|all| reader.written(all, &of, name)) {
            settings.aliases.insert(name.to_string(), model);
        }
    }
    let prices = reader.table(root, PRICES);
    for (name, _) in prices.into_iter().flatten() {
        let model = name.get_ref();
        let Some(table) = prices.and_then(|all| reader.table_in(all, PRICES, model)) else {
            continue;
        };
        if let Some(price) = price(reader, table, model, span(name)) {
            settings.prices.insert(model.to_string(), price);
        }
    }
    settings
}

fn provider(
    reader: &mut Settings<'_>,
    table: &DeTable<'_>,
    name: &str,
    owner: &Owner<'_>,
) -> ProviderEntry {
    let of = format!("{PROVIDERS}.{name}");
    let path = |key: &str| format!("{of}.{key}");
    let mut entry = ProviderEntry::default();
    let mut known = vec!["kind", "base_url"];
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let looks_like_a_key = matches!(name, "api_key" | "key" | "token" | "api_token");
        let refused = match owner {
            Owner::Project => looks_like_a_key || OF_THE_USER.contains(&name),
            Owner::User(_) => looks_like_a_key,
        };
        if refused {
            key_refused(reader, &path(name), [span(key), span(value)], owner);
            known.push(name);
        }
    }
    let authority = match owner {
        Owner::Project => Authority::Project,
        Owner::User(folder) => {
            known.extend(OF_THE_USER);
            entry.key = key_source(reader, table, &of, folder);
            entry.allow_hosts =
                reader.texts(table, &path("allow_hosts"), "allow_hosts").unwrap_or_default();
            entry.allow_commands =
                reader.texts(table, &path("allow_commands"), "allow_commands").unwrap_or_default();
            Authority::User
        }
    };
    reader.only(table, &format!("[{of}]"), &known);
    entry.wire = reader.one_of(table, &path("kind"), "kind", KINDS);
    let url = reader.url(table, &path("base_url"), "base_url");
    entry.base_url = url.map(|(url, _)| (url, authority));
    entry
}

/// Refuses what would put a key, or the power over it, where it does not belong.
fn key_refused(reader: &mut Settings<'_>, path: &str, [at, value]: [Span; 2], owner: &Owner<'_>) {
    let (message, help) = match owner {
        Owner::Project => (
            format!("`{path}` cannot be said by a project"),
            "keys are yours and not the project's: it could send them anywhere; say it in your own \
             configuration, ~/.config/tenure/config.toml, under the same table",
        ),
        Owner::User(_) => (
            format!("`{path}` would keep a key in the configuration"),
            "name the variable that holds it (api_key_env) or the file (api_key_file)",
        ),
    };
    reader.hidden(Code::KeyInConfig, at, value, message, help);
}

/// Where a provider's key comes from, as the user says.
fn key_source(
    reader: &mut Settings<'_>,
    table: &DeTable<'_>,
    of: &str,
    folder: &Path,
) -> Option<KeySource> {
    let env = reader.text(table, &format!("{of}.api_key_env"), "api_key_env");
    let file = reader.text(table, &format!("{of}.api_key_file"), "api_key_file");
    match (env, file) {
        (Some(_), Some((_, at))) => {
            let message = format!("[{of}] has both `api_key_env` and `api_key_file`");
            reader.problem(Code::BadSetting, at, message, "keep one of the two");
            None
        }
        (Some((name, _)), None) => Some(KeySource::Env(name.trim().to_owned())),
        (None, Some((file, _))) => Some(KeySource::File(home(file.trim(), folder))),
        (None, None) => None,
    }
}

/// The file that a path in the user's configuration means.
fn home(path: &str, folder: &Path) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => folder.join(path),
    }
}

fn price(reader: &mut Settings<'_>, table: &DeTable<'_>, model: &str, at: Span) -> Option<Price> {
    let of = format!("{PRICES}.\"{model}\"");
    reader.only(table, &format!("[{of}]"), &["input", "output", "cached"]);
    let mut price = Price::default();
    let mut missing = Vec::new();
    for (key, place) in [("input", &mut price.input), ("output", &mut price.output)] {
        if table.get(key).is_none() {
            missing.push(key);
        }
        *place = reader.amount(table, &format!("{of}.{key}"), key).unwrap_or_default();
    }
    price.cached = reader.amount(table, &format!("{of}.cached"), "cached");
    if !missing.is_empty() {
        let message = format!("the price of `{model}` has no {}", missing.join(" and no "));
        let help = "give both input and output, in US dollars for a million tokens";
        reader.problem(Code::BadSetting, at, message, help);
        return None;
    }
    Some(price)
}
