//! What an agent is told: sections, or one text.

use super::part::unknown_fields;
use tenure_cards::diagnostic::Code;
use tenure_cards::embed::{Reader, list_words, present};
use tenure_cards::source::{Node, Span};

/// The four ways to say it; exactly one is taken.
const WAYS: [&str; 4] =
    ["prompt_sections", "prompt_sections_custom", "system_message", "instruction"];

/// The prompt of an entry, and where it is written; none if the card's own field says it. As it is
/// written: what `${VAR}` in it stands for is found where the card is read.
pub(super) fn read(node: &Node, name: Span, reader: &mut Reader<'_>) -> Option<(String, Span)> {
    let said: Vec<&str> = WAYS.into_iter().filter(|way| is_said(node, way)).collect();
    let (way, place) = match *said.as_slice() {
        [] => {
            let message = "this agent is not told what to do";
            let help = "add `system_message`, `prompt_sections` or `instruction`";
            reader.problem_help(Code::BadPrompt, name, message, help);
            return None;
        }
        [way] => (way, present(node, way)?),
        [_, second, ..] => {
            let span = node.entry(second).map_or(name, |(key, _)| key.span);
            let message = format!("this agent is told what to do in {}", list_words(&said, "and"));
            reader.problem_help(Code::BadPrompt, span, message, "keep one of them");
            return None;
        }
    };
    match way {
        "instruction" => None,
        "system_message" => {
            reader.words_of(way, place)?;
            Some((place.text()?.to_owned(), place.span))
        }
        _ => sections(way, place, reader).map(|text| (text, place.span)),
    }
}

/// A list without sections says nothing.
fn is_said(node: &Node, way: &str) -> bool {
    present(node, way).is_some_and(|it| it.list().is_none_or(|items| !items.is_empty()))
}

/// Sections one after the other, each with its heading. One without content is left out: it is a
/// slot that nobody filled.
fn sections(way: &str, place: &Node, reader: &mut Reader<'_>) -> Option<String> {
    let Some(items) = place.list() else {
        reader.wrong_kind(way, "a list of sections", place);
        return None;
    };
    let mut texts = Vec::new();
    let mut ids: Vec<String> = Vec::new();
    let before = reader.report.errors();
    for item in items {
        if item.map().is_none() {
            reader.wrong_kind(&format!("a section of {way}"), "a mapping with `content`", item);
            continue;
        }
        unknown_fields(reader, item, "a section", &["id", "heading", "content"]);
        if let Some(id) = reader.words(item, "id").map(|id| id.trim().to_owned()) {
            if ids.contains(&id) {
                let span = item.field("id").map_or(item.span, |id| id.span);
                let message = format!("another section has the id `{id}`");
                reader.problem_help(Code::DuplicateEntry, span, message, "give it one of its own");
            }
            ids.push(id);
        }
        let text = |reader: &mut Reader<'_>, name: &str| {
            let node = present(item, name)?;
            reader.text_of(name, node)?;
            node.text().map(|text| text.trim_end().to_owned())
        };
        let (heading, content) = (text(reader, "heading"), text(reader, "content"));
        let Some(content) = content.filter(|content| !content.trim().is_empty()) else { continue };
        texts.push(match heading.filter(|heading| !heading.trim().is_empty()) {
            Some(heading) => format!("{heading}\n{content}"),
            None => content,
        });
    }
    if texts.is_empty() && reader.report.errors() == before {
        let message = format!("none of the sections of `{way}` has content");
        reader.problem_help(Code::BadPrompt, place.span, message, "fill one of them");
        return None;
    }
    Some(texts.join("\n\n"))
}
