//! What `critic` takes by `with`.

use super::hook::{Critic, Judged, OnFailure, OnRejected};
use super::{Consensus, CriticContext, Judge};
use crate::ready::{About, Makings, ModelName, Options, Refusal, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;
use tenure_core::hook::{IntoRegistration, Registration};

/// What `critic` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct CriticOptions {
    /// The model of the critic, where there is one critic.
    model: Option<ModelName>,
    /// What the critic is to look at; without it, whether the answer is right, complete and safe.
    instruction: Option<String>,
    /// Several critics, who vote; in place of `model` and `instruction`.
    critics: Vec<CriticOption>,
    /// Which answers are judged: those that end a turn (`answers`), those that ask for tools
    /// (`calls`), or `all`.
    judge: JudgedOption,
    /// How often the creator is asked again at most, with the critique.
    rounds: usize,
    /// What becomes of an answer that is still rejected then: `deny` the turn, `accept` the last
    /// one, or take the one with the `best` score.
    on_rejected: OnRejectedOption,
    /// What becomes of an answer that could not be judged: `deny` the turn, or `continue` with it.
    on_failure: OnFailureOption,
    /// When several votes let an answer pass: by `majority`, if `unanimous`, or `weighted`. A tie
    /// rejects.
    consensus: ConsensusOption,
    /// Only for `weighted`: the share of the weight of all votes that has to be exceeded, from 0 to
    /// 1; without it 0.5.
    threshold: Option<f64>,
    /// How many critics have to give a verdict; without it more than half of them, and all where
    /// they have to be unanimous.
    quorum: Option<usize>,
    /// What the critics see beside the answer: the last messages of the user (`own`), or the
    /// instruction and the conversation of the creator (`shared`).
    context: ContextOption,
    /// Only for `own`: how many of the last messages of the user; without it 1.
    user_messages: Option<usize>,
    /// The time that the critics have for one answer. One that takes longer has no vote.
    timeout: Time,
}

impl Default for CriticOptions {
    fn default() -> Self {
        Self {
            model: None,
            instruction: None,
            critics: Vec::new(),
            judge: JudgedOption::default(),
            rounds: 2,
            on_rejected: OnRejectedOption::default(),
            on_failure: OnFailureOption::default(),
            consensus: ConsensusOption::default(),
            threshold: None,
            quorum: None,
            context: ContextOption::default(),
            user_messages: None,
            timeout: Time(Duration::from_secs(40)),
        }
    }
}

/// One critic of several.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CriticOption {
    /// The name by which its votes are known.
    name: String,
    /// Its model.
    model: ModelName,
    /// What it is to look at; without it, whether the answer is right, complete and safe.
    #[serde(default)]
    instruction: Option<String>,
    /// Only for `weighted`: how much its vote weighs; without it 1.
    #[serde(default)]
    weight: Option<f64>,
}

macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident { $($(#[$is:meta])* $choice:ident),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        #[schemars(inline)]
        enum $name { $($(#[$is])* $choice),+ }
    )+};
}

choices! {
    JudgedOption { #[default] Answers, Calls, All }
    OnRejectedOption { #[default] Deny, Accept, Best }
    OnFailureOption { #[default] Deny, Continue }
    ConsensusOption { #[default] Majority, Unanimous, Weighted }
    ContextOption { #[default] Own, Shared }
}

/// Why a weight or a share of weights cannot work.
const NOT_WEIGHTED: &str =
    "votes are weighed only by `consensus: weighted`; say that, or take this away";

impl CriticOptions {
    fn judges(&self, makings: &dyn Makings) -> Result<Vec<Judge>, Refusal> {
        let find = |field: &str, name: &ModelName| {
            makings.model(&name.0).map_err(|why| Refusal::new(field, why))
        };
        if self.critics.is_empty() {
            let Some(model) = &self.model else {
                return Err(Refusal::new(
                    "model",
                    "name the model of the critic, or list `critics`",
                ));
            };
            self.warn_if_same(makings, "model", model);
            let judge = Judge::new("critic", find("model", model)?);
            return Ok(vec![told(judge, self.instruction.as_deref(), "instruction")?]);
        }
        for (field, is_there) in
            [("model", self.model.is_some()), ("instruction", self.instruction.is_some())]
        {
            if is_there {
                let message = "there are `critics`, each with its own; take one of the two away";
                return Err(Refusal::new(field, message));
            }
        }
        let mut names = BTreeSet::new();
        let mut judges = Vec::new();
        for (at, critic) in self.critics.iter().enumerate() {
            let field = |part: &str| format!("critics[{at}].{part}");
            if critic.name.trim().is_empty() {
                return Err(Refusal::new(field("name"), "it is empty; give the critic a name"));
            }
            if !names.insert(critic.name.as_str()) {
                let message = format!("two critics are called `{}`", critic.name);
                return Err(Refusal::new(field("name"), message));
            }
            let weight = critic.weight.unwrap_or(1.0);
            if !(weight > 0.0 && weight.is_finite()) {
                let message = format!("{weight} is no weight; it is more than 0");
                return Err(Refusal::new(field("weight"), message));
            }
            if critic.weight.is_some() && self.consensus != ConsensusOption::Weighted {
                return Err(Refusal::new(field("weight"), NOT_WEIGHTED));
            }
            self.warn_if_same(makings, &format!("critics[{at}]"), &critic.model);
            let model = find(&field("model"), &critic.model)?;
            let judge = Judge::new(critic.name.as_str(), model).weight(weight);
            judges.push(told(judge, critic.instruction.as_deref(), &field("instruction"))?);
        }
        Ok(judges)
    }

    /// A critic that is the creator, and sees what the creator sees, judges itself.
    fn warn_if_same(&self, makings: &dyn Makings, field: &str, model: &ModelName) {
        if self.context == ContextOption::Shared && makings.own_model() == Some(model.0.as_str()) {
            let message = format!(
                "the critic has the model of the agent itself, `{}`, and by `context: shared` its \
                 instruction and conversation, so that it hardly judges otherwise; give it another \
                 model, or a context of its own",
                model.0
            );
            makings.warn(field, message);
        }
    }
}

fn told(judge: Judge, instruction: Option<&str>, field: &str) -> Result<Judge, Refusal> {
    match instruction {
        None => Ok(judge),
        Some(text) if text.trim().is_empty() => {
            Err(Refusal::new(field, "it is empty; say what to look at, or leave it out"))
        }
        Some(text) => Ok(judge.instruction(text)),
    }
}

impl Options for CriticOptions {
    const ABOUT: About = About {
        name: "critic",
        summary: "Has other models judge what the model says: approve, reject with a critique, or \
                  mend it.",
        covers: &["UC-4.5"],
        peers: &[],
        // What `passthrough` says is no verdict.
        example: r#"{ "model": "passthrough", "rounds": 1, "on_failure": "continue" }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        let judges = self.judges(makings)?;
        if self.threshold.is_some() && self.consensus != ConsensusOption::Weighted {
            return Err(Refusal::new("threshold", NOT_WEIGHTED));
        }
        let threshold = self.threshold.unwrap_or(0.5);
        if !(0.0..1.0).contains(&threshold) {
            let message =
                format!("{threshold} is no share that can be exceeded; it is from 0 to 1");
            return Err(Refusal::new("threshold", message));
        }
        if self.user_messages.is_some() && self.context == ContextOption::Shared {
            let message = "by `context: shared` the critics see the whole conversation; take this \
                           away, or say `context: own`";
            return Err(Refusal::new("user_messages", message));
        }
        if let Some(quorum) = self.quorum
            && !(1..=judges.len()).contains(&quorum)
        {
            let message = format!("{quorum} of {} critics cannot vote", judges.len());
            return Err(Refusal::new("quorum", message));
        }
        if self.rounds > 10 {
            let message = format!("{} is more than 10, the most there may be", self.rounds);
            return Err(Refusal::new("rounds", message));
        }
        let mut critic = Critic::panel(judges)
            .judges(match self.judge {
                JudgedOption::Answers => Judged::Answers,
                JudgedOption::Calls => Judged::Calls,
                JudgedOption::All => Judged::All,
            })
            .context(match self.context {
                ContextOption::Own => CriticContext::Own(self.user_messages.unwrap_or(1)),
                ContextOption::Shared => CriticContext::Shared,
            })
            .rounds(self.rounds)
            .on_rejected(match self.on_rejected {
                OnRejectedOption::Deny => OnRejected::Deny,
                OnRejectedOption::Accept => OnRejected::Accept,
                OnRejectedOption::Best => OnRejected::Best,
            })
            .on_failure(match self.on_failure {
                OnFailureOption::Deny => OnFailure::Deny,
                OnFailureOption::Continue => OnFailure::Continue,
            })
            .consensus(match self.consensus {
                ConsensusOption::Majority => Consensus::Majority,
                ConsensusOption::Unanimous => Consensus::Unanimous,
                ConsensusOption::Weighted => Consensus::Weighted(threshold),
            })
            .timeout(self.timeout.0);
        if let Some(quorum) = self.quorum {
            critic = critic.quorum(quorum);
        }
        Ok(critic.into_registration())
    }
}
