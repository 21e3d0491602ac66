//! The places that `sandbox` grants to hooks and servers.

use crate::card::{Card, McpFields};
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::project::Project;
use crate::sandbox::Grant;
use crate::source::{Source, Span};
use std::sync::Arc;

/// Reports grants of places that are not there: such a grant means nothing.
pub(super) fn check(cards: &[Card], project: &Project, report: &mut Report) {
    let mut of = |grant: &Option<Grant>, source: &Arc<Source>, span: Span| {
        for path in grant.iter().flat_map(|grant| grant.missing(&project.root)) {
            let message = format!("`sandbox.write` names `{path}`, which is not there");
            let found = Diagnostic::new(Code::MeaninglessField, source, span, message);
            report.push(found.help(Grant::MISSING_HELP));
        }
    };
    for card in cards {
        for hook in &card.hooks.declared {
            of(&hook.sandbox, &card.source, hook.span);
        }
    }
    let described = cards.iter().filter_map(|card| card.kind.mcp()).flat_map(McpFields::own);
    for server in described.chain(project.config.servers.values()) {
        of(&server.sandbox, &super::servers::shown(server), server.span);
    }
}
