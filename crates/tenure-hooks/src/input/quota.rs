//! So much in so much time, for each user, each agent, or all of them.

use super::account::{Account, Limits, Spent};
use super::seen::{AT_TURN, Expression, Moment, user_of};
use crate::ready::{About, Makings, Options, Refusal, Time};
use crate::words::own_key;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tenure_core::Error;
use tenure_core::context::TurnCx;
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::hook::{
    After, AgentLifecycle, Flow, HookError, IntoRegistration, Point, Points, Policy, Registration,
    hook,
};
use tenure_core::memory::{MemoryHandle, Search};
use tenure_core::model::Usage;
use tenure_macros::lifecycle;

/// Whose requests are counted together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Per {
    /// Those of one user: as the chat's variable `user_id` says, else as the execution context does.
    /// Requests of nobody count together.
    #[default]
    User,
    /// Those to one agent, its clones and forks included.
    Agent,
    /// All of them.
    Shared,
}

/// Where it is kept how much was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Keep {
    /// In the process: gone when it ends.
    #[default]
    Process,
    /// In the agent's memory, where it survives. Processes that share a memory see each other's
    /// requests; two of two processes at the very same moment may both pass.
    Memory,
}

/// A guard that lets so many requests pass in a window of time, or so many tokens, or so much money,
/// and denies the next one with when to come back.
///
/// A request that is denied is not counted, and one that goes on after a crash is not counted again.
/// What a turn costs is known when it ends, so the turn that goes over a limit of tokens or money is
/// the last one that passes. Clones of a quota count together: give one to several agents, and they
/// share it.
///
/// ```
/// use std::time::Duration;
/// use tenure_core::agent::Agent;
/// use tenure_hooks::input::{Per, Quota};
/// # use tenure_models::Passthrough;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let quota = Quota::within(Duration::from_secs(3600)).requests(1).per(Per::Agent);
/// let agent =
///     Agent::builder("busy").model(Passthrough::new()).with_lifecycle(quota).build()?;
/// agent.startup().await?;
/// assert!(agent.run("first").await.is_ok());
/// let error = agent.run("second").await.unwrap_err();
/// assert!(error.to_string().starts_with("Rate limit exceeded"), "{error}");
/// agent.shutdown().await;
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Quota {
    limits: Limits,
    per: Per,
    keep: Keep,
    key: Option<Arc<Expression>>,
    accounts: Arc<Accounts>,
}

/// Who has used how much.
#[derive(Debug, Default)]
struct Accounts(Mutex<BTreeMap<String, Account>>);

/// How many accounts there may be before those are forgotten that nothing counts in any more.
const SWEEP: usize = 1024;

impl Quota {
    /// A quota over this much time. It needs a limit: requests, tokens or money.
    pub fn within(window: Duration) -> Self {
        Self {
            limits: Limits { window, requests: None, tokens: None, nanos: None, unpriced: false },
            per: Per::default(),
            keep: Keep::default(),
            key: None,
            accounts: Arc::default(),
        }
    }

    /// The most requests.
    pub fn requests(mut self, most: u64) -> Self {
        self.limits.requests = Some(most);
        self
    }

    /// The most tokens, read and written.
    pub fn tokens(mut self, most: u64) -> Self {
        self.limits.tokens = Some(most);
        self
    }

    /// The most money, in US dollars. Once a model call has no known price, nobody knows how much was
    /// spent: no more requests pass until it is out of the window, unless that is
    /// [ignored](Quota::ignore_unpriced).
    pub fn cost(mut self, usd: f64) -> Self {
        self.limits.nanos = Some((usd * 1e9) as u64);
        self
    }

    /// Goes on where a model call has no known price, as if it were free.
    pub fn ignore_unpriced(mut self) -> Self {
        self.limits.unpriced = true;
        self
    }

    /// Whose requests are counted together.
    pub fn per(mut self, per: Per) -> Self {
        self.per = per;
        self
    }

    /// An expression that says whose requests are counted together, in the place of [`Quota::per`]:
    /// `variables.team`, for one.
    pub fn key(mut self, expression: &str) -> Result<Self, Refusal> {
        let key = Expression::compile(expression, AT_TURN);
        self.key = Some(Arc::new(key.map_err(|why| Refusal::new("key", why))?));
        Ok(self)
    }

    /// Where it is kept how much was used.
    pub fn keep(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    fn account(&self, cx: TurnCx<'_>, input: &str) -> Result<String, HookError> {
        if let Some(key) = &self.key {
            let value = key.value(&Moment::of_turn(cx, input)).map_err(HookError::new)?;
            return Ok(format!("key:{value}"));
        }
        Ok(match self.per {
            Per::User => format!("user:{}", user_of(&cx).unwrap_or_default()),
            Per::Agent => format!("agent:{}", cx.config().name),
            Per::Shared => "shared".to_owned(),
        })
    }
}

impl Accounts {
    fn change<T>(&self, name: &str, limits: &Limits, change: impl FnOnce(&mut Account) -> T) -> T {
        let mut accounts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if accounts.len() > SWEEP && !accounts.contains_key(name) {
            let now = now();
            accounts.retain(|_, account| !account.is_empty(now, limits));
        }
        change(accounts.entry(name.to_owned()).or_default())
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Where an account is in the memory. Two quotas of an agent have names of their own.
fn memory_key(cx: TurnCx<'_>, account: &str) -> String {
    let own = own_key(&cx, "quota", "memory/quota");
    format!("{own}/{account}")
}

/// The locks of accounts that are in a memory, by agent and key: who reads one to write it back has
/// it alone in the process.
static LOCKS: Mutex<Locks> = Mutex::new(BTreeMap::new());

type Locks = BTreeMap<(String, String), Weak<tokio::sync::Mutex<()>>>;

fn lock_of(agent: &str, key: &str) -> Arc<tokio::sync::Mutex<()>> {
    let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    let name = (agent.to_owned(), key.to_owned());
    if let Some(lock) = locks.get(&name).and_then(Weak::upgrade) {
        return lock;
    }
    if locks.len() > SWEEP {
        locks.retain(|_, lock| lock.strong_count() > 0);
    }
    let lock = Arc::default();
    locks.insert(name, Arc::downgrade(&lock));
    lock
}

/// What the memory knows now, and not only what was read at startup.
async fn remembered(memory: &MemoryHandle<'_>, key: &str) -> Result<Account, HookError> {
    let found = memory.search(&Search::keys(key), 1).await?;
    let found = found.into_iter().find(|found| found.key == key);
    match found {
        None => Ok(Account::default()),
        Some(found) => serde_json::from_value(found.value).map_err(|error| {
            HookError::new(format!("`{key}` in the memory is no account of a quota: {error}"))
        }),
    }
}

impl IntoRegistration for Quota {
    fn into_registration(self) -> Registration {
        let counts_usage = self.limits.tokens.is_some() || self.limits.nanos.is_some();
        let mut points = Points::from(Point::BeforeAgent);
        if counts_usage {
            points = points.with(Point::AfterAgent);
        }
        hook(Counting(self))
            .named("quota")
            .kind("quota")
            .only(points)
            .policy_at(Point::BeforeAgent, Policy::Deny)
            .keeps_text()
            .outside("route")
            .outside("load_context")
    }
}

struct Counting(Quota);

impl Counting {
    async fn change<T>(
        &self,
        cx: TurnCx<'_>,
        name: &str,
        change: impl FnOnce(&mut Account) -> T + Send,
    ) -> Result<T, HookError> {
        let quota = &self.0;
        if quota.keep == Keep::Process {
            return Ok(quota.accounts.change(name, &quota.limits, change));
        }
        let Some(memory) = cx.memory() else {
            return Err(HookError::new(
                "the quota is kept in the agent's memory, and the agent has none; give it one, or \
                 keep the quota in the process",
            ));
        };
        let key = memory_key(cx, name);
        let lock = lock_of(&cx.config().name, &key);
        let _alone = lock.lock().await;
        let mut account = remembered(&memory, &key).await?;
        let before = account.clone();
        let result = change(&mut account);
        if account != before {
            memory.update(key, json!(account))?;
            memory.flush().await?;
        }
        Ok(result)
    }
}

#[lifecycle]
impl AgentLifecycle for Counting {
    async fn before_agent(&self, cx: TurnCx<'_>, input: &mut Input) -> Result<Flow, HookError> {
        let limits = self.0.limits;
        let name = self.0.account(cx, input.content.text())?;
        let admitted = self.change(cx, &name, |account| account.admit(now(), &limits)).await?;
        match admitted {
            Ok(()) => {
                cx.carry_recorded(&name)?;
                Ok(Flow::Continue)
            }
            Err(exceeded) => {
                let retry = exceeded.after.as_millis().min(u128::from(u64::MAX)) as u64;
                cx.announce(
                    "quota.exceeded",
                    || json!({ "account": name, "limit": exceeded.what, "retry_after_ms": retry }),
                );
                Err(Error::denied(exceeded.to_string()).into())
            }
        }
    }

    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        // Without an account the turn was not let in.
        let Some(name) = cx.carried_recorded::<String>() else { return Ok(After::Done) };
        let Usage { input, output, cost, unpriced, .. } = end.usage();
        let spent = Spent {
            tokens: input.saturating_add(output),
            nanos: cost.nano_usd(),
            unpriced,
            delivery: cx.delivery_id(),
        };
        let limits = self.0.limits;
        self.change(cx, &name, |account| account.spend(now(), &limits, spent)).await?;
        Ok(After::Done)
    }
}

/// What `quota` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct QuotaOptions {
    /// The time that is looked back over.
    window: Time,
    /// The most requests in the window; without it, there may be any number.
    requests: Option<u64>,
    /// The most tokens in the window, read and written; without it, there may be any number.
    tokens: Option<u64>,
    /// The most money in the window, in US dollars; without it, it may be any amount.
    cost: Option<f64>,
    /// What is done about model calls whose price is not known, where `cost` is limited: `deny` lets no
    /// request pass until they are out of the window, `ignore` takes them for free.
    unpriced: Unpriced,
    /// Whose requests are counted together: of a `user`, to an `agent`, or all of them (`shared`).
    #[schemars(extend("default" = "user"))]
    per: Option<Per>,
    /// An expression that says it in the place of `per`, as in `variables.team`.
    key: Option<String>,
    /// Where it is kept how much was used: in the `process`, or in the agent's `memory`, where it
    /// survives.
    keep: Keep,
    /// A name by which the quotas of several agents count together, in the process.
    pool: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Unpriced {
    /// No request passes until they are out of the window.
    #[default]
    Deny,
    /// They are taken for free.
    Ignore,
}

impl Default for QuotaOptions {
    fn default() -> Self {
        Self {
            window: Time(Duration::from_secs(60)),
            requests: None,
            tokens: None,
            cost: None,
            unpriced: Unpriced::default(),
            per: None,
            key: None,
            keep: Keep::default(),
            pool: None,
        }
    }
}

impl Options for QuotaOptions {
    const ABOUT: About = About {
        name: "quota",
        summary: "Lets so many requests, tokens or dollars pass in a window of time.",
        covers: &["UC-1.2"],
        peers: &[],
        example: r#"{ "requests": 600, "window": "1m", "per": "user" }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        if self.requests.is_none() && self.tokens.is_none() && self.cost.is_none() {
            return Err(Refusal::new("", "give a limit: `requests`, `tokens`, `cost`"));
        }
        for (field, limit) in [("requests", self.requests), ("tokens", self.tokens)] {
            if limit == Some(0) {
                return Err(Refusal::new(field, "nothing would ever pass; give more than zero"));
            }
        }
        if self.cost.is_some_and(|usd| !usd.is_finite() || usd <= 0.0) {
            let why = "it is an amount of US dollars; give more than zero";
            return Err(Refusal::new("cost", why));
        }
        if self.keep == Keep::Memory && self.pool.is_some() {
            let why = "a pool is of the process, and this quota is kept in memory: agents that \
                       share a memory share the quota";
            return Err(Refusal::new("pool", why));
        }
        if self.key.is_some() && self.per.is_some() {
            let why = "`key` says it in its place: leave one of them out (`pool` counts the requests \
                       to several agents together)";
            return Err(Refusal::new("per", why));
        }
        let per = self.per.unwrap_or_default();
        let mut quota = Quota::within(self.window.0).per(per).keep(self.keep);
        quota.limits.requests = self.requests;
        quota.limits.tokens = self.tokens;
        if let Some(usd) = self.cost {
            quota = quota.cost(usd);
        }
        if self.unpriced == Unpriced::Ignore {
            if self.cost.is_none() {
                return Err(Refusal::new("unpriced", "it is about money, so it needs `cost`"));
            }
            quota = quota.ignore_unpriced();
        }
        if let Some(key) = &self.key {
            quota = quota.key(key)?;
        }
        // What all agents share has to be one account, whoever counts in it.
        let pool = self.pool.or_else(|| (per == Per::Shared).then(String::new));
        if let Some(pool) = pool {
            let name = format!("{pool}/{}", self.window.0.as_millis());
            quota.accounts = makings.shared().part("quota", &name, Accounts::default);
        }
        Ok(quota.into_registration())
    }
}
