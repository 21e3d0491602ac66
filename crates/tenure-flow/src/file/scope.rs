//! Which variables conditions see.

use super::part::meant;
use tenure_cards::diagnostic::Code;
use tenure_cards::embed::Reader;
use tenure_cards::source::Span;
use tenure_core::chat::Chat;

/// The variables that are declared.
#[derive(Debug, Default)]
pub(super) struct Visible {
    pub(super) names: Vec<String>,
    /// Whether these are all. If their file cannot be read, nobody who names another is wrong.
    pub(super) is_whole: bool,
}

impl Visible {
    pub(super) fn has(&self, name: &str) -> bool {
        Chat::system_keys().contains(&name) || self.names.iter().any(|known| known == name)
    }

    /// Reports the variables that a condition mentions and does not see. Values that nobody declared
    /// are seen by hooks and tools alone.
    pub(super) fn check(&self, names: &[&str], span: Span, text: &str, reader: &mut Reader<'_>) {
        for name in names.iter().filter(|name| self.is_whole && !self.has(name)) {
            let known: Vec<&str> = self.names.iter().map(String::as_str).collect();
            let help = match known.as_slice() {
                [] => format!("declare `{name}` in context_variables"),
                known => match tenure_cards::embed::nearest(name, known.iter().copied()) {
                    Some(_) => meant(name, known, "variable"),
                    None => format!("declare `{name}` in context_variables"),
                },
            };
            let place = inside(reader, span, text, name);
            let message = format!("the condition mentions `{name}`, which is not declared");
            reader.problem_help(Code::UnknownVariable, place, message, help);
        }
    }
}

/// Where `part` stands in `text`, which is written at `span`, if it is written in one piece.
fn inside(reader: &Reader<'_>, span: Span, text: &str, part: &str) -> Span {
    let written = reader.source.slice(span);
    match (written.find(text), text.find(part)) {
        (Some(from), Some(at)) => {
            let start = span.start as usize + from + at;
            Span::new(start, start + part.len())
        }
        _ => span,
    }
}
