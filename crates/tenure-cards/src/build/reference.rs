//! References to models: `$system.fast` and the like.

use super::model::{By, Named};
use crate::card::{Card, list_words};
use crate::diagnostic::{Code, Diagnostic};
use crate::project::{ModelSettings, Project, SYSTEM_DEFAULT};
use crate::user::UserConfig;

/// Follows a reference to the model that it stands for, over others if need be. A model that is none
/// stays as it is.
///
/// Where both configurations have a reference, the user's counts. `$system.default` is the default
/// model unless one of them says otherwise.
pub(super) fn follow<'a>(
    mut named: Named<'a>,
    card: &Card,
    project: &'a Project,
    user: &'a UserConfig,
) -> Result<Named<'a>, Diagnostic> {
    let settings = [&user.models, &project.config.models];
    let mut passed: Vec<&str> = Vec::new();
    while named.text.trim().starts_with('$') {
        let text = named.text.trim();
        let is_circle = passed.contains(&text);
        passed.push(text);
        if is_circle {
            let way: Vec<String> = passed.iter().map(|it| format!("`{it}`")).collect();
            let from = passed[passed.len() - 2];
            let message = format!("`{from}` leads back to itself: {}", way.join(" -> "));
            let help = "let one of them stand for a model: `provider.model`";
            return Err(named.problem(Code::UnknownModel, card, message, help));
        }
        let default = || {
            let models = (&project.config.models, &user.models);
            (text == SYSTEM_DEFAULT).then(|| ModelSettings::default_of(models.0, models.1))?
        };
        let Some(written) = settings.iter().find_map(|it| it.aliases.get(text)).or_else(default)
        else {
            return Err(unknown(&named, card, &settings));
        };
        named = Named { text: &written.text, by: By::Config(written) };
    }
    Ok(named)
}

fn unknown(named: &Named<'_>, card: &Card, settings: &[&ModelSettings]) -> Diagnostic {
    let text = named.text.trim();
    if text == SYSTEM_DEFAULT {
        let message = format!("`{text}` stands for the default model, and none is set");
        let help =
            "set `default_model` in tenure.toml or in your own configuration, or say --model";
        return named.problem(Code::UnknownModel, card, message, help);
    }
    let known = settings.iter().flat_map(|it| it.aliases.keys()).filter(|it| it.starts_with('$'));
    let mut known: Vec<&str> = known.map(String::as_str).collect();
    known.sort_unstable();
    known.dedup();
    let help = match known.is_empty() {
        true => format!("say what it stands for in tenure.toml: [aliases] \"{text}\" = \"…\""),
        false => format!("known are {}", list_words(&known, "and")),
    };
    let message = format!("`{text}` stands for no model");
    named.problem(Code::UnknownModel, card, message, &help)
}
