//! How members read what others were asked and answered.

use std::fmt::Write;
use std::sync::Arc;

/// What was asked, tagged.
pub(super) fn request(text: &str) -> String {
    format!("<fastagent:request>\n{text}\n</fastagent:request>")
}

/// What a member answered, tagged with its name.
pub(super) fn response(agent: &str, text: &str) -> String {
    format!("<fastagent:response agent='{agent}'>\n{text}\n</fastagent:response>")
}

/// Puts parts one below the other.
pub(super) fn joined(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().collect::<Vec<_>>().join("\n\n")
}

/// The members that a model may choose from, with what they are for.
pub(super) fn choices(agents: &[Arc<str>], described: &[(Arc<str>, Arc<str>)]) -> String {
    let mut text = String::new();
    for agent in agents {
        let about = described.iter().find(|(name, _)| name == agent).map(|(_, about)| &**about);
        let about = match about {
            Some(about) if !about.is_empty() => about,
            _ => "no description",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- {agent}: {about}");
    }
    text
}

/// Names, as messages list them.
pub(super) fn names(agents: &[Arc<str>]) -> String {
    agents.iter().map(|agent| format!("`{agent}`")).collect::<Vec<_>>().join(", ")
}
