//! One after the other.

use super::{RouteCx, Router, RoutingDecision, Target};
use async_trait::async_trait;
use tenure_core::Error;

/// The agents speak one after the other, in the order of their declaration, beginning with the
/// flow's initial one. A person who takes part is the last of each round.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin;

#[async_trait]
impl Router for RoundRobin {
    async fn route(&self, cx: &RouteCx<'_>) -> Result<RoutingDecision, Error> {
        let count = cx.agents.len();
        if count == 0 {
            return Err(Error::orchestration("the flow has no agent that could speak; add one"));
        }
        let place = |name: &str| cx.agents.iter().position(|agent| &**agent == name);
        let first = cx.initial.and_then(|initial| place(initial)).unwrap_or(0);
        let at = match cx.last_agent {
            Some(last) => place(last).map_or(first, |at| (at + 1) % count),
            None => first,
        };
        if at == first && cx.last_agent.is_some() && !cx.after_user && cx.has_user() {
            return Ok(RoutingDecision::new(Target::User, "the round is over, round robin"));
        }
        let decision = RoutingDecision::agent(cx.agents[at].clone(), "it is its turn, round robin");
        Ok(match count {
            1 => decision,
            _ => decision.fallback(cx.agents[(at + 1) % count].clone()),
        })
    }

    fn name(&self) -> &str {
        "round_robin"
    }

    fn is_determined(&self) -> bool {
        true
    }
}
