//! How much may be spent.

mod ledger;
mod options;
mod spent;

pub use ledger::Ledger;
pub(super) use options::BudgetOptions;
pub use spent::Spent;

use ledger::{Day, Page, Spender};
use serde_json::json;
use spent::{Amount, Kept, Price, dollars};
use tenure_core::Error;
use tenure_core::context::TurnCx;
use tenure_core::drive::TurnEnd;
use tenure_core::hook::{
    After, AgentLifecycle, Flow, HookAction, HookError, IntoRegistration, Point, Policy,
    Registration, hook,
};
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_macros::lifecycle;

/// How much a run, a thread and a day may cost, in dollars and in tokens.
///
/// It looks before each model call at what was spent so far: by the model, by other hooks that ask
/// models, and by the agents that are tools. A call that is under way is not cut off, so the last one
/// may go beyond the limit; say what a call is expected to take, and it is not made if there is no
/// room for it.
///
/// A run is one turn, a thread is the conversation of the instance (in a chat: what of it belongs to
/// the chat), and a day is what all instances spend together whose budgets share a [`Ledger`]. What a
/// clone spends is part of the run that called it once it is over; its own run and thread are its
/// own.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::guard::{Budget, Ledger};
/// # use tenure_models::Passthrough;
///
/// let ledger = Ledger::new();
/// let budget = Budget::new().usd_per_run(0.05).usd_per_day(2.0, &ledger).warn_at(0.8);
/// let agent =
///     Agent::builder("thrifty").model(Passthrough::new()).with_lifecycle(budget).build()?;
/// # Ok::<_, tenure_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Budget {
    run: Amount,
    thread: Amount,
    day: Amount,
    ledger: Ledger,
    unpriced: Unpriced,
    expected: Spent,
    max_tokens: bool,
    ends: bool,
    text: Option<String>,
    warn_at: Option<f64>,
    remembered: Option<String>,
}

/// What is done about calls whose price nobody knows, where dollars are limited.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Unpriced {
    Deny,
    Ignore,
    Price(Price),
}

impl Budget {
    /// No limits yet.
    pub fn new() -> Self {
        Self {
            run: Amount::default(),
            thread: Amount::default(),
            day: Amount::default(),
            ledger: Ledger::new(),
            unpriced: Unpriced::Deny,
            expected: Spent::default(),
            max_tokens: false,
            ends: false,
            text: None,
            warn_at: None,
            remembered: None,
        }
    }

    /// The most dollars that a run may cost.
    pub fn usd_per_run(mut self, usd: f64) -> Self {
        self.run.cost = Some(dollars(usd));
        self
    }

    /// The most tokens that a run may take.
    pub fn tokens_per_run(mut self, tokens: u64) -> Self {
        self.run.tokens = Some(tokens);
        self
    }

    /// The most dollars that a thread may cost.
    pub fn usd_per_thread(mut self, usd: f64) -> Self {
        self.thread.cost = Some(dollars(usd));
        self
    }

    /// The most tokens that a thread may take.
    pub fn tokens_per_thread(mut self, tokens: u64) -> Self {
        self.thread.tokens = Some(tokens);
        self
    }

    /// The most dollars that all who share the ledger may cost in a day.
    pub fn usd_per_day(mut self, usd: f64, ledger: &Ledger) -> Self {
        self.day.cost = Some(dollars(usd));
        self.ledger = ledger.clone();
        self
    }

    /// The most tokens that all who share the ledger may take in a day.
    pub fn tokens_per_day(mut self, tokens: u64, ledger: &Ledger) -> Self {
        self.day.tokens = Some(tokens);
        self.ledger = ledger.clone();
        self
    }

    /// Goes on where a call has no known price. Else, where dollars are limited, the next one is
    /// denied.
    pub fn ignore_unpriced(mut self) -> Self {
        self.unpriced = Unpriced::Ignore;
        self
    }

    /// What calls without a known price cost, in dollars per million tokens read and written.
    pub fn price_unpriced(mut self, input: f64, output: f64) -> Self {
        self.unpriced = Unpriced::Price(Price { input, output });
        self
    }

    /// What a call is expected to take: it is not made if there is no room for that.
    pub fn expect(mut self, tokens: u64, usd: f64) -> Self {
        self.expected = Spent { tokens, cost: dollars(usd), unpriced: 0 };
        self
    }

    /// Expects a call to write as many tokens as its request allows (`max_tokens`), on top of
    /// [`Budget::expect`].
    pub fn expect_max_tokens(mut self) -> Self {
        self.max_tokens = true;
        self
    }

    /// Ends the turn well with a text at a limit, and not as denied.
    pub fn ends_turn(mut self) -> Self {
        self.ends = true;
        self
    }

    /// What the turn then ends with, in place of a text that says which limit was reached.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Announces `budget.warned` when this share is used of what a run, a thread or a day may take:
    /// once in a thread for the thread, and once in a run for the others.
    pub fn warn_at(mut self, share: f64) -> Self {
        self.warn_at = Some(share);
        self
    }

    /// Keeps what was spent in a day in the agent's memory under this key too, so that it outlives
    /// the process. The key has to be declared as memory's. Processes that run at the same time do
    /// not see each other's spending before they end.
    pub fn remembered(mut self, key: impl Into<String>) -> Self {
        self.remembered = Some(key.into());
        self
    }

    fn price(&self) -> Option<Price> {
        match self.unpriced {
            Unpriced::Price(price) => Some(price),
            Unpriced::Deny | Unpriced::Ignore => None,
        }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new()
    }
}

impl IntoRegistration for Budget {
    fn into_registration(self) -> Registration {
        let before = [
            "load_context",
            "prompt",
            "todo",
            "dedupe",
            "clear_tool_results",
            "select_tools",
            "window",
            "cheaper_model",
        ];
        let registration = hook(Guard(self))
            .named("budget")
            .kind("budget")
            .policy_at(Point::BeforeModel, Policy::Deny)
            .policy_at(Point::AfterModel, Policy::Deny)
            .keeps_text();
        before.into_iter().fold(registration, Registration::outside)
    }
}

struct Guard(Budget);

impl Guard {
    /// Counts what was spent since.
    fn observe(&self, cx: TurnCx<'_>, kept: &mut Kept, page: &mut Page<'_>) {
        page.charge(cx.hook_name(), kept.observe(cx.usage(), self.0.price()));
    }

    fn recall(&self, cx: TurnCx<'_>) -> Result<(), HookError> {
        let Some(key) = &self.0.remembered else { return Ok(()) };
        let memory = cx.memory().ok_or_else(|| {
            HookError::new(format!(
                "the day is to be remembered as `{key}`, but there is no memory"
            ))
        })?;
        match memory.get_as::<Day>(key)? {
            Some(day) => self.0.ledger.recall(*day),
            None if memory.get(key).is_none() => {}
            None => {
                return Err(HookError::new(format!(
                    "what is remembered as `{key}` is no spending of a day: it is null"
                )));
            }
        }
        Ok(())
    }

    fn remember(&self, cx: TurnCx<'_>, day: Day) -> Result<(), Error> {
        match (&self.0.remembered, cx.memory()) {
            (Some(key), Some(memory)) => memory.keep(key, day),
            _ => Ok(()),
        }
    }

    fn expected(&self, request: &ModelRequest) -> Spent {
        let mut expected = self.0.expected;
        if let Some(most) = request.params.max_tokens.filter(|_| self.0.max_tokens) {
            expected.tokens = expected.tokens.saturating_add(most.into());
        }
        expected
    }

    /// Why the model may not be asked.
    fn denial(&self, kept: &Kept, expected: Spent, page: &mut Page<'_>) -> Option<String> {
        let Budget { run, thread, day, .. } = &self.0;
        let limited = Amount { cost: run.cost.or(thread.cost).or(day.cost), tokens: None };
        let own = self.unpriced(limited, kept.run, "run");
        own.or_else(|| self.unpriced(*thread, kept.thread(), "thread"))
            .or_else(|| run.denial(kept.run, expected, "run"))
            .or_else(|| thread.denial(kept.thread(), expected, "thread"))
            .or_else(|| {
                let judge = |spent| {
                    let unknown = self.unpriced(*day, spent, "day");
                    unknown.or_else(|| day.denial(spent, expected, "day"))
                };
                page.ask(expected, judge)
            })
    }

    /// Why nobody knows whether a limit of dollars is kept.
    fn unpriced(&self, most: Amount, spent: Spent, scope: &str) -> Option<String> {
        let is_unknown = most.cost.is_some() && spent.unpriced > 0;
        (is_unknown && self.0.unpriced == Unpriced::Deny).then(|| {
            let calls = spent.unpriced;
            format!(
                "the budget cannot be held: {calls} model calls of the {scope} have no known price; \
                 say what they cost (`unpriced`)"
            )
        })
    }

    /// Warns of what is nearly used up. Whoever hears it may look at the ledger, so nobody has it
    /// open now.
    fn warn(&self, cx: TurnCx<'_>, kept: &mut Kept, today: Spent) {
        let Some(at) = self.0.warn_at else { return };
        let Budget { run, thread, day, .. } = &self.0;
        let scopes =
            [("run", run, kept.run), ("thread", thread, kept.thread()), ("day", day, today)];
        for (scope, most, spent) in scopes {
            let share = most.share(spent);
            if share >= at && !kept.warned.iter().any(|warned| warned == scope) {
                kept.warned.push(scope.to_owned());
                cx.announce(
                    "budget.warned",
                    || json!({ "scope": scope, "share": share, "spent": spent }),
                );
            }
        }
    }
}

#[lifecycle]
impl AgentLifecycle for Guard {
    async fn before_model(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        let mut kept = Kept::read(&cx)?;
        if cx.step_number() <= 1 {
            self.recall(cx)?;
            kept.begin_run(cx.chat_id());
        }
        let mut page = self.0.ledger.open(Spender::of(&cx));
        page.settle();
        self.observe(cx, &mut kept, &mut page);
        let denial = self.denial(&kept, self.expected(request), &mut page);
        let today = page.today();
        drop(page);
        self.warn(cx, &mut kept, today);
        kept.write(&cx)?;
        match denial {
            None => Ok(Flow::Continue),
            Some(why) if self.0.ends => Ok(Flow::Finish(self.0.text.clone().unwrap_or(why).into())),
            Some(why) => Err(Error::denied(why).into()),
        }
    }

    async fn after_model(
        &self,
        cx: TurnCx<'_>,
        _response: &ModelResponse,
    ) -> Result<HookAction, HookError> {
        let mut kept = Kept::read(&cx)?;
        let mut page = self.0.ledger.open(Spender::of(&cx));
        self.observe(cx, &mut kept, &mut page);
        page.answered();
        let (today, day) = (page.today(), page.day());
        drop(page);
        self.warn(cx, &mut kept, today);
        kept.write(&cx)?;
        self.remember(cx, day)?;
        Ok(HookAction::Continue)
    }

    async fn after_agent(
        &self,
        cx: TurnCx<'_>,
        _end: &mut TurnEnd<'_>,
    ) -> Result<After, HookError> {
        let mut kept = Kept::read(&cx);
        // Whatever else fails, nothing stays open.
        let mut page = self.0.ledger.open(Spender::of(&cx));
        page.answered();
        page.settle();
        if let Ok(kept) = &mut kept {
            self.observe(cx, kept, &mut page);
        }
        page.leave(cx.hook_name());
        let day = page.day();
        drop(page);
        kept?.write(&cx)?;
        self.remember(cx, day)?;
        Ok(After::Done)
    }
}
