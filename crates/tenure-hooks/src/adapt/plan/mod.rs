//! Analysis and planning: a pure function of the policy, what is known, and what was observed.
//!
//! | goal missed | is changed, if its bound allows | why |
//! |---|---|---|
//! | `error_rate` | retries up, if most failures may go away by themselves | an attempt more is the smallest change |
//! | | else concurrency down, if most failures say that there are too many calls | fewer calls are refused less |
//! | | else the next model | this one fails |
//! | `latency_*` | concurrency up, if calls mostly wait for a place | the model is not what is slow |
//! | | else the next model | it is to be faster |
//! | | else retries down, if calls are repeated | attempts take time |
//! | `cost_per_turn` | the next model | it is to be cheaper |
//! | | else retries down, if calls are repeated | attempts cost |
//! | none, for a while | one step back: model, then retries, then concurrency | towards the first choice |

mod measure;
#[cfg(test)]
mod tests;

pub(super) use measure::{Window, measure};

use measure::Sums;

use super::policy::{Goal, Policy, Setting};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;

/// A goal counts as met with something to spare up to this share of it. Only then a step back is
/// thought of.
const COMFORTABLE: f64 = 0.8;
/// How often the wait for a step back doubles, if steps back do not hold.
const MOST_SETBACKS: u32 = 6;
/// How many changes are remembered.
const MOST_CHANGES: usize = 32;

/// What one turn showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Observation {
    /// Which setting its instance was made with.
    pub revision: u64,
    /// How long the turn took, in microseconds.
    pub turn_us: u64,
    /// How long each model call took, in microseconds, waiting and repeating included.
    pub calls_us: Vec<u64>,
    /// How long they waited for a place, in microseconds, all together.
    pub waited_us: u64,
    /// How many of them failed in the end.
    pub failed: usize,
    /// How many of those may well succeed later.
    pub retryable: usize,
    /// How many of those failed because there are too many calls.
    pub pressed: usize,
    /// How many attempts were made beside the first of each.
    pub retried: usize,
    /// What the turn cost, in billionths of a dollar.
    pub cost_nano_usd: u64,
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "decision")]
#[non_exhaustive]
pub enum Decision {
    /// Instances are made with another setting from here on.
    Changed {
        /// The setting before.
        from: Setting,
        /// The setting from here on.
        to: Setting,
        /// The goal that was missed; none if all have been met for a while.
        goal: Option<Goal>,
        /// What was measured of it.
        measured: Option<f64>,
        /// Why this was changed.
        reason: String,
    },
    /// A goal is missed, and nothing may be done about it. Said once, until something changes.
    Considered {
        /// The setting, which stays.
        setting: Setting,
        /// The goal that is missed.
        goal: Goal,
        /// What was measured of it.
        measured: f64,
        /// Why nothing is changed.
        reason: String,
    },
}

/// What is known: the K of the loop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Knowledge {
    pub(super) setting: Setting,
    /// The last turns with this setting.
    pub(super) window: Window,
    /// How many turns there were since the last change; none, if there was no change.
    since_change: Option<usize>,
    /// For how many turns all goals have been met with something to spare.
    met_for: usize,
    /// Whether the last change was a step back that has yet to prove itself.
    on_trial: bool,
    /// How many steps back in a row did not hold.
    setbacks: u32,
    /// What was last thought of in vain.
    considered: Option<(Goal, String)>,
    /// The last changes.
    pub(super) changes: VecDeque<Decision>,
    /// Nothing is changed. This is not remembered.
    #[serde(skip)]
    pub(super) frozen: bool,
}

impl Knowledge {
    /// What is known before anything was observed.
    pub(super) fn new(policy: &Policy) -> Self {
        Self { setting: policy.bounds.first(), ..Self::default() }
    }

    /// The same for a policy that may have changed since it was written down.
    pub(super) fn fit(mut self, policy: &Policy) -> Self {
        let nearest = policy.bounds.nearest(&self.setting);
        if nearest != self.setting {
            self.setting = Setting { revision: self.setting.revision + 1, ..nearest };
            self.window.clear();
            self.met_for = 0;
        }
        self
    }

    /// Takes an observation in, and decides.
    pub(super) fn observe(&mut self, policy: &Policy, seen: Arc<Observation>) -> Option<Decision> {
        self.since_change = self.since_change.map(|turns| turns.saturating_add(1));
        // Instances with an older setting live on; they say nothing of this one.
        if seen.revision != self.setting.revision {
            return None;
        }
        self.window.push_back(seen);
        while self.window.len() > policy.window.max(1) {
            self.window.pop_front();
        }
        if self.window.len() < policy.min_samples {
            return None;
        }
        let sums = Sums::of(&self.window, policy.latency);
        let mut comfortable = true;
        for goal in Goal::ALL {
            let Some(target) = policy.goals.target(goal) else { continue };
            // Mostly all is well, and that needs no order of what was seen.
            if sums.most(goal).is_none_or(|most| most <= target * COMFORTABLE) {
                continue;
            }
            let Some(measured) = measure(goal, policy.latency, &self.window) else { continue };
            if measured > target {
                return self.missed(policy, goal, measured, target);
            }
            comfortable &= measured <= target * COMFORTABLE;
        }
        self.met(policy, comfortable)
    }

    fn missed(
        &mut self,
        policy: &Policy,
        goal: Goal,
        measured: f64,
        target: f64,
    ) -> Option<Decision> {
        self.met_for = 0;
        if std::mem::take(&mut self.on_trial) {
            self.setbacks = (self.setbacks + 1).min(MOST_SETBACKS);
        }
        let planned = if self.frozen {
            Err("it is frozen".to_owned())
        } else if let Some(turns) = self.cooling(policy) {
            Err(format!("the last change is {turns} turns ago, and {} have to be", policy.cooldown))
        } else {
            self.remedy(policy, goal)
        };
        match planned {
            Ok((to, why)) => {
                let what = goal.as_str();
                let reason =
                    format!("{what} is {measured}, and at most {target} is aimed at: {why}");
                Some(self.change(to, Some((goal, measured)), reason))
            }
            // Turns pass; that they do is nothing new to tell.
            Err(reason) if self.said_already(goal, &reason) => None,
            Err(reason) => {
                self.considered = Some((goal, reason.clone()));
                let setting = self.setting.clone();
                Some(Decision::Considered { setting, goal, measured, reason })
            }
        }
    }

    fn said_already(&self, goal: Goal, reason: &str) -> bool {
        let cools = |reason: &str| reason.starts_with("the last change");
        self.considered.as_ref().is_some_and(|(known, why)| {
            *known == goal && (why == reason || (cools(why) && cools(reason)))
        })
    }

    /// All goals are met; `comfortable` is with something to spare.
    fn met(&mut self, policy: &Policy, comfortable: bool) -> Option<Decision> {
        self.considered = None;
        self.met_for = if comfortable { self.met_for.saturating_add(1) } else { 0 };
        if self.on_trial && self.met_for >= policy.recover_after {
            self.on_trial = false;
            self.setbacks = 0;
        }
        // Who has gone back in vain waits longer before the next time.
        let patience = policy.recover_after.saturating_mul(1 << self.setbacks).max(1);
        if self.frozen || self.met_for < patience || self.cooling(policy).is_some() {
            return None;
        }
        let (to, why) = self.step_back(policy)?;
        let reason = format!("all goals have been met for {} turns: {why}", self.met_for);
        let decision = self.change(to, None, reason);
        self.on_trial = true;
        Some(decision)
    }

    /// How long ago the last change is, if that is not long enough.
    fn cooling(&self, policy: &Policy) -> Option<usize> {
        self.since_change.filter(|turns| *turns < policy.cooldown)
    }

    fn change(&mut self, to: Setting, goal: Option<(Goal, f64)>, reason: String) -> Decision {
        let to = Setting { revision: self.setting.revision + 1, ..to };
        let from = std::mem::replace(&mut self.setting, to.clone());
        self.window.clear();
        self.since_change = Some(0);
        self.met_for = 0;
        self.considered = None;
        let (goal, measured) = goal.unzip();
        let decision = Decision::Changed { from, to, goal, measured, reason };
        self.changes.push_back(decision.clone());
        while self.changes.len() > MOST_CHANGES {
            self.changes.pop_front();
        }
        decision
    }

    /// One step that is to help with a goal, and why; or why there is none.
    fn remedy(&self, policy: &Policy, goal: Goal) -> Result<(Setting, String), String> {
        let sum = |part: fn(&Observation) -> u64| -> u64 {
            self.window.iter().map(|turn| part(turn)).sum()
        };
        let failed = sum(|it| it.failed as u64);
        let is_repeating = sum(|it| it.retried as u64) > 0;
        let bounds = &policy.bounds;
        let (least_retries, most_retries) = bounds.retries;
        let now = &self.setting;
        let retries = |by: isize| {
            let retries = now.retries.checked_add_signed(by)?;
            let allowed = (least_retries..=most_retries).contains(&retries);
            allowed.then(|| Setting { retries, ..now.clone() })
        };
        let places = |by: isize| {
            let (least, most) = bounds.concurrency?;
            let places = now.concurrency?.checked_add_signed(by)?;
            let allowed = (least..=most).contains(&places);
            allowed.then(|| Setting { concurrency: Some(places), ..now.clone() })
        };
        let next_model = || {
            let model = bounds.models.get(bounds.place(now) + 1)?;
            Some(Setting { model: Some(model.clone()), ..now.clone() })
        };
        let step = match goal {
            Goal::ErrorRate => {
                let transient = sum(|it| it.retryable as u64) * 2 >= failed;
                let pressed = sum(|it| it.pressed as u64) * 2 >= failed;
                let more = retries(1).filter(|_| transient);
                more.map(|to| (to, "most failures may go away by another attempt"))
                    .or_else(|| {
                        let fewer = places(-1).filter(|_| pressed)?;
                        Some((fewer, "most failures say that there are too many calls"))
                    })
                    .or_else(|| Some((next_model()?, "the next model is to fail less")))
            }
            Goal::LatencyP95 | Goal::LatencyP50 => {
                let took = sum(|it| it.calls_us.iter().sum());
                let waits = sum(|it| it.waited_us) * 2 > took;
                let more = places(1).filter(|_| waits);
                more.map(|to| (to, "calls mostly wait for a place"))
                    .or_else(|| Some((next_model()?, "the next model is to be faster")))
                    .or_else(|| {
                        let fewer = retries(-1).filter(|_| is_repeating)?;
                        Some((fewer, "attempts take time"))
                    })
            }
            Goal::CostPerTurn => {
                let next = next_model().map(|to| (to, "the next model is to be cheaper"));
                next.or_else(|| {
                    let fewer = retries(-1).filter(|_| is_repeating)?;
                    Some((fewer, "attempts cost"))
                })
            }
        };
        step.map(|(to, why)| (to, why.to_owned()))
            .ok_or_else(|| "the bounds allow nothing that would help".to_owned())
    }

    /// One step towards the first choice, and which.
    fn step_back(&self, policy: &Policy) -> Option<(Setting, &'static str)> {
        let (bounds, now) = (&policy.bounds, &self.setting);
        let place = bounds.place(now);
        if let Some(model) = place.checked_sub(1).and_then(|better| bounds.models.get(better)) {
            let to = Setting { model: Some(model.clone()), ..now.clone() };
            return Some((to, "back to the model before"));
        }
        if now.retries > bounds.retries.0 {
            let to = Setting { retries: now.retries - 1, ..now.clone() };
            return Some((to, "one attempt less again"));
        }
        let (_, most) = bounds.concurrency?;
        let places = now.concurrency.filter(|places| *places < most)?;
        let to = Setting { concurrency: Some(places + 1), ..now.clone() };
        Some((to, "one more call at the same time again"))
    }
}
