//! How often an agent may reply before the person is asked.

use super::{RouteCx, Router, RoutingDecision, Target};
use crate::chat::Speaker;
use async_trait::async_trait;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tenure_core::Error;

/// Another router, and how often each agent may reply since the person spoke last
/// (`max_consecutive_auto_reply`). When an agent's replies are used up and it is chosen again, the
/// person is asked; if there is none, the chat is complete.
pub struct ReplyLimits {
    inner: Arc<dyn Router>,
    limits: BTreeMap<Arc<str>, usize>,
}

impl ReplyLimits {
    /// The limits of some agents; others have none.
    pub fn new(router: impl Router, limits: impl IntoIterator<Item = (Arc<str>, usize)>) -> Self {
        Self { inner: Arc::new(router), limits: limits.into_iter().collect() }
    }

    /// Whether the agent has replied so often since the person spoke.
    fn is_used_up(cx: &RouteCx<'_>, agent: &str, limit: usize) -> bool {
        let since = cx.messages.iter().rev().take_while(|it| it.speaker != Speaker::User);
        let replies =
            since.filter(|it| matches!(&it.speaker, Speaker::Agent(by) if &**by == agent));
        // No more than the limit are looked for, so a long chat costs no more than a short one.
        replies.take(limit).count() == limit
    }
}

#[async_trait]
impl Router for ReplyLimits {
    async fn route(&self, cx: &RouteCx<'_>) -> Result<RoutingDecision, Error> {
        let decision = self.inner.route(cx).await?;
        let Target::Agent(agent) = &decision.target else { return Ok(decision) };
        let Some(limit) = self.limits.get(agent).copied() else { return Ok(decision) };
        if !Self::is_used_up(cx, agent, limit) {
            return Ok(decision);
        }
        let replies = match limit {
            1 => "its 1 reply".to_owned(),
            _ => format!("its {limit} replies"),
        };
        let used = format!("`{agent}` has used up {replies} since the user spoke");
        let mut instead = match cx.has_user() && !cx.after_user {
            true => RoutingDecision::new(Target::User, format!("{used}; the user is asked")),
            false => RoutingDecision::end(format!("{used}; the chat is complete")),
        };
        instead.metadata =
            json!({ "instead_of": [{ "target": agent, "reason": decision.reason }] });
        Ok(instead)
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn is_determined(&self) -> bool {
        self.inner.is_determined()
    }
}

impl fmt::Debug for ReplyLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyLimits")
            .field("router", &self.name())
            .field("limits", &self.limits)
            .finish()
    }
}
