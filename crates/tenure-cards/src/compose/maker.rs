//! One is asked again and again, and the answers vote.

use super::evaluator::shortened;
use super::llm::Llm;
use super::progress::{Move, Planner, Progress, Task};
use async_trait::async_trait;
use serde_json::Value;
use std::num::NonZeroUsize;
use std::sync::Arc;
use tenure_core::model::{ModelError, ModelErrorKind};

/// When two answers count as the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatchStrategy {
    /// Character for character.
    #[default]
    Exact,
    /// Apart from upper case, lower case and spaces.
    Normalized,
    /// As JSON, whatever the order of its keys; what is not JSON, character for character.
    Structured,
}

impl MatchStrategy {
    /// What answers are compared by.
    fn key(self, answer: &str) -> Value {
        match self {
            Self::Exact => answer.into(),
            Self::Normalized => {
                answer.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ").into()
            }
            Self::Structured => {
                serde_json::from_str(answer.trim()).unwrap_or_else(|_| answer.into())
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Maker {
    pub(super) worker: Arc<str>,
    pub(super) k: NonZeroUsize,
    pub(super) max_samples: NonZeroUsize,
    pub(super) match_strategy: MatchStrategy,
    pub(super) red_flag_max_length: Option<usize>,
}

/// The votes so far.
#[derive(Debug, Default)]
struct Tally<'a> {
    /// Each answer as it was first given, with its key and votes; in the order of their first vote.
    answers: Vec<(Value, &'a str, usize)>,
    samples: usize,
    too_long: usize,
    /// What the samples that failed said.
    failed: Vec<&'a str>,
}

impl Tally<'_> {
    /// The place of the leader, and by how much it leads.
    fn lead(&self) -> Option<(usize, usize)> {
        let mut order: Vec<usize> = (0..self.answers.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(self.answers[*at].2));
        let leader = *order.first()?;
        let second = order.get(1).map_or(0, |at| self.answers[*at].2);
        Some((leader, self.answers[leader].2 - second))
    }

    fn told(&self) -> String {
        let mut answers: Vec<_> = self.answers.iter().collect();
        answers.sort_by_key(|(_, _, votes)| std::cmp::Reverse(*votes));
        let votes = answers.into_iter().take(5).map(|(_, answer, votes)| {
            let s = if *votes == 1 { "" } else { "s" };
            format!("{votes} vote{s} for `{}`", shortened(answer))
        });
        let long = (self.too_long > 0).then(|| format!("{} too long", self.too_long));
        let failed = self.failed.last().map(|error| {
            format!("{} failed, the last with: {}", self.failed.len(), shortened(error))
        });
        votes.chain(long).chain(failed).collect::<Vec<_>>().join(", ")
    }
}

#[async_trait]
impl Planner for Maker {
    fn kind(&self) -> &'static str {
        "MAKER"
    }

    async fn next(&self, progress: &Progress<'_>, _llm: &mut Llm<'_>) -> Result<Move, ModelError> {
        let tally = self.count(progress);
        let (k, most) = (self.k.get(), self.max_samples.get());
        let lead = tally.lead();
        if let Some((leader, by)) = lead
            && by >= k
        {
            return Ok(Move::Answer(tally.answers[leader].1.to_owned()));
        }
        if tally.samples >= most {
            return Err(ModelError::new(
                ModelErrorKind::Other,
                format!(
                    "no answer of agent `{}` leads by {k} after {} samples: {}",
                    self.worker,
                    tally.samples,
                    tally.told()
                ),
            ));
        }
        // No fewer could decide it.
        let wanted = k - lead.map_or(0, |(_, by)| by);
        let batch = wanted.min(most - tally.samples);
        let task = || Task::new("sample", &self.worker, progress.request);
        Ok(Move::Ask { say: String::new(), tasks: (0..batch).map(|_| task()).collect() })
    }
}

impl Maker {
    /// Counts the samples one by one, and stops at the first that decides: those beside it came too
    /// late.
    fn count<'a>(&self, progress: &Progress<'a>) -> Tally<'a> {
        let mut tally = Tally::default();
        for done in progress.done() {
            tally.samples += 1;
            if !done.is_ok() {
                tally.failed.push(done.plain());
                continue;
            }
            let answer = done.content;
            if self.red_flag_max_length.is_some_and(|most| answer.chars().count() > most) {
                tally.too_long += 1;
                continue;
            }
            let key = self.match_strategy.key(answer);
            match tally.answers.iter_mut().find(|(known, ..)| *known == key) {
                Some((_, _, votes)) => *votes += 1,
                None => tally.answers.push((key, answer, 1)),
            }
            if tally.lead().is_some_and(|(_, by)| by >= self.k.get()) {
                break;
            }
        }
        tally
    }
}
