//! Model strings: `sonnet`, `openai.gpt-4o?temperature=0`, `ollama.llama3.2:1b`.

use super::alias;
use super::config::{ProviderConfig, ProviderEntry};
use super::error::{ProviderError, ProviderErrorKind as Kind, nearest};
use super::known::{self, Known};
use super::options::{Options, Reasoning};

/// A model string, understood.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spec {
    /// The provider's own name, whatever the string called it.
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) options: Options,
}

/// An alias of an alias of an alias is enough.
const MOST_ALIASES: usize = 8;

/// Reads a model string. The user's short names come before the built-in ones.
pub(super) fn parse(text: &str, config: &ProviderConfig) -> Result<Spec, ProviderError> {
    let text = text.trim();
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err(ProviderError::new(
            Kind::BadSpec,
            format!("the model {text:?} is not a name"),
            "write `provider.model`, for instance `openai.gpt-4o`, or a short name like `sonnet`",
        ));
    }
    let Expanded { name, mut options, users } = expand(text, config)?;
    let (provider, rest) = match split(&name, config) {
        Some(found) => found,
        None => match bare_owner(&name) {
            Some(owner) => (owner, name.as_str()),
            None if users.contains(&name) => return Err(circle(text, users, name)),
            None => return Err(unknown(text, &name, config)),
        },
    };
    let mut model = rest;
    // The older way to say how much to think: `o3-mini.high`.
    if let Some((before, suffix)) = rest.rsplit_once('.')
        && let Some(effort) = Reasoning::from_suffix(suffix)
    {
        model = before;
        options.reasoning = options.reasoning.or(Some(effort));
    }
    if !config.providers.contains_key(provider)
        && let Some(instead) = known::unserved(provider)
    {
        return Err(ProviderError::new(
            Kind::Unsupported,
            format!("the provider `{provider}` of the model `{text}` is not served"),
            instead,
        ));
    }
    if model.is_empty() {
        return Err(ProviderError::new(
            Kind::BadSpec,
            format!("the model `{text}` names the provider `{provider}` and no model"),
            format!("write `{provider}.<model>`"),
        ));
    }
    if model.chars().any(char::is_whitespace) {
        return Err(ProviderError::new(
            Kind::BadSpec,
            format!("the model `{text}` has a blank in its name"),
            "write the name as the provider does",
        ));
    }
    let provider = known::find(provider).map_or(provider, |known| known.name);
    Ok(Spec { provider: provider.to_owned(), model: model.to_owned(), options })
}

/// What is said about a provider, under its own name or another that it goes by.
pub(super) fn entry<'a>(
    provider: &str,
    known: Option<&Known>,
    config: &'a ProviderConfig,
) -> Option<&'a ProviderEntry> {
    let also = known.map(|known| known.also).unwrap_or_default();
    std::iter::once(&provider).chain(also).find_map(|name| config.providers.get(*name))
}

/// A string whose short names were replaced.
struct Expanded {
    name: String,
    options: Options,
    /// The user's short names that led there, in their order.
    users: Vec<String>,
}

/// Replaces short names by what they stand for; options of the string win over theirs.
fn expand(text: &str, config: &ProviderConfig) -> Result<Expanded, ProviderError> {
    let mut options = Options::default();
    let mut name = text.to_owned();
    let mut users: Vec<String> = Vec::new();
    for _ in 0..MOST_ALIASES {
        if let Some((before, query)) = name.split_once('?') {
            options = options.or(Options::parse(query, text)?);
            name = before.to_owned();
        }
        // `kimi:groq` is the model of `kimi`, served by another.
        let (base, served_by) = match name.rsplit_once(':') {
            Some((base, suffix)) if !base.is_empty() => (base, Some(suffix)),
            _ => (name.as_str(), None),
        };
        let user = config
            .aliases
            .get(&name)
            .map(|target| (target, None))
            .or_else(|| config.aliases.get(base).map(|target| (target, served_by)));
        let (target, served_by) = match user {
            // A user's name may stand for the built-in one of the same name.
            Some((target, served_by)) if !users.iter().any(|seen| seen == base) => {
                users.push(base.to_owned());
                (target.as_str(), served_by)
            }
            _ => match alias::expand(base) {
                Some(target) => (target, served_by),
                None => return Ok(Expanded { name, options, users }),
            },
        };
        name = match served_by {
            Some(suffix) => serve_by(target, suffix),
            None => target.to_owned(),
        };
    }
    Err(ProviderError::new(
        Kind::BadSpec,
        format!("the short name `{text}` leads from one short name to the next, and to no model"),
        "let one of them stand for a model: `provider.model`",
    ))
}

/// A short name that leads back to itself, and that is no model either.
fn circle(text: &str, mut users: Vec<String>, name: String) -> ProviderError {
    users.push(name);
    ProviderError::new(
        Kind::BadSpec,
        format!(
            "the short name `{text}` leads to no model: the aliases go round in a circle: {}",
            users.join(" -> ")
        ),
        "let one of them stand for a model: `provider.model`",
    )
}

fn serve_by(target: &str, suffix: &str) -> String {
    let (model, query) = target.split_once('?').unwrap_or((target, ""));
    let model = model.rsplit_once(':').map_or(model, |(base, _)| base);
    if query.is_empty() { format!("{model}:{suffix}") } else { format!("{model}:{suffix}?{query}") }
}

/// The provider that a string begins with, and the rest.
fn split<'a>(name: &'a str, config: &ProviderConfig) -> Option<(&'a str, &'a str)> {
    let is_provider = |word: &str| {
        config.providers.contains_key(word)
            || known::find(word).is_some()
            || known::unserved(word).is_some()
    };
    if let Some((provider, rest)) = name.split_once('/')
        && is_provider(provider)
    {
        return Some((provider, rest));
    }
    // A provider of the user's own may have a dot in its name.
    let dots: Vec<usize> = name.match_indices('.').map(|(at, _)| at).take(2).collect();
    dots.into_iter()
        .rev()
        .map(|at| (&name[..at], &name[at + 1..]))
        .find(|(provider, _)| is_provider(provider))
}

/// Whose model a bare name is, also with an effort behind it.
fn bare_owner(name: &str) -> Option<&'static str> {
    let base = match name.rsplit_once('.') {
        Some((base, suffix)) if Reasoning::from_suffix(suffix).is_some() => base,
        _ => name,
    };
    alias::owner(base)
}

fn unknown(text: &str, name: &str, config: &ProviderConfig) -> ProviderError {
    let providers = || {
        let own = config.providers.keys().map(String::as_str);
        own.chain(known::KNOWN.iter().map(|known| known.name))
    };
    let prefix = name.split(['.', '/']).next().filter(|prefix| prefix.len() < name.len());
    let short = || {
        let own = config.aliases.keys().map(String::as_str);
        own.chain(alias::ALIASES.iter().map(|(alias, _)| *alias))
    };
    let help = if let Some(meant) = nearest(name, short()) {
        format!("did you mean `{meant}`?")
    } else if let Some((prefix, meant)) =
        prefix.and_then(|prefix| Some((prefix, nearest(prefix, providers())?)))
    {
        format!("did you mean `{meant}{}`?", &name[prefix.len()..])
    } else {
        let known: Vec<&str> = providers().collect();
        format!("write `provider.model`; known providers are {}", known.join(", "))
    };
    ProviderError::new(
        Kind::UnknownModel,
        format!("no provider is known for the model `{text}`"),
        help,
    )
}
