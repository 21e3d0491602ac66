//! From a model string to a model that can be called.

#[cfg(feature = "providers")]
use super::clients::Clients;
use super::config::{Authority, KeySource, Price, ProviderConfig, ProviderEntry, Timeouts, Wire};
use super::error::{ProviderError, ProviderErrorKind as Kind, USER_CONFIG};
use super::host::{Address, from_ollama_host};
use super::key::{self, ApiKey};
use super::known::{self, KNOWN, Known};
#[cfg(not(feature = "providers"))]
use super::left_out::{Clients, RemoteModel, Route};
#[cfg(feature = "providers")]
use super::model::{RemoteModel, Route};
use super::options::Options;
use super::{price, spec};
use std::fmt;
use std::sync::Arc;

type Env = dyn Fn(&str) -> Option<String> + Send + Sync;

/// The providers that a program can reach: what is said about them, the environment, and one HTTP
/// client. Cheap to clone.
#[derive(Clone)]
pub struct Providers(Arc<Inner>);

struct Inner {
    config: ProviderConfig,
    env: Box<Env>,
    clients: Clients,
}

/// Where a model string leads.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelTarget {
    /// The provider's name.
    pub provider: String,
    /// The model's name, as the provider knows it.
    pub model: String,
    /// The language of its server.
    pub wire: Wire,
    /// The address of its server.
    pub base_url: String,
    /// The host of that address.
    pub host: String,
    /// Who chose the address.
    pub url_by: Authority,
    /// The variable or the file that the key comes from. `None` if nothing but a keyless call is
    /// possible.
    pub key_name: Option<String>,
    /// Whether the key is there. A file is not looked at, and counts as there.
    pub has_key: bool,
    /// Whether the user's key may be sent to the host.
    pub may_have_key: bool,
    /// What it costs, if that is known.
    pub price: Option<Price>,
    pub(super) options: Options,
}

/// What is known about a provider before it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderStatus {
    /// Its name.
    pub name: String,
    /// The language of its server.
    pub wire: Wire,
    /// The host of its server.
    pub host: String,
    /// Who chose the host.
    pub url_by: Authority,
    /// The variable or the file that the key comes from.
    pub key_name: String,
    /// Whether the key is there. A file is not looked at, and counts as there.
    pub has_key: bool,
    /// Whether the user's key may be sent to the host.
    pub may_have_key: bool,
    /// Whether it answers without a key.
    pub keyless: bool,
    /// Why it cannot be called at all, if so: its address is none. Its host is empty then.
    pub problem: Option<ProviderError>,
}

impl Providers {
    /// Providers with the keys of the process's environment.
    pub fn new(config: ProviderConfig) -> Self {
        Self::with_env(config, |name| std::env::var(name).ok())
    }

    /// Providers with the keys of another environment.
    pub fn with_env(
        config: ProviderConfig,
        env: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Inner { config, env: Box::new(env), clients: Clients::default() }))
    }

    /// Where a model string leads. Neither the network nor a key file is touched.
    pub fn resolve(&self, spec: &str) -> Result<ModelTarget, ProviderError> {
        Ok(self.find(spec)?.target)
    }

    /// The model that a string names, with the user's key. The network is not touched.
    pub fn model(&self, spec: &str) -> Result<RemoteModel, ProviderError> {
        Ok(RemoteModel::new(self.clone(), self.route(spec)?))
    }

    /// The model that a string names, with a key that came with it: from a card, for instance. A
    /// key of the project's own may go where the project says; the user's may not.
    pub fn model_with_key(
        &self,
        spec: &str,
        key: ApiKey,
        key_from: Authority,
    ) -> Result<RemoteModel, ProviderError> {
        let found = self.find(spec)?;
        Clients::check(spec)?;
        let provider = &found.target.provider;
        if !key.is_sendable() {
            return Err(ProviderError::new(
                Kind::NoKey,
                format!("the key that came with `{spec}` is empty, or no header can carry it"),
                "write the key alone, on one line, or leave it out",
            ));
        }
        match key_from {
            Authority::User => {
                found.address.may_have_users_key(provider, found.known, found.entry)?;
            }
            Authority::Project => found.address.is_safe_for_a_key(provider)?,
        }
        let http = self.0.clients.for_address(&found.address)?;
        let timeouts = self.0.config.timeouts;
        Ok(RemoteModel::new(self.clone(), Route::new(found.target, Some(key), http, timeouts)))
    }

    /// Every provider that is known or configured, by name.
    pub fn known_providers(&self) -> Vec<ProviderStatus> {
        let own = self.0.config.providers.keys().filter(|name| known::find(name).is_none());
        let mut names: Vec<&str> =
            KNOWN.iter().map(|known| known.name).chain(own.map(String::as_str)).collect();
        names.sort_unstable();
        names.into_iter().map(|name| self.status(name)).collect()
    }

    /// The variables that the key of a provider may come from; none if it comes from a file.
    pub fn key_variables(&self, provider: &str) -> Vec<String> {
        let known = known::find(provider);
        match spec::entry(provider, known, &self.0.config).and_then(|entry| entry.key.as_ref()) {
            Some(KeySource::Env(name)) => vec![name.clone()],
            Some(KeySource::File(_)) => Vec::new(),
            None => known::key_env(provider, known),
        }
    }

    /// The providers whose key a variable holds: by the name that everybody gives it, or because
    /// the configuration says so.
    pub fn owners_of(&self, variable: &str) -> Vec<String> {
        let own = self.0.config.providers.keys().filter(|name| known::find(name).is_none());
        let names = KNOWN.iter().map(|known| known.name).chain(own.map(String::as_str));
        let is_owner = |name: &&str| {
            known::key_env(name, known::find(name)).iter().any(|it| it == variable)
                || self.key_variables(name).iter().any(|it| it == variable)
        };
        names.filter(is_owner).map(str::to_owned).collect()
    }

    /// Checks that the user's key of a provider may be sent to an address that a project names, in
    /// whatever way: to the provider's own host, or to one that the user's own configuration chooses or
    /// allows; and never by http beyond this machine.
    pub fn check_key_target(&self, provider: &str, url: &str) -> Result<(), ProviderError> {
        let url = url.split(['?', '#']).next().unwrap_or_default();
        let address = Address::parse(provider, url, Authority::Project)?;
        let known = known::find(provider);
        let entry = spec::entry(provider, known, &self.0.config);
        let chosen = entry.and_then(|entry| entry.base_url.as_ref());
        let is_chosen = chosen.is_some_and(|(chosen, by)| {
            *by == Authority::User
                && Address::parse(provider, chosen, *by)
                    .is_ok_and(|chosen| chosen.authority() == address.authority())
        });
        if is_chosen {
            return address.is_safe_for_a_key(provider);
        }
        address.may_have_users_key(provider, known, entry)
    }

    pub(super) fn timeouts(&self) -> Timeouts {
        self.0.config.timeouts
    }

    pub(super) fn price(&self, provider: &str, model: &str) -> Option<Price> {
        price::find(provider, model, &self.0.config.prices)
    }

    fn status(&self, name: &str) -> ProviderStatus {
        let known = known::find(name);
        let entry = spec::entry(name, known, &self.0.config);
        let source = self.key_source(name, known, entry);
        let said = entry.and_then(|entry| entry.wire).or(known.map(|known| known.wire));
        let mut status = ProviderStatus {
            name: name.to_owned(),
            wire: said.unwrap_or(Wire::OpenAi),
            host: String::new(),
            url_by: Authority::User,
            key_name: key::source_name(&source),
            has_key: self.is_there(&source),
            may_have_key: false,
            keyless: works_without_key(known, entry),
            problem: None,
        };
        match self.server(name, known, entry) {
            Ok((_, address)) => {
                status.host = address.authority();
                status.url_by = address.by;
                status.may_have_key = address.may_have_users_key(name, known, entry).is_ok();
            }
            Err(error) => status.problem = Some(error),
        }
        status
    }

    pub(super) fn route(&self, spec: &str) -> Result<Route, ProviderError> {
        let found = self.find(spec)?;
        Clients::check(spec)?;
        let provider = &found.target.provider;
        let allowed = found.address.may_have_users_key(provider, found.known, found.entry);
        let keyless = works_without_key(found.known, found.entry);
        let name = key::source_name(&found.source);
        let (key, why) = match allowed {
            Err(refused) if keyless && self.is_there(&found.source) => {
                let why =
                    format!("the one of {name} is kept, because {refused}; {}", refused.help());
                (None, Some(why))
            }
            Err(_) if keyless => (None, Some(format!("{name} is not set"))),
            Err(refused) => return Err(refused),
            Ok(()) => {
                let key = key::load(provider, &found.source, &*self.0.env)?;
                let why = key.is_none().then(|| format!("{name} is not set"));
                (key, why)
            }
        };
        if key.is_none() && !keyless {
            return Err(no_key(spec, provider, found.known, &found.source));
        }
        let http = self.0.clients.for_address(&found.address)?;
        let route = Route::new(found.target, key, http, self.0.config.timeouts);
        Ok(route.without_key_because(why))
    }

    fn find(&self, text: &str) -> Result<Found<'_>, ProviderError> {
        let parsed = spec::parse(text, &self.0.config)?;
        let known = known::find(&parsed.provider);
        let entry = spec::entry(&parsed.provider, known, &self.0.config);
        let (wire, address) = self.server(&parsed.provider, known, entry)?;
        let source = self.key_source(&parsed.provider, known, entry);
        let free = known.is_some_and(|known| known.name == "ollama") && address.is_loopback();
        let price = price::find(&parsed.provider, &parsed.model, &self.0.config.prices)
            .or_else(|| free.then(Price::default));
        let may_have_key = address.may_have_users_key(&parsed.provider, known, entry).is_ok();
        let target = ModelTarget {
            provider: parsed.provider,
            model: parsed.model,
            wire,
            base_url: address.base_url.clone(),
            host: address.authority(),
            url_by: address.by,
            key_name: Some(key::source_name(&source)),
            has_key: self.is_there(&source),
            may_have_key,
            price,
            options: parsed.options,
        };
        Ok(Found { target, address, known, entry, source })
    }

    /// The language and the address of a provider's server. What the user says comes before what a
    /// project says.
    fn server(
        &self,
        provider: &str,
        known: Option<&Known>,
        entry: Option<&ProviderEntry>,
    ) -> Result<(Wire, Address), ProviderError> {
        let said = entry.and_then(|entry| entry.base_url.as_ref());
        let by_user = said.filter(|(_, by)| *by == Authority::User);
        let env = || {
            let names = known.map(|known| known.url_env).unwrap_or_default();
            names.iter().find_map(|name| {
                let value = (self.0.env)(name).filter(|value| !value.trim().is_empty())?;
                let url = if *name == "OLLAMA_HOST" { from_ollama_host(&value) } else { value };
                Some((*name, url))
            })
        };
        let variable = if by_user.is_some() { None } else { env() };
        let (url, by) = by_user
            .cloned()
            .or_else(|| Some((variable.as_ref()?.1.clone(), Authority::User)))
            .or_else(|| said.cloned())
            .or_else(|| Some((known?.base_url.to_owned(), Authority::User)))
            .ok_or_else(|| incomplete(provider, "base_url", "https://api.example.com/v1"))?;
        let wire = entry
            .and_then(|entry| entry.wire)
            .or_else(|| Some(known?.wire))
            .ok_or_else(|| incomplete(provider, "kind", "openai"))?;
        let address = match variable {
            Some((variable, _)) => Address::from_variable(variable, &url),
            None => Address::parse(provider, &url, by),
        };
        Ok((wire, address?))
    }

    fn key_source(
        &self,
        provider: &str,
        known: Option<&Known>,
        entry: Option<&ProviderEntry>,
    ) -> KeySource {
        if let Some(source) = entry.and_then(|entry| entry.key.as_ref()) {
            return source.clone();
        }
        let Some(known) = known else { return KeySource::Env(known::own_key_env(provider)) };
        let sources = known.key_env.iter().map(|name| KeySource::Env((*name).to_owned()));
        let mut there = sources.clone().filter(|source| self.is_there(source));
        there
            .next()
            .or_else(|| sources.clone().next())
            .unwrap_or_else(|| KeySource::Env(known::own_key_env(provider)))
    }

    fn is_there(&self, source: &KeySource) -> bool {
        match source {
            KeySource::Env(name) => (self.0.env)(name).is_some_and(|key| !key.trim().is_empty()),
            KeySource::File(_) => true,
        }
    }
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Providers").field("config", &self.0.config).finish_non_exhaustive()
    }
}

/// A model string that led somewhere, with what decides about its key.
struct Found<'a> {
    target: ModelTarget,
    address: Address,
    known: Option<&'static Known>,
    entry: Option<&'a ProviderEntry>,
    source: KeySource,
}

/// A server of the user's or the project's own needs a key only if the user says where it is.
fn works_without_key(known: Option<&Known>, entry: Option<&ProviderEntry>) -> bool {
    known.map_or_else(|| entry.is_none_or(|entry| entry.key.is_none()), |known| known.keyless)
}

fn incomplete(provider: &str, field: &str, example: &str) -> ProviderError {
    ProviderError::new(
        Kind::BadSpec,
        format!("the provider `{provider}` is not known by name, and has no `{field}`"),
        format!("add under [providers.{provider}]: {field} = \"{example}\""),
    )
}

fn no_key(spec: &str, provider: &str, known: Option<&Known>, source: &KeySource) -> ProviderError {
    let name = key::source_name(source);
    let names = known.map(|known| known.key_env).unwrap_or_default();
    let names = if names.contains(&name.as_str()) { names.join(" or ") } else { name };
    ProviderError::new(
        Kind::NoKey,
        format!(
            "the model `{spec}` needs a key, and {names} is not set; without a key only the \
             internal models work: passthrough, playback, slow, silent, script:<file>"
        ),
        format!(
            "set {names}, or put the key into a file and name it in {USER_CONFIG}: \
             [providers.{provider}] api_key_file = \"<path>\""
        ),
    )
}
