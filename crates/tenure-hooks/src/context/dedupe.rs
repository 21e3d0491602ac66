//! Messages that say the same twice in a row.

use crate::ready::{About, Makings, Options, Refusal};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tenure_core::context::TurnCx;
use tenure_core::hook::{AgentLifecycle, Flow, HookError, IntoRegistration, Registration, hook};
use tenure_core::message::Message;
use tenure_core::model::ModelRequest;
use tenure_macros::lifecycle;

/// Removes messages that are the same as the one before them: sent twice, or repeated by a retry.
///
/// The newest of them stays. Calls of tools and their results are never removed, so that the
/// conversation stays valid.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::context::Dedupe;
/// # use tenure_models::Passthrough;
///
/// let agent =
///     Agent::builder("clerk").model(Passthrough::new()).with_lifecycle(Dedupe::new()).build()?;
/// # Ok::<_, tenure_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Dedupe {
    exact: bool,
    persist: bool,
}

impl Dedupe {
    /// Removes repetitions for the call at hand. Space at the ends of a message makes no difference.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes only messages for the same that agree in every character.
    pub fn exact(mut self) -> Self {
        self.exact = true;
        self
    }

    /// Removes repetitions from the agent's own conversation, for good.
    pub fn persist(mut self) -> Self {
        self.persist = true;
        self
    }

    fn is_same(&self, one: &Message, two: &Message) -> bool {
        let is_plain = |it: &Message| !matches!(it, Message::Tool(_)) && it.calls().is_empty();
        let text = |it| if self.exact { Message::text(it) } else { Message::text(it).trim() };
        std::mem::discriminant(one) == std::mem::discriminant(two)
            && is_plain(one)
            && is_plain(two)
            && text(one) == text(two)
    }
}

impl IntoRegistration for Dedupe {
    fn into_registration(self) -> Registration {
        // What it removes need not be counted.
        hook(Removing(self))
            .named("dedupe")
            .kind("dedupe")
            .outside("clear_tool_results")
            .outside("window")
    }
}

struct Removing(Dedupe);

#[lifecycle]
impl AgentLifecycle for Removing {
    async fn before_model(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        let messages = &request.messages;
        let pairs = messages.iter().zip(messages.iter().skip(1));
        let again = pairs.filter(|(one, two)| self.0.is_same(one, two)).count();
        if again == 0 {
            return Ok(Flow::Continue);
        }
        request.messages.edit().dedup_by(|later, earlier| {
            let is_same = self.0.is_same(earlier, later);
            if is_same {
                std::mem::swap(earlier, later);
            }
            is_same
        });
        if self.0.persist {
            request.persist();
        }
        cx.announce("messages.deduped", || json!({ "removed": again }));
        Ok(Flow::Continue)
    }
}

/// What `dedupe` takes by `with`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct DedupeOptions {
    /// Whether messages have to agree in every character; else space at their ends makes no
    /// difference.
    exact: bool,
    /// Whether repetitions are removed from the agent's own conversation, for good.
    persist: bool,
}

impl Options for DedupeOptions {
    const ABOUT: About = About {
        name: "dedupe",
        summary: "Removes messages that say the same twice in a row.",
        covers: &["UC-2.3"],
        peers: &[],
        example: r#"{ "exact": true }"#,
    };

    fn make(self, _: &dyn Makings) -> Result<Registration, Refusal> {
        Ok(Dedupe { exact: self.exact, persist: self.persist }.into_registration())
    }
}
