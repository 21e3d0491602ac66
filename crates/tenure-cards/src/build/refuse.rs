//! Refusing, by name, what cannot be run yet.

use super::agent::Workshop;
use super::model::place;
use crate::card::{AgentCard, Card};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;

impl Workshop<'_> {
    /// Refuses, by name, what this release cannot do.
    pub(super) fn refuse_fields(&mut self, card: &Card, agent: &AgentCard) {
        self.refuse_connections(card, &agent.mcp);
        if !agent.commands.is_empty() {
            let help = "commands for a person who talks to the agent are not in this release; \
                        leave them out";
            let message = "`commands` cannot be run yet".to_owned();
            self.refuse(card, Code::NotRunnable, place(card, "commands"), message, help);
        }
        // `type: smart` implies them; its agents run without.
        if agent.harness_tools && card.tree().field("harness_tools").is_some() {
            let help = "tools that steer the program itself are not in this release; leave it out";
            let message = "`harness_tools` cannot be run yet".to_owned();
            self.refuse(card, Code::NotRunnable, place(card, "harness_tools"), message, help);
        }
    }

    pub(super) fn refuse(
        &mut self,
        card: &Card,
        code: Code,
        span: Span,
        message: String,
        help: &str,
    ) {
        self.report.push(Diagnostic::new(code, &card.source, span, message).help(help));
    }
}
