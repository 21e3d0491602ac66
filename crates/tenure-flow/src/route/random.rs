//! By chance, and the seed decides what chance is.

use super::order::next_after;
use super::{RouteCx, Router, RoutingDecision, Target};
use async_trait::async_trait;
use tenure_core::Error;

/// Chance chooses who speaks: for the same seed, at the same turn, the same. Nobody speaks twice in
/// a row if there is somebody else. A person who takes part is chosen like everybody else. The
/// flow's initial agent, if it has one, begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Random;

#[async_trait]
impl Router for Random {
    async fn route(&self, cx: &RouteCx<'_>) -> Result<RoutingDecision, Error> {
        let count = cx.agents.len();
        if let (None, false, Some(initial)) = (cx.last_agent, cx.after_user, cx.initial) {
            return Ok(RoutingDecision::agent(initial.clone(), "it is the initial agent"));
        }
        let last = match (cx.after_user, cx.last_agent) {
            (true, _) => Some(count),
            (false, Some(last)) => cx.agents.iter().position(|agent| agent == last),
            (false, None) => None,
        };
        // The person's place is behind the last agent's.
        let places = count + usize::from(cx.has_user());
        let others = (0..places).filter(|at| Some(*at) != last).count();
        if others == 0 {
            let Some(only) = cx.agents.first() else {
                return Err(Error::orchestration(
                    "the flow has no agent that could speak; add one",
                ));
            };
            return Ok(RoutingDecision::agent(only.clone(), "there is nobody else, at random"));
        }
        // The person's turns are not counted, so the place after one is a place of its own.
        let cursor = (cx.turn as u64) << 1 | u64::from(cx.after_user);
        let drawn = (mixed(cx.seed, cursor) % others as u64) as usize;
        let chosen = (0..places).filter(|at| Some(*at) != last).nth(drawn).unwrap_or_default();
        let reason = format!("drawn at random: {} of {others}, seed {}", drawn + 1, cx.seed);
        let Some(agent) = cx.agents.get(chosen) else {
            return Ok(RoutingDecision::new(Target::User, reason));
        };
        let decision = RoutingDecision::agent(agent.clone(), reason);
        Ok(match next_after(cx.agents, agent) {
            Some(next) => decision.fallback(next.clone()),
            None => decision,
        })
    }

    fn name(&self) -> &str {
        "random"
    }

    fn is_determined(&self) -> bool {
        true
    }
}

/// A number that looks like chance and is the same for the same two numbers (splitmix64).
fn mixed(seed: u64, cursor: u64) -> u64 {
    let mut state = seed.wrapping_add(cursor.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::mixed;

    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        // The first three of the generator's own for the seed 1234567.
        let numbers = [0, 1, 2].map(|cursor| mixed(1_234_567, cursor));
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }
}
