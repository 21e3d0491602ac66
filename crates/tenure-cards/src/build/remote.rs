//! Models over the network.
//!
//! A name that means nothing is an error of the card. A key that is missing is none: the same card
//! runs where the key is. It is what a run needs, and refuses to begin without.

use super::agent::Workshop;
use super::foreign::foreign;
use super::model::{Chosen, Named};
use crate::card::{Card, ModelFields};
use crate::check::Loaded;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::feature::Feature;
use crate::team::ModelExplanation;
use std::sync::Arc;
use tenure_models::provider::{
    ApiKey, Authority, ModelTarget, ProviderError, ProviderErrorKind, Providers, RemoteModel,
};

/// The model of this name. Touches no network.
pub(super) fn choose(named: &Named<'_>, card: &Card, workshop: &mut Workshop<'_>) -> Chosen {
    let text = named.text.trim();
    let target = match workshop.providers.resolve(text) {
        Ok(target) => target,
        Err(error) => {
            refuse(&error, named, card, workshop);
            return Chosen::local(None);
        }
    };
    let key = own_key(card);
    if let Some(found) = foreign(card, &target, &workshop.providers) {
        workshop.report.push(found);
        return Chosen { remote: Some(explained(&target, &key)), ..Chosen::local(None) };
    }
    let model = match &key {
        OwnKey::None => workshop.providers.model(text),
        OwnKey::Given(key) => {
            workshop.providers.model_with_key(text, key.clone(), Authority::Project)
        }
        OwnKey::Taken(key, _) => {
            workshop.providers.model_with_key(text, key.clone(), Authority::User)
        }
        OwnKey::Unset(variable) => {
            let message = format!(
                "the agent `{}` takes its key from {variable}, which is not set",
                card.name
            );
            let help = format!("export {variable}=…, or leave out `api_key`");
            let place = super::model::place(card, "api_key");
            let found = Diagnostic::new(Code::RemoteModel, &card.source, place, message);
            workshop.needs.push(found.help(help));
            return Chosen { remote: Some(explained(&target, &key)), ..Chosen::local(None) };
        }
    };
    let remote = Some(explained(&target, &key));
    match model {
        Ok(model) => Chosen { model: Arc::<RemoteModel>::new(model), remote },
        Err(error) => {
            match &key {
                OwnKey::Taken(_, variables)
                    if error.kind() == ProviderErrorKind::HostNotAllowed =>
                {
                    withhold(&error, variables, &target, card, workshop);
                }
                _ => refuse(&error, named, card, workshop),
            }
            Chosen { remote, ..Chosen::local(None) }
        }
    }
}

/// Refuses to send a variable's value, which may be anything, to a host that the project chose.
fn withhold(
    error: &ProviderError,
    variables: &str,
    target: &ModelTarget,
    card: &Card,
    workshop: &mut Workshop<'_>,
) {
    let message = format!(
        "the card of `{}` wants to send the value of {variables} to {}, which the project chose; \
         it is not sent",
        card.name, target.host
    );
    let help = format!(
        "leave out `api_key`, unless you know that this value is meant for that server; only then: \
         {}",
        error.help()
    );
    let place = super::model::place(card, "api_key");
    let found = Diagnostic::new(Code::RemoteModel, &card.source, place, message);
    workshop.needs.push(found.help(help));
}

fn refuse(error: &ProviderError, named: &Named<'_>, card: &Card, workshop: &mut Workshop<'_>) {
    use ProviderErrorKind as Kind;
    match error.kind() {
        Kind::NoKey | Kind::KeyFile | Kind::HostNotAllowed | Kind::BadVariable => {
            let message = format!("the agent `{}` cannot use its model: {error}", card.name);
            let found = named.problem(Code::RemoteModel, card, message, error.help());
            workshop.needs.push(found);
        }
        Kind::NotBuilt => {
            let message = Feature::Providers.missing(&format!("the model `{}`", named.text.trim()));
            let help = Feature::Providers.help();
            let found = named.problem(Code::NotBuilt, card, message, &help);
            workshop.report.push(found);
        }
        _ => {
            let found = named.problem(Code::UnknownModel, card, error.to_string(), error.help());
            workshop.report.push(found);
        }
    }
}

/// The key that a card gives.
enum OwnKey {
    None,
    /// One that is written in the card, and is the project's own.
    Given(ApiKey),
    /// One from the variables of these names, which is the user's.
    Taken(ApiKey, String),
    /// One that is to come from a variable which is not set.
    Unset(String),
}

fn own_key(card: &Card) -> OwnKey {
    let Some(key) =
        card.kind.model_fields().and_then(|fields: &ModelFields| fields.api_key.as_ref())
    else {
        return OwnKey::None;
    };
    let place = card.tree().field("api_key").map(|node| node.span);
    let variables = card.expansions.iter().filter(|it| Some(it.span) == place);
    let mut variables: Vec<_> = variables.collect();
    if let Some(unset) = variables.iter().find(|it| !it.is_resolved) {
        return OwnKey::Unset(unset.name.clone());
    }
    // What comes from the environment is the user's, although the project says to use it; what is
    // written in the card is the project's own, and may go where the project says.
    let key = ApiKey::new(key.reveal());
    variables.retain(|it| it.secret.is_some());
    let names: Vec<&str> = variables.iter().map(|it| it.name.as_str()).collect();
    match names.is_empty() {
        true => OwnKey::Given(key),
        false => OwnKey::Taken(key, names.join(" and ")),
    }
}

fn explained(target: &ModelTarget, own: &OwnKey) -> ModelExplanation {
    let key = match own {
        OwnKey::Taken(_, variables) if !target.may_have_key => {
            format!(
                "not sent: api_key of the card is from {variables}, and the project chose the host"
            )
        }
        OwnKey::Taken(_, variables) => format!("api_key of the card, from {variables}"),
        OwnKey::Given(_) => "api_key of the card".to_owned(),
        OwnKey::Unset(variable) => {
            format!("api_key of the card, from {variable}, which is not set")
        }
        OwnKey::None => key_of(target),
    };
    ModelExplanation {
        provider: target.provider.clone(),
        model: target.model.clone(),
        host: target.host.clone(),
        host_by_project: target.url_by == Authority::Project,
        key,
    }
}

fn key_of(target: &ModelTarget) -> String {
    match &target.key_name {
        Some(_) if !target.may_have_key => "none: the project chose the host".to_owned(),
        Some(name) if target.has_key => name.clone(),
        Some(name) => format!("{name}, which is not set"),
        None => "none".to_owned(),
    }
}

/// Reports every alias that leads to no model.
pub(super) fn check_aliases(loaded: &Loaded, providers: &Providers, report: &mut Report) {
    for settings in [&loaded.project.config.models, &loaded.user.models] {
        // A reference is looked at where it is used: fast-agent keeps some for itself.
        let own = settings.aliases.iter().filter(|(name, _)| !name.starts_with('$'));
        for (name, written) in own {
            if let Err(error) = providers.resolve(name) {
                let message = format!("the alias `{name}` leads to no model: {error}");
                let found =
                    Diagnostic::new(Code::UnknownModel, &written.source, written.span, message);
                report.push(found.help(error.help()));
            }
        }
    }
}
