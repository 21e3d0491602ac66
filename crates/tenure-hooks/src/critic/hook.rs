//! The critic as a hook: the loop of creator and critics.

use super::consensus::{Consensus, Ruling, Vote, rule};
use super::panel::{CriticContext, Judge, ask_all, bounded, material};
use serde_json::json;
use std::time::Duration;
use tenure_core::context::TurnCx;
use tenure_core::hook::{AgentLifecycle, HookError, IntoRegistration, Policy, Registration, hook};
use tenure_core::message::Message;
use tenure_core::model::{Model, ModelRequest, ModelResponse, StopReason};
use tenure_core::{Error, NextModel};
use tenure_macros::lifecycle;

/// The most of a critique that an event carries, in characters.
const MOST_IN_EVENT: usize = 500;
/// What a hook's own work takes beside the critics' time.
const GRACE: Duration = Duration::from_secs(5);

/// Which answers of a model are judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Judged {
    /// Those that end a turn: without tool calls.
    #[default]
    Answers,
    /// Those that ask for tools.
    Calls,
    /// All.
    All,
}

/// What becomes of an answer that is still rejected after the last round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnRejected {
    /// The turn is denied: `Critic rejected: …`.
    #[default]
    Deny,
    /// The last answer counts.
    Accept,
    /// The answer with the highest score counts; of equals, and where nobody gave scores, the last.
    Best,
}

/// What becomes of an answer that could not be judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnFailure {
    /// The turn is denied.
    #[default]
    Deny,
    /// The answer counts as it is.
    Continue,
}

/// Creator and critic: a model that has not made an answer judges it, in a context of its own.
///
/// A critic approves an answer, rejects it with a critique, or gives a better one. After a rejection
/// the creator is asked again, with the critique as a message of this call only; its further answers
/// pass the same hooks as the first. Several critics vote at the same time.
///
/// Every vote is an event, `critic.voted`, and every verdict is on the turn's record: a run that goes
/// on in another process does not ask again. Readers of a stream wait until the critics are content.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::critic::Critic;
/// # use tenure_models::Scripted;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let creator = Scripted::new(["Paris is in Italy.", "Paris is in France."]);
/// let critic = Scripted::new([
///     r#"{"verdict": "reject", "critique": "Paris is not in Italy."}"#,
///     r#"{"verdict": "approve"}"#,
/// ]);
/// let agent = Agent::builder("guide").model(creator).with_lifecycle(Critic::new(critic)).build()?;
/// let report = agent.scoped(async |agent| agent.run("Where is Paris?").await).await?;
/// assert_eq!(report.output(), "Paris is in France.");
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
#[must_use]
#[doc(alias = "bicameral")]
pub struct Critic {
    judges: Vec<Judge>,
    judged: Judged,
    context: CriticContext,
    rounds: usize,
    on_rejected: OnRejected,
    on_failure: OnFailure,
    consensus: Consensus,
    quorum: Option<usize>,
    timeout: Duration,
}

impl Critic {
    /// One critic.
    pub fn new(model: impl Model) -> Self {
        Self::panel([Judge::new("critic", model)])
    }

    /// Several critics, who vote. Without any, nothing can be judged.
    pub fn panel(judges: impl IntoIterator<Item = Judge>) -> Self {
        Self {
            judges: judges.into_iter().collect(),
            judged: Judged::default(),
            context: CriticContext::default(),
            rounds: 2,
            on_rejected: OnRejected::default(),
            on_failure: OnFailure::default(),
            consensus: Consensus::default(),
            quorum: None,
            timeout: Duration::from_secs(40),
        }
    }

    /// What every critic is to look at, in place of what it was told before.
    pub fn instruction(mut self, instruction: impl AsRef<str>) -> Self {
        let told = |judge: Judge| judge.instruction(instruction.as_ref());
        self.judges = self.judges.into_iter().map(told).collect();
        self
    }

    /// Which answers are judged. By default those that end a turn.
    pub fn judges(mut self, judged: Judged) -> Self {
        self.judged = judged;
        self
    }

    /// What the critics get to see beside the answer. By default the last message of the user.
    pub fn context(mut self, context: CriticContext) -> Self {
        self.context = context;
        self
    }

    /// How often the creator is asked again at most. The default is 2.
    pub fn rounds(mut self, rounds: usize) -> Self {
        self.rounds = rounds;
        self
    }

    /// What becomes of an answer that is still rejected after the last round.
    pub fn on_rejected(mut self, then: OnRejected) -> Self {
        self.on_rejected = then;
        self
    }

    /// What becomes of an answer that could not be judged.
    pub fn on_failure(mut self, then: OnFailure) -> Self {
        self.on_failure = then;
        self
    }

    /// When the votes of several critics let an answer pass. By default by majority.
    pub fn consensus(mut self, consensus: Consensus) -> Self {
        self.consensus = consensus;
        self
    }

    /// How many critics have to give a verdict. By default more than half of them; where they have
    /// to be unanimous, all.
    pub fn quorum(mut self, quorum: usize) -> Self {
        self.quorum = Some(quorum);
        self
    }

    /// The time that the critics have for one answer. One that takes longer has no vote. The default
    /// is 40 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    fn votes_needed(&self) -> usize {
        let all = self.judges.len();
        self.quorum.unwrap_or(match self.consensus {
            Consensus::Unanimous => all,
            _ => all / 2 + 1,
        })
    }

    fn concerns(&self, response: &ModelResponse) -> bool {
        match self.judged {
            Judged::Answers => response.calls.is_empty(),
            Judged::Calls => !response.calls.is_empty(),
            Judged::All => true,
        }
    }

    /// Has the critics vote, and says what it comes to.
    async fn judge(
        &self,
        cx: TurnCx<'_>,
        request: &ModelRequest,
        response: &ModelResponse,
        round: usize,
    ) -> Result<Ruling, Error> {
        let shown = material(self.context, request, response);
        let votes = ask_all(&self.judges, cx, &shown, round, self.timeout).await?;
        // On record as a whole: a critic that failed is not asked again by a later life of the run,
        // which would then perhaps decide otherwise.
        let told = async {
            votes.iter().for_each(|vote| tell(cx, vote, round));
            Ok(votes)
        };
        let votes: Vec<Vote> = cx.step(&format!("votes#{round}"), told).await?;
        Ok(rule(&votes, self.consensus, self.votes_needed()))
    }
}

/// Announces a vote.
fn tell(cx: TurnCx<'_>, vote: &Vote, round: usize) {
    match &vote.verdict {
        Ok(verdict) => cx.announce("critic.voted", || {
            let critique = verdict.critique.as_deref().map(|it| bounded(it, MOST_IN_EVENT));
            json!({
                "critic": vote.critic,
                "verdict": verdict.verdict.as_str(),
                "critique": critique,
                "score": verdict.score,
                "weight": vote.weight,
                "round": round,
            })
        }),
        Err(why) => cx.announce("critic.failed", || {
            json!({ "critic": vote.critic, "reason": bounded(why, MOST_IN_EVENT), "round": round })
        }),
    }
}

impl IntoRegistration for Critic {
    fn into_registration(self) -> Registration {
        // What is asked again are whole calls, with whatever makes, keeps or bounds them.
        let within = [
            "cache",
            "fallback",
            "refusal",
            "retry",
            "breaker",
            "rate_limit",
            "concurrency",
            "timeout",
        ];
        let answers = u32::try_from(self.rounds.saturating_add(1)).unwrap_or(u32::MAX);
        let limit = self.timeout.saturating_mul(answers).saturating_add(GRACE);
        // A critic judges what its own agent says, and so is no guard, which an agent's children
        // would have too. That nothing passes unjudged is its own business.
        let policy = match self.on_failure {
            OnFailure::Deny => Policy::Abort,
            OnFailure::Continue => Policy::Continue,
        };
        let registration =
            hook(Judging(self)).named("critic").kind("critic").limit(limit).policy(policy);
        within.into_iter().fold(registration, Registration::outside)
    }
}

struct Judging(Critic);

#[lifecycle]
impl AgentLifecycle for Judging {
    async fn wrap_model_call(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        let critic = &self.0;
        let asked = request.clone();
        let mut drafts: Vec<Message> = Vec::new();
        let mut best: Option<(f64, ModelResponse)> = None;
        let mut response = next.call(request).await?;
        for round in 1.. {
            if !critic.concerns(&response) {
                break;
            }
            let (critique, score) = match critic.judge(cx, &asked, &response, round).await? {
                Ruling::Accepted(None) => break,
                Ruling::Accepted(Some(text)) => {
                    response.content = text.into();
                    response.calls.clear();
                    response.stop = StopReason::EndTurn;
                    break;
                }
                Ruling::Undecided(why) => match critic.on_failure {
                    OnFailure::Continue => break,
                    OnFailure::Deny => {
                        let denied = format!("the answer could not be judged: {why}");
                        return Err(Error::denied(denied).into());
                    }
                },
                Ruling::Rejected { critique, score } => (critique, score),
            };
            let score = score.unwrap_or_default();
            // Of equals the later one: it has heard more.
            if best.as_ref().is_none_or(|(other, _)| score >= *other) {
                best = Some((score, response.clone()));
            }
            // What was read already cannot be taken back.
            if round > critic.rounds || cx.is_text_out() {
                return match (critic.on_rejected, best) {
                    (OnRejected::Deny, _) => {
                        Err(Error::denied(format!("Critic rejected: {critique}")).into())
                    }
                    (OnRejected::Best, Some((_, best))) => Ok(best),
                    _ => Ok(response),
                };
            }
            drafts.push(Message::assistant(draft_of(&response)));
            drafts.push(Message::user(format!(
                "Your answer was reviewed and is not accepted yet:\n{critique}\n\nAnswer again, as \
                 if for the first time, and do not mention the review."
            )));
            let mut again = asked.clone();
            again.messages.edit().extend(drafts.iter().cloned());
            response = next.call(&mut again).await?;
        }
        Ok(response)
    }
}

/// A rejected answer, as its creator gets to read it. Tool calls that were not made are told of in
/// words: as calls they would need results.
fn draft_of(response: &ModelResponse) -> String {
    let mut draft = response.content.to_string();
    for call in &response.calls {
        if !draft.is_empty() {
            draft.push('\n');
        }
        draft.push_str(&format!("(wanted to call `{}` with {})", call.name, call.arguments));
    }
    if draft.is_empty() {
        draft.push_str("(nothing)");
    }
    draft
}
