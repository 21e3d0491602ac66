//! Keys of one provider that a card would send to another.

use super::model::place;
use crate::card::Card;
use crate::diagnostic::{Code, Diagnostic};
use tenure_models::provider::{ModelTarget, Providers};

/// Refuses the key of a card that is another provider's than that of its model.
pub(super) fn foreign(
    card: &Card,
    target: &ModelTarget,
    providers: &Providers,
) -> Option<Diagnostic> {
    card.key_variables().into_iter().find_map(|variable| {
        let owners = providers.owners_of(variable);
        if owners.is_empty() || owners.contains(&target.provider) {
            return None;
        }
        let (owners, name) = (owners.join(" and "), &card.name);
        let (provider, host) = (&target.provider, &target.host);
        let message = format!(
            "the agent `{name}` would send {variable}, which is the key of {owners}, to {host}"
        );
        let help = match &*providers.key_variables(provider) {
            [] => format!("leave out `api_key`: {provider} has a key of its own"),
            own => format!(
                "leave out `api_key`, or take the key of {provider}: `api_key: ${{{}}}`",
                own[0]
            ),
        };
        let found =
            Diagnostic::new(Code::RemoteModel, &card.source, place(card, "api_key"), message);
        Some(found.help(help))
    })
}
