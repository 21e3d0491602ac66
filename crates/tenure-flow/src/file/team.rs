//! Who there is in a workflow: what every reference to an agent is held against.

use super::part::meant;
use crate::route::Target;
use std::sync::Arc;
use tenure_cards::diagnostic::Code;
use tenure_cards::embed::Reader;
use tenure_cards::source::Span;

/// The names of a workflow's agents.
#[derive(Debug, Default)]
pub(super) struct Team {
    pub(super) names: Vec<Arc<str>>,
    /// Whether these are all. If their file cannot be read, nobody who names another is wrong.
    pub(super) is_whole: bool,
}

impl Team {
    /// The names as texts.
    pub(super) fn known(&self) -> Vec<&str> {
        self.names.iter().map(|name| &**name).collect()
    }

    /// The agent of this name; that there is none is reported.
    pub(super) fn agent(
        &self,
        name: &str,
        span: Span,
        who: &str,
        reader: &mut Reader<'_>,
    ) -> Option<Arc<str>> {
        let found = self.names.iter().find(|known| &***known == name);
        match found {
            Some(found) => Some(Arc::clone(found)),
            None if !self.is_whole => Some(name.into()),
            None => {
                self.missing(name, span, who, &self.known(), reader);
                None
            }
        }
    }

    /// The agent of this name, or the person, as [`Target::as_str`] spells them.
    pub(super) fn agent_or_user(
        &self,
        name: &str,
        span: Span,
        who: &str,
        reader: &mut Reader<'_>,
    ) -> Option<Arc<str>> {
        match Target::of_name(name, self.known()) {
            Some(Target::User) => Some("user".into()),
            _ => self.agent(name, span, who, reader),
        }
    }

    /// Where `name` leads: an agent, the person or the end.
    pub(super) fn target(
        &self,
        name: &str,
        span: Span,
        who: &str,
        reader: &mut Reader<'_>,
    ) -> Option<Target> {
        match Target::of_name(name, self.known()) {
            Some(target) => Some(target),
            None if !self.is_whole => Some(Target::Agent(name.into())),
            None => {
                let mut known = self.known();
                known.extend(["user", "terminate"]);
                self.missing(name, span, who, &known, reader);
                None
            }
        }
    }

    fn missing(&self, name: &str, span: Span, who: &str, known: &[&str], reader: &mut Reader<'_>) {
        let message = format!("{who} names the agent `{name}`, which this workflow does not have");
        let other_case = known.iter().find(|known| known.eq_ignore_ascii_case(name));
        let help = match other_case {
            Some(near) => format!("did you mean `{near}`?"),
            None if self.names.is_empty() => "the workflow has no agents".to_owned(),
            None => meant(name, known, "agent"),
        };
        reader.problem_help(Code::UnknownAgent, span, message, help);
    }
}

/// Whether a name is what files call the person or the end of a chat, and so cannot be an agent's.
/// Their aliases can: where an agent has one, it means the agent.
pub(super) fn is_reserved(name: &str) -> bool {
    ["user", "terminate"].iter().any(|taken| taken.eq_ignore_ascii_case(name))
}
