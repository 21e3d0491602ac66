//! The one door to the YAML reader.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::document::Layout;
use super::expand::expand;
use super::loader::{Stopped, load};
use super::{Node, Source, Span};
use crate::diagnostic::{Code, Diagnostic, Report};

/// Reads the YAML at `span` of a source. What is wrong goes to the report; the result is the
/// document's value as far as it could be read, [`Value::Null`](super::Value::Null) if there is
/// none, and `None` if nothing could be made of it.
///
/// Spans in the tree are places in the whole source.
pub fn parse_yaml(source: &Arc<Source>, span: Span, report: &mut Report) -> Option<Node> {
    tree(source, span, report).map(|(node, _)| node)
}

pub(super) fn tree(
    source: &Arc<Source>,
    span: Span,
    report: &mut Report,
) -> Option<(Node, Layout)> {
    if let Some((at, found)) = unprintable(source, span) {
        report.push(
            Diagnostic::new(
                Code::YamlSyntax,
                source,
                Span::new(at, at + found.len_utf8()),
                format!("the character U+{:04X} may not stand in YAML", u32::from(found)),
            )
            .help("remove it, or write it as an escape in double quotes"),
        );
        return None;
    }
    // The reader is a third party's and reads hostile text; a defect of it must not end the
    // program. Its state is dropped, and the report holds only whole diagnostics.
    let read = catch_unwind(AssertUnwindSafe(|| -> Result<_, Stopped> {
        let loaded = load(source, span, report)?;
        let node = match loaded.root {
            Some(root) => expand(&loaded.arena, root, source, report)?,
            None => Node::new(Span::at(span.start as usize), super::Value::Null),
        };
        Ok((node, loaded.layout))
    }));
    match read {
        Ok(result) => result.ok(),
        Err(_) => {
            report.push(
                Diagnostic::new(
                    Code::YamlReaderFailed,
                    source,
                    Span::at(span.start as usize),
                    "the YAML reader failed on this file, which is a defect of Tenure",
                )
                .help("please report it with the file; simplify the YAML meanwhile"),
            );
            None
        }
    }
}

/// The first character that YAML does not allow to stand for itself.
fn unprintable(source: &Source, span: Span) -> Option<(usize, char)> {
    let text = source.slice(span);
    let (at, found) = text.char_indices().find(|(_, found)| {
        !matches!(found, '\t' | '\n' | '\r' | '\u{85}' | ' '..='~' | '\u{a0}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..)
    })?;
    Some((span.start as usize + at, found))
}
