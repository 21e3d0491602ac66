//! Variables with secrets, in fields that are not meant for them: what an instruction or a
//! parameter holds is sent to whatever server the model is on.

use super::Loaded;
use crate::card::Place;
use crate::diagnostic::{Code, Diagnostic, Report};
use tenure_core::secret::is_secret_name;

/// Reports every one of them, set or not.
pub(super) fn check(loaded: &Loaded) -> Report {
    let mut report = Report::new();
    let providers = loaded.providers();
    for card in &loaded.cards {
        for found in card.expansions.iter().filter(|it| it.place != Place::Secret) {
            let name = &found.name;
            let what = match &*providers.owners_of(name) {
                [] if !is_secret_name(name) => continue,
                [] => format!("{name} has the name of a secret"),
                owners => format!("{name} is the key of {}", owners.join(" and ")),
            };
            let field = card.field_at(found.span);
            let message = format!("{what}, and `{field}` is not a place for secrets");
            let help = "secrets belong in `api_key`, `headers` and `access_token`, and in the \
                        `env` of a server in tenure.toml; give a variable that holds none another \
                        name";
            report.push(
                Diagnostic::new(Code::SecretVariable, &card.source, found.span, message).help(help),
            );
        }
    }
    report
}
